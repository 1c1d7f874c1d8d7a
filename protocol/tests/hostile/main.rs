//! Hostile bytes: for any input on a channel, decoding neither panics nor claims memory beyond its limit, and it accepts only the
//! one encoding of a value. Memory is measured by a counting allocator.

#[path = "../samples/mod.rs"]
mod samples;
mod sys;

use proptest::prelude::*;
use samples::{Sample, Source, Variants};
use std::fmt::Debug;
use sys::peak_of;
use vm_system_protocol::broker::*;
use vm_system_protocol::codec::{CodecError, Decode, Encode, claim_limit, decode, encode};
use vm_system_protocol::control::*;
use vm_system_protocol::egress::*;
use vm_system_protocol::files_agent::*;
use vm_system_protocol::hello::Hello;
use vm_system_protocol::keeper::*;
use vm_system_protocol::limits::{HOST_MESSAGE_BYTES, WORKER_MESSAGE_BYTES};
use vm_system_protocol::worker::*;
use vm_system_protocol::zygote::*;

/// Memory of error texts, and of a decoded value outside of containers (bytes).
const SLACK: usize = 16 * 1024;

fn never_beyond_the_limit<T: Encode + Decode<()>>(bytes: &[u8]) -> Result<T, CodecError> {
    let (result, peak) = peak_of(|| decode::<T>(bytes));
    let limit = 3 * claim_limit(bytes.len()) + SLACK;
    assert!(
        peak <= limit,
        "{peak} bytes claimed for {} bytes of {}",
        bytes.len(),
        std::any::type_name::<T>()
    );
    result
}

fn accepts_only_canonical<T: Encode + Decode<()>>(bytes: &[u8]) {
    if let Ok(value) = never_beyond_the_limit::<T>(bytes) {
        assert_eq!(encode(&value, usize::MAX).expect("re-encoding"), bytes, "two encodings of one value");
    }
}

fn every_type(bytes: &[u8]) {
    macro_rules! all { ($($name:ident),+ $(,)?) => { $(accepts_only_canonical::<$name>(bytes);)+ } }
    for_each_message!(all);
}

fn round_trip<T: Sample + Encode + Decode<()> + PartialEq + Debug>(content: &[u8]) {
    let value = T::sample(&mut Source::Bytes(content));
    let bytes = encode(&value, usize::MAX).expect("encodable");
    assert_eq!(never_beyond_the_limit::<T>(&bytes).as_ref(), Ok(&value));
}

proptest! {
    #[test]
    fn any_value_survives_the_wire(content in proptest::collection::vec(any::<u8>(), 0..4096)) {
        macro_rules! all { ($($name:ident),+ $(,)?) => { $(round_trip::<$name>(&content);)+ } }
        for_each_message!(all);
    }

    #[test]
    fn any_bytes_are_refused_or_canonical(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        every_type(&bytes);
    }

    #[test]
    fn damaged_messages_are_refused_or_canonical(
        content in proptest::collection::vec(any::<u8>(), 0..600),
        at in any::<prop::sample::Index>(),
        replacement in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xfb), Just(0xfc), Just(0xfd), Just(0xff)], 0..12),
        removed in 0usize..12,
    ) {
        fn damage<T: Sample + Encode + Decode<()>>(content: &[u8], at: prop::sample::Index, replacement: &[u8], removed: usize) {
            let mut bytes = encode(&T::sample(&mut Source::Bytes(content)), usize::MAX).expect("encodable");
            let at = at.index(bytes.len() + 1);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, replacement.iter().copied());
            accepts_only_canonical::<T>(&bytes);
        }
        macro_rules! all { ($($name:ident),+ $(,)?) => { $(damage::<$name>(&content, at, &replacement, removed);)+ } }
        for_each_message!(all);
    }

    #[test]
    fn hello_is_read_from_its_own_bytes_only(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(hello) = Hello::from_packet(&bytes) {
            prop_assert_eq!(&hello.to_packet()[..], &bytes[..]);
        }
    }
}

/// A list that claims `len` entries, in bincode's 9-byte form of a u64.
fn claimed(prefix: &[u8], len: u64, suffix: usize) -> Vec<u8> {
    let mut bytes = prefix.to_vec();
    bytes.push(0xfd);
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.resize(bytes.len() + suffix, 0);
    bytes
}

