//! The REST API of the real daemon, over real sockets.

mod agents;
mod answers;
mod bounds;
mod contract;
mod described;
mod hostile;
mod idempotency;
mod lists;
mod names;
mod owners;
mod pattern;
mod people;
mod programs;
mod reference;
mod service_manager;
mod streams;
mod tasks;
mod tokens;
mod ui;
