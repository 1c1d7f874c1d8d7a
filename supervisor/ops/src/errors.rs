//! The store's errors as errors for callers, without SQL and without host paths.

use super::resolve::PREFIX_MIN;
use vm_system_protocol::control::{ErrorCode, OpError};
use vm_system_record::{Entity, Rejection, StorageLimit, StoreError};

/// Shorthand for the most frequent refusal.
pub(super) fn invalid(message: impl Into<String>) -> OpError {
    OpError::new(ErrorCode::ValidationError, message)
}

pub(super) fn not_found(entity: Entity, reference: &str) -> OpError {
    let error = OpError::new(missing(entity), format!("there is no {entity} {reference:?}"));
    let short = reference.chars().filter(|digit| *digit != '-').count() < PREFIX_MIN;
    let is_hex = reference.chars().all(|digit| digit == '-' || digit.is_ascii_hexdigit());
    if short && is_hex && reference.contains(|digit: char| digit.is_ascii_hexdigit()) {
        return error.with_hint("if it is a shortened id: at least its first 4 characters are needed");
    }
    error
}

fn missing(entity: Entity) -> ErrorCode {
    match entity {
        Entity::Template => ErrorCode::TemplateNotFound,
        Entity::Session => ErrorCode::SessionNotFound,
        Entity::Execution | Entity::Event => ErrorCode::ExecutionNotFound,
        Entity::StartupFile => ErrorCode::FileNotFound,
        Entity::Library => ErrorCode::LibraryNotFound,
        Entity::Program => ErrorCode::ProgramNotFound,
        Entity::Task => ErrorCode::TaskNotFound,
        _ => ErrorCode::NotFound,
    }
}

/// A limit of what is stored.
pub(super) fn full(limit: StorageLimit) -> OpError {
    OpError::new(ErrorCode::StorageUnavailable, format!("{limit}")).with_hint(format!(
        "delete executions that are not needed, or ask the operator for more ({})",
        limit.setting()
    ))
}

/// For `map_err` on every result of the store.
pub(super) fn stored(error: StoreError) -> OpError {
    match error {
        StoreError::Unavailable(why) => OpError::new(
            ErrorCode::StorageUnavailable,
            format!("the store cannot be used at the moment: {why}"),
        )
        .with_hint(
            "nothing was changed; free some disk space or end the process that locks the database, then try again; `dmesg` names a disk that \
             reports errors",
        ),
        StoreError::Fenced => {
            OpError::new(ErrorCode::StorageUnavailable, StoreError::Fenced.to_string()).with_hint("try again")
        }
        StoreError::Closed => OpError::new(ErrorCode::ShuttingDown, "the supervisor is stopping"),
        StoreError::Corrupt(detail) => {
            tracing::error!(detail, "the store is damaged");
            OpError::new(ErrorCode::Internal, "the store is damaged; the log has the details")
                .with_hint("`vm-system ops health` shows whether new work is accepted, and what to do")
        }
        StoreError::Rejected(rejection) => {
            let code = match rejection {
                Rejection::Conflict(_) | Rejection::Finished(_) | Rejection::TooLarge(_) => {
                    ErrorCode::Conflict
                }
                Rejection::Missing(entity) => missing(entity),
                Rejection::Limit(limit) => return full(limit),
            };
            OpError::new(code, rejection.to_string())
        }
    }
}
