//! HTTP requests of a program: when they are made, and what its worker must send next.

use super::worker::request;
use super::*;
use vm_system_protocol::durable::{HttpResponse, REQUEST_BODY_BYTES};
use vm_system_protocol::limits::{DURABLE_RECORD_BYTES, DURABLE_ROW_BYTES};
use vm_system_protocol::model::HttpRecord;

pub(super) fn response() -> HttpResponse {
    HttpResponse { status: 200, reason: String::new(), headers: Vec::new(), body: b"body".to_vec() }
}

/// The event about a request.
pub(super) fn note() -> EventPayload {
    let record = HttpRecord {
        method: "POST".to_owned(),
        origin: "http://host".to_owned(),
        path: "/".to_owned(),
        status: Some(200),
        error: None,
        sent: 0,
        received: 4,
        ms: 1,
    };
    EventPayload::Http(Box::new(record))
}

fn message(cause: Cause) -> DurableInput {
    let pages = vec![StatePage { number: 0, bytes: b"|0".to_vec() }];
    let stop = Box::new(Stop { cause, cpu_us: 1, heap_bytes: 1, applied: 0 });
    DurableInput::Message(FromDurable::SmallCheckpoint { pages, stop })
}

fn store_all(world: &mut World) {
    while let Some((id, batch)) = world.writing.pop_front() {
        world.rows.apply(batch);
        world.step(DurableInput::Stored(id));
    }
}

/// A world whose worker has its beginning stored and has sent nothing else.
fn begun() -> World {
    let mut world = World::new(1);
    world.begin();
    world.spawned();
    world.sent.truncate(2);
    while let Some(message) = world.sent.pop_front() {
        world.step(DurableInput::Message(message));
    }
    store_all(&mut world);
    world
}

/// A world whose program gets the response of a request.
fn responding() -> World {
    let mut world = begun();
    world.step(message(Cause::Request(Box::new(request()))));
    assert!(world.calling.is_none(), "it is made before its checkpoint is stored");
    store_all(&mut world);
    let responded = world.calling.take().expect("it is made");
    world.step(responded);
    world.sent.clear();
    world
}

fn is_killed(world: &World) -> bool {
    world.dying
}

#[test]
fn a_response_is_stored_with_its_record_before_the_program_goes_on() {
    let mut world = responding();
    assert_eq!((world.rows.responses, world.rows.checkpoints.len()), (0, 2), "nothing is stored yet");
    world.step(message(Cause::Response));
    assert!(world.sent.is_empty(), "the program waits for the store");
    store_all(&mut world);
    assert_eq!(world.rows.responses, 1);
    let (_, (cause, _)) = world.rows.checkpoints.last_key_value().expect("stored");
    assert_eq!(cause, "response");
    assert!(!world.sent.is_empty() && !is_killed(&world), "the program goes on");
}

#[test]
fn a_worker_that_does_not_store_its_response_first_is_killed() {
    let call = || HostCall { name: "readFile".to_owned(), args: json("[]") };
    let pause = Cause::Pause { prompt: "question".to_owned(), options: None };
    for cause in [Cause::Steps, Cause::Request(Box::new(request())), Cause::Effect(call()), pause] {
        let mut world = responding();
        world.step(message(cause.clone()));
        assert!(is_killed(&world), "{cause:?}");
    }
    let mut world = responding();
    world.step(DurableInput::Message(FromDurable::Call(call())));
    assert!(is_killed(&world), "a call");
    let mut world = responding();
    world.step(message(Cause::Ended(End::Limit(vm_system_protocol::durable::DurableLimit::Heap))));
    assert_eq!(world.machine.as_ref().expect("a machine").record().status, ExecutionStatus::Error);
}

#[test]
fn a_response_that_was_not_sent_and_a_request_that_is_too_long_are_violations() {
    let mut world = begun();
    world.step(message(Cause::Response));
    assert!(is_killed(&world));
    for (bytes, end, killed) in
        [(REQUEST_BODY_BYTES, true, false), (REQUEST_BODY_BYTES + 1, true, true), (1, false, true)]
    {
        let mut world = begun();
        let mut made = request();
        (made.data, made.end) = (vec![0; bytes], end);
        world.step(message(Cause::Request(Box::new(made))));
        assert_eq!(is_killed(&world), killed, "{bytes} {end}");
    }
}

#[test]
fn a_worker_that_exits_with_a_response_gets_it_again_by_a_request_under_the_same_number() {
    let mut world = responding();
    let effects = world.effects.clone();
    world.exited(WorkerExitStatus::Signaled(9));
    world.spawned();
    world.sent.clear();
    world.step(DurableInput::Message(FromDurable::Restored));
    world.step(message(Cause::Request(Box::new(request()))));
    assert!(world.calling.is_some() && world.writing.is_empty(), "it is made at once");
    assert_eq!((world.effects.clone(), world.rows.responses), (effects, 0));
}

#[test]
fn records_of_requests_fill_the_record_of_an_execution() {
    let mut world = begun();
    world.machine.as_mut().expect("a machine").record.metrics.events =
        DURABLE_RECORD_BYTES / DURABLE_ROW_BYTES;
    world.step(message(Cause::Request(Box::new(request()))));
    store_all(&mut world);
    let responded = world.calling.take().expect("it is made");
    world.step(responded);
    let record = world.machine.as_ref().expect("a machine").record();
    assert_eq!(record.error.as_ref().map(|error| error.code.as_str()), Some("OUTPUT_LIMIT_EXCEEDED"));
}
