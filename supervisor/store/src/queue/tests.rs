//! Order, fairness and bounds of the queue.

use super::{
    LANE_UNITS, Lane, Progress, QUANTUM, Queue, State, TURN_BYTES, Turn, UNIT_BYTES, UNITS, file_bytes,
};
use crate::Urgency;
use crate::admission::Admission;
use std::sync::Arc;
use std::time::Duration;
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, Checkpoint, Owner, Retention, StoreError, Write};

fn meta(bytes: usize) -> Batch {
    Write::KeyResponse { owner: vm_system_record::Owner::new("o"), key: String::new(), reply: vec![0; bytes] }
        .into()
}

fn queue() -> Queue {
    Queue::new(Arc::new(Admission::new(Retention::default())))
}

fn lane(n: usize) -> Lane {
    Lane::Owner(Owner::new(format!("owner-{n}")))
}

fn taken(queue: &Queue) -> Vec<usize> {
    let Turn::Work(jobs) = queue.take(Duration::ZERO, false) else { panic!("there is work") };
    jobs.into_iter().map(|job| job.content_bytes).collect()
}

#[tokio::test]
async fn full_lane_makes_its_next_caller_wait_until_a_turn_is_done_and_no_other_lane() {
    let queue = queue();
    let huge = LANE_UNITS as usize * UNIT_BYTES;
    let _first = queue.push(lane(1), meta(huge), Urgency::Now).await.expect("the store accepts it");
    let second = queue.push(lane(1), meta(huge), Urgency::Now);
    tokio::pin!(second);
    assert!(futures_poll(&mut second).is_none());
    for n in 1..4 {
        let other = queue.push(lane(n), meta(1), Urgency::Now);
        tokio::pin!(other);
        assert!(futures_poll(&mut other).is_some(), "a small batch is admitted");
    }
    assert!(futures_poll(&mut second).is_none());
    let Turn::Work(jobs) = queue.take(Duration::ZERO, false) else { panic!("there is work") };
    for job in jobs {
        job.finish(Err(StoreError::Closed));
    }
    second.await.expect("the store accepts it again");
}

#[tokio::test]
async fn full_queue_makes_large_batches_of_all_wait_and_no_small_one() {
    let queue = queue();
    let huge = LANE_UNITS as usize * UNIT_BYTES;
    for n in 0..UNITS / LANE_UNITS {
        let full = queue.push(lane(n as usize), meta(huge - UNIT_BYTES), Urgency::Now);
        full.await.expect("the store accepts it");
    }
    let large = queue.push(lane(9), meta(2 << 20), Urgency::Now);
    tokio::pin!(large);
    assert!(futures_poll(&mut large).is_none());
    let small = queue.push(lane(9), meta(1), Urgency::Now);
    tokio::pin!(small);
    assert!(futures_poll(&mut small).is_some());
}

#[tokio::test]
async fn batch_as_large_as_the_queue_leaves_capacity_to_other_lanes() {
    let queue = queue();
    let full = UNITS as usize * UNIT_BYTES;
    let _whole = queue.push(lane(1), meta(full), Urgency::Now).await.expect("the store accepts it");
    let large = queue.push(lane(2), meta(2 << 20), Urgency::Now);
    tokio::pin!(large);
    assert!(futures_poll(&mut large).is_some());
}

#[tokio::test]
async fn an_owner_that_queues_much_leaves_the_others_their_part_of_every_turn() {
    let queue = queue();
    let part = QUANTUM / 2;
    for _ in 0..100 {
        let _much = queue.push(lane(1), meta(part), Urgency::Now).await.expect("the store accepts it");
    }
    for (n, bytes) in [(2, 7), (3, TURN_BYTES / 2), (4, 9)] {
        let _little = queue.push(lane(n), meta(bytes), Urgency::Now).await.expect("the store accepts it");
    }
    let first = taken(&queue);
    assert!(
        first.iter().sum::<usize>() < TURN_BYTES + QUANTUM && first.contains(&7) && first.contains(&9),
        "{first:?}"
    );
    let second = taken(&queue);
    assert!(first.iter().chain(&second).any(|bytes| *bytes == TURN_BYTES / 2), "it has saved enough for it");
    let of_first = |turn: &[usize]| turn.iter().filter(|bytes| **bytes == part).count();
    assert!(of_first(&first) >= 5 && of_first(&second) >= 5, "{first:?} {second:?}");
}

#[tokio::test]
async fn batches_of_a_lane_keep_their_order_and_a_huge_one_is_handed_out() {
    let queue = queue();
    let sizes = [5, 3 * TURN_BYTES, 4, QUANTUM, 1];
    for bytes in sizes {
        let _ticket = queue.push(lane(1), meta(bytes), Urgency::Now).await.expect("the store accepts it");
    }
    let mut seen = Vec::new();
    while queue.len() > 0 {
        seen.extend(taken(&queue));
    }
    assert_eq!(seen, sizes);
    assert!(matches!(queue.take(Duration::ZERO, false), Turn::Idle));
}

fn execution(n: u8) -> ExecutionId {
    ExecutionId::from_bytes([n; 16])
}

