//! The domain as clients see it: field names, shapes and defaults are the same in the CLI's JSON and in REST.
//!
//! Knows nothing of how the objects are stored or produced.

mod durable;
mod event;
mod execution;
mod limits;
mod schedule;
mod session;
mod session_facts;
mod settings;
mod template;

pub use durable::{
    AbandonedItem, CheckpointInfo, Diagnostic, ListedTask, Program, ProgramFrame, ProgramState,
    ProgramVersion, Run, Task, TaskState, TaskStatus, Variable, WaitKind, WaitingFor,
};
pub use event::{
    CUT_MESSAGE, ConsoleLevel, EXCEPTION_CODE_BYTES, Event, EventPayload, HttpRecord, JsType, NoteCode,
    ResultValue, console_piece, is_exception_code,
};
pub use execution::{
    EXECUTION_CODES, Execution, ExecutionError, ExecutionKind, ExecutionStatus, Metrics, NEVER_SETTLED_CODE,
    SYNTAX_ERROR_CODE,
};
pub use limits::{LimitValue, Limits, ZeroLimit};
pub use schedule::{FailedStart, Overlap, Schedule, ScheduleRule, ScheduledStart, SkippedTime};
pub use session::{
    InputDifference, RestorationStatus, Session, SessionCheckpoint, SessionEvent, SessionEventType,
    SessionInspection, SessionRestoration, SessionStatus,
};
pub use session_facts::{
    LastCrash, LastRestart, LastRollback, LostCheckpoints, Restorability, RestorationPlan, RestoredInputs,
    SessionFacts,
};
pub use settings::{OnCrash, Resolver, RuntimeSettings, Settings, TypeCheck};
pub use template::{Capability, CapabilityKind, Engine, StartupFile, StartupMode, Template, TemplateDetail};

/// Declares an enum with one text form for each member, the same in REST, in the CLI and in the database.
macro_rules! text_enum {
    ($(#[doc = $doc:literal])* $name:ident {
        $($(#[doc = $member_doc:literal])* $member:ident = $text:literal),+ $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
                 crate::codec::Encode, crate::codec::Decode, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[doc = $member_doc])* #[serde(rename = $text)] $member),+ }

        impl $name {
            /// All members, in order.
            pub const ALL: &'static [Self] = &[$(Self::$member),+];
            /// The text form.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$member => $text),+ }
            }
        }
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let members = [$(($text, concat!($($member_doc),*))),+];
                $crate::model::text_schema(concat!($($doc),*), &members)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl std::str::FromStr for $name {
            type Err = $crate::model::UnknownName;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text { $($text => Ok(Self::$member),)+ _ => Err($crate::model::UnknownName) }
            }
        }
    };
}
pub(crate) use text_enum;

/// The JSON Schema of an enum of texts: its comment, and its members with theirs.
fn text_schema(comment: &str, members: &[(&str, &str)]) -> schemars::Schema {
    let documented = members.iter().filter(|(_, comment)| !comment.is_empty());
    let documented = documented.map(|(name, comment)| format!("`{name}`: {}", comment.trim()));
    let sentences: Vec<String> = std::iter::once(comment.trim().to_owned()).chain(documented).collect();
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    schemars::json_schema!({ "type": "string", "enum": names, "description": sentences.join("\n").trim() })
}

/// The text names no member of the enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown name")]
pub struct UnknownName;
