//! The standby of the spawn helper: a fork of it that has started nothing, and takes its place when it is killed. The supervisor
//! cannot start another helper, because it has no rights of root any more; this one has them already, and the same rules.
//!
//! ```text
//!  helper ──fork──▶ standby        both hold the channel; only the helper reads it
//!    │ (killed)        │
//!    ╳                 ├──fork──▶ standby
//!                      ▼
//!                   helper ──▶ Ready
//! ```
//!
//! A standby that is killed is replaced by the helper. If both are killed at once, the channel ends, and the daemon reports it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use vm_system_protocol::limits::FILES_AGENT_START_MS;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process::{self, Fork};
use vm_system_sandbox::socket::PollSet;

/// An order that was not read for so long: the helper is slow, or stopped by a signal.
const UNREAD: Duration = Duration::from_millis(2 * FILES_AGENT_START_MS);
/// A killed process has ended by then.
const KILLED: Duration = Duration::from_secs(1);

/// Forks a standby of this process. It returns in the standby, too, with `None`, when that takes the place of this process.
pub(super) fn fork(channel: &OwnedFd) -> io::Result<Option<PidFd>> {
    let helper = PidFd::open(std::process::id())?;
    match process::fork()? {
        Fork::Parent(pid) => PidFd::open(pid).map(Some),
        Fork::Child => {
            if wait_for_end(&helper, channel).is_err() {
                process::exit_now(1);
            }
            Ok(None)
        }
    }
}

/// Waits for the end of the helper. A helper that is stopped by a signal is continued when an order waits for it: it has the agents.
fn wait_for_end(helper: &PidFd, channel: &OwnedFd) -> io::Result<()> {
    let mut polled = PollSet::with_capacity(2);
    loop {
        polled.clear();
        let ended = polled.add(helper);
        polled.add(channel);
        polled.wait(None)?;
        if polled.is_ready(ended) {
            return Ok(());
        }
        // The helper reads it, or has its reasons: this process looks again only after a while.
        polled.clear();
        polled.add(helper);
        if polled.wait(Some(UNREAD))? {
            return Ok(());
        }
        polled.clear();
        polled.add(channel);
        if polled.wait(Some(Duration::ZERO))? && is_stopped(helper) {
            let _ = helper.signal(libc::SIGCONT);
        }
    }
}

/// Whether a signal has stopped it; a process that a debugger has stopped is left alone.
fn is_stopped(process: &PidFd) -> bool {
    let Ok(pid) = process.pid() else { return false };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Kills a standby and waits for its end: after the end of its helper it would take its place.
pub(super) fn end(standby: &PidFd) {
    let _ = standby.kill();
    let mut polled = PollSet::with_capacity(1);
    polled.add(standby);
    let _ = polled.wait(Some(KILLED));
}
