//! The verbs that restore an ended session: a new one with the same rights, in which its successful inputs are repeated.
//!
//! - [`plan`]: which executions these are, from the events of the session's life
//! - [`given`]: what their records do not have, and what may not be repeated without a request
//! - [`repeat`]: repeats one after the other
//!
//! Nothing runs before everything is checked. Of all inputs only their ids are in memory.

mod given;
mod plan;
mod repeat;

use super::errors::{invalid, stored};
use super::{Ops, VerbCall};
use given::GivenInputs;
use plan::RepeatedInputs;
use repeat::Repetition;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use vm_system_protocol::control::{ErrorCode, OpError, RestorationGet, SessionRestore};
use vm_system_protocol::counted::counted;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::limits::SESSION_EVENTS_WAIT_MS;
use vm_system_protocol::model::{
    Engine, Execution, ExecutionKind, ExecutionStatus, Restorability, RestorationPlan, RestorationStatus,
    Session, SessionRestoration, SessionStatus,
};
use vm_system_record::{Cursor, Entity, ExecutionQuery, ExecutionRow, Page, Scope, SessionRow};
use vm_system_runtime::{CreateSession, RestoredSession};

/// Restorations that are known besides the running ones; older ones are read from their sessions.
const KNOWN: usize = 256;
/// Records that are read at a time to count the repeated inputs.
const COUNTED_AT_A_TIME: u32 = 256;
/// Codes of executions that did not end by themselves.
const CUT_SHORT: [&str; 2] = ["WORKER_DIED", "HOST_RESTART"];

/// The restorations of this supervisor, by their new sessions.
#[derive(Default)]
pub(super) struct Restorations(Mutex<HashMap<SessionId, Progress>>);

type Progress = watch::Receiver<SessionRestoration>;

impl Restorations {
    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Progress>> {
        // Nothing under this lock can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, session: SessionId, progress: Progress) {
        let mut known = self.known();
        if known.len() >= KNOWN {
            known.retain(|_, one| one.borrow().status == RestorationStatus::Running);
        }
        known.insert(session, progress);
    }

    fn get(&self, session: SessionId) -> Option<Progress> {
        self.known().get(&session).cloned()
    }
}

impl Ops {
    pub(crate) async fn session_restore(
        &self,
        call: &VerbCall<'_>,
        new: SessionRestore,
    ) -> Result<SessionRestoration, OpError> {
        let row = self.session(call, &new.session).await?;
        let ended = row.session.id;
        let result = self.begin_restoration(call, row, new.repeat_effects, new.inputs).await;
        self.audit(call, ended, &result).await;
        let mut progress = result?;
        if new.wait {
            // An error: the repetition was dropped with the supervisor.
            let _ = progress.wait_for(|now| now.status != RestorationStatus::Running).await;
        }
        let now = progress.borrow().clone();
        reply(now, new.wait)
    }

    async fn begin_restoration(
        &self,
        call: &VerbCall<'_>,
        row: SessionRow,
        repeat_effects: bool,
        inputs: Vec<vm_system_protocol::control::GivenInput>,
    ) -> Result<Progress, OpError> {
        may_be_restored(&row.session)?;
        self.check_quota(call)?;
        // In the turns of the owner: a session may have many inputs.
        let store = self.store.for_owner(&row.owner);
        let plan = RepeatedInputs::read(&store, &row).await?;
        let given = GivenInputs::new(inputs, plan.inputs.len())?;
        given.check(&store, &plan, repeat_effects, &row.session).await?;
        let SessionRow { owner, worktree, session: ended, .. } = row;
        let name = match &ended.name {
            Some(name) => Some((name.clone(), self.free_name(&owner, name, None).await?)),
            None => None,
        };
        let policy = store.session_policy(ended.id).await.map_err(stored)?;
        let policy =
            policy.ok_or_else(|| super::errors::not_found(Entity::Session, &ended.id.to_string()))?;
        let id = SessionId::from_uuid(call.subject);
        let request = CreateSession {
            id,
            owner,
            name: None,
            template_id: ended.template_id,
            libraries: self.libraries_of(&policy.libraries).await?,
            policy,
            workspace_id: ended.workspace_id.clone(),
            base_commit_oid: ended.base_commit_oid.clone(),
            worktree_path: PathBuf::from(&ended.worktree_path),
            as_user: None,
            restores: Some(RestoredSession {
                id: ended.id,
                worktree,
                inputs: plan.inputs.len() as u64,
                not_repeated: plan.not_repeated,
            }),
        };
        self.policies.made(id, ended.template_id);
        let created = self.runtime.create_session(request).await;
        let session = created.map_err(|error| super::sessions::creation_failed(error, id))?;
        let (sender, progress) = watch::channel(SessionRestoration {
            session,
            restored_from: ended.id,
            status: RestorationStatus::Running,
            inputs: plan.inputs.len() as u64,
            repeated: 0,
            not_repeated: plan.not_repeated,
            different: 0,
            differences: Vec::new(),
            error: None,
        });
        self.restorations.add(id, progress.clone());
        let repetition = Repetition {
            store,
            runtime: Arc::clone(&self.runtime),
            policies: Arc::clone(&self.policies),
            session: id,
            name,
            plan,
            given,
            progress: sender,
        };
        // Goes on when its client has gone; ends with its session.
        tokio::spawn(repetition.run());
        Ok(progress)
    }

