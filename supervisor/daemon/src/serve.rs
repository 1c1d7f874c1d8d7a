//! The daemon from start to exit.
//!
//! Start (after [`PreparedDaemon`]): signals, the lock of the state directory (it excludes a second daemon), store, groups, sockets,
//! jail, APIs, READY. Stop, by SIGTERM, SIGINT or the verb: STOPPING; no new requests are accepted, and requests in progress get
//! `drain` to finish; sessions are closed and get `stop` to end, then the jail is killed; the last responses are written; store and
//! sockets are closed. A second signal skips the rest of `drain`. A daemon with a lifeline that receives a signal leaves its sessions
//! instead, and returns when everything that it has replied is stored: its sessions are the next daemon's, as if it had been killed.

use super::assembly::{Assembly, Parts};
use super::cgroups;
use super::config::Config;
use super::descriptors::{self, Divided};
use super::error::DaemonError;
use super::http::HttpApi;
use super::idle;
use super::lifeline;
use super::notify::{State, notify};
use super::passed::PassedSockets;
use super::prepare::PreparedDaemon;
use super::reload::Reload;
use super::rights;
use super::socket::{ListeningSocket, find_group};
use super::stop_signals::StopSignals;
use super::trim;
use super::watchdog;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use vm_system_api::control::{self, ControlLimits, OwnUser, PeerPolicy, ServerState};
use vm_system_api::rest::{self, TokenBook};
use vm_system_ops::VerbHandler;
use vm_system_runtime::WorktreeClients;
use vm_system_runtime::client_memory::ClientMemory;
use vm_system_runtime::worktree::{Roots, WorktreeClient};
use vm_system_sandbox::cgroup::CgroupSubtree;
use vm_system_sandbox::rlimit;
use vm_system_spawn::libraries::LibraryStore;
use vm_system_spawn::{Cgroups, KeptJail, KeptJails, KeptJailsError, SpawnConfig};
use vm_system_store::{StoreHandle, StoreLock, StoreOptions};

/// Time for the responses of requests after all sessions have ended.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

/// How long requests in progress may take when the sessions stay: a restart should not be noticed.
const HAND_OVER: Duration = Duration::from_secs(1);

/// How long the tasks of sessions may take to end when the sessions stay. They wait for nothing.
const LEAVE: Duration = Duration::from_millis(250);

/// The things that an earlier daemon has left to this one, and that this one leaves to the next.
struct Succession {
    kept: KeptJails,
    lifeline: Option<Arc<OwnedFd>>,
}

/// How a daemon has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DaemonEnd {
    /// No process of it is left.
    Stopped,
    /// The sessions are the next daemon's, and the process is to exit at once.
    Left,
}

/// Serves until a signal or the verb stops the daemon. When this returns, no process of the daemon is left, but for sessions that
/// are kept for the next one.
pub async fn serve(daemon: PreparedDaemon) -> Result<DaemonEnd, DaemonError> {
    let PreparedDaemon { mut config, subtree, roots } = daemon;
    let passed = PassedSockets::take()?;
    let lifeline = lifeline(&mut config, subtree.as_ref().ok());
    let signals = StopSignals::listen().map_err(DaemonError::Signals)?;
    // Before anything is done to keepers: they may be another daemon's.
    let options = store_options(&config);
    let lock = options.lock()?;
    // They wait without an end once this process is connected to them: also while a schema is migrated.
    let (store, kept) = tokio::try_join!(open(options, lock), async { Ok(kept_jails(&config).await) })?;
    let kept = match kept {
        Ok(kept) => may_take_over(&kept.jails, &store).await.map(|()| kept),
        Err(error) => Err(error),
    };
    let with_groups = |kept: KeptJails| {
        let divided = descriptors::divide(&config.shares, &config.durable)?;
        let cgroups = cgroups::groups(subtree, !kept.jails.is_empty(), &config.cgroups)?;
        Ok((kept, cgroups, divided))
    };
    let (kept, cgroups, divided) = match kept.and_then(with_groups) {
        Ok(both) => both,
        Err(error) => {
            store.shutdown().await;
            return Err(error);
        }
    };
    let succession = Succession { kept, lifeline };
    let prepared = PreparedServing {
        configured: config,
        divided,
        roots,
        passed,
        store: store.clone(),
        succession,
        cgroups,
    };
    tokio::select! {
        served = serve_from(prepared, signals) => served,
        // In the same task: if it does not run, nothing is reported. Until the end, which may take as long as `drain`.
        never = watchdog::report(store) => match never {},
    }
}

