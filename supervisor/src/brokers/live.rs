//! One broker process with its channel: start, walls seen from outside, exchange of one call, end. Whoever holds a `Live` must
//! end it: dropping it closes the channel, at which the process ends by itself, but nobody reaps it.

use super::BrokerConfig;
use super::channel::{Channel, ChannelError};
use crate::spawn::broker::BrokerProcess;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use tokio::net::UnixStream;
use tokio::time::timeout;
use vm_system_protocol::broker::{FromBroker, FsReply, FsRequest, ToBroker};
use vm_system_protocol::limits::{FS_DIR_ENTRIES, FS_READ_BYTES};
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::process::Ending;

/// Why a broker is of no use. Always the end of that process.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokerFailure {
    /// The process could not be started.
    #[error("it could not be started: {0}")]
    Start(#[from] io::Error),
    /// It could not put up its walls; says which.
    #[error("it could not be jailed: {0}")]
    NotJailed(String),
    /// Its channel.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// It answered something that was not asked.
    #[error("it broke the protocol: {0}")]
    Violation(&'static str),
    /// It did not answer in time.
    #[error("it did not answer within {0} ms")]
    Late(u128),
}

/// A broker behind its walls.
#[derive(Debug)]
pub(super) struct Live {
    process: BrokerProcess,
    channel: Channel,
    calls: u64,
}

impl Live {
    /// Starts a process; it is of no use before [`Live::ready`].
    pub(super) fn start(config: &BrokerConfig, worktree: BorrowedFd<'_>) -> Result<Self, BrokerFailure> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let channel = Channel::new(UnixStream::from_std(ours)?);
        let process = BrokerProcess::start(&config.program, theirs.as_fd(), worktree)?;
        Ok(Self { process, channel, calls: 0 })
    }

    /// Waits until it says that it is jailed, which is then checked from outside.
    pub(super) async fn ready(&mut self, config: &BrokerConfig) -> Result<(), BrokerFailure> {
        match timeout(config.start_deadline, self.channel.receive()).await {
            Ok(Ok(FromBroker::Ready)) => match self.process.missing_wall() {
                None => Ok(()),
                Some(wall) => Err(BrokerFailure::NotJailed(format!("{wall} is not in force"))),
            },
            Ok(Ok(FromBroker::Failed { message })) => Err(BrokerFailure::NotJailed(message)),
            Ok(Ok(FromBroker::Reply { .. })) => Err(BrokerFailure::Violation("an answer before a call")),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(BrokerFailure::Late(config.start_deadline.as_millis())),
        }
    }

    /// One call and its answer; the answer must be of the kind that was asked for and within the caps.
    pub(super) async fn exchange(
        &mut self,
        config: &BrokerConfig,
        request: FsRequest,
    ) -> Result<Result<FsReply, HostError>, BrokerFailure> {
        self.calls += 1;
        let call = self.calls;
        let fits = expectation(&request);
        let exchange = async {
            self.channel.send(&ToBroker::Call { call, request }).await?;
            self.channel.receive().await
        };
        let answer = timeout(config.call_deadline, exchange)
            .await
            .map_err(|_| BrokerFailure::Late(config.call_deadline.as_millis()))??;
        match answer {
            FromBroker::Reply { call: answered, reply } if answered == call => match reply {
                Ok(reply) if !fits(&reply) => Err(BrokerFailure::Violation("an answer of another kind")),
                reply => Ok(reply),
            },
            FromBroker::Reply { .. } => Err(BrokerFailure::Violation("an answer to another call")),
            FromBroker::Ready | FromBroker::Failed { .. } => Err(BrokerFailure::Violation("no answer")),
        }
    }

    /// Waits until the process ends by itself and reaps it; cancel safe before that.
    pub(super) async fn ended(&mut self) -> io::Result<Ending> {
        self.process.ended().await
    }

    /// The process's pid.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Kills the process and reaps it.
    pub(super) async fn end(mut self) {
        let pid = self.pid();
        if let Err(error) = self.process.kill() {
            tracing::warn!(pid, %error, "broker could not be killed");
        }
        if let Err(error) = self.process.ended().await {
            tracing::warn!(pid, %error, "broker could not be reaped");
        }
    }
}

/// What an answer to this request must look like.
fn expectation(request: &FsRequest) -> fn(&FsReply) -> bool {
    match request {
        FsRequest::ReadFile { .. } => {
            |reply| matches!(reply, FsReply::Bytes(bytes) if bytes.len() <= FS_READ_BYTES)
        }
        FsRequest::ReadDir { .. } => {
            |reply| matches!(reply, FsReply::Entries(entries) if entries.len() <= FS_DIR_ENTRIES)
        }
        FsRequest::Stat { .. } => |reply| matches!(reply, FsReply::Stat(_)),
        FsRequest::Exists { .. } => |reply| matches!(reply, FsReply::Bool(_)),
    }
}
