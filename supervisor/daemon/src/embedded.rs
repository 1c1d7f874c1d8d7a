//! A supervisor without an API, for one command: its records are in a temporary folder, and none of them outlives the process.

use super::assembly::{Assembly, Parts};
use super::error::DaemonError;
use super::rights;
use super::shares::ShareConfig;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use vm_system_ops::{Caller, ClientPresence, IdempotencyKey, VerbHandler as _, VerbRequest};
use vm_system_policy::Operator;
use vm_system_protocol::control::{Op, OpError, Reply, Verb};
use vm_system_protocol::model::Limits;
use vm_system_record::Owner;
use vm_system_runtime::client_memory::ReplyMemory;
use vm_system_runtime::script_input::ScriptInput;
use vm_system_runtime::shares::ShareLimits;
use vm_system_runtime::workspaces::WorkspaceLimits;
use vm_system_runtime::worktree::Roots;
use vm_system_runtime::{FollowedBatch, Follower, PressureConfig, WorktreeClients};
use vm_system_spawn::libraries::LibraryStore;
use vm_system_spawn::{SandboxMode, SpawnConfig};
use vm_system_store::OpenError;

/// Most sessions of one command.
const SESSIONS: usize = 16;
/// Time for sessions to end before they are killed.
const STOP: Duration = Duration::from_secs(2);

/// A supervisor inside this process.
pub struct Embedded {
    assembly: Assembly,
    caller: Caller,
}

impl Embedded {
    /// Builds a jail. Must be called inside a multi-threaded tokio runtime: it continues while the caller waits. `stdin` is what
    /// scripts read as their standard input.
    pub async fn start(
        sandbox: SandboxMode,
        operator: Operator,
        stdin: Option<ScriptInput>,
    ) -> Result<Self, DaemonError> {
        let opening = tokio::task::spawn_blocking(vm_system_store::open_temporary);
        let parts = Parts {
            library_store: LibraryStore::in_memory(),
            spawn: SpawnConfig { sandbox, ..SpawnConfig::embedded() },
            kept: vm_system_spawn::KeptJails::default(),
            keeper_per_owner: false,
            roots: Roots::of_this_process().map_err(DaemonError::Roots)?,
            worktrees_confined: false,
            worktree_clients: WorktreeClients::new(|_| {
                vm_system_runtime::worktree::WorktreeClient::Administrator
            }),
            shares: ShareConfig { sessions: ShareLimits::at_most(SESSIONS), ..ShareConfig::default() },
            lowered: None,
            suspend_after: None,
            pressure: PressureConfig::off(),
            durable: vm_system_runtime::DurableConfig::default(),
            // The user who runs a script on the command line is the operator.
            ceilings: Limits::unlimited(),
            workspaces: None,
            workspace_limits: WorkspaceLimits::default(),
            operator,
            egress_socket: None,
            own_ports: Vec::new(),
            stop: CancellationToken::new(),
            stdin,
        };
        let owner = Owner::of_uid(nix::unistd::geteuid().as_raw());
        let caller = Caller { owner, admin: true, api: "embedded" };
        let store = async {
            opening.await.unwrap_or_else(|error| {
                Err(OpenError::Unusable { path: std::env::temp_dir(), detail: error.to_string() })
            })
        };
        let assembly = Assembly::start(parts, store).await?;
        let embedded = Self { assembly, caller };
        if let Err(error) = rights::restrict_calls() {
            embedded.stop().await;
            return Err(error);
        }
        Ok(embedded)
    }

    /// Receives the events of a verb; at most so many batches of them wait.
    pub fn follower(batches: usize) -> (Follower, mpsc::Receiver<FollowedBatch>) {
        vm_system_runtime::follower(batches, ReplyMemory::default())
    }

    /// Runs one verb.
    pub async fn call<V: Verb>(
        &self,
        verb: V,
        idempotency_key: Option<String>,
        events: Follower,
    ) -> Result<V::Reply, OpError> {
        Ok(V::reply_from(self.handle(verb.into(), idempotency_key, events).await?)?)
    }

    /// Runs any verb.
    pub async fn handle(
        &self,
        op: Op,
        idempotency_key: Option<String>,
        events: Follower,
    ) -> Result<Reply, OpError> {
        let idempotency_key = idempotency_key.as_deref().map(IdempotencyKey::parse).transpose()?;
        let events = op.follows().then_some(events);
        // One user, who is the operator.
        let (caller, memory) = (self.caller.clone(), ReplyMemory::default());
        let presence = ClientPresence::default();
        self.assembly.ops.handle(VerbRequest { caller, idempotency_key, op, events, memory, presence }).await
    }

    /// Ends all sessions and processes; none is left when this returns.
    pub async fn stop(&self) {
        self.assembly.end_sessions(STOP).await;
        self.assembly.close_store().await;
    }
}