#[test]
fn lists_and_texts_that_claim_to_be_huge_are_refused_before_they_are_allocated() {
    // Started/Events{execution}: variant 1, 16 bytes of id, then the claimed list; Failed{message}: variant 1, then text.
    let mut events = vec![1];
    events.extend_from_slice(&[7; 16]);
    for len in [1 << 16, 1 << 20, 1 << 32, 1 << 60, u64::MAX / 2, u64::MAX] {
        for suffix in [0, 100, 10_000, 1_000_000] {
            never_beyond_the_limit::<FromWorker>(&claimed(&events, len, suffix)).expect_err("no such list");
            never_beyond_the_limit::<FromBroker>(&claimed(&[1], len, suffix)).expect_err("no such text");
        }
    }
}

#[test]
fn every_prefix_of_every_message_is_refused_without_a_panic() {
    fn cut<T: Variants + Encode + Decode<()>>() {
        for (_, value) in T::variants(&mut Source::Counting(0)) {
            let bytes = encode(&value, usize::MAX).expect("encodable");
            for len in 0..bytes.len() {
                assert!(never_beyond_the_limit::<T>(&bytes[..len]).is_err());
            }
            let mut longer = bytes.clone();
            longer.push(0);
            assert!(matches!(never_beyond_the_limit::<T>(&longer), Err(CodecError::Trailing(1))));
        }
    }
    macro_rules! all { ($($name:ident),+ $(,)?) => { $(cut::<$name>();)+ } }
    all!(
        ToBroker,
        FromBroker,
        ToKeeper,
        FromKeeper,
        ToZygote,
        FromZygote,
        FromFilesAgent,
        ToWorker,
        FromWorker,
        ClientFrame,
        ServerFrame
    );
}

#[test]
fn the_densest_honest_messages_are_within_the_limit() {
    // The messages with the fewest bytes per entry that a worker or broker may send must decode at every size.
    for count in [1, 10, 100, 1_000, 100_000, 500_000] {
        let strings = vec![String::new(); count];
        assert_eq!(
            never_beyond_the_limit::<Vec<String>>(&encode(&strings, usize::MAX).expect("fits")),
            Ok(strings)
        );
        let entries = FsReply::Entries(vec![DirEntry { name: "a".into(), kind: FileKind::File }; count]);
        assert_eq!(never_beyond_the_limit(&encode(&entries, HOST_MESSAGE_BYTES).expect("fits")), Ok(entries));
        let event = WorkerEvent {
            at_us: 0,
            payload: vm_system_protocol::model::EventPayload::Stdout { text: String::new() },
        };
        let events = FromWorker::Events {
            execution: vm_system_protocol::ids::ExecutionId::from_bytes([0; 16]),
            events: vec![event; count],
        };
        assert_eq!(never_beyond_the_limit(&encode(&events, WORKER_MESSAGE_BYTES).expect("fits")), Ok(events));
    }
}

#[test]
fn a_message_above_the_cap_is_not_sent() {
    let reply = FsReply::Bytes(vec![0; 100]);
    assert!(matches!(encode(&reply, 50), Err(CodecError::TooLarge { len: 102, cap: 50 })));
}

#[test]
fn non_canonical_forms_are_refused() {
    // 5 as a u64 in the long form, a bool of 7, an unknown variant, a text that is not UTF-8.
    let long = [vec![3, 0xfd], 5u64.to_le_bytes().to_vec()].concat();
    assert_eq!(decode::<ToWorker>(&long), Err(CodecError::NonCanonical));
    assert!(matches!(decode::<FsReply>(&[3, 7]), Err(CodecError::Undecodable(_))));
    assert!(matches!(decode::<FsReply>(&[200]), Err(CodecError::Undecodable(_))));
    assert!(matches!(decode::<FsRequest>(&[0, 2, 0xff, 0xfe]), Err(CodecError::Undecodable(_))));
}

#[test]
fn the_allocator_counts() {
    let ((), peak) = peak_of(|| drop(vec![1_u8; 1_000_000]));
    assert!((1_000_000..1_100_000).contains(&peak), "{peak}");
}
