//! The things that a verb had made when its supervisor exited, by the id that its key has.

use super::repetition;
use crate::errors::stored;
use crate::{Caller, Ops};
use vm_system_protocol::control::{
    ExecStart, ExecWait, ExecutionState, ImportEnd, ImportedObject, Op, OpError, ProgramStart, Reply,
    RunFork, RunRerun, RunRewind, ScheduleAdd, ScheduleRun, SessionCreate, SessionFork, SessionRestore,
    TemplateCreate, Verb as _,
};
use vm_system_protocol::ids::{ExecutionId, ScheduleId, SessionId, TemplateId};
use vm_system_protocol::model::{ExecutionStatus, Session, SessionEventType, SessionStatus};

/// Events within which a session is ready, if it ever is.
const FIRST_EVENTS: u32 = 1_000;

/// Whether the verb gets another id when it runs again: rows with the id may exist, or later executions in the session, whose ids are
/// greater.
pub(super) fn needs_another_id(op: &Op) -> bool {
    matches!(op, Op::SessionCreate(_) | Op::SessionFork(_) | Op::ExecStart(_))
}

impl Ops {
    /// The reply from the row that the verb inserted before the supervisor exited; none if there is none, or only a session that
    /// ended before it was ready.
    pub(super) async fn made(
        &self,
        caller: &Caller,
        op: &Op,
        subject: [u8; 16],
    ) -> Result<Option<Reply>, OpError> {
        let scope = caller.scope();
        let run =
            async { self.run_made(&repetition(caller, op, subject), ExecutionId::from_bytes(subject)).await };
        Ok(match op {
            Op::TemplateCreate(_) => {
                let row =
                    self.store.template(&scope, TemplateId::from_bytes(subject)).await.map_err(stored)?;
                row.map(|row| TemplateCreate::any_reply(row.detail.template))
            }
            Op::SessionCreate(_) => {
                let row = self.store.session(&scope, SessionId::from_bytes(subject)).await.map_err(stored)?;
                match row {
                    Some(row) if !self.was_never_ready(&row.session).await? => {
                        let owner = caller.shown_owner(&row.owner);
                        Some(SessionCreate::any_reply(Session { owner, ..row.session }))
                    }
                    _ => None,
                }
            }
            Op::SessionRestore(new) => {
                let made = self.restoration_made(&scope, SessionId::from_bytes(subject), new.wait).await?;
                made.map(SessionRestore::any_reply)
            }
            Op::SessionFork(fork) => {
                self.forks_made(caller, subject, fork.count).await?.map(SessionFork::any_reply)
            }
            Op::ExecStart(new) => {
                let id = ExecutionId::from_bytes(subject);
                match self.store.execution(&scope, id).await.map_err(stored)? {
                    Some(row)
                        if new.wait && !new.follow && row.execution.status == ExecutionStatus::Running =>
                    {
                        // Another supervisor has begun it, and this one has taken it over: its caller waits for it.
                        let call = repetition(caller, op, subject);
                        let wait = ExecWait { execution: id.to_string() };
                        let state = Box::pin(self.exec_wait(&call, wait)).await?;
                        return Ok(Some(ExecStart::any_reply(state)));
                    }
                    Some(mut row) => {
                        if new.wait && !new.follow {
                            row.execution.events =
                                Some(self.reads_of(caller).events(id, 0, 0).await.map_err(stored)?);
                        }
                        let state = if new.wait && row.execution.status == ExecutionStatus::Waiting {
                            let call = repetition(caller, op, subject);
                            ExecutionState::Run(self.live(&call, row.execution).await?)
                        } else {
                            ExecutionState::Execution(row.execution)
                        };
                        Some(ExecStart::any_reply(state))
                    }
                    None => None,
                }
            }
            Op::ProgramStart(_) => run.await?.map(ProgramStart::any_reply),
            Op::ScheduleAdd(_) => {
                let made = self.schedule_made(caller, ScheduleId::from_bytes(subject)).await?;
                made.map(ScheduleAdd::any_reply)
            }
            Op::ScheduleRun(_) => run.await?.map(ScheduleRun::any_reply),
            Op::RunFork(_) => run.await?.map(RunFork::any_reply),
            Op::RunRerun(_) => run.await?.map(RunRerun::any_reply),
            Op::RunRewind(_) => run.await?.map(RunRewind::any_reply),
            Op::ImportEnd(_) => run.await?.map(|run| ImportEnd::any_reply(ImportedObject::Run(run))),
            _ => None,
        })
    }

    /// Whether a session ended before it was ready: nobody has used it.
    pub(crate) async fn was_never_ready(&self, session: &Session) -> Result<bool, OpError> {
        if !matches!(session.status, SessionStatus::Closed | SessionStatus::Crashed) {
            return Ok(false);
        }
        let events = self.store.session_events(session.id, 0, FIRST_EVENTS).await.map_err(stored)?;
        let complete =
            events.first().is_some_and(|first| first.seq == 1) && events.len() < FIRST_EVENTS as usize;
        Ok(complete && !events.iter().any(|event| event.kind == SessionEventType::Ready))
    }
}
