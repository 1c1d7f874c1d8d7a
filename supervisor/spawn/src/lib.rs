//! Processes: the only room of the supervisor that creates, watches and ends them. Knows nothing of sessions beyond
//! their ids, and nothing of what travels on a worker's channel beyond its framing.
//!
//! Everything that a jailed process says is judged by the kernel's word: who sent it (`SO_PASSPIDFD`), what it is
//! (`/proc`), how it ended (the keeper's `wait4`).
//!
//! Reading order:
//! - [`config`]: what to start, and which walls
//! - [`spawner`]: a keeper, its zygotes, its workers: the door of this room
//! - [`keeper`]: start and handshake; [`control`]: its channel afterwards
//! - [`kind`]: what a worker is born with
//! - [`fork`]: a worker out of another session's worker
//! - [`zygote`]: orders of forks; [`sets`]: zygotes with more in them; [`notify`]: lets exactly the ordered ones happen
//! - [`ready`]: newborns that wait for a job
//! - [`channel`]: a worker's messages; [`process`]: a worker's process
//! - [`mod@examine`]: what this machine could do
//! - [`broker`]: the processes of host modules

pub mod broker;
pub mod channel;
pub mod config;
mod control;
pub mod error;
mod examine;
mod fork;
mod keeper;
mod kind;
pub mod libraries;
mod notify;
mod packets;
pub mod process;
pub mod reactor;
mod ready;
mod sets;
pub mod spawner;
mod zygote;

pub use channel::{ChannelError, Received, WorkerReceiver, WorkerSender};
pub use config::{SandboxMode, ServiceIds, SpawnConfig, WorkerLimits};
pub use error::{LibraryError, SpawnError};
pub use examine::{examine, is_wanted};
pub use fork::{ForkError, ForkUnderWay};
pub use kind::{Library, LibrarySet, WorkerKind};
pub use process::{Memory, WorkerDeath, WorkerProcess};
pub use sets::SetFacts;
pub use spawner::{SpawnEvent, Spawner, WorkerHandle};
