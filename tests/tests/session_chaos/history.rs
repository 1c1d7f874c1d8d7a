//! The rows of a session in the database, and the state that follows from them.
//!
//! The order of executions, checkpoints, rollbacks and restarts is that of the session's events; what had to be there is known from
//! the acknowledgements. An execution that the database does not have, or whose record is incomplete, may have changed the state.

use crate::model::{Known, StepReply, Strikes};
use std::collections::{BTreeMap, BTreeSet};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::model::{Execution, ExecutionStatus, OnCrash, SessionEvent, SessionEventType};
use vm_system_tests::killer::Strike;

/// The records of a session.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) events: Vec<SessionEvent>,
    pub(crate) executions: Vec<Execution>,
}

/// Up to which event a state is computed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// The end of this execution.
    Ended(ExecutionId),
    /// This session was forked from it.
    Forked(SessionId),
}

/// The tokens that a state must have, in order, and those that it may have besides.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) tokens: Vec<String>,
    pub(crate) unknown: BTreeSet<String>,
}

/// The reason of a rollback after a crash, and what the state lacks.
fn crash_of(event: &SessionEvent) -> (&str, Option<&str>) {
    let detail = event.detail.as_deref().expect("a reason");
    detail.split_once("; ").map_or((detail, None), |(reason, lacks)| (reason, Some(lacks)))
}

/// The kills that end supervisors.
const SUPERVISORS: &[Strike] = &[Strike::Supervisor, Strike::Everything];

/// The checkpoint of a rollback that was requested.
fn checkpoint_of(event: &SessionEvent) -> Option<u64> {
    event.detail.as_deref()?.strip_prefix("checkpoint ")?.parse().ok()
}

impl Until {
    fn is(self, event: &SessionEvent) -> bool {
        match self {
            Self::Ended(id) => {
                event.kind == SessionEventType::ExecutionEnded && event.execution_id == Some(id)
            }
            Self::Forked(id) => event.kind == SessionEventType::Forked && event.other_session_id == Some(id),
        }
    }
}

impl History {
    fn of_kind(&self, kind: SessionEventType) -> impl Iterator<Item = &SessionEvent> {
        self.events.iter().filter(move |event| event.kind == kind)
    }

    /// Rollbacks and restarts after the end of a worker.
    pub(crate) fn recoveries(&self) -> usize {
        let rolled_back = self.of_kind(SessionEventType::RolledBack);
        let crashes = rolled_back.filter(|event| checkpoint_of(event).is_none()).count();
        crashes + self.of_kind(SessionEventType::Restarted).count()
    }

    /// The state of a session after an event.
    #[track_caller]
    pub(crate) fn state(&self, known: &Known, until: Until) -> Expected {
        let (effects, mut unknown) = self.effects(known);
        let mut tokens = known.base.clone();
        let mut checkpoints: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        let mut last_ended = None;
        for event in &self.events {
            match event.kind {
                SessionEventType::ExecutionEnded => {
                    last_ended = event.execution_id;
                    tokens.extend(event.execution_id.and_then(|id| effects.get(&id)).cloned());
                }
                SessionEventType::Checkpointed => {
                    let number = event.detail.as_deref().and_then(|detail| detail.parse().ok());
                    checkpoints.insert(number.expect("a number"), tokens.clone());
                }
                SessionEventType::RolledBack => {
                    if let Some(number) = checkpoint_of(event) {
                        tokens.clone_from(&checkpoints[&number]);
                    } else if let Some(lacks) = crash_of(event).1 {
                        // The worker exited before there was a copy with the effect of its last execution.
                        let lost = last_ended.and_then(|id| effects.get(&id));
                        tokens.retain(|token| Some(token) != lost);
                        let is_certain = last_ended.is_some_and(|id| lacks.contains(&id.to_string()));
                        unknown.extend(lost.filter(|_| !is_certain).cloned());
                    }
                }
                SessionEventType::Restarted => tokens.clear(),
                _ => {}
            }
            if until.is(event) {
                unknown.retain(|token| !tokens.contains(token));
                return Expected { tokens, unknown };
            }
        }
        panic!("no event of {until:?}: {self:#?}");
    }

