//! The doors: thin adapters between a transport and the one place where verbs are handled.
//!
//! No door has business logic, and none can do what the others cannot.

pub mod control;
pub mod mcp;
pub mod rest;
