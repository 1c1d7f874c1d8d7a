//! Identifiers: 128-bit UUIDs as newtypes, so that no id can be passed where another kind belongs.
//!
//! Must not create ids: that needs a clock and randomness, and is done by the supervisor.

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
            /// From a UUID that the caller created.
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
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "format": "uuid" })
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
            /// Accepts only the hyphenated form, in either case.
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

id!(/// A template: the profile from which sessions are created.
    TemplateId);
id!(/// A session: one sandboxed worker process.
    SessionId);
id!(/// An execution: one run of code in a session.
    ExecutionId);
id!(/// A durable program: named, versioned source.
    ProgramId);
id!(/// A task: a pending `CC(prompt)` of an execution.
    TaskId);
id!(/// A schedule of a program.
    ScheduleId);
id!(/// A capability row of a template.
    CapabilityId);
id!(/// A startup-file row of a template.
    StartupFileId);

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00112233-4455-6677-8899-aabbccddeeff";

    #[test]
    fn text_and_bytes_are_the_same_id() {
        let id: SessionId = TEXT.parse().expect("uuid");
        assert_eq!(id.to_string(), TEXT);
        assert_eq!(SessionId::from_bytes(*id.as_bytes()), id);
        assert_eq!(format!("{id:?}"), format!("SessionId({TEXT})"));
        assert_eq!(TEXT.to_uppercase().parse::<SessionId>().expect("upper case"), id);
        assert_eq!(serde_json::to_string(&id).expect("json"), format!("\"{TEXT}\""));
        assert_eq!(serde_json::from_str::<SessionId>(&format!("\"{TEXT}\"")).expect("json"), id);
    }

    #[test]
    fn only_the_hyphenated_form_is_an_id() {
        let braced = format!("{{{TEXT}}}");
        let urn = format!("urn:uuid:{TEXT}");
        for text in ["", "00112233445566778899aabbccddeeff", &TEXT[..35], &format!("{TEXT}0"), &braced, &urn]
        {
            assert_eq!(text.parse::<SessionId>(), Err(InvalidId), "{text}");
        }
        assert!("00112233-4455-6677-8899-aabbccddeefg".parse::<SessionId>().is_err());
        assert!("０0112233-4455-6677-8899-aabbccddee".parse::<SessionId>().is_err());
    }
}
