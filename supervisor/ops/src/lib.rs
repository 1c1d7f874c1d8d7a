//! The verbs of the product: one handler each, the same for every API.
//!
//! Owns validation, what a caller may see, references to ids, and idempotency. Knows no API (no JSON envelopes, no HTTP,
//! no frames), no SQL, no process: rows are the store's, live sessions the runtime's.
//!
//! Reading order:
//! - [`ops`]: [`Ops`] and the path of a request to its verb; [`request`]: what an API passes on
//! - [`verbs`]: from a verb to its handler, by the table of verbs
//! - [`templates`], [`sessions`], [`executions`], [`runtime`]: the handlers, one file for each noun; [`forks`], [`checkpoints`]: copies of
//!   sessions
//! - [`capabilities`], [`startup_files`], [`libraries`]: the parts of a template, and what is installed
//! - [`durable`]: the handlers of programs and tasks
//! - [`resolve`]: a whole id, a name or a unique prefix → an id that the caller may see
//! - [`settings`], [`modules`], [`redact`]: the settings of a template and their bounds, known modules, what is never recorded
//! - [`idempotency`]: a repeated request gets the first response
//! - [`owner_locks`]: changes of one owner's templates come one after the other
//! - [`waiting`]: executions whose last client has gone
//! - [`session_events`]: the events of a session's life
//! - [`restorations`]: ended sessions, whose inputs are repeated in new ones
//! - [`backups`]: copies of the control database, and its check
//! - [`audit`]: changes and refusals, with their principals; [`audit_marks`]: the numbers of their lines as users see them
//! - [`policies`]: the current templates, without a query of the store for each execution

mod audit;
mod audit_marks;
mod backups;
mod built_in;
mod capabilities;
mod checkpoints;
mod durable;
mod errors;
mod executions;
mod forks;
mod idempotency;
mod libraries;
mod modules;
mod ops;
mod owner_locks;
pub mod plans;
mod policies;
mod redact;
mod request;
mod resolve;
mod restorations;
mod runtime;
mod session_events;
mod sessions;
mod settings;
mod startup_files;
mod template_size;
mod templates;
#[cfg(test)]
mod tests;
mod upgrade;
mod verbs;
mod waiting;

pub use idempotency::IdempotencyKey;
pub use ops::{Ops, OpsOptions};
pub use request::{ApiRefusal, Caller, ClientPresence, VerbHandler, VerbRequest};
pub use settings::is_printable;
pub use vm_system_policy::AnyCapability;
pub use vm_system_runtime::{RuntimeApi, RuntimeCondition, RuntimeFacts};

pub(crate) use ops::{LARGE_READ_BYTES, LIST_ROWS, REPLY_BYTES, VerbCall, fitting, now, page, rows_of};
