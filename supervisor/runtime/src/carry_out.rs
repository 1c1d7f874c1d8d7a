//! Carries out the actions of the session machine. Nothing here waits: slow work is started, and polled by the owner task.

use super::host;
use super::libraries::Libraries;
use super::session_task::{SessionTask, SpawnedWorker, store_input};
use super::task::{fault, no_worker};
use crate::type_checks::TypesToCheck;
use crate::workspaces::WorkspaceKey;
use std::sync::Arc;
use std::time::Duration;
use vm_system_core::{SessionAction as Action, SessionInput as Input};
use vm_system_policy::Permit;
use vm_system_protocol::model::HttpRecord;
use vm_system_protocol::worker::{HostReply, ToWorker};
use vm_system_record::Batch;
use vm_system_spawn::{LibraryError, SpawnError, WorkerKind, WorkerLimits, WorkerProcess};
use vm_system_store::Urgency;

impl SessionTask {
    pub(super) fn carry_out(&mut self, action: Action) {
        match action {
            Action::Spawn => self.spawn(),
            Action::Respawn => self.respawn(),
            Action::Send(message) => self.send(message),
            Action::Fork { order } => self.fork(order),
            Action::ForkTaken => self.fork_taken(),
            Action::ForksOver => self.forks_over(),
            Action::Freeze { copy } => self.freeze(copy),
            Action::DropCopy { copy } => self.drop_copy(copy),
            Action::ForkCopy { copy } => self.fork_copy(copy),
            Action::AllowCpu { total_ms } => {
                self.on_worker("raise the CPU limit", |process| {
                    process.allow_cpu(Duration::from_millis(total_ms))
                });
            }
            Action::Interrupt => self.on_worker("interrupt", WorkerProcess::interrupt),
            Action::Kill => {
                // Only the kernel knows it, and only until then.
                if self.worker.link.as_ref().is_some_and(|link| link.process.is_stopped().unwrap_or(false)) {
                    self.next.push(Input::WorkerStopped);
                }
                self.on_worker("kill", WorkerProcess::kill);
            }
            Action::Signal(signal) => self.on_worker("signal", |process| process.signal(signal)),
            Action::LoadSource { execution, path, format, policy } => {
                let shared = Arc::clone(&self.shared);
                let permitted = shared.permits(&self.host.worktree, &self.live.owner);
                let holder = shared.holder(&self.live.owner);
                let files = host::CallerFiles { worktree: self.host.worktree.clone(), permitted, holder };
                self.host.work = Some(host::load_source(shared, files, execution, path, format, policy));
            }
            Action::CheckTypes { execution, path, text, policy } => {
                // The worker does not have it yet; it can be followed and cancelled.
                self.shared.registry.execution_began(execution, &self.live);
                let record = self.machine.record();
                let request =
                    TypesToCheck::new(record, &self.live.owner, &self.host.worktree, (path, text), policy);
                let shared = Arc::clone(&self.shared);
                self.host.work = Some(Box::pin(async move {
                    let result = shared.type_checks.check(request).await;
                    Input::TypesChecked { execution, result }
                }));
            }
            Action::HostCall { call, permit: Permit::Http(permit), .. } => {
                let holder = self.shared.holder(&self.live.owner);
                let called = self.host.http.call(&self.shared.egress, holder, permit);
                self.host.work = Some(Box::pin(async move {
                    let reply = called.await.map_or_else(HostReply::Failed, HostReply::Http);
                    Input::HostReplied { call, reply }
                }));
            }
            Action::HostCall { call, execution, permit, policy } => {
                let (shared, worktree) = (Arc::clone(&self.shared), self.host.worktree.clone());
                let workspace = WorkspaceKey {
                    owner: self.live.owner.as_str().to_owned(),
                    id: self.machine.record().workspace_id.clone(),
                };
                let caller = host::HostCaller {
                    session: self.live.id,
                    execution,
                    workspace,
                    holder: shared.holder(&self.live.owner),
                    reservation: self.host.reservation.clone(),
                    modules: self.modules.set.clone(),
                };
                let permitted = shared.permits(&worktree, &self.live.owner);
                let of = (worktree, permitted);
                self.host.work = Some(host::call(shared, of, caller, call, permit, policy));
            }
            Action::EndHostUse => {
                self.shared.brokers.execution_ended(self.live.id);
                self.end_http();
            }
            Action::DropHostWork => self.host.work = None,
            Action::Write { id, batch, urgent } => {
                let urgency = if urgent { Urgency::Now } else { Urgency::Lazy };
                let failed = self.writes.push((id, ()), Batch(batch), urgency);
                self.next.extend(failed.map(store_input));
            }
            Action::Reply(reply) => self.callers.reply(reply),
            Action::Publish { execution, events } => self.followers.publish(execution, &events),
            Action::PublishEnd { execution } => {
                self.followers.end(execution);
                self.shared.registry.execution_ended(execution);
                self.modules.execution_ended();
            }
            Action::Degraded(record) => {
                tracing::error!(execution = %record.id, session = %self.live.id, "the store lost part of an execution");
                self.shared.registry.degrade(record);
            }
            Action::Restored(execution) => self.shared.registry.restore(execution),
            Action::Release => self.released = true,
        }
    }

