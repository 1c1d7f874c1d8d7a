//! Repeats the inputs of an ended session in a new one, one after the other. Tasks (`CC`) get their recorded answers; one that is
//! not in the record ends the restoration, because its answer would be a guess.

use super::given::{GivenInputs, row_of};
use super::plan::RepeatedInputs;
use crate::policies::Policies;
use crate::sessions::ReservedName;
use std::sync::Arc;
use tokio::sync::watch;
use vm_system_core::durable::SubmittedAnswer;
use vm_system_core::{Refusal, SessionRequest};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::model::{
    Execution, ExecutionStatus, InputDifference, RestorationStatus, RestoredInputs, Session,
    SessionRestoration,
};
use vm_system_record::{ItemOutcome, ItemRow};
use vm_system_runtime::{RuntimeApi, RuntimeError};
use vm_system_store::StoreHandle;

/// Differences that are kept.
const DIFFERENCES: usize = 100;
/// Longest text of a result in a difference (characters).
const RESULT_CHARS: usize = 200;

/// A restoration under way.
pub(super) struct Repetition {
    pub(super) store: StoreHandle,
    pub(super) runtime: Arc<dyn RuntimeApi>,
    pub(super) policies: Arc<Policies>,
    /// The new session.
    pub(super) session: SessionId,
    /// The session's name when it is ready; until then no other session gets it.
    pub(super) name: Option<(String, ReservedName)>,
    pub(super) plan: RepeatedInputs,
    pub(super) given: GivenInputs,
    pub(super) progress: watch::Sender<SessionRestoration>,
}

/// Why a restoration ends before its last input.
enum Stop {
    /// The new session has ended.
    Ended,
    Failed(String),
}

impl From<RuntimeError> for Stop {
    fn from(error: RuntimeError) -> Self {
        match error {
            // It accepts inputs until it is to end.
            RuntimeError::NotLive | RuntimeError::Refused(Refusal::NotReady(_)) => Self::Ended,
            error => Self::Failed(error.to_string()),
        }
    }
}

impl Repetition {
    pub(super) async fn run(self) {
        let result = self.repeat_all().await;
        let (status, error) = match result {
            Ok(session) => {
                self.progress.send_modify(|now| now.session = session);
                (RestorationStatus::Done, None)
            }
            Err(stop) => self.give_up(stop).await,
        };
        self.progress.send_modify(|now| (now.status, now.error) = (status, error));
    }

    /// Ends the new session.
    async fn give_up(&self, stop: Stop) -> (RestorationStatus, Option<String>) {
        if let Err(error) = self.runtime.close_session(self.session).await {
            tracing::warn!(session = %self.session, %error, "a session whose restoration failed was not closed");
        }
        if let Ok(Some(row)) = self.store.session(&vm_system_record::Scope::All, self.session).await {
            self.progress.send_modify(|now| now.session = row.session);
        }
        match stop {
            Stop::Failed(why) => (RestorationStatus::Failed, Some(why)),
            Stop::Ended => {
                let reason = self.progress.borrow().session.close_reason.clone().unwrap_or_default();
                let was_closed = reason.is_empty() || reason == "exited";
                let status =
                    if was_closed { RestorationStatus::Cancelled } else { RestorationStatus::Failed };
                let why = if was_closed { "the session was closed".to_owned() } else { reason };
                (status, Some(why))
            }
        }
    }

    async fn repeat_all(&self) -> Result<Session, Stop> {
        for (number, id) in (1..).zip(&self.plan.inputs) {
            self.repeat(number, *id).await?;
            self.progress.send_modify(|now| now.repeated = number);
        }
        let SessionRestoration { inputs, not_repeated, different, .. } = *self.progress.borrow();
        let restored = RestoredInputs { inputs, not_repeated, different };
        let name = self.name.as_ref().map(|(name, _)| name.clone());
        Ok(self.runtime.request(self.session, SessionRequest::FinishRestoration { name, restored }).await?)
    }

