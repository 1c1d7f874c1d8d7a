//! The APIs of the supervisor: [`control`], [`rest`] and [`mcp`], thin adapters between a transport and the verb handler of
//! [`ops`](vm_system_ops).
//!
//! No API has its own rules about sessions or programs, and each can do what the others can.

mod accept;
pub mod control;
mod keep_alive;
pub mod mcp;
mod operator_file;
pub mod rest;

pub use keep_alive::keep_alive;
pub use operator_file::{line_of, read_secret_toml, read_toml};
