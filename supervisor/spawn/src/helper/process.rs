//! The process of the spawn helper: gives up what it does not need, then one record after the other. Single-threaded and blocking:
//! an order waits while the user database responds to the one before. Another process waits to take its place ([`super::standby`]). Keeps the capabilities KILL, SETGID and SETUID, and only where
//! the host refuses user namespaces to users `CAP_SYS_ADMIN`.

use super::MODE;
use super::record::{HelperRecord, RECORD_BYTES};
use super::rules::AgentRules;
use super::standby;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use vm_system_protocol::limits::FILES_AGENTS;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::namespaces::Ids;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::privileges;
use vm_system_sandbox::process::{self, ChildExits};
use vm_system_sandbox::seccomp::{self, table_helper, table_supervisor};
use vm_system_sandbox::socket::{self, PollSet, Wait};
use vm_system_sandbox::user_namespace;

/// The hidden mode of an agent.
const AGENT_MODE: &str = "files-agent";
/// The channel to the supervisor.
const CHANNEL: i32 = process::FIRST_FD;
/// Agents at a time: those of the supervisor, and as many that have been killed and have not ended yet.
const MOST: usize = 2 * FILES_AGENTS;

/// Runs the helper if the arguments (program name included) name its mode; to be called before anything else starts. `token_uids`
/// reads the users of the tokens in a file.
pub fn dispatch(
    mut arguments: impl Iterator<Item = OsString>,
    token_uids: fn(&Path) -> Vec<u32>,
) -> Option<ExitCode> {
    if arguments.nth(1)? != MODE {
        return None;
    }
    let Ok(channel) = process::inherited(CHANNEL) else {
        // Not started by a supervisor.
        return Some(ExitCode::from(2));
    };
    process::close_inherited();
    let Some(rules) = AgentRules::from_arguments(arguments) else { return Some(ExitCode::from(2)) };
    let mut helper = Helper { channel, rules, token_uids, agents: HashMap::new(), standby: None };
    match confine(helper.rules.makes_namespaces.is_some()) {
        Ok(exits) => helper.run(&exits),
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(libc::EPERM);
            helper.send(HelperRecord::Refused { agent: 0, errno }, None);
            process::exit_now(1)
        }
    }
}

fn confine(makes_namespaces: bool) -> io::Result<ChildExits> {
    process::settle()?;
    nix::unistd::chdir("/")?;
    privileges::keep_those_of_a_starter(makes_namespaces)?;
    seccomp::install_refusals(table_supervisor::TABLE)?;
    seccomp::install_refusals(table_helper::TABLE)?;
    ChildExits::watch()
}

struct Helper {
    channel: OwnedFd,
    rules: AgentRules,
    token_uids: fn(&Path) -> Vec<u32>,
    /// Agents that have not been reaped: number and pid.
    agents: HashMap<u64, u32>,
    standby: Option<PidFd>,
}

impl Helper {
    fn run(&mut self, exits: &ChildExits) -> ! {
        self.announce();
        let mut polled = PollSet::with_capacity(3);
        loop {
            if self.standby.is_none() {
                self.fork_standby();
            }
            polled.clear();
            let (channel, exited) = (polled.add(&self.channel), polled.add(exits));
            let standby = self.standby.as_ref().map(|standby| polled.add(standby));
            if polled.wait(None).is_err() {
                self.end(1);
            }
            if standby.is_some_and(|standby| polled.is_ready(standby)) {
                self.standby = None;
            }
            if polled.is_ready(exited) {
                exits.drain();
                self.reap();
            }
            if polled.is_ready(channel) {
                self.receive();
            }
        }
    }

    /// Sends the supervisor the pidfd of this process, which is its helper now.
    fn announce(&self) {
        match PidFd::open(std::process::id()) {
            Ok(own) => self.send(HelperRecord::Ready, Some(own.as_fd())),
            Err(_) => self.end(1),
        }
    }

    /// Without a standby the helper works all the same; the next record is another attempt.
    fn fork_standby(&mut self) {
        let mut forked = standby::fork(&self.channel);
        // This process was the standby of a helper that has ended, and is the helper now. Each later standby comes here, too.
        while let Ok(None) = forked {
            // The kernel has killed the agents of the helper before it.
            self.agents.clear();
            self.announce();
            forked = standby::fork(&self.channel);
        }
        self.standby = forked.ok().flatten();
    }

