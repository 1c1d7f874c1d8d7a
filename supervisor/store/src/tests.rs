//! The contract of the store, and tests that need a real file. No test sleeps; every wait is on an event.

mod checks;
mod failures;
pub(crate) mod fixture;
mod golden;
mod in_use;
mod kills;
mod migration;
mod new_database;
mod opening;
mod pieces;
mod quota;
mod reading;
mod session_events;
mod steps;
mod suite;
mod turns;
mod versions;
