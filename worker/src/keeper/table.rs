//! The keeper's table: workers and zygotes by id and by pid, and exits of children that are not in the table yet. No hash
//! tables: their seeds need a system call that the keeper's filter does not allow.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::keeper::{ExitedRole, WorkerRecord};
use vm_system_sandbox::pidfd::PidFd;

/// Most exits of unknown children that are remembered; the oldest are dropped first.
const UNKNOWN_EXITS: usize = 1024;

/// A kept worker.
#[derive(Debug)]
pub(super) struct KeptWorker {
    pub(super) inner_pid: u32,
    pub(super) channel: OwnedFd,
    pub(super) pidfd: PidFd,
    pub(super) wait_status: Option<i32>,
}

/// Everything kept.
#[derive(Debug, Default)]
pub(super) struct KeptProcesses {
    workers: BTreeMap<SessionId, KeptWorker>,
    zygotes: BTreeMap<u32, PidFd>,
    /// Of the filter of all processes of the jail, except the keeper; kept longer than the zygote that installed it.
    listener: Option<OwnedFd>,
    running: BTreeMap<u32, ExitedRole>,
    unknown_exits: VecDeque<(u32, i32)>,
}

impl KeptProcesses {
    /// Keeps a worker that may have exited already. `is_alive`: the worker still runs, so that a recorded exit with its pid is that
    /// of an earlier process.
    pub(super) fn keep(&mut self, session: SessionId, mut worker: KeptWorker, is_alive: bool) {
        let claimed = self.unknown_exits.iter().rposition(|(pid, _)| *pid == worker.inner_pid);
        let claimed = claimed.and_then(|at| self.unknown_exits.remove(at)).filter(|_| !is_alive);
        worker.wait_status = claimed.map(|(_, status)| status);
        if worker.wait_status.is_none() {
            self.running.insert(worker.inner_pid, ExitedRole::Worker(session));
        }
        self.workers.insert(session, worker);
    }

    /// Keeps a zygote, which may be known already.
    pub(super) fn keep_zygote(&mut self, number: u32, inner_pid: u32, pidfd: PidFd) {
        self.running.insert(inner_pid, ExitedRole::Zygote(number));
        self.zygotes.insert(number, pidfd);
    }

    pub(super) fn keep_listener(&mut self, listener: OwnedFd) {
        self.listener = Some(listener);
    }

    pub(super) fn listener(&self) -> Option<&OwnedFd> {
        self.listener.as_ref()
    }

    /// Removes a worker.
    pub(super) fn forget(&mut self, session: SessionId) {
        if let Some(worker) = self.workers.remove(&session)
            && self.running.get(&worker.inner_pid) == Some(&ExitedRole::Worker(session))
        {
            self.running.remove(&worker.inner_pid);
        }
    }

    /// Records the exit of a child; returns which child it was.
    pub(super) fn record_exit(&mut self, inner_pid: u32, wait_status: i32) -> ExitedRole {
        match self.running.remove(&inner_pid) {
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
                if self.unknown_exits.len() == UNKNOWN_EXITS {
                    self.unknown_exits.pop_front();
                }
                self.unknown_exits.push_back((inner_pid, wait_status));
                ExitedRole::Unknown
            }
        }
    }

    /// A kept worker.
    pub(super) fn worker(&self, session: SessionId) -> Option<&KeptWorker> {
        self.workers.get(&session)
    }

    /// All workers, with the descriptors that a new supervisor needs.
    pub(super) fn workers(&self) -> impl ExactSizeIterator<Item = (WorkerRecord, &KeptWorker)> {
        self.workers.iter().map(|(session, worker)| {
            let (inner_pid, wait_status) = (worker.inner_pid, worker.wait_status);
            (WorkerRecord { session: *session, inner_pid, wait_status }, worker)
        })
    }

    /// Kills all zygotes.
    pub(super) fn kill_zygotes(&self) {
        for pidfd in self.zygotes.values() {
            // The process may have exited already.
            let _ = pidfd.kill();
        }
    }

    /// Kills every process that is kept.
    pub(super) fn kill_all(&self) {
        self.kill_zygotes();
        for worker in self.workers.values().filter(|worker| worker.wait_status.is_none()) {
            let _ = worker.pidfd.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(inner_pid: u32) -> KeptWorker {
        let (channel, _other) = vm_system_sandbox::socket::pair().expect("pair");
        let pidfd = PidFd::open(std::process::id()).expect("pidfd");
        KeptWorker { inner_pid, channel, pidfd, wait_status: None }
    }

    const A: SessionId = SessionId::from_bytes([1; 16]);
    const B: SessionId = SessionId::from_bytes([2; 16]);

    #[test]
    fn an_exit_before_the_keep_order_is_assigned_to_the_kept_worker() {
        let mut table = KeptProcesses::default();
        assert_eq!(table.record_exit(7, 9), ExitedRole::Unknown);
        table.keep(A, worker(7), false);
        assert_eq!(table.workers().next().map(|(record, _)| record.wait_status), Some(Some(9)));
    }

    #[test]
    fn an_exit_of_an_earlier_process_with_the_same_pid_is_not_assigned_to_a_running_worker() {
        let mut table = KeptProcesses::default();
        assert_eq!(table.record_exit(7, 9), ExitedRole::Unknown);
        table.keep(A, worker(7), true);
        assert_eq!(table.workers().next().map(|(record, _)| record.wait_status), Some(None));
        assert_eq!(table.record_exit(7, 11), ExitedRole::Worker(A));
    }

    #[test]
    fn a_pid_that_is_used_again_belongs_to_the_newer_session() {
        let mut table = KeptProcesses::default();
        table.keep(A, worker(7), true);
        assert_eq!(table.record_exit(7, 9), ExitedRole::Worker(A));
        table.keep(B, worker(7), true);
        table.forget(A);
        assert_eq!(table.record_exit(7, 11), ExitedRole::Worker(B));
    }

    #[test]
    fn exits_of_unknown_children_are_bounded() {
        let mut table = KeptProcesses::default();
        for pid in 1..10_000 {
            table.record_exit(pid, 0);
        }
        assert_eq!(table.unknown_exits.len(), UNKNOWN_EXITS);
    }
}
