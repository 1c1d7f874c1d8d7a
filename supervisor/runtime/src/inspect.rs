//! A live session as the kernel sees it. Reads `/proc`, so it blocks: callers use the blocking pool.

use super::api::RuntimeError;
use super::command::Command;
use super::durable::ProgramWorker;
use super::facade::Runtime;
use crate::shares::{Holder, ShareLimits};
use std::fs;
use std::time::Duration;
use tokio::sync::oneshot;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::model::{SessionInspection, SessionStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_spawn::WorkerProcess;

/// The facts from the owner task.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) status: SessionStatus,
    pub(super) process: Option<WorkerProcess>,
    pub(super) running: Option<ExecutionId>,
    pub(super) heap_bytes: u64,
    pub(super) silent_for: Duration,
    /// The worker was started by an earlier supervisor.
    pub(super) adopted: bool,
    pub(super) generation: u64,
    pub(super) next_cull_at: Option<Timestamp>,
}

impl Facts {
    /// Facts of a program's worker, which is never adopted and does not report its heap size between checkpoints.
    pub(super) fn of_program(worker: ProgramWorker) -> Self {
        Self {
            status: SessionStatus::Ready,
            process: Some(worker.process),
            running: Some(worker.execution),
            heap_bytes: 0,
            silent_for: worker.last_received.elapsed(),
            adopted: false,
            generation: 1,
            next_cull_at: None,
        }
    }
}

/// Inspections at a time: each takes a thread, for tens of milliseconds if the process is large.
pub(super) const INSPECTIONS: ShareLimits = ShareLimits { most: 4, per_owner: 1, reserved: 1 };

impl Runtime {
    /// A live session as the kernel sees it, when it is the holder's turn.
    pub(super) async fn inspect(
        &self,
        id: SessionId,
        holder: Holder,
    ) -> Result<SessionInspection, RuntimeError> {
        let turn = self.shared().inspections.wait(&holder, 1).await;
        let facts = if let Some(worker) = self.durables().worker(id) {
            Facts::of_program(worker)
        } else {
            let live = self.live(id)?;
            let (responder, response) = oneshot::channel();
            live.commands.send(Command::Inspect { responder }).await.map_err(|_| RuntimeError::NotLive)?;
            response.await.map_err(|_| RuntimeError::NotLive)?
        };
        // The turn is the thread's: reading the memory of a large process takes long, also when its client has gone.
        let inspected = tokio::task::spawn_blocking(move || {
            let inspected = inspect(id, facts);
            drop(turn);
            inspected
        });
        inspected
            .await
            .map_err(|error| RuntimeError::Internal(error.to_string()))?
            .ok_or(RuntimeError::NotLive)
    }
}

/// Adds the facts from the kernel; `None` without a worker.
fn inspect(session: SessionId, facts: Facts) -> Option<SessionInspection> {
    let process = facts.process?;
    let pid = process.pid();
    let memory = process.memory().ok();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let inspection = SessionInspection {
        session_id: session,
        status: facts.status,
        pid,
        cpu_ms: process.cpu_time().map_or(0, |cpu| u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX)),
        rss_kib: memory.map(|memory| memory.rss / 1024),
        pss_kib: memory.map(|memory| memory.pss / 1024),
        uss_kib: memory.map(|memory| memory.uss / 1024),
        // Not reported yet.
        js_heap_bytes: (facts.heap_bytes > 0).then_some(facts.heap_bytes),
        fds: fs::read_dir(format!("/proc/{pid}/fd")).ok().map(|entries| entries.count() as u32),
        seccomp_mode: field("Seccomp").and_then(|mode| mode.parse().ok()),
        no_new_privs: field("NoNewPrivs").map(|bit| bit == "1"),
        cap_eff: field("CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok()),
        namespaces: namespaces(pid),
        rlimits: rlimits(pid),
        running_execution: facts.running,
        heartbeat_age_ms: u64::try_from(facts.silent_for.as_millis()).unwrap_or(u64::MAX),
        adopted: facts.adopted,
        generation: facts.generation,
        next_cull_at: facts.next_cull_at,
    };
    // The pid belonged to the worker if the worker still runs after everything was read.
    process.signal(0).is_ok().then_some(inspection)
}

/// `name=inode` of the namespaces that are not ours.
fn namespaces(pid: u32) -> Vec<String> {
    let link = |process: &str, name: &str| fs::read_link(format!("/proc/{process}/ns/{name}")).ok();
    ["user", "pid", "net", "ipc", "uts", "mnt", "cgroup", "time"]
        .into_iter()
        .filter_map(|name| {
            let theirs = link(&pid.to_string(), name)?;
            if link("self", name).as_ref() == Some(&theirs) {
                return None;
            }
            let text = theirs.to_str()?;
            let inode = text.split_once('[')?.1.strip_suffix(']')?;
            Some(format!("{name}={inode}"))
        })
        .collect()
}

/// `name=value` of the soft limits that are not unlimited.
fn rlimits(pid: u32) -> Vec<String> {
    const NAMES: [(&str, &str); 10] = [
        ("Max cpu time", "cpu_s"),
        ("Max file size", "fsize"),
        ("Max data size", "data"),
        ("Max stack size", "stack"),
        ("Max core file size", "core"),
        ("Max processes", "nproc"),
        ("Max open files", "nofile"),
        ("Max locked memory", "memlock"),
        ("Max address space", "as"),
        ("Max msgqueue size", "msgqueue"),
    ];
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let (title, name) = NAMES.iter().find(|(title, _)| line.starts_with(title))?;
            let soft = line[title.len()..].split_whitespace().next()?;
            (soft != "unlimited").then(|| format!("{name}={soft}"))
        })
        .collect()
}