    /// The tokens of successful executions, and those of steps whose effect is unknown.
    fn effects(&self, known: &Known) -> (BTreeMap<ExecutionId, String>, BTreeSet<String>) {
        let mut effects = BTreeMap::new();
        let mut unknown: BTreeSet<String> = known.steps.iter().map(|step| step.token.clone()).collect();
        for execution in &self.executions {
            let Some(step) = execution.input.as_deref().and_then(|code| known.step_of(code)) else {
                continue;
            };
            if execution.degraded {
                continue;
            }
            // One that failed, or whose worker ended, did not append its token.
            unknown.remove(&step.token);
            if execution.status == ExecutionStatus::Ok {
                effects.insert(execution.id, step.token.clone());
            }
        }
        unknown.extend(known.base_unknown.iter().cloned());
        (effects, unknown)
    }

    /// Compares the records with what was acknowledged.
    #[track_caller]
    pub(crate) fn compare(&self, known: &Known, strikes: &Strikes) {
        let numbers = self.events.iter().map(|event| event.seq);
        assert!(numbers.eq(1..=self.events.len() as u64), "{self:#?}");
        for step in &known.steps {
            if let StepReply::Acknowledged(id) = step.reply {
                let is_its_end = |event: &&SessionEvent| event.execution_id == Some(id);
                let ends: Vec<_> =
                    self.of_kind(SessionEventType::ExecutionEnded).filter(is_its_end).collect();
                assert!(
                    matches!(ends[..], [end] if end.detail.as_deref() == Some("ok")),
                    "{step:?}: {self:#?}"
                );
            }
        }
        self.compare_checkpoints(known);
        self.compare_rollbacks(known, strikes);
        for restart in self.of_kind(SessionEventType::Restarted) {
            let reason = restart.detail.as_deref().expect("a reason");
            assert_eq!(known.on_crash, OnCrash::Restart, "{self:#?}");
            let is_explained =
                known.closes_with(reason) || strikes.explain_restart(known.created_after, reason);
            assert!(is_explained, "{reason}: {self:#?}");
        }
    }

    #[track_caller]
    fn compare_checkpoints(&self, known: &Known) {
        let made = self.of_kind(SessionEventType::Checkpointed);
        let mut made: Vec<u64> = made.filter_map(|event| event.detail.as_deref()?.parse().ok()).collect();
        for number in &known.copies.made {
            let at = made.iter().position(|stored| stored == number);
            made.remove(at.unwrap_or_else(|| panic!("checkpoint {number} of {known:#?}: {self:#?}")));
        }
        assert!(made.len() <= known.copies.made_unknown, "{made:?} of {known:#?}: {self:#?}");
    }

    #[track_caller]
    fn compare_rollbacks(&self, known: &Known, strikes: &Strikes) {
        let mut requested = Vec::new();
        // The last one, until the session was ready again.
        let mut under_way = None;
        for event in &self.events {
            match (event.kind, checkpoint_of(event)) {
                (SessionEventType::Ready, _) => under_way = None,
                (SessionEventType::RolledBack, Some(number)) if under_way == Some(number) => {
                    // The next supervisor continues it.
                    assert!(strikes.any_since(known.created_after, SUPERVISORS), "{self:#?}");
                }
                (SessionEventType::RolledBack, Some(number)) => {
                    under_way = Some(number);
                    requested.push(number);
                }
                (SessionEventType::RolledBack, None) => {
                    let (reason, _) = crash_of(event);
                    assert_eq!(known.on_crash, OnCrash::Rollback, "{self:#?}");
                    let is_explained =
                        known.closes_with(reason) || strikes.explain(known.created_after, reason);
                    assert!(is_explained, "{reason}: {self:#?}");
                }
                _ => {}
            }
        }
        for number in &known.copies.rolled_back {
            let at = requested.iter().position(|stored| stored == number);
            requested.remove(at.unwrap_or_else(|| panic!("rollback to {number} of {known:#?}: {self:#?}")));
        }
        let mut unknown = known.copies.rolled_back_unknown.clone();
        for number in requested {
            let at = unknown.iter().position(|stored| *stored == number);
            unknown.remove(at.unwrap_or_else(|| panic!("rollback to {number} of {known:#?}: {self:#?}")));
        }
    }
}

impl Expected {
    /// Compares it with the tokens of a state.
    #[track_caller]
    pub(crate) fn compare(&self, tokens: &[String], known: &Known, history: &History) {
        let mut unknown = self.unknown.clone();
        let certain: Vec<&String> = tokens.iter().filter(|token| !unknown.remove(*token)).collect();
        let expected: Vec<&String> = self.tokens.iter().collect();
        assert_eq!(certain, expected, "{tokens:?}, {self:?}: {known:#?} {history:#?}");
    }
}
