//! Keeps the processors awake while something is measured. A processor that goes to sleep between two messages takes tens
//! of microseconds to wake up, more than the software needs for its answer, most of all in a virtual machine; on a busy
//! machine it never does.
//!
//! One thread of the policy `SCHED_IDLE` turns round on each processor, and gives way to whatever else wants to run there.
//! That holds within one scheduling group. Where `kernel.sched_autogroup_enabled` is 1, each session (`setsid(2)`, and each
//! worker calls it) is a group of its own with an equal share, and these threads then compete with the daemon and its
//! workers for up to half of a processor: set it to 0 for the measurement (`sysctl kernel.sched_autogroup_enabled=0`).

mod sys;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Awake as long as this lives.
#[derive(Debug)]
pub struct Awake {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// One thread for each processor that this process may use; says how, and what stands in the way.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let processors = (0..CpuSet::count()).filter(|place| allowed.is_set(*place).unwrap_or(false));
        let threads: Vec<_> = processors
            .map(|processor| {
                let stop = Arc::clone(&stop);
                std::thread::spawn(move || turn_round(processor, &stop))
            })
            .collect();
        println!(
            "{} processors are kept awake; kernel.sched_autogroup_enabled = {}",
            threads.len(),
            autogroup()
        );
        if autogroup() == "1" {
            println!(
                "  so that what keeps them awake competes with what is measured: set it to 0 and measure again"
            );
        }
        Self { stop, threads }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has nothing that could fail.
            let _ = thread.join();
        }
    }
}

fn turn_round(processor: usize, stop: &AtomicBool) {
    let mut one = CpuSet::new();
    let pinned = one.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &one));
    // A thread that does not give way would take the processor from what is measured.
    if let Err(error) = pinned.map_err(std::io::Error::from).and_then(|()| sys::only_when_idle()) {
        println!("SKIPPED: processor {processor} is not kept awake: {error}");
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Whether sessions are scheduling groups of their own; `absent` where the kernel does not know that.
fn autogroup() -> String {
    std::fs::read_to_string(AUTOGROUP).map_or_else(|_| "absent".to_owned(), |text| text.trim().to_owned())
}
