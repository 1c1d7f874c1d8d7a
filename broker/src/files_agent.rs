//! The files agent: a process of one user, which walks, opens and reads worktrees with this user's rights, and starts the file
//! brokers and command processes for them.
//!
//! Every thread of it receives one order after the other and carries it out. One more thread than are busy waits for an order, up to
//! [`FILES_AGENT_CALLS`], so that a file system that does not respond delays only the calls that use it. The main thread reaps the
//! processes. No thread ends before the process: the kernel would kill the brokers that it has started.
//!
//! Decides nothing and keeps nothing of other users: whoever controls this process has the rights of its user and no others. Exits
//! when its channel is closed.
//!
//! - [`calls`]: orders and their replies

mod calls;

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vm_system_protocol::codec;
use vm_system_protocol::files_agent::{FromFilesAgent, ToFilesAgent};
use vm_system_protocol::limits::{
    FILES_AGENT_CALLS, FILES_AGENT_ORDER_BYTES, FILES_AGENT_REPLY_BYTES, FILES_AGENT_START_MS,
};
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::namespaces::become_untraced;
use vm_system_sandbox::process::{self, ChildExits};
use vm_system_sandbox::socket::{self, PollSet, ReceivedPacket, Wait};
use vm_system_sandbox::step::{AtStep as _, JailStep, StepError};
use vm_system_sandbox::{privileges, rlimit};

/// First argument of the hidden mode.
pub(crate) const MODE: &str = "files-agent";
/// The channel to the supervisor.
const CHANNEL: i32 = process::FIRST_FD;

/// Argument of an agent that a service manager starts as its user: the descriptor is a listening socket. The mode of that socket
/// decides who connects.
const LISTEN: &str = "listen";

/// Runs the agent to its end. `arguments`: the user to become (`user=UID:GID:GROUPS`), or [`LISTEN`].
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Ok((channel, user, user_namespace)) = inherited(arguments) else {
        // Not started by a supervisor: there is no channel.
        return ExitCode::from(2);
    };
    let agent = Arc::new(FilesAgentProcess {
        channel,
        has_own_mounts: user.is_none(),
        user_namespace,
        worktrees: Mutex::default(),
        processes: Mutex::default(),
        waiting: AtomicUsize::new(0),
        threads: AtomicUsize::new(0),
    });
    match confine(user).and_then(|()| ChildExits::watch().at_step(JailStep::Signals)) {
        Ok(exits) => agent.run(&exits),
        Err(failure) => {
            agent.send(&FromFilesAgent::NotReady { message: failure.to_string() });
            process::exit_now(1)
        }
    }
}

/// The channel; the user to become (`None`: the process has this user already); the user namespace of its commands.
fn inherited(
    arguments: impl Iterator<Item = OsString>,
) -> io::Result<(OwnedFd, Option<Identity>, Option<OwnedFd>)> {
    let arguments: Vec<OsString> = arguments.collect();
    let (channel, user_namespace) = (process::inherited(CHANNEL)?, process::inherited(CHANNEL + 1).ok());
    process::close_inherited();
    if arguments.iter().any(|argument| argument == LISTEN) {
        // Started because a supervisor connects, or again after an agent that failed: then there may be nobody.
        let mut polled = PollSet::with_capacity(1);
        polled.add(&channel);
        if !polled.wait(Some(Duration::from_millis(FILES_AGENT_START_MS)))? {
            process::exit_now(0);
        }
        return Ok((socket::accept(&channel)?, None, None));
    }
    let user = crate::role::user_argument(&mut arguments.into_iter())?.ok_or(io::ErrorKind::InvalidInput)?;
    Ok((channel, Some(user), user_namespace))
}

