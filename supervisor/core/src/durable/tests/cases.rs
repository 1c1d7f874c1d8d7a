//! Tests of single cases, named by behaviour. The invariants of all histories are checked by the histories.

use super::*;
use crate::durable::answers::DEFERRED;
use crate::durable::machine::{COMMIT_MS, EXITS_MAX, HOLD_MS};
use vm_system_protocol::limits::INTERRUPT_GRACE_MS;

/// A world with a worker that runs and has sent nothing yet.
fn running() -> World {
    let mut world = World::new(1);
    world.begin();
    world.spawned();
    world.sent.clear();
    world
}

/// Delivers all messages of the worker to the machine.
fn on_messages(world: &mut World) {
    while let Some(message) = world.sent.pop_front() {
        world.step(DurableInput::Message(message));
    }
}

/// The store accepts every batch.
fn store_all(world: &mut World) {
    while let Some((id, batch)) = world.writing.pop_front() {
        world.rows.apply(batch);
        world.step(DurableInput::Stored(id));
    }
}

/// A world with a warm worker at its first task.
fn warm() -> World {
    let mut world = World::new(1);
    world.begin();
    world.spawned();
    on_messages(&mut world);
    store_all(&mut world);
    world
}

/// Number of segments until the program is ended, and the error code.
fn turns_until_its_end(world: &mut World, message: &FromDurable) -> (u32, String) {
    for turn in 1..20_000 {
        world.now.cpu_us += 900;
        world.now.mono_ms += 1;
        world.step(DurableInput::Message(message.clone()));
        let record = world.machine.as_ref().expect("a machine").record();
        if let Some(error) = &record.error {
            return (turn, error.code.clone());
        }
        if let Some(called) = world.calling.take() {
            world.step(called);
        }
        world.sent.clear();
    }
    panic!("it never ends");
}

