//! SQLite's errors in the form that scripts see: SQLite's names of codes and its messages. They contain no host path: SQLite
//! gets only names relative to the workspace's folder.

use super::open::StatementDeadline;
use rusqlite::Error;
use vm_system_protocol::broker::DatabaseTerms;
use vm_system_protocol::worker::HostError;

/// Names of result codes; extended codes (with a second byte) first.
const CODES: &[(i32, &str)] = &[
    (275, "SQLITE_CONSTRAINT_CHECK"),
    (787, "SQLITE_CONSTRAINT_FOREIGNKEY"),
    (1299, "SQLITE_CONSTRAINT_NOTNULL"),
    (1555, "SQLITE_CONSTRAINT_PRIMARYKEY"),
    (1811, "SQLITE_CONSTRAINT_TRIGGER"),
    (2067, "SQLITE_CONSTRAINT_UNIQUE"),
    (2579, "SQLITE_CONSTRAINT_ROWID"),
    (3091, "SQLITE_CONSTRAINT_DATATYPE"),
    (1, "SQLITE_ERROR"),
    (4, "SQLITE_ABORT"),
    (5, "SQLITE_BUSY"),
    (6, "SQLITE_LOCKED"),
    (7, "SQLITE_NOMEM"),
    (8, "SQLITE_READONLY"),
    (9, "SQLITE_INTERRUPT"),
    (10, "SQLITE_IOERR"),
    (11, "SQLITE_CORRUPT"),
    (13, "SQLITE_FULL"),
    (14, "SQLITE_CANTOPEN"),
    (17, "SQLITE_SCHEMA"),
    (18, "SQLITE_TOOBIG"),
    (19, "SQLITE_CONSTRAINT"),
    (20, "SQLITE_MISMATCH"),
    (21, "SQLITE_MISUSE"),
    (23, "SQLITE_AUTH"),
    (25, "SQLITE_RANGE"),
    (26, "SQLITE_NOTADB"),
];
/// Longest message (bytes): SQLite repeats parts of statements.
const MESSAGE_BYTES: usize = 2_000;

/// An error of the broker, not of SQLite.
pub(super) fn refused(code: &str, why: &str) -> HostError {
    HostError { code: code.to_owned(), message: format!("{code}: {why}") }
}

/// The list of statements that the authorizer refuses ([`super::guard`]), for people.
const WHY_NOT_AUTHORIZED: &str = ": refused in sessions are other database files (ATTACH, VACUUM), most pragmas, functions that load \
                                  code, and virtual tables other than fts5 and rtree";

/// An error of SQLite, or `ETIMEDOUT` if the deadline caused it.
pub(super) fn from_sqlite(error: &Error, deadline: &StatementDeadline, terms: DatabaseTerms) -> HostError {
    if deadline.has_passed() {
        return refused("ETIMEDOUT", &format!("it took longer than {} ms (timeout_ms)", terms.timeout_ms));
    }
    let code = match error {
        Error::SqliteFailure(failure, _) | Error::SqlInputError { error: failure, .. } => {
            failure.extended_code
        }
        _ => 1,
    };
    let find = |wanted: i32| CODES.iter().find(|(code, _)| *code == wanted);
    let name = find(code).or_else(|| find(code & 0xff)).map_or("SQLITE_ERROR", |(_, name)| *name);
    let message = match error {
        Error::SqliteFailure(_, Some(message)) | Error::SqlInputError { msg: message, .. } => message.clone(),
        Error::SqliteFailure(failure, None) => failure.to_string(),
        error => error.to_string(),
    };
    let message = &message[..message.floor_char_boundary(MESSAGE_BYTES)];
    if name == "SQLITE_AUTH" {
        return refused(name, &format!("{message}{WHY_NOT_AUTHORIZED}"));
    }
    refused(name, message)
}
