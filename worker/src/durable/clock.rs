//! The limits of a segment: clocks and counters, and why the segment has to stop. Must not run anything.

use crate::engine::INTERRUPT;
use nix::time::{ClockId, clock_gettime};
use std::sync::atomic::Ordering;
use std::time::Duration;
use vm_system_cvm::DroppedOutput;
use vm_system_protocol::durable::{DurableLimit, End, Segment};

fn nanoseconds(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX))
}

/// The clock of the running segment. Times in nanoseconds.
#[derive(Default)]
pub(super) struct SegmentClock {
    segment: Option<Segment>,
    started: u64,
    cpu_started: u64,
    events: u32,
    output: u64,
    /// Instructions that the program had executed before the segment.
    first_step: u64,
    /// Output that was dropped since the last pause: it is reported at the next one, or at the end.
    dropped: DroppedOutput,
}

impl SegmentClock {
    /// Begins a segment.
    pub(super) fn begin(&mut self, segment: Segment, steps: u64) {
        INTERRUPT.store(false, Ordering::Relaxed);
        self.started = nanoseconds(ClockId::CLOCK_MONOTONIC);
        self.cpu_started = nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID);
        (self.events, self.output) = (0, 0);
        self.first_step = steps;
        self.segment = Some(segment);
    }

    /// Milliseconds since the epoch.
    pub(super) fn now_ms(&self) -> f64 {
        let begun = self.segment.map_or(0, |segment| segment.now_ms);
        let since = nanoseconds(ClockId::CLOCK_MONOTONIC).saturating_sub(self.started) / 1_000_000;
        begun as f64 + since as f64
    }

    /// Time since the segment began (microseconds).
    pub(super) fn elapsed_us(&self) -> u64 {
        nanoseconds(ClockId::CLOCK_MONOTONIC).saturating_sub(self.started) / 1_000
    }

    /// CPU time of the segment (microseconds).
    pub(super) fn cpu_us(&self) -> u64 {
        nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID).saturating_sub(self.cpu_started) / 1_000
    }

    /// The reason why the segment has to stop, if there is one.
    pub(super) fn stop(&self) -> Option<End> {
        let segment = self.segment?;
        if INTERRUPT.load(Ordering::Relaxed) {
            return Some(End::Interrupted);
        }
        if self.elapsed_us() >= u64::from(segment.wall_ms) * 1_000 {
            return Some(End::Limit(DurableLimit::Wall));
        }
        (self.cpu_us() >= u64::from(segment.cpu_ms) * 1_000).then_some(End::Limit(DurableLimit::Cpu))
    }

    /// Counts an event with this much text, and returns whether the limits permit it. Once one is dropped, all are until the next
    /// pause, so that the output has one gap.
    pub(super) fn admits_event(&mut self, bytes: usize) -> bool {
        let Some(segment) = self.segment else { return false };
        let (events, output) = (self.events + 1, self.output + bytes as u64);
        if self.dropped.lines > 0 || events > segment.max_events || output > segment.max_output_bytes {
            return false;
        }
        (self.events, self.output) = (events, output);
        true
    }

    /// Counts output that is not sent.
    pub(super) fn drop_output(&mut self, dropped: DroppedOutput) {
        self.dropped.lines = self.dropped.lines.saturating_add(dropped.lines);
        self.dropped.bytes = self.dropped.bytes.saturating_add(dropped.bytes);
    }

    /// The output that was dropped since the last call.
    pub(super) fn take_dropped(&mut self) -> DroppedOutput {
        std::mem::take(&mut self.dropped)
    }

    /// Instructions until the next checkpoint is due; 0: now.
    pub(super) fn steps_until_checkpoint(&self, steps: u64) -> u64 {
        let most = self.segment.map_or(u64::MAX, |segment| segment.checkpoint_steps);
        most.saturating_sub(steps.saturating_sub(self.first_step))
    }

    /// Whether the segment has run for so long that a checkpoint is due.
    pub(super) fn is_checkpoint_late(&self) -> bool {
        let most = self.segment.map_or(u32::MAX, |segment| segment.checkpoint_ms);
        self.elapsed_us() >= u64::from(most) * 1_000
    }
}
