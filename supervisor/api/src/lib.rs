//! The APIs of the supervisor: [`control`], [`rest`] and [`mcp`], thin adapters between a transport and the verb handler of
//! [`ops`](vm_system_ops).
//!
//! No API has rules of its own about sessions or programs, and none can do what the others cannot.

pub mod control;
pub mod mcp;
pub mod rest;
