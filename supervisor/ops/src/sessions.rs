//! Verbs about sessions.

use super::errors::{invalid, stored};
use super::{LIST_ROWS, Ops, VerbCall, fitting, libraries};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vm_system_core::{LibraryFailure, LibraryProblem, Refusal, SessionRequest};
use vm_system_protocol::control::{
    ErrorCode, OpError, SessionClose, SessionCreate, SessionGet, SessionInspect, SessionKill, SessionList,
    SessionRename, SessionResume, SessionSuspend,
};
use vm_system_protocol::ids::{SessionId, TemplateId};
use vm_system_protocol::model::{Engine, Session, SessionInspection, SessionStatus};
use vm_system_record::{Cursor, Owner, Page, PolicySnapshot, SessionQuery, SessionRow};
use vm_system_runtime::{CreateSession, RuntimeError};
use vm_system_store::DatabaseFault;

/// Longest label of a session (bytes).
const LABEL_BYTES: usize = 1_024;
/// Longest name of a session (characters).
const NAME_CHARS: usize = 200;
/// Longest path (bytes); the kernel's own limit.
const PATH_BYTES: usize = 4_096;

/// Names of sessions that are being created or restored.
#[derive(Debug, Default, Clone)]
pub(crate) struct SessionNames(Arc<Mutex<HashSet<(Owner, String)>>>);

impl SessionNames {
    fn lock(&self) -> MutexGuard<'_, HashSet<(Owner, String)>> {
        // Nothing under this lock can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name, unless another request has it; returned when the value is dropped.
    fn reserve(&self, owner: &Owner, name: &str) -> Option<ReservedName> {
        let name = (owner.clone(), name.to_owned());
        let is_free = self.lock().insert(name.clone());
        // Not made otherwise: its end would give the name of the other request away.
        is_free.then(|| ReservedName { names: self.clone(), name })
    }
}

/// A name that no other session gets while this one is being created, restored or renamed.
#[derive(Debug)]
pub(super) struct ReservedName {
    names: SessionNames,
    name: (Owner, String),
}

impl Drop for ReservedName {
    fn drop(&mut self) {
        self.names.lock().remove(&self.name);
    }
}

impl Ops {
    /// A session is closed also while its end cannot be recorded, which follows when it can.
    fn not_recorded(&self, error: RuntimeError) -> OpError {
        let error = OpError::from(error);
        if error.code != ErrorCode::StorageUnavailable {
            return error;
        }
        let hint = self.store.status().fault.as_ref().map_or(
            "free some disk space or end the process that locks the database; the end is recorded with the next write",
            DatabaseFault::hint,
        );
        let why = format!("the session is closed, but its end is not recorded yet: {}", error.message);
        OpError::new(error.code, why).with_hint(hint)
    }

    /// A name is unique among the live sessions of an owner. `of`: the session that may have it already.
    pub(super) async fn free_name(
        &self,
        owner: &Owner,
        name: &str,
        of: Option<SessionId>,
    ) -> Result<ReservedName, OpError> {
        let taken = |id: Option<SessionId>| {
            let error = OpError::new(
                ErrorCode::Conflict,
                format!("{name:?} is the name of another session that has not ended"),
            )
            .with_hint("choose another name, or close the session first: `vm-system session close NAME`");
            match id {
                Some(id) => error.with_details(&serde_json::json!({ "session_id": id })),
                None => error,
            }
        };
        let reserved = self.session_names.reserve(owner, name).ok_or_else(|| taken(None))?;
        match self.live_named(owner, name).await? {
            Some(id) if Some(id) != of => Err(taken(Some(id))),
            _ => Ok(reserved),
        }
    }

