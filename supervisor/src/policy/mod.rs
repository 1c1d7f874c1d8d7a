//! What an execution may do: the session's snapshot of its template ∩ the template as it is now.
//!
//! Pure functions. Narrowing and revoking apply at the next execution, widening only to new sessions (architecture
//! section 2). Knows nothing of processes, the store or how a right is enforced.

mod effective;

pub use effective::{EffectivePolicy, Snapshot, effective};

#[cfg(test)]
mod tests;
