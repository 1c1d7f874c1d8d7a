//! Memory pressure: reads the kernel's files, has idle sessions suspended, and ends work of an owner who is the cause of it.
//! What a reading means is decided by `vm_system_core::pressure`; whoever begins something new has its owner admitted
//! (`MemoryPressure::admit`).

use super::api::RuntimeError;
use super::command::Command;
use super::owner_memory::{LargestWork, OwnedProcesses, ProcessReading, largest_of};
use super::registry::Registry;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use vm_system_core::SessionInput as Input;
use vm_system_core::pressure::{
    MemoryReading, MemoryShares, PressureLevel, PressureLimits, parse_meminfo, parse_stalled,
};
use vm_system_record::Owner;

/// Time between two readings.
const EVERY: Duration = Duration::from_secs(1);

/// Part of the memory below which idle sessions are suspended, and its most (MiB).
const SUSPEND: (u64, u64) = (10, 1_024);
/// The same for what is refused.
const REFUSE: (u64, u64) = (20, 512);
/// An owner is the cause of pressure if it holds at least this part of the memory above its share: commands and other programs, which are
/// not counted, could hold what is missing otherwise.
const CAUSE: u64 = 8;
/// Readings of `Critical` after which work of the owner who is the cause ends: idle sessions were suspended meanwhile.
const PATIENCE: u32 = 5;
/// The memory of owners is read again after at least so many times the time that it took: at most so small a part of one processor.
const PART_OF_PROCESSOR: u32 = 10;
/// The same while memory is critical.
const CRITICAL_PART: u32 = 2;
/// How long a reading of the kernel waits for one of the owners.
const READING_WAIT: Duration = Duration::from_millis(200);
/// Readings of `Critical` for which nothing is refused as long as the memory of owners has never been read.
const UNREAD: u32 = 3;
/// The bytes that a new process counts until the next reading.
const NEW_BYTES: u64 = 8 << 20;

/// The operator's settings of memory pressure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PressureConfig {
    /// The available memory below which idle sessions are suspended (MiB); none: a tenth of the memory, at most 1 GiB.
    pub suspend_below_mb: Option<u64>,
    /// The available memory below which nothing new is begun (MiB); none: a twentieth of the memory, at most 512 MiB.
    pub refuse_below_mb: Option<u64>,
    /// The stalls above which idle sessions are suspended (percent of time); 0: stalls do not count.
    pub suspend_stalled_percent: u32,
    /// The stalls above which nothing new is begun (percent of time); 0: stalls do not count.
    pub refuse_stalled_percent: u32,
    /// Whether work of the owner who is the cause ends, if it lasts.
    pub end_largest: bool,
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
            end_largest: true,
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

/// The owner who holds most while memory is short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargestOwner {
    pub owner: Owner,
    /// The memory that the owner's sessions and programs hold (MiB).
    pub held_mb: u64,
    /// The held memory divided by the owners (MiB).
    pub share_mb: u64,
}

/// The current level, and while it is not `Normal` what each owner holds.
#[derive(Debug, Default)]
pub(super) struct MemoryPressure {
    level: AtomicU8,
    shares: Mutex<SharesNow>,
    pub(super) owned: Arc<OwnedProcesses>,
    /// The level, or the cause of it, has changed.
    changed: Notify,
}

#[derive(Debug, Default)]
struct SharesNow {
    /// `None`: it was not read, or cannot be read.
    shares: Option<MemoryShares>,
    is_unreadable: bool,
    cause: Option<Owner>,
}

const fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

