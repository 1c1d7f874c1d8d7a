//! The real binary, run as by people and scripts, in an isolated environment.

#![expect(clippy::unwrap_used, reason = "what must not fail ends the test, with its place")]

mod check;
mod daemon;
mod environment;
mod errors;
mod exit_codes;
mod fake;
mod formats;
mod help;
mod libraries;
mod programs;
mod run;
mod sessions;
mod shell;
mod stdin;
mod terminal;
mod topics;
