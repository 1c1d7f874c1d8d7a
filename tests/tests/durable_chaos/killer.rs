//! The schedule of kills.

use std::fmt;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::PATIENCE;
use vm_system_tests::SeededRandom;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::{observe, watch};

/// Most kills of workers between two starts of the supervisor: fewer than make it fail a program.
const WORKERS_AT_A_TIME: u32 = 2;

/// Most kills of brokers likewise: fewer than make it delay the next broker of the same program.
const BROKERS_AT_A_TIME: u32 = 4;

/// Kills processes, restarts the daemon when it was killed, and counts.
pub(crate) struct Killer {
    daemon: Option<Daemon>,
    random: SeededRandom,
    options: DaemonOptions,
    workers_killed: u32,
    workers: u32,
    zygotes: u32,
    /// Part of `zygotes`.
    zygotes_of_programs: u32,
    brokers_killed: u32,
    brokers: u32,
    keepers: u32,
    supervisors: u32,
    everything: u32,
}

impl fmt::Display for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workers, zygotes, zygotes_of_programs, brokers, keepers, supervisors, everything, .. } =
            self;
        write!(
            f,
            "killed {workers} workers, {zygotes} zygotes ({zygotes_of_programs} of programs), {brokers} brokers, "
        )?;
        write!(f, "{keepers} keepers, {supervisors} supervisors, {everything} times everything")
    }
}

impl Killer {
    pub(crate) fn new(daemon: Daemon, random: SeededRandom, options: DaemonOptions) -> Self {
        let daemon = Some(daemon);
        Self {
            daemon,
            random,
            options,
            workers_killed: 0,
            workers: 0,
            zygotes: 0,
            zygotes_of_programs: 0,
            brokers_killed: 0,
            brokers: 0,
            keepers: 0,
            supervisors: 0,
            everything: 0,
        }
    }

    /// Waits for a random number of new requests and kills something; false once no agent sends requests.
    pub(crate) fn strike(&mut self, requests: &Receiver<()>) -> bool {
        // Earlier requests do not count.
        while requests.try_recv().is_ok() {}
        for _ in 0..=self.random.below(12) {
            if requests.recv_timeout(PATIENCE).is_err() {
                return false;
            }
        }
        // At a random time while the last request is handled.
        watch::let_pass(Duration::from_micros(self.random.below(8_000)));
        match self.random.below(12) {
            0..=3 => self.kill_worker(),
            4 | 5 => self.kill_zygote(),
            6 => self.kill_keeper(),
            7 | 8 => self.kill_supervisor(),
            9 => self.kill_broker(),
            _ => self.kill_everything(),
        }
        true
    }

    /// Stops the daemon in order.
    pub(crate) fn end(mut self) {
        self.daemon.take().expect("there is one").stop();
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("there is one between two strikes")
    }

    fn kill_worker(&mut self) {
        let info = self.daemon().info();
        let Some(keeper) = info.keeper_pid else { return };
        let zygotes: Vec<u32> = info.zygotes.iter().map(|zygote| zygote.pid).collect();
        let mut workers = observe::descendants(keeper);
        workers.retain(|process| process.pid().is_ok_and(|pid| !zygotes.contains(&pid)));
        if workers.is_empty() || self.workers_killed == WORKERS_AT_A_TIME {
            return;
        }
        self.workers_killed += 1;
        self.workers += 1;
        let chosen = self.random.index(workers.len());
        kill(&workers[chosen]);
    }

    fn kill_zygote(&mut self) {
        // The one that forks, its reserve, or the one of programs.
        let zygotes = self.daemon().info().zygotes;
        let Some(last) = zygotes.len().checked_sub(1) else { return };
        let chosen = &zygotes[self.random.index(last + 1)];
        if let Ok(process) = PidFd::open(chosen.pid) {
            self.zygotes += 1;
            self.zygotes_of_programs += u32::from(chosen.engine == "cvm");
            kill(&process);
        }
    }

    fn kill_broker(&mut self) {
        let brokers = observe::brokers(self.daemon().pid());
        let Some(last) = brokers.len().checked_sub(1) else { return };
        if self.brokers_killed < BROKERS_AT_A_TIME {
            self.brokers_killed += 1;
            self.brokers += 1;
            kill(&brokers[self.random.index(last + 1)]);
        }
    }

    fn kill_keeper(&mut self) {
        if let Some(keeper) = self.daemon().info().keeper_pid.and_then(|pid| PidFd::open(pid).ok()) {
            self.keepers += 1;
            kill(&keeper);
        }
    }

    fn kill_supervisor(&mut self) {
        self.supervisors += 1;
        let (place, _) = self.daemon.take().expect("there is one").kill();
        self.start(place);
    }

    fn kill_everything(&mut self) {
        self.everything += 1;
        let place = self.daemon.take().expect("there is one").kill_everything();
        self.start(place);
    }

    fn start(&mut self, place: vm_system_tests::place::TestDir) {
        (self.workers_killed, self.brokers_killed) = (0, 0);
        self.daemon = Some(Daemon::start_with(place, &self.options));
    }
}

/// A process that has exited already is no error.
fn kill(process: &PidFd) {
    let _ = process.kill();
}
