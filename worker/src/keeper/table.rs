//! What the keeper keeps: workers and zygotes by name and by pid, and endings that nobody has claimed yet. No hash
//! tables: their seeds need a system call that the keeper's filter does not have.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::keeper::{ExitedRole, Record};
use vm_system_sandbox::pidfd::PidFd;

/// Endings of unknown children that are remembered; the oldest go first.
const UNCLAIMED: usize = 1024;

/// A kept worker.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) inner_pid: u32,
    pub(super) channel: OwnedFd,
    pub(super) pidfd: PidFd,
    pub(super) wait_status: Option<i32>,
}

/// A kept zygote. The first one is known by its pidfd alone until the supervisor hands over the rest.
#[derive(Debug)]
pub(super) struct Zygote {
    pub(super) inner_pid: u32,
    pub(super) pidfd: PidFd,
    /// Channel and listener, as far as they were handed over.
    pub(super) rest: Vec<OwnedFd>,
}

/// Everything kept.
#[derive(Debug, Default)]
pub(super) struct Table {
    workers: BTreeMap<SessionId, Worker>,
    zygotes: BTreeMap<u32, Zygote>,
    living: BTreeMap<u32, ExitedRole>,
    unclaimed: VecDeque<(u32, i32)>,
}

impl Table {
    /// Keeps a worker; its ending may have come first. `is_alive`: it has not, and an ending under its number is that of
    /// somebody who had it before.
    pub(super) fn keep(&mut self, session: SessionId, mut worker: Worker, is_alive: bool) {
        let claimed = self.unclaimed.iter().rposition(|(pid, _)| *pid == worker.inner_pid);
        let claimed = claimed.and_then(|at| self.unclaimed.remove(at)).filter(|_| !is_alive);
        worker.wait_status = claimed.map(|(_, status)| status);
        if worker.wait_status.is_none() {
            self.living.insert(worker.inner_pid, ExitedRole::Worker(session));
        }
        self.workers.insert(session, worker);
    }

    /// Keeps a zygote, or more of one that is already known.
    pub(super) fn keep_zygote(&mut self, number: u32, zygote: Zygote) {
        self.living.insert(zygote.inner_pid, ExitedRole::Zygote(number));
        self.zygotes.insert(number, zygote);
    }

    /// Lets a worker go.
    pub(super) fn forget(&mut self, session: SessionId) {
        if let Some(worker) = self.workers.remove(&session)
            && self.living.get(&worker.inner_pid) == Some(&ExitedRole::Worker(session))
        {
            self.living.remove(&worker.inner_pid);
        }
    }

    /// Notes that a child has ended; says what it was.
    pub(super) fn ended(&mut self, inner_pid: u32, wait_status: i32) -> ExitedRole {
        match self.living.remove(&inner_pid) {
            Some(ExitedRole::Worker(session)) => {
                if let Some(worker) = self.workers.get_mut(&session) {
                    worker.wait_status = Some(wait_status);
                }
                ExitedRole::Worker(session)
            }
            Some(ExitedRole::Zygote(number)) => {
                self.zygotes.remove(&number);
                ExitedRole::Zygote(number)
            }
            Some(ExitedRole::Unknown) | None => {
                if self.unclaimed.len() == UNCLAIMED {
                    self.unclaimed.pop_front();
                }
                self.unclaimed.push_back((inner_pid, wait_status));
                ExitedRole::Unknown
            }
        }
    }

    /// A kept worker.
    pub(super) fn worker(&self, session: SessionId) -> Option<&Worker> {
        self.workers.get(&session)
    }

    /// All workers, with what a new supervisor needs.
    pub(super) fn workers(&self) -> impl ExactSizeIterator<Item = (Record, &Worker)> {
        self.workers.iter().map(|(session, worker)| {
            let (inner_pid, wait_status) = (worker.inner_pid, worker.wait_status);
            (Record { session: *session, inner_pid, wait_status }, worker)
        })
    }

    /// All zygotes that live.
    pub(super) fn zygotes(&self) -> impl Iterator<Item = (u32, &Zygote)> {
        self.zygotes.iter().map(|(number, zygote)| (*number, zygote))
    }

    /// Kills every process that is kept.
    pub(super) fn kill_all(&self) {
        let workers =
            self.workers.values().filter(|worker| worker.wait_status.is_none()).map(|worker| &worker.pidfd);
        for pidfd in workers.chain(self.zygotes.values().map(|zygote| &zygote.pidfd)) {
            // Already dead is as good.
            let _ = pidfd.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(inner_pid: u32) -> Worker {
        let (channel, _other) = vm_system_sandbox::socket::pair().expect("pair");
        let pidfd = PidFd::open(std::process::id()).expect("pidfd");
        Worker { inner_pid, channel, pidfd, wait_status: None }
    }

    const A: SessionId = SessionId::from_bytes([1; 16]);
    const B: SessionId = SessionId::from_bytes([2; 16]);

    #[test]
    fn an_ending_that_comes_before_its_keep_is_claimed_by_it() {
        let mut table = Table::default();
        assert_eq!(table.ended(7, 9), ExitedRole::Unknown);
        table.keep(A, worker(7), false);
        assert_eq!(table.workers().next().map(|(record, _)| record.wait_status), Some(Some(9)));
    }

    #[test]
    fn an_ending_of_somebody_else_with_its_number_is_not_a_living_workers() {
        let mut table = Table::default();
        assert_eq!(table.ended(7, 9), ExitedRole::Unknown);
        table.keep(A, worker(7), true);
        assert_eq!(table.workers().next().map(|(record, _)| record.wait_status), Some(None));
        assert_eq!(table.ended(7, 11), ExitedRole::Worker(A));
    }

    #[test]
    fn a_pid_that_is_used_again_belongs_to_the_newer_session() {
        let mut table = Table::default();
        table.keep(A, worker(7), true);
        assert_eq!(table.ended(7, 9), ExitedRole::Worker(A));
        table.keep(B, worker(7), true);
        table.forget(A);
        assert_eq!(table.ended(7, 11), ExitedRole::Worker(B));
    }

    #[test]
    fn unclaimed_endings_are_bounded() {
        let mut table = Table::default();
        for pid in 1..10_000 {
            table.ended(pid, 0);
        }
        assert_eq!(table.unclaimed.len(), UNCLAIMED);
    }
}
