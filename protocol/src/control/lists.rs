//! Parts of lists.

use super::ExecutionState;
use crate::codec::{Decode, Encode};
use crate::model::{Execution, ListedTask, Program, ProgramVersion, Run, Schedule, Session, Template};
use crate::time::Timestamp;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct ListPage {
    /// At most this many; absent: as many as fit into a reply.
    pub limit: Option<u32>,
    /// Only entries after this position.
    pub after: Option<ListCursor>,
}

impl ListPage {
    /// The first page.
    pub const fn first(limit: u32) -> Self {
        Self { limit: Some(limit), after: None }
    }

    /// The page behind an element; the first one if there is none.
    pub fn after_last(last: Option<&impl Listed>, limit: u32) -> Self {
        Self { limit: Some(limit), after: last.map(Listed::position) }
    }
}

/// The position of an element in a list that is sorted by time, ties by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ListCursor {
    /// Time of creation (executions: of the start).
    pub at: Timestamp,
    pub id: [u8; 16],
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.0, Uuid::from_bytes(self.id))
    }
}

/// The text is none of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of a list")]
pub struct NoCursor;

impl FromStr for ListCursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (at, id) = text.split_once('.').ok_or(NoCursor)?;
        let (at, id) = (at.parse().map_err(|_| NoCursor)?, Uuid::try_parse(id).map_err(|_| NoCursor)?);
        Ok(Self { at: Timestamp(at), id: id.into_bytes() })
    }
}

/// An element of a list with parts.
pub trait Listed {
    /// The row's position in a list.
    fn position(&self) -> ListCursor;
}

macro_rules! listed {
    ($($element:ty: $at:ident;)+) => {
        $(impl Listed for $element {
            fn position(&self) -> ListCursor {
                ListCursor { at: self.$at, id: *self.id.as_bytes() }
            }
        })+
    };
}

listed! {
    Template: created_at;
    Session: created_at;
    Execution: started_at;
    Program: created_at;
    Schedule: created_at;
}

impl Listed for Run {
    fn position(&self) -> ListCursor {
        self.execution.position()
    }
}

impl Listed for ExecutionState {
    fn position(&self) -> ListCursor {
        self.execution().position()
    }
}

impl Listed for ListedTask {
    fn position(&self) -> ListCursor {
        ListCursor { at: self.task.created_at, id: *self.task.id.as_bytes() }
    }
}

impl Listed for ProgramVersion {
    fn position(&self) -> ListCursor {
        ListCursor { at: self.created_at, id: u128::from(self.version).to_be_bytes() }
    }
}

/// Elements by the time of their creation (executions: of their start).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Period {
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
}
