//! Calls of the `database` module.

use crate::codec::{Decode, Encode};

/// A call of the `database` module. `database` is `:memory:` (gone with the session's broker) or the name of a file of
/// the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum DatabaseRequest {
    /// Opens a database; a file is made if it is not there.
    Configure {
        /// Which.
        database: String,
    },
    /// Rows of one statement.
    Query {
        /// Which database.
        database: String,
        /// One statement.
        sql: String,
        /// Values of its parameters.
        parameters: SqlParameters,
    },
    /// One statement for its effect; several, if there are no parameters.
    Exec {
        /// Which database.
        database: String,
        /// The statements.
        sql: String,
        /// Values of the parameters.
        parameters: SqlParameters,
    },
    /// Closes a database; an open transaction is rolled back. One that is not open is fine.
    Close {
        /// Which.
        database: String,
    },
}

/// Values of a statement's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SqlParameters {
    /// For `?` and `?1`, in order.
    Positional(Vec<SqlValue>),
    /// For `:name`, `@name` and `$name`; the sign may be left out.
    Named(Vec<(String, SqlValue)>),
}

/// A value of SQLite.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SqlValue {
    /// Nothing.
    Null,
    /// 64 bits.
    Integer(i64),
    /// A double, as its bits.
    Real(u64),
    /// UTF-8.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl SqlValue {
    /// About how many bytes it takes up in a message.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Null => 1,
            Self::Integer(_) | Self::Real(_) => 9,
            Self::Text(text) => 9 + text.len(),
            Self::Blob(bytes) => 9 + bytes.len(),
        }
    }
}

/// What a call may cost.
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
    /// Longest time of one call (milliseconds).
    pub timeout_ms: u32,
}

/// What a `database` call gives.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum DatabaseReply {
    /// It is open, or closed.
    Done,
    /// Rows.
    Rows {
        /// Names of the columns.
        columns: Vec<String>,
        /// Row after row, each as long as `columns`.
        values: Vec<SqlValue>,
    },
    /// What a statement did.
    Changed {
        /// Rows that it changed.
        rows: u64,
        /// Rowid of the last row that was inserted on this connection; 0 if none was.
        last_row_id: i64,
    },
}
