//! A driver: uses a few sessions, records the acknowledgements, and compares them with what is there at the end.

use crate::model::{Known, Step, StepReply, Strikes, Totals};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use vm_system_protocol::control::{
    DurableOp, ErrorCode, GivenAnswer, ListPage, NewSession, Op, OpError, Reply,
};
use vm_system_protocol::model::{Event, EventPayload, Execution, ExecutionStatus, Session, SessionStatus};
use vm_system_tests::SeededRandom;
use vm_system_tests::client::{repl, value};
use vm_system_tests::fragile::Fragile;
use vm_system_tests::watch::{self, Watch};

/// Sessions of a driver at a time.
const AT_A_TIME: usize = 3;
/// Code without an end, until it is cancelled.
const LOOP: &str = "for (;;);";
/// Executions of a session that are looked at.
const LIST: u32 = 1_000;

/// One driver.
pub(crate) struct Driver<'a> {
    name: u64,
    random: SeededRandom,
    client: Fragile,
    template: String,
    worktree: PathBuf,
    sent: Sender<()>,
    strikes: &'a Strikes,
    tokens: u64,
    known: Vec<Known>,
    totals: Totals,
}

/// A request without a result: the connection failed, or the session refused it.
#[derive(Debug)]
enum Failure {
    Connection,
    Refused(OpError),
}

type Outcome<T> = Result<T, Failure>;

impl<'a> Driver<'a> {
    pub(crate) fn new(
        name: u64,
        random: SeededRandom,
        socket: &Path,
        (template, worktree): (&str, &Path),
        sent: Sender<()>,
        strikes: &'a Strikes,
    ) -> Self {
        let (client, template, worktree) = (Fragile::new(socket), template.to_owned(), worktree.to_owned());
        let (known, totals) = (Vec::new(), Totals::default());
        Self { name, random, client, template, worktree, sent, strikes, tokens: 0, known, totals }
    }

    /// Uses sessions until `enough` is set, then compares all of them with the model.
    pub(crate) fn work(mut self, enough: &AtomicBool) -> Totals {
        while !enough.load(Ordering::Acquire) {
            if self.known.len() < AT_A_TIME {
                self.create();
            } else {
                let chosen = self.random.index(self.known.len());
                self.turn(chosen);
            }
            watch::moment();
        }
        for known in std::mem::take(&mut self.known) {
            self.compare(&known);
        }
        self.totals
    }

    fn request(&mut self, op: Op) -> Outcome<Reply> {
        let sent = || {
            // The receiver may be gone.
            let _ = self.sent.send(());
        };
        match self.client.op(op, sent) {
            Ok(result) => result.map_err(Failure::Refused),
            Err(_killed) => Err(Failure::Connection),
        }
    }

