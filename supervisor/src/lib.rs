//! The supervisor: sessions, their record in the store, and the doors through which they are reached.
//!
//! Invariants of absence: never depends on `worker`, `broker` or `cvm`, parses no JavaScript, runs no SQL of a user.
//!
//! Reading order:
//! - [`core`]: one session as a pure state machine
//! - [`policy`]: what an execution may do
//! - [`plans`]: Markdown files that are walked through with an agent, compiled
//! - [`worktree`]: the folder whose files a session may run
//! - [`workspaces`]: the folders of the workspaces' databases
//! - [`store`]: the control database behind a trait, written by one thread
//! - [`libraries`]: sources of installed libraries by the hash of their content
//! - `reactor`: descriptors that the runtime watches
//! - [`spawn`]: processes: the keeper, its zygotes, the workers
//! - [`brokers`]: the jailed process that touches files for a session
//! - [`runtime`]: one owner task per live session: real time, processes and the store around the machine
//! - [`ops`]: the verbs of the product, one handler each, the same for every door
//! - [`api`]: the doors (control socket), thin adapters over the verbs
//! - [`daemon`]: all of it as one process: start, serve, stop; and the same inside a command

pub mod api;
pub mod brokers;
pub mod core;
pub mod daemon;
pub mod libraries;
pub mod ops;
pub mod plans;
pub mod policy;
mod reactor;
pub mod runtime;
pub mod spawn;
pub mod store;
pub mod workspaces;
pub mod worktree;
