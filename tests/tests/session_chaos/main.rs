//! Live sessions while all kinds of processes are killed: workers, zygotes, brokers, the keeper, the supervisor, and all of them
//! together, or are stopped for a while. Drivers create sessions, run code, answer questions, fork, cancel and close; they record the
//! acknowledgements and compare them with what is there at the end:
//!
//! - an acknowledged execution changed its session's state exactly once, in order, and is in the store with all its events
//! - one without an acknowledgement changed it at most once
//! - a session that is ready has the state of the model; a fork has what its parent had
//! - a session that has ended has a reason that fits what was killed since its creation
//! - after the end of all sessions no process is left
//!
//! A seed decides what is killed, when and how often, as far as real processes are reproducible. `VM_SYSTEM_CHAOS` is the number of
//! seeds (10), `VM_SYSTEM_CHAOS_FROM` the first.

mod driver;
mod model;

use driver::Driver;
use model::Strikes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use vm_system_protocol::control::{ListPage, NewCapability, Op, Reply, SessionFilter};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{CapabilityKind, SessionStatus, Settings};
use vm_system_tests::SeededRandom;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::killer::{self, Killer, Strike};
use vm_system_tests::place::{TestDir, User};

/// Drivers at a time.
const DRIVERS: u64 = 3;
/// Kills of one seed.
const KILLS: u32 = 14;

/// What is killed; a keeper and everything take all sessions, so they are rare.
const CHOICES: &[Strike] = &[
    Strike::Supervisor,
    Strike::Supervisor,
    Strike::Supervisor,
    Strike::Supervisor,
    Strike::Supervisor,
    Strike::Worker,
    Strike::Worker,
    Strike::Zygote,
    Strike::Zygote,
    Strike::Broker,
    Strike::Broker,
    Strike::Stop,
    Strike::Stop,
    Strike::Keeper,
    Strike::Everything,
];

fn survive(seed: u64) {
    let mut random = SeededRandom::new(seed);
    let arguments = vec!["--log-level".to_owned(), "debug".to_owned()];
    let options = DaemonOptions { arguments, ..DaemonOptions::default() };
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &options);
    let (socket, worktree) = (daemon.place.socket(), daemon.place.worktree());
    let template = daemon.client().template(Settings::default(), &["fs"]);
    let capability = Box::new(NewCapability {
        kind: CapabilityKind::Fs,
        name: "write".to_owned(),
        enabled: true,
        config: JsonText::from_untrusted("{}".to_owned()),
    });
    let write = Op::TemplateAddCapability { template: template.clone(), capability };
    daemon.client().op(write).expect("a right");
    let (enough, strikes) = (AtomicBool::new(false), Strikes::default());
    std::thread::scope(|scope| {
        let (sent, requests) = mpsc::channel();
        let mut drivers = Vec::new();
        for name in 0..DRIVERS {
            let random = SeededRandom::new(random.bits());
            let driver = Driver::new(name, random, &socket, (&template, &worktree), sent.clone(), &strikes);
            let enough = &enough;
            drivers.push(scope.spawn(move || driver.work(enough)));
        }
        drop(sent);
        let mut killer = Killer::new(daemon, random, options, CHOICES);
        for _ in 0..KILLS {
            let Some(strike) = killer.aim(&requests) else { break };
            strikes.during(strike, || {
                killer.strike(strike);
            });
        }
        enough.store(true, Ordering::Release);
        // Without further kills, the drivers compare the sessions with the model.
        let seen: Vec<model::Totals> =
            drivers.into_iter().map(|driver| driver.join().expect("a driver")).collect();
        println!("seed {seed}: {seen:?}, {killer}");
        end(killer.into_daemon());
    });
}

/// Sessions of which no driver knows, because the reply was lost, are closed as any other. Then no process is left.
fn end(daemon: Daemon) {
    let mut client = daemon.client();
    let filter = SessionFilter { page: ListPage::first(1_000), ..SessionFilter::default() };
    let Ok(Reply::Sessions(sessions)) = client.op(Op::SessionList(filter)) else { panic!("no list") };
    for session in sessions {
        match session.status {
            SessionStatus::Ready | SessionStatus::Waiting | SessionStatus::Suspended => {
                client.close(&session);
            }
            SessionStatus::Closed | SessionStatus::Crashed => {
                assert!(session.close_reason.is_some() && session.closed_at.is_some(), "{session:?}");
            }
            SessionStatus::Starting => panic!("nobody starts it: {session:?}"),
        }
    }
    drop(client);
    daemon.stop();
}

#[test]
fn acknowledged_executions_happen_once_and_sessions_keep_their_state_whatever_is_killed() {
    killer::seeds().for_each(survive);
}
