//! The real binary, run as people and scripts run it, in an environment of its own.

mod daemon;
mod environment;
mod errors;
mod fake;
mod formats;
mod help;
mod run;
mod sessions;
mod shell;
mod topics;