impl MemoryPressure {
    fn shares(&self) -> MutexGuard<'_, SharesNow> {
        // Nothing under this lock can panic half-way through a change.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn level(&self) -> PressureLevel {
        match self.level.load(Ordering::Relaxed) {
            0 => PressureLevel::Normal,
            1 => PressureLevel::High,
            _ => PressureLevel::Critical,
        }
    }

    /// Puts a level in force, which has held for `readings` readings, and returns the level in force. `Critical` waits until a reading
    /// says what each owner holds, or until that cannot be read in time: before it, nobody is known to hold its share.
    fn set(&self, level: PressureLevel, readings: u32) -> PressureLevel {
        let is_known = {
            let now = self.shares();
            now.shares.is_some() || now.is_unreadable
        };
        let is_early = level == PressureLevel::Critical && !is_known && readings <= UNREAD;
        let in_force = if is_early { PressureLevel::High } else { level };
        self.level.store(in_force as u8, Ordering::Relaxed);
        self.changed.notify_waiters();
        in_force
    }

    /// Refuses an owner something new that needs a process while memory is short and the owner holds its share.
    pub(super) fn admit(&self, owner: &Owner) -> Result<(), RuntimeError> {
        if self.level() < PressureLevel::Critical {
            return Ok(());
        }
        let newer = self.owned.newer_of(owner) * NEW_BYTES;
        let now = self.shares();
        // Nothing is held, or it is not known what: all are refused.
        let Some(shares) = now.shares.as_ref().filter(|shares| shares.share() > 0) else {
            return Err(RuntimeError::MemoryShort);
        };
        if shares.admits(owner, newer) {
            return Ok(());
        }
        let held = shares.held(owner).saturating_add(newer);
        let (held_mb, share_mb) = (mib(held), mib(shares.share()));
        Err(RuntimeError::MemoryPressure { held_mb, share_mb })
    }

    /// Whether memory is short because of this owner.
    pub(super) fn is_caused_by(&self, owner: &Owner) -> bool {
        self.level() == PressureLevel::Critical && self.shares().cause.as_ref() == Some(owner)
    }

    /// Waits until memory is not short because of this owner.
    pub(super) async fn not_caused_by(&self, owner: &Owner) {
        loop {
            let changed = self.changed.notified();
            if !self.is_caused_by(owner) {
                return;
            }
            changed.await;
        }
    }

    /// The owner who holds most; only while memory is short.
    pub(super) fn largest(&self) -> Option<LargestOwner> {
        let now = self.shares();
        let shares = now.shares.as_ref()?;
        let (owner, held) = shares.largest()?;
        Some(LargestOwner { owner: owner.clone(), held_mb: mib(held), share_mb: mib(shares.share()) })
    }

    /// Begins to read what the owners hold.
    fn begin_reading(&self) -> JoinHandle<OwnersReading> {
        let owned = Arc::clone(&self.owned);
        tokio::task::spawn_blocking(move || {
            let began = Instant::now();
            let processes = owned.read();
            OwnersReading { processes, took: began.elapsed() }
        })
    }

    /// Has what was read as the shares.
    fn set_shares(&self, read: &[ProcessReading], above_share_mb: u64) {
        let is_unreadable = read.is_empty() && !self.owned.is_empty();
        if is_unreadable && self.level() < PressureLevel::Critical {
            tracing::warn!(
                "what each owner holds cannot be read: while memory is critical, all owners are refused alike"
            );
        }
        let shares = MemoryShares::sum_up(read.iter().map(|process| (process.owner.clone(), process.bytes)));
        let cause = shares.cause(above_share_mb << 20).cloned();
        let shares = (!is_unreadable).then_some(shares);
        *self.shares() = SharesNow { shares, is_unreadable, cause };
        self.changed.notify_waiters();
    }

    /// Ends work of the owner who is the cause, until it has held what is missing.
    fn end_largest(&self, read: &[ProcessReading], missing_mb: u64, registry: &Registry) {
        let Some(owner) = self.shares().cause.clone() else { return };
        for work in largest_of(&owner, read, missing_mb << 20) {
            match work {
                LargestWork::Program(execution, worker) => {
                    let held_mb = mib(worker.bytes);
                    tracing::warn!(%owner, %execution, held_mb, "memory is short: ended a program's worker of the largest owner");
                    worker.release();
                }
                LargestWork::Session(session, bytes) => {
                    let Some(live) = registry.get(session) else { continue };
                    tracing::warn!(%owner, %session, held_mb = mib(bytes), "memory is short: ends a session of the largest owner");
                    // A full queue leaves it to the next reading.
                    let _ = live.commands.try_send(Command::Notice(Input::MemoryShort));
                }
            }
        }
    }
}

/// The memory that the processes of all owners held.
#[derive(Debug, Default)]
struct OwnersReading {
    processes: Vec<ProcessReading>,
    took: Duration,
}

