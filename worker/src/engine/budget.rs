//! Owns the limits of the running execution: clocks, counters, and the reason why it has to stop.
//! Must not run JavaScript or make host calls.

use super::host::INTERRUPT;
use nix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;
use vm_system_protocol::model::Limits;
use vm_system_protocol::reason::LimitKind;

/// Why the engine ends an execution; the script cannot prevent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// A soft limit.
    Limit(LimitKind),
    /// The interrupt signal.
    Interrupted,
    /// `process.exit(code)`.
    Exit(i32),
}

/// The remaining limits of the running execution. Times in nanoseconds.
#[derive(Default)]
pub(super) struct ExecutionBudget {
    running: Cell<bool>,
    stop: Cell<Option<StopReason>>,
    started: Cell<u64>,
    cpu_started: Cell<u64>,
    cpu: Cell<u64>,
    wall: Cell<u64>,
    /// Time that host calls took; it does not count as wall time.
    host_wait: Cell<u64>,
    /// Tasks so far.
    tasks: Cell<u64>,
    events_left: Cell<u32>,
    output_left: Cell<u64>,
}

fn nanoseconds(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX))
}

/// Monotonic time (nanoseconds).
pub(super) fn now() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

fn thread_cpu() -> u64 {
    nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

impl ExecutionBudget {
    /// Begins a new execution.
    pub(super) fn begin(&self, limits: &Limits) {
        INTERRUPT.store(false, Ordering::Relaxed);
        self.running.set(true);
        self.stop.set(None);
        self.started.set(now());
        self.cpu_started.set(thread_cpu());
        self.cpu.set(u64::from(limits.cpu_ms) * 1_000_000);
        self.wall.set(u64::from(limits.wall_ms) * 1_000_000);
        self.host_wait.set(0);
        self.tasks.set(0);
        self.events_left.set(limits.max_events);
        self.output_left.set(u64::from(limits.max_output_kb) * 1024);
    }

    /// Ends the execution: later polls have no effect.
    pub(super) fn end(&self) {
        self.running.set(false);
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.get()
    }

    pub(super) fn stop(&self) -> Option<StopReason> {
        self.stop.get()
    }

    /// Stores the reason; the first one is kept.
    pub(super) fn stop_for(&self, stop: StopReason) {
        if self.stop.get().is_none() {
            self.stop.set(Some(stop));
        }
    }

    /// Checks the flag and the clocks; returns whether the execution has to stop.
    pub(super) fn check(&self) -> bool {
        if self.stop.get().is_none() && self.running.get() {
            let elapsed = now().saturating_sub(self.started.get());
            let cpu = self.cpu.get();
            if INTERRUPT.load(Ordering::Relaxed) {
                self.stop.set(Some(StopReason::Interrupted));
            } else if elapsed.saturating_sub(self.host_wait.get()) >= self.wall.get() {
                self.stop.set(Some(StopReason::Limit(LimitKind::Wall)));
            // CPU time cannot exceed elapsed time: below the limit no system call is needed.
            } else if elapsed >= cpu && self.cpu_used() >= cpu {
                self.stop.set(Some(StopReason::Limit(LimitKind::Cpu)));
            }
        }
        self.stop.get().is_some()
    }

    /// CPU time of this execution (nanoseconds).
    pub(super) fn cpu_used(&self) -> u64 {
        thread_cpu().saturating_sub(self.cpu_started.get())
    }

    /// Time since the start (microseconds), host waits included.
    pub(super) fn elapsed_us(&self) -> u64 {
        now().saturating_sub(self.started.get()) / 1_000
    }

    /// The rest of `wall_ms`.
    pub(super) fn wall_left(&self) -> Duration {
        let used = now().saturating_sub(self.started.get()).saturating_sub(self.host_wait.get());
        Duration::from_nanos(self.wall.get().saturating_sub(used))
    }

    /// Adds the duration of a host call (nanoseconds).
    pub(super) fn waited(&self, nanoseconds: u64) {
        self.host_wait.set(self.host_wait.get().saturating_add(nanoseconds));
    }

    /// The number of a new task, from 1.
    pub(super) fn next_task(&self) -> u64 {
        self.tasks.set(self.tasks.get() + 1);
        self.tasks.get()
    }

    /// The rest of `max_output_kb` (bytes).
    pub(super) fn output_left(&self) -> u64 {
        self.output_left.get()
    }

    /// Counts an event with this much text; `false`: it exceeds a limit, and the execution has to stop.
    pub(super) fn take_event(&self, bytes: u64) -> bool {
        let (events, output) = (self.events_left.get(), self.output_left.get());
        if events == 0 {
            self.stop_for(StopReason::Limit(LimitKind::Events));
        } else if bytes > output {
            self.stop_for(StopReason::Limit(LimitKind::Output));
        } else {
            self.events_left.set(events - 1);
            self.output_left.set(output - bytes);
            return true;
        }
        false
    }
}