    pub(crate) async fn session_create(
        &self,
        call: &VerbCall<'_>,
        new: SessionCreate,
    ) -> Result<Session, OpError> {
        let SessionCreate {
            template,
            workspace_id,
            base_commit_oid,
            worktree_path,
            as_user,
            name,
            ttl_s,
            idle_timeout_s,
        } = new;
        let name = name.as_deref().map(session_name).transpose()?;
        if template.trim().is_empty() {
            return Err(invalid("template_id is missing"));
        }
        label("workspace_id", &workspace_id)?;
        label("base_commit_oid", &base_commit_oid)?;
        worktree(&worktree_path)?;
        self.may_choose_worktree(call)?;
        let template = self.template_of_session(call, &template).await?;
        let detail = &template.detail;
        if detail.template.engine == Engine::Cvm {
            return Err(OpError::new(
                ErrorCode::EngineUnsupported,
                "a cvm session is created together with the program that runs in it",
            )
            .with_hint("create sessions from templates with engine quickjs"));
        }
        self.check_quota(call)?;
        let _reserved = match &name {
            Some(name) => Some(self.free_name(&call.caller.owner, name, None).await?),
            None => None,
        };
        let id = SessionId::from_uuid(call.subject);
        let mut runtime = template.policy.settings.runtime.clone();
        shorten("ttl_s", &mut runtime.ttl_s, ttl_s)?;
        shorten("idle_timeout_s", &mut runtime.idle_timeout_s, idle_timeout_s)?;
        // Sessions of a template share one copy of it, except for those with times of their own.
        let policy = if runtime == template.policy.settings.runtime {
            Arc::clone(&template.policy)
        } else {
            let mut policy = PolicySnapshot::clone(&template.policy);
            policy.settings.runtime = runtime;
            Arc::new(policy)
        };
        let request = CreateSession {
            id,
            owner: call.caller.owner.clone(),
            name,
            template_id: detail.template.id,
            policy,
            workspace_id,
            base_commit_oid,
            worktree_path: PathBuf::from(worktree_path),
            as_user,
            libraries: self.libraries_of(&detail.template.libraries).await?,
            restores: None,
        };
        self.policies.made(id, detail.template.id);
        let result = self.runtime.create_session(request).await.map_err(|error| creation_failed(error, id));
        self.audit(call, id, &result).await;
        let owner = call.caller.shown_owner(&call.caller.owner);
        result.map(|session| Session { owner, ..session })
    }

    pub(crate) async fn session_list(
        &self,
        call: &VerbCall<'_>,
        filter: SessionList,
    ) -> Result<Vec<Session>, OpError> {
        let template = match &filter.template {
            // A whole id needs no row: sessions of a deleted template are still found by it.
            Some(reference) => match reference.trim().parse::<TemplateId>() {
                Ok(id) => Some(id),
                Err(_) => Some(self.template(call, reference).await?.detail.template.id),
            },
            None => None,
        };
        let page = super::page(filter.page, LIST_ROWS)?;
        // Only sessions of programs wait.
        let waiting = filter.status == Some(SessionStatus::Waiting) && filter.engine.is_none();
        let durable = waiting || filter.engine == Some(Engine::Cvm);
        let query = SessionQuery {
            status: filter.status,
            template,
            workspace_id: filter.workspace_id,
            name: None,
            durable,
        };
        let mut sessions = self.sessions_with(call, query, page).await?;
        // A template has one engine.
        sessions.retain(|session| filter.engine.is_none() || (session.engine == Engine::Cvm) == durable);
        Ok(fitting(sessions, weight))
    }

    /// Sessions with their current status. The stored status does not show whether a program has a process: most wait without
    /// one.
    async fn sessions_with(
        &self,
        call: &VerbCall<'_>,
        mut query: SessionQuery,
        page: Page,
    ) -> Result<Vec<Session>, OpError> {
        let (scope, live, wanted) = (call.caller.scope(), self.live_programs(), query.status);
        if query.durable && wanted == Some(SessionStatus::Ready) {
            return self.living(call, &query, page, live).await;
        }
        if matches!(wanted, Some(SessionStatus::Waiting | SessionStatus::Suspended)) {
            query.status = Some(SessionStatus::Ready);
        }
        let (mut found, most) = (Vec::new(), page.limit as usize);
        let mut piece = Page { limit: if wanted.is_some() { LIST_ROWS } else { page.limit }, ..page };
        loop {
            let rows = self.store.sessions(&scope, &query, piece).await.map_err(stored)?;
            let more = rows.len() >= piece.limit as usize;
            piece.after = rows.last().map(|row| place(&row.session));
            let sessions = rows.into_iter().map(|row| self.current(call, row, &live));
            found.extend(sessions.filter(|session| wanted.is_none_or(|status| session.status == status)));
            if !more || found.len() >= most {
                found.truncate(most);
                return Ok(found);
            }
        }
    }