/// Reads until the registry is stopping.
pub(super) async fn watch(config: PressureConfig, pressure: Arc<MemoryPressure>, registry: Arc<Registry>) {
    let stalls = config.stalls.clone().unwrap_or_else(stalls_of_this_process);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut level, mut in_force) = (PressureLevel::default(), PressureLevel::default());
    let (mut critical_for, mut next_shares) = (0, Instant::now());
    let mut owners_reading: Option<JoinHandle<OwnersReading>> = None;
    while !registry.is_stopping() {
        ticks.tick().await;
        let before = in_force;
        let (reading, total_mb) = read(&config.meminfo, &stalls);
        let limits = config.limits(total_mb);
        level = level.level_after(reading, &limits);
        critical_for = if level == PressureLevel::Critical { critical_for + 1 } else { 0 };
        in_force = pressure.set(level, critical_for);
        if level == PressureLevel::Normal {
            *pressure.shares() = SharesNow::default();
        } else if owners_reading.is_none() && next_shares <= Instant::now() {
            owners_reading = Some(pressure.begin_reading());
        }
        // The level does not wait for a reading of large processes.
        if let Some(reading_now) = &mut owners_reading
            && let Ok(read) = timeout(READING_WAIT, reading_now).await
        {
            owners_reading = None;
            // Only if the runtime is being dropped there is none.
            let OwnersReading { processes, took } = read.unwrap_or_default();
            let pause = if level == PressureLevel::Critical { CRITICAL_PART } else { PART_OF_PROCESSOR };
            next_shares = Instant::now() + took * pause;
            if level > PressureLevel::Normal {
                pressure
                    .set_shares(&processes, limits.refuse_below_mb.max(total_mb.unwrap_or_default() / CAUSE));
            }
            in_force = pressure.set(level, critical_for);
            if critical_for > PATIENCE && config.end_largest {
                pressure.end_largest(&processes, PressureLevel::missing_mb(reading, &limits), &registry);
            }
        }
        if in_force != before {
            let MemoryReading { available_mb, stalled } = reading;
            let largest = pressure.largest();
            tracing::warn!(
                level = in_force.as_str(),
                available_mb,
                stalled,
                largest = largest.as_ref().map(|largest| tracing::field::display(&largest.owner)),
                largest_mb = largest.as_ref().map(|largest| largest.held_mb),
                "memory pressure has changed"
            );
        }
        if level > PressureLevel::Normal {
            for live in registry.live() {
                if !live.suspended.load(Ordering::Relaxed) {
                    // A full queue is no idle session.
                    let _ = live.commands.try_send(Command::Notice(Input::SuspendIdle));
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
    use super::{MemoryPressure, PressureConfig, UNREAD};
    use vm_system_core::pressure::PressureLevel::{Critical, High, Normal};
    use vm_system_record::Owner;

    #[test]
    fn nobody_is_refused_before_it_is_known_what_the_owners_hold() {
        let (pressure, owner) = (MemoryPressure::default(), Owner::new("a"));
        for readings in 1..=UNREAD {
            assert_eq!(pressure.set(Critical, readings), High);
            assert_eq!((pressure.level(), pressure.admit(&owner)), (High, Ok(())));
        }
        // Nothing is held.
        pressure.set_shares(&[], 0);
        assert_eq!(pressure.set(Critical, UNREAD), Critical);
        let refused = pressure.admit(&owner).expect_err("memory is short").to_string();
        assert!(!refused.contains("MiB"), "nothing was measured: {refused}");
    }

    #[test]
    fn what_cannot_be_read_in_time_refuses_all_and_states_no_figures() {
        let (pressure, owner) = (MemoryPressure::default(), Owner::new("a"));
        assert_eq!(pressure.set(Critical, UNREAD + 1), Critical);
        let refused = pressure.admit(&owner).expect_err("memory is short").to_string();
        assert!(refused.starts_with("memory is short") && !refused.contains("MiB"), "{refused}");
        assert_eq!(pressure.set(Normal, 0), Normal);
        assert_eq!(pressure.admit(&owner), Ok(()));
    }

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
