//! The beginning with an adopted worker: what it reports, what it sends again, and executions that the store does not have.
//!
//! `Execute` is sent before the row of the execution is committed, unless the request has a key. A supervisor that is killed in between
//! leaves an *unrecorded* execution: no client got a reply about it, and the store has nothing of it. Its messages are discarded and
//! acknowledged. If it still runs, it is interrupted, and the session is busy until it has ended.
//!
//! Several such executions in a row are possible, but at most one of them runs. So whatever the worker sends again about an
//! execution other than the stored one belongs to an unrecorded one; after the last repeated number only the one that ran at the
//! adoption may send messages.

use super::deadlines::INTERRUPT_AGAIN_MS;
use super::finish::STORED_MAX;
use super::input::{CloseCause, Now, SessionAction};
use super::machine::SessionMachine;
use super::messages::host_error;
use super::phase::Phase;
use super::record::Pending;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::limits::{INTERRUPT_GRACE_MS, UNACKED_BYTES};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::worker::{FromWorker, HostReply, ToWorker};

/// Most messages that a worker can have kept: each has at least one byte.
const KEPT_MAX: u64 = UNACKED_BYTES as u64;

const UNRECORDED: &str =
    "the daemon was restarted before it had recorded this execution, which is being ended";

const LOST: &str = "an earlier daemon could not write, and was killed";
const NEVER_BEGAN: &str =
    "the daemon was restarted before the worker received this execution: nothing of it ran";
const END_LOST: &str =
    "an earlier daemon could not store the end of this execution, and was killed: its result is lost";

/// The unrecorded execution that an adopted worker runs.
#[derive(Debug)]
pub(super) struct Unrecorded {
    execution: ExecutionId,
    /// It must have ended by then (`mono_ms`).
    until: u64,
    /// When the worker is interrupted again (`mono_ms`).
    interrupt_again_at: u64,
}

/// The stored execution that may run, while the worker has not confirmed that it does.
#[derive(Debug, Clone, Copy)]
struct Unconfirmed {
    execution: ExecutionId,
    /// The worker has sent something of it again, so that its end must be among the repeated messages.
    began: bool,
    /// The worker has ended it, or a later one. If its end is not repeated, an earlier supervisor could not store and gave it up.
    ended: bool,
}

/// The messages that a worker owes, or may repeat, because it was adopted from the previous supervisor.
#[derive(Debug)]
pub(super) struct Adoption {
    /// The nonce of our `Adopt`: everything before the `Adopted` with it is discarded.
    nonce: Option<u64>,
    /// The running execution was begun under the previous supervisor: the worker may repeat host calls that got their
    /// replies before.
    of_previous: bool,
    /// The execution that runs according to the store; until the worker has confirmed that it runs, or has sent everything again.
    stored: Option<Unconfirmed>,
    /// The worker has sent nothing about the running execution since the adoption: messages about those before it may come first, which
    /// the store lacks because it could not write.
    awaits_stored: bool,
    /// Messages up to this number were sent to the previous supervisor.
    repeated_up_to: u64,
    /// The execution that the worker runs and the store does not have.
    unrecorded: Option<Unrecorded>,
    /// Executions that the store does not have and that have ended.
    unrecorded_ended: u64,
    /// The running execution may have had a transaction that ended with the previous supervisor, and has not got the error about that yet.
    database_restarted: bool,
}

impl Adoption {
    /// Of a worker that this supervisor has started.
    pub(super) const fn none() -> Self {
        Self {
            nonce: None,
            of_previous: false,
            stored: None,
            awaits_stored: false,
            repeated_up_to: 0,
            unrecorded: None,
            unrecorded_ended: 0,
            database_restarted: false,
        }
    }

    /// `Adopt` with this nonce is sent; `running` is the execution that runs according to the store.
    pub(super) fn begin(nonce: u64, running: Option<ExecutionId>) -> Self {
        let unconfirmed = |execution| Unconfirmed { execution, began: false, ended: false };
        Self {
            nonce: Some(nonce),
            of_previous: true,
            stored: running.map(unconfirmed),
            awaits_stored: running.is_some(),
            database_restarted: running.is_some(),
            ..Self::none()
        }
    }

    /// Whether the worker has not replied to `Adopt`.
    pub(super) const fn is_awaited(&self) -> bool {
        self.nonce.is_some()
    }

    /// Whether the running execution was begun under the previous supervisor.
    pub(super) const fn is_of_previous(&self) -> bool {
        self.of_previous
    }

    /// An execution of this supervisor begins.
    pub(super) const fn end_of_previous(&mut self) {
        (self.of_previous, self.database_restarted) = (false, false);
    }

    /// Whether the worker runs an execution that the store does not have.
    pub(super) const fn has_unrecorded(&self) -> bool {
        self.unrecorded.is_some()
    }

