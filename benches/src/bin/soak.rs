//! Sessions made, used, killed and closed for minutes under one daemon: its memory and descriptors stay flat, and no
//! process is left when it stops. Ends with an error if not.
//!
//! `cargo run --release -p vm-system-benches --bin soak [-- SECONDS]` (default: 120).

use anyhow::{Context as _, Result, ensure};
use std::time::{Duration, Instant};
use vm_system_protocol::control::{Op, Reply};
use vm_system_protocol::model::{ExecutionStatus, Limits, Session, SessionStatus, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::observe;
use vm_system_tests::place::User;

/// Sessions of one round, all alive at a time.
const SESSIONS: usize = 12;
/// Rounds after which what is allocated once is there.
const WARM: usize = 5;
/// Memory that may come and go with caches and the allocator (KiB).
const SLACK_KIB: u64 = 32 * 1_024;
/// Descriptors that are opened when they are first needed.
const SLACK_DESCRIPTORS: usize = 8;
/// What a broker or a jail leaves behind is gone within.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What the supervisor holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    memory_kib: u64,
    descriptors: usize,
    keeper_kib: u64,
    processes: usize,
}

fn main() -> Result<()> {
    let seconds = match std::env::args().nth(1) {
        Some(text) => text.parse().context("the argument is a number of seconds")?,
        None => 120,
    };
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
    let base = base.context("the first rounds were made")?;
    let begin = Instant::now();
    // A broker ends behind its session, and nobody is told.
    let end = loop {
        let end = held(&daemon)?;
        if end.descriptors <= base.descriptors + SLACK_DESCRIPTORS || begin.elapsed() > PATIENCE {
            break end;
        }
        std::thread::sleep(LOOK_AGAIN);
    };
    println!("{rounds} rounds of {SESSIONS} sessions: {base:?} became {end:?}");
    ensure!(end.memory_kib <= base.memory_kib + SLACK_KIB, "the supervisor's memory grows");
    ensure!(end.descriptors <= base.descriptors + SLACK_DESCRIPTORS, "the supervisor's descriptors grow");
    ensure!(end.keeper_kib <= base.keeper_kib + 1_024, "the keeper's memory grows");
    ensure!(end.processes <= base.processes + 1, "processes are left behind");
    drop(client);
    // Fails by itself if a process is left.
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

/// Every way in which sessions are used and end.
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
                // As a bug of the engine would end it: nobody waits for the end but the owner task.
                client.op(Op::SessionKill { session: session.id.to_string(), signal: 11 })?;
                client.until(session, SessionStatus::Crashed);
            }
            _ => {
                client.op(Op::SessionKill { session: session.id.to_string(), signal: 9 })?;
            }
        }
    }
    match client.op(Op::RuntimeSummary)? {
        Reply::RuntimeSummary(summary) => ensure!(summary.active_sessions == 0, "{summary:?}"),
        other => anyhow::bail!("another answer: {other:?}"),
    }
    Ok(())
}
