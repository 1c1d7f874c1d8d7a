//! Behaviour that every store owes its callers.

use vm_system_record::{Rejection, StoreError};

mod books;
mod durable;
mod executions;
mod sessions;
mod templates;

fn rejected<T>(rejection: Rejection) -> Result<T, StoreError> {
    Err(StoreError::Rejected(rejection))
}
