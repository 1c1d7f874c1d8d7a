//! Memory pressure: readings of the kernel become a level. Pure; the readings and what follows are the runtime's.
//!
//! At `High` idle sessions are suspended, at `Critical` nothing new is begun by owners who hold their share of the memory
//! ([`MemoryShares`]), so that the kernel need not kill. A level is left only when the readings are clearly better than those with
//! which it is entered.

use std::collections::HashMap;
use vm_system_record::Owner;

/// A reading of the kernel; absent parts cannot be read on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryReading {
    /// `MemAvailable` (MiB).
    pub available_mb: Option<u64>,
    /// `full avg10` of the pressure stall information: the part of the last 10 s in which nothing ran for lack of memory (hundredths of
    /// a percent).
    pub stalled: Option<u32>,
}

/// Where the levels begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PressureLimits {
    /// Less memory is `High` (MiB).
    pub suspend_below_mb: u64,
    /// Less memory is `Critical` (MiB).
    pub refuse_below_mb: u64,
    /// A longer stall is `High` (percent); 0: stalls do not count.
    pub suspend_stalled_percent: u32,
    /// A longer stall is `Critical` (percent); 0: stalls do not count.
    pub refuse_stalled_percent: u32,
}

/// How short memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum PressureLevel {
    #[default]
    Normal,
    High,
    Critical,
}

impl PressureLevel {
    /// The text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// The level after a reading. Without any reading it is `Normal`: nothing is refused on a guess.
    #[must_use]
    pub fn level_after(self, reading: MemoryReading, limits: &PressureLimits) -> Self {
        [Self::Critical, Self::High]
            .into_iter()
            .find(|level| level.applies(reading, limits, self >= *level))
            .unwrap_or(Self::Normal)
    }

    /// By how much less memory is available than ends `Critical` (MiB); 0 if that is not known, or not the reason.
    pub fn missing_mb(reading: MemoryReading, limits: &PressureLimits) -> u64 {
        let enough = limits.refuse_below_mb.saturating_add(limits.refuse_below_mb / 4);
        reading.available_mb.map_or(0, |available| enough.saturating_sub(available))
    }

    /// Whether a reading is of this level. One that holds is left with a quarter more memory and half the stalls.
    fn applies(self, reading: MemoryReading, limits: &PressureLimits, holds: bool) -> bool {
        let (below_mb, percent) = match self {
            Self::Normal => return true,
            Self::High => (limits.suspend_below_mb, limits.suspend_stalled_percent),
            Self::Critical => (limits.refuse_below_mb, limits.refuse_stalled_percent),
        };
        let below_mb = if holds { below_mb.saturating_add(below_mb / 4) } else { below_mb };
        let stalled = percent.saturating_mul(if holds { 50 } else { 100 });
        reading.available_mb.is_some_and(|available| available < below_mb)
            || (percent > 0 && reading.stalled.is_some_and(|now| now >= stalled))
    }
}

/// The memory that the processes of each owner hold, while memory is short (bytes). The share of an owner is the sum divided by the
/// owners who hold something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryShares {
    held: HashMap<Owner, u64>,
    share: u64,
}

impl MemoryShares {
    /// Sums up what was read of each process.
    pub fn sum_up(read: impl IntoIterator<Item = (Owner, u64)>) -> Self {
        let mut held = HashMap::<Owner, u64>::new();
        for (owner, bytes) in read {
            let sum = held.entry(owner).or_default();
            *sum = sum.saturating_add(bytes);
        }
        held.retain(|_, bytes| *bytes > 0);
        let sum = held.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let share = sum.checked_div(held.len() as u64).unwrap_or_default();
        Self { held, share }
    }

    pub const fn share(&self) -> u64 {
        self.share
    }

    pub fn held(&self, owner: &Owner) -> u64 {
        self.held.get(owner).copied().unwrap_or_default()
    }

    /// Whether an owner may begin something new although memory is short: with what it has begun since the reading (`newer`, bytes) it
    /// holds less than its share. An owner alone holds its share.
    pub fn admits(&self, owner: &Owner, newer: u64) -> bool {
        self.held(owner).saturating_add(newer) < self.share
    }

    /// The owner who holds most; of several the first by name.
    pub fn largest(&self) -> Option<(&Owner, u64)> {
        let largest = self.held.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)));
        largest.map(|(owner, bytes)| (owner, *bytes))
    }

    /// The owner who is the cause of the pressure: the one who holds most, if it holds at least so much above its share. Where other
    /// programs of the machine hold the memory there is none.
    pub fn cause(&self, above_share: u64) -> Option<&Owner> {
        let (owner, held) = self.largest()?;
        let above = held.saturating_sub(self.share);
        (above > 0 && above >= above_share).then_some(owner)
    }
}

/// `MemTotal` and `MemAvailable` of `/proc/meminfo` (MiB).
pub fn parse_meminfo(text: &str) -> (Option<u64>, Option<u64>) {
    let field = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = rest.split_whitespace().next()?.parse().ok()?;
        Some(kib / 1_024)
    };
    (field("MemTotal"), field("MemAvailable"))
}

