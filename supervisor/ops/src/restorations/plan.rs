//! The inputs that a restoration repeats, in order: what the events of the ended session's life say, and of the sessions that it is a
//! fork of. A rollback takes away the inputs behind its checkpoint, and a restart all of them.

use super::{incomplete, too_many};
use crate::errors::stored;
use std::collections::HashMap;
use vm_system_protocol::control::OpError;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::model::{ExecutionKind, SessionEvent, SessionEventType};
use vm_system_record::{Scope, SessionRow};
use vm_system_store::StoreHandle;

/// Most inputs of a restoration.
const INPUTS: usize = 100_000;
/// Most inputs that are read, with those that a rollback or a restart has taken away.
const INPUTS_EVER: usize = 1_000_000;
/// Longest line of forks.
const FORKS_DEEP: usize = 64;
/// Events that are read at a time.
const EVENTS: u32 = 1_000;

const DELETED: &str = "the record of its first inputs was deleted";
const NO_RECORD: &str = "it never became ready, or the order of its inputs was not recorded yet";

/// The executions to repeat.
#[derive(Debug, Default)]
pub(super) struct RepeatedInputs {
    pub(super) inputs: Vec<ExecutionId>,
    /// Executions that did not end `ok`.
    pub(super) not_repeated: u64,
}

/// The inputs of a session and of the sessions that it is a fork of. Each one follows another one, and several may follow the same: a
/// session may return to a checkpoint that is older or newer than its state.
#[derive(Debug, Default)]
struct InputHistory {
    inputs: Vec<RecordedInput>,
    /// The last one whose effects the session's state has.
    last: Option<usize>,
    not_repeated: u64,
}

#[derive(Debug)]
struct RecordedInput {
    execution: ExecutionId,
    before: Option<usize>,
}

impl RepeatedInputs {
    /// Finds out whether there is a complete record, as far as the first events show; inside: why not.
    pub(super) async fn is_possible(
        store: &StoreHandle,
        session: SessionId,
    ) -> Result<Result<(), &'static str>, OpError> {
        let events = store.session_events(session, 0, EVENTS).await.map_err(stored)?;
        let more = events.len() >= EVENTS as usize;
        Ok(match events.first() {
            Some(first) if first.seq == 1 => {
                let was_ready = events.iter().any(|event| event.kind == SessionEventType::Ready);
                if was_ready || more { Ok(()) } else { Err(NO_RECORD) }
            }
            _ => Err(DELETED),
        })
    }

    pub(super) async fn read(store: &StoreHandle, ended: &SessionRow) -> Result<Self, OpError> {
        let mut line = vec![ended.session.id];
        let mut youngest = ended.session.runtime_meta.forked_from;
        while let Some(parent) = youngest {
            if line.len() >= FORKS_DEEP {
                return Err(incomplete(ended.session.id, "it is a fork of too many others"));
            }
            let scope = Scope::Owner(ended.owner.clone());
            let row = store.session(&scope, parent).await.map_err(stored)?;
            let Some(row) = row else {
                let why = format!("it is a fork of {parent}, whose record was deleted");
                return Err(incomplete(ended.session.id, &why));
            };
            line.push(parent);
            youngest = row.session.runtime_meta.forked_from;
        }
        let mut history = InputHistory::default();
        for at in (0..line.len()).rev() {
            let child = at.checked_sub(1).map(|younger| line[younger]);
            history.add(store, line[at], child, ended.session.id).await?;
        }
        let mut plan = Self { inputs: history.present(), not_repeated: history.not_repeated };
        if plan.inputs.len() > INPUTS {
            return Err(too_many(&format!("inputs: at most {INPUTS} are repeated")));
        }
        // They run first in every new session.
        let mut startup_files = 0;
        for id in &plan.inputs {
            let row = store.execution(&Scope::All, *id).await.map_err(stored)?;
            if row.is_none_or(|row| row.execution.kind != ExecutionKind::Startup) {
                break;
            }
            startup_files += 1;
        }
        plan.inputs.drain(..startup_files);
        Ok(plan)
    }
}

impl InputHistory {
    /// The inputs whose effects the session's state has, in order.
    fn present(&self) -> Vec<ExecutionId> {
        let last = self.last.map(|at| &self.inputs[at]);
        let from_the_last = std::iter::successors(last, |input| input.before.map(|at| &self.inputs[at]));
        let mut present: Vec<ExecutionId> = from_the_last.map(|input| input.execution).collect();
        present.reverse();
        present
    }

