//! The supervisor: sessions, their record in the store, and the doors through which they are reached.
//!
//! Invariants of absence: never depends on `worker`, `broker` or `cvm`, parses no JavaScript, runs no SQL of a user.
//!
//! Reading order:
//! - [`api`]: the doors (control socket), thin adapters over the verbs

pub mod api;