    fn receive(&mut self) {
        // One more byte than a record: a longer packet is noticed.
        let mut buffer = [0; RECORD_BYTES + 1];
        let packet = match socket::receive(&self.channel, &mut buffer, Wait::No) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Ok(packet) if packet.len > 0 && !packet.truncated && packet.fds.len() <= 1 => packet,
            // The supervisor has exited, or is none.
            Ok(_) | Err(_) => self.end(0),
        };
        let channel = packet.fds.into_iter().next();
        match (HelperRecord::from_bytes(&buffer[..packet.len]), channel) {
            (Some(HelperRecord::StartAgent { agent, uid }), Some(channel)) => {
                match self.start(agent, uid, &channel) {
                    Ok(pidfd) => self.send(HelperRecord::Started { agent }, Some(pidfd.as_fd())),
                    Err(errno) => self.send(HelperRecord::Refused { agent, errno: errno as i32 }, None),
                }
            }
            (Some(HelperRecord::MakeNamespace { agent }), None) => match self.make_namespace() {
                Ok(namespace) => self.send(HelperRecord::Made { agent }, Some(namespace.as_fd())),
                Err(errno) => self.send(HelperRecord::Refused { agent, errno: errno as i32 }, None),
            },
            (Some(HelperRecord::Kill { agent }), None) => {
                if let Some(pid) = self.agents.get(&agent) {
                    end_process(*pid);
                }
            }
            _ => self.end(1),
        }
    }

    fn start(&mut self, agent: u64, uid: u32, channel: &OwnedFd) -> Result<PidFd, Errno> {
        if self.agents.contains_key(&agent) {
            return Err(Errno::EEXIST);
        }
        if self.agents.len() >= MOST {
            return Err(Errno::EAGAIN);
        }
        let errno = |error: &io::Error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        let user = Identity::of_user(uid).map_err(|error| errno(&error))?.ok_or(Errno::ENOENT)?;
        let of_token = || {
            let tokens = self.rules.tokens.as_deref();
            tokens.is_some_and(|path| (self.token_uids)(path).contains(&uid))
        };
        // The user database decides about the number: an entry that leads to another one is refused.
        if user.ids.uid != uid || !self.rules.allow(&user, of_token) {
            return Err(Errno::EPERM);
        }
        // For its commands. Without it the kernel refuses them, and says so.
        let namespace = if self.rules.makes_namespaces.is_some() && uid != 0 {
            user_namespace::make_for(user.ids).ok()
        } else {
            None
        };
        let user = OsString::from(format!("user={user}"));
        let arguments = [OsStr::new(AGENT_MODE), &user];
        let fds: Vec<BorrowedFd<'_>> =
            std::iter::once(channel).chain(&namespace).map(|fd| fd.as_fd()).collect();
        let pid =
            process::spawn(Path::new(process::SELF), &arguments, &fds).map_err(|error| errno(&error))?;
        // First: an agent that exits at once is then reported as ended, and not lost.
        self.agents.insert(agent, pid);
        // The child is the helper's own and not reaped yet, so its pid names no other process.
        PidFd::open(pid).map_err(|error| {
            end_process(pid);
            errno(&error)
        })
    }

    /// For a jail of the service user.
    fn make_namespace(&self) -> Result<OwnedFd, Errno> {
        let gid = self.rules.makes_namespaces.ok_or(Errno::EPERM)?;
        let made = user_namespace::make_for(Ids { uid: self.rules.service_uid, gid });
        made.map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
    }

    fn reap(&mut self) {
        while let Some(child) = process::reap() {
            let agent = self.agents.iter().find(|(_, pid)| **pid == child.pid).map(|(agent, _)| *agent);
            if let Some(agent) = agent {
                self.agents.remove(&agent);
                self.send(HelperRecord::Ended { agent, status: child.wait_status }, None);
            }
        }
    }

    fn send(&self, record: HelperRecord, pidfd: Option<BorrowedFd<'_>>) {
        if socket::send(&self.channel, &[&record.to_bytes()], pidfd.as_slice(), Wait::Yes).is_err() {
            self.end(0);
        }
    }

    /// Also agents that are stopped, and cannot notice that their supervisor has exited.
    fn end(&self, code: i32) -> ! {
        for pid in self.agents.values() {
            end_process(*pid);
        }
        if let Some(standby) = &self.standby {
            standby::end(standby);
        }
        process::exit_now(code)
    }
}

/// SIGKILL for a child that was not reaped: its pid means no other process.
fn end_process(pid: u32) {
    let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
}
