//! Host calls and files of a session: files to run, modules, calls of host modules. The policy was checked before.

use super::memory::{Reservation, largest_reply};
use super::task::{FilesError, RuntimeContext};
use crate::brokers::AllowedCall;
use crate::shares::Holder;
use crate::workspaces::WorkspaceKey;
use crate::worktree::{ModuleFile, Wanted, Worktree, WorktreeError, first_existing};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use vm_system_core::run_file_format;
use vm_system_core::{LoadFailure, LoadedSource, SessionInput as Input};
use vm_system_policy::{EffectivePolicy, Permit};
use vm_system_protocol::broker::{BrokerCall, BrokerReply};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::worker::{HostError, HostReply, SourceFormat, StdinReply};
use vm_system_spawn::ModuleSet;

/// A host call that is under way; dropping it gives up the result.
pub(super) type HostCallFuture = Pin<Box<dyn Future<Output = Input> + Send>>;

/// The worktree of a call, and the owner's right to use it at this moment.
pub(super) struct CallerFiles {
    pub(super) worktree: Worktree,
    pub(super) permitted: Result<(), WorktreeError>,
    pub(super) holder: Holder,
}

/// Reads a file to run.
pub(super) fn load_source(
    shared: Arc<RuntimeContext>,
    files: CallerFiles,
    execution: ExecutionId,
    path: String,
    format: Option<SourceFormat>,
    policy: Arc<EffectivePolicy>,
) -> HostCallFuture {
    let CallerFiles { worktree, permitted, holder } = files;
    Box::pin(async move {
        let cap = u64::from(policy.wire.limits.max_source_kb) * 1024;
        let format = format.unwrap_or_else(|| run_file_format(&path, policy.esm));
        let read = move || permitted.and_then(|()| worktree.read_text(&path, cap));
        let read = shared.files(&holder, read).await;
        let result = match read {
            Ok(Ok(text)) => Ok(LoadedSource { text, format }),
            Ok(Err(error)) => Err(load_failure(&error)),
            Err(FilesError::Stopping) => Err(LoadFailure::Unreadable(
                "the file could not be read: the supervisor is stopping".to_owned(),
            )),
            Err(error) => Err(LoadFailure::Unavailable(format!("the file could not be read: {error}"))),
        };
        Input::SourceLoaded { execution, result }
    })
}

fn load_failure(error: &WorktreeError) -> LoadFailure {
    let text = error.to_string();
    match error {
        WorktreeError::InvalidPath(_) => LoadFailure::InvalidPath(text),
        WorktreeError::NotPermitted(_)
        | WorktreeError::UserNotPermitted(_)
        | WorktreeError::RootRemoved(_) => LoadFailure::NotPermitted(text),
        WorktreeError::OwnerGone(_) => LoadFailure::OwnerGone(text),
        WorktreeError::NotFound(_) => LoadFailure::NotFound(text),
        WorktreeError::TooLarge { .. } => LoadFailure::TooLarge(format!("{text} (max_source_kb)")),
        WorktreeError::Unreadable(_) | WorktreeError::Worktree(_) | WorktreeError::NoSuchUser(_) => {
            LoadFailure::Unreadable(text)
        }
        WorktreeError::Short(_) | WorktreeError::Unavailable(_) | WorktreeError::HelperExited(_) => {
            LoadFailure::Unavailable(text)
        }
    }
}

/// The caller of a host call.
pub(super) struct HostCaller {
    pub(super) session: SessionId,
    pub(super) execution: ExecutionId,
    /// The owner of the databases that it uses.
    pub(super) workspace: WorkspaceKey,
    /// Has the shares of the call.
    pub(super) holder: Holder,
    /// The memory of the reply, until it is sent.
    pub(super) reservation: Reservation,
    /// The modules that the zygote of its worker has compiled.
    pub(super) modules: Option<ModuleSet>,
}