    fn runs_unrecorded(&self, execution: ExecutionId) -> bool {
        self.unrecorded.as_ref().is_some_and(|unrecorded| unrecorded.execution == execution)
    }

    /// Whether the worker sent this message to the previous supervisor, too.
    pub(super) const fn repeats(&self, seq: u64) -> bool {
        seq <= self.repeated_up_to
    }

    /// Whether this message is the last one that it sent to the previous supervisor.
    pub(super) const fn is_last_repeated(&self, seq: u64) -> bool {
        seq == self.repeated_up_to
    }

    /// The worker has sent something about the execution that runs according to the store.
    pub(super) const fn note_message_of_stored(&mut self) {
        self.awaits_stored = false;
    }

    /// An accepted message is about this execution.
    pub(super) fn note_subject(&mut self, subject: Option<ExecutionId>) {
        if let Some(stored) = &mut self.stored {
            stored.began |= subject == Some(stored.execution);
        }
    }

    /// Whether a transaction may have ended with the previous supervisor, once.
    pub(super) const fn take_database_restarted(&mut self) -> bool {
        std::mem::replace(&mut self.database_restarted, false)
    }
}

impl SessionMachine {
    /// Whether an adopted worker cannot get an order yet: it has not sent everything again, or runs an unrecorded execution.
    pub fn is_taking_over(&self) -> bool {
        self.is_catching_up() || (self.channel_usable() && self.peer.adoption.has_unrecorded())
    }

    /// Unrecorded executions of the previous supervisor that have ended.
    pub fn unrecorded_executions(&self) -> u64 {
        self.peer.adoption.unrecorded_ended
    }

    /// Drops a message that the worker queued before the adoption: it was meant for the previous supervisor and will be sent again.
    pub(super) fn before_adopted(&mut self, message: &FromWorker, now: Now, out: &mut Vec<SessionAction>) {
        let FromWorker::Adopted { nonce, acknowledged, last_sent, running, finished } = message else {
            return;
        };
        // A reply to another supervisor, which ended before it read this.
        if self.peer.adoption.nonce != Some(*nonce) {
            return;
        }
        let stored = self.peer.next_seq - 1;
        let repeated = last_sent.checked_sub(*acknowledged).filter(|_| *acknowledged >= stored);
        let Some(repeated) = repeated else {
            return self.violation("Adopted with a number below the last stored one", now, out);
        };
        // A larger number would keep the session busy for as long as the worker likes.
        if repeated > KEPT_MAX {
            return self.violation("Adopted with more messages than a worker keeps", now, out);
        }
        self.peer.adoption.nonce = None;
        self.peer.adoption.repeated_up_to = *last_sent;
        if *acknowledged > stored {
            self.pass_over(*acknowledged, out);
        }
        // The deadline was that of this reply; a session that is closing has the deadline of its close instead.
        if self.phase() == Phase::Ready {
            self.timers.phase_at = None;
        }
        if let Some(stored) = &mut self.peer.adoption.stored {
            // Identifiers grow with the time at which they were made.
            stored.ended = finished.is_some_and(|finished| finished >= stored.execution);
        }
        let stored = self.peer.adoption.stored.map(|stored| stored.execution);
        match *running {
            Some(running) if stored == Some(running) => self.peer.adoption.stored = None,
            Some(running) => self.interrupt_unrecorded(running, now, out),
            None => {}
        }
        if repeated == 0 {
            self.caught_up(now, out);
        }
    }

    /// The worker has sent everything again: an execution of the store that it neither runs nor has ended never reached it.
    pub(super) fn caught_up(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if !self.channel_usable() {
            return;
        }
        let Some(stored) = self.peer.adoption.stored.take() else { return };
        if self.running() != Some(stored.execution) {
            return;
        }
        // It has repeated messages of the execution, so its end must be among them, or it still runs.
        if stored.began {
            return self.violation("neither runs an execution nor has ended it", now, out);
        }
        let is_past = stored.ended || self.peer.adoption.has_unrecorded();
        self.lost_with_supervisor(if is_past { END_LOST } else { NEVER_BEGAN }, now, out);
    }

    /// A message about a later execution than the stored one, whose end an earlier supervisor could not store and gave up.
    pub(super) fn pass_over_lost_end(
        &mut self,
        subject: Option<ExecutionId>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let (Some(stored), Some(subject)) = (self.peer.adoption.stored, subject) else { return };
        let is_later = self.peer.adoption.runs_unrecorded(subject) || subject > stored.execution;
        if is_later && !stored.began && self.running() == Some(stored.execution) {
            self.peer.adoption.stored = None;
            self.lost_with_supervisor(END_LOST, now, out);
        }
    }

