//! The verbs about checkpoints of live sessions.

use super::errors::invalid;
use super::{Ops, VerbCall};
use vm_system_core::SessionRequest;
use vm_system_protocol::control::{
    ErrorCode, OpError, SessionAddCheckpoint, SessionCheckpoints, SessionDeleteCheckpoint, SessionRollback,
};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::model::{Engine, Session, SessionCheckpoint};
use vm_system_runtime::RuntimeError;

/// Longest name of a checkpoint (characters).
const NAME_CHARS: usize = 64;

impl Ops {
    pub(crate) async fn session_checkpoint(
        &self,
        call: &VerbCall<'_>,
        SessionAddCheckpoint { session, name }: SessionAddCheckpoint,
    ) -> Result<SessionCheckpoint, OpError> {
        self.check_quota(call)?;
        let name = name.as_deref().map(checkpoint_name).transpose()?;
        let id = self.visible(call, &session).await?;
        let result = self.runtime.checkpoint_session(id, name).await;
        let result = self.of_session(call, id, result).await;
        self.audit(call, id, &result).await;
        result
    }

    pub(crate) async fn session_checkpoints(
        &self,
        call: &VerbCall<'_>,
        SessionCheckpoints { session }: SessionCheckpoints,
    ) -> Result<Vec<SessionCheckpoint>, OpError> {
        let id = self.visible(call, &session).await?;
        let result = self.runtime.checkpoints(id).await;
        self.of_session(call, id, result).await
    }

    pub(crate) async fn session_delete_checkpoint(
        &self,
        call: &VerbCall<'_>,
        SessionDeleteCheckpoint { session, checkpoint }: SessionDeleteCheckpoint,
    ) -> Result<(), OpError> {
        let id = self.visible(call, &session).await?;
        let result = self.runtime.delete_checkpoint(id, checkpoint).await;
        let result = self.of_session(call, id, result).await;
        self.audit(call, id, &result).await;
        result
    }

    pub(crate) async fn session_rollback(
        &self,
        call: &VerbCall<'_>,
        SessionRollback { session, checkpoint }: SessionRollback,
    ) -> Result<Session, OpError> {
        let id = self.visible(call, &session).await?;
        let result = self.runtime.request(id, SessionRequest::Rollback { checkpoint }).await;
        let result = self.of_session(call, id, result).await;
        self.audit(call, id, &result).await;
        let owner = self.owner_of_live(call, id);
        result.map(|session| Session { owner, ..session })
    }

    /// The result of a request to a session that may not be live.
    async fn of_session<T>(
        &self,
        call: &VerbCall<'_>,
        id: SessionId,
        result: Result<T, RuntimeError>,
    ) -> Result<T, OpError> {
        match result {
            Err(RuntimeError::NotLive) => match self.session(call, &id.to_string()).await {
                Ok(row) if row.session.engine == Engine::Cvm => Err(OpError::new(
                    ErrorCode::EngineUnsupported,
                    "the session of a durable program has no checkpoints, but its execution has",
                )
                .with_hint(
                    "`program checkpoints EXECUTION` shows them, `program rewind` continues from one",
                )),
                Ok(_) => Err(self.not_live(call, id).await),
                Err(error) => Err(error),
            },
            result => result.map_err(OpError::from),
        }
    }
}

/// A name is no number: numbers identify checkpoints, too.
fn checkpoint_name(name: &str) -> Result<String, OpError> {
    let name = name.trim();
    let chars = name.chars().count();
    if chars == 0 || chars > NAME_CHARS || !name.chars().all(super::settings::is_printable) {
        return Err(invalid(format!("a checkpoint's name has 1 to {NAME_CHARS} printable characters")));
    }
    if name.chars().all(|char| char.is_ascii_digit()) || name.contains('/') {
        return Err(invalid("a checkpoint's name is no number and has no /"));
    }
    Ok(name.to_owned())
}
