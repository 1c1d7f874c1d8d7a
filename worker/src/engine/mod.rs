//! The QuickJS engine as a library: a runtime that a zygote preloads, and sessions that forked children make of it.
//!
//! No processes, no sockets, no files, no tokio: whatever an execution needs from outside it asks its [`Host`] for.
//! In reading order: `host` (the outside), `preload` and `session` (life cycle), `run` (one execution and its event
//! loop), `budget` (limits), `state` (what callbacks share), `source` (declarations that persist, TypeScript),
//! `modules` (`import`, `require`, host modules), `library` (what the zygote evaluates for all sessions), `console`, `inspect` and `preview` (values as text and JSON),
//! `exception` and `position` (stacks that name the author's lines), `natives` and `prelude/` (globals).
//!
//! Invariants: values are looked at without running code of the script; every soft limit leaves the session usable;
//! `unsafe` is in `sys` alone.

mod budget;
mod codec;
mod console;
mod disabled;
mod exception;
mod host;
mod inspect;
mod library;
mod modules;
mod natives;
mod position;
mod preload;
mod preview;
mod question;
mod random;
mod rejections;
mod run;
mod session;
mod source;
mod state;
mod sys;
mod table;
mod timers;

pub use host::{Host, INTERRUPT};
pub use library::{Library, LibraryFailure};
pub use preload::{EngineError, Preloaded, preload};
pub use session::Session;
pub(crate) use sys::plug_holes;