    /// Adds the inputs of one session, those of a parent up to the fork.
    async fn add(
        &mut self,
        store: &StoreHandle,
        session: SessionId,
        child: Option<SessionId>,
        ended: SessionId,
    ) -> Result<(), OpError> {
        let (mut after, mut was_ready) = (0, false);
        // The last input before each checkpoint.
        let mut checkpoints = HashMap::new();
        loop {
            let events = store.session_events(session, after, EVENTS).await.map_err(stored)?;
            if after == 0 && events.first().is_none_or(|first| first.seq != 1) {
                return Err(incomplete(ended, DELETED));
            }
            let Some(last) = events.last() else { break };
            after = last.seq;
            for event in &events {
                if event.kind == SessionEventType::Forked
                    && event.other_session_id == child
                    && child.is_some()
                {
                    return Ok(());
                }
                was_ready |= event.kind == SessionEventType::Ready;
                self.apply(event, &mut checkpoints).map_err(|why| incomplete(ended, why))?;
            }
            if self.inputs.len() > INPUTS_EVER {
                return Err(too_many(&format!("inputs: at most {INPUTS} are repeated")));
            }
        }
        match (child, was_ready) {
            (Some(_), _) => {
                Err(incomplete(ended, "the session that it is a fork of has no event of the fork"))
            }
            (None, false) => Err(incomplete(ended, NO_RECORD)),
            (None, true) => Ok(()),
        }
    }

    fn apply(
        &mut self,
        event: &SessionEvent,
        checkpoints: &mut HashMap<String, Option<usize>>,
    ) -> Result<(), &'static str> {
        let detail = event.detail.as_deref().unwrap_or_default();
        match (event.kind, event.execution_id) {
            (SessionEventType::ExecutionEnded, Some(execution)) if detail == "ok" => {
                self.inputs.push(RecordedInput { execution, before: self.last });
                self.last = Some(self.inputs.len() - 1);
            }
            (SessionEventType::ExecutionEnded, _) => self.not_repeated += 1,
            (SessionEventType::Checkpointed, _) => {
                checkpoints.insert(format!("checkpoint {detail}"), self.last);
            }
            // Anything else is the reason of a crash, which cost nothing but its execution.
            (SessionEventType::RolledBack, _) if detail.starts_with("checkpoint ") => {
                self.last =
                    *checkpoints.get(detail).ok_or("a checkpoint to which it was rolled back is unknown")?;
            }
            (SessionEventType::Restarted, _) => self.last = None,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_system_protocol::time::Timestamp;

    fn event(kind: SessionEventType, detail: &str, execution: u8) -> SessionEvent {
        SessionEvent {
            session_id: SessionId::from_bytes([1; 16]),
            seq: 1,
            at: Timestamp(1),
            kind,
            execution_id: (execution > 0).then(|| ExecutionId::from_bytes([execution; 16])),
            other_session_id: None,
            detail: Some(detail.to_owned()),
        }
    }

    /// The inputs that are repeated after these events, and the number of those that are not.
    fn repeated(events: &[(SessionEventType, &str, u8)]) -> Result<(Vec<u8>, u64), &'static str> {
        let (mut history, mut checkpoints) = (InputHistory::default(), HashMap::new());
        for (kind, detail, execution) in events {
            history.apply(&event(*kind, detail, *execution), &mut checkpoints)?;
        }
        let present = history.present();
        Ok((present.iter().map(|execution| execution.as_bytes()[0]).collect(), history.not_repeated))
    }

    #[test]
    fn a_rollback_takes_away_what_ran_behind_its_checkpoint() {
        let mut events = vec![
            (SessionEventType::ExecutionEnded, "ok", 1),
            (SessionEventType::Checkpointed, "1", 0),
            (SessionEventType::ExecutionEnded, "error", 2),
            (SessionEventType::ExecutionEnded, "ok", 3),
            (SessionEventType::RolledBack, "checkpoint 1", 0),
            (SessionEventType::ExecutionEnded, "ok", 4),
            (SessionEventType::RolledBack, "signal(9)", 0),
        ];
        assert_eq!(repeated(&events), Ok((vec![1, 4], 1)));
        events.push((SessionEventType::RolledBack, "checkpoint 7", 0));
        assert!(repeated(&events).is_err());
    }

    #[test]
    fn a_checkpoint_keeps_its_inputs_after_a_return_to_an_older_one_and_after_a_restart() {
        let mut events = vec![
            (SessionEventType::ExecutionEnded, "ok", 1),
            (SessionEventType::Checkpointed, "1", 0),
            (SessionEventType::ExecutionEnded, "ok", 2),
            (SessionEventType::Checkpointed, "2", 0),
            (SessionEventType::RolledBack, "checkpoint 1", 0),
            (SessionEventType::ExecutionEnded, "ok", 3),
        ];
        assert_eq!(repeated(&events), Ok((vec![1, 3], 0)));
        let mut newer = events.clone();
        newer.push((SessionEventType::RolledBack, "checkpoint 2", 0));
        assert_eq!(repeated(&newer), Ok((vec![1, 2], 0)));
        events.push((SessionEventType::Restarted, "signal(SIGKILL)", 0));
        assert_eq!(repeated(&events), Ok((vec![], 0)));
        events.push((SessionEventType::ExecutionEnded, "ok", 4));
        assert_eq!(repeated(&events), Ok((vec![4], 0)));
        events.push((SessionEventType::RolledBack, "checkpoint 2", 0));
        assert_eq!(repeated(&events), Ok((vec![1, 2], 0)));
    }
}
