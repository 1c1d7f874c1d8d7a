//! A driver: uses a few sessions and records the acknowledgements. [`super::compare`] compares them with what is there.

use crate::follower::LateFollower;
use crate::model::{CopyRequests, Known, Step, StepReply, Strikes, Totals};
use crate::steps::LOOP;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use vm_system_protocol::control::{
    ErrorCode, ExecCancel, ExecGet, ExecList, GivenAnswer, ListPage, OpError, SessionClose, SessionCreate,
    SessionGet, TaskSubmit, Verb,
};
use vm_system_protocol::model::{Execution, ExecutionStatus, OnCrash, Session, SessionStatus};
use vm_system_tests::SeededRandom;
use vm_system_tests::fragile::Fragile;
use vm_system_tests::killer::Strike;
use vm_system_tests::watch::{self, Watch};

/// Sessions of a driver at a time.
const AT_A_TIME: usize = 3;
/// Executions of a session that are looked at.
const LIST: u32 = 1_000;

/// Any of them.
pub(crate) const ANY: &[Strike] = &[
    Strike::Worker,
    Strike::Zygote,
    Strike::Broker,
    Strike::Keeper,
    Strike::Supervisor,
    Strike::Everything,
    Strike::Stop,
    Strike::FullDisk,
];

/// Where a driver works.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) socket: PathBuf,
    pub(crate) worktree: PathBuf,
    /// A template for each way to continue after a crash.
    pub(crate) templates: Vec<(OnCrash, String)>,
}

/// One driver.
pub(crate) struct Driver<'a> {
    name: u64,
    pub(crate) random: SeededRandom,
    client: Fragile,
    pub(crate) site: &'a Site,
    sent: Sender<()>,
    pub(crate) strikes: &'a Strikes,
    tokens: u64,
    pub(crate) known: Vec<Known>,
    pub(crate) follower: Option<LateFollower>,
    pub(crate) totals: Totals,
}

/// A request without a result: the connection failed, or the session refused it.
#[derive(Debug)]
pub(crate) enum Failure {
    Connection,
    Refused(OpError),
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl<'a> Driver<'a> {
    pub(crate) fn new(
        name: u64,
        random: SeededRandom,
        site: &'a Site,
        sent: Sender<()>,
        strikes: &'a Strikes,
    ) -> Self {
        let (client, known, totals) = (Fragile::new(&site.socket), Vec::new(), Totals::default());
        Self { name, random, client, site, sent, strikes, tokens: 0, known, follower: None, totals }
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
        self.read_late();
        for known in std::mem::take(&mut self.known) {
            self.compare(&known);
        }
        self.totals
    }

    pub(crate) fn request<V: Verb>(&mut self, verb: V) -> Outcome<V::Reply> {
        let sent = || {
            // The receiver may be gone.
            let _ = self.sent.send(());
        };
        match self.client.op(verb, sent) {
            Ok(Err(error)) if error.code == ErrorCode::StorageUnavailable => {
                assert!(self.strikes.any_since(0, &[Strike::FullDisk]), "{error:?}");
                self.totals.unstored += 1;
                Err(Failure::Refused(error))
            }
            Ok(result) => result.map_err(Failure::Refused),
            Err(_killed) => Err(Failure::Connection),
        }
    }

    /// Repeats a request until the daemon replies.
    pub(crate) fn patiently<V: Verb + Clone>(&mut self, verb: &V) -> Result<V::Reply, OpError> {
        let mut watch = Watch::begin();
        loop {
            match self.request(verb.clone()) {
                Ok(reply) => return Ok(reply),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Connection) => watch.pause(|| format!("no reply to {}", V::NAME)),
            }
        }
    }

    pub(crate) fn token(&mut self) -> String {
        self.tokens += 1;
        format!("{}-{}", self.name, self.tokens)
    }

    /// The file to which all sessions of this driver append.
    pub(crate) fn file(&self) -> String {
        format!("file-{}", self.name)
    }

    fn create(&mut self) {
        let created_after = self.strikes.ended();
        let (on_crash, template) = self.site.templates[self.random.index(self.site.templates.len())].clone();
        let op = SessionCreate {
            template,
            workspace_id: "tests".to_owned(),
            base_commit_oid: "none".to_owned(),
            worktree_path: self.site.worktree.to_string_lossy().into_owned(),
            as_user: None,
            name: None,
            ttl_s: None,
            idle_timeout_s: None,
        };
        match self.request(op) {
            Ok(session) => {
                self.add(session, on_crash, created_after, (Vec::new(), BTreeSet::new()));
            }
            Err(Failure::Connection) => {}
            Err(Failure::Refused(error)) if error.code == ErrorCode::StorageUnavailable => {}
            // The zygote or the keeper was killed meanwhile.
            Err(Failure::Refused(error)) => {
                let expected =
                    [ErrorCode::CapacityExceeded, ErrorCode::SandboxUnavailable, ErrorCode::SessionNotReady];
                assert!(expected.contains(&error.code) && self.strikes.any_since(0, ANY), "{error:?}");
            }
        }
    }