/// Carries out a host call.
pub(super) fn call(
    shared: Arc<RuntimeContext>,
    (worktree, permitted): (Worktree, Result<(), WorktreeError>),
    caller: HostCaller,
    call: u64,
    permit: Permit,
    policy: Arc<EffectivePolicy>,
) -> HostCallFuture {
    Box::pin(async move {
        let uses_files = !matches!(
            permit,
            Permit::Broker(BrokerCall::Database { .. }) | Permit::Stdin { .. } | Permit::Http(_)
        );
        let reply = match permit {
            _ if uses_files && let Err(error) = permitted => {
                HostReply::Failed(HostError { code: "EACCES".to_owned(), message: error.to_string() })
            }
            Permit::LoadModule { candidates, import, package } => {
                let files = if package { 2 } else { 1 };
                let most = u64::from(policy.wire.limits.max_source_kb) * 1024 * files;
                let held = shared.budget.wait(&caller.holder, most).await;
                let of = (worktree, &caller.holder);
                let reply = load_module(&shared, of, policy, candidates, import, package).await;
                caller.reservation.hold(held);
                without_compiled_text(reply, caller.modules.as_ref())
            }
            // The owner task makes the future of these calls.
            Permit::Http(_) => HostReply::Failed(HostError {
                code: "EIO".to_owned(),
                message: "EIO: a call about HTTP is not one of files".to_owned(),
            }),
            Permit::Stdin { max_bytes, wait_ms } => match &shared.stdin {
                Some(stdin) => stdin.read(max_bytes as usize, Duration::from_millis(wait_ms)).await,
                None => HostReply::Stdin(StdinReply::End),
            },
            Permit::Broker(request) => broker_call(&shared, &worktree, caller, request, &policy)
                .await
                .unwrap_or_else(HostReply::Failed),
        };
        Input::HostReplied { call, reply }
    })
}

async fn broker_call(
    shared: &Arc<RuntimeContext>,
    worktree: &Worktree,
    caller: HostCaller,
    request: BrokerCall,
    policy: &EffectivePolicy,
) -> Result<HostReply, HostError> {
    let HostCaller { session, execution, workspace, holder, reservation, .. } = caller;
    let held = shared.budget.wait(&holder, largest_reply(&request)).await;
    let call = AllowedCall {
        execution,
        request,
        write: policy.may_write_files(),
        worktree: worktree.clone(),
        workspaces: shared.workspaces.clone(),
        workspace,
        holder,
    };
    let reply = shared.brokers.call(session, call).await?;
    reservation.hold(held);
    Ok(match reply {
        BrokerReply::Fs(reply) => HostReply::Fs(reply),
        BrokerReply::Database(reply) => HostReply::Database(reply),
        BrokerReply::Exec(reply) => HostReply::Exec(reply),
    })
}

/// A module that the worker's zygote has compiled is sent without its text.
fn without_compiled_text(reply: HostReply, modules: Option<&ModuleSet>) -> HostReply {
    match (reply, modules) {
        (HostReply::Module { path, source, format, package }, Some(modules))
            if modules.has(&path, &source) =>
        {
            HostReply::Compiled { path, format, package }
        }
        (reply, _) => reply,
    }
}

async fn load_module(
    shared: &RuntimeContext,
    (worktree, holder): (Worktree, &Holder),
    policy: Arc<EffectivePolicy>,
    candidates: Vec<String>,
    import: bool,
    package: bool,
) -> HostReply {
    let found = shared
        .files(holder, move || {
            let (esm, cap) = (policy.esm, u64::from(policy.wire.limits.max_source_kb) * 1024);
            let load = policy.load.as_ref();
            let wanted = Wanted { candidates: &candidates, import, package, esm, cap, load };
            first_existing(&worktree, wanted)
        })
        .await;
    match found {
        Ok(Ok(ModuleFile { path, source, format, package })) => {
            HostReply::Module { path, source, format, package }
        }
        Ok(Err(error)) => HostReply::Failed(error),
        Err(error) => {
            let code = match error {
                FilesError::Busy(_) => "EAGAIN",
                FilesError::Late(_) => "ETIMEDOUT",
                FilesError::Stopping => "EIO",
            };
            HostReply::Failed(HostError { code: code.to_owned(), message: error.to_string() })
        }
    }
}
