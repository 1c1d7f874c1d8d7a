//! The limits that a template sets, as one table. The struct, its defaults, the operator's ceilings, the flags of the command line and
//! the keys of the daemon's configuration are made from it: a new limit is one row here, and the code that enforces it. Enforces nothing.

use crate::codec::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// The table of limits: `for_each_limit!(other)` is `other! { rows }`. A row is
/// `name: type = default, ceiling, meaning of 0, unit of the command line's flag, text;`. The order is that of the wire.
#[macro_export]
macro_rules! for_each_limit {
    ($then:ident) => {
        $then! {
            cpu_ms: u32 = 5_000, 600_000, Refused, "MS", "CPU time of one execution (milliseconds)";
            wall_ms: u32 = 30_000, 3_600_000, Refused, "MS",
                "Wall-clock time of one execution without waits for host calls (milliseconds)";
            mem_mb: u32 = 128, 4_096, Refused, "MIB", "Memory of a session (MiB)";
            max_events: u32 = 1_000, 100_000, Refused, "N", "Events that one execution may record";
            max_output_kb: u32 = 512, 8_192, Refused, "KIB", "Output of one execution (KiB)";
            max_source_kb: u32 = 1_024, 8_192, Refused, "KIB", "Longest source text (KiB)";
            max_steps: u64 = 0, 0, Unlimited, "N", "Engine cvm: instructions of one execution; 0 = no limit";
            max_stack_depth: u32 = 10_000, 1_000_000, Refused, "N", "Engine cvm: nested calls";
            max_state_mb: u32 = 64, 1_024, Refused, "MIB", "Engine cvm: serialised state (MiB)";
        }
    };
}

/// The meaning of 0 as a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroLimit {
    /// No template has it.
    Refused,
    /// There is no limit.
    Unlimited,
}

/// A number, or the largest one that a JSON number keeps exactly if that is less.
fn most_exact(most: u64) -> u64 {
    most.min((1 << 53) - 1)
}

impl ZeroLimit {
    /// The least value of a limit.
    fn least(self) -> u64 {
        u64::from(self == Self::Refused)
    }

    /// The narrower one of two values of a limit.
    pub fn narrower<T: Ord + Copy + Default>(self, one: T, other: T) -> T {
        match self {
            Self::Unlimited if one == T::default() => other,
            Self::Unlimited if other == T::default() => one,
            _ => one.min(other),
        }
    }
}

/// The value of one limit, with its row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitValue {
    /// The field of [`Limits`].
    pub name: &'static str,
    /// In the unit that the name ends with.
    pub value: u64,
    /// The meaning of 0.
    pub zero: ZeroLimit,
}

macro_rules! limits {
    ($($name:ident: $type:ident = $default:literal, $ceiling:literal, $zero:ident, $unit:literal, $text:literal;)+) => {
        /// The limits of an execution, or of the session where noted. `max_output_kb` counts the texts and values of all events; of
        /// these, the JSON of a result may have up to 4 MiB.
        #[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Limits {
            $(
                #[doc = concat!($text, ".")]
                #[schemars(range(min = ZeroLimit::$zero.least(), max = most_exact($type::MAX.into())))]
                pub $name: $type,
            )+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl Limits {
            /// The ceilings of templates where the operator configures none.
            pub fn default_ceilings() -> Self {
                Self { $($name: $ceiling,)+ }
            }

            /// The largest value of each limit, for a user who is the operator.
            pub fn unlimited() -> Self {
                Self { $($name: if matches!(ZeroLimit::$zero, ZeroLimit::Unlimited) { 0 } else { $type::MAX },)+ }
            }

            /// The narrower one of each two limits.
            #[must_use]
            pub fn narrowed_by(&self, other: &Self) -> Self {
                Self { $($name: ZeroLimit::$zero.narrower(self.$name, other.$name),)+ }
            }

            /// All limits with their values, in the order of the table.
            pub fn values(&self) -> impl Iterator<Item = LimitValue> + use<> {
                [$(LimitValue { name: stringify!($name), value: self.$name.into(), zero: ZeroLimit::$zero },)+].into_iter()
            }
        }
    };
}
for_each_limit!(limits);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrower_limit_is_the_lower_one_and_zero_may_mean_none() {
        let mine = Limits { cpu_ms: 7, max_steps: 0, ..Limits::default() };
        let other = Limits { cpu_ms: 9, max_steps: 5, ..Limits::default() };
        for narrowed in [mine.narrowed_by(&other), other.narrowed_by(&mine)] {
            assert_eq!((narrowed.cpu_ms, narrowed.max_steps), (7, 5));
        }
        assert_eq!(mine.narrowed_by(&Limits::unlimited()), mine);
    }

    #[test]
    fn every_default_is_below_its_ceiling() {
        let defaults = Limits::default();
        assert_eq!(defaults.narrowed_by(&Limits::default_ceilings()), defaults);
        assert!(defaults.values().all(|limit| limit.value != 0 || limit.zero == ZeroLimit::Unlimited));
    }
}
