//! Checks and handles a worker's messages: a message that a correct worker cannot send in this state is a violation.

use super::adoption::subject;
use super::execution::{Current, HostWait, Running};
use super::input::{ChannelFault, Now, SessionAction};
use super::machine::SessionMachine;
use super::pending_task::TaskRequest;
use super::record::Pending;
use std::sync::Arc;
use vm_system_policy::{Denial, judge, seen_from_worktree};
use vm_system_protocol::broker::{DatabaseReply, FsReply, SqlValue};
use vm_system_protocol::egress::{ExchangeProgress, HttpCall, HttpProgress, HttpReply};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::limits::{CLOSE_GRACE_MS, EVENT_TEXT_BYTES};
use vm_system_protocol::model::{ConsoleLevel, Event, EventPayload, HttpRecord, NoteCode, is_exception_code};
use vm_system_protocol::reason::{CloseReason, LimitKind};
use vm_system_protocol::worker::{FromWorker, HostError, HostReply, HostRequest, ToWorker, WorkerEvent};
use vm_system_record::{RepeatFacts, Write};

/// Events that a worker may send above `max_events`: the ones that report why it ended.
const EVENTS_SLACK: u64 = 16;
/// Bytes that a worker may send above `max_output_kb`: the event that exceeds the limit, and the report about it.
const OUTPUT_SLACK_BYTES: u64 = 2 * EVENT_TEXT_BYTES as u64;
/// Longest text of an event about a denied call (characters).
const NOTE_CHARS: usize = 500;

const DATABASE_RESTARTED: &str =
    "the daemon was restarted: an open transaction was rolled back; what was committed is in the database";
const EFFECT_UNKNOWN: &str =
    "the daemon was restarted during this call, which may have taken effect; check before it is repeated";

impl SessionMachine {
    pub(super) fn message(
        &mut self,
        (seq, bytes): (u64, u64),
        message: FromWorker,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if !self.channel_usable() {
            if self.is_storing_rollback() {
                self.violation("a message while it was idle", now, out);
            }
            return;
        }
        // Before the number is checked: these messages were meant for the previous supervisor, and come again.
        if self.peer.adoption.is_awaited() {
            return self.before_adopted(&message, now, out);
        }
        if seq != self.peer.next_seq {
            let what = format!("sequence {seq}, expected {}", self.peer.next_seq);
            return self.violation(&what, now, out);
        }
        // First: the handlers below take the number of this message from it.
        self.peer.next_seq += 1;
        self.forget_repeated_call(now, out);
        self.ledger.received(bytes);
        if self.peer.setting_up && !matches!(message, FromWorker::Started { .. }) {
            return self.violation("a message before Started", now, out);
        }
        let subject = subject(&message);
        self.pass_over_lost_end(subject, now, out);
        if subject.is_some() && subject == self.running() {
            self.peer.adoption.note_message_of_stored();
        }
        match subject {
            Some(execution) if self.is_unrecorded(execution, seq) => {
                self.discard_unrecorded(execution, &message, now, out);
            }
            // Accepted messages alone are noted: an unrecorded execution must not pass for the stored one.
            execution => {
                self.peer.adoption.note_subject(execution);
                self.accept(message, now, out);
            }
        }
        // After the message itself, which may be the missing end of the stored execution.
        if self.peer.adoption.is_last_repeated(seq) {
            self.caught_up(now, out);
        }
    }

    /// Handles a message that arrived in order.
    fn accept(&mut self, message: FromWorker, now: Now, out: &mut Vec<SessionAction>) {
        match message {
            FromWorker::Started { heap_bytes } => self.started(heap_bytes, now, out),
            FromWorker::Events { execution, events } => self.events(execution, events, now, out),
            FromWorker::HostCall { execution, call, request } => {
                self.host_call(execution, call, request, now, out);
            }
            FromWorker::Done(done) => match self.speaker(done.execution) {
                Ok(_) => self.done(*done, now, out),
                Err(what) => self.violation(what, now, out),
            },
            FromWorker::Adopted { .. } => self.violation("Adopted without Adopt", now, out),
            FromWorker::Forked { order } => self.on_fork_result(order, Ok(()), now, out),
            FromWorker::ForkFailed { order, errno } => self.on_fork_result(order, Err(errno), now, out),
            FromWorker::Durable(_) => self.violation("a message of the other engine", now, out),
        }
    }

