//! Since which protocol version a message exists. A supervisor adopts keepers and workers of the build before it: what they do not
//! know is never sent to them, and what they send is decoded, because enums only grow at their end and structs never change.
//!
//! A new variant gets the next version in its row here (without a row it does not compile) and as the new
//! [`PROTOCOL`](crate::hello::PROTOCOL). Rows of a version that no build speaks any more become [`FIRST`].
//!
//! Zygotes and workers of durable programs are not adopted: what only they receive needs no rows.

use crate::broker::{DatabaseReply, FileKind, FsReply, SqlValue};
use crate::durable::TaskAnswer;
use crate::egress::{HttpProgress, HttpReply};
use crate::hello::SUPPORTED;
use crate::keeper::ToKeeper;
use crate::model::ExecutionKind;
use crate::worker::{HostReply, SourceFormat, StdinReply, ToWorker};

/// The oldest version that this build speaks.
pub const FIRST: u32 = *SUPPORTED.start();

/// A message, or a part of one.
pub trait Since {
    /// The version since which a peer can decode this value.
    fn since(&self) -> u32;
}

/// A peer cannot decode a message: it was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message exists since protocol version {since}, and the other process speaks version {spoken}")]
pub struct NotSpoken {
    pub since: u32,
    /// By the peer.
    pub spoken: u32,
}

/// Refuses a message that a peer of this version cannot decode.
pub fn check(message: &impl Since, spoken: u32) -> Result<(), NotSpoken> {
    let since = message.since();
    if since <= spoken { Ok(()) } else { Err(NotSpoken { since, spoken }) }
}

impl Since for ToKeeper {
    fn since(&self) -> u32 {
        match self {
            Self::Token { .. }
            | Self::Keep { .. }
            | Self::Forget { .. }
            | Self::KeepZygote { .. }
            | Self::List
            | Self::Shutdown
            | Self::Begin { .. } => FIRST,
        }
    }
}

impl Since for ToWorker {
    fn since(&self) -> u32 {
        match self {
            Self::Execute(execute) => execute.kind.since().max(execute.format.since()),
            Self::HostReply { reply, .. } => reply.since(),
            Self::Start(_)
            | Self::Ack { .. }
            | Self::Adopt { .. }
            | Self::Shutdown
            | Self::Durable(_)
            | Self::Fork { .. } => FIRST,
            #[cfg(feature = "next-protocol")]
            Self::Announce { .. } => crate::hello::PROTOCOL,
        }
    }
}

impl Since for ExecutionKind {
    fn since(&self) -> u32 {
        match self {
            Self::Repl | Self::RunFile | Self::Startup | Self::Program => FIRST,
        }
    }
}

impl Since for SourceFormat {
    fn since(&self) -> u32 {
        match self {
            Self::Script
            | Self::Module
            | Self::CommonJs
            | Self::Json
            | Self::TypeScript
            | Self::TypeScriptModule => FIRST,
        }
    }
}

impl Since for HostReply {
    fn since(&self) -> u32 {
        match self {
            Self::Module { format, .. } => format.since(),
            Self::Fs(reply) => reply.since(),
            Self::Database(reply) => reply.since(),
            Self::Http(reply) => reply.since(),
            Self::Answer(answer) => answer.since(),
            Self::Stdin(reply) => reply.since(),
            Self::Failed(_) | Self::Exec(_) => FIRST,
            Self::Compiled { format, .. } => format.since().max(7),
        }
    }
}

impl Since for FsReply {
    fn since(&self) -> u32 {
        match self {
            Self::Entries(entries) => newest(entries.iter().map(|entry| entry.kind.since())),
            Self::Stat(stat) => stat.kind.since(),
            Self::Bytes(_) | Self::Bool(_) | Self::Done | Self::Path(_) | Self::Written(_) => FIRST,
        }
    }
}

impl Since for FileKind {
    fn since(&self) -> u32 {
        match self {
            Self::File | Self::Directory | Self::Symlink | Self::Other => FIRST,
        }
    }
}

impl Since for DatabaseReply {
    fn since(&self) -> u32 {
        match self {
            Self::Rows { values, .. } => newest(values.iter().map(Since::since)),
            Self::Done | Self::Changed { .. } => FIRST,
        }
    }
}

impl Since for SqlValue {
    fn since(&self) -> u32 {
        match self {
            Self::Null | Self::Integer(_) | Self::Real(_) | Self::Text(_) | Self::Blob(_) => FIRST,
        }
    }
}

impl Since for HttpReply {
    fn since(&self) -> u32 {
        match self {
            Self::Progress(progress) => newest(progress.iter().map(|exchange| exchange.progress.since())),
            Self::Done => FIRST,
        }
    }
}

impl Since for HttpProgress {
    fn since(&self) -> u32 {
        match self {
            Self::Sent | Self::Head { .. } | Self::Data(_) | Self::End | Self::Failed(_) => FIRST,
        }
    }
}

impl Since for TaskAnswer {
    fn since(&self) -> u32 {
        match self {
            Self::Text(_) | Self::Json(_) | Self::Failed(_) | Self::Expired(_) | Self::Wrong(_) => FIRST,
        }
    }
}

impl Since for StdinReply {
    fn since(&self) -> u32 {
        match self {
            Self::Data(_) | Self::End | Self::NotYet => FIRST,
        }
    }
}

fn newest(parts: impl Iterator<Item = u32>) -> u32 {
    parts.max().unwrap_or(FIRST)
}

#[cfg(test)]
mod tests {
    use super::{FIRST, NotSpoken, check};
    use crate::hello::{Hello, PROTOCOL, SUPPORTED, UnsupportedProtocol};
    use crate::worker::ToWorker;

    #[test]
    fn a_peer_that_does_not_know_a_message_does_not_get_it() {
        for spoken in SUPPORTED {
            assert_eq!(check(&ToWorker::Shutdown, spoken), Ok(()));
        }
        let older = FIRST - 1;
        assert_eq!(check(&ToWorker::Shutdown, older), Err(NotSpoken { since: FIRST, spoken: older }));
    }

    #[test]
    fn two_versions_are_spoken_and_others_are_refused_by_name() {
        let version = |protocol| Hello { protocol, ..Hello::ours() }.supported();
        assert_eq!((version(PROTOCOL), version(PROTOCOL - 1)), (Ok(PROTOCOL), Ok(PROTOCOL - 1)));
        let older = version(PROTOCOL - 2).expect_err("too old");
        let newer = version(PROTOCOL + 1).expect_err("too new");
        assert_eq!((older.is_newer(), newer.is_newer()), (false, true));
        assert_eq!(
            UnsupportedProtocol(PROTOCOL + 1).to_string(),
            format!(
                "it speaks protocol version {}, and this build speaks {} to {PROTOCOL}",
                PROTOCOL + 1,
                PROTOCOL - 1
            )
        );
    }
}
