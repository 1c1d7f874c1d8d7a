//! The current execution: its clock, its counters, and its dispatch to the worker.

use super::caller::Token;
use super::close::StopCause;
use super::deadlines::{CPU_SLACK_MS, HOST_CALL_MS, PROGRESS_MS};
use super::dispatch::Withheld;
use super::fork::Forking;
use super::input::{
    ExecuteRequest, Executed, LoadFailure, LoadedSource, Now, Refusal, SessionAction, Source,
};
use super::machine::{AdoptedExecution, SessionMachine};
use super::pending_task::PendingTask;
use super::phase::Phase;
use super::record::{Mark, Pending};
use super::type_check::is_checked;
use crate::source_format::run_file_format;
use std::collections::BTreeMap;
use std::sync::Arc;
use vm_system_policy::{EffectivePolicy, HostUsage};
use vm_system_protocol::control::{INTERACTIVE_INPUT, TYPESCRIPT_INPUT};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    ConsoleLevel, Event, EventPayload, Execution, ExecutionKind, ExecutionStatus, HttpRecord, Metrics,
    NoteCode,
};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{Execute, WorkerEvent};
use vm_system_record::{ItemRow, RepeatFacts, Write};

/// Events of one execution that are kept for its reply (bytes); more are read from the store.
const COLLECT_BYTES: u64 = 1024 * 1024;

/// Most events that a supervisor itself adds to an execution: reported denials, and a line per module.
const ADOPTED_OWN_EVENTS: u64 = 20;

/// The work that keeps the session busy.
#[derive(Debug)]
pub(super) enum Current {
    /// A file is being read; nothing is recorded yet.
    Loading(Box<Loading>),
    /// The worker has the execution.
    Running(Box<Running>),
    /// The worker forks.
    Forking(Box<Forking>),
}

/// A request and its rights.
#[derive(Debug)]
pub(super) struct ExecutionJob {
    /// The caller that waits; `None` for a startup file.
    pub(super) token: Option<Token<Executed>>,
    pub(super) request: Box<ExecuteRequest>,
    pub(super) policy: Arc<EffectivePolicy>,
}

/// A request with a file that is being read.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) job: ExecutionJob,
    /// The file must be read by then (`mono_ms`).
    pub(super) until: u64,
}

/// The wall clock of an execution, which is paused during host calls, except for those that wait for the standard input.
#[derive(Debug)]
pub(super) struct WallClock {
    /// Time left when the clock was last started (milliseconds).
    left_ms: u64,
    /// When the clock was last started (`mono_ms`); `None` while it is paused.
    since: Option<u64>,
    /// Total time of the pauses (milliseconds).
    waited_ms: u64,
}

impl WallClock {
    fn started(left_ms: u64, now: Now) -> Self {
        Self { left_ms, since: Some(now.mono_ms), waited_ms: 0 }
    }

    pub(super) fn pause(&mut self, now: Now) {
        if let Some(since) = self.since.take() {
            self.left_ms = self.left_ms.saturating_sub(now.mono_ms.saturating_sub(since));
        }
    }

    pub(super) fn go_on(&mut self, waited_ms: u64, now: Now) {
        self.waited_ms += waited_ms;
        self.since = Some(now.mono_ms);
    }

    /// Time left when the clock was last started (milliseconds).
    pub(super) fn left_ms(&self) -> u64 {
        self.left_ms
    }

    /// When the time is over (`mono_ms`), unless the clock is paused before.
    pub(super) fn runs_out(&self) -> Option<u64> {
        self.since.map(|since| since + self.left_ms)
    }
}

/// A host call without a reply yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostWait {
    pub(super) call: u64,
    pub(super) seq: u64,
    pub(super) since: u64,
    /// The module of the call; none for an imported file.
    pub(super) module: Option<&'static str>,
    /// The wall clock goes on, and is the call's only deadline: the script waits for its standard input.
    pub(super) on_wall_clock: bool,
}

/// How this machine ends an execution.
#[derive(Debug)]
pub(super) struct Stopping {
    /// The reason; none while the execution continues.
    pub(super) stop: Option<StopCause>,
    /// After a stop the execution must end by itself before this (`mono_ms`).
    pub(super) grace_until: Option<u64>,
    /// When the worker is interrupted again (`mono_ms`): a signal that arrives before the worker begins the execution is
    /// cleared by that beginning.
    pub(super) interrupt_again_at: u64,
}