    /// A worker that continues after a host call which it repeated for us had its reply from the previous supervisor.
    fn forget_repeated_call(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if let Some(Current::Running(running)) = &mut self.current
            && self.peer.adoption.is_of_previous()
            && let Some(wait) = running.host.take()
        {
            if !wait.on_wall_clock {
                running.wall.go_on(now.mono_ms.saturating_sub(wait.since), now);
            }
            let pending = running.tasks.pending.take();
            // The previous supervisor had replied to the call, so only its record is missing.
            self.ledger.settle(wait.seq);
            match pending {
                Some(pending) => self.answered_elsewhere(&pending, now, out),
                None => out.push(SessionAction::DropHostWork),
            }
        }
    }

    /// The execution that may send messages now: it runs and does not wait for the host.
    fn speaker(&mut self, execution: ExecutionId) -> Result<&mut Running, &'static str> {
        match &mut self.current {
            Some(Current::Running(running)) if running.id() != execution || running.withheld.is_some() => {
                Err("unknown execution id")
            }
            Some(Current::Running(running)) if running.host.is_some() => {
                Err("a message while a host call is pending")
            }
            Some(Current::Running(running)) => Ok(running),
            _ => Err("a message about an execution while nothing runs"),
        }
    }

    fn events(
        &mut self,
        execution: ExecutionId,
        events: Vec<WorkerEvent>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let seq = self.peer.next_seq - 1;
        let running = match self.speaker(execution) {
            Ok(running) => running,
            Err(what) => return self.violation(what, now, out),
        };
        // The whole batch is checked before one of its events is numbered: a refused batch leaves no gap.
        let verdict = if events.is_empty() {
            Err(EventRefusal::Forbidden("no events"))
        } else {
            judge_events(running, &events)
        };
        match verdict {
            Ok(()) => {}
            Err(EventRefusal::Forbidden(what)) => return self.violation(what, now, out),
            Err(EventRefusal::TooMuch(kind)) => return self.condemn(CloseReason::Limit(kind), now, out),
        }
        let batch: Arc<[Event]> = running.number_all(events, now).into();
        running.collect(&batch);
        let pending =
            Pending { execution: Some(execution), publish: Some(Arc::clone(&batch)), ..Pending::default() };
        // Settled in the same step as its rows: both go into one batch, so an acknowledgement never covers what is not stored.
        self.ledger.settle(seq);
        self.persist(pending, vec![Write::Events(batch)], false, out);
    }

    fn host_call(
        &mut self,
        execution: ExecutionId,
        call: u64,
        request: HostRequest,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let request = seen_from_worktree(request, &self.record.worktree_path);
        let seq = self.peer.next_seq - 1;
        let expected = self.peer.next_call;
        // A copy, because the policy is applied while the running execution is borrowed; it is written back below.
        let mut session_usage = self.host_usage;
        if let Err(what) = self.speaker(execution) {
            return self.violation(what, now, out);
        }
        // Numbers without a gap: a late reply of the host is recognised by its number.
        if expected.is_some_and(|expected| call != expected) {
            return self.violation("a host call out of order", now, out);
        }
        self.peer.next_call = Some(call.saturating_add(1));
        // A worker waits for the reply of each call: what it sent after this one, it sent with the reply of the previous supervisor.
        let is_answered = self.peer.adoption.repeats(seq + 1) && !matches!(request, HostRequest::Ask { .. });
        let interrupted = if is_answered { None } else { self.interrupted_by_restart(seq, &request) };
        let Ok(running) = self.speaker(execution) else { return };
        let on_wall_clock = is_answered || matches!(request, HostRequest::Stdin { .. });
        // The script waits for the host, and `wall_ms` is for what it does itself.
        if !on_wall_clock {
            running.wall.pause(now);
        }
        let (module, effect) = (module_of(&request), effect_of(&request));
        running.host = Some(HostWait { call, seq, since: now.mono_ms, module, on_wall_clock });
        let policy = Arc::clone(&running.policy);
        let stopped = running.stopping.stop.is_some();
        // The wait is registered before: this reply needs it, and settles the call like any other.
        if stopped {
            let error = host_error("ECANCELED", "the execution is being ended");
            return self.host_replied(call, HostReply::Failed(error), now, out);
        }
        let request = match request {
            HostRequest::Ask { number, prompt, options } => {
                return self.on_task(call, TaskRequest { number, prompt, options }, now, out);
            }
            request => request,
        };
        if let Some(why) = interrupted {
            // The call fails here, but the previous supervisor may have carried it out: a repetition of the input has to know.
            self.note_effect(effect, out);
            return self.answer_call(call, HostReply::Failed(host_error("EHOSTRESTART", why)), now, out);
        }
        let judged = judge(&policy, request, &mut running.usage, &mut session_usage);
        let denied = judged.map_err(|denial| (running.usage.denied(denial.module, denial.name), denial));
        self.host_usage = session_usage;
        match denied {
            Ok(permit) => {
                self.note_effect(effect, out);
                // The worker has the reply of the previous supervisor: a second call would repeat the effect.
                if !is_answered {
                    out.push(SessionAction::HostCall { call, execution, permit, policy });
                }
            }
            Err((reported, Denial { module, name, error, code })) => {
                if reported {
                    let message = format!("denied: {module}.{name}: {}", error.message);
                    self.add_note(&message, (ConsoleLevel::Warn, code), now, out);
                }
                self.answer_call(call, HostReply::Failed(error), now, out);
            }
        }
    }

    /// Stores that the running execution changes something outside of its session, once for each kind of effect.
    fn note_effect(&mut self, effect: RepeatFacts, out: &mut Vec<SessionAction>) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        // A loop that writes a file costs one write of the store, not one for each call.
        let facts = running.facts.add(effect);
        if facts.is_empty() {
            return;
        }
        let id = running.id();
        let pending = Pending { execution: Some(id), ..Pending::default() };
        self.persist(pending, vec![Write::ExecutionFacts { id, facts }], false, out);
    }

    /// Why a call is not carried out after an adoption, although the policy may permit it.
    fn interrupted_by_restart(&mut self, seq: u64, request: &HostRequest) -> Option<&'static str> {
        // Only a call to a database uses the mark up: the script gets the error where its transaction is missing.
        let is_database = matches!(request, HostRequest::Database(_));
        let lost_database = is_database && self.peer.adoption.take_database_restarted();
        if lost_database {
            return Some(DATABASE_RESTARTED);
        }
        // The previous supervisor may have carried it out.
        (self.peer.adoption.repeats(seq) && request.has_effect()).then_some(EFFECT_UNKNOWN)
    }

    /// Adds an event of this machine to the running execution.
    fn add_note(
        &mut self,
        message: &str,
        (level, code): (ConsoleLevel, Option<NoteCode>),
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        let message = message.chars().take(NOTE_CHARS).collect();
        let event = running.number_own(message, (level, code), now);
        self.add_event(event, out);
    }

    /// An event of the running execution; the audit log has those that end without one.
    pub(super) fn http_ended(&mut self, record: HttpRecord, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        let event = running.number_http(record, now);
        self.add_event(event, out);
    }

    /// Stores and publishes an event that this machine has numbered.
    pub(super) fn add_event(&mut self, event: Event, out: &mut Vec<SessionAction>) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        let execution = running.id();
        let batch: Arc<[Event]> = Arc::new([event]);
        running.collect(&batch);
        let pending =
            Pending { execution: Some(execution), publish: Some(Arc::clone(&batch)), ..Pending::default() };
        self.persist(pending, vec![Write::Events(batch)], false, out);
    }

    /// The host's reply, dropped if it is late: the call got its reply before.
    pub(super) fn host_replied(
        &mut self,
        call: u64,
        reply: HostReply,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if !self.channel_usable() {
            return;
        }
        let Some(Current::Running(running)) = &mut self.current else { return };
        let Some(wait) = running.host.filter(|wait| wait.call == call) else { return };
        if let Some(module) = wait.module {
            let failed = matches!(reply, HostReply::Failed(_));
            running.usage.answered(module, reply_bytes(&reply), failed);
            self.host_usage.written_bytes += copied_bytes(&reply);
            if let HostReply::Failed(error) = &reply
                && is_refusal(error)
                && running.usage.refused(module)
            {
                let message = format!("denied: {module}: {}", error.message);
                // Like any file error: the script requested a file that does not exist.
                self.add_note(&message, (ConsoleLevel::Info, None), now, out);
            }
        }
        self.answer_call(call, reply, now, out);
    }

    /// Replies to the script's host call.
    pub(super) fn answer_call(
        &mut self,
        call: u64,
        reply: HostReply,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        let Some(wait) = running.host.filter(|wait| wait.call == call) else { return };
        running.host = None;
        running.tasks.pending = None;
        if !wait.on_wall_clock {
            running.wall.go_on(now.mono_ms.saturating_sub(wait.since), now);
        }
        out.push(SessionAction::Send(ToWorker::HostReply { call, reply }));
        // Settled with its reply and not before: an unsettled call is not in the store, so that a worker repeats it to the next supervisor.
        self.ledger.settle(wait.seq);
        // A script that only makes calls has no other batch, and its worker stops when it keeps too many messages.
        if self.ledger.is_record_due() {
            self.persist(Pending::default(), Vec::new(), false, out);
        }
    }

    pub(super) fn channel_failed(&mut self, fault: ChannelFault, now: Now, out: &mut Vec<SessionAction>) {
        if !self.channel_usable() {
            return;
        }
        match fault {
            // The wait status will show why; a worker that only closes its channel is killed.
            ChannelFault::Closed => self.timers.hang_up_at = Some(now.mono_ms + CLOSE_GRACE_MS),
            ChannelFault::Violation(what) => self.violation(&what, now, out),
            ChannelFault::Stuck => self.violation("does not receive messages", now, out),
        }
    }

    /// Kills a worker that sent what a correct worker cannot send.
    pub(super) fn violation(&mut self, what: &str, now: Now, out: &mut Vec<SessionAction>) {
        self.condemn(CloseReason::ProtocolViolation(what.chars().take(200).collect()), now, out);
    }
}

