//! The engine through its public surface, with a host made of memory.

mod console;
mod exceptions;
mod harness;
mod hostile;
mod libraries;
mod limits;
mod modules;
mod properties;
mod questions;
mod repl;
mod timers;
mod typescript;
mod values;