/// Numbers and sizes of an execution's events.
#[derive(Debug)]
pub(super) struct OutputCounters {
    next_seq: u64,
    last_ts: i64,
    bytes: u64,
    /// Events that this machine added, and their bytes: the worker's limits do not count them.
    pub(super) own_events: u64,
    pub(super) own_bytes: u64,
}

/// The tasks of an execution.
#[derive(Debug, Default)]
pub(super) struct ExecutionTasks {
    /// The pending task; `host` is then the call that waits for its answer.
    pub(super) pending: Option<PendingTask>,
    /// Number of the last task.
    pub(super) count: u64,
    /// The last task as the previous supervisor left it.
    pub(super) known: Option<ItemRow>,
}

/// Lost writes of an execution.
#[derive(Debug, Default)]
pub(super) struct Loss {
    /// The store's error, once a write was lost.
    pub(super) lost: Option<String>,
    /// The write of the start was lost.
    pub(super) start_lost: bool,
}

/// An execution that the worker has.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) record: Arc<Execution>,
    /// The caller that gets the reply at its end.
    pub(super) token: Option<Token<Executed>>,
    pub(super) policy: Arc<EffectivePolicy>,
    pub(super) stopping: Stopping,
    pub(super) wall: WallClock,
    pub(super) host: Option<HostWait>,
    /// When to look at the CPU time (`mono_ms`).
    pub(super) cpu_check_at: u64,
    /// When its use of the limits is stored again (`mono_ms`).
    pub(super) progress_at: u64,
    pub(super) loss: Loss,
    /// Events for the response, in the batches in which they were stored, and their size (bytes).
    pub(super) collected: Option<(Vec<Arc<[Event]>>, u64)>,
    /// Use of the host modules.
    pub(super) usage: HostUsage,
    pub(super) output: OutputCounters,
    pub(super) tasks: ExecutionTasks,
    /// Stored for a repetition of its input.
    pub(super) facts: RepeatFacts,
    /// The worker does not have it yet.
    pub(super) withheld: Option<Box<Withheld>>,
    started: Now,
    /// Time since its start before this supervisor has taken it over (milliseconds), and the CPU time that was stored until then
    /// (microseconds).
    earlier_ms: u64,
    earlier_cpu_us: u64,
}

impl Running {
    fn new(job: &ExecutionJob, token: Option<Token<Executed>>, record: Arc<Execution>, now: Now) -> Self {
        let output =
            OutputCounters { next_seq: 1, last_ts: now.unix_ms, bytes: 0, own_events: 0, own_bytes: 0 };
        let mut running = Self::with_record(record, &job.policy, output, now);
        running.token = token;
        running.collected = job.request.collect_events.then(|| (Vec::new(), 0));
        running
    }

    /// An execution that the worker continued while no supervisor was connected. What it used since its use was last stored is unknown
    /// and counts only for the worker's own limits: at most [`PROGRESS_MS`] and the time without a supervisor.
    pub(super) fn adopted(AdoptedExecution { row, policy }: AdoptedExecution, now: Now) -> Self {
        let output = OutputCounters {
            next_seq: row.events + 1,
            last_ts: row.last_event_at.0,
            bytes: row.output_bytes,
            // How many stored events the previous supervisor added is unknown.
            own_events: ADOPTED_OWN_EVENTS.min(row.events),
            own_bytes: 0,
        };
        let started = Now { unix_ms: row.execution.started_at.0, ..now };
        let mut running = Self::with_record(Arc::new(row.execution), &policy, output, now);
        let stored = running.record.metrics;
        // The calendar may have jumped meanwhile: no limit depends on it.
        let by_calendar = u64::try_from(now.unix_ms.saturating_sub(started.unix_ms)).unwrap_or(0);
        let used_ms = stored.duration_ms.saturating_sub(stored.host_wait_ms);
        running.earlier_ms = by_calendar.max(stored.duration_ms);
        running.earlier_cpu_us = stored.cpu_ms.saturating_mul(1_000);
        running.wall.left_ms = running.wall.left_ms.saturating_sub(used_ms);
        running.wall.waited_ms = running.earlier_ms - used_ms;
        running.cpu_check_at = running.cpu_check_at.saturating_sub(stored.cpu_ms).max(now.mono_ms);
        running.started = started;
        running.tasks.count = row.task.as_ref().map_or(0, |task| task.checkpoint);
        running.tasks.known = row.task;
        running
    }

