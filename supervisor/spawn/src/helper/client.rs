//! The supervisor's side of the spawn helper: starts it, orders agents, and passes their ends on. A task reads and writes the records;
//! it begins with the first order, so that the helper can be started before there is a runtime.

use super::MODE;
use super::record::{HelperRecord, RECORD_BYTES};
use super::rules::AgentRules;
use crate::packets;
use crate::reactor::{WatchedFd, exit_of};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::Interest;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use vm_system_protocol::limits::{FILES_AGENT_START_MS, FILES_AGENTS};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process::{self, ExitStatus};
use vm_system_sandbox::socket::{self, PollSet, Wait};

/// A record may wait this long until the helper, which looks up users, reads it. After that the helper counts as lost.
const SEND_DEADLINE: Duration = Duration::from_mins(2);

/// Orders that wait for the helper, and places that are kept: the order that starts an agent reserves the one of its end, so that an agent
/// can always be ended. Jails, of which each needs one namespace, are started one by one for each owner.
const ORDERS: usize = 2 * FILES_AGENTS + 1_024;

/// The spawn helper of this process; cheap to clone. The helper exits with the last clone, and with this process.
#[derive(Debug, Clone)]
pub struct SpawnHelper(Arc<Client>);

#[derive(Debug)]
struct Client {
    /// The process that was started; another one may have taken its place.
    started: u32,
    makes_namespaces: bool,
    orders: mpsc::Sender<Order>,
    /// Taken by the task.
    begin: Mutex<Option<(OwnedFd, mpsc::Receiver<Order>)>>,
    agents: Arc<Mutex<Agents>>,
}

#[derive(Debug)]
struct Order {
    record: HelperRecord,
    channel: Option<OwnedFd>,
}

/// A place in the queue of orders.
type Place = mpsc::OwnedPermit<Order>;

/// The agent's process, and its wait status when it has ended.
type StartReply = io::Result<(PidFd, oneshot::Receiver<ExitStatus>)>;

#[derive(Debug, Default)]
struct Agents {
    last: u64,
    starting: HashMap<u64, oneshot::Sender<StartReply>>,
    running: HashMap<u64, oneshot::Sender<ExitStatus>>,
    /// User namespaces that are being made.
    making: HashMap<u64, oneshot::Sender<io::Result<OwnedFd>>>,
    /// The helper and its standby have exited: they cannot be started again by a supervisor without their rights.
    lost: bool,
    /// The process that took the place of the one that was started.
    successor: Option<(u32, PidFd)>,
    /// It did not reply to a request in time, and has sent nothing since.
    silent: bool,
}

/// Why the helper starts nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperProblem {
    Exited,
    /// It may respond again, such as after a stop by a signal or a slow user database.
    Silent,
}

impl HelperProblem {
    /// The predicate of a sentence about the helper.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "has exited",
            Self::Silent => "does not respond",
        }
    }

    /// The remedy that an operator has.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Exited => {
                "it and its standby were killed: restart the daemon, which keeps live sessions under --keep-sessions; its log has the time"
            }
            Self::Silent => {
                "it may wait for the user database, or be stopped (its standby continues it after 10 s); if this lasts, restart the daemon"
            }
        }
    }
}

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the spawn helper has exited; restart the daemon")
}

/// The error of a request that a killed helper may not have carried out. Its standby is the helper now: another attempt can succeed.
fn replaced() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the spawn helper was killed and replaced; try again")
}

/// Whether the helper was replaced during a request.
pub(crate) fn is_replaced(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionReset
}

