//! Requests to sessions that restore others, and to suspended ones.

use super::api::RuntimeError;
use super::facade::{Runtime, unexpected};
use super::task::{Command, SessionResponder};
use crate::worktree::clean_relative;
use std::sync::Arc;
use vm_system_core::{ExecuteRequest, SessionReply, Source};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::model::{Execution, RestoredInputs, Session};
use vm_system_record::PolicySnapshot;

impl Runtime {
    pub(super) async fn repeat(
        &self,
        session: SessionId,
        mut request: Box<ExecuteRequest>,
        template: Option<Arc<PolicySnapshot>>,
    ) -> Result<Execution, RuntimeError> {
        let live = self.live(session)?;
        let policy = live.policy(template.as_ref(), &self.shared().operator);
        if let Source::File { path, .. } = &mut request.source {
            *path = clean_relative(path)?;
        }
        match self.request(&live, |responder| Command::Repeat { request, policy, responder }).await? {
            SessionReply::Executed(executed) => Ok(Arc::unwrap_or_clone(executed.record)),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) async fn finish(
        &self,
        session: SessionId,
        name: Option<String>,
        restored: RestoredInputs,
    ) -> Result<Session, RuntimeError> {
        self.session_after(session, |responder| Command::FinishRestoration { name, restored, responder })
            .await
    }

    pub(super) async fn suspend(&self, session: SessionId) -> Result<Session, RuntimeError> {
        self.session_after(session, |responder| Command::Suspend { responder: Some(responder) }).await
    }

    pub(super) async fn resume(&self, session: SessionId) -> Result<Session, RuntimeError> {
        self.session_after(session, |responder| Command::Resume { responder }).await
    }

    /// The session as it is after a request.
    async fn session_after(
        &self,
        session: SessionId,
        command: impl FnOnce(SessionResponder) -> Command,
    ) -> Result<Session, RuntimeError> {
        let live = self.live(session)?;
        match self.request(&live, command).await? {
            SessionReply::Session(session) => Ok(*session),
            other => Err(unexpected(&other)),
        }
    }
}
