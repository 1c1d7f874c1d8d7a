//! Permits exactly the ordered forks. Every clone of a jailed process is a seccomp notification that waits here for its
//! response: the kernel reports the caller, the table holds the fork orders. A process in any other call that its filter does
//! not permit stays in the call until it is killed; the call is reported by name.

use super::control::lock;
use super::fork::MarkedChild;
use super::spawner::SpawnEvent;
use crate::reactor::WatchedFd;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use vm_system_sandbox::inspect;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::seccomp::names;
use vm_system_sandbox::seccomp::notify::{CallNotification, CallResponse, Listener, NotifiedCall};
use vm_system_sandbox::socket::PollSet;

/// A process with this many forks without an order is killed at once: the cost of refusals is bounded.
const MOST_REFUSALS: u32 = 16;
/// Processes whose refusals are counted; beyond it counting starts again.
const MOST_OFFENDERS: usize = 256;

/// How often a process may make the call of one ordered fork again.
const MOST_REPETITIONS: u32 = 64;

/// The receiver of the event about a forbidden call has this long to kill the process; then it is killed here.
const FORBIDDEN_GRACE: Duration = Duration::from_secs(1);

/// Ordered forks that have not happened yet, by the host pid of the process that is to fork.
#[derive(Debug, Clone, Default)]
pub(super) struct Orders {
    open: Arc<Mutex<HashMap<u32, u32>>>,
    /// Adopted workers that may be in a fork which the previous supervisor ordered: it is refused, and no violation.
    excused: Arc<Mutex<HashSet<u32>>>,
    /// Workers with a fork under way.
    under_way: Arc<Mutex<HashMap<u32, MarkedFork>>>,
}

/// A fork of a worker; its child has a mark.
#[derive(Debug)]
struct MarkedFork {
    child: MarkedChild,
    /// How often the call may be made again.
    again: u32,
}

impl Orders {
    /// Permits this process one fork.
    pub(super) fn add(&self, pid: u32) {
        *lock(&self.open).entry(pid).or_default() += 1;
    }

    /// The child of the ordered fork of this process will have this mark. Until [`Self::is_over`] the call may be made again if there is no
    /// such child: the kernel gives a clone up, and makes it again, when a signal arrives during it.
    pub(super) fn mark(&self, child: MarkedChild) {
        lock(&self.under_way).insert(child.parent, MarkedFork { child, again: MOST_REPETITIONS });
    }

    pub(super) fn is_over(&self, pid: u32) {
        lock(&self.under_way).remove(&pid);
    }

    /// The child that this process must not have, so that it may make the call again.
    fn repeated(&self, pid: u32) -> Option<MarkedChild> {
        let mut forks = lock(&self.under_way);
        let fork = forks.get_mut(&pid)?;
        fork.again = fork.again.checked_sub(1)?;
        Some(fork.child)
    }

    /// The response to a repeated call was late: it does not count.
    fn not_repeated(&self, pid: u32) {
        if let Some(fork) = lock(&self.under_way).get_mut(&pid) {
            fork.again += 1;
        }
    }

    /// Does not report one fork of this process, which is refused.
    pub(super) fn excuse(&self, pid: u32) {
        lock(&self.excused).insert(pid);
    }

    fn is_excused(&self, pid: u32) -> bool {
        lock(&self.excused).remove(&pid)
    }

    /// Forgets a process.
    pub(super) fn forget(&self, pid: u32) {
        self.is_over(pid);
        lock(&self.excused).remove(&pid);
        lock(&self.open).remove(&pid);
    }

    /// Whether a fork of this process is allowed and has not happened.
    pub(super) fn are_open(&self, pid: u32) -> bool {
        lock(&self.open).contains_key(&pid)
    }

    /// Removes one permitted fork; false if there is none.
    pub(super) fn take(&self, pid: u32) -> bool {
        let mut orders = lock(&self.open);
        match orders.get_mut(&pid) {
            Some(1) => orders.remove(&pid).is_some(),
            Some(ordered) => {
                *ordered -= 1;
                true
            }
            None => false,
        }
    }
}

/// Responds to notifications until no filtered process is left.
pub(super) async fn answer(
    listener: Listener,
    watched: WatchedFd,
    orders: Orders,
    events: mpsc::Sender<SpawnEvent>,
) {
    let mut refusals: HashMap<u32, u32> = HashMap::new();
    loop {
        let Ok(mut guard) = watched.readable().await else { return };
        match next(&listener) {
            Ok(Next::Request(request)) => match request.call {
                NotifiedCall::Fork => judge(&listener, request, &orders, &mut refusals, &events),
                NotifiedCall::Forbidden(number) => report(request.pid, number, &events),
            },
            Ok(Next::Gone) => {}
            Ok(Next::Nothing) => guard.clear_ready(),
            Err(_) => return,
        }
    }
}