    /// The sessions of programs that have a process; only a few at a time.
    async fn living(
        &self,
        call: &VerbCall<'_>,
        query: &SessionQuery,
        page: Page,
        live: HashSet<SessionId>,
    ) -> Result<Vec<Session>, OpError> {
        let (mut found, scope) = (Vec::new(), call.caller.scope());
        for id in live {
            let Some(row) = self.store.session(&scope, id).await.map_err(stored)? else { continue };
            let owner = call.caller.shown_owner(&row.owner);
            let session = Session { owner, ..row.session };
            let matches = session.status == SessionStatus::Ready
                && query.template.is_none_or(|template| session.template_id == template)
                && query.workspace_id.as_ref().is_none_or(|id| session.workspace_id == *id)
                && page
                    .after
                    .is_none_or(|after| (after.at, after.id) > (session.created_at, *session.id.as_bytes()));
            if matches {
                found.push(session);
            }
        }
        found.sort_unstable_by_key(|session| Reverse((session.created_at, *session.id.as_bytes())));
        found.truncate(page.limit as usize);
        Ok(found)
    }

    /// Sessions of programs that have a process now.
    fn live_programs(&self) -> HashSet<SessionId> {
        let durables = self.runtime.durables();
        durables.map(|durables| durables.live_sessions().into_iter().collect()).unwrap_or_default()
    }

    /// The caller's live sessions of programs.
    pub(super) async fn live_programs_of(&self, call: &VerbCall<'_>) -> Vec<SessionId> {
        let query = SessionQuery { durable: true, ..SessionQuery::default() };
        let living = self.living(call, &query, Page::ALL, self.live_programs()).await;
        // If the store cannot be read, sessions of scripts are still listed.
        living.unwrap_or_default().into_iter().map(|session| session.id).collect()
    }

    pub(crate) async fn session_get(
        &self,
        call: &VerbCall<'_>,
        SessionGet { session }: SessionGet,
    ) -> Result<Session, OpError> {
        let row = self.session(call, &session).await?;
        let session = self.current(call, row, &self.live_programs());
        self.with_restorability(call, session).await
    }

    pub(crate) async fn session_rename(
        &self,
        call: &VerbCall<'_>,
        SessionRename { session, name }: SessionRename,
    ) -> Result<Session, OpError> {
        let name = session_name(&name)?;
        let id = self.visible(call, &session).await?;
        let renamed = match self.runtime.session_owner(id) {
            // Until its row has the name, no other request gets it.
            Some(owner) => match self.free_name(&owner, &name, Some(id)).await {
                Ok(_reserved) => self.runtime.request(id, SessionRequest::Rename { name }).await,
                Err(taken) => {
                    self.audit(call, id, &Err::<(), _>(taken.clone())).await;
                    return Err(taken);
                }
            },
            None => Err(RuntimeError::NotLive),
        };
        self.live_session(call, id, renamed).await
    }

    pub(crate) async fn session_close(
        &self,
        call: &VerbCall<'_>,
        SessionClose { session }: SessionClose,
    ) -> Result<Session, OpError> {
        let id = self.visible(call, &session).await?;
        let owner = self.owner_of_live(call, id);
        let result = self.runtime.close_session(id).await.map_err(|error| self.not_recorded(error));
        self.audit(call, id, &result).await;
        if let Some(session) = result? {
            return Ok(Session { owner, ..session });
        }
        // The session had ended before: closing is idempotent. A program's session ends with its execution.
        self.close_program(call, id).await?;
        self.session_get(call, SessionGet { session: id.to_string() }).await
    }

    pub(crate) async fn session_suspend(
        &self,
        call: &VerbCall<'_>,
        SessionSuspend { session }: SessionSuspend,
    ) -> Result<Session, OpError> {
        let id = self.visible(call, &session).await?;
        let suspended = self.runtime.request(id, SessionRequest::Suspend).await;
        self.live_session(call, id, suspended).await
    }

