//! The jail that new workers are started in. A jail that loses its keeper or its zygotes is replaced; workers of the old jail
//! that still run keep it running.

use super::command::Command;
use super::registry::Registry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use vm_system_core::{ChannelFault, SessionInput as Input};
use vm_system_protocol::ids::SessionId;
use vm_system_record::Owner;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_spawn::{SpawnConfig, SpawnError, SpawnEvent, Spawner, WorkerHandle, WorkerKind, WorkerLimits};

/// First and longest pause before another attempt to build a jail.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long the start of a worker waits for the jail that replaces a lost one.
const NEXT_JAIL: Duration = Duration::from_secs(10);

/// The current jail.
#[derive(Debug)]
pub(super) struct Jails {
    present: Mutex<Spawner>,
    /// Number of jails so far; changes when the current one is replaced.
    count: watch::Sender<u64>,
    config: SpawnConfig,
    /// Why there is no new jail instead of a lost one, while it is being built.
    rebuilding: Mutex<Option<String>>,
    stop: CancellationToken,
}

impl Jails {
    /// Builds the first jail; without one the supervisor does not start.
    pub(super) async fn start(config: SpawnConfig, registry: Arc<Registry>) -> Result<Arc<Self>, SpawnError> {
        let (spawner, events) = Spawner::start(config.clone()).await?;
        let (count, _) = watch::channel(1);
        let present = Mutex::new(spawner);
        let jails = Arc::new(Self {
            present,
            count,
            config,
            rebuilding: Mutex::default(),
            stop: CancellationToken::new(),
        });
        tokio::spawn(Arc::clone(&jails).watch(registry, events));
        Ok(jails)
    }

    /// The configuration of every jail.
    pub(super) fn config(&self) -> &SpawnConfig {
        &self.config
    }

    /// The jail for a new worker.
    pub(super) fn present(&self) -> Spawner {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes when the jail is replaced. To be called before [`Self::present`].
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Starts a worker, and returns its jail, too. Where the jail was lost a moment ago, the next one is being built: the start waits for
    /// that, unless it is known that none can be built. Those that wait are as many as their owners may have workers.
    pub(super) async fn spawn_worker(
        &self,
        session: SessionId,
        owner: &Owner,
        limits: &WorkerLimits,
        kind: &WorkerKind,
    ) -> Result<(WorkerHandle, Spawner), SpawnError> {
        let mut changes = self.changes();
        let jail = self.present();
        match jail.spawn_worker(session, owner.as_str(), limits, kind).await {
            Err(SpawnError::KeeperLost | SpawnError::NoZygote) if self.has_next(&mut changes).await => {}
            spawned => return spawned.map(|handle| (handle, jail)),
        }
        let jail = self.present();
        let handle = jail.spawn_worker(session, owner.as_str(), limits, kind).await?;
        Ok((handle, jail))
    }

    /// Waits for the jail that replaces a lost one; `false`: there is none yet.
    async fn has_next(&self, changes: &mut watch::Receiver<u64>) -> bool {
        if self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return false;
        }
        tokio::select! {
            next = timeout(NEXT_JAIL, changes.changed()) => matches!(next, Ok(Ok(()))),
            () = self.stop.cancelled() => false,
        }
    }

    /// Ends the current jail; older ones end with their last worker.
    pub(super) async fn shutdown(&self, deadline: Duration) {
        self.stop.cancel();
        let present = self.present();
        present.shutdown(deadline).await;
    }

    /// Starts no more workers here: the jail ends with the last one.
    pub(super) fn give_up(&self) {
        self.stop.cancel();
    }

    async fn watch(self: Arc<Self>, registry: Arc<Registry>, mut events: mpsc::Receiver<SpawnEvent>) {
        loop {
            let stop = self.stop.clone();
            let event = tokio::select! {
                // First: the end of a jail that was requested is no loss, and gets no other jail.
                biased;
                () = stop.cancelled() => {
                    // Without this one the jail ends with its last worker; until then, workers may make forbidden calls.
                    drop(self);
                    return relay_rest(registry, events).await;
                }
                event = events.recv() => event,
            };
            match event {
                Some(SpawnEvent::KeeperLost | SpawnEvent::ZygotesLost) | None => {
                    let workers_go_on = event == Some(SpawnEvent::ZygotesLost);
                    tracing::warn!(workers_go_on, "the jail is lost; building another");
                    // The workers of the old jail continue, and may still make forbidden calls.
                    tokio::spawn(relay_rest(Arc::clone(&registry), events));
                    let Some(next) = self.replace().await else { return };
                    events = next;
                    registry.has_changed();
                }
                Some(event) => relay(&registry, event).await,
            }
        }
    }

    fn rebuilding(&self, why: Option<String>) {
        *self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Why no worker can be started at this moment, as far as it is known.
    pub(super) fn problem(&self) -> Option<String> {
        let rebuilding = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner).clone();
        rebuilding.or_else(|| self.present().problem())
    }

    async fn replace(&self) -> Option<mpsc::Receiver<SpawnEvent>> {
        let mut pause = PAUSE_MIN;
        loop {
            match Spawner::start(self.config.clone()).await {
                Ok((spawner, events)) => {
                    *self.present.lock().unwrap_or_else(PoisonError::into_inner) = spawner;
                    self.rebuilding(None);
                    self.count.send_modify(|count| *count += 1);
                    return Some(events);
                }
                Err(error) => {
                    tracing::error!(%error, "no new jail; trying again");
                    self.rebuilding(Some(format!("there is no jail: {error}")));
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => return None,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Relays the reports about the workers of a jail that starts no more; ends with the last worker.
pub(super) async fn relay_rest(registry: Arc<Registry>, mut events: mpsc::Receiver<SpawnEvent>) {
    while let Some(event) = events.recv().await {
        relay(&registry, event).await;
    }
}

/// Sends a report about a worker to its session.
async fn relay(registry: &Registry, event: SpawnEvent) {
    match event {
        SpawnEvent::UnorderedFork { pid } => {
            if let Some(live) = registry.by_pid(pid) {
                let what = "tried to create a process".to_owned();
                let _ = live
                    .commands
                    .send(Command::Notice(Input::ChannelFailed(ChannelFault::Violation(what))))
                    .await;
            }
        }
        SpawnEvent::ForbiddenCall { pid, call } => {
            if let Some(live) = registry.by_pid(pid) {
                let _ = live.commands.send(Command::Notice(Input::ForbiddenCall(call))).await;
            } else {
                // A program's worker: the owner task looks the call up at its exit. Or a zygote, or a worker that is not
                // registered yet.
                registry.note_forbidden(pid, call);
                let _ = PidFd::open(pid).and_then(|process| process.kill());
            }
        }
        // From a jail that is replaced already.
        SpawnEvent::KeeperLost | SpawnEvent::ZygotesLost => {}
    }
}
