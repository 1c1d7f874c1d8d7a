//! Supervisor ⇄ broker, and the requests of host modules, which worker and broker share.
//!
//! - [`fs`](self::FsRequest): files beneath the worktree; paths are relative, with `/` between names
//! - [`database`](self::DatabaseRequest): SQLite files of the workspace
//! - [`exec`](self::ExecRequest): commands that the operator listed
//!
//! A request is made by a script and is not trusted. The supervisor checks it and sends it to a broker as a [`BrokerCall`],
//! together with the limits within which the broker may carry it out.

mod database;
mod exec;
mod fs;

pub use database::{DatabaseReply, DatabaseRequest, DatabaseTerms, SqlParameters, SqlValue};
pub use exec::{ExecReply, ExecRequest, ExecTerms};
pub use fs::{DirEntry, FileKind, FileStat, FsReply, FsRequest, FsTerms, WriteMode};

use crate::codec::{Decode, Encode};
use crate::ids::ExecutionId;
use crate::worker::HostError;

/// Messages of a supervisor to a broker. Requests were checked against the effective policy.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToBroker {
    Call {
        /// Echoed in the reply.
        call: u64,
        /// Transactions that an earlier execution left open are rolled back first.
        execution: ExecutionId,
        request: BrokerCall,
    },
    /// The execution has ended: its open transactions are rolled back. Has no reply.
    ExecutionEnded,
    Shutdown,
}

/// Messages of a broker to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromBroker {
    /// The jail is up.
    Ready,
    /// The jail could not be built.
    Failed {
        /// The failed step, the reason, and what to do.
        message: String,
    },
    /// The reply to a call.
    Reply { call: u64, reply: Result<BrokerReply, HostError> },
}

/// An allowed request.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum BrokerCall {
    Fs {
        request: FsRequest,
        terms: FsTerms,
    },
    /// SQL.
    Database {
        request: DatabaseRequest,
        terms: DatabaseTerms,
    },
    /// A command.
    Exec {
        request: ExecRequest,
        terms: ExecTerms,
    },
}

/// The reply to an allowed request.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum BrokerReply {
    /// To [`BrokerCall::Fs`].
    Fs(FsReply),
    /// To [`BrokerCall::Database`].
    Database(DatabaseReply),
    /// To [`BrokerCall::Exec`].
    Exec(ExecReply),
}
