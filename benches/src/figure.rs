//! One line per figure: name, median, 99th percentile, number of samples, ratio to the peer.

use std::time::{Duration, Instant};

/// The samples of one measurement.
#[derive(Debug)]
pub struct Figure {
    name: String,
    unit: &'static str,
    samples: Vec<f64>,
}

impl Figure {
    /// A figure with samples in this unit.
    pub fn new(name: impl Into<String>, unit: &'static str, mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        Self { name: name.into(), unit, samples }
    }

    /// Times of `work`, in microseconds, after a warm-up of a tenth.
    pub fn of_times(name: impl Into<String>, count: usize, mut work: impl FnMut(usize)) -> Self {
        for round in 0..count / 10 {
            work(round);
        }
        let times = (0..count).map(|round| {
            let begin = Instant::now();
            work(round);
            micros(begin.elapsed())
        });
        Self::new(name, "us", times.collect())
    }

    /// The sample below which this share of the samples is; 0 without samples.
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.samples.len().saturating_sub(1);
        self.samples.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
    }

    /// Prints the line.
    pub fn print(&self, peer: Option<&Figure>) {
        let ratio = peer.map_or_else(String::new, |peer| {
            let ratio = self.quantile(0.5) / peer.quantile(0.5).max(f64::MIN_POSITIVE);
            format!("  {ratio:.3} x {}", peer.name)
        });
        println!(
            "{:<44} p50 {:>10.1} {}  p99 {:>10.1} {}  n {}{ratio}",
            self.name,
            self.quantile(0.5),
            self.unit,
            self.quantile(0.99),
            self.unit,
            self.samples.len()
        );
    }
}

/// Microseconds.
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
