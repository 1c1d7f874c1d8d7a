//! The rights of an execution: the session's snapshot of its template ∩ the current template, within what the
//! operator permits.
//!
//! Pure functions. Narrowing and revoking apply at the next execution, widening only to new sessions
//! (docs/decisions/015). Knows nothing of processes, the store or enforcement.
//!
//! - [`row`]: the meaning of one capability row
//! - [`paths`]: path patterns
//! - [`rights`]: what each module may do, and how two of them narrow each other
//! - [`net`]: what requests over the network are allowed
//! - [`globals`]: which globals can be switched off
//! - [`mod@effective`]: the intersection
//! - [`outside`]: paths of the host that lie beneath the worktree
//! - [`permit`]: the decision about one host call
//! - [`usage`]: an execution's use of host modules, and the events about it

mod effective;
mod forms;
pub mod globals;
mod net;
mod outside;
pub mod paths;
mod permit;
mod rights;
mod row;
mod usage;

pub use effective::{EffectivePolicy, Operator, Snapshot, effective};
pub use forms::AnyCapability;
pub use net::{AllowedRequest, MAX_NET_PATTERNS, NetLimits, NetPattern, NetRights, NetRule, Secret};
pub use outside::{from_host, seen_from_worktree};
pub use permit::{Denial, HttpPermit, Permit, judge, judge_http};
pub use rights::{DatabaseRights, ExecRights, FsRights};
pub use row::{CapabilityRow, MODULES, NO_HTTP, RowError, is_command_name, read_row};
pub use usage::{HostUsage, ModuleTotals, SessionUsage};

#[cfg(test)]
mod tests;
