//! Callers that wait for the reply to a request: each is identified by a token, whose type says which reply the caller gets.

use super::input::{Executed, Refusal};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use vm_system_protocol::model::{Session, SessionCheckpoint};

/// Identifies a caller that waits for a reply of the type `R`.
pub struct Token<R> {
    number: u64,
    reply: PhantomData<fn() -> R>,
}

impl<R> Token<R> {
    pub const fn new(number: u64) -> Self {
        Self { number, reply: PhantomData }
    }

    pub const fn number(self) -> u64 {
        self.number
    }
}

// Not derived: a token is a number, whatever its reply can do.
impl<R> Clone for Token<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Token<R> {}

impl<R> PartialEq for Token<R> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<R> Eq for Token<R> {}

impl<R> PartialOrd for Token<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R> Ord for Token<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl<R> Hash for Token<R> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.number.hash(hasher);
    }
}

impl<R> fmt::Debug for Token<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.number)
    }
}

/// A reply to a caller of a session. A reply of another type than the caller's cannot be made.
#[derive(Debug)]
pub enum SessionReply {
    /// The request is carried out, or under way.
    Done(Token<()>, Result<(), Refusal>),
    /// The session as it is now.
    Session(Token<Session>, Result<Box<Session>, Refusal>),
    /// The execution as it is now.
    Executed(Token<Executed>, Result<Executed, Refusal>),
    /// A new checkpoint.
    Checkpoint(Token<SessionCheckpoint>, Result<Box<SessionCheckpoint>, Refusal>),
}

impl SessionReply {
    /// The number of the caller's token.
    pub const fn caller(&self) -> u64 {
        match self {
            Self::Done(token, _) => token.number(),
            Self::Session(token, _) => token.number(),
            Self::Executed(token, _) => token.number(),
            Self::Checkpoint(token, _) => token.number(),
        }
    }
}

/// The type of a reply that callers of a session may wait for.
pub trait ReplyToCaller: Sized {
    fn reply_to(token: Token<Self>, result: Result<Self, Refusal>) -> SessionReply;
}

impl ReplyToCaller for () {
    fn reply_to(token: Token<Self>, result: Result<Self, Refusal>) -> SessionReply {
        SessionReply::Done(token, result)
    }
}

impl ReplyToCaller for Session {
    fn reply_to(token: Token<Self>, result: Result<Self, Refusal>) -> SessionReply {
        SessionReply::Session(token, result.map(Box::new))
    }
}

impl ReplyToCaller for Executed {
    fn reply_to(token: Token<Self>, result: Result<Self, Refusal>) -> SessionReply {
        SessionReply::Executed(token, result)
    }
}

impl ReplyToCaller for SessionCheckpoint {
    fn reply_to(token: Token<Self>, result: Result<Self, Refusal>) -> SessionReply {
        SessionReply::Checkpoint(token, result.map(Box::new))
    }
}
