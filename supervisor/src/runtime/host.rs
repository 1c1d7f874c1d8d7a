//! What a session asks of the host: files to run, modules, calls of the `fs` module. The policy was checked before.

use super::task::Shared;
use crate::core::{Input, LoadFailure, LoadedSource};
use crate::policy::EffectivePolicy;
use crate::worktree::{Wanted, Worktree, WorktreeError, resolve, run_file_format};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::limits::FS_READ_BYTES;
use vm_system_protocol::worker::{HostError, HostReply, HostRequest, SourceFormat};

/// Work that is under way; dropping it gives up the answer.
pub(super) type HostWork = Pin<Box<dyn Future<Output = Input> + Send>>;

/// Reads a file that is to be run.
pub(super) fn load_source(
    shared: Arc<Shared>,
    worktree: Worktree,
    execution: ExecutionId,
    path: String,
    format: Option<SourceFormat>,
    policy: Arc<EffectivePolicy>,
) -> HostWork {
    Box::pin(async move {
        let cap = u64::from(policy.wire.limits.max_source_kb) * 1024;
        let format = format.unwrap_or_else(|| run_file_format(&path, policy.esm));
        let read = shared.files(move || worktree.read_text(&path, cap)).await;
        let result = match read {
            Some(Ok(text)) => Ok(LoadedSource { text, format }),
            Some(Err(error)) => Err(load_failure(&error)),
            None => Err(LoadFailure::Unreadable(
                "the file could not be read: the supervisor is stopping".to_owned(),
            )),
        };
        Input::SourceLoaded { execution, result }
    })
}

fn load_failure(error: &WorktreeError) -> LoadFailure {
    let text = error.to_string();
    match error {
        WorktreeError::InvalidPath(_) | WorktreeError::NotPermitted(_) => LoadFailure::InvalidPath(text),
        WorktreeError::NotFound(_) => LoadFailure::NotFound(text),
        WorktreeError::TooLarge { .. } => LoadFailure::TooLarge(format!("{text} (max_source_kb)")),
        WorktreeError::Unreadable(_) | WorktreeError::Worktree(_) => LoadFailure::Unreadable(text),
    }
}

/// Does what a script asks for.
pub(super) fn call(
    shared: Arc<Shared>,
    worktree: Worktree,
    session: SessionId,
    call: u64,
    request: HostRequest,
    policy: Arc<EffectivePolicy>,
) -> HostWork {
    Box::pin(async move {
        let reply = match request {
            HostRequest::LoadModule { specifier, referrer, import } => {
                load_module(&shared, worktree, policy, specifier, referrer, import).await
            }
            HostRequest::Fs(request) => {
                match shared.brokers.call(session, std::os::fd::AsFd::as_fd(&worktree), request).await {
                    Ok(reply) => HostReply::Fs(reply),
                    Err(error) => HostReply::Failed(error),
                }
            }
        };
        Input::HostReplied { call, reply }
    })
}

async fn load_module(
    shared: &Shared,
    worktree: Worktree,
    policy: Arc<EffectivePolicy>,
    specifier: String,
    referrer: String,
    import: bool,
) -> HostReply {
    let found = shared
        .files(move || {
            let (esm, cap) = (policy.esm, FS_READ_BYTES as u64);
            let wanted = Wanted { specifier: &specifier, referrer: &referrer, import, esm, cap };
            resolve(&worktree, &policy.wire.resolver, wanted)
        })
        .await;
    match found {
        Some(Ok(module)) => {
            HostReply::Module { path: module.path, source: module.source, format: module.format }
        }
        Some(Err(error)) => HostReply::Failed(error),
        None => HostReply::Failed(HostError {
            code: "EIO".to_owned(),
            message: "the supervisor is stopping".to_owned(),
        }),
    }
}
