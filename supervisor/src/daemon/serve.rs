//! The daemon's life.
//!
//! Up: signals, store (whose lock keeps a second daemon out), socket, jail, door, READY. Down, by SIGTERM, SIGINT or the
//! verb: STOPPING; nothing new is taken and requests under way get `drain` to end by themselves; sessions are closed and
//! get `stop` to end, then the jail is killed; the last answers are written; store and socket are closed. A second signal
//! skips what is left of `drain`.

use super::assembly::{Assembly, Parts};
use super::config::Config;
use super::error::DaemonError;
use super::notify::{State, notify};
use super::socket::ControlSocket;
use super::stop_signals::StopSignals;
use crate::api::control::{self, ControlLimits, Door, PeerPolicy};
use crate::libraries::Shelf;
use crate::spawn::SpawnConfig;
use crate::store::{self, StoreHandle, StoreOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// After all sessions have ended, their requests must be answered within.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Serves until a signal or the verb stops it. When this returns, no process that it started is left.
pub async fn serve(config: Config) -> Result<(), DaemonError> {
    let mut signals = StopSignals::listen().map_err(DaemonError::Signals)?;
    let stop = CancellationToken::new();
    let store = open(&config).await?;
    let shelf = match open_shelf(&config, &store).await {
        Ok(shelf) => shelf,
        Err(error) => {
            store.shutdown().await;
            return Err(error);
        }
    };
    let bound = ControlSocket::bind(&config.socket, config.socket_group.as_deref());
    let (socket, listener) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            store.shutdown().await;
            return Err(error.into());
        }
    };
    let assembly = Assembly::start(parts(&config, store, shelf, stop.clone())).await?;
    let door = Door::default();
    let peers = PeerPolicy::new(nix::unistd::geteuid().as_raw(), config.service_ids.uid);
    let verbs = Arc::clone(&assembly.verbs);
    let serving =
        tokio::spawn(control::serve(listener, verbs, peers, ControlLimits::default(), door.clone()));
    notify(State::Ready);
    tracing::info!(
        pid = std::process::id(),
        socket = %config.socket.display(),
        state_dir = %config.state_dir.display(),
        durability = config.durability.as_str(),
        "ready"
    );
    tokio::select! {
        () = signals.next() => tracing::info!("stopping: a signal"),
        () = stop.cancelled() => tracing::info!("stopping: an operator's order"),
    }
    notify(State::Stopping);
    close(&config, &assembly, &door, &mut signals).await;
    serving.await.map_err(|error| DaemonError::Internal(error.to_string()))?;
    assembly.close_store().await;
    drop(socket);
    tracing::info!("stopped");
    Ok(())
}

async fn open(config: &Config) -> Result<StoreHandle, DaemonError> {
    let options = StoreOptions {
        database: config.database.clone(),
        durability: config.durability,
        retention: config.retention.clone(),
        ..StoreOptions::new(&config.state_dir)
    };
    let opened = tokio::task::spawn_blocking(move || store::open_sqlite(options)).await;
    Ok(opened.map_err(|error| DaemonError::Internal(error.to_string()))??)
}

/// The folder of the libraries, without what a crash has left there.
async fn open_shelf(config: &Config, store: &StoreHandle) -> Result<Shelf, DaemonError> {
    let known = store.libraries().await.map_err(|error| DaemonError::Internal(error.to_string()))?;
    let state_dir = config.state_dir.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let shelf = Shelf::open(&state_dir)?;
        if let Err(error) = shelf.sweep(&known.iter().map(|row| row.hash).collect()) {
            tracing::warn!(%error, "the folder of the libraries was not cleaned");
        }
        Ok(shelf)
    });
    let opened = opened.await.map_err(|error| DaemonError::Internal(error.to_string()))?;
    opened.map_err(|source| DaemonError::Libraries { path: config.state_dir.clone(), source })
}

fn parts(config: &Config, store: StoreHandle, shelf: Shelf, stop: CancellationToken) -> Parts {
    let spawn = SpawnConfig {
        sandbox: config.sandbox,
        service_ids: config.service_ids,
        grace: config.keeper_grace,
        reserve_zygote: true,
        ..SpawnConfig::embedded()
    };
    Parts {
        store,
        shelf,
        spawn,
        worktree_roots: config.worktree_roots.clone(),
        max_sessions: config.max_sessions,
        ceilings: config.ceilings.clone(),
        stop,
    }
}

/// The ladder.
async fn close(config: &Config, assembly: &Assembly, door: &Door, signals: &mut StopSignals) {
    door.closing.cancel();
    door.requests.close();
    tokio::select! {
        drained = timeout(config.drain, door.requests.wait()) => if drained.is_err() {
            tracing::warn!(requests = door.requests.len(), "requests are still under way; ending their sessions");
        },
        () = signals.next() => tracing::warn!("a second signal: not waiting for requests"),
    }
    assembly.end_sessions(config.stop).await;
    if timeout(LAST_ANSWERS, door.requests.wait()).await.is_err() {
        tracing::warn!(requests = door.requests.len(), "requests without an answer are dropped");
    }
    door.hang_up.cancel();
}
