//! The bytes that a broker for databases may add to its workspace: how much in each call, and whether it keeps to it, counted in the file
//! system while it works and while it is idle.

use super::live::BrokerFailure;
use crate::workspaces::{OpenWorkspace, WorkspaceError, WorkspaceKey, WorkspaceUsage, Workspaces};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use vm_system_protocol::broker::BrokerCall;
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::namespaces::Ids;

/// Between two counts of the files during a call.
const BUSY: Duration = Duration::from_millis(500);
/// Between two counts of the files of a broker without a call.
pub(super) const IDLE: Duration = Duration::from_secs(10);

/// Opens the workspace of a broker that is to be started; none: databases are in memory only.
pub(super) async fn open(
    workspaces: &Workspaces,
    key: &WorkspaceKey,
    service_user: Ids,
) -> Result<Option<Arc<OpenWorkspace>>, HostError> {
    let (workspaces, key) = (workspaces.clone(), key.clone());
    let opened = spawn_blocking(move || workspaces.open(&key, service_user)).await;
    match opened.unwrap_or_else(|error| Err(io::Error::other(error).into())) {
        Ok(workspace) => Ok(workspace.map(Arc::new)),
        Err(error @ WorkspaceError::TooMany { .. }) => Err(HostError {
            code: "ERR_DATABASE_LIMIT".to_owned(),
            message: format!(
                "ERR_DATABASE_LIMIT: {error}; use one of them, or have the operator raise `workspaces_per_owner` \
                 of [databases]"
            ),
        }),
        Err(WorkspaceError::Io(error)) => {
            tracing::warn!(%error, "the folder of a workspace cannot be used");
            Err(super::broker_error(&format!("the folder of the workspace cannot be used: {}", error.kind())))
        }
    }
}

/// Counts the files of a workspace.
pub(super) async fn count(workspace: &Arc<OpenWorkspace>) -> Option<WorkspaceUsage> {
    let workspace = Arc::clone(workspace);
    spawn_blocking(move || workspace.count()).await.ok()
}

/// Sets how much the databases may grow in a call. The usage, if that is less than what the rights of the session permit.
pub(super) fn set_growth(request: &mut BrokerCall, workspace: &OpenWorkspace) -> Option<WorkspaceUsage> {
    let BrokerCall::Database { terms, .. } = request else { return None };
    let usage = workspace.usage();
    terms.growth_bytes = usage.growth();
    (usage.growth() < terms.max_database_bytes).then_some(usage)
}

/// Whether a call may have changed files.
pub(super) fn may_write(request: &BrokerCall) -> bool {
    matches!(request, BrokerCall::Database { terms, .. } if !terms.read_only)
}

/// Resolves when the workspace, or its owner, takes more than honest brokers write.
pub(super) async fn watch(workspace: &Arc<OpenWorkspace>) -> BrokerFailure {
    loop {
        sleep(BUSY).await;
        if let Some(usage) = count(workspace).await
            && usage.is_excessive()
        {
            return BrokerFailure::Excessive;
        }
    }
}

/// The error of a call, with the limit that it has reached.
pub(super) fn explain(error: HostError, limited: Option<&WorkspaceUsage>) -> HostError {
    match limited {
        Some(usage) if error.code == "SQLITE_FULL" => usage.refusal(),
        _ if error.code == "SQLITE_FULL" => HostError {
            message: format!("{}: max_database_kb of its rights, or the disk is full", error.message),
            ..error
        },
        _ => error,
    }
}
