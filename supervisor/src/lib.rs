//! The supervisor: sessions, their record in the store, and the doors through which they are reached.
//!
//! Invariants of absence: never depends on `worker`, `broker` or `cvm`, parses no JavaScript, runs no SQL of a user.
//!
//! Reading order:
//! - [`core`]: one session as a pure state machine
//! - [`policy`]: what an execution may do
//! - [`api`]: the doors (control socket), thin adapters over the verbs

pub mod api;
pub mod core;
pub mod policy;
