//! Which builds the workers of sessions run, and the deadline by which those of other builds than the supervisor's are replaced.

use super::api::RuntimeError;
use super::command::Command;
use super::facade::Runtime;
use super::interface::DrainChange;
use super::session_task::SessionTask;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;
use vm_system_core::{Activity, SessionInput as Input};
use vm_system_protocol::control::{BuildUse, UpgradeReport};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::time::Timestamp;
use vm_system_spawn::JailBuild;

/// Longest wait for the owner task of a session.
const PATIENCE: Duration = Duration::from_secs(5);

/// The build that the worker of one session runs.
#[derive(Debug)]
pub(super) struct WorkerBuild {
    build: JailBuild,
    keeper: u32,
    activity: Activity,
    created_at: Timestamp,
    drain_at: Option<Timestamp>,
}

impl SessionTask {
    /// Whether the worker is of another build than this process.
    pub(super) fn is_of_other_build(&self) -> bool {
        self.worker.jail.as_ref().is_some_and(|jail| !jail.build().is_ours())
    }

    /// The build that the worker runs; none: there is no worker.
    pub(super) fn build(&self) -> Option<WorkerBuild> {
        let jail = self.worker.jail.as_ref().filter(|_| self.worker.link.is_some())?;
        Some(WorkerBuild {
            build: jail.build().clone(),
            keeper: jail.keeper_pid(),
            activity: self.machine.activity(),
            created_at: self.machine.record().created_at,
            drain_at: self.machine.drain_at(),
        })
    }

    /// After an adoption by the build that its worker runs, nothing is to be replaced.
    pub(super) fn withdraw_own_drain(&mut self) {
        if self.machine.drain_at().is_some() && !self.is_of_other_build() {
            self.step(Input::Drain { token: None, at: None }, &mut Vec::new());
        }
    }
}

impl Runtime {
    /// The builds that the workers of all sessions run, the supervisor's own first; changes their deadlines before.
    pub(super) async fn report_builds(&self, change: DrainChange) -> UpgradeReport {
        let ours = JailBuild::ours();
        let jails = self.shared().jails.common();
        let mut own = unused(ours, true);
        own.keepers.push(jails.present().keeper_pid());
        own.programs = self.durables().live_sessions().len() as u64;
        let mut report = UpgradeReport { drain_at: None, builds: vec![own], unreached: Vec::new() };
        let ids = self.shared().registry.ids();
        let mut replies = tokio::task::JoinSet::new();
        for id in ids {
            let runtime = self.clone();
            let reply =
                async move { timeout(PATIENCE, runtime.build_of(id, change)).await.unwrap_or(Err(())) };
            replies.spawn(async move { (id, reply.await) });
        }
        while let Some(reply) = replies.join_next().await {
            match reply {
                Ok((_, Ok(Some(worker)))) => count(&mut report, &worker),
                Ok((_, Ok(None))) => {}
                Ok((id, Err(()))) => report.unreached.push(id),
                Err(error) => tracing::error!(%error, "the build of a session is not known"),
            }
        }
        report.builds[1..].sort_by(|a, b| (&a.version, &a.build).cmp(&(&b.version, &b.build)));
        report.builds.iter_mut().for_each(|build| build.keepers.sort_unstable());
        report.unreached.sort_unstable();
        report
    }

    /// The build that the worker of a session runs, none if there is no worker; after its deadline is stored. An error: that is not
    /// certain.
    async fn build_of(&self, id: SessionId, change: DrainChange) -> Result<Option<WorkerBuild>, ()> {
        let Some(live) = self.shared().registry.get(id) else { return Ok(None) };
        if change != DrainChange::Keep {
            let at = match change {
                DrainChange::Set(at) => Some(at),
                DrainChange::Keep | DrainChange::Withdraw => None,
            };
            match live.call(|token| Input::Drain { token: Some(token), at }).await {
                Ok(()) => {}
                // It ended meanwhile.
                Err(RuntimeError::NotLive) => return Ok(None),
                Err(error) => {
                    tracing::warn!(session = %id, %error, "the deadline of a session is not stored");
                    return Err(());
                }
            }
        }
        let (responder, response) = oneshot::channel();
        if live.commands.send(Command::Build { responder }).await.is_err() {
            return Ok(None);
        }
        Ok(response.await.unwrap_or(None))
    }
}

fn unused(build: &JailBuild, is_own: bool) -> BuildUse {
    BuildUse {
        version: build.version.clone(),
        build: build.id.clone(),
        protocol: build.protocol,
        current: is_own,
        keepers: Vec::new(),
        idle: 0,
        busy: 0,
        waiting: 0,
        suspended: 0,
        programs: 0,
        oldest: None,
    }
}

fn count(report: &mut UpgradeReport, worker: &WorkerBuild) {
    let WorkerBuild { build, keeper, activity, created_at, drain_at } = worker;
    let is_own = build.is_ours();
    let is_it = |known: &BuildUse| {
        known.current == is_own && known.build == build.id && known.version == build.version
    };
    let at = report.builds.iter().position(is_it).unwrap_or_else(|| {
        report.builds.push(unused(build, is_own));
        report.builds.len() - 1
    });
    let known = &mut report.builds[at];
    if !known.keepers.contains(keeper) {
        known.keepers.push(*keeper);
    }
    *match activity {
        Activity::Idle => &mut known.idle,
        Activity::Busy => &mut known.busy,
        Activity::Waiting => &mut known.waiting,
        Activity::Suspended => &mut known.suspended,
    } += 1;
    known.oldest = Some(known.oldest.map_or(*created_at, |oldest| oldest.min(*created_at)));
    report.drain_at = report.drain_at.max(*drain_at);
}