    fn with_record(
        record: Arc<Execution>,
        policy: &Arc<EffectivePolicy>,
        output: OutputCounters,
        now: Now,
    ) -> Self {
        let limits = &policy.wire.limits;
        Self {
            record,
            token: None,
            policy: Arc::clone(policy),
            stopping: Stopping { stop: None, grace_until: None, interrupt_again_at: u64::MAX },
            wall: WallClock::started(u64::from(limits.wall_ms), now),
            host: None,
            cpu_check_at: now.mono_ms + u64::from(limits.cpu_ms) + CPU_SLACK_MS,
            progress_at: now.mono_ms + PROGRESS_MS,
            loss: Loss::default(),
            collected: None,
            usage: HostUsage::default(),
            output,
            tasks: ExecutionTasks::default(),
            facts: RepeatFacts::default(),
            withheld: None,
            started: now,
            earlier_ms: 0,
            earlier_cpu_us: 0,
        }
    }

    /// The worker gets it now: its clocks begin, and its CPU time.
    pub(super) fn begins_now(&mut self, now: Now) {
        let limits = &self.policy.wire.limits;
        self.wall = WallClock::started(u64::from(limits.wall_ms), now);
        self.cpu_check_at = now.mono_ms + u64::from(limits.cpu_ms) + CPU_SLACK_MS;
        self.progress_at = now.mono_ms + PROGRESS_MS;
        self.started = now;
    }

    pub(super) fn id(&self) -> ExecutionId {
        self.record.id
    }

    /// CPU time used so far (microseconds), from the kernel.
    pub(super) fn cpu_us(&self, now: Now) -> u64 {
        self.earlier_cpu_us.saturating_add(now.cpu_us.saturating_sub(self.started.cpu_us))
    }

    /// Numbers an event and counts it.
    pub(super) fn number(&mut self, ts: i64, payload: EventPayload) -> Event {
        self.output.last_ts = self.output.last_ts.max(ts);
        self.output.bytes = self.output.bytes.saturating_add(payload.output_bytes());
        let event = Event {
            execution_id: self.id(),
            seq: self.output.next_seq,
            ts: Timestamp(self.output.last_ts),
            payload,
        };
        self.output.next_seq += 1;
        event
    }

    /// An event that this machine adds to a running execution.
    pub(super) fn number_own(
        &mut self,
        message: String,
        (level, code): (ConsoleLevel, Option<NoteCode>),
        now: Now,
    ) -> Event {
        self.output.own_events += 1;
        self.output.own_bytes += message.len() as u64;
        self.number(now.unix_ms, EventPayload::System { message, level, code })
    }

    /// The event of an HTTP request that has ended.
    pub(super) fn number_http(&mut self, record: HttpRecord, now: Now) -> Event {
        let payload = EventPayload::Http(Box::new(record));
        self.output.own_events += 1;
        self.output.own_bytes += payload.output_bytes();
        self.number(now.unix_ms, payload)
    }

    /// Numbers a worker's events. Their times are the worker's, clamped to between the last event and now.
    pub(super) fn number_all(&mut self, events: Vec<WorkerEvent>, now: Now) -> Vec<Event> {
        events
            .into_iter()
            .map(|event| {
                let offset_ms = i64::try_from(event.at_us / 1_000).unwrap_or(i64::MAX);
                let reported_at = self.started.unix_ms.saturating_add(offset_ms);
                self.number(reported_at.min(now.unix_ms), event.payload)
            })
            .collect()
    }

    /// Keeps a batch for the response, up to [`COLLECT_BYTES`].
    pub(super) fn collect(&mut self, batch: &Arc<[Event]>) {
        let Some((collected, bytes)) = &mut self.collected else { return };
        *bytes += batch.iter().map(|event| event.payload.output_bytes() + 64).sum::<u64>();
        if *bytes > COLLECT_BYTES {
            self.collected = None;
        } else {
            collected.push(Arc::clone(batch));
        }
    }

    /// Events numbered so far.
    pub(super) fn events(&self) -> u64 {
        self.output.next_seq - 1
    }

    /// Size of these events (bytes).
    pub(super) fn output_bytes(&self) -> u64 {
        self.output.bytes
    }

    /// The end time: never before the last event.
    pub(super) fn ended_at(&self, now: Now) -> Timestamp {
        Timestamp(now.unix_ms.max(self.output.last_ts))
    }

    pub(super) fn metrics(&self, now: Now, heap_peak_bytes: u64) -> Metrics {
        Metrics {
            duration_ms: self.earlier_ms + now.mono_ms.saturating_sub(self.started.mono_ms),
            cpu_ms: self.cpu_us(now) / 1_000,
            host_wait_ms: self.wall.waited_ms,
            events: self.events(),
            output_bytes: self.output.bytes,
            heap_peak_bytes,
        }
    }
}

