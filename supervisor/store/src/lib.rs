//! The control database behind two traits: [`Store::submit`] takes a batch of writes, [`StoreReads`] has a method for each read.
//!
//! Owns the supervisor's durable data. No SQLite type leaves this crate; it knows no rules of sessions beyond those that keep
//! rows consistent (final states stay final, names are unique), no APIs, no workers.
//!
//! [`sqlite`] is the one implementation; tests and commands with an embedded supervisor open it in a temporary folder. The trait
//! allows another database later, and [`faults`] in tests.
//!
//! Reading order:
//! - [`record`](vm_system_record): rows, writes, filters of lists
//! - [`interface`]: the trait
//! - [`reads`]: the table of all reads
//! - [`handle`]: the callers' interface
//! - [`lock`], [`queue`], [`admission`]: one owner per state directory; back-pressure; limits of what is stored
//! - [`sqlite`]: opening, writer thread with group commit, readers, checkpoints
//! - [`holds`]: who holds which execution of a program; [`clock`]: the time
//! - [`session_watches`]: wakes those who wait for events of a session
//! - [`temporary`]: the folder of a database that ends with its process
//! - [`faults`]: a store that fails on request

mod admission;
mod clock;
mod error;
mod faults;
mod handle;
mod holds;
mod interface;
mod lock;
mod queue;
mod reads;
mod session_watches;
mod sqlite;
mod temporary;
#[cfg(test)]
mod tests;

pub use error::OpenError;
pub use faults::Faults;
pub use handle::{StoreHandle, Ticket};
pub use interface::{BoxFuture, DatabaseFault, LAZY_MS, Lane, STALLED_AFTER, Store, StoreStatus, Urgency};
pub use lock::StoreLock;
pub use reads::{OwnedArgument, StoreReads};
pub use session_watches::SessionWatch;
pub use sqlite::{Durability, StoreOptions, check_file, open_locked_sqlite, open_sqlite, open_temporary};
