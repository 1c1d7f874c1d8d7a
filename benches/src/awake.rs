//! Keeps the processors awake during a measurement. A processor that goes to sleep between two messages takes tens of
//! microseconds to wake up, more than the software needs for its reply, most of all in a virtual machine; on a busy
//! machine a processor never sleeps.
//!
//! One thread of the policy `SCHED_IDLE` spins on each processor and yields to any other thread that is ready to run there.
//! This is true within one scheduling group only. If `kernel.sched_autogroup_enabled` is 1, each session (`setsid(2)`, which
//! each worker calls) is a separate group with an equal share, and these threads compete with the daemon and its workers for
//! up to half of a processor: set it to 0 for the measurement (`sysctl kernel.sched_autogroup_enabled=0`).

mod sys;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Keeps the processors awake until it is dropped.
#[derive(Debug)]
pub struct Awake {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// Starts one thread for each processor that this process may use; prints their number and any problem.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let processors = (0..CpuSet::count()).filter(|place| allowed.is_set(*place).unwrap_or(false));
        let threads: Vec<_> = processors
            .map(|processor| {
                let stop = Arc::clone(&stop);
                std::thread::spawn(move || spin(processor, &stop))
            })
            .collect();
        println!(
            "{} processors are kept awake; kernel.sched_autogroup_enabled = {}",
            threads.len(),
            autogroup()
        );
        if autogroup() == "1" {
            println!(
                "  so the threads that keep them awake compete with the measured ones: set it to 0 and measure again"
            );
        }
        Self { stop, threads }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread cannot fail.
            let _ = thread.join();
        }
    }
}

fn spin(processor: usize, stop: &AtomicBool) {
    let mut one = CpuSet::new();
    let pinned = one.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &one));
    // A thread that does not yield would take the processor from the measured threads.
    if let Err(error) = pinned.map_err(std::io::Error::from).and_then(|()| sys::only_when_idle()) {
        println!("SKIPPED: processor {processor} is not kept awake: {error}");
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// The kernel's setting of separate scheduling groups for sessions (`autogroup`); `absent` if it has none.
fn autogroup() -> String {
    std::fs::read_to_string(AUTOGROUP).map_or_else(|_| "absent".to_owned(), |text| text.trim().to_owned())
}