impl SessionMachine {
    /// Begins a client's request, unless there is a refusal by the rule for its kind. The guard copy comes first: it must not have
    /// anything of the execution.
    pub(super) fn execute(
        &mut self,
        job: ExecutionJob,
        refusal: Option<Refusal>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if let Some(refusal) = refusal.or_else(|| self.ledger.refuses_more().map(Refusal::Storage)) {
            // Not `abandon`: another execution may be under way, and the session is not idle then.
            return job.token.into_iter().for_each(|token| Self::reply(token, Err(refusal.clone()), out));
        }
        if self.lacks_guard() {
            return self.make_guard(Some(job), now, out);
        }
        self.begin(job, now, out);
    }

    /// Begins a request: loads its file, or runs its text.
    pub(super) fn begin(&mut self, mut job: ExecutionJob, now: Now, out: &mut Vec<SessionAction>) {
        self.timers.idle_at = None;
        match &mut job.request.source {
            Source::Text { text, file_name, format } => {
                let (text, file_name) = (std::mem::take(text), std::mem::take(file_name));
                let format = format.unwrap_or_else(|| run_file_format(&file_name, job.policy.esm));
                self.run(job, file_name, LoadedSource { text, format }, now, out);
            }
            Source::File { path, format } => {
                out.push(SessionAction::LoadSource {
                    execution: job.request.id,
                    path: path.clone(),
                    format: *format,
                    policy: Arc::clone(&job.policy),
                });
                let until = now.mono_ms + HOST_CALL_MS;
                self.current = Some(Current::Loading(Box::new(Loading { job, until })));
            }
        }
    }

    pub(super) fn source_loaded(
        &mut self,
        execution: ExecutionId,
        result: Result<LoadedSource, LoadFailure>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let Some(Current::Loading(loading)) = &self.current else { return };
        if loading.job.request.id != execution || !self.channel_usable() {
            return;
        }
        let Some(Current::Loading(loading)) = self.current.take() else { return };
        let Loading { job, .. } = *loading;
        match (result, &job.request.source) {
            (Ok(source), Source::File { path, .. }) => {
                let file_name = path.clone();
                self.run(job, file_name, source, now, out);
            }
            (Ok(_), Source::Text { .. }) => {}
            (Err(failure), _) => self.abandon(&job, Refusal::Load(failure), now, out),
        }
    }

    /// Ends a request that never ran: replies with the error, records nothing. A startup file that fails ends its session.
    pub(super) fn abandon(
        &mut self,
        job: &ExecutionJob,
        why: Refusal,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        match job.token {
            Some(token) => {
                Self::reply(token, Err(why), out);
                self.rest(now);
            }
            None if self.ending.verdict.is_none() && self.phase() == Phase::Starting => {
                let what = format!("{}: {why}", file_of(&job.request.source));
                self.condemn(vm_system_protocol::reason::CloseReason::StartupFailed(what), now, out);
            }
            None => {}
        }
    }

