//! Assembles store, runtime and verbs, in the same way for a daemon and for a command.

use super::error::DaemonError;
use super::shares::ShareConfig;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use vm_system_ops::{Ops, OpsOptions};
use vm_system_policy::Operator;
use vm_system_protocol::model::Limits;
use vm_system_protocol::time::Timestamp;
use vm_system_runtime::brokers::BrokerConfig;
use vm_system_runtime::egress::EgressConfig;
use vm_system_runtime::script_input::ScriptInput;
use vm_system_runtime::workspaces::{WorkspaceLimits, Workspaces};
use vm_system_runtime::worktree::Roots;
use vm_system_runtime::{
    DurableConfig, PressureConfig, Runtime, RuntimeApi, RuntimeConfig, WorktreeClients, type_checks,
};
use vm_system_sandbox::beneath;
use vm_system_spawn::libraries::LibraryStore;
use vm_system_spawn::{KeptJails, SpawnConfig};
use vm_system_store::{OpenError, StoreHandle};

/// A task whose deadline is nearer keeps an idle supervisor running, because a process must act on the deadline.
const SOON: Duration = Duration::from_hours(24);

/// The parts of a supervisor that are the same with and without an API.
pub(super) struct Assembly {
    pub(super) ops: Arc<Ops>,
    runtime: Runtime,
    store: StoreHandle,
}

/// The inputs of [`Assembly::start`].
pub(super) struct Parts {
    /// Sources of installed libraries.
    pub(super) library_store: LibraryStore,
    pub(super) spawn: SpawnConfig,
    /// The jails of an earlier supervisor.
    pub(super) kept: KeptJails,
    /// Each owner has a jail of its own.
    pub(super) keeper_per_owner: bool,
    pub(super) roots: Roots,
    /// The operator has configured roots.
    pub(super) worktrees_confined: bool,
    pub(super) worktree_clients: WorktreeClients,
    pub(super) shares: ShareConfig,
    /// The figures that the limit of descriptors has lowered.
    pub(super) lowered: Option<String>,
    /// See [`RuntimeConfig`].
    pub(super) suspend_after: Option<Duration>,
    pub(super) pressure: PressureConfig,
    pub(super) durable: DurableConfig,
    pub(super) ceilings: Limits,
    /// The folder of the workspaces' databases; none: databases are in memory only.
    pub(super) workspaces: Option<PathBuf>,
    pub(super) workspace_limits: WorkspaceLimits,
    pub(super) operator: Operator,
    /// The socket at which a service manager starts egress processes; none: the supervisor starts one.
    pub(super) egress_socket: Option<PathBuf>,
    /// TCP ports of the REST API.
    pub(super) own_ports: Vec<u16>,
    /// Cancelled by the verb that stops the supervisor.
    pub(super) stop: CancellationToken,
    /// The standard input of scripts.
    pub(super) stdin: Option<ScriptInput>,
}

impl Assembly {
    /// Checks the required features of the host, then builds the jail while the store opens; after an error the store is closed.
    pub(super) async fn start(
        parts: Parts,
        store: impl Future<Output = Result<StoreHandle, OpenError>>,
    ) -> Result<Self, DaemonError> {
        let Parts {
            library_store,
            spawn,
            kept,
            keeper_per_owner,
            roots,
            worktrees_confined,
            worktree_clients,
            shares,
            lowered,
            suspend_after,
            pressure,
            durable,
            ceilings,
            workspaces,
            workspace_limits,
            operator,
            egress_socket,
            own_ports,
            stop,
            stdin,
        } = parts;
        let commands_listed = !operator.commands.is_empty();
        if let Err(error) = beneath::check() {
            if let Ok(store) = store.await {
                store.shutdown().await;
            }
            return Err(DaemonError::Files(error));
        }
        let brokers = BrokerConfig {
            service_ids: spawn.service_ids,
            calls: shares.host_calls,
            groups: spawn.cgroups.groups().cloned(),
            agents_have_units: roots.agents().is_some_and(|agents| agents.starter().helper().is_none()),
            ..BrokerConfig::default()
        };
        let egress = EgressConfig {
            service_ids: spawn.service_ids,
            socket: egress_socket,
            own_ports,
            exchanges: shares.http_exchanges,
            ..EgressConfig::default()
        };
        let config = RuntimeConfig {
            keeper_per_owner,
            spawn: SpawnConfig { library_store: library_store.clone(), ..spawn },
            kept,
            brokers,
            egress,
            roots,
            worktree_clients,
            workspaces: Workspaces::new(workspaces, workspace_limits),
            operator,
            sessions: shares.sessions,
            suspend_after,
            pressure,
            file_calls: shares.file_calls,
            durable,
            stdin,
            type_checks: type_checks::limits(&ceilings),
        };
        let runtime = Runtime::start(config, store).await?;
        let store = runtime.store().clone();
        let options = OpsOptions { ceilings, worktrees_confined, commands_listed, lowered };
        let ops = Ops::new(store.clone(), Arc::new(runtime.clone()), options, library_store, stop);
        Ok(Self { ops: Arc::new(ops), runtime, store })
    }

    /// Whether nothing runs, and no task is due within [`SOON`]. A failed query counts as work.
    pub(super) async fn is_idle(&self) -> bool {
        let soon = i64::try_from(SOON.as_millis()).unwrap_or(i64::MAX);
        let until = Timestamp(self.store.now().0.saturating_add(soon));
        self.runtime.live_sessions().is_empty()
            && self.runtime.durables().live() == 0
            // A running program without a worker will get one soon.
            && self.store.goes_on(until).await.is_ok_and(|goes_on| !goes_on)
    }

    /// Ends sessions, jail and brokers within the deadline: no process is left when this returns.
    pub(super) async fn end_sessions(&self, deadline: Duration) {
        self.runtime.shutdown(deadline).await;
    }

    /// Leaves the sessions to the next supervisor. What they have queued is stored when this returns.
    pub(super) async fn leave(&self, deadline: Duration) {
        self.runtime.leave(deadline).await;
        // An empty batch is committed after those before it. A store that cannot write has said so.
        let _ = self.store.apply(Vec::new()).await;
    }

    /// Commits the queued writes and closes the store.
    pub(super) async fn close_store(&self) {
        self.store.shutdown().await;
    }
}
