//! The verb that reads the events of a session's life, and waits for the next one.

use super::errors::stored;
use super::{Ops, VerbCall, rows_of};
use std::time::Duration;
use tokio::time::Instant;
use vm_system_protocol::control::{ErrorCode, OpError, SessionEventPage, SessionEvents};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::limits::SESSION_EVENTS_WAIT_MS;
use vm_system_protocol::model::SessionStatus;
use vm_system_record::Scope;
use vm_system_store::StoreHandle;

/// Most events of a response.
const EVENTS_MAX: u32 = 1_000;

impl Ops {
    pub(crate) async fn session_events(
        &self,
        call: &VerbCall<'_>,
        SessionEvents { session, after_seq, limit, wait }: SessionEvents,
    ) -> Result<SessionEventPage, OpError> {
        let limit = rows_of(limit, EVENTS_MAX)?;
        let id = self.session(call, &session).await?.session.id;
        let store = self.reads_of(call.caller);
        let watch = wait.then(|| store.watch_session(id));
        let until = Instant::now() + Duration::from_millis(SESSION_EVENTS_WAIT_MS);
        loop {
            let mut changed = watch.as_ref().map(|watch| Box::pin(watch.changed()));
            if let Some(changed) = &mut changed {
                changed.as_mut().enable();
            }
            // Before its events are read, so that none of them is missed.
            let has_ended = has_ended(&store, id).await?;
            let events = store.session_events(id, after_seq, limit).await.map_err(stored)?;
            let is_last = has_ended && events.len() < limit as usize;
            let Some(changed) = changed.filter(|_| events.is_empty() && !is_last) else {
                return Ok(SessionEventPage { events, is_last });
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(until) => {
                    return Ok(SessionEventPage { events, is_last });
                }
                () = self.stop.cancelled() => {
                    return Err(OpError::new(ErrorCode::ShuttingDown, "the supervisor is stopping"));
                }
            }
        }
    }
}

/// Ended, or deleted since.
async fn has_ended(store: &StoreHandle, id: SessionId) -> Result<bool, OpError> {
    let row = store.session(&Scope::All, id).await.map_err(stored)?;
    Ok(row.is_none_or(|row| matches!(row.session.status, SessionStatus::Closed | SessionStatus::Crashed)))
}
