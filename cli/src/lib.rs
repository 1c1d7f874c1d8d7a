//! The command line of vm-system: everything of the binary except its first line.
//!
//! Invariants: verbs have no logic here, only in the supervisor; nothing here parses JavaScript, opens the database or
//! knows the sandbox. A command turns arguments into [verbs](vm_system_protocol::control::Verb) and
//! replies into text.
//!
//! Reading order:
//! - [`entry`]: hidden modes first, then arguments, then one command, then the exit code
//! - [`modes`]: the processes that this binary also is (keeper, broker)
//! - [`args`]: the tree of commands; `commands`: one file per command
//! - `context`, `backend`, `target`, `client`, `paths`: how a command reaches a supervisor, in the daemon or embedded; `remote`: a
//!   daemon behind a URL
//! - `output`, `script_output`: values and a script's events as text
//! - `on_demand`: a daemon that is started when it is needed
//! - `lists`: lists, part by part
//! - `npm`: packages of the registry, through the user's own npm
//! - [`contract`]: the commands as data; `complete`: completion in shells
//! - `error`, `hints`, `signals`, `logging`: errors with hints; Ctrl-C; the log

pub mod args;
mod backend;
mod client;
mod commands;
mod complete;
mod context;
pub mod contract;
pub mod entry;
mod error;
mod hints;
mod lists;
mod logging;
pub mod modes;
mod npm;
mod on_demand;
mod output;
mod parse;
mod paths;
mod program_files;
mod read;
mod reconnect;
mod remote;
mod rights;
mod script_output;
mod signals;
mod target;

pub use entry::main_with;