fn state(bytes: usize) -> Batch {
    state_of(1, bytes)
}

fn state_of(n: u8, bytes: usize) -> Batch {
    let pages = (0..bytes >> 10).map(|page| (page as u64, Some(vec![0; 1 << 10]))).collect();
    let execution = execution(n);
    let (at, cause) = (vm_system_protocol::time::Timestamp(0), "pause".to_owned());
    let checkpoint = Checkpoint { execution, seq: 2, at, cause, pages, unweighed: None, written: 0 };
    Write::Checkpoint(Box::new(checkpoint)).into()
}

#[tokio::test]
async fn large_checkpoint_is_written_in_pieces_within_the_turns_of_others_and_before_what_follows_it() {
    let queue = queue();
    let large = state(8 * TURN_BYTES);
    let cost = file_bytes(&large) as usize;
    let _large = queue.push(lane(1), large, Urgency::Now).await.expect("the store accepts it");
    let follower = Write::CheckpointsTrim { execution: execution(1) };
    let _behind = queue.push(lane(1), follower.into(), Urgency::Now).await.expect("the store accepts it");
    let (mut written, mut turns) = (0, 0);
    loop {
        let _other = queue.push(lane(2), meta(7), Urgency::Now).await.expect("the store accepts it");
        let Turn::Work(jobs) = queue.take(Duration::ZERO, false) else { panic!("there is work") };
        assert!(jobs.iter().any(|job| job.content_bytes == 7), "nobody waits for more than a turn");
        turns += 1;
        let mut ended = false;
        for job in jobs {
            assert!(job.turn_bytes() <= TURN_BYTES + QUANTUM, "{}", job.turn_bytes());
            ended |= job.content_bytes == 256;
            match job.piece() {
                Some(bytes) => {
                    assert!(!ended, "it keeps its place");
                    let progress = Progress { bytes: job.progress.bytes + bytes, ..job.progress.clone() };
                    written += bytes;
                    queue.put_back(job, progress);
                }
                None => drop(job),
            }
        }
        if ended {
            break;
        }
    }
    let least = 2 * cost / TURN_BYTES - 2;
    assert!(
        (least..least + least / 4).contains(&turns) && written > cost - 2 * TURN_BYTES,
        "{turns} turns, {written} of {cost} bytes"
    );
}

#[tokio::test]
async fn small_batches_pass_the_large_checkpoints_of_other_executions_of_their_owner_in_their_order() {
    for small_only in [false, true] {
        let queue = queue();
        for n in [1, 2] {
            let large = state_of(n, TURN_BYTES + QUANTUM);
            let _large = queue.push(lane(1), large, Urgency::Now).await.expect("the store accepts it");
        }
        let delete = |n| Batch::from(Write::RunDelete { id: execution(n) });
        let trim = |n| Batch::from(Write::CheckpointsTrim { execution: execution(n) });
        for batch in [delete(3), answer(4), delete(2), meta(6), trim(2), answer(1), answer(5)] {
            let _small = queue.push(lane(1), batch, Urgency::Now).await.expect("the store accepts it");
        }
        let Turn::Work(jobs) = queue.take(Duration::ZERO, small_only) else { panic!("there is work") };
        assert!(jobs.iter().all(|job| !job.in_pieces), "pieces are in the next commit");
        let passed: Vec<_> = jobs.iter().map(|job| job.batch.subjects()).collect();
        let of = |n| Some(vec![execution(n)]);
        assert_eq!(
            passed,
            [of(3), of(4), Some(Vec::new()), of(5)],
            "those about an execution with a checkpoint come behind it, and nobody waits for them"
        );
        for job in jobs {
            job.finish(Err(StoreError::Closed));
        }
        let behind = queue.take(Duration::ZERO, small_only);
        let pieces = matches!(behind, Turn::Work(jobs) if jobs.iter().all(|job| job.in_pieces));
        assert_eq!(pieces, !small_only);
    }
}

/// The end of a task of an execution.
fn answer(n: u8) -> Batch {
    let (id, at) = (TaskId::from_bytes([n; 16]), Timestamp(0));
    let outcome = vm_system_record::ItemOutcome::Answered;
    Write::ItemEnd { execution: execution(n), id, outcome, answer: None, at, taken_at: None }.into()
}

#[tokio::test]
async fn batch_that_is_larger_than_a_quantum_passes_a_checkpoint_within_a_few_turns() {
    let queue = queue();
    let _large = queue.push(lane(1), state(64 * TURN_BYTES), Urgency::Now).await.expect("it is accepted");
    let _step = queue.push(lane(1), state_of(2, TURN_BYTES / 8), Urgency::Now).await.expect("it is accepted");
    let mut turns = 0;
    loop {
        turns += 1;
        assert!(turns < 4, "it waits for its part of a lane that has more to write");
        let Turn::Work(jobs) = queue.take(Duration::ZERO, false) else { panic!("there is work") };
        if jobs.iter().any(|job| !job.in_pieces) {
            break;
        }
        for job in jobs {
            let progress = Progress { bytes: job.progress.bytes + job.turn_bytes(), ..job.progress.clone() };
            queue.put_back(job, progress);
        }
    }
}

