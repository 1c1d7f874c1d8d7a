//! The vocabulary of vm-system: what travels between its processes, and nothing that moves it.
//!
//! Invariants of absence: no I/O, no clock, no threads, no dependency on another crate of ours. Whoever decodes a
//! message from a worker, a keeper, a broker or a client does it with these types and treats the sender as hostile.
//!
//! Reading order:
//! - [`ids`], [`time`], [`json`]: the leaf types that everything names things with
//! - [`limits`]: every cap of the system in one place, with its unit
//! - [`codec`]: bytes ⇄ values; the only file that knows bincode
//! - [`packet`]: one logical message ⇄ `SOCK_SEQPACKET` packets with a sequence number
//! - [`hello`]: the frozen first message of every channel
//! - [`model`]: templates, sessions, executions, events as clients see them
//! - [`reason`]: why a session ended
//! - [`durable`]: what a worker that runs a durable program is told and tells
//! - [`worker`], [`keeper`], [`zygote`], [`broker`], [`control`]: one enum per direction of each channel

pub mod broker;
pub mod codec;
pub mod control;
pub mod durable;
pub mod hello;
pub mod ids;
pub mod json;
pub mod keeper;
pub mod limits;
pub mod model;
pub mod packet;
pub mod reason;
pub mod time;
pub mod worker;
pub mod zygote;
