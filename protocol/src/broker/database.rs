//! Calls of the `database` module.

use crate::codec::{Decode, Encode};

/// A call of the `database` module. `database` is `:memory:` (exists as long as the session's broker) or the name of a file of
/// the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum DatabaseRequest {
    /// Opens a database; the file is created if it does not exist.
    Configure { database: String },
    /// Rows of one statement.
    Query { database: String, sql: String, parameters: SqlParameters },
    /// One statement without result rows; several, if there are no parameters.
    Exec { database: String, sql: String, parameters: SqlParameters },
    /// Closes a database; an open transaction is rolled back. No error if it is not open.
    Close { database: String },
}

/// Values of a statement's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SqlParameters {
    /// For `?` and `?1`, in order.
    Positional(Vec<SqlValue>),
    /// For `:name`, `@name` and `$name`; the prefix may be left out.
    Named(Vec<(String, SqlValue)>),
}

/// A value of SQLite.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SqlValue {
    Null,
    /// 64 bits.
    Integer(i64),
    /// A double, as its bits.
    Real(u64),
    Text(String),
    Blob(Vec<u8>),
}

impl SqlValue {
    /// Approximate size in a message (bytes).
    pub fn bytes(&self) -> usize {
        match self {
            Self::Null => 1,
            Self::Integer(_) | Self::Real(_) => 9,
            Self::Text(text) => 9 + text.len(),
            Self::Blob(bytes) => 9 + bytes.len(),
        }
    }
}

/// The limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct DatabaseTerms {
    /// Nothing may be changed.
    pub read_only: bool,
    /// Most rows of a result.
    pub max_rows: u32,
    /// Largest result, and largest single value (bytes).
    pub max_result_bytes: u64,
    /// Largest database (bytes).
    pub max_database_bytes: u64,
    /// Bytes by which the database may grow in this call.
    pub growth_bytes: u64,
    /// Longest time of one call (milliseconds).
    pub timeout_ms: u32,
}

/// The reply to a `database` call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum DatabaseReply {
    /// The database is open, or closed.
    Done,
    Rows {
        /// Names of the columns.
        columns: Vec<String>,
        /// Row after row, each as long as `columns`.
        values: Vec<SqlValue>,
    },
    /// The effect of a statement.
    Changed {
        /// Number of changed rows.
        rows: u64,
        /// Rowid of the last row that was inserted on this connection; 0 if there is none.
        last_row_id: i64,
    },
}