    /// Repeats a request until the daemon replies.
    fn patiently(&mut self, op: &Op) -> Result<Reply, OpError> {
        let mut watch = Watch::begin();
        loop {
            match self.request(op.clone()) {
                Ok(reply) => return Ok(reply),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Connection) => watch.pause(|| format!("no reply to {op:?}")),
            }
        }
    }

    fn token(&mut self) -> String {
        self.tokens += 1;
        format!("{}-{}", self.name, self.tokens)
    }

    /// The file to which all sessions of this driver append.
    fn file(&self) -> String {
        format!("file-{}", self.name)
    }

    fn create(&mut self) {
        let created_after = self.strikes.ended();
        let op = Op::SessionCreate(Box::new(NewSession {
            template: self.template.clone(),
            workspace_id: "tests".to_owned(),
            base_commit_oid: "none".to_owned(),
            worktree_path: self.worktree.to_string_lossy().into_owned(),
            as_user: None,
            name: None,
            ttl_s: None,
            idle_timeout_s: None,
        }));
        match self.request(op) {
            Ok(Reply::Session(session)) => self.add(*session, created_after, Vec::new()),
            Ok(other) => panic!("{other:?}"),
            Err(Failure::Connection) => {}
            // The zygote or the keeper was killed meanwhile.
            Err(Failure::Refused(error)) => {
                let expected =
                    [ErrorCode::CapacityExceeded, ErrorCode::SandboxUnavailable, ErrorCode::SessionNotReady];
                assert!(expected.contains(&error.code) && self.strikes.has_begun(), "{error:?}");
            }
        }
    }

    fn add(&mut self, session: Session, created_after: usize, steps: Vec<Step>) {
        self.totals.sessions += 1;
        self.known.push(Known { session, created_after, steps, is_closing: false });
    }

    fn turn(&mut self, chosen: usize) {
        let outcome = match self.random.below(16) {
            0..=5 => self.append(chosen, false),
            6..=8 => self.append(chosen, true),
            9 | 10 => self.question(chosen),
            11 | 12 => self.cancel(chosen),
            13 | 14 => self.fork(chosen),
            _ => self.close(chosen),
        };
        match outcome {
            Ok(()) | Err(Failure::Connection) => {}
            // The end of an earlier execution, of which the reply was lost.
            Err(Failure::Refused(error)) if error.code == ErrorCode::SessionBusy => self.settle(chosen),
            Err(Failure::Refused(error)) => {
                let about = format!("{error:?} of {:?}", self.known[chosen]);
                let session = self.known[chosen].session.clone();
                // Its end may not be stored yet.
                let is_over = |status| matches!(status, SessionStatus::Closed | SessionStatus::Crashed);
                watch::until(|| is_over(self.record(&session).status), || about.clone());
                let known = self.known.swap_remove(chosen);
                self.compare(&known);
            }
        }
    }

    fn record(&mut self, session: &Session) -> Session {
        match self.patiently(&Op::SessionGet { session: session.id.to_string() }) {
            Ok(Reply::Session(session)) => *session,
            other => panic!("{other:?}"),
        }
    }

    /// Notes how a step ended. One that did not run to its end appended its token or not.
    fn note(&mut self, chosen: usize, step: Step) {
        match step.reply {
            StepReply::Acknowledged(_) => self.totals.acknowledged += 1,
            StepReply::Unknown => self.totals.unknown += 1,
        }
        self.known[chosen].steps.push(step);
    }

    /// Prints some lines and appends a token, to a file first.
    fn append(&mut self, chosen: usize, to_file: bool) -> Outcome<()> {
        let (token, lines) = (self.token(), self.random.below(40));
        let file = self.file();
        let write = if to_file {
            format!("require('fs').appendFileSync('{file}', '{token}\\n');")
        } else {
            String::new()
        };
        let code = format!(
            "for (let line = 0; line < {lines}; line++) console.log(`{token} ${{line}}`);
             {write} (globalThis.tokens ??= []).push('{token}'); '{token}'"
        );
        let session = self.known[chosen].session.clone();
        let mut step = Step { token, lines, reply: StepReply::Unknown, to_file };
        match self.request(repl(&session, &code, true)) {
            Ok(Reply::Execution(execution)) => {
                if execution.status == ExecutionStatus::Ok {
                    assert_eq!(
                        value(execution.events.as_deref().unwrap_or_default()),
                        Some(&*format!("'{}'", step.token))
                    );
                    step.reply = StepReply::Acknowledged(Some(execution.id));
                } else {
                    self.failed(&execution, to_file);
                }
                self.note(chosen, step);
                Ok(())
            }
            Ok(other) => panic!("{other:?}"),
            Err(Failure::Connection) => {
                self.note(chosen, step);
                Err(Failure::Connection)
            }
            Err(refused) => Err(refused),
        }
    }

    /// An execution fails only because its worker or its broker was killed.
    fn failed(&self, execution: &Execution, to_file: bool) {
        let error = execution.error.as_ref().unwrap_or_else(|| panic!("no error: {execution:?}"));
        let is_worker = error.code == "WORKER_DIED";
        assert!((is_worker || to_file) && self.strikes.has_begun(), "{execution:?}");
    }

    /// Starts code that waits for a task, and answers it.
    fn question(&mut self, chosen: usize) -> Outcome<()> {
        let token = self.token();
        let code = format!("(globalThis.tokens ??= []).push('{token}' + CC('{token}')); '{token}'");
        let session = self.known[chosen].session.clone();
        match self.request(repl(&session, &code, false)) {
            Ok(Reply::Execution(_)) | Err(Failure::Connection) => {
                self.note(chosen, Step { token, lines: 0, reply: StepReply::Unknown, to_file: false });
                self.settle(chosen);
                Ok(())
            }
            Ok(other) => panic!("{other:?}"),
            Err(refused) => Err(refused),
        }
    }

    /// Starts code without an end, and cancels it.
    fn cancel(&mut self, chosen: usize) -> Outcome<()> {
        let session = self.known[chosen].session.clone();
        match self.request(repl(&session, LOOP, false)) {
            Ok(Reply::Execution(_)) | Err(Failure::Connection) => {
                self.settle(chosen);
                Ok(())
            }
            Ok(other) => panic!("{other:?}"),
            Err(refused) => Err(refused),
        }
    }

    /// Answers, cancels or waits for what runs in a session, until nothing does or the session has ended.
    fn settle(&mut self, chosen: usize) {
        let session = self.known[chosen].session.clone();
        let mut watch = Watch::begin();
        loop {
            let list = Op::ExecList { session: session.id.to_string(), page: ListPage::first(LIST) };
            let executions = match self.patiently(&list) {
                Ok(Reply::Executions(executions)) => executions,
                other => panic!("{other:?}"),
            };
            self.learn(chosen, &executions);
            let Some(running) = executions.iter().find(|execution| !execution.status.is_final()) else {
                return;
            };
            let execution = running.id.to_string();
            let is_loop = running.input.as_deref() == Some(LOOP);
            let op = match running.status {
                ExecutionStatus::Waiting => Op::Durable(DurableOp::TaskSubmit {
                    execution,
                    task: None,
                    result: GivenAnswer::Typed(String::new()),
                    wait: false,
                }),
                _ if is_loop => Op::ExecCancel { execution },
                _ => Op::ExecGet { execution },
            };
            // It may have ended meanwhile, or its session.
            let _ = self.request(op);
            watch.pause(|| format!("{running:?} does not end"));
        }
    }

    /// A question whose execution is stored as successful has been answered.
    fn learn(&mut self, chosen: usize, executions: &[Execution]) {
        for step in &mut self.known[chosen].steps {
            let is_this = |execution: &&Execution| {
                let wanted = format!("CC('{}')", step.token);
                execution.status == ExecutionStatus::Ok
                    && execution.input.as_ref().is_some_and(|input| input.contains(&wanted))
            };
            if step.reply == StepReply::Unknown
                && let Some(execution) = executions.iter().find(is_this)
            {
                step.reply = StepReply::Acknowledged(Some(execution.id));
                self.totals.acknowledged += 1;
                self.totals.unknown -= 1;
            }
        }
    }

    fn fork(&mut self, chosen: usize) -> Outcome<()> {
        let created_after = self.strikes.ended();
        let parent = self.known[chosen].session.id.to_string();
        match self.request(Op::SessionFork { session: parent, count: 1 }) {
            Ok(Reply::Sessions(mut forks)) => {
                let steps = self.known[chosen].inherited();
                self.totals.forks += 1;
                self.add(forks.remove(0), created_after, steps);
                // Not more at a time than before.
                self.close(chosen)
            }
            Ok(other) => panic!("{other:?}"),
            Err(Failure::Refused(error)) if error.code == ErrorCode::CapacityExceeded => {
                assert!(self.strikes.has_begun(), "{error:?}");
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    fn close(&mut self, chosen: usize) -> Outcome<()> {
        let session = self.known[chosen].session.id.to_string();
        match self.request(Op::SessionClose { session }) {
            Ok(_) => {
                let known = self.known.swap_remove(chosen);
                let record = self.record(&known.session);
                assert!(
                    matches!(record.status, SessionStatus::Closed | SessionStatus::Crashed),
                    "{record:?}"
                );
                self.compare(&known);
                Ok(())
            }
            Err(failure) => {
                self.known[chosen].is_closing = true;
                Err(failure)
            }
        }
    }

    /// Compares a session with the model: its state if it is ready, the reason of its end otherwise, and its records.
    fn compare(&mut self, known: &Known) {
        let record = self.record(&known.session);
        match record.status {
            SessionStatus::Ready | SessionStatus::Waiting | SessionStatus::Suspended => {
                self.totals.alive += 1;
                self.compare_state(known);
            }
            SessionStatus::Closed => {
                self.totals.ended += 1;
                // The worker may have been killed before it had carried out the order to exit.
                let reason = record.close_reason.as_deref().unwrap_or_default();
                let is_killed = self.strikes.reasons_since(known.created_after).contains(reason);
                assert!(reason == "exited" || is_killed, "{record:?}");
            }
            SessionStatus::Crashed => {
                self.totals.ended += 1;
                let reason = record.close_reason.as_deref().unwrap_or_default();
                let mut allowed = self.strikes.reasons_since(known.created_after);
                if known.is_closing {
                    // The worker received its order to exit, and the supervisor was killed.
                    allowed.insert("exited(0)");
                }
                assert!(allowed.contains(reason), "{reason} is none of {allowed:?}: {record:?}");
                assert!(record.closed_at.is_some() && record.last_error.is_some(), "{record:?}");
            }
            SessionStatus::Starting => panic!("nobody starts it: {record:?}"),
        }
        let file = std::fs::read_to_string(self.worktree.join(self.file())).unwrap_or_default();
        known.compare_file(&file);
        for step in &known.steps {
            if let StepReply::Acknowledged(Some(execution)) = &step.reply {
                self.compare_execution(&execution.to_string(), step);
            }
        }
    }

    fn compare_state(&mut self, known: &Known) {
        // What runs still is settled as during the work.
        self.known.push(known.clone());
        let last = self.known.len() - 1;
        self.settle(last);
        let settled = self.known.pop().expect("it was added");
        let mut watch = Watch::begin();
        loop {
            let op = repl(&known.session, "JSON.stringify(globalThis.tokens ?? [])", true);
            match self.patiently(&op) {
                Ok(Reply::Execution(execution)) if execution.status == ExecutionStatus::Ok => {
                    let text = execution.result.and_then(|result| result.json?.to_value()).expect("a value");
                    let text = text.as_str().expect("a text");
                    let tokens: Vec<String> = serde_json::from_str(text).expect("texts");
                    return settled.compare(&tokens);
                }
                // A session that could not be adopted at once.
                Err(error) if error.code == ErrorCode::SessionBusy => {}
                other => panic!("{other:?} of {known:?}"),
            }
            watch.pause(|| format!("busy: {known:?}"));
        }
    }

    fn compare_execution(&mut self, execution: &str, step: &Step) {
        let record = match self.patiently(&Op::ExecGet { execution: execution.to_owned() }) {
            Ok(Reply::Execution(record)) => record,
            other => panic!("{other:?}"),
        };
        assert_eq!((record.status, record.degraded), (ExecutionStatus::Ok, false), "{step:?}: {record:?}");
        let op = Op::ExecEvents { execution: execution.to_owned(), after_seq: 0, limit: 0, follow: false };
        let events: Vec<Event> = match self.patiently(&op) {
            Ok(Reply::Events(events)) => events,
            other => panic!("{other:?}"),
        };
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{step:?}");
        let lines: Vec<String> = events.iter().filter_map(console).collect();
        let expected: Vec<String> = (0..step.lines).map(|line| format!("{} {line}", step.token)).collect();
        assert_eq!(lines, expected);
        assert_eq!(value(&events), Some(&*format!("'{}'", step.token)));
    }
}

fn console(event: &Event) -> Option<String> {
    match &event.payload {
        EventPayload::Console { text, .. } => Some(text.clone()),
        _ => None,
    }
}