    pub(crate) async fn session_restoration(
        &self,
        call: &VerbCall<'_>,
        RestorationGet { session, wait_after }: RestorationGet,
    ) -> Result<SessionRestoration, OpError> {
        let id = self.visible(call, &session).await?;
        let Some(mut progress) = self.restorations.get(id) else {
            let row = self.session(call, &id.to_string()).await?;
            return match self.restoration_of(row.session).await? {
                Some(restoration) => reply(restoration, false),
                None => Err(OpError::new(ErrorCode::NotFound, format!("session {id} restores no other one"))
                    .with_hint(
                        "`session restore SESSION` restores an ended session in a new one, whose id it shows",
                    )),
            };
        };
        if let Some(after) = wait_after {
            let news =
                |now: &SessionRestoration| now.status != RestorationStatus::Running || now.repeated != after;
            tokio::select! {
                _ = progress.wait_for(news) => {}
                () = tokio::time::sleep(Duration::from_millis(SESSION_EVENTS_WAIT_MS)) => {}
                () = self.stop.cancelled() => {
                    return Err(OpError::new(ErrorCode::ShuttingDown, "the supervisor is stopping"));
                }
            }
        }
        let now = progress.borrow().clone();
        reply(now, false)
    }

    /// The result of a restoration that an earlier request with the same key began.
    pub(super) async fn restoration_made(
        &self,
        scope: &vm_system_record::Scope,
        id: SessionId,
        wait: bool,
    ) -> Result<Option<SessionRestoration>, OpError> {
        if let Some(mut progress) = self.restorations.get(id) {
            if wait {
                let _ = progress.wait_for(|now| now.status != RestorationStatus::Running).await;
            }
            let now = progress.borrow().clone();
            return reply(now, wait).map(Some);
        }
        let row = self.store.session(scope, id).await.map_err(stored)?;
        let Some(row) = row else { return Ok(None) };
        self.restoration_of(row.session).await?.map(|made| reply(made, wait)).transpose()
    }

    /// A restoration of which this supervisor knows nothing but the records.
    async fn restoration_of(&self, session: Session) -> Result<Option<SessionRestoration>, OpError> {
        let Some(mut restoration) = of_row(session) else { return Ok(None) };
        if restoration.status != RestorationStatus::Done {
            restoration.repeated = self.repeated_in(restoration.session.id).await?;
        }
        Ok(Some(restoration))
    }

    /// How many inputs had been repeated when a restoration was cut short.
    async fn repeated_in(&self, session: SessionId) -> Result<u64, OpError> {
        let (mut repeated, mut page) = (0, Page::first(COUNTED_AT_A_TIME));
        loop {
            let rows = self
                .store
                .executions(&Scope::All, session, ExecutionQuery::default(), page)
                .await
                .map_err(stored)?;
            let Some(last) = rows.last().map(|row| &row.execution) else { return Ok(repeated) };
            page.after = Some(Cursor { at: last.started_at, id: *last.id.as_bytes() });
            let is_repeated = |row: &&ExecutionRow| {
                let Execution { kind, status, error, .. } = &row.execution;
                let was_cut = error.as_ref().is_some_and(|error| CUT_SHORT.contains(&error.code.as_str()));
                *kind != ExecutionKind::Startup
                    && status.is_final()
                    && *status != ExecutionStatus::Cancelled
                    && !was_cut
            };
            repeated += rows.iter().filter(is_repeated).count() as u64;
        }
    }

