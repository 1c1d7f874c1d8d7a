//! What a verb had made when its supervisor exited, by the id that its key has.

use super::repetition;
use crate::errors::stored;
use crate::{Caller, Ops};
use vm_system_protocol::control::{DurableOp, Op, OpError, Reply};
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::model::{ExecutionStatus, Session, SessionEventType, SessionStatus};

/// Events within which a session is ready, if it ever is.
const FIRST_EVENTS: u32 = 1_000;

/// Whether the verb gets another id when it runs again: rows with the id may exist, or later executions in the session, whose ids are
/// greater.
pub(super) fn needs_another_id(op: &Op) -> bool {
    matches!(op, Op::SessionCreate(_) | Op::SessionFork { .. } | Op::ExecStart(_))
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
        Ok(match op {
            Op::TemplateCreate { .. } => {
                let row =
                    self.store.template(&scope, TemplateId::from_bytes(subject)).await.map_err(stored)?;
                row.map(|row| Reply::Template(row.detail.template))
            }
            Op::SessionCreate(_) => {
                let row = self.store.session(&scope, SessionId::from_bytes(subject)).await.map_err(stored)?;
                match row {
                    Some(row) if !self.was_never_ready(&row.session).await? => {
                        let owner = caller.shown_owner(&row.owner);
                        Some(Reply::Session(Box::new(Session { owner, ..row.session })))
                    }
                    _ => None,
                }
            }
            Op::SessionRestore(new) => {
                self.restoration_made(&scope, SessionId::from_bytes(subject), new.wait).await?
            }
            Op::SessionFork { count, .. } => self.forks_made(caller, subject, *count).await?,
            Op::ExecStart(new) => {
                let id = ExecutionId::from_bytes(subject);
                match self.store.execution(&scope, id).await.map_err(stored)? {
                    Some(row)
                        if new.wait && !new.follow && row.execution.status == ExecutionStatus::Running =>
                    {
                        // Another supervisor has begun it, and this one has taken it over: its caller waits for it.
                        let call = repetition(caller, op, subject);
                        return Box::pin(self.exec_wait(&call, &id.to_string())).await.map(Some);
                    }
                    Some(mut row) => {
                        if new.wait && !new.follow {
                            row.execution.events =
                                Some(self.reads_of(caller).events(id, 0, 0).await.map_err(stored)?);
                        }
                        if new.wait && row.execution.status == ExecutionStatus::Waiting {
                            return self
                                .live(&repetition(caller, op, subject), row.execution)
                                .await
                                .map(Reply::Durable)
                                .map(Some);
                        }
                        Some(Reply::Execution(Box::new(row.execution)))
                    }
                    None => None,
                }
            }
            Op::Durable(
                DurableOp::ProgramStart(_)
                | DurableOp::Fork { .. }
                | DurableOp::Rewind { .. }
                | DurableOp::ImportEnd { .. },
            ) => {
                let id = ExecutionId::from_bytes(subject);
                self.run_made(&repetition(caller, op, subject), id).await?.map(Reply::Durable)
            }
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
