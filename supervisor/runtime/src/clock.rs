//! The clock of an owner task: the [`Now`] of a machine, and the alarm at its deadline. The CPU time is the last
//! sample, so that it is still available after the worker's exit.

use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use vm_system_core::Now;
use vm_system_spawn::WorkerProcess;
use vm_system_store::StoreHandle;

/// The time for a machine.
#[derive(Debug)]
pub(super) struct Clock {
    /// The calendar is the store's: by it a task is due, for this process and for every later one.
    store: StoreHandle,
    started: Instant,
    cpu_us: u64,
    alarm: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Clock {
    /// A clock whose monotonic milliseconds count from `started`.
    pub(super) fn new(started: Instant, store: StoreHandle) -> Self {
        Self { store, started, cpu_us: 0, alarm: None }
    }

    pub(super) fn now(&self) -> Now {
        Now {
            mono_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            unix_ms: self.store.now().0,
            cpu_us: self.cpu_us,
        }
    }

    /// Reads the CPU time of the worker from the kernel: two system calls.
    pub(super) fn sample_cpu(&mut self, process: &WorkerProcess) {
        if let Ok(cpu) = process.cpu_time() {
            self.cpu_us = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
        }
    }

    /// The CPU time of another worker from now on.
    pub(super) fn restart_cpu(&mut self, process: &WorkerProcess) {
        self.cpu_us = 0;
        self.sample_cpu(process);
    }

    /// Sets the alarm to a machine's deadline (monotonic milliseconds). An early alarm does no harm, so the alarm is only ever
    /// moved to an earlier time.
    pub(super) fn set_alarm(&mut self, deadline_ms: Option<u64>) {
        let Some(deadline_ms) = deadline_ms else { return };
        let at = self.started + Duration::from_millis(deadline_ms);
        match &mut self.alarm {
            Some((set, _)) if *set <= at => {}
            Some((set, sleep)) => {
                *set = at;
                sleep.as_mut().reset(at);
            }
            None => self.alarm = Some((at, Box::pin(tokio::time::sleep_until(at)))),
        }
    }

    /// Resolves once, at the time of the alarm. Cancel safe.
    pub(super) async fn alarm(&mut self) {
        match &mut self.alarm {
            Some((_, sleep)) => sleep.await,
            None => std::future::pending().await,
        }
        self.alarm = None;
    }
}