    /// Adds to the facts of an ended session whether it can be restored, as far as its first events show.
    pub(super) async fn with_restorability(
        &self,
        call: &VerbCall<'_>,
        mut session: Session,
    ) -> Result<Session, OpError> {
        if session.engine == Engine::Cvm || !has_ended(&session) {
            return Ok(session);
        }
        let is_possible = RepeatedInputs::is_possible(&self.reads_of(call.caller), session.id).await?;
        session.runtime_meta.restore = Some(match is_possible {
            Ok(()) => {
                let command = Some(format!("vm-system session restore {}", session.id));
                Restorability { possible: true, command, reason: None }
            }
            Err(why) => Restorability { possible: false, command: None, reason: Some(why.to_owned()) },
        });
        Ok(session)
    }
}

/// For a caller that waits, a restoration that failed is an error.
fn reply(restoration: SessionRestoration, waited: bool) -> Result<SessionRestoration, OpError> {
    if !waited || restoration.status == RestorationStatus::Done {
        return Ok(restoration);
    }
    let SessionRestoration { session, status, repeated, inputs, error, .. } = &restoration;
    let why = error.as_deref().unwrap_or("the supervisor is stopping");
    let inputs = counted(*inputs, "input");
    let message = format!("the restoration {status} after {repeated} of {inputs}: {why}");
    let session = session.id;
    Err(OpError::new(ErrorCode::Conflict, message)
        .with_details(&serde_json::json!({ "session_id": session, "restoration": restoration }))
        .with_hint(format!("`session events {session}` and `exec list {session}` show what has run")))
}

fn has_ended(session: &Session) -> bool {
    matches!(session.status, SessionStatus::Closed | SessionStatus::Crashed)
}

fn may_be_restored(session: &Session) -> Result<(), OpError> {
    if session.engine == Engine::Cvm {
        return Err(OpError::new(
            ErrorCode::EngineUnsupported,
            "the session of a durable program is not restored, but its execution goes on by itself",
        )
        .with_hint("`program checkpoints EXECUTION` shows its states, `program rewind` continues from one"));
    }
    if has_ended(session) {
        return Ok(());
    }
    Err(OpError::new(
        ErrorCode::Conflict,
        format!("session {} is {}; only an ended session can be restored", session.id, session.status),
    )
    .with_hint("`session fork` makes a copy of a live session"))
}

/// A restoration of which only the new session's row is known.
fn of_row(session: Session) -> Option<SessionRestoration> {
    let restored_from = session.runtime_meta.restored_from?;
    let planned = session.runtime_meta.restoration;
    let planned = planned.map(|RestorationPlan { inputs, not_repeated }| (inputs, not_repeated));
    let done = session.runtime_meta.restored;
    let (inputs, not_repeated) =
        done.map(|done| (done.inputs, done.not_repeated)).or(planned).unwrap_or_default();
    let (status, error) = match (done.is_some(), has_ended(&session)) {
        (true, _) => (RestorationStatus::Done, None),
        (false, false) => (RestorationStatus::Running, None),
        (false, true) => {
            let why = session.last_error.clone().or_else(|| session.close_reason.clone());
            (RestorationStatus::Failed, why)
        }
    };
    Some(SessionRestoration {
        restored_from,
        status,
        inputs,
        repeated: inputs,
        not_repeated,
        different: done.map_or(0, |done| done.different),
        differences: Vec::new(),
        error,
        session,
    })
}

/// A refusal because of the record of the ended session.
fn incomplete(session: SessionId, why: &str) -> OpError {
    OpError::new(ErrorCode::Conflict, format!("session {session} cannot be restored: {why}"))
        .with_hint("create a new session")
}

fn too_many(what: &str) -> OpError {
    invalid(format!("there are too many {what}"))
}
