//! The QuickJS engine as a library: a runtime that a zygote preloads, and the session that a forked child creates from its copy.
//!
//! No processes, no sockets, no files, no tokio: an execution reaches the process and the system only through its [`Host`].
//! In reading order: `host` (the interface to the process), `preload` and `session` (life cycle), `run` (one execution and its event
//! loop), `budget` (limits), `state` (what callbacks share), `source` (declarations that persist, TypeScript),
//! `modules` (`import`, `require`, host modules), `library` (libraries that the zygote evaluates for all sessions), `compiled` (modules
//! that it compiles for an owner's sessions), `console`,
//! `inspect` and `preview` (values as text and JSON), `exception`, `messages` and `position` (stacks with positions of the original
//! text, messages in V8's words), `natives`, `prelude/` and `own_scripts` (globals), `memory` (native allocations and the limit), `stdin` (the input of a script that `run` started), `platform` (globals that are evaluated on first use).
//!
//! Invariants: values are inspected without running code of the script; every soft limit leaves the session usable;
//! `unsafe` is in files called `sys` alone.

mod budget;
mod codec;
mod compiled;
mod console;
mod disabled;
mod exception;
mod host;
mod inspect;
mod library;
mod memory;
mod messages;
mod modules;
mod natives;
mod own_scripts;
mod platform;
mod position;
mod preload;
mod preview;
mod random;
mod rejections;
mod run;
mod session;
mod source;
mod state;
mod stdin;
mod sys;
mod task;
mod timers;

pub use compiled::ModuleText;
pub use host::{Host, INTERRUPT};
pub use library::{LibraryEvaluationError, LibrarySource};
pub use modules::{LibraryBundle, MissingPackage, PackageFiles};
pub(crate) use platform::expand;
pub use preload::{EngineError, Preloaded, preload};
pub use session::JsSession;
pub(crate) use sys::plug_holes;
