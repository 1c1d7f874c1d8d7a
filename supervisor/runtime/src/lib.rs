//! Live sessions: one owner task each, which drives [`vm_system_core`] with real time, processes and the store.
//!
//! The machine decides, this crate carries out. Owns no rule about sessions; knows no API, no SQL, no wall of the jail.
//! An owner task never waits for one thing only: sending to a worker, submitting to the store, host calls and the worker's messages
//! are all polled side by side, so that a stopped worker or a slow disk never keeps it from receiving `cancel` or `kill`.
//!
//! Reading order:
//! - [`api`]: requests and errors ([`CreateSession`], [`RuntimeError`]; code is run by a [`vm_system_core::ExecuteRequest`])
//! - [`interface`]: [`RuntimeApi`], the operations of the verbs on live sessions; [`facade`]: [`Runtime`], the implementation
//! - [`specs`]: the parameters of a session's machine; [`registry`]: the live sessions and executions
//! - [`task`]: shared state of all sessions; [`command`]: requests to an owner task, [`early`] ones wait
//! - [`session_task`]: the owner task of a session; [`carry_out`]: the actions of its machine
//! - [`clock`], [`callers`], [`writes`], [`link`] with [`outbox`]: parts of both kinds of owner task
//! - [`worktree`]: opening and reading worktrees; [`files_agents`]: processes that do it with the rights of users; [`shares`] of owners
//! - [`memory`], [`host`], [`followers`]: parts of a session's owner task; [`script_input`]: the standard input of scripts
//! - [`create`], [`fork`]: new sessions; [`copies`]: checkpoints, copies from which a session continues; [`restart`]: the next worker
//! - [`jails`], [`owner_jails`]: keepers and zygotes; [`module_sets`]: compiled modules; [`type_checks`]: TypeScript's compiler
//! - [`inspect`]: a worker as reported by the kernel; [`doctor`]: the host and the jail
//! - [`durable`]: the same for executions of durable programs

mod adoption;
mod api;
pub mod brokers;
mod builds;
mod callers;
mod carry_out;
pub mod client_memory;
mod clock;
mod command;
mod copies;
mod create;
mod doctor;
mod durable;
mod early;
pub mod egress;
mod facade;
mod failed_starts;
pub mod files_agents;
mod follow;
mod followers;
mod fork;
mod host;
mod inspect;
mod interface;
mod jails;
mod libraries;
mod link;
mod memory;
mod module_sets;
#[cfg(feature = "next-protocol")]
mod next_protocol;
mod outbox;
mod owner_jails;
mod owner_memory;
mod pressure;
mod recent_failures;
mod registry;
mod restart;
mod restoration;
pub mod script_input;
mod session_task;
pub mod shares;
mod specs;
mod task;
pub mod type_checks;
pub mod workspaces;
pub mod worktree;
mod writes;

pub use api::{
    CreateSession, OWNER_GONE_HINT, RestoredSession, RuntimeConfig, RuntimeError, WorktreeClients,
};
pub use doctor::examine_host;
pub use durable::{CompiledSource, DurableConfig, Durables, RunIdentity, StartProgram, StuckRun};
pub use facade::{Runtime, StartError};
pub use follow::{FOLLOWED_BYTES, FOLLOWED_EVENTS, FollowedBatch, Follower, FollowerClosed, follower};
pub use fork::ForkSession;
pub use interface::{DrainChange, OwnerRole, RuntimeApi, RuntimeCondition, RuntimeFacts};
pub use libraries::{Libraries, catalog_name, full_library_name};
pub use pressure::{LargestOwner, PressureConfig};