/// The module that a request is about.
fn module_of(request: &HostRequest) -> Option<&'static str> {
    match request {
        HostRequest::LoadModule { .. } | HostRequest::Ask { .. } | HostRequest::Stdin { .. } => None,
        HostRequest::Fs(_) => Some("fs"),
        HostRequest::Database(_) => Some("database"),
        HostRequest::Exec(_) => Some("exec"),
        HostRequest::Http(_) => Some("http"),
    }
}

/// The effect that a call has outside of the session, if it is permitted.
fn effect_of(request: &HostRequest) -> RepeatFacts {
    match request {
        HostRequest::Fs(request) if request.changes_files() => RepeatFacts::FILES,
        HostRequest::Exec(_) => RepeatFacts::EXEC,
        // The supervisor reads no SQL, so any use of a database may have an effect.
        HostRequest::Database(_) => RepeatFacts::DATABASE,
        HostRequest::Http(HttpCall::Open { request, .. })
            if !["GET", "HEAD", "OPTIONS"].contains(&request.method.as_str()) =>
        {
            RepeatFacts::HTTP
        }
        _ => RepeatFacts::default(),
    }
}

/// Size of the data that a reply returns to the script (bytes).
fn reply_bytes(reply: &HostReply) -> u64 {
    let bytes = match reply {
        HostReply::Fs(FsReply::Bytes(bytes)) => bytes.len(),
        HostReply::Fs(FsReply::Entries(entries)) => entries.iter().map(|entry| entry.name.len()).sum(),
        HostReply::Database(DatabaseReply::Rows { values, .. }) => values.iter().map(SqlValue::bytes).sum(),
        HostReply::Exec(reply) => reply.stdout.len() + reply.stderr.len(),
        HostReply::Http(HttpReply::Progress(progress)) => {
            let bytes = |one: &ExchangeProgress| match &one.progress {
                HttpProgress::Data(data) => data.len(),
                _ => 0,
            };
            progress.iter().map(bytes).sum()
        }
        HostReply::Module { .. }
        | HostReply::Compiled { .. }
        | HostReply::Fs(_)
        | HostReply::Http(HttpReply::Done)
        | HostReply::Database(_)
        | HostReply::Failed(_)
        | HostReply::Answer(_)
        | HostReply::Stdin(_) => 0,
    };
    bytes as u64
}

