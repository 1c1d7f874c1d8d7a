//! The processes of the jail: the keeper, the zygotes, and the workers that run JavaScript. A plain library: no async runtime, no
//! SQLite, no threads.
//!
//! Reading order:
//! - [`roles`]: the role of this process; checked first in a binary's `main`
//! - `keeper`: pid 1 of the jail
//! - `zygote`: forks workers
//! - `session`: the main loop of a session's worker
//! - [`link`]: the worker's end of its channel
//! - `allocator`: what a failed allocation does
//! - `examine`: probes which walls this machine supports, for `ops doctor`
//! - [`engine`]: runs JavaScript, knows nothing of processes
//! - `durable`: the main loop of a program's worker

// QuickJS with its patches, linked before `rquickjs` would link its own.
use vm_system_quickjs as _;

mod allocator;
mod durable;
pub mod engine;
mod examine;
mod keeper;
pub mod link;
pub mod roles;
mod session;
mod zygote;
