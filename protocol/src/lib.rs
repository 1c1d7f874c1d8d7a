//! The messages between the processes of vm-system, their types and encoding. Does not send anything.
//!
//! Invariants of absence: no I/O, no clock, no threads, no dependency on another crate of the workspace. Messages from a worker, a
//! keeper, a broker or a client are decoded with these types, and their sender is treated as hostile.
//!
//! Reading order:
//! - [`ids`], [`time`], [`json`]: the leaf types
//! - [`counted`]: counts in texts
//! - [`input`]: JSON of people and clients as values, with errors in plain words
//! - [`limits`]: every cap of the system in one place, with its unit
//! - [`codec`]: bytes ⇄ values; the only file that uses bincode
//! - [`packet`]: one logical message ⇄ `SOCK_SEQPACKET` packets with a sequence number
//! - [`hello`]: the first message of every channel, with an encoding that never changes
//! - [`since`]: since which version a message exists
//! - [`module_syntax`]: texts that are modules, for hints
//! - [`model`]: templates, sessions, executions, events as clients see them
//! - [`reason`]: why a session ended
//! - [`durable`]: messages to and from a worker that runs a durable program
//! - [`worktree_path`]: paths within a worktree as texts
//! - [`worker`], [`keeper`], [`zygote`], [`broker`], [`egress`], [`files_agent`], [`control`]: one enum per direction of each channel

pub mod broker;
pub mod codec;
pub mod control;
pub mod counted;
pub mod durable;
pub mod egress;
pub mod files_agent;
pub mod hello;
pub mod ids;
pub mod input;
pub mod json;
pub mod keeper;
pub mod limits;
pub mod model;
pub mod module_syntax;
pub mod packet;
pub mod program_source;
pub mod reason;
pub mod since;
pub mod time;
pub mod worker;
pub mod worktree_path;
pub mod zygote;