#[test]
fn a_loop_of_short_segments_ends_when_its_time_is_used_up() {
    let limits = Limits::default();
    let call = FromDurable::Call(HostCall { name: "readFile".to_owned(), args: json("[]") });
    let options = Some(json(r#"{"nope":1}"#));
    let stop = |cause| stop_at(cause);
    let wrong = stop(Cause::Pause { prompt: "x".to_owned(), options });
    for message in [call, FromDurable::Checkpoint(Box::new(wrong))] {
        let (turns, code) = turns_until_its_end(&mut running(), &message);
        assert_eq!(code, "CPU_LIMIT", "{message:?}");
        assert_eq!(turns, (limits.cpu_ms * 1_000).div_ceil(900), "{message:?}");
        let mut slow = running();
        slow.now.cpu_us = 0;
        slow.machine.as_mut().expect("a machine").spec.limits.cpu_ms = u32::MAX;
        slow.machine.as_mut().expect("a machine").spec.limits.wall_ms = 100;
        assert_eq!(turns_until_its_end(&mut slow, &message), (100, "WALL_LIMIT".to_owned()));
    }
}

#[test]
fn a_refused_change_of_a_variable_is_reported_at_once() {
    let (token, other) = (RunToken::new(100), RunToken::new(101));
    let refusal = |input: Option<DurableInput>| {
        let mut world = warm();
        world.step(set(token));
        if input.is_none() {
            world.now.mono_ms += 60_000;
        }
        world.step(input.unwrap_or(DurableInput::Tick));
        world.refused.into_iter().find(|(asking, _)| *asking == token).map(|(_, why)| why)
    };
    assert!(matches!(refusal(None), Some(DurableRefusal::NoWorker(_))), "its worker hangs");
    assert_eq!(refusal(Some(DurableInput::Stop)), Some(DurableRefusal::Stopping));
    assert_eq!(
        refusal(Some(DurableInput::Cancel { token: other, with: Vec::new() })),
        Some(DurableRefusal::Ended)
    );
}

#[test]
fn requests_above_those_that_may_wait_for_the_store_are_refused() {
    let mut world = warm();
    world.step(set(RunToken::new(100)));
    for token in 200..200 + DEFERRED as u64 {
        world.step(DurableInput::Wake { token: Some(RunToken::new(token)) });
    }
    assert!(world.refused.is_empty(), "so many may wait");
    world.step(DurableInput::Wake { token: Some(RunToken::new(300)) });
    assert_eq!(world.refused, [(RunToken::new(300), DurableRefusal::Busy)]);
    world.step(DurableInput::Cancel { token: RunToken::new(301), with: Vec::new() });
    assert!(
        !world.refused.iter().any(|(token, _)| *token == RunToken::new(301)),
        "it can be cancelled all the same"
    );
}

#[test]
fn worker_that_sends_more_than_may_be_stored_is_killed() {
    use vm_system_protocol::durable::{MESSAGE_BYTES, PROMPT_BYTES, RESULT_BYTES};
    let long = |bytes: usize| "x".repeat(bytes + 1);
    for cause in [
        Cause::Pause { prompt: long(PROMPT_BYTES), options: None },
        Cause::Ended(End::Ok { result: json(&format!("\"{}\"", long(RESULT_BYTES))) }),
        Cause::Ended(End::Threw { message: long(MESSAGE_BYTES), stack: String::new(), full_bytes: None }),
        Cause::Ended(End::Corrupt(long(MESSAGE_BYTES))),
    ] {
        let mut world = running();
        let stop = stop_at(cause);
        world.step(DurableInput::Message(FromDurable::Checkpoint(Box::new(stop))));
        assert!(world.dying && world.writing.is_empty(), "it counts as a protocol violation");
    }
}

#[test]
fn program_with_repeated_worker_exits_is_given_up() {
    let mut world = World::new(1);
    world.begin();
    world.each_ends(|| DurableInput::Exited(WorkerExitStatus::Signaled(11)));
    let record = world.rows.record.expect("a row");
    let error = record.error.expect("an error");
    assert_eq!((record.status, error.code.as_str()), (ExecutionStatus::Error, "WORKER_DIED"));
    assert_eq!(error.reason.as_deref(), Some("signal(SIGSEGV)"));
}

#[test]
fn a_program_whose_workers_end_because_memory_is_short_goes_on() {
    let mut world = World::new(1);
    world.begin();
    for _ in 0..3 * EXITS_MAX {
        while world.worker.is_none() {
            world.go(false);
        }
        world.exited(WorkerExitStatus::MemoryShort);
    }
    for _ in 0..10_000 {
        world.go(false);
    }
    let status = world.rows.record.expect("a row").status;
    assert_ne!(status, ExecutionStatus::Error);
}

#[test]
fn worker_that_sends_out_of_turn_is_killed() {
    let mut world = World::new(1);
    world.begin();
    while world.worker.is_none() {
        world.go(false);
    }
    world.sent.clear();
    world.step(DurableInput::Message(FromDurable::Compiled { code: Vec::new(), typescript: false }));
    assert!(world.dying);
}

#[test]
fn an_answer_that_comes_while_the_last_worker_ends_is_stored_with_the_checkpoint_it_leads_to() {
    let mut world = warm();
    world.step(DurableInput::Pressure);
    assert!(world.dying, "another execution needs the worker");
    let token = world.token();
    world.step(submit(token, "yes"));
    assert!(world.writing.is_empty() && world.loading.is_none());
    world.exited(WorkerExitStatus::Signaled(9));
    world.spawned();
    on_messages(&mut world);
    let batches: Vec<Vec<Write>> = world.writing.drain(..).map(|(_, batch)| batch).collect();
    let [batch] = &batches[..] else { panic!("{batches:?}") };
    let has = |wanted: fn(&Write) -> bool| batch.iter().any(wanted);
    assert!(has(|write| matches!(write, Write::ItemEnd { .. })), "{batch:?}");
    assert!(has(|write| matches!(write, Write::Checkpoint(_))), "{batch:?}");
}

/// A world without a worker at its first task.
fn cold() -> World {
    let mut world = warm();
    world.step(DurableInput::Pressure);
    world.exited(WorkerExitStatus::Signaled(9));
    world
}

#[test]
fn an_answer_to_a_state_that_no_worker_can_restore_is_not_stored() {
    for (wait, exits) in [(true, false), (false, false), (true, true)] {
        let mut world = cold();
        let token = world.token();
        let answer = SubmittedAnswer::Unchecked(GivenAnswer::Typed("yes".to_owned()));
        world.step(DurableInput::Submit { token, task: None, answer, with: Vec::new(), wait });
        assert!(world.writing.is_empty(), "the state was not restored yet");
        if exits {
            world.each_ends(|| DurableInput::Exited(WorkerExitStatus::Signaled(11)));
        } else {
            world.loading = None;
            world.step(DurableInput::Loaded { small: wait });
            world.now.mono_ms += 10 * COMMIT_MS;
            world.step(DurableInput::Tick);
            assert!(world.writing.is_empty(), "it still was not");
            world.step(DurableInput::Message(FromDurable::Refused { why: "the state: invalid".to_owned() }));
            store_all(&mut world);
        }
        let record = world.rows.record.as_ref().expect("a row");
        let code = record.error.as_ref().expect("an error").code.as_str();
        assert_eq!(
            (record.status, code),
            (ExecutionStatus::Error, if exits { "WORKER_DIED" } else { "STATE_DAMAGED" })
        );
        let task = world.rows.tasks.last().expect("a task");
        assert_eq!((task.outcome, task.answer.as_deref()), (Some(ItemOutcome::Withdrawn), None));
    }
}

#[test]
fn an_answer_that_nobody_waits_out_is_stored_as_soon_as_its_state_is_restored() {
    let mut world = cold();
    let token = world.token();
    let answer = SubmittedAnswer::Unchecked(GivenAnswer::Typed("yes".to_owned()));
    world.step(DurableInput::Submit { token, task: None, answer, with: Vec::new(), wait: false });
    world.loading = None;
    world.step(DurableInput::Loaded { small: true });
    assert!(world.writing.is_empty());
    world.step(DurableInput::Message(FromDurable::Restored));
    let (_, batch) = world.writing.front().expect("a batch");
    assert!(batch.iter().any(|write| matches!(write, Write::ItemEnd { outcome: ItemOutcome::Answered, .. })));
}

#[test]
fn an_answer_is_stored_although_no_worker_can_be_started_for_long() {
    let mut world = cold();
    let token = world.token();
    let answer = SubmittedAnswer::Unchecked(GivenAnswer::Typed("yes".to_owned()));
    world.step(DurableInput::Submit { token, task: None, answer, with: Vec::new(), wait: false });
    assert!(world.writing.is_empty());
    world.now.mono_ms += HOLD_MS;
    world.step(DurableInput::Tick);
    let (_, batch) = world.writing.front().expect("a batch");
    assert!(batch.iter().any(|write| matches!(write, Write::ItemEnd { outcome: ItemOutcome::Answered, .. })));
}

#[test]
fn a_state_that_was_found_invalid_ends_with_a_code_of_its_own() {
    let mut world = running();
    let stop = Stop {
        cause: Cause::Ended(End::Corrupt("scope slot".to_owned())),
        cpu_us: 1,
        heap_bytes: 1,
        applied: 0,
    };
    world.step(DurableInput::Message(FromDurable::Checkpoint(Box::new(stop))));
    let error = world.machine.as_ref().expect("a machine").record().error.clone().expect("an error");
    assert_eq!(error.code, "STATE_DAMAGED");
    assert_eq!(error.message, "the program cannot continue: its state is invalid (scope slot)");
}

#[test]
fn worker_that_is_not_kept_warm_exits_while_its_checkpoint_is_being_stored() {
    let mut world = World::new(1);
    world.warm_ms = 0;
    world.begin();
    world.spawned();
    on_messages(&mut world);
    assert!(world.dying && !world.writing.is_empty());
    world.exited(WorkerExitStatus::Signaled(9));
    store_all(&mut world);
    assert!(world.machine.as_ref().is_some_and(DurableMachine::is_released), "{:?}", world.machine);
}

#[test]
fn state_that_is_too_large_ends_its_execution_and_the_rest_of_the_batch_is_stored() {
    let mut world = warm();
    world.machine.as_mut().expect("a machine").spec.limits.max_state_mb = 1;
    let kept = world.rows.checkpoints.len();
    let token = world.token();
    world.step(submit(token, "yes"));
    let page = StatePage { number: 1, bytes: vec![1; 1 << 20] };
    world.sent.push_front(FromDurable::Pages(vec![page]));
    on_messages(&mut world);
    let (write, batch) = world.writing.pop_front().expect("the step");
    let bound = |write: &Write| matches!(write, Write::StateBound { most, .. } if *most == 18 << 20);
    assert!(batch.iter().any(bound), "twice max_state_mb and 16 MiB: {batch:?}");
    let why = Unstored::TooLarge;
    world.step(DurableInput::NotStored { write, why, error: "the checkpoint is too large".to_owned() });
    store_all(&mut world);
    world.exited(WorkerExitStatus::Signaled(9));
    let machine = world.machine.as_ref().expect("a machine");
    assert!(machine.is_released(), "no caller waits: {machine:?}");
    let record = world.rows.record.expect("a row");
    let error = record.error.expect("an error");
    assert_eq!((record.status, error.code.as_str()), (ExecutionStatus::Error, "MEMORY_LIMIT"));
    assert_eq!(world.rows.tasks.len(), 1, "the task of that state was never stored");
    assert_eq!(world.rows.tasks[0].outcome, Some(ItemOutcome::Answered));
    assert_eq!(record.metrics.events, world.rows.events.len() as u64);
    assert_eq!(world.rows.checkpoints.len(), kept);
}

/// A program that got an answer and waits for the commit of its step; that batch, and how many checkpoints it had before.
fn writes_a_step() -> (World, WriteId, usize) {
    let mut world = warm();
    let kept = world.rows.checkpoints.len();
    let token = world.token();
    world.step(submit(token, "yes"));
    on_messages(&mut world);
    let (write, _) = world.writing.pop_front().expect("the step");
    (world, write, kept)
}

#[test]
fn a_state_that_a_limit_of_the_store_refuses_ends_its_execution_and_names_the_limit() {
    for limit in [StorageLimit::OwnerQuota, StorageLimit::WriteRate, StorageLimit::DatabaseQuota] {
        let (mut world, write, kept) = writes_a_step();
        let why = Unstored::Limit(limit);
        world.step(DurableInput::NotStored { write, why, error: limit.to_string() });
        store_all(&mut world);
        world.exited(WorkerExitStatus::Signaled(9));
        assert!(world.machine.as_ref().is_some_and(DurableMachine::is_released), "{:?}", world.machine);
        let record = world.rows.record.expect("a row");
        let error = record.error.expect("an error");
        assert_eq!((record.status, error.code.as_str()), (ExecutionStatus::Error, "STORAGE_LIMIT"));
        assert!(error.message.contains(limit.setting()), "{}", error.message);
        assert_eq!(error.reason, Some(format!("limit({})", limit.setting())));
        assert_eq!(world.rows.tasks[0].outcome, Some(ItemOutcome::Answered), "the answer was taken");
        assert_eq!((world.rows.tasks.len(), world.rows.checkpoints.len()), (1, kept));
    }
}

#[test]
fn an_execution_is_ended_without_the_state_that_the_store_does_not_have_yet() {
    let (mut world, write, kept) = writes_a_step();
    assert_eq!(world.machine.as_ref().expect("a machine").withdrawable(), Some(write));
    let why = Unstored::Withdrawn;
    world.step(DurableInput::NotStored { write, why, error: String::new() });
    let token = world.token();
    world.step(DurableInput::Cancel { token, with: Vec::new() });
    store_all(&mut world);
    world.exited(WorkerExitStatus::Signaled(9));
    let machine = world.machine.as_ref().expect("a machine");
    assert!(machine.is_released() && machine.withdrawable().is_none(), "{machine:?}");
    let record = world.rows.record.expect("a row");
    assert_eq!((record.status, world.rows.checkpoints.len()), (ExecutionStatus::Cancelled, kept));
    assert_eq!(world.rows.tasks[0].outcome, Some(ItemOutcome::Answered));
}

#[test]
fn a_large_first_state_is_stored_after_the_beginning_of_its_execution() {
    for (bytes, batches) in [(1 << 10, 1), (2 << 20, 2)] {
        let mut world = World::new(1);
        world.begin();
        // Nobody waits for the beginning alone.
        world.machine.as_mut().expect("a machine").requests.early.clear();
        world.spawned();
        for _ in 0..2 {
            let message = world.sent.pop_front().expect("its beginning");
            world.step(DurableInput::Message(message));
        }
        world.sent.push_front(FromDurable::Pages(vec![StatePage { number: 1, bytes: vec![1; bytes] }]));
        on_messages(&mut world);
        let mut causes = Vec::new();
        while let Some((id, batch)) = world.writing.pop_front() {
            let begins = batch.iter().any(|write| matches!(write, Write::ExecutionStarted { .. }));
            assert_eq!(begins, causes.is_empty(), "once, and first");
            causes.extend(batch.iter().find_map(|write| match write {
                Write::Checkpoint(point) => Some(point.cause.clone()),
                _ => None,
            }));
            world.rows.apply(batch);
            world.step(DurableInput::Stored(id));
        }
        let expected = ["start".to_owned(), "pause".to_owned()];
        assert_eq!(causes, expected[2 - batches..], "{bytes}");
        assert_eq!(world.rows.tasks.len(), 1);
    }
}

#[test]
fn the_end_of_a_program_stores_no_state_and_drops_what_was_stored_behind_its_last_pause() {
    let trims = |batch: &[Write]| batch.iter().any(|write| matches!(write, Write::CheckpointsTrim { .. }));
    let states = |batch: &[Write]| batch.iter().any(|write| matches!(write, Write::Checkpoint(_)));
    let page = || StatePage { number: 0, bytes: vec![1; 100] };
    let end = || {
        let stop = stop_at(Cause::Ended(End::Ok { result: json("1") }));
        FromDurable::SmallCheckpoint { pages: vec![page()], stop: Box::new(stop) }
    };
    // An execution that never paused has nothing in the store, or loses it.
    for stored in [false, true] {
        let mut world = running();
        if stored {
            let stop = stop_at(Cause::Steps);
            world.step(DurableInput::Message(FromDurable::SmallCheckpoint {
                pages: vec![page()],
                stop: Box::new(stop),
            }));
            store_all(&mut world);
            world.sent.clear();
        }
        world.step(DurableInput::Message(end()));
        let batch = &world.writing.front().expect("the end").1;
        assert_eq!((states(batch), trims(batch)), (false, stored), "{batch:?}");
        store_all(&mut world);
        assert!(world.is_over() && world.rows.checkpoints.is_empty());
    }
    // One that paused can be taken back there.
    let mut world = warm();
    let token = world.token();
    world.step(submit(token, "yes"));
    world.sent.clear();
    world.step(DurableInput::Message(end()));
    let batch = &world.writing.front().expect("the end").1;
    assert_eq!((states(batch), trims(batch)), (false, false), "{batch:?}");
}

#[test]
fn state_is_measured_after_the_bytes_of_the_largest_state_also_by_a_new_machine() {
    let weighed = |found: Option<u64>| {
        let mut world = warm();
        let mut stored = world.rows.found().expect("it waits");
        stored.checkpoint.as_mut().expect("of a pause").unweighed = found;
        stored.record.status = ExecutionStatus::Waiting;
        let mut machine = DurableMachine::from_stored(world.spec(), stored);
        machine.spec.limits.max_state_mb = 1;
        machine.gathered.pages = BTreeMap::from([(0, vec![0; 64 << 10])]);
        machine.add_checkpoint("steps", world.now);
        world.machine = Some(machine);
        let writes = &world.machine.as_ref().expect("just put there").writes.unwritten;
        let kept = writes.iter().find_map(|write| match write {
            Write::Checkpoint(point) => point.unweighed,
            _ => None,
        });
        (writes.iter().any(|write| matches!(write, Write::StateBound { .. })), kept)
    };
    let step = 64 + (64 << 10);
    assert_eq!(weighed(Some(0)), (false, Some(step)));
    assert_eq!(weighed(Some(1 << 19)), (false, Some((1 << 19) + step)));
    assert_eq!(weighed(Some(1 << 20)), (true, Some(0)));
}

#[test]
fn impossible_pages_and_too_many_pages_are_refused() {
    let on_worker_message = |pages: Vec<StatePage>| {
        let mut world = running();
        world.machine.as_mut().expect("a machine").spec.limits.max_state_mb = 1;
        world.step(DurableInput::Message(FromDurable::Pages(pages)));
        !world.dying
    };
    let page = |number, bytes| StatePage { number, bytes: vec![0; bytes] };
    let last = [1 << 26, 1 << 61, (1 << 61) + (1 << 40) - 1, 1 << 62, (1 << 62) + (1 << 56) - 1];
    assert!(on_worker_message(last.map(|number| page(number, 1)).into()));
    for number in
        [(1 << 26) + 1, (1 << 61) - 1, (1 << 61) + (1 << 40), (1 << 62) - 1, (1 << 62) + (1 << 56), u64::MAX]
    {
        assert!(!on_worker_message(vec![page(number, 1)]), "{number}");
    }
    assert!(
        on_worker_message((0..40).map(|_| page(1, 1 << 20)).collect()),
        "one takes the position of the other"
    );
    assert!(!on_worker_message((0..40).map(|number| page(number, 1 << 20)).collect()));
    assert!(
        !on_worker_message((0..=18 << 14).map(|number| page(number, 0)).collect()),
        "empty ones count, too"
    );
}

fn set(token: RunToken) -> DurableInput {
    DurableInput::Set { token, frame: 0, name: "x".to_owned(), value: json("1") }
}

fn submit(token: RunToken, text: &str) -> DurableInput {
    let answer = SubmittedAnswer::Unchecked(GivenAnswer::Typed(text.to_owned()));
    DurableInput::Submit { token, task: None, answer, with: Vec::new(), wait: true }
}

#[test]
fn answer_that_arrives_while_a_variable_is_changed_is_used_after_that() {
    let mut world = warm();
    world.step(set(RunToken::new(100)));
    world.step(submit(RunToken::new(101), "yes"));
    assert!(world.refused.is_empty(), "{:?}", world.refused);
    world.step(DurableInput::Message(FromDurable::NotSet));
    assert_eq!(world.refused, [(RunToken::new(100), DurableRefusal::NoVariable)]);
    assert_eq!(world.worker.as_ref().expect("a worker").answers, ["yes"]);
    // The same if the worker exits during the change.
    let mut world = warm();
    world.step(set(RunToken::new(100)));
    world.step(submit(RunToken::new(101), "yes"));
    world.exited(WorkerExitStatus::Signaled(11));
    world.spawned();
    on_messages(&mut world);
    assert_eq!(world.worker.as_ref().expect("a new one").answers, ["yes"]);
}

const WRITTEN: WriteId = WriteId(1_000);

/// A batch is being written, until the test reports it as stored.
fn writes(world: &mut World) {
    let machine = world.machine.as_mut().expect("a machine");
    machine.writes.writing.push((WRITTEN, super::super::state::AfterCommit::Nothing));
}

#[test]
fn a_change_of_a_variable_is_kept_when_its_worker_exits_during_a_write() {
    let mut world = warm();
    world.step(DurableInput::Pressure);
    world.exited(WorkerExitStatus::Signaled(9));
    world.step(set(RunToken::new(100)));
    writes(&mut world);
    world.loading = None;
    world.step(DurableInput::Exited(WorkerExitStatus::Signaled(11)));
    assert!(!world.machine.as_ref().expect("a machine").is_released(), "a caller waits");
    world.step(DurableInput::Stored(WRITTEN));
    assert!(world.loading.is_some(), "another worker is to change it");
}

#[test]
fn execution_continues_after_a_failed_start_and_the_exit_of_its_worker() {
    let mut world = warm();
    world.step(DurableInput::Pressure);
    world.exited(WorkerExitStatus::Signaled(9));
    world.step(set(RunToken::new(100)));
    // A batch is being written when the start of the worker fails; the answer comes after that.
    writes(&mut world);
    world.step(submit(RunToken::new(101), "yes"));
    world.loading = None;
    world.step(DurableInput::NotLoaded { why: "no worker is left".to_owned(), permanent: false });
    world.step(DurableInput::Stored(WRITTEN));
    assert!(world.loading.is_some(), "the answer is accepted");
    world.spawned();
    world.exited(WorkerExitStatus::Signaled(11));
    assert!(world.loading.is_some(), "and tried again");
}

#[test]
fn use_until_a_cancellation_is_recorded() {
    let mut world = running();
    world.now.mono_ms += 70;
    world.now.cpu_us += 5_000;
    world.step(DurableInput::Cancel { token: RunToken::new(100), with: Vec::new() });
    let metrics = world.machine.as_ref().expect("a machine").record().metrics;
    assert_eq!((metrics.duration_ms, metrics.cpu_ms), (70, 5));
}

#[test]
fn waiting_for_memory_of_pages_counts_and_ends_a_program_at_its_limit_of_time() {
    let mut world = running();
    let limit = u64::from(Limits::default().wall_ms);
    world.step(DurableInput::Stalled);
    world.now.mono_ms += limit / 2;
    world.step(DurableInput::Tick);
    assert!(!world.dying, "half of its time is left");
    world.step(DurableInput::Continues);
    world.step(DurableInput::Stalled);
    world.now.mono_ms += limit / 2 + INTERRUPT_GRACE_MS;
    world.step(DurableInput::Tick);
    assert!(world.dying, "it had all of its time");
    world.each_ends(|| DurableInput::Exited(WorkerExitStatus::Signaled(9)));
    let record = world.rows.record.expect("recorded");
    assert_eq!(record.error.map(|error| error.code), Some("WALL_LIMIT".to_owned()));
    assert_eq!(record.metrics.duration_ms, limit + INTERRUPT_GRACE_MS, "what is recorded is what has passed");
}

#[test]
fn waiting_for_memory_of_pages_does_not_count_while_the_store_fails() {
    let deadline =
        |world: &World| world.machine.as_ref().expect("a machine").clock.hard_stop.expect("it runs");
    let mut world = running();
    let before = deadline(&world);
    world.step(DurableInput::Stalled);
    world.now.mono_ms += 3_600_000;
    world.step(DurableInput::StoreFails);
    world.step(DurableInput::Tick);
    assert!(!world.dying, "it is not killed because the store fails");
    world.step(DurableInput::Continues);
    assert_eq!(deadline(&world), before + 3_600_000);
    world.now.mono_ms += 70;
    world.step(DurableInput::Cancel { token: RunToken::new(100), with: Vec::new() });
    assert_eq!(world.machine.as_ref().expect("a machine").record().metrics.duration_ms, 70);
}
