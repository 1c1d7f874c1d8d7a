//! Polls a state of which no change is notified, with pauses that leave the processor to the processes that change it.
//!
//! A pause is a sleep and never `sched_yield`: on Linux 6.18 a task that yields in a loop runs ahead of the scheduler's
//! clock, and others, even one with a pending SIGKILL, stay runnable for tens of seconds without ever being run.

use crate::PATIENCE;
use std::time::{Duration, Instant};

/// The first pause; each is twice as long as the one before, up to the last.
const FIRST: Duration = Duration::from_micros(500);
const LAST: Duration = Duration::from_millis(20);

/// Pauses between checks, up to a deadline.
#[derive(Debug)]
pub struct Watch {
    begin: Instant,
    pause: Duration,
}

impl Watch {
    /// Starts the time to the deadline.
    pub fn begin() -> Self {
        Self { begin: Instant::now(), pause: FIRST }
    }

    /// Sleeps before the next check; fails at the deadline with the text of `what`.
    #[track_caller]
    pub fn pause(&mut self, what: impl FnOnce() -> String) {
        std::thread::sleep(self.next(what));
    }

    /// As [`Watch::pause`], for tests that run in a runtime.
    pub async fn pause_async(&mut self, what: impl FnOnce() -> String) {
        tokio::time::sleep(self.next(what)).await;
    }

    #[track_caller]
    fn next(&mut self, what: impl FnOnce() -> String) -> Duration {
        assert!(self.begin.elapsed() < PATIENCE, "{} after {PATIENCE:?}", what());
        let pause = self.pause;
        self.pause = LAST.min(pause * 2);
        pause
    }
}

/// One short pause, for a loop that has its deadlines elsewhere.
pub fn moment() {
    std::thread::sleep(FIRST);
}

/// Lets time pass on purpose: for a fault at a random moment in the chaos tests, which have no event to wait for. Tests wait for events.
pub fn let_pass(time: Duration) {
    std::thread::sleep(time);
}

/// Checks until `so` is true.
#[track_caller]
pub fn wait_until(mut so: impl FnMut() -> bool, otherwise: impl Fn() -> String) {
    let mut watch = Watch::begin();
    while !so() {
        watch.pause(&otherwise);
    }
}

/// Checks until `so` is true, in a runtime.
pub async fn until_async(mut so: impl FnMut() -> bool, otherwise: &str) {
    let mut watch = Watch::begin();
    while !so() {
        watch.pause_async(|| otherwise.to_owned()).await;
    }
}
