//! Identifiers: 128-bit UUIDs as newtypes, so that no id can be passed where another kind belongs.
//!
//! Knows nothing of how ids are made: that needs a clock and randomness, which the supervisor has.

use crate::codec::{Decode, Encode};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; 16]);

        impl $name {
            /// From a UUID that the caller made.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(*uuid.as_bytes())
            }
            /// From the 16 bytes as stored.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }
            /// The 16 bytes as stored.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Uuid::from_bytes(self.0).hyphenated().fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
        impl FromStr for $name {
            type Err = InvalidId;
            /// Accepts the hyphenated form in either case and nothing else.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                match Uuid::try_parse(text) {
                    Ok(uuid) if text.len() == 36 => Ok(Self::from_uuid(uuid)),
                    _ => Err(InvalidId),
                }
            }
        }
        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
    };
}

/// The text is not a hyphenated UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID")]
pub struct InvalidId;

id!(/// A template: the profile from which sessions are made.
    TemplateId);
id!(/// A session: one sandboxed worker process.
    SessionId);
id!(/// An execution: one run of code in a session.
    ExecutionId);
id!(/// A pending question of an execution.
    TaskId);
id!(/// A capability row of a template.
    CapabilityId);
id!(/// A startup-file row of a template.
    StartupFileId);
