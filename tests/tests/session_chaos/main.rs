//! Live sessions while all kinds of processes are killed: workers, frozen copies, zygotes, brokers, the keeper, the supervisor, and all
//! of them together, or are stopped for a while, and while the disk is full. Drivers create sessions of each `on_crash`, run code,
//! answer questions, make checkpoints, roll back, fork, cancel, close, and follow output that they do not read for a while; they record
//! the acknowledgements and compare them with what is there during the work and at its end:
//!
//! - an acknowledged execution changed its session's state exactly once, in order, and is in the store with all its events
//! - one without an acknowledgement changed it at most once; one that failed did not
//! - each acknowledged checkpoint and rollback is among the events of its session exactly once
//! - a session that is ready has the state of the model: a rollback brings back that of its checkpoint, a guard copy that before the
//!   execution, a restart an empty one; a fork has what its parent had
//! - each rollback or restart that nobody requested, and each end, has a reason that fits what was killed since the creation
//! - a follower gets each event once, however late it reads
//! - after the end of all sessions no process is left
//!
//! A seed decides what is killed, when and how often, as far as real processes are reproducible. `VM_SYSTEM_CHAOS` is the number of
//! seeds (10), `VM_SYSTEM_CHAOS_FROM` the first.

mod compare;
mod copies;
mod driver;
mod follower;
mod history;
mod model;
mod steps;

use driver::{Driver, Site};
use model::Strikes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use vm_system_protocol::control::{ListPage, NewCapability, SessionList, TemplateAddCapability};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{CapabilityKind, OnCrash, SessionStatus, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::killer::{self, Killer, Strike};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::small_disk::SmallDisk;
use vm_system_tests::{SeededRandom, watch};

/// Drivers at a time.
const DRIVERS: u64 = 3;
/// Kills of one seed.
const KILLS: u32 = 14;
/// The disk with the state directory (megabytes): only [`Strike::FullDisk`] fills it, a driver with a fast machine does not.
const DISK_MB: u32 = 512;

/// The kinds of kills; a keeper and everything take all sessions, so they are rare.
const CHOICES: &[Strike] = &[
    Strike::Supervisor,
    Strike::Supervisor,
    Strike::Supervisor,
    Strike::Supervisor,
    Strike::Supervisor,
    Strike::Worker,
    Strike::Worker,
    Strike::Worker,
    Strike::Worker,
    Strike::Worker,
    Strike::Zygote,
    Strike::Zygote,
    Strike::Broker,
    Strike::Broker,
    Strike::Stop,
    Strike::Stop,
    Strike::FullDisk,
    Strike::FullDisk,
    Strike::Keeper,
    Strike::Everything,
];

/// A template whose sessions may write files.
fn template(client: &mut Client, on_crash: OnCrash) -> String {
    let mut settings = Settings::default();
    settings.runtime.on_crash = on_crash;
    let template = client.template(settings, &["fs"]);
    let capability = NewCapability {
        kind: CapabilityKind::Fs,
        name: "write".to_owned(),
        enabled: true,
        config: JsonText::from_untrusted("{}".to_owned()),
    };
    client.op(TemplateAddCapability { template: template.clone(), capability }).expect("a right");
    template
}

fn survive(seed: u64) {
    let mut random = SeededRandom::new(seed);
    let arguments = vec!["--log-level".to_owned(), "debug".to_owned()];
    let options = DaemonOptions { arguments, ..DaemonOptions::default() };
    let place = TestDir::new(User::AsStarted);
    let disk = SmallDisk::mount(&place.path("state"), DISK_MB);
    let daemon = Daemon::start_with(place, &options);
    let mut client = daemon.client();
    let templates = [OnCrash::Close, OnCrash::Rollback, OnCrash::Rollback, OnCrash::Restart]
        .map(|on_crash| (on_crash, template(&mut client, on_crash)));
    drop(client);
    let (socket, worktree) = (daemon.place.socket(), daemon.place.worktree());
    let site = Site { socket, worktree, templates: templates.to_vec() };
    let (enough, strikes) = (AtomicBool::new(false), Strikes::default());
    std::thread::scope(|scope| {
        let (sent, requests) = mpsc::channel();
        let mut drivers = Vec::new();
        for name in 0..DRIVERS {
            let random = SeededRandom::new(random.bits());
            let driver = Driver::new(name, random, &site, sent.clone(), &strikes);
            let enough = &enough;
            drivers.push(scope.spawn(move || driver.work(enough)));
        }
        drop(sent);
        let mut killer = Killer::new(daemon, random, options, CHOICES).with_disk(disk);
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
        let (daemon, disk) = killer.into_daemon();
        let place = end(daemon);
        drop(disk);
        drop(place);
    });
}

/// Sessions of which no driver knows, because the reply was lost, are closed as any other. Then no process is left.
fn end(daemon: Daemon) -> TestDir {
    let mut client = daemon.client();
    let list = || {
        let filter = SessionList { page: ListPage::first(1_000), ..SessionList::default() };
        let Ok(sessions) = daemon.client().op(filter) else { panic!("no list") };
        sessions
    };
    // Sessions that continue with another worker are `starting` until they have it.
    let is_starting = || list().iter().any(|session| session.status == SessionStatus::Starting);
    watch::wait_until(|| !is_starting(), || format!("nobody starts it: {:#?}", list()));
    for session in list() {
        match session.status {
            SessionStatus::Closed | SessionStatus::Crashed => {
                assert!(session.close_reason.is_some() && session.closed_at.is_some(), "{session:?}");
            }
            _ => client.close(&session),
        }
    }
    drop(client);
    daemon.stop()
}

#[test]
fn acknowledged_executions_happen_once_and_sessions_keep_their_state_whatever_is_killed() {
    killer::seeds().for_each(survive);
}
