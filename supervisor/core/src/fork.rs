//! Forks of a session: new sessions with children of this session's worker, between two executions. The session is busy
//! meanwhile.
//!
//! A fork has two results: the worker reports whether its clone succeeded, and the owner task reports whether the child became
//! a worker. The machine continues when it has both. A worker is killed if its report contradicts the owner task or is missing.

use super::caller::Token;
use super::execution::{Current, ExecutionJob};
use super::input::{ForkFault, Now, Refusal, SessionAction, SpawnFailure, SpawnFault};
use super::machine::SessionMachine;
use super::phase::Phase;
use super::rollback::fork_order;
use vm_system_protocol::limits::HELLO_MS;
use vm_system_protocol::model::SessionCheckpoint;

/// Longest duration of a fork (milliseconds): two hellos and the keeper's report.
pub(super) const FORK_MS: u64 = 3 * HELLO_MS;

/// The purpose of a child.
#[derive(Debug)]
pub(super) enum ForkPurpose {
    /// New sessions.
    Sessions {
        token: Token<()>,
        /// Children that are still to be started, including the current one.
        left: u32,
    },
    /// A checkpoint with this name.
    Checkpoint { token: Token<SessionCheckpoint>, name: Option<String> },
    /// The guard copy, before this job if there is one.
    Guard { job: Option<ExecutionJob> },
}

/// Forks of one request.
#[derive(Debug)]
pub(super) struct Forking {
    pub(super) purpose: ForkPurpose,
    order: u64,
    /// The worker's report: the errno of a clone that failed.
    word: Option<Result<(), i32>>,
    /// The owner task's report about the child.
    seen: Option<Result<(), ForkFault>>,
    /// The fork must be over by then (`mono_ms`).
    pub(super) until: u64,
}

impl Forking {
    /// Identifies the fork among those of its session.
    pub(super) fn order(&self) -> u64 {
        self.order
    }

    pub(super) fn is_of_guard(&self) -> bool {
        matches!(self.purpose, ForkPurpose::Guard { .. })
    }

    /// Replies to the caller, if there is one, that nothing was made.
    pub(super) fn refuse(&self, why: &Refusal, out: &mut Vec<SessionAction>) {
        let why = why.clone();
        match &self.purpose {
            ForkPurpose::Sessions { token, .. } => SessionMachine::reply(*token, Err(why), out),
            ForkPurpose::Checkpoint { token, .. } => SessionMachine::reply(*token, Err(why), out),
            ForkPurpose::Guard { job } => {
                if let Some(token) = job.as_ref().and_then(|job| job.token) {
                    SessionMachine::reply(token, Err(why), out);
                }
            }
        }
    }
}

impl SessionMachine {
    pub(super) fn fork(&mut self, token: Token<()>, count: u32, now: Now, out: &mut Vec<SessionAction>) {
        let refusal = self.refuses_idle_request().or((count == 0).then_some(Refusal::Busy));
        if let Some(refusal) = refusal {
            return Self::reply(token, Err(refusal), out);
        }
        self.timers.idle_at = None;
        self.order_fork(ForkPurpose::Sessions { token, left: count }, now, out);
    }

    pub(super) fn order_fork(&mut self, purpose: ForkPurpose, now: Now, out: &mut Vec<SessionAction>) {
        self.peer.forks = self.peer.forks.wrapping_add(1);
        let is_guard = matches!(purpose, ForkPurpose::Guard { .. });
        let order = fork_order(self.peer.forks, self.peer.next_seq - 1, is_guard);
        let until = now.mono_ms + FORK_MS;
        out.push(SessionAction::Fork { order });
        self.current =
            Some(Current::Forking(Box::new(Forking { purpose, order, word: None, seen: None, until })));
    }

