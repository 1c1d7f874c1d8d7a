//! `ops shutdown`: returns when the process of the daemon has exited, so that the next one can start.

use crate::context::Context;
use crate::error::{CliError, exit};
use clap::Args as ClapArgs;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd as _;
use vm_system_protocol::control::{RuntimeInfoGet, Shutdown};
use vm_system_sandbox::pidfd::PidFd;

#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Return when the daemon has begun to stop
    #[arg(long)]
    no_wait: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let process = if args.no_wait { None } else { process(context).await? };
    context.call(Shutdown).await?;
    let (status, line) = match process {
        Some(process) => {
            let wait = tokio::task::spawn_blocking(move || {
                // Readable when it has exited.
                poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE)
            });
            let waited = wait.await.unwrap_or(Err(nix::errno::Errno::EINTR));
            waited.map_err(|errno| {
                CliError::internal(format!("cannot wait for the daemon: {}", errno.desc()))
            })?;
            ("stopped", "The daemon has stopped.")
        }
        None => ("ok", "The daemon is stopping."),
    };
    let result = serde_json::json!({ "status": status });
    context.out.done(&result, line, status)?;
    Ok(exit::OK)
}

/// The process of the daemon. None behind a URL, in another pid namespace, and where the service manager listens: that starts the next
/// daemon itself.
async fn process(context: &Context) -> Result<Option<PidFd>, CliError> {
    let runtime = context.call(RuntimeInfoGet).await?;
    if context.listener().await != Some(runtime.pid) {
        return Ok(None);
    }
    Ok(PidFd::open(runtime.pid).ok())
}