    async fn repeat(&self, number: u64, id: ExecutionId) -> Result<(), Stop> {
        let failed = |error: &dyn std::fmt::Display| Stop::Failed(format!("input {number}: {error}"));
        let row = row_of(&self.store, id).await.map_err(|error| failed(&error.message))?;
        let row = row.ok_or_else(|| failed(&"its record was deleted"))?;
        let (request, _) = self.given.request(number, &row).map_err(|error| failed(&error.message))?;
        let repeated_as = request.id;
        // Rights are narrowed at once, also for the inputs that follow.
        let template =
            self.policies.of_session(self.session).await.map_err(|error| failed(&error.message))?;
        let mut now = match self.runtime.repeat_input(self.session, Box::new(request), template).await {
            Ok(now) => now,
            // A file that cannot be read any more is a difference like any other.
            Err(error @ RuntimeError::Refused(Refusal::Load(_) | Refusal::SourceTooLarge { .. })) => {
                self.note(number, (id, repeated_as), (&row.execution, error.to_string().as_str()));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        while now.status == ExecutionStatus::Waiting {
            now = self.answer(number, id, now.id).await?;
        }
        if now.status == ExecutionStatus::Cancelled {
            return Err(Stop::Ended);
        }
        let stored = row_of(&self.store, now.id).await.map_err(|error| failed(&error.message))?;
        let now = stored.map_or(now, |row| row.execution);
        if now.status != ExecutionStatus::Ok || shown(&now) != shown(&row.execution) {
            self.note(number, (id, repeated_as), (&row.execution, shown(&now).as_str()));
        }
        Ok(())
    }

    /// Notes another result than before.
    fn note(
        &self,
        input: u64,
        (execution_id, repeated_as): (ExecutionId, ExecutionId),
        (before, now): (&Execution, &str),
    ) {
        self.progress.send_modify(|progress| {
            progress.different += 1;
            if progress.differences.len() < DIFFERENCES {
                let before = shortened(&shown(before));
                let now = shortened(now);
                progress.differences.push(InputDifference { input, execution_id, repeated_as, before, now });
            }
        });
    }

    /// Submits the recorded answer to the pending task of a repeated input.
    async fn answer(&self, number: u64, before: ExecutionId, now: ExecutionId) -> Result<Execution, Stop> {
        let failed = |why: &str| Stop::Failed(format!("input {number}: {why}"));
        let store_failed = |error: vm_system_record::StoreError| failed(&error.to_string());
        let pending = self.store.pending_task(now).await.map_err(store_failed)?;
        let Some(pending) = pending else { return Err(failed("its task was answered by another client")) };
        let recorded =
            self.store.items_of_run(before, pending.checkpoint - 1, 1).await.map_err(store_failed)?;
        let recorded = recorded.into_iter().find(|task| same(task, &pending));
        let answer = recorded.and_then(|task| Some((task.outcome?, task.answer?)));
        let Some((outcome, answer)) = answer.filter(|(outcome, _)| *outcome != ItemOutcome::Withdrawn) else {
            let why = format!("the record has no answer to its task {:?}", shortened(&pending.prompt));
            return Err(failed(&why));
        };
        let answer = SubmittedAnswer::Recorded { task: pending.id, outcome, answer };
        Ok(self.runtime.submit_answer(now, (Some(pending.id), answer), true).await?)
    }
}

/// Whether it is the same task: its answer fits then, too.
fn same(recorded: &ItemRow, pending: &ItemRow) -> bool {
    recorded.checkpoint == pending.checkpoint
        && recorded.prompt == pending.prompt
        && recorded.schema == pending.schema
}

/// The result of an execution, as text for people.
fn shown(execution: &Execution) -> String {
    match (&execution.error, &execution.result) {
        (Some(error), _) => format!("{}: {}", error.code, error.message),
        (None, Some(result)) => result.preview.clone(),
        (None, None) => execution.status.to_string(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(RESULT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
