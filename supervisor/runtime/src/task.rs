//! Shared state of all sessions, and errors of lower layers as inputs of the machines.

use super::api::{RuntimeError, WorktreeClients};
use super::failed_starts::FailedStarts;
use super::memory::MemoryBudget;
use super::module_sets::ModuleSets;
use super::owner_jails::OwnerJails;
use super::pressure::MemoryPressure;
use super::registry::Registry;
use crate::brokers::Brokers;
use crate::egress::Egress;
use crate::files_agents::FilesAgentError;
use crate::script_input::ScriptInput;
use crate::shares::{Holder, ShareRefusal, Shares};
use crate::type_checks::TypeChecks;
use crate::workspaces::Workspaces;
use crate::worktree::{Roots, Worktree, WorktreeClient, WorktreeError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use vm_system_core::{
    ChannelFault, LibraryFailure, LibraryProblem, SessionInput as Input, SpawnFailure, SpawnFault,
};
use vm_system_policy::Operator;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::limits::FILE_CALL_MS;
use vm_system_protocol::model::HttpRecord;
use vm_system_record::{Owner, RecordedWorktree, http_audit};
use vm_system_spawn::{LibraryError, SpawnError, WorkerChannelError};
use vm_system_store::StoreHandle;

/// Shared state of all sessions.
#[derive(Debug)]
pub(super) struct RuntimeContext {
    pub(super) store: StoreHandle,
    pub(super) brokers: Brokers,
    pub(super) egress: Egress,
    pub(super) jails: Arc<OwnerJails>,
    pub(super) registry: Arc<Registry>,
    pub(super) roots: Roots,
    pub(super) worktree_clients: WorktreeClients,
    pub(super) workspaces: Workspaces,
    pub(super) operator: Operator,
    pub(super) started: Instant,
    /// See [`RuntimeConfig`](super::api::RuntimeConfig).
    pub(super) suspend_after: Option<Duration>,
    pub(super) pressure: Arc<MemoryPressure>,
    /// Work on files of worktrees that is done at a time.
    pub(super) files: Arc<Shares>,
    /// Processes whose memory is being read for `inspect`.
    pub(super) inspections: Arc<Shares>,
    pub(super) budget: MemoryBudget,
    pub(super) failed_starts: FailedStarts,
    /// The standard input of scripts; none: they are at its end.
    pub(super) stdin: Option<ScriptInput>,
    pub(super) type_checks: TypeChecks,
    pub(super) module_sets: Arc<ModuleSets>,
    /// Cancelled when the sessions are left to the next supervisor.
    pub(super) left: CancellationToken,
}

impl RuntimeContext {
    /// Who has the shares of an owner's sessions and executions.
    pub(super) fn holder(&self, owner: &Owner) -> Holder {
        Holder::new(owner.clone(), self.worktree_clients.client_of(owner) == WorktreeClient::Administrator)
    }

    /// Adds lines to the audit log, one for each request that a session has made. Does not block.
    pub(super) fn audit_http(&self, owner: &Owner, session: SessionId, records: Vec<HttpRecord>) {
        if records.is_empty() {
            return;
        }
        let (store, owner) = (self.store.for_owner(owner), owner.clone());
        tokio::spawn(async move {
            for record in records {
                let line = http_audit(&owner, session, store.now(), &record);
                if let Err(error) = store.submit_lazy(line).await {
                    tracing::warn!(%session, %error, "an HTTP request is not in the audit log");
                }
            }
        });
    }

    /// Does blocking work on files, after a wait for a slot.
    pub(super) async fn files<T: Send + 'static>(
        &self,
        holder: &Holder,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, FilesError> {
        files(&self.files, holder, FILES_DEADLINE, work).await
    }

    /// Opens a recorded worktree again, if the operator still permits it to its owner.
    pub(super) async fn reopen_worktree(
        &self,
        recorded: &Arc<RecordedWorktree>,
        owner: &Owner,
    ) -> Result<Worktree, RuntimeError> {
        let client = self.worktree_clients.client_of(owner);
        let path = Path::new(&recorded.root);
        if let Some(opened) = Worktree::open_cached(path, Some(recorded), &self.roots, &client) {
            return Ok(opened);
        }
        let (recorded, roots) = (Arc::clone(recorded), self.roots.clone());
        let open = move || Worktree::open_recorded(&recorded, &roots, &client);
        Ok(self.files(&self.holder(owner), open).await??)
    }

    /// Why the user whose rights use a recorded worktree does not exist any more, if that is certain.
    pub(super) async fn user_gone(&self, recorded: &RecordedWorktree, owner: &Owner) -> Option<String> {
        let (agents, uid, name) = (self.roots.agents()?.clone(), recorded.uid, recorded.user.clone()?);
        match self.files(&self.holder(owner), move || agents.check_name(uid, &name)).await {
            Ok(Err(gone @ FilesAgentError::NoUser { .. })) => Some(gone.to_string()),
            _ => None,
        }
    }

    /// Checks that a live session may still use its worktree: its owner may have lost a role or a token. Does not block.
    pub(super) fn permits(&self, worktree: &Worktree, owner: &Owner) -> Result<(), WorktreeError> {
        worktree.permits(&self.roots, &self.worktree_clients.client_of(owner))
    }

    /// Opens a worktree, if the operator permits it to its owner; for an administrator with the rights of the user `as_user`, if
    /// there is one.
    pub(super) async fn open_worktree(
        &self,
        path: PathBuf,
        owner: &Owner,
        as_user: Option<String>,
    ) -> Result<Worktree, RuntimeError> {
        let client = match (self.worktree_clients.client_of(owner), as_user) {
            (client, None) => client,
            (WorktreeClient::Administrator, Some(user)) => WorktreeClient::AdministratorAs(user),
            (_, Some(_)) => {
                return Err(WorktreeError::NotPermitted(
                    "only an administrator acts as another user".to_owned(),
                )
                .into());
            }
        };
        if let Some(opened) = Worktree::open_cached(&path, None, &self.roots, &client) {
            return Ok(opened);
        }
        let roots = self.roots.clone();
        let holder = self.holder(owner);
        Ok(self.files(&holder, move || Worktree::open(&path, &roots, &client)).await??)
    }
}

/// A file of a worktree must be opened or read within this time, the wait for a slot apart.
const FILES_DEADLINE: Duration = Duration::from_millis(FILE_CALL_MS);

/// Why work on files has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// No slot was free in time.
    #[error(transparent)]
    Busy(#[from] ShareRefusal),
    /// The file system did not respond. The work keeps its slot until it ends.
    #[error("the file system of the worktree did not respond within {0} s")]
    Late(u64),
    /// The runtime is stopping.
    #[error("the supervisor is stopping")]
    Stopping,
}

/// [`RuntimeContext::files`]. A file system may never respond (FUSE, a server that is gone): then the thread stays, and its slot is
/// the owner's, so that it is short of slots and nobody else.
async fn files<T: Send + 'static>(
    slots: &Arc<Shares>,
    holder: &Holder,
    deadline: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FilesError> {
    let slot = timeout(deadline, slots.wait(holder, 1)).await.map_err(|_| slots.refusal(holder))?;
    let slot = slot.ok_or(FilesError::Stopping)?;
    let work = tokio::task::spawn_blocking(move || {
        let result = work();
        drop(slot);
        result
    });
    match timeout(deadline, work).await {
        Ok(result) => result.map_err(|_| FilesError::Stopping),
        Err(_) => Err(FilesError::Late(deadline.as_secs())),
    }
}

/// The machine's input when no worker was started.
pub(super) fn no_worker(error: SpawnError) -> Input {
    match error {
        SpawnError::Library(error) => Input::LibraryFailed(library_failure(&error)),
        error => Input::SpawnFailed(spawn_failure(&error)),
    }
}

pub(super) fn spawn_failure(error: &SpawnError) -> SpawnFailure {
    let fault = match error {
        SpawnError::WrongHello { .. } | SpawnError::Unsupported { .. } | SpawnError::NotJailed(_) => {
            SpawnFault::Wrong
        }
        _ if error.is_temporary() => SpawnFault::Busy,
        _ => SpawnFault::Host,
    };
    SpawnFailure { why: error.to_string(), fault, hint: error.hint() }
}

pub(super) fn fault(error: WorkerChannelError) -> ChannelFault {
    match error {
        WorkerChannelError::Closed => ChannelFault::Closed,
        WorkerChannelError::WriteTimeout => ChannelFault::Stuck,
        WorkerChannelError::MessageTimeout => {
            ChannelFault::Violation("did not complete a message".to_owned())
        }
        WorkerChannelError::Violation(what) => ChannelFault::Violation(what),
        WorkerChannelError::TooLarge(what) => ChannelFault::Violation(format!("cannot be sent: {what}")),
        WorkerChannelError::NotSpoken(what) => ChannelFault::Violation(format!("cannot be sent: {what}")),
        WorkerChannelError::Io(error) => ChannelFault::Violation(format!("channel: {error}")),
    }
}

fn library_failure(error: &LibraryError) -> LibraryFailure {
    let problem = match error {
        LibraryError::NotInstalled(_) => LibraryProblem::NotInstalled,
        LibraryError::Corrupt { .. } => LibraryProblem::Corrupt,
        LibraryError::Failed { .. } => LibraryProblem::Failed,
    };
    LibraryFailure { library: error.library().to_owned(), problem, text: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::ShareLimits;
    use std::sync::mpsc as blocking;

    #[tokio::test]
    async fn file_system_that_does_not_respond_takes_only_the_slots_of_its_owner() {
        const SLOTS: usize = 8;
        const SOON: Duration = Duration::from_millis(1);
        const PATIENT: Duration = Duration::from_mins(1);
        let slots = Shares::new("file calls", "file_calls", ShareLimits::at_most(SLOTS));
        let (stuck, other) = (Holder::Owner(Owner::new("a")), Holder::Owner(Owner::new("b")));
        let (releases, threads): (Vec<_>, Vec<_>) = (0..SLOTS).map(|_| blocking::channel::<()>()).unzip();
        let mut outcomes = Vec::new();
        for thread in threads {
            let work = move || thread.recv().is_ok();
            outcomes.push(files(&slots, &stuck, SOON, work).await.expect_err("nothing responds"));
        }
        let late = outcomes.iter().filter(|outcome| matches!(outcome, FilesError::Late(_))).count();
        assert_eq!(late, SLOTS / 2, "{outcomes:?}");
        let FilesError::Busy(refusal) = &outcomes[SLOTS - 1] else { panic!("{outcomes:?}") };
        assert!(refusal.to_string().starts_with("a has 4 of 8 file calls"), "{refusal}");
        assert_eq!(files(&slots, &other, PATIENT, || 42).await, Ok(42), "others have theirs");
        drop(releases);
        assert_eq!(files(&slots, &stuck, PATIENT, || 43).await, Ok(43), "they were returned");
        slots.close();
        assert_eq!(files(&slots, &other, PATIENT, || 44).await, Err(FilesError::Stopping));
    }
}
