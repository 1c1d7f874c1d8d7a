//! Supervisor ⇄ broker, and the requests of host modules that both the worker and the broker speak of.
//!
//! - [`fs`](self::FsRequest): files beneath the worktree; paths are relative, with `/` between names
//! - [`database`](self::DatabaseRequest): SQLite files of the workspace
//! - [`exec`](self::ExecRequest): commands that the operator listed
//!
//! A request is the script's word. What goes to a broker is a [`BrokerCall`]: the request as the supervisor let it pass,
//! with the terms on which it may be carried out.

mod database;
mod exec;
mod fs;

pub use database::{DatabaseReply, DatabaseRequest, DatabaseTerms, SqlParameters, SqlValue};
pub use exec::{ExecReply, ExecRequest, ExecTerms};
pub use fs::{DirEntry, FileKind, FileStat, FsReply, FsRequest, FsTerms, WriteMode};

use crate::codec::{Decode, Encode};
use crate::ids::ExecutionId;
use crate::worker::HostError;

/// What a supervisor tells a broker. Requests were checked against the effective policy before.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToBroker {
    /// Do this.
    Call {
        /// Echoed in the answer.
        call: u64,
        /// For which execution: what an earlier one left open is closed first.
        execution: ExecutionId,
        /// What.
        request: BrokerCall,
    },
    /// The execution is over: transactions that it left open are rolled back. Not answered.
    ExecutionEnded,
    /// End.
    Shutdown,
}

/// What a broker tells the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromBroker {
    /// The jail is up.
    Ready,
    /// The jail could not be built.
    Failed {
        /// Which step, why, and what to do.
        message: String,
    },
    /// The answer to a call.
    Reply {
        /// The call's number.
        call: u64,
        /// What came of it.
        reply: Result<BrokerReply, HostError>,
    },
}

/// A request that was let pass.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum BrokerCall {
    /// Files.
    Fs {
        /// What.
        request: FsRequest,
        /// On which terms.
        terms: FsTerms,
    },
    /// SQL.
    Database {
        /// What.
        request: DatabaseRequest,
        /// On which terms.
        terms: DatabaseTerms,
    },
    /// A command.
    Exec {
        /// What.
        request: ExecRequest,
        /// On which terms.
        terms: ExecTerms,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum BrokerReply {
    /// To [`BrokerCall::Fs`].
    Fs(FsReply),
    /// To [`BrokerCall::Database`].
    Database(DatabaseReply),
    /// To [`BrokerCall::Exec`].
    Exec(ExecReply),
}
