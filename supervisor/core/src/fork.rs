//! Forks of a session: new sessions with children of this session's worker, between two executions. The session is busy
//! meanwhile.
//!
//! A fork has two results: the worker reports whether its clone succeeded, and the owner task reports whether the child became
//! a worker. The machine continues when it has both. A worker is killed if its report contradicts the owner task or is missing.

use super::execution::Current;
use super::input::{ForkFault, Now, Refusal, SessionAction, SessionReply, SpawnFailure, SpawnFault, Token};
use super::machine::{Phase, SessionMachine};
use vm_system_protocol::limits::HELLO_MS;

/// Longest duration of a fork (milliseconds): two hellos and the keeper's report.
const FORK_MS: u64 = 3 * HELLO_MS;

/// Forks of one request.
#[derive(Debug)]
pub(super) struct Forking {
    token: Token,
    /// Children that are still to be started, including the current one.
    left: u32,
    order: u64,
    /// The worker's report: the errno of a clone that failed.
    word: Option<Result<(), i32>>,
    /// The owner task's report about the child.
    seen: Option<Result<(), ForkFault>>,
    /// The fork must be over by then (`mono_ms`).
    pub(super) until: u64,
}

impl SessionMachine {
    pub(super) fn fork(&mut self, token: Token, count: u32, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase != Phase::Ready || self.ending.verdict.is_some() {
            return Self::reply(token, Err(Refusal::NotReady(self.not_ready_because())), out);
        }
        if self.current.is_some() || self.is_taking_over() || count == 0 {
            return Self::reply(token, Err(Refusal::Busy), out);
        }
        self.timers.idle_at = None;
        self.order_fork(token, count, now, out);
    }

    fn order_fork(&mut self, token: Token, left: u32, now: Now, out: &mut Vec<SessionAction>) {
        self.peer.forks += 1;
        let (order, until) = (self.peer.forks, now.mono_ms + FORK_MS);
        out.push(SessionAction::Fork { order });
        self.current =
            Some(Current::Forking(Box::new(Forking { token, left, order, word: None, seen: None, until })));
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
            _ if self.peer.repeating => {}
            _ => return self.violation("a report about a fork that was not ordered", now, out),
        }
        self.ledger.settle(seq, 0);
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
            (Ok(()), Ok(())) => {
                out.push(SessionAction::ForkTaken);
                let (token, left) = (forking.token, forking.left - 1);
                match left {
                    0 => self.forks_over(Ok(SessionReply::Done), now, out),
                    _ if self.phase != Phase::Ready => {
                        let why = Refusal::NotReady(self.not_ready_because());
                        self.forks_over(Err(why), now, out);
                    }
                    _ => self.order_fork(token, left, now, out),
                }
            }
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

    /// The session is idle again, or continues to close.
    fn forks_over(&mut self, result: Result<SessionReply, Refusal>, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Forking(forking)) = self.current.take() else { return };
        out.push(SessionAction::ForksOver);
        Self::reply(forking.token, result, out);
        match self.phase {
            Phase::Closing => self.shut_down(now, out),
            _ => self.rest(now),
        }
    }

    /// The worker that forks has exited, or will: its child becomes no session.
    pub(super) fn drop_forks(&mut self, why: Refusal, out: &mut Vec<SessionAction>) {
        if let Some(Current::Forking(forking)) =
            self.current.take_if(|current| matches!(current, Current::Forking(_)))
        {
            out.push(SessionAction::ForksOver);
            Self::reply(forking.token, Err(why), out);
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
