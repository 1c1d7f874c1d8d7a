//! Inputs of sessions that restore others.

use super::api::RuntimeError;
use super::facade::Runtime;
use crate::worktree::clean_relative;
use std::sync::Arc;
use vm_system_core::{ExecuteRequest, Executed, SessionInput as Input, Source};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::model::Execution;
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
        let executed: Executed = live.call(|token| Input::Repeat { token, request, policy }).await?;
        Ok(Arc::unwrap_or_clone(executed.record))
    }
}
