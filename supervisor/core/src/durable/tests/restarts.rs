//! Restarts of the supervisor renew nothing: limits that are used up, and exits of workers, go on with the stored rows.

use super::*;
use crate::durable::machine::{COMMIT_MS, EXITS_MAX, KILLS_MAX};

/// A machine that runs, with its beginning stored.
fn running() -> World {
    let mut world = World::new(1);
    world.begin();
    world.spawned();
    world.sent.clear();
    steps(&mut world);
    world
}

/// The worker reports a state, and the store has it.
fn steps(world: &mut World) {
    let stop = Stop { cause: Cause::Steps, cpu_us: 1, heap_bytes: 1, applied: 0 };
    let page = StatePage { number: 0, bytes: b"|0".to_vec() };
    world.step(DurableInput::Message(FromDurable::Pages(vec![page])));
    world.step(DurableInput::Message(FromDurable::Checkpoint(Box::new(stop))));
    store_all(world);
}

fn store_all(world: &mut World) {
    while let Some((id, batch)) = world.writing.pop_front() {
        world.rows.apply(batch);
        world.step(DurableInput::Stored(id));
    }
}

/// The supervisor is killed with its worker, and the next one goes on.
fn restarted(world: &mut World) {
    (world.worker, world.loading, world.calling, world.dying) = (None, None, None, false);
    world.sent.clear();
    world.writing.clear();
    world.machine = None;
    world.begin();
    if world.loading.is_some() {
        world.spawned();
        world.sent.clear();
        // The worker of a small state gets its order at once, and owes the confirmation.
        world.step(DurableInput::Message(FromDurable::Restored));
    }
}

fn error(world: &World) -> Option<String> {
    let error = world.machine.as_ref().and_then(|machine| machine.record().error.as_ref());
    error.map(|error| error.code.clone())
}

#[test]
fn time_that_a_program_has_used_stays_used_over_restarts() {
    for (cpu_us, mono_ms, code) in [(100_000, 0, "CPU_LIMIT"), (0, 1_000, "WALL_LIMIT")] {
        let mut world = running();
        let mut lives = 0;
        while error(&world).is_none() {
            lives += 1;
            assert!(lives < 1_000, "{code} never comes");
            world.now.cpu_us += cpu_us;
            world.now.mono_ms += mono_ms;
            steps(&mut world);
            if error(&world).is_none() {
                restarted(&mut world);
            }
        }
        let limits = Limits::default();
        let most = if cpu_us > 0 { limits.cpu_ms / 100 } else { limits.wall_ms / 1_000 };
        assert_eq!(error(&world).as_deref(), Some(code));
        assert!(lives <= most + 1, "{code} after {lives} lives of {most}");
    }
}

#[test]
fn waiting_with_a_deadline_goes_on_with_what_was_used_before_a_restart() {
    let mut world = running();
    world.now.cpu_us += 700_000;
    let options = Some(json(r#"{"timeout_ms": 1, "default": 0}"#));
    let stop = Stop {
        cause: Cause::Pause { prompt: "q".to_owned(), options },
        cpu_us: 1,
        heap_bytes: 1,
        applied: 0,
    };
    let page = StatePage { number: 0, bytes: b"|0".to_vec() };
    world.step(DurableInput::Message(FromDurable::Pages(vec![page])));
    world.step(DurableInput::Message(FromDurable::Checkpoint(Box::new(stop))));
    store_all(&mut world);
    assert!(world.rows.limits.spent.cpu_us >= 700_000, "{:?}", world.rows.limits);
    restarted(&mut world);
    let used = |world: &World| world.machine.as_ref().expect("a machine").counters.scope_kept.cpu_us;
    assert_eq!(used(&world), world.rows.limits.spent.cpu_us);
    world.now.unix_ms += 1;
    world.step(DurableInput::Wake { token: None });
    let limits = Limits::default();
    let back = u64::from(limits.cpu_ms) / 60;
    assert!(
        used(&world) >= 700_000 - back * 1_000,
        "a millisecond of waiting restores a part: {}",
        used(&world)
    );
}

#[test]
fn exits_of_workers_are_counted_over_restarts_and_a_checkpoint_resets_them() {
    let mut world = running();
    for exit in 1..EXITS_MAX {
        world.exited(WorkerExitStatus::Signaled(11));
        world.now.mono_ms += COMMIT_MS;
        world.step(DurableInput::Tick);
        store_all(&mut world);
        assert_eq!((world.rows.limits.exits, error(&world)), (exit, None));
        restarted(&mut world);
    }
    let mut other = World { rows: world.rows.clone(), ..World::new(1) };
    other.begin();
    other.spawned();
    other.sent.clear();
    other.step(DurableInput::Message(FromDurable::Restored));
    steps(&mut other);
    assert_eq!(other.rows.limits.exits, 0, "it has got further");

    world.exited(WorkerExitStatus::Signaled(11));
    assert_eq!(error(&world).as_deref(), Some("WORKER_DIED"));
}

#[test]
fn program_with_which_its_supervisor_was_killed_too_often_is_ended_before_it_runs() {
    let mut world = running();
    for kills in 1..=KILLS_MAX {
        assert_eq!(error(&world), None);
        // The claim of the next supervisor.
        world.rows.limits.kills += 1;
        assert_eq!(world.rows.limits.kills, kills);
        restarted(&mut world);
    }
    assert_eq!(error(&world).as_deref(), Some("WORKER_DIED"));
    assert!(world.worker.is_none() && world.loading.is_none(), "no worker was started");
    store_all(&mut world);
    assert_eq!(world.rows.record.as_ref().map(|record| record.status), Some(ExecutionStatus::Error));
}

#[test]
fn forbidden_call_that_ended_a_worker_is_named() {
    let mut world = World::new(1);
    world.begin();
    world.each_ends(|| DurableInput::ForbiddenCall("openat".to_owned()));
    let error = world.rows.record.and_then(|record| record.error).expect("an error");
    assert_eq!(error.reason.as_deref(), Some("seccomp(openat)"));
}