    fn run(
        &mut self,
        mut job: ExecutionJob,
        file_name: String,
        LoadedSource { text, format }: LoadedSource,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let limit_kb = job.policy.wire.limits.max_source_kb;
        // Checked here and not by the caller: only now the text of a file is known.
        if text.len() as u64 > u64::from(limit_kb) * 1024 {
            let refusal = Refusal::SourceTooLarge { size_bytes: text.len() as u64, limit_kb };
            return self.abandon(&job, refusal, now, out);
        }
        let facts = facts_of(&job.request, &file_name);
        let (token, request) = (job.token, &mut job.request);
        let is_repl = request.kind == ExecutionKind::Repl;
        let record = Arc::new(Execution {
            id: request.id,
            session_id: self.id(),
            kind: request.kind,
            input: is_repl.then(|| text.clone()),
            path: (!is_repl).then(|| file_name.clone()),
            args: std::mem::replace(&mut request.recorded_args, JsonText::empty_object()),
            env: std::mem::replace(&mut request.recorded_env, JsonText::empty_object()),
            status: ExecutionStatus::Running,
            started_at: Timestamp(now.unix_ms),
            ended_at: None,
            result: None,
            error: None,
            metrics: Metrics::default(),
            degraded: false,
            events: None,
            owner: None,
        });
        // One reply for each caller: at the start or at the end, never both.
        let (at_start, at_end) = if request.wait { (None, token) } else { (token, None) };
        let mut running = Running::new(&job, at_end, Arc::clone(&record), now);
        let mut batch = vec![Write::ExecutionStarted { name: None, execution: Arc::clone(&record) }];
        running.facts = facts;
        if !running.facts.is_empty() {
            batch.push(Write::ExecutionFacts { id: running.id(), facts: running.facts });
        }
        let mut pending = Pending {
            execution: Some(running.id()),
            mark: Mark::Started { token: at_start, record },
            ..Pending::default()
        };
        let echo =
            // The echo is event 1: the events alone show a session as its user saw it.
            is_repl.then(|| running.number(now.unix_ms, EventPayload::InputEcho { text: text.clone() }));
        let lost = if job.request.kind == ExecutionKind::Startup { None } else { self.restart_reported() };
        let warning = lost.map(|reason| {
            batch.push(self.facts_write());
            running.number_own(super::restart::warning(&reason), (ConsoleLevel::Warn, None), now)
        });
        if echo.is_some() || warning.is_some() {
            let events: Arc<[Event]> = echo.into_iter().chain(warning).collect();
            running.collect(&events);
            batch.push(Write::Events(Arc::clone(&events)));
            pending.publish = Some(events);
        }
        let request = job.request;
        // Urgent if a caller waits for the start. Otherwise the end, which is urgent, takes it along: one commit for a short execution.
        let write = self.persist(pending, batch, !request.wait || request.stored_first, out);
        let checking = is_checked(&request, format, &job.policy);
        let argv = ["vm-system", &file_name].map(str::to_owned).into_iter();
        let argv = argv.chain(request.argv).collect();
        let execute = Execute {
            execution: running.id(),
            kind: request.kind,
            source: text,
            file_name,
            format,
            args: request.args,
            env: merged(&job.policy.env, request.env),
            argv,
            policy: job.policy.wire.clone(),
        };
        if checking {
            let (execution, policy) = (running.id(), Arc::clone(&running.policy));
            let (path, text) = (execute.file_name.clone(), execute.source.clone());
            out.push(SessionAction::CheckTypes { execution, path, text, policy });
        }
        // Withheld: a client that repeats its request, or the checker's refusal, must find an execution of which nothing ran.
        if request.stored_first || checking {
            let write = request.stored_first.then_some(write);
            running.withheld = Some(Box::new(Withheld { write, checking, execute }));
        } else {
            self.dispatch(&running, execute, now, out);
        }
        self.current = Some(Current::Running(Box::new(running)));
    }

    pub(super) fn not_ready_because(&self) -> String {
        match (&self.record.close_reason, &self.ending.verdict, self.ending.closing) {
            (Some(reason), _, _) => format!("it is {} ({reason})", self.record.status),
            (None, Some(verdict), _) => format!("it is being ended ({verdict})"),
            (None, None, Some(_)) => "it is closing".to_owned(),
            (None, None, None) if self.is_restoration => {
                "inputs of the session that it restores are being repeated".to_owned()
            }
            (None, None, None) if self.is_restarting() => self.restarting_because(),
            (None, None, None) if self.generation() > 1 || self.phase() == Phase::Restoring => {
                "it is being rolled back".to_owned()
            }
            (None, None, None) => "it is starting".to_owned(),
        }
    }
}

/// The client's variables over those of the policy.
fn merged(granted: &[(String, String)], given: Vec<(String, String)>) -> Vec<(String, String)> {
    if granted.is_empty() {
        return given;
    }
    let mut all: BTreeMap<String, String> = granted.iter().cloned().collect();
    all.extend(given);
    all.into_iter().collect()
}

/// The facts that the record of a request does not have.
fn facts_of(request: &ExecuteRequest, file_name: &str) -> RepeatFacts {
    let mut facts = RepeatFacts::default();
    if !request.argv.is_empty() {
        facts.add(RepeatFacts::ARGV);
    }
    match (request.kind, &request.source) {
        (ExecutionKind::Repl, _) if file_name == INTERACTIVE_INPUT => {
            facts.add(RepeatFacts::INTERACTIVE);
        }
        (ExecutionKind::Repl, _) if file_name == TYPESCRIPT_INPUT => {
            facts.add(RepeatFacts::TYPESCRIPT);
        }
        (ExecutionKind::RunFile, Source::Text { .. }) => {
            facts.add(RepeatFacts::SENT_SOURCE);
        }
        _ => {}
    }
    facts
}

/// The name of a source in messages.
fn file_of(source: &Source) -> &str {
    match source {
        Source::File { path, .. } => path,
        Source::Text { file_name, .. } => file_name,
    }
}
