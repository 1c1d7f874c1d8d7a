//! Processes: the only crate of the supervisor that starts, watches and ends them. Knows nothing of sessions beyond
//! their ids, and nothing of the messages on a worker's channel beyond their framing.
//!
//! No statement of a jailed process about itself is trusted. The kernel reports who sent a packet (`SO_PASSPIDFD`), what
//! the sender is (`/proc`), and how it exited (the keeper's `wait4`).
//!
//! Reading order:
//! - [`config`]: what to start, and which walls
//! - [`spawner`]: a keeper, its zygotes, its workers: the public interface
//! - [`unassigned`]: a worker until it has sent its hello
//! - [`keeper`]: start and handshake; [`control`]: its channel afterwards
//! - [`keepers`]: all keepers, for the end
//! - [`kind`]: what a worker is forked with
//! - [`fork`]: a worker that is a child of another session's worker
//! - [`zygote`]: fork orders; [`kind_zygotes`]: zygotes with libraries or the durable engine; [`notify`]: allows exactly the
//!   ordered forks
//! - [`worker_pool`]: prestarted workers; `problem`: why no worker can be started
//! - [`channel`]: a worker's messages; [`process`]: a worker's process
//! - [`mod@examine`]: which walls this host supports
//! - [`groups`]: the owners' groups in the daemon's cgroup subtree
//! - [`broker`]: the processes of host modules, as [`child`] processes
//! - `build`: which executable a jail runs
//! - [`egress`]: the process that makes HTTP requests
//! - [`helper`]: the process that starts files agents, which use worktrees as their users; [`files_agent`]: their channels

mod address;
pub mod adopt;
pub mod broker;
mod build;
pub mod channel;
pub mod child;
pub mod config;
mod control;
pub mod egress;
pub mod error;
mod examine;
pub mod files_agent;
mod fork;
pub mod groups;
pub mod helper;
mod keeper;
mod keepers;
mod kind;
mod kind_zygotes;
pub mod libraries;
mod notify;
mod oom;
mod packets;
mod problem;
pub mod process;
pub mod reactor;
pub mod spawner;
mod unassigned;
mod worker_pool;
mod zygote;

pub use adopt::{AdoptError, AdoptedJail, AdoptedWorker, KeptJail, KeptJails, KeptJailsError, kept_jails};
pub use build::{JailBuild, UNKNOWN_BUILD};
pub use channel::{Received, WorkerChannelError, WorkerReceiver, WorkerSender};
pub use config::{SandboxMode, ServiceIds, SpawnConfig, WorkerLimits};
pub use error::{FULL_HINT, LibraryError, SHORTAGE_HINT, SpawnError, is_full};
pub use examine::{examine, is_wanted};
pub use fork::{ForkError, ForkUnderWay};
pub use groups::{Cgroups, CommandGroup, OwnerGroup, OwnerGroups, OwnerLimits};
pub use keepers::LiveKeepers;
pub use kind::{Library, LibrarySet, ModuleSet, ModuleTexts, WorkerKind};
pub use kind_zygotes::{KindZygoteInfo, MODULE_SETS, OWNER_MODULE_SETS};
pub use process::{Memory, WorkerProcess};
pub use spawner::{KEEPER_END, SpawnEvent, Spawner, WorkerHandle};
pub use vm_system_protocol::reason::WorkerExitStatus;