    pub(crate) async fn session_resume(
        &self,
        call: &VerbCall<'_>,
        SessionResume { session }: SessionResume,
    ) -> Result<Session, OpError> {
        let id = self.visible(call, &session).await?;
        let resumed = self.runtime.request(id, SessionRequest::Resume).await;
        self.live_session(call, id, resumed).await
    }

    /// The reply to a change of a live session.
    async fn live_session(
        &self,
        call: &VerbCall<'_>,
        id: SessionId,
        changed: Result<Session, RuntimeError>,
    ) -> Result<Session, OpError> {
        let result = match changed {
            Err(RuntimeError::NotLive) => Err(self.not_live(call, id).await),
            changed => changed.map_err(OpError::from),
        };
        self.audit(call, id, &result).await;
        let owner = self.owner_of_live(call, id);
        result.map(|session| Session { owner, ..session })
    }

    /// The owner of a live session, for administrators.
    pub(super) fn owner_of_live(&self, call: &VerbCall<'_>, id: SessionId) -> Option<String> {
        self.runtime.session_owner(id).and_then(|owner| call.caller.shown_owner(&owner))
    }

    /// A session with its current status: the stored one shows neither whether a program has a process nor whether a session is
    /// suspended.
    fn current(&self, call: &VerbCall<'_>, row: SessionRow, live_programs: &HashSet<SessionId>) -> Session {
        let mut session = current_status(row.session, live_programs);
        session.owner = call.caller.shown_owner(&row.owner);
        if session.status == SessionStatus::Ready && self.runtime.is_suspended(session.id) {
            session.status = SessionStatus::Suspended;
        }
        session
    }

