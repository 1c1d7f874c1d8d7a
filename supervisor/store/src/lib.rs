//! The control database behind a small trait: [`Store::submit`] a batch, [`Store::read`] a query, with enums of our own.
//!
//! Owns everything durable of the supervisor. No SQLite type leaves this room; nothing here knows sessions' rules
//! beyond what keeps rows consistent (final states stay final, names are unique), no doors, no workers.
//!
//! [`sqlite`] is the one implementation; a command with a supervisor of its own and tests have it in a temporary folder. The trait is
//! where `PostgreSQL` will stand, and where [`faults`] stands in tests.
//!
//! Reading order:
//! - [`record`](vm_system_record): the vocabulary
//! - [`interface`]: the trait
//! - [`handle`]: what callers hold; typed questions
//! - [`lock`], [`queue`]: one owner per state directory; back-pressure
//! - [`sqlite`]: opening, writer thread with group commit, readers, checkpoints
//! - [`temporary`]: the folder of a database that ends with its process
//! - [`faults`]: a store that fails on request

mod error;
mod faults;
mod handle;
mod interface;
mod lock;
mod queue;
mod sqlite;
mod temporary;
#[cfg(test)]
mod tests;

pub use error::OpenError;
pub use faults::Faults;
pub use handle::{StoreHandle, Ticket};
pub use interface::{BoxFuture, LAZY_MS, Store, StoreStatus, Urgency};
pub use lock::StoreLock;
pub use sqlite::{Durability, StoreOptions, open_sqlite, open_temporary};