#[tokio::test]
async fn pieces_wait_for_one_commit_of_whole_batches_and_not_for_more() {
    let queue = queue();
    let _large = queue.push(lane(1), state(8 * TURN_BYTES), Urgency::Now).await.expect("it is accepted");
    let mut has_pieces = Vec::new();
    for _ in 0..6 {
        let _small = queue.push(lane(2), meta(7), Urgency::Now).await.expect("it is accepted");
        let Turn::Work(jobs) = queue.take(Duration::ZERO, false) else { panic!("there is work") };
        assert!(jobs.iter().any(|job| job.content_bytes == 7), "a small batch waits for one commit");
        has_pieces.push(jobs.iter().any(|job| job.in_pieces));
        for job in jobs {
            if job.piece().is_some() {
                let progress =
                    Progress { bytes: job.progress.bytes + job.turn_bytes(), ..job.progress.clone() };
                queue.put_back(job, progress);
            }
        }
    }
    assert_eq!(has_pieces, [false, true, false, true, false, true]);
}

#[tokio::test]
async fn while_the_log_is_long_small_batches_are_written_and_large_ones_wait() {
    let queue = queue();
    let _large =
        queue.push(lane(1), state(2 * TURN_BYTES), Urgency::Now).await.expect("the store accepts it");
    assert!(matches!(queue.take(Duration::ZERO, true), Turn::Idle));
    let _small = queue.push(lane(2), meta(7), Urgency::Now).await.expect("the store accepts it");
    let Turn::Work(jobs) = queue.take(Duration::ZERO, true) else { panic!("there is work") };
    assert_eq!(jobs.len(), 1);
    queue.close();
    assert!(matches!(queue.take(Duration::ZERO, true), Turn::Work(jobs) if jobs.len() == 1), "the rest");
}

#[tokio::test]
async fn lanes_of_owners_that_come_once_are_forgotten() {
    let queue = queue();
    for n in 0..10_000 {
        let _ticket = queue.push(lane(n), meta(1), Urgency::Now).await.expect("the store accepts it");
        drop(taken(&queue));
    }
    assert!(queue.state().gates.len() < 100, "{}", queue.state().gates.len());
}

#[tokio::test]
async fn lazy_batch_leaves_with_the_next_urgent_one() {
    let queue = queue();
    let _lazy = queue.push(Lane::System, meta(1), Urgency::Lazy).await.expect("the store accepts it");
    let _urgent = queue.push(Lane::System, meta(2), Urgency::Now).await.expect("the store accepts it");
    let Turn::Work(jobs) = queue.take(Duration::ZERO, false) else { panic!("there is work") };
    assert_eq!(jobs.len(), 2);
    assert!(matches!(queue.take(Duration::ZERO, false), Turn::Idle));
}

#[tokio::test]
async fn lone_lazy_batch_leaves_by_itself() {
    let queue = queue();
    let _lazy = queue.push(Lane::System, meta(1), Urgency::Lazy).await.expect("the store accepts it");
    assert!(matches!(queue.take(Duration::ZERO, false), Turn::Work(jobs) if jobs.len() == 1));
}

#[test]
fn lazy_batch_wakes_only_a_writer_that_would_sleep_too_long() {
    let mut state = State::default();
    assert!(!state.wakes_writer(Urgency::Lazy), "a writer at work scanned before it sleeps");
    let until = state.lazy_until.expect("it has a latest time");
    state.sleeps_until = Some(until);
    assert!(!state.wakes_writer(Urgency::Lazy));
    state.sleeps_until = Some(until + Duration::from_millis(1));
    assert!(state.wakes_writer(Urgency::Lazy));
    assert!(!state.wakes_writer(Urgency::Lazy), "it has been woken");
}

#[test]
fn urgent_batch_wakes_a_sleeping_writer_once() {
    let mut state = State { sleeps_until: Some(std::time::Instant::now()), ..State::default() };
    assert!(state.wakes_writer(Urgency::Now));
    assert!(!state.wakes_writer(Urgency::Now));
    assert!(state.urgent);
}

#[tokio::test]
async fn closed_queue_returns_its_rest_and_refuses_more() {
    let queue = queue();
    let _ticket = queue.push(Lane::System, meta(1), Urgency::Lazy).await.expect("the store accepts it");
    queue.close();
    assert_eq!(queue.push(Lane::System, meta(1), Urgency::Now).await.map(|_| ()), Err(StoreError::Closed));
    assert!(matches!(queue.take(Duration::from_mins(1), false), Turn::Work(jobs) if jobs.len() == 1));
    assert!(matches!(queue.take(Duration::from_mins(1), false), Turn::Closed));
}

#[tokio::test]
async fn abandoned_queue_fails_the_batches_that_wait() {
    let queue = queue();
    let ticket = queue.push(Lane::System, meta(1), Urgency::Now).await.expect("the store accepts it");
    queue.abandon();
    assert_eq!(ticket.await, Err(StoreError::Closed));
}

fn futures_poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}