    /// A supervisor whose store could not write has acknowledged messages up to this number and was killed before it could mark the
    /// loss. A worker that claims this without reason loses its own output.
    fn pass_over(&mut self, acknowledged: u64, out: &mut Vec<SessionAction>) {
        self.peer.next_seq = acknowledged + 1;
        let running = self.running();
        self.lost(running, false, LOST);
        self.ledger.settle(acknowledged);
        self.persist(Pending::default(), Vec::new(), false, out);
    }

    fn interrupt_unrecorded(&mut self, execution: ExecutionId, now: Now, out: &mut Vec<SessionAction>) {
        // The worker is busy, although the store knows of no execution.
        self.timers.idle_at = None;
        self.peer.adoption.unrecorded = Some(Unrecorded {
            execution,
            until: now.mono_ms + INTERRUPT_GRACE_MS,
            interrupt_again_at: now.mono_ms + INTERRUPT_AGAIN_MS,
        });
        out.push(SessionAction::Interrupt);
    }

    /// Whether message `seq` is about an unrecorded execution.
    pub(super) fn is_unrecorded(&self, execution: ExecutionId, seq: u64) -> bool {
        let adoption = &self.peer.adoption;
        let runs_unrecorded = adoption.runs_unrecorded(execution);
        let is_other = self.running().is_some_and(|running| running != execution) && !runs_unrecorded;
        if adoption.awaits_stored && adoption.repeats(seq) && is_other {
            return true;
        }
        // A worker that runs another execution after the stored one has sent the end of the stored one before.
        self.current.is_none() && (adoption.repeats(seq) || runs_unrecorded)
    }

    /// Discards a message about an unrecorded execution.
    pub(super) fn discard_unrecorded(
        &mut self,
        execution: ExecutionId,
        message: &FromWorker,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let seq = self.peer.next_seq - 1;
        let runs = self.peer.adoption.runs_unrecorded(execution);
        match message {
            FromWorker::HostCall { call, .. } => {
                // Calls have one sequence for all executions of a worker, discarded ones included.
                if self.peer.next_call.is_some_and(|expected| *call != expected) {
                    return self.violation("a host call out of order", now, out);
                }
                self.peer.next_call = Some(call.saturating_add(1));
                // An execution that has ended got the replies to its calls from the previous supervisor.
                if runs {
                    let reply = HostReply::Failed(host_error("EHOSTRESTART", UNRECORDED));
                    out.push(SessionAction::Send(ToWorker::HostReply { call: *call, reply }));
                }
            }
            FromWorker::Done(done) => {
                self.peer.heap_bytes = done.usage.heap_bytes.min(STORED_MAX);
                self.peer.adoption.unrecorded_ended += 1;
                if runs {
                    self.peer.adoption.unrecorded = None;
                    self.rest(now);
                }
            }
            FromWorker::Started { .. }
            | FromWorker::Events { .. }
            | FromWorker::Adopted { .. }
            | FromWorker::Forked { .. }
            | FromWorker::ForkFailed { .. }
            | FromWorker::Durable(_) => {}
        }
        // In a batch at once: a worker that waits for acknowledgements cannot be interrupted.
        self.ledger.settle(seq);
        self.persist(Pending::default(), Vec::new(), false, out);
    }

    /// When the running unrecorded execution is due to be interrupted again, or ended (`mono_ms`).
    pub(super) fn unrecorded_deadline(&self) -> Option<u64> {
        let unrecorded = self.peer.adoption.unrecorded.as_ref().filter(|_| self.channel_usable())?;
        Some(unrecorded.until.min(unrecorded.interrupt_again_at))
    }

    pub(super) fn tick_unrecorded(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if self.unrecorded_deadline().is_none_or(|at| at > now.mono_ms) {
            return;
        }
        let Some(unrecorded) = &mut self.peer.adoption.unrecorded else { return };
        if unrecorded.until <= now.mono_ms {
            let reason = self.ending.closing.map_or(CloseReason::HostRestart, CloseCause::reason);
            return self.condemn(reason, now, out);
        }
        // Again: an interrupt that arrives while the worker begins an execution is lost.
        unrecorded.interrupt_again_at = now.mono_ms + INTERRUPT_AGAIN_MS;
        out.push(SessionAction::Interrupt);
    }
}

/// The execution that a message is about; none for a message about the worker itself.
pub(super) fn subject(message: &FromWorker) -> Option<ExecutionId> {
    match message {
        FromWorker::Events { execution, .. } | FromWorker::HostCall { execution, .. } => Some(*execution),
        FromWorker::Done(done) => Some(done.execution),
        FromWorker::Started { .. }
        | FromWorker::Adopted { .. }
        | FromWorker::Forked { .. }
        | FromWorker::ForkFailed { .. }
        | FromWorker::Durable(_) => None,
    }
}