    pub(crate) async fn session_inspect(
        &self,
        call: &VerbCall<'_>,
        SessionInspect { session }: SessionInspect,
    ) -> Result<SessionInspection, OpError> {
        let id = self.visible(call, &session).await?;
        match self.runtime.inspect_session(id, call.caller.holder()).await {
            Ok(inspection) => Ok(inspection),
            Err(RuntimeError::NotLive) => Err(self.not_live(call, id).await),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn session_kill(
        &self,
        call: &VerbCall<'_>,
        SessionKill { session, signal }: SessionKill,
    ) -> Result<(), OpError> {
        let id = self.visible(call, &session).await?;
        let result = match self.runtime.kill_session(id, signal).await {
            Ok(()) => Ok(()),
            Err(RuntimeError::NotLive) => Err(self.not_live(call, id).await),
            Err(error) => Err(error.into()),
        };
        self.audit(call, id, &result).await;
        result
    }

    /// The id of a session that the caller may see. No query if the session is live.
    pub(super) async fn visible(&self, call: &VerbCall<'_>, reference: &str) -> Result<SessionId, OpError> {
        let id = self.session_id(call, reference).await?;
        match self.runtime.session_owner(id) {
            Some(owner) if call.caller.may_see(&owner) => Ok(id),
            // A live session of another owner is looked up as one that does not exist: the time reveals nothing.
            _ => self.session(call, &id.to_string()).await.map(|row| row.session.id),
        }
    }

    /// Why a session that the caller may see accepts no requests.
    pub(super) async fn not_live(&self, call: &VerbCall<'_>, id: SessionId) -> OpError {
        match self.session(call, &id.to_string()).await {
            Ok(row) => not_ready(&row),
            Err(error) => error,
        }
    }
}

pub(super) fn not_ready(row: &SessionRow) -> OpError {
    let session = &row.session;
    if session.status == SessionStatus::Ready {
        let message = format!("session {} has no process now: its program waits", session.id);
        return OpError::new(ErrorCode::SessionNotReady, message)
            .with_details(&serde_json::json!({ "session_id": session.id, "status": SessionStatus::Waiting }))
            .with_hint("`task list` shows what programs wait for");
    }
    // `exited` is the status of a session that a client closed.
    let reason = session.close_reason.as_deref().filter(|reason| *reason != "exited");
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    OpError::new(ErrorCode::SessionNotReady, format!("session {} is {}{reason}", session.id, session.status))
        .with_details(&serde_json::json!({ "session_id": session.id, "status": session.status }))
        .with_hint(match session.status {
            SessionStatus::Closed | SessionStatus::Crashed if session.engine != Engine::Cvm => {
                "create a new session; `session get` shows whether this one can be restored"
            }
            _ => "create a new session",
        })
}

/// The position of a session in a list.
fn place(session: &Session) -> Cursor {
    Cursor { at: session.created_at, id: *session.id.as_bytes() }
}

/// The stored status of a program's session does not show its process, which starts and exits with each step.
fn current_status(mut session: Session, live: &HashSet<SessionId>) -> Session {
    if session.engine == Engine::Cvm && session.status == SessionStatus::Ready && !live.contains(&session.id)
    {
        session.status = SessionStatus::Waiting;
    }
    session
}

/// Approximate size of a session in a response (bytes).
fn weight(session: &Session) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    256 + text(&session.name)
        + session.workspace_id.len()
        + session.base_commit_oid.len()
        + session.worktree_path.len()
        + text(&session.last_error)
        + text(&session.close_reason)
        + session.runtime_meta.to_json().map_or(0, |facts| facts.len())
}

fn label(field: &str, value: &str) -> Result<(), OpError> {
    if value.trim().is_empty() {
        return Err(invalid(format!("{field} is missing")));
    }
    if value.len() > LABEL_BYTES {
        return Err(invalid(format!("{field} has more than {LABEL_BYTES} bytes")));
    }
    Ok(())
}

/// The stored form of a session's name.
fn session_name(name: &str) -> Result<String, OpError> {
    let name = name.trim();
    let chars = name.chars().count();
    if chars == 0 || chars > NAME_CHARS || !name.chars().all(super::settings::is_printable) {
        return Err(invalid(format!("a session's name has 1 to {NAME_CHARS} printable characters")));
    }
    Ok(name.to_owned())
}

/// A client may request a shorter timeout than the template's; 0 means none.
fn shorten(field: &str, seconds: &mut u32, wanted: Option<u32>) -> Result<(), OpError> {
    let Some(wanted) = wanted else { return Ok(()) };
    if *seconds != 0 && (wanted == 0 || wanted > *seconds) {
        return Err(OpError::new(
            ErrorCode::LimitNotAllowed,
            format!("{field} = {wanted} is longer than the template's {seconds}"),
        )
        .with_details(&serde_json::json!({ "field": field, "value": wanted, "ceiling": *seconds })));
    }
    *seconds = wanted;
    Ok(())
}

pub(super) fn worktree(path: &str) -> Result<(), OpError> {
    if path.trim().is_empty() {
        return Err(invalid("worktree_path is missing"));
    }
    if path.contains('\0') || path.len() > PATH_BYTES {
        return Err(invalid("worktree_path is not a path"));
    }
    if !path.starts_with('/') {
        return Err(invalid(format!("worktree_path {path:?} is not absolute")));
    }
    Ok(())
}

/// A failed start leaves a row: adds its id to the error.
pub(super) fn creation_failed(error: RuntimeError, id: SessionId) -> OpError {
    let library = match &error {
        RuntimeError::Refused(Refusal::Library(failure)) => Some(failure.clone()),
        RuntimeError::Refused(Refusal::StartupFailed(_) | Refusal::SpawnFailed(_)) => None,
        _ => return error.into(),
    };
    let error = OpError::from(error);
    let Some(LibraryFailure { library, problem, .. }) = library else {
        return error.with_details(&serde_json::json!({ "session_id": id }));
    };
    if problem == LibraryProblem::Failed {
        return error
            .with_details(&serde_json::json!({ "session_id": id, "library": library }))
            .with_hint(format!("remove {library} from the template, or install a version that works"));
    }
    let command = libraries::install_command(&library);
    error
        .with_details(&serde_json::json!({ "session_id": id, "library": library, "command": command }))
        .with_hint(format!("an administrator can install it: {command}"))
}
