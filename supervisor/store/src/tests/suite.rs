//! The contract of every store.

use vm_system_record::{Rejection, StoreError};

mod audit_and_keys;
mod durable;
mod executions;
mod sessions;
mod templates;

fn rejected<T>(rejection: Rejection) -> Result<T, StoreError> {
    Err(StoreError::Rejected(rejection))
}
