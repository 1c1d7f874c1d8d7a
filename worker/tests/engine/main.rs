//! The engine through its public API, with a host in memory.

mod bundles;
mod compiled;
mod console;
mod contexts;
mod exceptions;
mod harness;
mod hostile;
mod intl;
mod libraries;
mod limits;
mod messages;
mod modules;
mod native_memory;
mod packages;
mod patches;
mod platform;
mod properties;
mod repl;
mod tasks;
mod timers;
mod typescript;
mod urls;
mod values;