fn lock(agents: &Mutex<Agents>) -> MutexGuard<'_, Agents> {
    // No code panics while holding it.
    agents.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SpawnHelper {
    /// Starts `program spawn-helper` and waits until it is ready. For root; blocks; needs no runtime.
    pub fn start(program: &Path, rules: &AgentRules) -> io::Result<Self> {
        let (ours, theirs) = socket::pair()?;
        let arguments = rules.to_arguments();
        let arguments: Vec<&OsStr> =
            std::iter::once(OsStr::new(MODE)).chain(arguments.iter().map(OsString::as_os_str)).collect();
        let pid = process::spawn(program, &arguments, &[theirs.as_fd()])?;
        drop(theirs);
        if let Err(error) = await_ready(&ours) {
            // It exits when its channel is closed.
            drop(ours);
            let _ = process::wait_for(pid);
            return Err(error);
        }
        Ok(Self::new(pid, ours, rules.makes_namespaces.is_some()))
    }

    /// The client of a helper that is ready.
    fn new(pid: u32, socket: OwnedFd, makes_namespaces: bool) -> Self {
        let (orders, received) = mpsc::channel(ORDERS);
        let begin = Mutex::new(Some((socket, received)));
        let agents = Arc::default();
        Self(Arc::new(Client { started: pid, makes_namespaces, orders, begin, agents }))
    }

    /// The process that is the helper now.
    pub fn pid(&self) -> u32 {
        lock(&self.0.agents).successor.as_ref().map_or(self.0.started, |(pid, _)| *pid)
    }

    /// Why it starts no agents, as far as the last request has shown.
    pub fn problem(&self) -> Option<HelperProblem> {
        let agents = lock(&self.0.agents);
        match *agents {
            Agents { lost: true, .. } => Some(HelperProblem::Exited),
            Agents { silent: true, .. } => Some(HelperProblem::Silent),
            _ => None,
        }
    }

    /// After a request without a reply. Health reports it until the helper sends something.
    fn silent(&self, forget: impl FnOnce(&mut Agents)) -> io::Error {
        let is_first = {
            let mut agents = lock(&self.0.agents);
            forget(&mut agents);
            !std::mem::replace(&mut agents.silent, true)
        };
        if is_first {
            tracing::error!(
                pid = self.pid(),
                "the spawn helper does not respond: no files agent can be started"
            );
        }
        let why = format!(
            "the spawn helper (pid {}) did not respond within {FILES_AGENT_START_MS} ms; restart the daemon if this lasts",
            self.pid()
        );
        io::Error::new(io::ErrorKind::TimedOut, why)
    }

    /// Starts an agent with its end of the channel. `NotFound`: the user has no passwd entry; EPERM: the helper's rules do not allow the
    /// user. Blocks until the helper has replied; must be called on a thread of the runtime's blocking pool.
    pub fn start_agent(&self, uid: u32, channel: OwnedFd) -> io::Result<StartedAgent> {
        self.begin()?;
        let (start, kill) = (self.place()?, self.place()?);
        let (responder, reply) = oneshot::channel();
        let agent = self.next_agent(|agents, agent| agents.starting.insert(agent, responder))?;
        start.send(Order { record: HelperRecord::StartAgent { agent, uid }, channel: Some(channel) });
        let reply = timeout(Duration::from_millis(FILES_AGENT_START_MS), reply);
        let Ok(reply) = tokio::runtime::Handle::current().block_on(reply) else {
            let error = self.silent(|agents| drop(agents.starting.remove(&agent)));
            kill.send(Order { record: HelperRecord::Kill { agent }, channel: None });
            return Err(error);
        };
        let (pidfd, ended) = reply.map_err(|_| self.unanswered())??;
        let watched =
            pidfd.pid().and_then(|pid| Ok((pid, crate::reactor::watch(pidfd.into(), Interest::READABLE)?)));
        let (pid, exit) = match watched {
            Ok(watched) => watched,
            Err(error) => {
                kill.send(Order { record: HelperRecord::Kill { agent }, channel: None });
                return Err(error);
            }
        };
        Ok(StartedAgent { _helper: self.clone(), agent, pid, exit, ended, kill: Mutex::new(Some(kill)) })
    }

    /// Whether it makes user namespaces, and has the capability for it.
    pub fn makes_namespaces(&self) -> bool {
        self.0.makes_namespaces
    }

    /// Why a request has no reply and will have none.
    fn unanswered(&self) -> io::Error {
        if lock(&self.0.agents).lost { lost() } else { replaced() }
    }

    /// Makes a user namespace for a jail of this process's user.
    pub async fn make_user_namespace(&self) -> io::Result<OwnedFd> {
        match self.try_to_make_user_namespace().await {
            Err(error) if is_replaced(&error) => self.try_to_make_user_namespace().await,
            made => made,
        }
    }

    async fn try_to_make_user_namespace(&self) -> io::Result<OwnedFd> {
        self.begin()?;
        let order = self.place()?;
        let (responder, reply) = oneshot::channel();
        let agent = self.next_agent(|agents, agent| agents.making.insert(agent, responder))?;
        order.send(Order { record: HelperRecord::MakeNamespace { agent }, channel: None });
        let Ok(reply) = timeout(Duration::from_millis(FILES_AGENT_START_MS), reply).await else {
            return Err(self.silent(|agents| drop(agents.making.remove(&agent))));
        };
        reply.map_err(|_| self.unanswered())?
    }

    /// The number of the next request, after it was added to those that wait for a reply.
    fn next_agent<T>(&self, add: impl FnOnce(&mut Agents, u64) -> T) -> io::Result<u64> {
        let mut agents = lock(&self.0.agents);
        if agents.lost {
            return Err(lost());
        }
        agents.last += 1;
        let agent = agents.last;
        add(&mut agents, agent);
        Ok(agent)
    }

    /// Starts the task, once.
    fn begin(&self) -> io::Result<()> {
        let begin = self.0.begin.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((socket, orders)) = begin {
            let socket = packets::register(socket)?;
            tokio::spawn(run(
                socket,
                orders,
                self.0.started,
                Arc::clone(&self.0.agents),
                self.0.orders.downgrade(),
            ));
        }
        Ok(())
    }

    /// A place for one order. There is none if the helper has exited, or has read nothing for so long that as many wait as may.
    fn place(&self) -> io::Result<Place> {
        self.0.orders.clone().try_reserve_owned().map_err(|error| match error {
            mpsc::error::TrySendError::Closed(_) => lost(),
            mpsc::error::TrySendError::Full(_) => self.silent(|_| ()),
        })
    }
}

