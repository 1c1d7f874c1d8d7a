//! Registers descriptors with the runtime's reactor. Knows no protocol.
//!
//! Reading order: [`sys`] (registering), [`stream`] (a byte stream that is watched for reading only).

mod stream;
mod sys;

pub use stream::{StreamReader, StreamWriter, hung_up, split};
pub(crate) use sys::{WatchedFd, watch};

use std::io;
use tokio::io::Interest;
use vm_system_sandbox::pidfd::PidFd;

/// Resolves when the process has exited.
pub(crate) async fn exit_of(process: &PidFd) -> io::Result<()> {
    let process = watch(process.try_clone()?.into(), Interest::READABLE)?;
    process.readable().await.map(|_| ())
}
