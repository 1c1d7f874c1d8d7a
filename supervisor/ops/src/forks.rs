//! The verb that forks a live session.

use super::errors::{invalid, stored};
use super::{Caller, Ops, VerbCall};
use uuid::Uuid;
use vm_system_protocol::control::{ErrorCode, OpError, SessionFork};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::limits::FORKS;
use vm_system_protocol::model::{Engine, Session};
use vm_system_runtime::{ForkSession, RuntimeError};

impl Ops {
    pub(crate) async fn session_fork(
        &self,
        call: &VerbCall<'_>,
        SessionFork { session, count }: SessionFork,
    ) -> Result<Vec<Session>, OpError> {
        if !(1..=FORKS).contains(&count) {
            return Err(invalid(format!("count is {count}; one request forks 1 to {FORKS} sessions")));
        }
        let parent = self.visible(call, &session).await?;
        self.check_quota(call)?;
        let request = ForkSession { parent, children: children(call.subject, count).collect() };
        let result = match self.runtime.fork_session(request).await {
            Err(RuntimeError::NotLive) => Err(self.not_forkable(call, parent).await),
            result => result.map_err(OpError::from),
        };
        self.audit(call, parent, &result).await;
        let mut sessions = result?;
        let owner = self.owner_of_live(call, parent);
        for session in &mut sessions {
            self.policies.made(session.id, session.template_id);
            session.owner.clone_from(&owner);
        }
        Ok(sessions)
    }

    async fn not_forkable(&self, call: &VerbCall<'_>, id: SessionId) -> OpError {
        match self.session(call, &id.to_string()).await {
            Ok(row) if row.session.engine == Engine::Cvm => OpError::new(
                ErrorCode::EngineUnsupported,
                "the session of a durable program cannot be forked, but its execution can",
            )
            .with_hint("`program fork EXECUTION` continues from any of its checkpoints"),
            Ok(_) => self.not_live(call, id).await,
            Err(error) => error,
        }
    }

    /// The sessions that a request forked before its supervisor exited; none if nothing was committed, or not all of them became
    /// ready: those that did are ended, as when one fails, because no client knows of them.
    pub(super) async fn forks_made(
        &self,
        caller: &Caller,
        subject: [u8; 16],
        count: u32,
    ) -> Result<Option<Vec<Session>>, OpError> {
        let (mut sessions, mut all) = (Vec::new(), true);
        for id in children(Uuid::from_bytes(subject), count.min(FORKS)) {
            match self.store.session(&caller.scope(), id).await.map_err(stored)? {
                Some(row) => {
                    all &= !self.was_never_ready(&row.session).await?;
                    let owner = caller.shown_owner(&row.owner);
                    sessions.push(Session { owner, ..row.session });
                }
                None => all = false,
            }
        }
        if all {
            return Ok(Some(sessions));
        }
        for session in sessions {
            self.runtime.close_session(session.id).await?;
        }
        Ok(None)
    }
}

/// The ids of the sessions that a request creates: derived from the first one, so that a repeated request finds all of them.
fn children(first: Uuid, count: u32) -> impl Iterator<Item = SessionId> {
    let first = first.as_u128();
    // The lower half of a time-ordered id is random.
    (0..count).map(move |number| SessionId::from_uuid(Uuid::from_u128(first ^ u128::from(number))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_first_id_determines_the_others_and_they_differ() {
        let first = Uuid::now_v7();
        let ids: HashSet<SessionId> = children(first, FORKS).collect();
        assert_eq!(ids.len(), FORKS as usize);
        assert_eq!(children(first, 1).next(), Some(SessionId::from_uuid(first)));
        assert!(ids.iter().all(|id| Uuid::from_bytes(*id.as_bytes()).get_version_num() == 7));
    }
}
