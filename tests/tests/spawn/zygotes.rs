//! Zygotes: exits without an effect on sessions, the reserve that takes over, and zygotes with libraries.

use crate::body::BREAKS;
use crate::cases::{adoptable, called, wait_until};
use crate::jail::{LIMITS, OWNER, embedded, event, obey, session, started};
use std::time::Duration;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_spawn::{KindZygoteInfo, SpawnConfig, SpawnError, SpawnEvent, Spawner, WorkerKind};

fn kill_zygote(spawner: &Spawner) {
    kill(*spawner.zygote_pids().first().expect("a zygote"));
}

fn kill(pid: u32) {
    PidFd::open(pid).and_then(|process| process.kill()).expect("kill");
}

pub(crate) async fn exited_zygote_harms_no_session() {
    let (spawner, mut events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    kill_zygote(&spawner);
    assert_eq!(event(&mut events).await, SpawnEvent::ZygotesLost);
    assert_eq!(obey(&mut worker, "echo:alive").await.expect("done"), "alive");
    let none =
        spawner.spawn_worker(session(2), OWNER, &LIMITS, &WorkerKind::plain()).await.expect_err("no zygote");
    assert!(matches!(none, SpawnError::NoZygote), "{none}");
}

pub(crate) async fn exited_zygote_is_replaced_by_its_reserve() {
    let (_directory, _config, spawner) = adoptable(Duration::from_mins(1)).await;
    for number in 1..4 {
        wait_until(|| spawner.zygote_pids().len() == 2).await;
        kill_zygote(&spawner);
        let mut worker = started(&spawner, number).await;
        assert_eq!(obey(&mut worker, "echo:alive").await.expect("done"), "alive");
    }
    spawner.shutdown(Duration::from_secs(5)).await;
}

pub(crate) async fn exited_reserve_zygote_is_replaced_before_it_is_needed() {
    let config = SpawnConfig { reserve_zygote: true, ..SpawnConfig::embedded() };
    let (spawner, _events) = Spawner::start(config).await.expect("a jail");
    wait_until(|| spawner.zygote_pids().len() == 2).await;
    let [first, reserve] = spawner.zygote_pids()[..] else { panic!("two zygotes") };
    kill(reserve);
    wait_until(
        || matches!(spawner.zygote_pids()[..], [current, next] if current == first && next != reserve),
    )
    .await;
    kill_zygote(&spawner);
    let mut worker = started(&spawner, 1).await;
    assert_eq!(obey(&mut worker, "echo:alive").await.expect("done"), "alive");
}

pub(crate) async fn workers_of_programs_share_a_zygote_that_the_first_one_starts() {
    let (spawner, _events) = embedded().await;
    let mut plain = started(&spawner, 1).await;
    assert_eq!(obey(&mut plain, "prepared").await.expect("done"), "false");
    assert!(further(&spawner).is_empty());
    let starts = (2..10).map(|number| {
        let spawner = spawner.clone();
        tokio::spawn(async move {
            spawner.spawn_worker(session(number), OWNER, &LIMITS, &WorkerKind::Program).await
        })
    });
    // All starts are in progress before the first is awaited.
    for start in starts.collect::<Vec<_>>() {
        let mut worker = start.await.expect("no panic").expect("a worker");
        assert_eq!(obey(&mut worker, "prepared").await.expect("done"), "true");
    }
    let [started_zygote] = &further(&spawner)[..] else { panic!("one zygote") };
    assert_eq!((&started_zygote.kind, started_zygote.forks), (&WorkerKind::Program, 8));
    // Killed just now: the next start does not wait until the exit is reported.
    kill(started_zygote.pid);
    let again =
        spawner.spawn_worker(session(10), OWNER, &LIMITS, &WorkerKind::Program).await.expect("a worker");
    assert!(matches!(&further(&spawner)[..], [next] if next.pid != started_zygote.pid));
    drop(again);
    let mut plain = started(&spawner, 11).await;
    assert_eq!(obey(&mut plain, "prepared").await.expect("done"), "false");
}

pub(crate) async fn a_zygote_of_programs_that_breaks_is_a_clear_error_and_harms_no_session() {
    let (_directory, spawner) = called(BREAKS).await;
    for number in 1..3 {
        let none = spawner.spawn_worker(session(number), OWNER, &LIMITS, &WorkerKind::Program).await;
        let none = none.expect_err("it cannot be prepared");
        assert_eq!(none.to_string(), "the zygote of durable programs exited");
        assert!(none.is_temporary());
        assert!(further(&spawner).is_empty());
    }
    let mut worker = started(&spawner, 3).await;
    assert_eq!(obey(&mut worker, "echo:alive").await.expect("done"), "alive");
}

/// The zygotes of further kinds.
fn further(spawner: &Spawner) -> Vec<KindZygoteInfo> {
    spawner.zygotes().into_iter().filter(|zygote| zygote.kind != WorkerKind::plain()).collect()
}
