//! The spawn helper: the only process of a root daemon that keeps root's user id. It starts files agents for a supervisor that has given
//! up its rights, and ends them. It receives records of 16 bytes and an agent's channel, and never a path, a name or a message of
//! a client; which users are allowed it decides by itself, from what the operator has configured.
//!
//! ```text
//!  supervisor                          spawn helper
//!                  ◀──────────────────  Ready + pidfd, again from another process that took its place
//!  StartAgent{uid} + channel  ───────▶  allowed? user database, exec
//!                  ◀──────────────────  Started + pidfd, or Refused{errno}
//!  MakeNamespace   ───────────────────▶ for a jail of the supervisor's user, where the host refuses it to users
//!                  ◀──────────────────  Made + user namespace, or Refused{errno}
//!  Kill            ───────────────────▶ SIGKILL
//!                  ◀──────────────────  Ended{status}
//!  (end of file)   ───────────────────▶ kills all agents and exits
//! ```
//!
//! - [`record`]: the records
//! - [`process`]: the helper's own process; [`standby`]: another one that takes its place when it is killed; [`rules`]: the users that it allows
//! - [`client`]: the supervisor's side

mod client;
mod process;
mod record;
mod rules;
mod standby;

pub(crate) use client::is_replaced;
pub use client::{HelperProblem, SpawnHelper, StartedAgent};
pub use process::dispatch;
pub use rules::AgentRules;

/// The hidden mode.
const MODE: &str = "spawn-helper";