/// The parts of a daemon whose store is open and whose predecessor has ended.
struct PreparedServing {
    configured: Config,
    divided: Divided,
    roots: Roots,
    passed: PassedSockets,
    store: StoreHandle,
    succession: Succession,
    cgroups: Cgroups,
}

async fn serve_from(prepared: PreparedServing, mut signals: StopSignals) -> Result<DaemonEnd, DaemonError> {
    let PreparedServing { configured, divided, roots, passed, store, succession, cgroups } = prepared;
    let stop = CancellationToken::new();
    let Divided { shares, durable, lowered } = divided;
    let config = Config { shares, durable, ..configured.clone() };
    let library_store = match open_library_store(&config, &store).await {
        Ok(library_store) => library_store,
        Err(error) => {
            store.shutdown().await;
            return Err(error);
        }
    };
    let bound = async {
        let group = config.socket_group.as_deref().map(find_group).transpose()?;
        let own_uid = nix::unistd::geteuid().as_raw();
        let own_user = if config.is_service() { OwnUser::Service(own_uid) } else { OwnUser::Person(own_uid) };
        let peers = PeerPolicy::new(own_user, config.service_ids.uid, group);
        let control = if let Some(listener) = passed.control {
            (None, listener)
        } else {
            let (socket, listener) = ListeningSocket::bind(&config.socket, group)?;
            (Some(socket), listener)
        };
        let passed_http = (passed.http_unix, passed.http_tcp);
        Ok::<_, DaemonError>((
            control,
            HttpApi::bind(&config, peers.clone(), group, passed_http).await?,
            peers,
        ))
    };
    let ((socket, listener), http, peers) = match bound.await {
        Ok(bound) => bound,
        Err(error) => {
            store.shutdown().await;
            return Err(error);
        }
    };
    let worktree_clients = worktree_clients(peers.clone(), Arc::clone(&http.options.tokens));
    let hands_over = succession.lifeline.is_some();
    let mut reload = Reload::new(&configured, &http.options, roots.clone());
    let own_ports = http.listeners.ports();
    let parts = parts(
        &config,
        library_store,
        (cgroups, succession),
        (roots, worktree_clients),
        lowered,
        own_ports,
        stop.clone(),
    );
    let assembly = Assembly::start(parts, std::future::ready(Ok(store))).await?;
    let state = ServerState::new(config.shares.streams, ClientMemory::new(config.shares.memory));
    let limits = ControlLimits { connections: config.shares.connections, ..ControlLimits::default() };
    let ops: Arc<dyn VerbHandler> = assembly.ops.clone();
    let served = rights::restrict_calls().and_then(|()| {
        let control = control::serve(listener, Arc::clone(&ops), peers, limits, state.clone());
        let rest = rest::serve(http.listeners, ops, http.options, state.clone());
        let served = control.and_then(|control| Ok((tokio::spawn(control), tokio::spawn(rest?))));
        served.map_err(DaemonError::Serve)
    });
    let (control, rest) = match served {
        Ok(tasks) => tasks,
        Err(error) => {
            assembly.end_sessions(config.stop).await;
            assembly.close_store().await;
            return Err(error);
        }
    };
    let trimming = tokio::spawn(trim::run(state.clone()));
    // Ends with `stop`.
    tokio::spawn(Arc::clone(&assembly.ops).run_schedules());
    notify(State::Ready);
    tracing::info!(
        pid = std::process::id(),
        socket = %config.socket.display(),
        http = %config.http.socket_beside(&config.socket).display(),
        state_dir = %config.state_dir.display(),
        durability = config.durability.as_str(),
        service = config.is_service(),
        uid = nix::unistd::geteuid().as_raw(),
        "ready"
    );
    let idle = async {
        match config.idle_exit {
            Some(idle) => idle::wait(&state.clients, &assembly, idle).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(idle);
    loop {
        let (stopped, hung_up) = signals.both();
        tokio::select! {
            () = &mut idle => tracing::info!("stopping: no client is connected and nothing runs"),
            () = stopped => {
                if !hands_over {
                    tracing::info!("stopping: a signal");
                    break;
                }
                notify(State::Stopping);
                stop.cancel();
                tracing::info!("stopping: a signal; the sessions are kept for the next daemon");
                trimming.abort();
                hand_over(&assembly, &state, &mut signals).await;
                drop((socket, http.socket));
                return Ok(DaemonEnd::Left);
            }
            () = stop.cancelled() => tracing::info!("stopping: requested by an operator"),
            () = hung_up => {
                reload.run().await;
                continue;
            }
        }
        break;
    }
    notify(State::Stopping);
    // Requests that wait for something to happen end.
    stop.cancel();
    trimming.abort();
    close(&config, &assembly, &state, &mut signals).await;
    let ended = (control.await, rest.await);
    assembly.close_store().await;
    drop((socket, http.socket));
    ended.0.and(ended.1).map_err(|error| DaemonError::Internal(error.to_string()))?;
    tracing::info!("stopped");
    Ok(DaemonEnd::Stopped)
}

/// The folder in which keepers wait for the next supervisor.
fn keepers(config: &Config) -> PathBuf {
    config.state_dir.join("keepers")
}

/// Connects to the keepers of an earlier supervisor.
async fn kept_jails(config: &Config) -> Result<KeptJails, DaemonError> {
    let folder = keepers(config);
    let failed = |source| DaemonError::Keepers { path: folder.clone(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    vm_system_spawn::kept_jails(&folder, config.sandbox).await.map_err(|error| match error {
        KeptJailsError::Io(error) => failed(error),
        newer @ KeptJailsError::Newer { .. } => DaemonError::NewerBuild(newer),
    })
}

/// Descriptors that a daemon needs besides those of its open store, without sessions: listeners, a jail with prestarted workers,
/// clients.
const DESCRIPTORS_OF_SERVING: u64 = 64;
/// An adopted session: the worker's channel and pidfd, and the pidfd that is watched.
const DESCRIPTORS_OF_A_SESSION: u64 = 3;

/// Refuses before a keeper has listed a worker: a list whose descriptors cannot be received ends its sessions.
async fn may_take_over(kept: &[KeptJail], store: &StoreHandle) -> Result<(), DaemonError> {
    if kept.is_empty() {
        return Ok(());
    }
    let internal = |error: &dyn std::fmt::Display| DaemonError::Internal(error.to_string());
    let sessions = store.live_sessions().await.map_err(|error| internal(&error))?.len();
    let open = std::fs::read_dir("/proc/self/fd").map_err(|error| internal(&error))?.count() as u64;
    let limit = rlimit::descriptors().map_err(|error| internal(&error))?;
    let needed = open + DESCRIPTORS_OF_SERVING + DESCRIPTORS_OF_A_SESSION * sessions as u64;
    if needed <= limit { Ok(()) } else { Err(DaemonError::Descriptors { sessions, needed, limit }) }
}

fn store_options(config: &Config) -> StoreOptions {
    StoreOptions {
        database: config.database.clone(),
        socket: Some(config.socket.clone()),
        durability: config.durability,
        accepts_damage: config.accepts_damage,
        retention: config.retention.clone(),
        ..StoreOptions::new(&config.state_dir)
    }
}

async fn open(options: StoreOptions, lock: StoreLock) -> Result<StoreHandle, DaemonError> {
    let opened =
        tokio::task::spawn_blocking(move || vm_system_store::open_locked_sqlite(options, lock)).await;
    Ok(opened.map_err(|error| DaemonError::Internal(error.to_string()))??)
}

/// Opens the folder of the libraries and removes files that a crash has left.
async fn open_library_store(config: &Config, store: &StoreHandle) -> Result<LibraryStore, DaemonError> {
    let known = store.libraries().await.map_err(|error| DaemonError::Internal(error.to_string()))?;
    let state_dir = config.state_dir.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let library_store = LibraryStore::open(&state_dir)?;
        if let Err(error) = library_store.sweep(&known.iter().map(|row| row.hash).collect()) {
            tracing::warn!(%error, "cannot remove leftover files from the folder of the libraries");
        }
        Ok(library_store)
    });
    let opened = opened.await.map_err(|error| DaemonError::Internal(error.to_string()))?;
    opened.map_err(|source| DaemonError::Libraries { path: config.state_dir.clone(), source })
}

/// Maps owners to their rights on worktrees: local users by the rules of the sockets, bearers of tokens by the current file of
/// tokens.
fn worktree_clients(peers: PeerPolicy, tokens: Arc<TokenBook>) -> WorktreeClients {
    WorktreeClients::new(move |owner| match WorktreeClient::of_owner(owner.as_str()) {
        WorktreeClient::User(uid) if peers.is_administrator(uid) => WorktreeClient::Administrator,
        WorktreeClient::User(uid) if peers.is_refused(uid) => WorktreeClient::Revoked,
        WorktreeClient::Token { name, .. } => match tokens.rights(&name) {
            Some(rights) if rights.admin => WorktreeClient::Administrator,
            Some(rights) => WorktreeClient::Token { name, uid: rights.uid },
            None => WorktreeClient::Revoked,
        },
        client => client,
    })
}

fn parts(
    config: &Config,
    library_store: LibraryStore,
    (cgroups, succession): (Cgroups, Succession),
    (roots, worktree_clients): (Roots, WorktreeClients),
    lowered: Option<String>,
    own_ports: Vec<u16>,
    stop: CancellationToken,
) -> Parts {
    let namespace_maker = roots.agents().and_then(|agents| agents.starter().helper());
    let spawn = SpawnConfig {
        sandbox: config.sandbox,
        service_ids: config.service_ids,
        grace: config.keeper_grace,
        lifeline: succession.lifeline,
        keepers: Some(keepers(config)),
        reserve_zygote: true,
        prestart_workers: true,
        namespace_maker: namespace_maker.filter(|helper| helper.makes_namespaces()).cloned(),
        cgroups,
        ..SpawnConfig::embedded()
    };
    Parts {
        library_store,
        spawn,
        kept: succession.kept,
        keeper_per_owner: config.keeper_per_owner,
        // Agents give every user its own rights, so that no root is needed.
        worktrees_confined: !config.worktree_roots.is_empty() || roots.has_agents(),
        roots,
        worktree_clients,
        shares: config.shares.clone(),
        lowered,
        suspend_after: config.suspend_after,
        pressure: config.pressure.clone(),
        durable: config.durable.clone(),
        ceilings: config.ceilings.clone(),
        workspaces: Some(config.state_dir.join("workspaces")),
        workspace_limits: config.workspaces,
        operator: config.operator.clone(),
        egress_socket: config.egress_socket.clone(),
        own_ports,
        stop,
        // A session has no terminal and no pipe of its client.
        stdin: None,
    }
}

/// The lifeline of the jails, if sessions are to be kept; why not is logged. Blocks for a moment.
fn lifeline(config: &mut Config, subtree: Option<&CgroupSubtree>) -> Option<Arc<OwnedFd>> {
    if !config.keep_sessions || config.keeper_grace.is_zero() {
        return None;
    }
    if subtree.is_some_and(|subtree| !subtree.permits_successor()) {
        // The service manager could not start the next daemon in a group that passes controllers on.
        config.keeper_grace = Duration::ZERO;
        tracing::warn!(
            "sessions end with this daemon: its cgroup has controllers, and the service manager did not start it in the group \
             `supervisor` (DelegateSubgroup=supervisor, systemd >= 254)"
        );
        return None;
    }
    lifeline::take()
        .inspect_err(|error| tracing::warn!(%error, "a stop or restart of this daemon ends its sessions"))
        .ok()
}

/// Waits a moment for requests in progress, then leaves the sessions, and waits until what was queued is stored. The store is not closed:
/// that could take a checkpoint, and the next daemon waits for the lock.
async fn hand_over(assembly: &Assembly, state: &ServerState, signals: &mut StopSignals) {
    state.closing.cancel();
    state.requests.close();
    tokio::select! {
        _ = timeout(HAND_OVER, state.requests.wait()) => {}
        () = signals.stop() => {}
    }
    assembly.leave(LEAVE).await;
}

/// Stops the daemon in steps; see the module header.
async fn close(config: &Config, assembly: &Assembly, state: &ServerState, signals: &mut StopSignals) {
    state.closing.cancel();
    state.requests.close();
    tokio::select! {
        drained = timeout(config.drain, state.requests.wait()) => if drained.is_err() {
            tracing::warn!(requests = state.requests.len(), "requests are still in progress; ending their sessions");
        },
        () = signals.stop() => tracing::warn!("a second signal: not waiting for requests"),
    }
    assembly.end_sessions(config.stop).await;
    if timeout(LAST_RESPONSES, state.requests.wait()).await.is_err() {
        tracing::warn!(requests = state.requests.len(), "requests without a response are dropped");
    }
    state.hang_up.cancel();
}