    pub(crate) fn add(
        &mut self,
        session: Session,
        on_crash: OnCrash,
        created_after: usize,
        (base, base_unknown): (Vec<String>, BTreeSet<String>),
    ) {
        self.totals.sessions += 1;
        let (steps, copies) = (Vec::new(), CopyRequests::default());
        self.known.push(Known {
            session,
            on_crash,
            created_after,
            base,
            base_unknown,
            steps,
            copies,
            is_closing: false,
        });
    }

    fn turn(&mut self, chosen: usize) {
        let outcome = match self.random.below(20) {
            0..=4 => self.append(chosen, false),
            5..=7 => self.append(chosen, true),
            8 => self.question(chosen),
            9 => self.cancel(chosen),
            10 => self.fork(chosen),
            11 | 12 => self.look(chosen).map(|_| ()),
            13 => self.checkpoint(chosen),
            14..=17 => self.roll_back(chosen),
            18 => self.follow(chosen),
            _ => self.look(chosen).and_then(|_| self.close(chosen)),
        };
        let refused = match outcome {
            Ok(()) | Err(Failure::Connection) => return,
            Err(Failure::Refused(error)) => error,
        };
        match refused.code {
            ErrorCode::StorageUnavailable => {}
            // The end of an earlier execution, of which the reply was lost.
            ErrorCode::SessionBusy => self.settle(chosen),
            _ => {
                let record = self.settled_record(chosen);
                if matches!(record.status, SessionStatus::Closed | SessionStatus::Crashed) {
                    let known = self.known.swap_remove(chosen);
                    self.compare(&known);
                } else {
                    let known = &self.known[chosen];
                    // The session's worker may have ended before it was forked.
                    let codes = [ErrorCode::SessionNotReady, ErrorCode::CapacityExceeded];
                    let was_replaced = codes.contains(&refused.code);
                    assert!(was_replaced && !known.never_continues(), "{refused:?} of {known:#?}");
                }
            }
        }
    }

    /// The record of a session that refused a request: it has ended, or continues with another worker.
    fn settled_record(&mut self, chosen: usize) -> Session {
        let known = self.known[chosen].clone();
        let mut watch = Watch::begin();
        loop {
            let record = self.record(&known.session);
            let continues = record.status != SessionStatus::Starting && !known.never_continues();
            if continues || matches!(record.status, SessionStatus::Closed | SessionStatus::Crashed) {
                return record;
            }
            // The execution's end may not be stored yet.
            watch.pause(|| format!("{record:?} of {known:#?}"));
        }
    }

    pub(crate) fn record(&mut self, session: &Session) -> Session {
        match self.patiently(&SessionGet { session: session.id.to_string() }) {
            Ok(session) => session,
            other => panic!("{other:?}"),
        }
    }

    /// Notes how a step ended. One that did not run to its end appended its token or not.
    pub(crate) fn note(&mut self, chosen: usize, step: Step) {
        match step.reply {
            StepReply::Acknowledged(_) => self.totals.acknowledged += 1,
            StepReply::Unknown => self.totals.unknown += 1,
        }
        self.known[chosen].steps.push(step);
    }

    /// Answers, cancels or waits for what runs in a session, until nothing does or the session has ended.
    pub(crate) fn settle(&mut self, chosen: usize) {
        let session = self.known[chosen].session.clone();
        let mut watch = Watch::begin();
        loop {
            let list = ExecList::all(session.id.to_string(), ListPage::first(LIST));
            let executions = match self.patiently(&list) {
                Ok(executions) => executions,
                other => panic!("{other:?}"),
            };
            self.learn(chosen, &executions);
            let Some(running) = executions.iter().find(|execution| !execution.status.is_final()) else {
                return;
            };
            let execution = running.id.to_string();
            let is_loop = running.input.as_deref() == Some(LOOP);
            // It may have ended meanwhile, or its session.
            match running.status {
                ExecutionStatus::Waiting => {
                    let result = GivenAnswer::Typed(String::new());
                    drop(self.request(TaskSubmit { execution, task: None, result, wait: false }));
                }
                _ if is_loop => drop(self.request(ExecCancel { execution })),
                _ => drop(self.request(ExecGet { execution })),
            }
            watch.pause(|| format!("{running:?} does not end"));
        }
    }

    /// An execution that is stored as successful has done what it was to do, whether its reply arrived or not.
    fn learn(&mut self, chosen: usize, executions: &[Execution]) {
        for step in &mut self.known[chosen].steps {
            let is_this = |execution: &&Execution| {
                execution.status == ExecutionStatus::Ok
                    && !execution.degraded
                    && execution.input.as_deref() == Some(&*step.code)
            };
            if step.reply == StepReply::Unknown
                && let Some(execution) = executions.iter().find(is_this)
            {
                step.reply = StepReply::Acknowledged(execution.id);
                self.totals.acknowledged += 1;
                self.totals.unknown -= 1;
            }
        }
    }

    pub(crate) fn close(&mut self, chosen: usize) -> Outcome<()> {
        let session = self.known[chosen].session.id.to_string();
        match self.request(SessionClose { session }) {
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
                self.known[chosen].is_closing |= failure.may_have_happened();
                Err(failure)
            }
        }
    }
}

impl Failure {
    /// Whether the request may have been carried out: its reply was lost, or its record.
    pub(crate) fn may_have_happened(&self) -> bool {
        match self {
            Self::Connection => true,
            Self::Refused(error) => error.code == ErrorCode::StorageUnavailable,
        }
    }
}
