//! What is known of sessions: which code was acknowledged, which may have run, and what was killed meanwhile.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::Session;
use vm_system_tests::killer::Strike;

/// All strikes so far, in order. The last one may be under way.
#[derive(Debug, Default)]
pub(crate) struct Strikes {
    begun: Mutex<Vec<Strike>>,
    ended: AtomicUsize,
}

impl Strikes {
    /// Carries one out.
    pub(crate) fn during(&self, strike: Strike, action: impl FnOnce()) {
        // Before it: a driver may see its effect at once.
        self.begun().push(strike);
        action();
        self.ended.fetch_add(1, Ordering::Release);
    }

    /// How many are over.
    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn has_begun(&self) -> bool {
        !self.begun().is_empty()
    }

    fn begun(&self) -> MutexGuard<'_, Vec<Strike>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reasons with which a session may have ended that was created when so many strikes were over.
    pub(crate) fn reasons_since(&self, created_after: usize) -> BTreeSet<&'static str> {
        let strikes = self.begun();
        let mut reasons = BTreeSet::new();
        for strike in &strikes[created_after..] {
            reasons.extend(match strike {
                Strike::Worker => ["signal(SIGKILL)"].iter(),
                Strike::Keeper => ["keeper_lost"].iter(),
                Strike::Everything => ["host_restart", "keeper_lost", "signal(SIGKILL)"].iter(),
                // The keeper ended, and the supervisor before it had stored that.
                Strike::Supervisor if strikes[created_after..].contains(&Strike::Keeper) => {
                    ["host_restart"].iter()
                }
                _ => [].iter(),
            });
        }
        reasons
    }
}

/// What a driver did.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) sessions: u32,
    pub(crate) forks: u32,
    pub(crate) acknowledged: u32,
    pub(crate) unknown: u32,
    pub(crate) alive: u32,
    pub(crate) ended: u32,
}

/// What was acknowledged of one piece of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepReply {
    /// It ran to its end; its execution, if this session ran it, and not the one that it was forked from.
    Acknowledged(Option<ExecutionId>),
    /// The connection failed: it ran once or not at all.
    Unknown,
}

/// One piece of code: it appends its token to the state of the session.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) token: String,
    /// Lines that it prints.
    pub(crate) lines: u64,
    pub(crate) reply: StepReply,
    /// It appends its token to the file first.
    pub(crate) to_file: bool,
}

/// A session, as far as its driver knows.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) session: Session,
    /// How many strikes were over before its creation.
    pub(crate) created_after: usize,
    pub(crate) steps: Vec<Step>,
    /// Its end was requested; the connection failed.
    pub(crate) is_closing: bool,
}

impl Known {
    /// The steps of a fork: what its parent has.
    pub(crate) fn inherited(&self) -> Vec<Step> {
        let mut steps = self.steps.clone();
        for step in &mut steps {
            if let StepReply::Acknowledged(execution) = &mut step.reply {
                *execution = None;
            }
        }
        steps
    }

    /// Compares the tokens in the state of the session with the steps.
    #[track_caller]
    pub(crate) fn compare(&self, tokens: &[String]) {
        let mut place = 0;
        for step in &self.steps {
            let is_here = tokens.get(place) == Some(&step.token);
            let is_certain = matches!(step.reply, StepReply::Acknowledged(_));
            assert!(is_here || !is_certain, "{} is not at {place} of {tokens:?}: {self:#?}", step.token);
            place += usize::from(is_here);
        }
        assert_eq!(place, tokens.len(), "{tokens:?}: {self:#?}");
    }

    /// Compares the lines of a file, to which this session and those that it was forked from wrote, with the steps.
    #[track_caller]
    pub(crate) fn compare_file(&self, text: &str) {
        for step in self.steps.iter().filter(|step| step.to_file) {
            let count = text.lines().filter(|line| *line == step.token).count();
            let is_certain = matches!(step.reply, StepReply::Acknowledged(_));
            assert!(
                count <= 1 && (count == 1 || !is_certain),
                "{} is there {count} times: {text:?}",
                step.token
            );
        }
    }
}
