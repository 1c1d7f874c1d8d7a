//! The jail's side of vm-system: the keeper that holds it together, the zygotes that give birth, the workers that run
//! JavaScript. A plain library: no async runtime, no SQLite, no threads.
//!
//! Reading order:
//! - [`roles`]: which role a process plays; the first thing that a binary's `main` asks
//! - `keeper`: pid 1 of the jail
//! - `zygote`: forks workers
//! - `session`: a worker's life, order by order
//! - [`link`]: its channel
//! - `examine`: what this machine could do, for `ops doctor`
//! - [`engine`]: runs JavaScript, knows no process
//! - `durable`: runs durable programs, order by order

mod durable;
pub mod engine;
mod examine;
mod keeper;
pub mod link;
pub mod roles;
mod session;
mod zygote;