fn await_ready(socket: &OwnedFd) -> io::Result<()> {
    let mut polled = PollSet::with_capacity(1);
    polled.add(socket);
    if !polled.wait(Some(Duration::from_millis(FILES_AGENT_START_MS)))? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut buffer = [0; RECORD_BYTES];
    let packet = socket::receive(socket, &mut buffer, Wait::No)?;
    match HelperRecord::from_bytes(&buffer[..packet.len]) {
        Some(HelperRecord::Ready) => Ok(()),
        Some(HelperRecord::Refused { errno, .. }) => Err(io::Error::from_raw_os_error(errno)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The task: until the last clone is dropped, or the helper exits.
async fn run(
    socket: WatchedFd,
    orders: mpsc::Receiver<Order>,
    pid: u32,
    agents: Arc<Mutex<Agents>>,
    more: mpsc::WeakSender<Order>,
) {
    if relay((&socket, pid), orders, &agents, &more).await {
        tracing::error!(
            pid,
            "the spawn helper and its standby have exited: no files agent can be started until the daemon is restarted"
        );
    }
    let (dropped, successor) = {
        let mut agents = lock(&agents);
        agents.lost = true;
        (agents.forget_requests(), agents.successor.take())
    };
    // It exits when its channel is closed.
    drop((dropped, socket));
    let _ = tokio::task::spawn_blocking(move || process::wait_for(pid)).await;
    if let Some((_, successor)) = successor {
        let _ = timeout(Duration::from_millis(FILES_AGENT_START_MS), exit_of(&successor)).await;
    }
}

/// Requests that waited for a helper that is gone.
type Forgotten = (
    HashMap<u64, oneshot::Sender<StartReply>>,
    HashMap<u64, oneshot::Sender<ExitStatus>>,
    HashMap<u64, oneshot::Sender<io::Result<OwnedFd>>>,
);

impl Agents {
    /// To be dropped without the lock.
    fn forget_requests(&mut self) -> Forgotten {
        (
            std::mem::take(&mut self.starting),
            std::mem::take(&mut self.running),
            std::mem::take(&mut self.making),
        )
    }

    /// The standby has taken the place of a helper that was killed, and whose agents the kernel has killed with it.
    fn replace_helper(&mut self, successor: PidFd) -> Forgotten {
        let pid = successor.pid().unwrap_or(0);
        tracing::error!(
            pid,
            "the spawn helper was killed, and its files agents with it; its standby has taken its place"
        );
        self.successor = Some((pid, successor));
        self.forget_requests()
    }
}

/// Carries orders and records; whether the helper has exited, or does not read.
async fn relay(
    (socket, started): (&WatchedFd, u32),
    mut orders: mpsc::Receiver<Order>,
    agents: &Mutex<Agents>,
    more: &mpsc::WeakSender<Order>,
) -> bool {
    let sending = async {
        while let Some(Order { record, channel }) = orders.recv().await {
            let channel = channel.as_ref().map(|channel| channel.as_fd());
            let deadline = Instant::now() + SEND_DEADLINE;
            if packets::send(socket, &[&record.to_bytes()], channel.as_slice(), deadline).await.is_err() {
                return true;
            }
        }
        false
    };
    tokio::pin!(sending);
    loop {
        tokio::select! {
            failed = &mut sending => return failed,
            received = packets::receive(socket, |got, bytes| (HelperRecord::from_bytes(bytes), got.fds)) => {
                let Ok((Some(record), descriptors)) = received else { return true };
                if record == HelperRecord::Ready {
                    // The process that this one has started was killed, if it was not a later one.
                    tokio::task::spawn_blocking(move || process::wait_for(started));
                }
                if let Some(unwanted) = take(agents, record, descriptors)
                    && let Some(orders) = more.upgrade()
                {
                    // Full: the caller that has given up ordered it before, in the place that it had kept.
                    let _ = orders.try_send(Order { record: HelperRecord::Kill { agent: unwanted }, channel: None });
                }
            }
        }
    }
}

/// Takes a record of the helper; the number of an agent that nobody waits for any more.
fn take(agents: &Mutex<Agents>, record: HelperRecord, descriptors: Vec<OwnedFd>) -> Option<u64> {
    let mut agents = lock(agents);
    if std::mem::take(&mut agents.silent) {
        tracing::info!("the spawn helper responds again");
    }
    match record {
        HelperRecord::Ready => {
            let forgotten = descriptors.into_iter().next().map(|own| agents.replace_helper(own.into()));
            // Whoever waits for a reply looks at what is locked.
            drop(agents);
            drop(forgotten);
            None
        }
        HelperRecord::Started { agent } => {
            let Some(responder) = agents.starting.remove(&agent) else { return Some(agent) };
            let pidfd = descriptors.into_iter().next().map(PidFd::from)?;
            let (ended, is_ended) = oneshot::channel();
            agents.running.insert(agent, ended);
            // Refused only by a caller that has given up.
            responder.send(Ok((pidfd, is_ended))).is_err().then_some(agent)
        }
        HelperRecord::Refused { agent, errno } => {
            if let Some(responder) = agents.starting.remove(&agent) {
                let _ = responder.send(Err(io::Error::from_raw_os_error(errno)));
            } else if let Some(responder) = agents.making.remove(&agent) {
                let _ = responder.send(Err(io::Error::from_raw_os_error(errno)));
            }
            None
        }
        HelperRecord::Ended { agent, status } => {
            if let Some(ended) = agents.running.remove(&agent) {
                let _ = ended.send(ExitStatus::from_wait_status(status));
            }
            None
        }
        HelperRecord::Made { agent } => {
            if let (Some(responder), Some(namespace)) =
                (agents.making.remove(&agent), descriptors.into_iter().next())
            {
                let _ = responder.send(Ok(namespace));
            }
            None
        }
        HelperRecord::StartAgent { .. } | HelperRecord::MakeNamespace { .. } | HelperRecord::Kill { .. } => {
            None
        }
    }
}

/// An agent that has not ended; to be ended by [`Self::kill`]. It ends with its helper in any case.
#[derive(Debug)]
pub struct StartedAgent {
    /// The helper stays while one of its agents does.
    _helper: SpawnHelper,
    agent: u64,
    pid: u32,
    exit: WatchedFd,
    ended: oneshot::Receiver<ExitStatus>,
    /// The place of the order to kill it, until that is given.
    kill: Mutex<Option<Place>>,
}

impl StartedAgent {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// SIGKILL, by the helper; no error if the process has exited already.
    pub fn kill(&self) {
        if let Some(place) = self.kill.lock().unwrap_or_else(PoisonError::into_inner).take() {
            place.send(Order { record: HelperRecord::Kill { agent: self.agent }, channel: None });
        }
    }

    /// Waits until the helper has reaped it. Without the helper it waits for the exit alone, whose status nobody knows. Must complete
    /// once; cancel safe before that.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        if let Ok(status) = (&mut self.ended).await {
            return Ok(status);
        }
        let _exited = self.exit.readable().await?;
        Err(io::Error::new(
            io::ErrorKind::BrokenPipe,
            "the spawn helper that had started it has ended, and it with that",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing takes the orders: the task begins with the first request to the helper.
    #[test]
    fn helper_that_reads_nothing_has_a_bounded_number_of_orders() {
        let (ours, _theirs) = socket::pair().expect("a channel");
        let helper = SpawnHelper::new(std::process::id(), ours, false);
        let mut places = Vec::new();
        for number in 0..ORDERS {
            let place = helper.place();
            places.push(place.unwrap_or_else(|error| panic!("order {number} of {ORDERS}: {error}")));
        }
        let refused = helper.place().map(|_| ()).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::TimedOut), "more than {ORDERS} orders wait");
        assert_eq!(helper.problem(), Some(HelperProblem::Silent));
        places.pop();
        assert!(helper.place().is_ok(), "a place that was given back is free");
    }
}
