//! Memory pressure: reads the kernel's files, and has idle sessions suspended. What a reading means is decided by
//! `vm_system_core::pressure`; whoever begins something new looks at the level (`MemoryPressure::admit`).

use super::api::RuntimeError;
use super::registry::Registry;
use super::task::Command;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use vm_system_core::pressure::{MemoryReading, PressureLevel, PressureLimits, parse_meminfo, parse_stalled};

/// Time between two readings.
const EVERY: Duration = Duration::from_secs(1);

/// Part of the memory below which idle sessions are suspended, and its most (MiB).
const SUSPEND: (u64, u64) = (10, 1_024);
/// The same for what is refused.
const REFUSE: (u64, u64) = (20, 512);

/// The operator's settings of memory pressure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PressureConfig {
    /// With less available memory idle sessions are suspended (MiB); none: a tenth of the memory, at most 1 GiB.
    pub suspend_below_mb: Option<u64>,
    /// With less available memory nothing new is begun (MiB); none: a twentieth of the memory, at most 512 MiB.
    pub refuse_below_mb: Option<u64>,
    /// With longer stalls idle sessions are suspended (percent of time); 0: stalls do not count.
    pub suspend_stalled_percent: u32,
    /// With longer stalls nothing new is begun (percent of time); 0: stalls do not count.
    pub refuse_stalled_percent: u32,
    /// In the format of `/proc/meminfo`.
    pub meminfo: PathBuf,
    /// Pressure stall information; none: that of the daemon's cgroup, or of the system.
    pub stalls: Option<PathBuf>,
}

impl Default for PressureConfig {
    fn default() -> Self {
        Self {
            suspend_below_mb: None,
            refuse_below_mb: None,
            suspend_stalled_percent: 20,
            refuse_stalled_percent: 40,
            meminfo: PathBuf::from("/proc/meminfo"),
            stalls: None,
        }
    }
}

impl PressureConfig {
    /// Nothing is suspended or refused: for one command, whose session is all there is.
    pub fn off() -> Self {
        Self {
            suspend_below_mb: Some(0),
            refuse_below_mb: Some(0),
            suspend_stalled_percent: 0,
            refuse_stalled_percent: 0,
            ..Self::default()
        }
    }

    /// The limits on a host with this memory (MiB).
    fn limits(&self, total_mb: Option<u64>) -> PressureLimits {
        let part = |(part, most): (u64, u64)| total_mb.map_or(0, |total| (total / part).min(most));
        PressureLimits {
            suspend_below_mb: self.suspend_below_mb.unwrap_or_else(|| part(SUSPEND)),
            refuse_below_mb: self.refuse_below_mb.unwrap_or_else(|| part(REFUSE)),
            suspend_stalled_percent: self.suspend_stalled_percent,
            refuse_stalled_percent: self.refuse_stalled_percent,
        }
    }
}

/// The current level.
#[derive(Debug, Default)]
pub(super) struct MemoryPressure(AtomicU8);

impl MemoryPressure {
    pub(super) fn level(&self) -> PressureLevel {
        match self.0.load(Ordering::Relaxed) {
            0 => PressureLevel::Normal,
            1 => PressureLevel::High,
            _ => PressureLevel::Critical,
        }
    }

    fn set(&self, level: PressureLevel) {
        self.0.store(level as u8, Ordering::Relaxed);
    }

    /// Refuses something new that needs a process while memory is short.
    pub(super) fn admit(&self) -> Result<(), RuntimeError> {
        match self.level() {
            PressureLevel::Critical => Err(RuntimeError::MemoryPressure),
            PressureLevel::Normal | PressureLevel::High => Ok(()),
        }
    }
}

/// Reads until the registry is stopping.
pub(super) async fn watch(config: PressureConfig, pressure: Arc<MemoryPressure>, registry: Arc<Registry>) {
    let stalls = config.stalls.clone().unwrap_or_else(stalls_of_this_process);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut level = PressureLevel::default();
    while !registry.is_stopping() {
        ticks.tick().await;
        let before = level;
        let (reading, total_mb) = read(&config.meminfo, &stalls);
        level = level.after(reading, &config.limits(total_mb));
        pressure.set(level);
        if level != before {
            let MemoryReading { available_mb, stalled } = reading;
            tracing::warn!(level = level.as_str(), ?available_mb, ?stalled, "memory pressure has changed");
        }
        if level > PressureLevel::Normal {
            for live in registry.live() {
                if !live.suspended.load(Ordering::Relaxed) {
                    // A full queue is no idle session.
                    let _ = live.commands.try_send(Command::Suspend { responder: None });
                }
            }
        }
    }
}

/// The files of the kernel are made when they are read, so that reading never waits for a disk.
fn read(meminfo: &Path, stalls: &Path) -> (MemoryReading, Option<u64>) {
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let (total_mb, available_mb) = parse_meminfo(&text(meminfo));
    (MemoryReading { available_mb, stalled: parse_stalled(&text(stalls)) }, total_mb)
}

/// The pressure of the daemon's own cgroup, where it can be read.
fn stalls_of_this_process() -> PathBuf {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = own.map(|group| Path::new("/sys/fs/cgroup").join(group).join("memory.pressure"));
    match own {
        Some(path) if std::fs::read_to_string(&path).is_ok() => path,
        _ => PathBuf::from("/proc/pressure/memory"),
    }
}

#[cfg(test)]
mod tests {
    use super::PressureConfig;

    #[test]
    fn limits_follow_from_the_memory_of_the_host_unless_they_are_set() {
        let config = PressureConfig::default();
        let limits = config.limits(Some(2_000));
        assert_eq!((limits.suspend_below_mb, limits.refuse_below_mb), (200, 100));
        let limits = config.limits(Some(64_000));
        assert_eq!((limits.suspend_below_mb, limits.refuse_below_mb), (1_024, 512));
        let limits = config.limits(None);
        assert_eq!(
            (limits.suspend_below_mb, limits.refuse_below_mb),
            (0, 0),
            "unknown memory refuses nothing"
        );
        let limits = PressureConfig { refuse_below_mb: Some(7), ..config }.limits(Some(2_000));
        assert_eq!((limits.suspend_below_mb, limits.refuse_below_mb), (200, 7));
    }
}
