//! What an execution may do: the session's snapshot of its template ∩ the template as it is now, within what the
//! operator allows.
//!
//! Pure functions. Narrowing and revoking apply at the next execution, widening only to new sessions (architecture
//! section 2). Knows nothing of processes, the store or how a right is enforced.
//!
//! - [`row`]: what one capability row means
//! - [`paths`]: path patterns
//! - [`rights`]: what each module may do, and how two of them narrow each other
//! - [`globals`]: which globals can be switched off
//! - [`mod@effective`]: the intersection
//! - [`permit`]: the decision about one host call
//! - [`usage`]: what an execution used, and the events about it

mod effective;
pub mod globals;
pub mod paths;
mod permit;
mod rights;
mod row;
mod usage;

pub use effective::{BrokerAccess, EffectivePolicy, Operator, Snapshot, effective};
pub use permit::{Denial, Permit, judge};
pub use rights::{DatabaseRights, ExecRights, FsRights};
pub use row::{CapabilityRow, MODULES, NO_HTTP, RowError, is_command_name, read_row};
pub use usage::{HostUsage, SessionUsage};

#[cfg(test)]
mod tests;
