//! Sessions are created, used, killed and closed for minutes under one daemon. Fails if the daemon's memory or descriptors
//! grow, or if a process is left when it stops. The second half of the time ([`owners`]): one owner takes what it can get, and
//! the requests of others must succeed.
//!
//! `cargo run --release -p vm-system-benches --bin soak [-- SECONDS]` (default: 120).

mod owners;

use anyhow::{Context as _, Result, ensure};
use std::time::{Duration, Instant};
use vm_system_protocol::control::{RuntimeSummaryGet, SessionKill};
use vm_system_protocol::model::{ExecutionStatus, Limits, Session, SessionStatus, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::observe;
use vm_system_tests::place::User;

/// Sessions of one round, all alive at a time.
const SESSIONS: usize = 12;
/// Rounds after which everything that is allocated once is allocated.
const WARM: usize = 5;
/// Variation of the memory by caches and the allocator (KiB).
const SLACK_KIB: u64 = 32 * 1_024;
/// Descriptors that are opened on first use.
const SLACK_DESCRIPTORS: usize = 8;
/// Time in which the processes of brokers and jails must be gone.
const GONE_WITHIN: Duration = Duration::from_secs(30);
/// Pause between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Memory, descriptors and processes of the supervisor.
#[derive(Debug, Clone, Copy)]
struct Held {
    memory_kib: u64,
    descriptors: usize,
    keeper_kib: u64,
    processes: usize,
}

fn main() -> Result<()> {
    let seconds: u64 = match std::env::args().nth(1) {
        Some(text) => text.parse().context("the argument is a number of seconds")?,
        None => 120,
    };
    sessions(seconds.div_ceil(2))?;
    owners::apart(Duration::from_secs(seconds / 2))
}

/// Rounds of sessions of one owner.
fn sessions(seconds: u64) -> Result<()> {
    let daemon = Daemon::start(User::AsStarted);
    daemon.place.write("data.txt", "x".repeat(10_000));
    let mut client = daemon.client();
    let limits = Limits { cpu_ms: 300, wall_ms: 10_000, mem_mb: 64, ..Limits::default() };
    let template = client.template(Settings { limits, ..Settings::default() }, &["fs"]);
    let until = Instant::now() + Duration::from_secs(seconds);
    let (mut rounds, mut base) = (0, None);
    while Instant::now() < until || rounds <= WARM {
        round(&daemon, &mut client, &template, rounds)?;
        rounds += 1;
        if rounds == WARM {
            base = Some(held(&daemon)?);
        }
    }
    let base = base.context("the first rounds are done")?;
    let begin = Instant::now();
    // A broker exits after its session without a notification.
    let end = loop {
        let end = held(&daemon)?;
        if end.descriptors <= base.descriptors + SLACK_DESCRIPTORS || begin.elapsed() > GONE_WITHIN {
            break end;
        }
        std::thread::sleep(CHECK_INTERVAL);
    };
    println!("{rounds} rounds of {SESSIONS} sessions: {base:?} became {end:?}");
    ensure!(end.memory_kib <= base.memory_kib + SLACK_KIB, "the supervisor's memory grows");
    ensure!(end.descriptors <= base.descriptors + SLACK_DESCRIPTORS, "the supervisor's descriptors grow");
    ensure!(end.keeper_kib <= base.keeper_kib + 1_024, "the keeper's memory grows");
    ensure!(end.processes <= base.processes + 1, "processes are left behind");
    drop(client);
    // Fails if a process is left.
    daemon.stop();
    Ok(())
}

fn held(daemon: &Daemon) -> Result<Held> {
    let keeper = daemon.info().keeper_pid.context("there is a jail")?;
    Ok(Held {
        memory_kib: observe::anonymous_kib(daemon.pid()),
        descriptors: observe::descriptors(daemon.pid()),
        keeper_kib: observe::anonymous_kib(keeper),
        processes: observe::descendants(keeper).len(),
    })
}

/// Uses and ends sessions in every way.
fn round(daemon: &Daemon, client: &mut Client, template: &str, number: usize) -> Result<()> {
    let worktree = daemon.place.worktree();
    let sessions: Vec<Session> = (0..SESSIONS)
        .map(|_| client.session(template, &worktree))
        .collect::<Result<_, _>>()
        .with_context(|| format!("round {number}"))?;
    for (at, session) in sessions.iter().enumerate() {
        let code = match at % 4 {
            0 => "var kept = Array(1000).fill('x'); kept.length",
            1 => "for (let i = 0; i < 200; i++) console.log('line', i)",
            2 => "require('fs').readFileSync('data.txt', 'utf8').length",
            _ => "throw new Error('boom')",
        };
        let ended = client.eval(session, code)?;
        let expected = if at % 4 == 3 { ExecutionStatus::Error } else { ExecutionStatus::Ok };
        ensure!(ended.status == expected, "round {number}: {ended:?}");
    }
    for (at, session) in sessions.iter().enumerate() {
        match at % 3 {
            0 => client.close(session),
            1 => {
                // As a bug of the engine would end the worker: only the owner task waits for its exit.
                client.op(SessionKill { session: session.id.to_string(), signal: 11 })?;
                client.wait_for(session, SessionStatus::Crashed);
            }
            _ => {
                client.op(SessionKill { session: session.id.to_string(), signal: 9 })?;
            }
        }
    }
    let summary = client.op(RuntimeSummaryGet)?;
    ensure!(summary.active_sessions == 0, "{summary:?}");
    Ok(())
}