/// `full avg10` of a file of pressure stall information (hundredths of a percent).
pub fn parse_stalled(text: &str) -> Option<u32> {
    let full = text.lines().find_map(|line| line.strip_prefix("full "))?;
    let avg10 = full.split_whitespace().find_map(|field| field.strip_prefix("avg10="))?;
    let (whole, part) = avg10.split_once('.').unwrap_or((avg10, ""));
    let whole: u32 = whole.parse().ok()?;
    let part: u32 = format!("{part:0<2}").get(..2)?.parse().ok()?;
    whole.checked_mul(100)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PressureLimits = PressureLimits {
        suspend_below_mb: 1_000,
        refuse_below_mb: 400,
        suspend_stalled_percent: 10,
        refuse_stalled_percent: 30,
    };

    fn reading(available_mb: u64, stalled: u32) -> MemoryReading {
        MemoryReading { available_mb: Some(available_mb), stalled: Some(stalled) }
    }

    #[test]
    fn the_worse_reading_decides_and_none_is_normal() {
        let level =
            |available, stalled| PressureLevel::Normal.level_after(reading(available, stalled), &LIMITS);
        assert_eq!(level(1_000, 0), PressureLevel::Normal);
        assert_eq!(level(999, 0), PressureLevel::High);
        assert_eq!(level(399, 0), PressureLevel::Critical);
        assert_eq!(level(5_000, 1_000), PressureLevel::High);
        assert_eq!(level(5_000, 3_000), PressureLevel::Critical);
        assert_eq!(
            PressureLevel::Critical.level_after(MemoryReading::default(), &LIMITS),
            PressureLevel::Normal
        );
        let without_stalls =
            PressureLimits { suspend_stalled_percent: 0, refuse_stalled_percent: 0, ..LIMITS };
        assert_eq!(
            PressureLevel::Normal.level_after(reading(5_000, 9_000), &without_stalls),
            PressureLevel::Normal
        );
    }

    #[test]
    fn a_level_is_left_later_than_it_is_entered() {
        assert_eq!(PressureLevel::Critical.level_after(reading(450, 0), &LIMITS), PressureLevel::Critical);
        assert_eq!(PressureLevel::Critical.level_after(reading(500, 0), &LIMITS), PressureLevel::High);
        assert_eq!(PressureLevel::High.level_after(reading(450, 0), &LIMITS), PressureLevel::High);
        assert_eq!(PressureLevel::High.level_after(reading(1_200, 600), &LIMITS), PressureLevel::High);
        assert_eq!(PressureLevel::High.level_after(reading(1_250, 499), &LIMITS), PressureLevel::Normal);
    }

    #[test]
    fn what_is_missing_ends_the_critical_level() {
        assert_eq!(PressureLevel::missing_mb(reading(300, 0), &LIMITS), 200);
        assert_eq!(PressureLevel::Critical.level_after(reading(500, 0), &LIMITS), PressureLevel::High);
        assert_eq!(PressureLevel::missing_mb(reading(5_000, 4_000), &LIMITS), 0);
        assert_eq!(PressureLevel::missing_mb(MemoryReading::default(), &LIMITS), 0);
    }

    fn shares(held: &[(&str, u64)]) -> MemoryShares {
        MemoryShares::sum_up(held.iter().map(|(owner, bytes)| (Owner::new(owner), *bytes)))
    }

    #[test]
    fn an_owner_below_its_share_begins_new_things_and_others_do_not() {
        let shares = shares(&[("a", 500), ("b", 100), ("a", 300), ("nothing", 0)]);
        assert_eq!((shares.share(), shares.held(&Owner::new("a"))), (450, 800));
        let admitted = |owner: &str, newer| shares.admits(&Owner::new(owner), newer);
        assert!(!admitted("a", 0) && admitted("b", 0) && admitted("new", 0));
        assert!(!admitted("b", 350) && admitted("b", 349));
    }

    #[test]
    fn an_owner_alone_is_refused_and_so_are_all_if_nothing_is_held() {
        assert!(!shares(&[("a", 100)]).admits(&Owner::new("a"), 0));
        assert!(!MemoryShares::default().admits(&Owner::new("a"), 0));
        let equal = shares(&[("a", 100), ("b", 100)]);
        assert!(!equal.admits(&Owner::new("a"), 0) && !equal.admits(&Owner::new("b"), 0));
    }

    #[test]
    fn only_an_owner_far_above_its_share_is_the_cause() {
        let cause =
            |held: &[(&str, u64)], below| shares(held).cause(below).map(|owner| owner.as_str().to_owned());
        assert_eq!(cause(&[("a", 1_000), ("b", 100)], 450).as_deref(), Some("a"));
        assert_eq!(cause(&[("a", 1_000), ("b", 100)], 451), None, "the memory is held by others");
        assert_eq!(cause(&[("a", 1_000)], 0), None, "an owner alone holds its share");
        assert_eq!(cause(&[("a", 100), ("b", 100)], 0), None);
        assert_eq!(cause(&[], 0), None);
    }

    #[test]
    fn the_files_of_the_kernel_are_read_and_others_are_not() {
        let meminfo = "MemTotal:       24576000 kB\nMemFree: 1 kB\nMemAvailable:    2048000 kB\n";
        assert_eq!(parse_meminfo(meminfo), (Some(24_000), Some(2_000)));
        assert_eq!(parse_meminfo("nothing"), (None, None));
        let pressure =
            "some avg10=12.50 avg60=1 avg300=0.00 total=1\nfull avg10=3.07 avg60=0.00 avg300=0 total=1\n";
        assert_eq!(parse_stalled(pressure), Some(307));
        assert_eq!(parse_stalled("full avg10=100 total=1"), Some(10_000));
        assert_eq!(parse_stalled("some avg10=1.00"), None);
        assert_eq!(parse_stalled("full avg10=x"), None);
    }
}