enum Next {
    Request(CallNotification),
    /// The caller has exited.
    Gone,
    Nothing,
}

/// The next request without blocking: the kernel's call has no such mode, so the descriptor is polled first.
fn next(listener: &Listener) -> io::Result<Next> {
    let mut ready = PollSet::with_capacity(1);
    let index = ready.add(listener);
    ready.wait(Some(Duration::ZERO))?;
    if ready.is_closed(index) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    if !ready.is_ready(index) {
        return Ok(Next::Nothing);
    }
    Ok(listener.next()?.map_or(Next::Gone, Next::Request))
}

/// The notification gets no response: the process stays in its call.
fn report(pid: u32, number: i32, events: &mpsc::Sender<SpawnEvent>) {
    let call = names::name(number);
    tracing::warn!(pid, call, "a jailed process made a forbidden system call");
    // The process waits in the call, so the pid is still valid; an error means that it has exited.
    let Ok(process) = PidFd::open(pid) else { return };
    if events.try_send(SpawnEvent::ForbiddenCall { pid, call }).is_err() {
        let _ = process.kill();
        return;
    }
    tokio::spawn(async move {
        tokio::time::sleep(FORBIDDEN_GRACE).await;
        let _ = process.kill();
    });
}

fn judge(
    listener: &Listener,
    request: CallNotification,
    orders: &Orders,
    refusals: &mut HashMap<u32, u32>,
    events: &mpsc::Sender<SpawnEvent>,
) {
    let pid = request.pid;
    if orders.take(pid) {
        if let Ok(CallResponse::Late) = listener.allow(request) {
            // A signal has interrupted the call before the response: it is made again.
            orders.add(pid);
            if !PidFd::open(pid).is_ok_and(|process| process.is_alive()) {
                orders.take(pid);
            }
        }
        return;
    }
    if orders.is_excused(pid) {
        if let Ok(CallResponse::Late) = listener.refuse(request) {
            orders.excuse(pid);
        }
        return;
    }
    if let (Some(child), Ok(listener)) = (orders.repeated(pid), listener.try_clone()) {
        let (orders, events) = (orders.clone(), events.clone());
        tokio::task::spawn_blocking(move || judge_repetition(&listener, request, child, &orders, &events));
        return;
    }
    if refusals.len() >= MOST_OFFENDERS {
        refusals.clear();
    }
    let count = refusals.entry(pid).or_default();
    *count += 1;
    if *count > MOST_REFUSALS {
        // The process waits for our response, so the pid is still valid.
        let _ = PidFd::open(pid).and_then(|pidfd| pidfd.kill());
        refusals.remove(&pid);
    } else if *count == 1 {
        tracing::warn!(pid, "a jailed process tried to fork without an order; refused");
        let _ = events.try_send(SpawnEvent::UnorderedFork { pid });
    }
    let _ = listener.refuse(request);
}

/// The clone of an ordered fork is made again. Inspects every process.
fn judge_repetition(
    listener: &Listener,
    request: CallNotification,
    child: MarkedChild,
    orders: &Orders,
    events: &mpsc::Sender<SpawnEvent>,
) {
    let pid = request.pid;
    let is_alone = inspect::processes().is_ok_and(|processes| !processes.iter().any(|pid| child.is(*pid)));
    let response = if is_alone { listener.allow(request) } else { listener.refuse(request) };
    if let Ok(CallResponse::Late) = response {
        // Another signal came first: the child, if there is one, is of the next call.
        orders.not_repeated(pid);
    } else if is_alone {
        tracing::debug!(pid, "the clone of an ordered fork was interrupted by a signal, and is made again");
    } else {
        tracing::warn!(pid, "a jailed process tried to fork twice; refused");
        let _ = events.try_send(SpawnEvent::UnorderedFork { pid });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_permits_one_fork_of_one_process() {
        let orders = Orders::default();
        orders.add(7);
        orders.add(7);
        assert!(!orders.take(8));
        assert!(orders.take(7) && orders.take(7) && !orders.take(7));
        orders.add(7);
        orders.forget(7);
        assert!(!orders.take(7));
    }
}
