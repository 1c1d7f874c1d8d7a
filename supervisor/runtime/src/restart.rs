//! `on_crash: restart`: the worker that replaces one that has exited. It is made as for a new session of the template.

use super::libraries::Libraries;
use super::session_task::SessionTask;
use super::task::no_worker;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use vm_system_core::{Respawned, SessionAction as Action, SessionInput as Input, SpawnFailure};
use vm_system_record::{PolicySnapshot, Scope};
use vm_system_spawn::{
    LibraryError, LibrarySet, SpawnError, Spawner, WorkerHandle, WorkerKind, WorkerLimits,
};

/// The next worker with its jail and what it begins with, or why there is none.
pub(super) type RespawnResult = Result<(WorkerHandle, Spawner, Respawned), Input>;
pub(super) type Respawning = Pin<Box<dyn Future<Output = RespawnResult> + Send>>;

impl SessionTask {
    /// The last worker has exited, and everything that belonged to it ends: another one takes its place.
    pub(super) fn forget_worker(&mut self) {
        // The keeper has one worker of each session.
        match (self.worker.process.take(), &self.worker.jail) {
            (Some(process), _) => process.forget(),
            // It had exited before this supervisor was started.
            (None, Some(jail)) => jail.forget(self.live.id),
            (None, None) => {}
        }
        self.worker.link = None;
        self.shared.brokers.end(self.live.id);
        // The next worker numbers its requests from 1 again.
        self.end_http();
    }

    /// Starts the next worker.
    pub(super) fn respawn(&mut self) {
        self.forget_worker();
        let (shared, live) = (Arc::clone(&self.shared), Arc::clone(&self.live));
        let (template, memory_mb) = (self.machine.record().template_id, self.machine.memory_mb());
        self.worker.respawning = Some(Box::pin(async move {
            let failed = |why: String| Input::SpawnFailed(SpawnFailure::late(why));
            shared.pressure.admit(&live.owner).map_err(|error| failed(error.to_string()))?;
            let unreadable = |error| failed(format!("its template cannot be read: {error}"));
            let row = shared.store.template(&Scope::All, template).await.map_err(unreadable)?;
            let row = row.map(|row| Arc::new(PolicySnapshot::from(&row.detail)));
            let policy = live.policy(row.as_ref(), &shared.operator);
            let names = &live.snapshot().libraries;
            let set = if names.is_empty() {
                LibrarySet::default()
            } else {
                let unreadable = |error| failed(format!("the installed libraries cannot be read: {error}"));
                let installed = shared.store.libraries().await.map_err(unreadable)?;
                match Libraries::find_installed(names, &installed) {
                    Libraries::Installed(set) => set,
                    Libraries::Missing(name) => {
                        return Err(no_worker(SpawnError::Library(LibraryError::NotInstalled(name))));
                    }
                }
            };
            let jails = shared.jails.jails_of(&live.owner).await.map_err(no_worker)?;
            let limits = WorkerLimits { memory_bytes: u64::from(memory_mb) * 1024 * 1024, cpu: None };
            let spawned = jails.spawn_worker(live.id, &live.owner, &limits, &WorkerKind::session(set)).await;
            let (handle, jail) = spawned.map_err(no_worker)?;
            let startup = live.snapshot().startup_files.iter().map(super::specs::startup).collect();
            let respawned = Respawned { random_seed: super::specs::seed(), startup, policy };
            Ok((handle, jail, respawned))
        }));
    }

    /// Handles the result of [`Self::respawn`].
    pub(super) fn respawned(&mut self, result: RespawnResult, actions: &mut Vec<Action>) {
        self.worker.respawning = None;
        let input = match result {
            Ok((handle, jail, respawned)) => {
                self.worker.jail = Some(jail);
                self.modules.set = None;
                self.connect_next(handle);
                Input::Respawned(Box::new(respawned))
            }
            Err(input) => {
                tracing::warn!(session = %self.live.id, ?input, "a session could not be restarted");
                input
            }
        };
        self.step(input, actions);
    }
}
