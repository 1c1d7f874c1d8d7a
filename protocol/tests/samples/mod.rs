//! One sample of every wire type, built from a source of numbers: fixed numbers for the goldens, arbitrary bytes for the
//! property tests. Exhaustive by construction: each list below is also a `match` without a wildcard, so that a variant
//! that is added to the protocol does not compile here until it has a row.

#![allow(dead_code)] // each test binary uses its part

use vm_system_protocol::broker::*;
use vm_system_protocol::control::*;
use vm_system_protocol::durable::*;
use vm_system_protocol::egress::*;
use vm_system_protocol::files_agent::*;
use vm_system_protocol::ids::*;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::keeper::*;
use vm_system_protocol::model::*;
use vm_system_protocol::reason::{CloseReason, LimitKind};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::*;
use vm_system_protocol::zygote::{FromZygote, ToZygote};

/// The source of the samples' content.
pub(crate) enum Source<'a> {
    /// 1, 2, 3, …; every option is present, every list has one entry.
    Counting(u64),
    /// These bytes, then zeros.
    Bytes(&'a [u8]),
}

impl Source<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        match self {
            Self::Counting(next) => {
                *next += 1;
                let number = next.to_le_bytes();
                let len = N.min(8);
                taken[..len].copy_from_slice(&number[..len]);
            }
            Self::Bytes(rest) => {
                let len = N.min(rest.len());
                taken[..len].copy_from_slice(&rest[..len]);
                *rest = &rest[len..];
            }
        }
        taken
    }

    fn below(&mut self, count: usize) -> usize {
        usize::from(u16::from_le_bytes(self.take())) % count
    }

    fn flag(&mut self) -> bool {
        matches!(self, Self::Counting(_)) || self.take::<1>()[0] & 1 == 1
    }

    fn len(&mut self) -> usize {
        match self {
            Self::Counting(_) => 1,
            Self::Bytes([]) => 0,
            Self::Bytes(_) => self.below(5),
        }
    }
}

