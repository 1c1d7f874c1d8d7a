//! The real binary, run as people and scripts run it, in an environment of its own.

#![expect(clippy::unwrap_used, reason = "what must not fail ends the test, with its place")]

mod daemon;
mod environment;
mod errors;
mod fake;
mod formats;
mod help;
mod programs;
mod run;
mod sessions;
mod shell;
mod terminal;
mod topics;