    /// Gives up the HTTP requests that are under way; the audit log has them.
    pub(super) fn end_http(&self) {
        self.audit_http(self.host.http.end());
    }

    /// Adds lines to the audit log, one for each request that was made.
    pub(super) fn audit_http(&self, records: Vec<HttpRecord>) {
        self.shared.audit_http(&self.live.owner, self.live.id, records);
    }

    fn spawn(&mut self) {
        if let Some((handle, jail)) = self.worker.unassigned.take() {
            let forked = SpawnedWorker { handle, jail, modules: None };
            self.worker.spawning = Some(Box::pin(std::future::ready(Ok(forked))));
            return;
        }
        let libraries = match &self.worker.libraries {
            Libraries::Installed(set) => set.clone(),
            Libraries::Missing(name) => {
                let missing = SpawnError::Library(LibraryError::NotInstalled(name.clone()));
                return self.next.push(no_worker(missing));
            }
        };
        let jails = Arc::clone(&self.shared.jails);
        let (session, owner) = (self.live.id, self.live.owner.clone());
        let limits = WorkerLimits {
            memory_bytes: u64::from(self.machine.memory_mb()) * 1024 * 1024,
            // Raised per execution.
            cpu: None,
        };
        let (sets, scope) = (Arc::clone(&self.shared.module_sets), self.modules.scope.clone());
        self.worker.spawning = Some(Box::pin(async move {
            let jails = jails.jails_of(&owner).await?;
            if let Some(scope) = scope
                && let Some(set) = sets.ready(&scope, &jails.present())
            {
                let kind = WorkerKind::Session(libraries.clone(), Some(set.clone()));
                if let Ok((handle, jail)) = jails.spawn_worker(session, &owner, &limits, &kind).await {
                    return Ok(SpawnedWorker { handle, jail, modules: Some(set) });
                }
            }
            let kind = WorkerKind::session(libraries);
            let (handle, jail) = jails.spawn_worker(session, &owner, &limits, &kind).await?;
            Ok(SpawnedWorker { handle, jail, modules: None })
        }));
    }

    fn send(&mut self, message: ToWorker) {
        if let ToWorker::Execute(job) = &message {
            self.shared.registry.execution_began(job.execution, &self.live);
        }
        let Some(link) = &mut self.worker.link else { return };
        if let Some(error) = link.outbox.push(message).and_then(|error| link.send_failed(error)) {
            self.next.push(Input::ChannelFailed(fault(error)));
        }
    }

    fn on_worker(&self, what: &str, act: impl FnOnce(&WorkerProcess) -> std::io::Result<()>) {
        let Some(link) = &self.worker.link else { return };
        if let Err(error) = act(&link.process)
            && error.raw_os_error() != Some(libc::ESRCH)
        {
            tracing::error!(session = %self.live.id, pid = link.process.pid(), %error, "cannot {what} a worker");
        }
    }
}
