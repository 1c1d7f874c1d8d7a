//! Kills what a daemon consists of, at random moments while requests are in flight, and starts it again.

use crate::daemon::{Daemon, DaemonOptions};
use crate::place::TestDir;
use crate::small_disk::SmallDisk;
use crate::{PATIENCE, SeededRandom, observe, watch};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use vm_system_sandbox::pidfd::PidFd;

/// Most kills of workers between two starts of the supervisor: fewer than make it fail a program.
const WORKERS_AT_A_TIME: u32 = 2;

/// Most kills of brokers likewise: fewer than make it delay the next broker of the same program.
const BROKERS_AT_A_TIME: u32 = 4;

/// How long a stopped process is left stopped without a request that gets on: less than makes the supervisor replace it.
const STOPPED: Duration = Duration::from_millis(200);

/// How long the disk stays full: some requests find it so.
const FULL: Duration = Duration::from_millis(200);

/// The seeds to run: `VM_SYSTEM_CHAOS` of them (10), from `VM_SYSTEM_CHAOS_FROM` (1) on. Prints each.
pub fn seeds() -> impl Iterator<Item = u64> {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let from = number("VM_SYSTEM_CHAOS_FROM", 1);
    (from..from + number("VM_SYSTEM_CHAOS", 10)).inspect(|seed| println!("seed {seed}"))
}

/// The processes that are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strike {
    Worker,
    /// The one that forks, its reserve, or the one of programs.
    Zygote,
    Broker,
    Keeper,
    /// The supervisor alone; another one adopts its jails.
    Supervisor,
    /// Supervisor and jails, as a power loss does.
    Everything,
    /// A worker or the supervisor is stopped for a while, and goes on.
    Stop,
    /// The disk with the state directory is full for a while.
    FullDisk,
    /// There was nothing of the chosen kind.
    Nothing,
}

/// Kills processes, restarts the daemon when it was killed, and counts.
pub struct Killer {
    /// The disk with the state directory. Before the daemon, so that a failed test unmounts it before the folder is deleted.
    disk: Option<SmallDisk>,
    daemon: Option<Daemon>,
    random: SeededRandom,
    options: DaemonOptions,
    choices: &'static [Strike],
    workers: u32,
    brokers: u32,
    count: BTreeMap<Strike, u32>,
}

impl fmt::Display for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> =
            self.count.iter().map(|(strike, count)| format!("{strike:?} {count}")).collect();
        write!(f, "killed: {}", counts.join(", "))
    }
}

impl Killer {
    /// One of `choices` is killed at a time, each as often as it is there.
    pub fn new(
        daemon: Daemon,
        random: SeededRandom,
        options: DaemonOptions,
        choices: &'static [Strike],
    ) -> Self {
        let (daemon, count) = (Some(daemon), BTreeMap::new());
        Self { daemon, disk: None, random, options, choices, workers: 0, brokers: 0, count }
    }

    /// The same, with the state directory on this disk.
    #[must_use]
    pub fn with_disk(self, disk: Option<SmallDisk>) -> Self {
        Self { disk, ..self }
    }

    /// Waits for a random number of new requests and chooses what to kill; `None` once nobody sends requests.
    pub fn aim(&mut self, requests: &Receiver<()>) -> Option<Strike> {
        // Earlier requests do not count.
        while requests.try_recv().is_ok() {}
        for _ in 0..=self.random.below(12) {
            requests.recv_timeout(PATIENCE).ok()?;
        }
        // At a random time while the last request is handled.
        watch::let_pass(Duration::from_micros(self.random.below(8_000)));
        Some(self.choices[self.random.index(self.choices.len())])
    }

    /// Kills it; [`Strike::Nothing`] if there is none.
    pub fn strike(&mut self, strike: Strike) -> Strike {
        let done = match strike {
            Strike::Worker => self.kill_worker(),
            Strike::Zygote => self.kill_zygote(),
            Strike::Broker => self.kill_broker(),
            Strike::Keeper => self.kill_keeper(),
            Strike::Stop => self.stop_one(),
            Strike::FullDisk => self.fill_disk(),
            Strike::Supervisor => {
                let (place, _) = self.daemon.take().expect("there is one").kill();
                self.start(place);
                true
            }
            Strike::Everything => {
                let place = self.daemon.take().expect("there is one").kill_everything();
                self.start(place);
                true
            }
            Strike::Nothing => false,
        };
        let done = if done { strike } else { Strike::Nothing };
        *self.count.entry(done).or_default() += 1;
        done
    }

    /// The running daemon with its disk.
    pub fn into_daemon(mut self) -> (Daemon, Option<SmallDisk>) {
        (self.daemon.take().expect("there is one"), self.disk.take())
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("there is one between two strikes")
    }

    /// The workers of the jail of this supervisor.
    fn workers(&self) -> Vec<PidFd> {
        let info = self.daemon().info();
        let zygotes: Vec<u32> = info.zygotes.iter().map(|zygote| zygote.pid).collect();
        let mut workers = info.keeper_pid.map(observe::descendants).unwrap_or_default();
        workers.retain(|process| process.pid().is_ok_and(|pid| !zygotes.contains(&pid)));
        workers
    }

    fn kill_worker(&mut self) -> bool {
        let workers = self.workers();
        if workers.is_empty() || self.workers == WORKERS_AT_A_TIME {
            return false;
        }
        self.workers += 1;
        kill(&workers[self.random.index(workers.len())])
    }

    fn kill_zygote(&mut self) -> bool {
        let zygotes = self.daemon().info().zygotes;
        let Some(last) = zygotes.len().checked_sub(1) else { return false };
        PidFd::open(zygotes[self.random.index(last + 1)].pid).is_ok_and(|process| kill(&process))
    }

    fn kill_broker(&mut self) -> bool {
        let brokers = observe::brokers(self.daemon().pid());
        let Some(last) = brokers.len().checked_sub(1) else { return false };
        if self.brokers == BROKERS_AT_A_TIME {
            return false;
        }
        self.brokers += 1;
        kill(&brokers[self.random.index(last + 1)])
    }

    fn kill_keeper(&self) -> bool {
        let keeper = self.daemon().info().keeper_pid.and_then(|pid| PidFd::open(pid).ok());
        keeper.is_some_and(|keeper| kill(&keeper))
    }

    fn stop_one(&mut self) -> bool {
        let mut processes = self.workers();
        processes.extend(PidFd::open(self.daemon().pid()));
        let process = &processes[self.random.index(processes.len())];
        if process.signal(nix::libc::SIGSTOP).is_err() {
            return false;
        }
        watch::let_pass(STOPPED);
        process.signal(nix::libc::SIGCONT).is_ok()
    }

    fn fill_disk(&self) -> bool {
        let Some(disk) = &self.disk else { return false };
        disk.fill();
        watch::let_pass(FULL);
        disk.free();
        true
    }

    fn start(&mut self, place: TestDir) {
        (self.workers, self.brokers) = (0, 0);
        self.daemon = Some(Daemon::start_with(place, &self.options));
    }
}

/// False if it has exited already.
fn kill(process: &PidFd) -> bool {
    process.kill().is_ok()
}
