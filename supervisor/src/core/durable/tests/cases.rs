//! What single cases are called; what holds for every history is checked by the histories.

use super::*;

/// A world whose worker runs, and has said nothing yet.
fn running() -> World {
    let mut world = World::new(1);
    world.begin();
    world.born();
    world.said.clear();
    world
}

/// The machine hears everything that the worker has said.
fn hear_all(world: &mut World) {
    while let Some(message) = world.said.pop_front() {
        world.step(DurableInput::Message(message));
    }
}

/// The store takes everything.
fn store_all(world: &mut World) {
    while let Some((id, batch)) = world.writing.pop_front() {
        world.rows.apply(batch);
        world.step(DurableInput::Stored(id));
    }
}

/// A world whose worker is warm behind its first question.
fn warm() -> World {
    let mut world = World::new(1);
    world.begin();
    world.born();
    hear_all(&mut world);
    store_all(&mut world);
    world
}

/// How often a program goes on until it is ended, and with which code.
fn turns_until_its_end(world: &mut World, said: &FromDurable) -> (u32, String) {
    for turn in 1..20_000 {
        world.now.cpu_us += 900;
        world.now.mono_ms += 1;
        world.step(DurableInput::Message(said.clone()));
        let record = world.machine.as_ref().expect("a machine").record();
        if let Some(error) = &record.error {
            return (turn, error.code.clone());
        }
        if std::mem::take(&mut world.calling) {
            world.step(DurableInput::Called(Ok(json("null"))));
        }
        world.said.clear();
    }
    panic!("it goes on for ever");
}

#[test]
fn a_loop_of_short_segments_ends_when_its_time_is_used_up() {
    let limits = Limits::default();
    let call = FromDurable::Call(HostCall { name: "readFile".to_owned(), args: json("[]") });
    let options = Some(json(r#"{"nope":1}"#));
    let stop = |cause| Stop { cause, cpu_us: 1, heap_bytes: 1 };
    let wrong = stop(Cause::Pause { prompt: "x".to_owned(), options });
    for said in [call, FromDurable::Checkpoint(Box::new(wrong))] {
        let (turns, code) = turns_until_its_end(&mut running(), &said);
        assert_eq!(code, "CPU_LIMIT", "{said:?}");
        assert_eq!(turns, (limits.cpu_ms * 1_000).div_ceil(900), "{said:?}");
        let mut slow = running();
        slow.now.cpu_us = 0;
        slow.machine.as_mut().expect("a machine").spec.limits.cpu_ms = u32::MAX;
        slow.machine.as_mut().expect("a machine").spec.limits.wall_ms = 100;
        assert_eq!(turns_until_its_end(&mut slow, &said), (100, "WALL_LIMIT".to_owned()));
    }
}

#[test]
fn whoever_changes_a_variable_hears_at_once_why_it_is_not_changed() {
    let set = |token| DurableInput::Set { token, frame: 0, name: "x".to_owned(), value: json("1") };
    let (token, other) = (Token(100), Token(101));
    let heard = |input: Option<DurableInput>| {
        let mut world = warm();
        world.step(set(token));
        if input.is_none() {
            world.now.mono_ms += 60_000;
        }
        world.step(input.unwrap_or(DurableInput::Tick));
        world.refused.into_iter().find(|(asking, _)| *asking == token).map(|(_, why)| why)
    };
    assert!(matches!(heard(None), Some(Refused::NoWorker(_))), "its worker hangs");
    assert_eq!(heard(Some(DurableInput::Stop)), Some(Refused::Stopping));
    assert_eq!(heard(Some(DurableInput::Cancel { token: other, with: Vec::new() })), Some(Refused::Ended));
}

#[test]
fn a_worker_cannot_say_more_than_may_be_stored() {
    use vm_system_protocol::durable::{MESSAGE_BYTES, PROMPT_BYTES, RESULT_BYTES};
    let long = |bytes: usize| "x".repeat(bytes + 1);
    for cause in [
        Cause::Pause { prompt: long(PROMPT_BYTES), options: None },
        Cause::Ended(End::Ok { result: json(&format!("\"{}\"", long(RESULT_BYTES))) }),
        Cause::Ended(End::Threw { message: long(MESSAGE_BYTES), stack: String::new() }),
        Cause::Ended(End::Corrupt(long(MESSAGE_BYTES))),
    ] {
        let mut world = running();
        let stop = Stop { cause, cpu_us: 1, heap_bytes: 1 };
        world.step(DurableInput::Message(FromDurable::Checkpoint(Box::new(stop))));
        assert!(world.dying && world.writing.is_empty(), "it is taken for one that breaks the protocol");
    }
}

#[test]
fn a_program_whose_worker_dies_again_and_again_is_given_up() {
    let mut world = World::new(1);
    world.begin();
    world.each_ends(|| DurableInput::Died(Death::Signaled(11)));
    let record = world.rows.record.expect("a row");
    let error = record.error.expect("an error");
    assert_eq!((record.status, error.code.as_str()), (ExecutionStatus::Error, "WORKER_DIED"));
    assert_eq!(error.reason.as_deref(), Some("signal(SIGSEGV)"));
}

#[test]
fn a_worker_that_speaks_out_of_turn_is_killed() {
    let mut world = World::new(1);
    world.begin();
    while world.worker.is_none() {
        world.go(false);
    }
    world.said.clear();
    world.step(DurableInput::Message(FromDurable::Compiled { code: Vec::new() }));
    assert!(world.dying);
}

#[test]
fn an_answer_that_comes_while_the_last_worker_ends_is_stored_with_the_checkpoint_it_leads_to() {
    let mut world = warm();
    world.step(DurableInput::Pressure);
    assert!(world.dying, "somebody else needs its place");
    let (token, answer) = (world.token(), GivenAnswer::Typed("yes".to_owned()));
    world.step(DurableInput::Submit { token, task: None, answer, with: Vec::new(), wait: true });
    assert!(world.writing.is_empty() && world.loading.is_none());
    world.dead(Death::Signaled(9));
    world.born();
    hear_all(&mut world);
    let batches: Vec<Vec<Write>> = world.writing.drain(..).map(|(_, batch)| batch).collect();
    let [batch] = &batches[..] else { panic!("{batches:?}") };
    let has = |wanted: fn(&Write) -> bool| batch.iter().any(wanted);
    assert!(has(|write| matches!(write, Write::TaskEnd { .. })), "{batch:?}");
    assert!(has(|write| matches!(write, Write::Checkpoint(_))), "{batch:?}");
}

#[test]
fn where_nothing_is_kept_warm_a_worker_ends_while_its_checkpoint_is_being_stored() {
    let mut world = World::new(1);
    world.warm_ms = 0;
    world.begin();
    world.born();
    hear_all(&mut world);
    assert!(world.dying && !world.writing.is_empty());
    world.dead(Death::Signaled(9));
    store_all(&mut world);
    assert!(world.machine.as_ref().is_some_and(DurableMachine::is_released), "{:?}", world.machine);
}
