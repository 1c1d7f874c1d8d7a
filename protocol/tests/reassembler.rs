//! Reassembly of packets: whatever a peer sends, a message is returned only as it was sent, and no more memory is held than
//! bytes have arrived.

use proptest::prelude::*;
use vm_system_protocol::limits::PACKET_BYTES;
use vm_system_protocol::packet::{HEADER_BYTES, Message, PIECE_BYTES, PacketError, Reassembler, packets};

const CAP: usize = 4 * PIECE_BYTES;

fn packet(seq: u64, total: u32, offset: u32, piece: &[u8]) -> Vec<u8> {
    [&seq.to_le_bytes()[..], &total.to_le_bytes(), &offset.to_le_bytes(), piece].concat()
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let edge = prop_oneof![
        1..200usize,
        Just(PIECE_BYTES - 1),
        Just(PIECE_BYTES),
        Just(PIECE_BYTES + 1),
        Just(2 * PIECE_BYTES),
        1..=CAP
    ];
    (edge, any::<u8>())
        .prop_map(|(len, first)| (0..len).map(|i| first.wrapping_add((i % 251) as u8)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_of_any_size_are_reassembled_unchanged(messages in proptest::collection::vec(content(), 1..6)) {
        let mut reassembler = Reassembler::new(CAP);
        for (index, bytes) in messages.into_iter().enumerate() {
            let seq = index as u64 + 1;
            let split: Vec<_> = packets(seq, &bytes).collect();
            prop_assert_eq!(split.len(), bytes.len().div_ceil(PIECE_BYTES));
            let (last, first) = split.split_last().expect("not empty");
            for packet in first {
                prop_assert!(packet.len() <= PACKET_BYTES);
                prop_assert_eq!(reassembler.push(packet), Ok(None));
                prop_assert!(reassembler.is_partial());
            }
            prop_assert_eq!(reassembler.push(last), Ok(Some(Message { seq, bytes })));
            prop_assert!(!reassembler.is_partial());
        }
    }

    #[test]
    fn any_packets_are_an_error_or_their_message(
        packets in proptest::collection::vec(
            (
                prop_oneof![0u64..4, any::<u64>()],
                prop_oneof![0u32..300, (CAP as u32 - 2)..(CAP as u32 + 2), any::<u32>()],
                prop_oneof![Just(0u32), Just(PIECE_BYTES as u32), 0u32..300, any::<u32>()],
                prop_oneof![0usize..300, Just(PIECE_BYTES), Just(PIECE_BYTES + 1)],
            ),
            0..12,
        ),
        any_sequence in any::<bool>(),
    ) {
        let mut reassembler = Reassembler::new(CAP);
        if any_sequence {
            reassembler.accept_any();
        }
        let mut expected = 1u64;
        let mut held = Vec::new();
        for (seq, total, offset, len) in packets {
            let piece = vec![seq as u8; len];
            match reassembler.push(&packet(seq, total, offset, &piece)) {
                // A channel is over after its first error.
                Err(_) => break,
                Ok(None) if any_sequence && held.is_empty() && offset != 0 => prop_assert!(!reassembler.is_partial()),
                Ok(None) => {
                    prop_assert_eq!(offset as usize, held.len());
                    held.extend_from_slice(&piece);
                    prop_assert!(held.len() < total as usize && total as usize <= CAP);
                    prop_assert!(reassembler.is_partial());
                }
                Ok(Some(message)) => {
                    held.extend_from_slice(&piece);
                    prop_assert_eq!(message.bytes.len(), total as usize);
                    prop_assert_eq!(&message.bytes, &held);
                    prop_assert!(any_sequence || message.seq == expected);
                    expected = expected.wrapping_add(1);
                    held.clear();
                }
            }
        }
    }

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = Reassembler::new(CAP).push(&bytes);
    }
}

#[test]
fn invalid_totals_are_refused_before_any_allocation() {
    for total in [0, CAP as u32 + 1, u32::MAX] {
        let result = Reassembler::new(CAP).push(&packet(1, total, 0, &[1]));
        assert_eq!(result, Err(PacketError::Total { total, cap: CAP }));
    }
}

#[test]
fn packets_without_content_or_above_the_size_are_refused() {
    for len in [0, 1, HEADER_BYTES, PACKET_BYTES + 1] {
        assert_eq!(Reassembler::new(CAP).push(&vec![0; len]), Err(PacketError::Size(len)));
    }
}

#[test]
fn skipped_repeated_and_backward_sequences_are_refused() {
    let mut reassembler = Reassembler::new(CAP);
    assert_eq!(reassembler.push(&packet(2, 1, 0, &[1])), Err(PacketError::Sequence { got: 2, expected: 1 }));
    assert!(matches!(reassembler.push(&packet(1, 1, 0, &[1])), Ok(Some(_))));
    for got in [0, 1, 3, u64::MAX] {
        assert_eq!(
            reassembler.push(&packet(got, 1, 0, &[1])),
            Err(PacketError::Sequence { got, expected: 2 })
        );
    }
}

#[test]
fn pieces_that_do_not_continue_the_message_are_refused() {
    let full = vec![1; PIECE_BYTES];
    let total = PIECE_BYTES as u32 * 2;
    for (seq, claimed, offset, len) in [
        (1, total, 0, PIECE_BYTES),                          // the same piece again
        (1, total, PIECE_BYTES as u32 + 1, 1),               // a hole
        (2, total, PIECE_BYTES as u32, PIECE_BYTES),         // another message's
        (1, total - 1, PIECE_BYTES as u32, PIECE_BYTES - 1), // another size
        (1, total, PIECE_BYTES as u32, 10),                  // short, and not the last
    ] {
        let mut reassembler = Reassembler::new(CAP);
        assert_eq!(reassembler.push(&packet(1, total, 0, &full)), Ok(None));
        let result = reassembler.push(&packet(seq, claimed, offset, &vec![1; len]));
        assert_eq!(result, Err(PacketError::Piece), "{seq} {claimed} {offset} {len}");
    }
    let beyond = Reassembler::new(CAP).push(&packet(1, 5, 0, &[0; 6]));
    assert_eq!(beyond, Err(PacketError::Piece), "more content than claimed");
    let short = Reassembler::new(CAP).push(&packet(1, 50, 0, &[0; 6]));
    assert_eq!(short, Err(PacketError::Piece), "a first piece that is short and not the last");
}

#[test]
fn after_an_adoption_a_cut_message_is_dropped_and_then_the_sequence_is_strict() {
    let mut reassembler = Reassembler::new(CAP);
    reassembler.accept_any();
    let long = vec![7; 2 * PIECE_BYTES];
    let second_half = packets(40, &long).nth(1).expect("two packets");
    assert_eq!(reassembler.push(&second_half), Ok(None), "the previous supervisor received its beginning");
    assert_eq!(reassembler.push(&packet(41, 1, 0, &[1])), Ok(Some(Message { seq: 41, bytes: vec![1] })));
    reassembler.expect(8);
    assert_eq!(
        reassembler.push(&packet(42, 1, 0, &[1])),
        Err(PacketError::Sequence { got: 42, expected: 8 })
    );
    assert!(matches!(reassembler.push(&packet(8, 1, 0, &[1])), Ok(Some(_))));
    assert!(matches!(reassembler.push(&packet(9, 1, 0, &[1])), Ok(Some(_))));
}
