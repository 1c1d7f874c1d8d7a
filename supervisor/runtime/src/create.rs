//! New sessions.

use super::api::{CreateSession, RuntimeError};
use super::command::commands;
use super::facade::Runtime;
use super::registry::LiveSession;
use super::session_task::SessionTask;
use super::specs::spec;
use crate::worktree::Worktree;
use std::sync::Arc;
use tokio::time::Instant;
use vm_system_core::{Refusal, SessionInput as Input, SessionMachine};
use vm_system_protocol::model::Session;

impl Runtime {
    pub(super) async fn create(&self, request: CreateSession) -> Result<Session, RuntimeError> {
        let shared = self.shared();
        if shared.registry.is_stopping() {
            return Err(RuntimeError::ShuttingDown);
        }
        shared.pressure.admit(&request.owner)?;
        shared.failed_starts.check(&request.owner, request.template_id)?;
        let CreateSession { worktree_path, as_user, .. } = request.clone();
        let recorded = request.restores.as_ref().and_then(|restored| restored.worktree.as_ref());
        let worktree = match recorded {
            Some(recorded) => shared.reopen_worktree(recorded, &request.owner).await?,
            None => shared.open_worktree(worktree_path, &request.owner, as_user).await?,
        };
        self.create_in(request, worktree).await
    }

    /// Creates a session in a worktree that is open.
    pub(super) async fn create_in(
        &self,
        request: CreateSession,
        worktree: Worktree,
    ) -> Result<Session, RuntimeError> {
        let shared = self.shared();
        let (commands, inbox) = commands();
        let CreateSession { id, owner, policy, libraries, .. } = request.clone();
        let live = Arc::new(LiveSession::new(id, owner, commands, policy, &shared.registry.policies));
        self.admit(&live)?;
        let spec = spec((&request, shared.store.now()), &worktree, &live.policy(None, &shared.operator));
        let machine = match &request.restores {
            Some(_) => SessionMachine::restoration(spec),
            None => SessionMachine::new(spec),
        };
        let mut task = SessionTask::new(machine, (shared, &live), inbox, worktree, libraries);
        task.share_modules();
        self.tasks().spawn(task.run());
        match live.call(|token| Input::Create { token }).await {
            Ok(session) => {
                shared.registry.session_created(&live.owner);
                Ok(session)
            }
            Err(error) => {
                if let RuntimeError::Refused(Refusal::DiedAtStart(reason)) = &error {
                    shared.failed_starts.add(
                        &live.owner,
                        request.template_id,
                        reason.clone(),
                        Instant::now(),
                    );
                }
                Err(error)
            }
        }
    }
}