/// Takes on the user's identity for good, without any capability.
fn confine(user: Option<Identity>) -> Result<(), StepError> {
    process::settle().at_step(JailStep::Signals)?;
    let is_child = user.is_some();
    let uid = user.as_ref().map_or_else(|| nix::unistd::getuid().as_raw(), |user| user.ids.uid);
    if uid == 0 && !is_child {
        // A service manager was given no user.
        return Err(Errno::EPERM).at_step(JailStep::ServiceUser);
    }
    // No other process of the user can trace this one.
    become_untraced(user)?;
    if nix::unistd::getresuid().is_ok_and(|ids| [ids.real, ids.effective, ids.saved] != [uid.into(); 3]) {
        return Err(Errno::EPERM).at_step(JailStep::ServiceUser);
    }
    rlimit::files_agent().at_step(JailStep::Rlimits)?;
    privileges::drop_all().at_step(JailStep::Privileges)?;
    if is_child {
        // Last: a change of credentials clears it. A stopped agent does not notice that its channel is closed.
        set_pdeathsig(Signal::SIGKILL).at_step(JailStep::Signals)?;
    }
    Ok(())
}

/// An open worktree.
#[derive(Debug)]
struct OpenWorktree {
    folder: OwnedFd,
    cross_mounts: bool,
}

/// The state of the process.
#[derive(Debug)]
struct FilesAgentProcess {
    channel: OwnedFd,
    /// Started by a service manager: the supervisor may see other mounts than this process.
    has_own_mounts: bool,
    /// Where the host refuses user namespaces to users: one that was made for this user, for all of its commands.
    user_namespace: Option<OwnedFd>,
    /// By the number of the call that opened each.
    worktrees: Mutex<HashMap<u64, Arc<OpenWorktree>>>,
    /// Started processes that have not been reaped: pid, and the number of the call that started each.
    processes: Mutex<HashMap<u32, u64>>,
    /// Threads that wait for an order.
    waiting: AtomicUsize,
    threads: AtomicUsize,
}

impl FilesAgentProcess {
    fn run(self: &Arc<Self>, exits: &ChildExits) -> ! {
        self.send(&FromFilesAgent::Ready);
        if !self.add_thread() {
            process::exit_now(1);
        }
        let mut polled = PollSet::with_capacity(1);
        loop {
            polled.clear();
            polled.add(exits);
            if polled.wait(None).is_err() {
                process::exit_now(1);
            }
            exits.drain();
            self.reap();
        }
    }

    /// Starts a thread that waits for orders; `false`: there are as many as there may be.
    fn add_thread(self: &Arc<Self>) -> bool {
        if self.threads.fetch_add(1, Ordering::SeqCst) >= FILES_AGENT_CALLS {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            return false;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let agent = Arc::clone(self);
        let started = std::thread::Builder::new().name("files".to_owned()).spawn(move || agent.receive());
        if started.is_err() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.threads.fetch_sub(1, Ordering::SeqCst);
        }
        started.is_ok()
    }

    /// One thread: orders until the channel is closed.
    fn receive(self: &Arc<Self>) -> ! {
        let mut buffer = vec![0; FILES_AGENT_ORDER_BYTES];
        loop {
            let (len, descriptor) = match socket::receive(&self.channel, &mut buffer, Wait::Yes) {
                Ok(ReceivedPacket { len: len @ 1.., truncated: false, mut fds, .. }) => (len, fds.pop()),
                Ok(_) | Err(_) => process::exit_now(0),
            };
            let Ok(order) = codec::decode::<ToFilesAgent>(&buffer[..len]) else { process::exit_now(1) };
            // Another thread must wait for orders while this one works.
            let is_last = self.waiting.fetch_sub(1, Ordering::SeqCst) == 1;
            let may_wait = !is_last || self.add_thread();
            self.handle(order, descriptor, may_wait);
            self.waiting.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn send(&self, message: &FromFilesAgent) {
        let sent = codec::encode(message, FILES_AGENT_REPLY_BYTES)
            .map_err(io::Error::other)
            .and_then(|bytes| socket::send(&self.channel, &[&bytes], &[], Wait::Yes));
        if sent.is_err() {
            // The supervisor has closed the channel.
            process::exit_now(0);
        }
    }

    fn reap(&self) {
        let mut processes = lock(&self.processes);
        while let Some(child) = process::reap() {
            if let Some(process) = processes.remove(&child.pid) {
                self.send(&FromFilesAgent::Ended { process, wait_status: child.wait_status });
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while holding one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