/// Bytes that a copy wrote; unknown until the copy is done.
fn copied_bytes(reply: &HostReply) -> u64 {
    if let HostReply::Fs(FsReply::Written(bytes)) = reply { *bytes } else { 0 }
}

/// Whether the error comes from a wall and not from the policy.
fn is_refusal(error: &HostError) -> bool {
    ["EACCES", "SQLITE_AUTH"].contains(&error.code.as_str())
}

/// Why events are refused.
pub(super) enum EventRefusal {
    /// No correct worker sends them.
    Forbidden(&'static str),
    /// The worker's own limit should have ended the execution before.
    TooMuch(LimitKind),
}

impl Running {
    /// Checks that a worker may send this many more events with this many bytes of text.
    pub(super) fn check_output_limits(&self, events: u64, bytes: u64) -> Result<(), EventRefusal> {
        let limits = &self.policy.wire.limits;
        // Events of this machine do not count: a script must not be ended for notes about its denied calls.
        let total = self.events().saturating_sub(self.output.own_events) + events;
        if total > u64::from(limits.max_events) + EVENTS_SLACK {
            return Err(EventRefusal::TooMuch(LimitKind::Events));
        }
        let bytes = self.output_bytes().saturating_sub(self.output.own_bytes).saturating_add(bytes);
        if bytes > u64::from(limits.max_output_kb) * 1024 + OUTPUT_SLACK_BYTES {
            return Err(EventRefusal::TooMuch(LimitKind::Output));
        }
        Ok(())
    }
}

/// Checks a batch before any of it is recorded.
pub(super) fn judge_events(running: &Running, events: &[WorkerEvent]) -> Result<(), EventRefusal> {
    let mut bytes = 0_u64;
    for event in events {
        match &event.payload {
            EventPayload::Exception { code: Some(code), .. } if !is_exception_code(code) => {
                return Err(EventRefusal::Forbidden("an exception with an invalid code"));
            }
            EventPayload::Console { .. } | EventPayload::Exception { .. } | EventPayload::System { .. } => {}
            EventPayload::Value(value) => {
                if value.json.as_ref().is_some_and(|json| !json.is_valid()) {
                    return Err(EventRefusal::Forbidden("invalid JSON in a value"));
                }
            }
            EventPayload::InputEcho { .. }
            | EventPayload::Stdout { .. }
            | EventPayload::Stderr { .. }
            | EventPayload::Http(_)
            | EventPayload::Task { .. } => {
                return Err(EventRefusal::Forbidden("an event of a kind that workers do not send"));
            }
        }
        bytes = bytes.saturating_add(event.payload.output_bytes());
    }
    running.check_output_limits(events.len() as u64, bytes)
}

pub(super) fn host_error(code: &str, message: &str) -> HostError {
    HostError { code: code.to_owned(), message: message.to_owned() }
}
