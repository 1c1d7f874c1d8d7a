//! The cost of a process as the kernel reports it: processor time and voluntary context switches of all its threads. Unlike
//! wall-clock times, both are comparable on a busy machine.

use std::path::PathBuf;

/// The cost of a process so far, or of a part of its work.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// Time on a processor (nanoseconds).
    pub cpu_ns: u64,
    /// Voluntary context switches.
    pub sleeps: u64,
}

impl Cost {
    /// The cost of a running process: the sum over its threads, without those that have exited.
    pub fn of_process(pid: u32) -> Self {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        threads.map(|thread| Self::of_thread(&thread.path())).fold(Self::default(), |sum, one| Self {
            cpu_ns: sum.cpu_ns + one.cpu_ns,
            sleeps: sum.sleeps + one.sleeps,
        })
    }

    fn of_thread(thread: &std::path::Path) -> Self {
        let read = |name: &str| std::fs::read_to_string(thread.join(PathBuf::from(name))).unwrap_or_default();
        let first = |text: &str| text.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
        let status = read("status");
        let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        Self { cpu_ns: first(&read("schedstat")).unwrap_or(0), sleeps: sleeps.and_then(first).unwrap_or(0) }
    }

    /// Adds the cost between the readings `then` and `now`.
    #[must_use]
    pub fn plus(self, then: Self, now: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns + now.cpu_ns.saturating_sub(then.cpu_ns),
            sleeps: self.sleeps + now.sleeps.saturating_sub(then.sleeps),
        }
    }

    /// The cost of one of `count` rounds: microseconds on a processor, and sleeps.
    pub fn each(self, count: usize) -> (f64, f64) {
        let rounds = count.max(1) as f64;
        (self.cpu_ns as f64 / 1e3 / rounds, self.sleeps as f64 / rounds)
    }
}
