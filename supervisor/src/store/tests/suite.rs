//! Behaviour that every store owes its callers.

mod books;
mod durable;
mod executions;
mod sessions;
mod templates;

use crate::store::{Rejection, StoreError};

fn rejected<T>(rejection: Rejection) -> Result<T, StoreError> {
    Err(StoreError::Rejected(rejection))
}
