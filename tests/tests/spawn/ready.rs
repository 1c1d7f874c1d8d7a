//! Prestarted workers: which sessions get them, and when there is none.

use crate::cases::{descriptors, wait_until};
use crate::jail::{LIMITS, OWNER, obey, session, started};
use std::time::Duration;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_spawn::{SandboxMode, SpawnConfig, SpawnError, Spawner, WorkerHandle, WorkerKind};
use vm_system_tests::skip;

async fn jail(config: SpawnConfig) -> Spawner {
    Spawner::start(SpawnConfig { prestart_workers: true, ..config }).await.expect("a jail").0
}

/// The pid of the prestarted worker, once there is one.
async fn ready(spawner: &Spawner) -> u32 {
    wait_until(|| spawner.prestarted_pids().len() == 1).await;
    spawner.prestarted_pids()[0]
}

/// A worker that has sent its first message.
async fn after_hello(spawner: &Spawner, number: u8) -> WorkerHandle {
    let mut worker = started(spawner, number).await;
    assert_eq!(obey(&mut worker, format!("echo:{number}")).await.expect("done"), number.to_string());
    worker
}

/// The kernel's limits of a process, as text.
fn limits(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs")
}

fn open(pid: u32) -> PidFd {
    PidFd::open(pid).expect("it runs")
}

pub(crate) async fn worker_is_started_before_it_is_needed() {
    let spawner = jail(SpawnConfig::embedded()).await;
    assert!(spawner.prestarted_pids().is_empty(), "no session has needed a worker");
    let silent = started(&spawner, 1).await;
    assert!(spawner.prestarted_pids().is_empty(), "the last worker has not sent a message");
    drop(silent);
    let pid = ready(&spawner).await;
    let first = after_hello(&spawner, 2).await;
    assert_eq!(first.process.pid(), pid);
    let next = ready(&spawner).await;
    assert_ne!(next, pid);
    // Each kind has its own prestarted worker.
    let program =
        spawner.spawn_worker(session(3), OWNER, &LIMITS, &WorkerKind::Program).await.expect("a worker");
    assert_ne!(program.process.pid(), next);
    assert_eq!(spawner.prestarted_pids(), [next]);
    // The limits of a session are set when the worker is assigned.
    let ordinary = limits(program.process.pid());
    assert_ne!(limits(next), ordinary);
    let second = after_hello(&spawner, 4).await;
    assert_eq!(second.process.pid(), next);
    let memory = |limits: &str| {
        let mut lines = limits.lines().map(str::to_owned);
        lines.find(|line| line.starts_with("Max data size")).expect("it is among them")
    };
    assert_eq!(memory(&limits(next)), memory(&ordinary));
}

pub(crate) async fn prestarted_worker_that_exited_is_not_used() {
    let spawner = jail(SpawnConfig::embedded()).await;
    drop(after_hello(&spawner, 1).await);
    for number in 2..5 {
        let killed = open(ready(&spawner).await);
        killed.kill().expect("kill");
        wait_until(|| !killed.is_alive()).await;
        let worker = after_hello(&spawner, number).await;
        assert!(worker.process.signal(0).is_ok());
    }
    // Killed just now: the start uses this worker or another, and does not hang.
    let killed = ready(&spawner).await;
    open(killed).kill().expect("kill");
    let worker = started(&spawner, 5).await;
    if worker.process.pid() == killed {
        worker.process.exited().await;
    }
}

pub(crate) async fn burst_takes_the_prestarted_worker_and_starts_the_others() {
    let spawner = jail(SpawnConfig::embedded()).await;
    drop(after_hello(&spawner, 1).await);
    let pid = ready(&spawner).await;
    let starts = (2..10).map(|number| {
        let spawner = spawner.clone();
        tokio::spawn(async move { after_hello(&spawner, number).await })
    });
    let mut workers = Vec::new();
    for start in starts.collect::<Vec<_>>() {
        workers.push(start.await.expect("a worker"));
    }
    let mut pids: Vec<u32> = workers.iter().map(|worker| worker.process.pid()).collect();
    assert!(pids.contains(&pid));
    pids.push(ready(&spawner).await);
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 9, "each has its own");
}

pub(crate) async fn prestarted_worker_of_an_exited_zygote_is_not_used() {
    let spawner = jail(SpawnConfig { reserve_zygote: true, ..SpawnConfig::embedded() }).await;
    wait_until(|| spawner.zygote_pids().len() == 2).await;
    drop(after_hello(&spawner, 1).await);
    let orphan = open(ready(&spawner).await);
    let zygotes = spawner.zygote_pids();
    open(zygotes[0]).kill().expect("kill");
    wait_until(|| spawner.zygote_pids()[0] == zygotes[1]).await;
    let worker = after_hello(&spawner, 2).await;
    wait_until(|| !orphan.is_alive()).await;
    assert!(worker.process.signal(0).is_ok(), "it was another one");
}

pub(crate) async fn prestarted_workers_end_with_their_jail() {
    for sandbox in [SandboxMode::Full, SandboxMode::NoUserns] {
        for orderly in [true, false] {
            let config = SpawnConfig { sandbox, prestart_workers: true, ..SpawnConfig::embedded() };
            let spawner = match Spawner::start(config).await {
                Ok((spawner, _events)) => spawner,
                Err(SpawnError::Rlimit { .. }) if sandbox == SandboxMode::NoUserns => {
                    skip("cap-sys-resource", "without namespaces: this root has no CAP_SYS_RESOURCE");
                    return;
                }
                Err(error) => panic!("{error}"),
            };
            drop(after_hello(&spawner, 1).await);
            let waiting = open(ready(&spawner).await);
            if orderly {
                spawner.shutdown(Duration::from_secs(5)).await;
            }
            drop(spawner);
            wait_until(|| !waiting.is_alive()).await;
        }
    }
}

pub(crate) async fn prestarted_workers_are_bounded() {
    let spawner = jail(SpawnConfig::embedded()).await;
    let (mut ours, mut keepers) = (0, 0);
    for round in 0..10 {
        for number in 0..10 {
            let worker = after_hello(&spawner, number).await;
            worker.process.kill().expect("kill");
            worker.process.exited().await;
            worker.process.forget();
        }
        let last = after_hello(&spawner, 99).await;
        ready(&spawner).await;
        let now = (descriptors(std::process::id()), descriptors(spawner.keeper_pid()));
        last.process.kill().expect("kill");
        last.process.exited().await;
        last.process.forget();
        if round == 0 {
            (ours, keepers) = now;
        }
        assert_eq!(now, (ours, keepers), "round {round}");
    }
}
