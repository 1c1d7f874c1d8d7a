//! Durable programs while all kinds of processes are killed: workers, zygotes, brokers, the keeper, the supervisor, and all of
//! them together. Agents answer tasks and record the acknowledgements; the results are compared with these records:
//!
//! - an acknowledged answer is used exactly once, and its task does not appear again
//! - an answer without an acknowledgement is used once or not at all; then its task is still pending
//! - output is complete, in order, without gaps or duplicates; files have the written content
//! - after a restart, the daemon by itself resumes every execution that can continue
//! - no execution is left that nothing would wake
//! - timers fire, also those that expired while no daemon ran
//!
//! A seed decides what is killed, when and how often, as far as real processes are reproducible. Kills are timed by requests in
//! flight and not by the clock. `VM_SYSTEM_CHAOS` is the number of seeds (10), `VM_SYSTEM_CHAOS_FROM` the first.

mod agent;

use agent::Agent;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use vm_system_protocol::control::Doctor;
use vm_system_tests::SeededRandom;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::killer::{self, Killer, Strike};
use vm_system_tests::place::{TestDir, User};

/// Agents at a time.
const AGENTS: u64 = 3;
/// Kills of one seed.
const KILLS: u32 = 14;

/// The kinds of kills; the more processes there are of a kind, the more often it is chosen.
const CHOICES: &[Strike] = &[
    Strike::Worker,
    Strike::Worker,
    Strike::Worker,
    Strike::Worker,
    Strike::Zygote,
    Strike::Zygote,
    Strike::Keeper,
    Strike::Supervisor,
    Strike::Supervisor,
    Strike::Broker,
    Strike::Everything,
    Strike::Everything,
];

fn options(random: &mut SeededRandom) -> DaemonOptions {
    // Warm workers or none; checkpoints while a program computes.
    let warm = [0, 50, 2_000][random.index(3)];
    DaemonOptions {
        config: format!("[durable]\nwarm_ms = {warm}\ncheckpoint_ms = 5\n"),
        ..DaemonOptions::default()
    }
}

fn survive(seed: u64) {
    let mut random = SeededRandom::new(seed);
    let options = options(&mut random);
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &options);
    let (socket, worktree) = (daemon.place.socket(), daemon.place.worktree());
    daemon.client().load(agent::PROGRAM);
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (sent, requests) = mpsc::channel();
        let mut agents = Vec::new();
        for name in 0..AGENTS {
            let agent = Agent::new(name, SeededRandom::new(random.bits()), &socket, &worktree, sent.clone());
            let enough = &enough;
            agents.push(scope.spawn(move || agent.work(enough)));
        }
        drop(sent);
        let mut killer = Killer::new(daemon, random, options, CHOICES);
        for _ in 0..KILLS {
            let Some(strike) = killer.aim(&requests) else { break };
            killer.strike(strike);
        }
        enough.store(true, Ordering::Release);
        // Without further kills, the agents answer the remaining tasks.
        let finished: u32 = agents.into_iter().map(|agent| agent.join().expect("an agent")).sum();
        println!("seed {seed}: {finished} programs, {killer}");
        let daemon = killer.into_daemon().0;
        let report = daemon.client().op(Doctor).expect("it replies");
        assert_eq!(report.stuck, [], "seed {seed}: executions that nothing would wake");
        daemon.stop();
    });
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_happens_twice_whatever_is_killed() {
    killer::seeds().for_each(survive);
}