/// A wire type with samples.
pub(crate) trait Sample: Sized {
    /// A value with content from the source.
    fn sample(from: &mut Source<'_>) -> Self;
}

/// A wire type that is an enum: a sample of every variant.
pub(crate) trait Variants: Sized {
    /// Names and samples of the variants, in order.
    fn variants(from: &mut Source<'_>) -> Vec<(&'static str, Self)>;
}

macro_rules! numbers { ($($number:ty),+) => { $(impl Sample for $number {
    fn sample(from: &mut Source<'_>) -> Self { Self::from_le_bytes(from.take()) }
})+ } }
numbers!(u8, u16, u32, u64, i32, i64);

impl Sample for bool {
    fn sample(from: &mut Source<'_>) -> Self {
        from.flag()
    }
}

impl<const N: usize> Sample for [u8; N] {
    fn sample(from: &mut Source<'_>) -> Self {
        from.take()
    }
}

impl Sample for String {
    fn sample(from: &mut Source<'_>) -> Self {
        match from {
            Source::Counting(next) => {
                *next += 1;
                format!("text {next} ü")
            }
            Source::Bytes(_) => {
                let len = usize::from(from.take::<1>()[0]);
                let bytes: Vec<u8> = (0..len).map_while(|_| from.next_byte()).collect();
                Self::from_utf8_lossy(&bytes).into_owned()
            }
        }
    }
}

impl Source<'_> {
    fn next_byte(&mut self) -> Option<u8> {
        match self {
            Self::Bytes([]) => None,
            _ => Some(self.take::<1>()[0]),
        }
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(from: &mut Source<'_>) -> Self {
        from.flag().then(|| T::sample(from))
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(from: &mut Source<'_>) -> Self {
        (0..from.len()).map(|_| T::sample(from)).collect()
    }
}

impl<T: Sample> Sample for Box<T> {
    fn sample(from: &mut Source<'_>) -> Self {
        Box::new(T::sample(from))
    }
}

impl<A: Sample, B: Sample> Sample for (A, B) {
    fn sample(from: &mut Source<'_>) -> Self {
        (A::sample(from), B::sample(from))
    }
}

impl<T: Sample, E: Sample> Sample for Result<T, E> {
    fn sample(from: &mut Source<'_>) -> Self {
        if from.flag() { Ok(T::sample(from)) } else { Err(E::sample(from)) }
    }
}

impl<T: Sample, E: Sample> Variants for Result<T, E> {
    fn variants(from: &mut Source<'_>) -> Vec<(&'static str, Self)> {
        vec![("Ok", Ok(T::sample(from))), ("Err", Err(E::sample(from)))]
    }
}

impl Sample for JsonText {
    fn sample(from: &mut Source<'_>) -> Self {
        Self::from_untrusted(String::sample(from))
    }
}

impl Sample for Timestamp {
    fn sample(from: &mut Source<'_>) -> Self {
        Self(i64::sample(from))
    }
}

macro_rules! ids { ($($id:ident),+ $(,)?) => { $(impl Sample for $id {
    fn sample(from: &mut Source<'_>) -> Self { Self::from_bytes(from.take()) }
})+ } }
ids!(TemplateId, SessionId, ExecutionId, ProgramId, TaskId, ScheduleId, CapabilityId, StartupFileId);

/// Enums with a list of all their members.
macro_rules! text_enums { ($($name:ident),+ $(,)?) => { $(
    impl Sample for $name {
        fn sample(from: &mut Source<'_>) -> Self { Self::ALL[from.below(Self::ALL.len())] }
    }
    impl Variants for $name {
        fn variants(_: &mut Source<'_>) -> Vec<(&'static str, Self)> {
            Self::ALL.iter().map(|member| (member.as_str(), *member)).collect()
        }
    }
)+ } }
text_enums!(
    ConsoleLevel,
    NoteCode,
    JsType,
    ExecutionKind,
    ExecutionStatus,
    SessionStatus,
    TaskState,
    Overlap,
    SessionEventType,
    RestorationStatus,
    OnCrash,
    TypeCheck,
    Engine,
    CapabilityKind,
    StartupMode,
    ErrorCode,
);

/// Structs, by their fields.
macro_rules! structs { ($($name:ident { $($field:ident),* $(,)? })+) => { $(impl Sample for $name {
    fn sample(_from: &mut Source<'_>) -> Self { Self { $($field: Sample::sample(_from)),* } }
})+ } }

/// Enums, by their variants: `Unit`, `Tuple(a)`, `Struct { field }`.
macro_rules! enums {
    ($($name:ident { $($variant:ident $(($($item:ident),+))? $({ $($field:ident),+ $(,)? })?),+ $(,)? })+) => { $(
        impl Sample for $name {
            fn sample(from: &mut Source<'_>) -> Self {
                let makers: &[fn(&mut Source<'_>) -> Self] = &[$(|_from| {
                    $($(let $item = Sample::sample(_from);)+)?
                    $($(let $field = Sample::sample(_from);)+)?
                    Self::$variant $(($($item),+))? $({ $($field),+ })?
                }),+];
                makers[from.below(makers.len())](from)
            }
        }
        impl Variants for $name {
            fn variants(from: &mut Source<'_>) -> Vec<(&'static str, Self)> {
                // No wildcard: a new variant does not compile until it has a row above.
                fn name(value: &$name) -> &'static str {
                    match value { $($name::$variant { .. } => stringify!($variant)),+ }
                }
                let all = vec![$({
                    let _from = &mut *from;
                    $($(let $item = Sample::sample(_from);)+)?
                    $($(let $field = Sample::sample(_from);)+)?
                    $name::$variant $(($($item),+))? $({ $($field),+ })?
                }),+];
                all.into_iter().map(|value| (name(&value), value)).collect()
            }
        }
    )+ }
}

/// [`Op`] and [`Reply`], by the table of verbs.
macro_rules! verbs {
    ($($verb:ident, $handler:ident, $name:literal, $effect:ident, $subject:expr => $reply:ty;)+) => {
        verbs! { @enum Op { $($verb)+ } }
        verbs! { @enum Reply { $($verb)+ } }
    };
    (@enum $name:ident { $($verb:ident)+ }) => {
        impl Sample for $name {
            fn sample(from: &mut Source<'_>) -> Self {
                let makers: &[fn(&mut Source<'_>) -> Self] = &[$(|from| Self::$verb(Sample::sample(from))),+];
                makers[from.below(makers.len())](from)
            }
        }
        impl Variants for $name {
            fn variants(from: &mut Source<'_>) -> Vec<(&'static str, Self)> {
                vec![$((stringify!($verb), Self::$verb(Sample::sample(from)))),+]
            }
        }
    };
}
vm_system_protocol::for_each_verb!(verbs);

impl Sample for () {
    fn sample(_: &mut Source<'_>) -> Self {}
}

mod types;