    /// The worker's report about its clone.
    pub(super) fn on_fork_result(
        &mut self,
        order: u64,
        word: Result<(), i32>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let seq = self.peer.next_seq - 1;
        match &mut self.current {
            Some(Current::Forking(forking)) if forking.order == order && forking.word.is_none() => {
                forking.word = Some(word);
            }
            // The previous supervisor ordered the fork; its child was lost with that supervisor.
            _ if self.peer.adoption.is_of_previous() => {}
            _ => return self.violation("a report about a fork that was not ordered", now, out),
        }
        self.ledger.settle(seq);
        self.conclude_fork(now, out);
    }

    /// The owner task's report: a child, or why there is none.
    pub(super) fn fork_ended(
        &mut self,
        order: u64,
        seen: Result<(), ForkFault>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let Some(Current::Forking(forking)) = &mut self.current else { return };
        if forking.order != order || forking.seen.is_some() {
            return;
        }
        match seen {
            Err(ForkFault::Violation(what)) => self.violation(&what, now, out),
            Err(ForkFault::NotOrdered(failure)) => self.forks_over(Err(Refusal::Fork(failure)), now, out),
            seen => {
                forking.seen = Some(seen);
                self.conclude_fork(now, out);
            }
        }
    }

    fn conclude_fork(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Forking(forking)) = &mut self.current else { return };
        let Some(word) = forking.word else { return };
        let Some(seen) = forking.seen.take() else { return };
        match (word, seen) {
            (Ok(()), Ok(())) => self.fork_succeeded(now, out),
            (Err(_), Ok(())) => self.violation("a child of a fork that it reported as failed", now, out),
            (Err(errno), Err(_)) => {
                self.forks_over(Err(Refusal::Fork(refused_by_kernel(errno))), now, out);
            }
            (Ok(()), Err(ForkFault::Failed(failure))) => {
                self.forks_over(Err(Refusal::Fork(failure)), now, out);
            }
            // Handled when they were reported.
            (Ok(()), Err(ForkFault::Violation(_) | ForkFault::NotOrdered(_))) => {}
        }
    }

    fn fork_succeeded(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Forking(forking)) = &self.current else { return };
        if let ForkPurpose::Sessions { token, left } = forking.purpose {
            out.push(SessionAction::ForkTaken);
            match left - 1 {
                0 => self.forks_over(Ok(()), now, out),
                _ if self.phase() != Phase::Ready => {
                    let why = Refusal::NotReady(self.not_ready_because());
                    self.forks_over(Err(why), now, out);
                }
                left => self.order_fork(ForkPurpose::Sessions { token, left }, now, out),
            }
        } else if let Some(Current::Forking(forking)) = self.current.take() {
            self.copy_made(*forking, now, out);
        }
    }

    /// The session is idle again, or continues to close.
    fn forks_over(&mut self, result: Result<(), Refusal>, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Forking(forking)) = self.current.take() else { return };
        out.push(SessionAction::ForksOver);
        match (result, &forking.purpose) {
            (Ok(()), ForkPurpose::Sessions { token, .. }) => Self::reply(*token, Ok(()), out),
            (Ok(()), _) => {}
            (Err(why), _) => forking.refuse(&why, out),
        }
        match self.phase() {
            Phase::Closing => self.shut_down(now, out),
            _ => self.rest(now),
        }
    }

    /// The worker that forks has exited, or will: its child becomes no session.
    pub(super) fn drop_forks(&mut self, why: &Refusal, out: &mut Vec<SessionAction>) {
        if let Some(Current::Forking(forking)) =
            self.current.take_if(|current| matches!(current, Current::Forking(_)))
        {
            out.push(SessionAction::ForksOver);
            forking.refuse(why, out);
        }
    }
}

fn refused_by_kernel(errno: i32) -> SpawnFailure {
    SpawnFailure {
        why: format!("the kernel refused another process (errno {errno})"),
        fault: SpawnFault::Busy,
        hint: "processes or memory may be short (LimitNPROC=, TasksMax=, MemoryMax=): try again later",
    }
}
