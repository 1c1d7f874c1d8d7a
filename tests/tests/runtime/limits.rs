//! Limits, operators and crashes: what each ends, its reason in the record, and no effect on siblings.

use crate::cases;
use crate::world::{World, signal};
use nix::sys::signal::Signal;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::model::{Execution, ExecutionStatus, SessionStatus};
use vm_system_runtime::RuntimeApi;

cases! {
    the_wall_limit_interrupts_and_the_session_continues,
    a_native_that_never_polls_is_killed_at_its_wall_limit,
    a_native_that_never_polls_is_killed_at_its_cpu_limit,
    a_native_that_never_polls_is_killed_after_a_cancel,
    too_much_output_ends_the_worker_that_does_not_stop_by_itself,
    an_operators_kill_is_recorded_as_one,
    kills_from_outside_are_named_by_their_signal,
    a_stopped_worker_is_killed_at_its_limit,
    exits_by_the_worker_itself_are_named,
    a_forbidden_call_is_named_in_a_replaced_jail_too,
}

async fn gone(world: &World, session: SessionId) -> String {
    world.gone(session).await;
    let row = world.stored(session).await;
    assert_eq!(row.status, SessionStatus::Crashed);
    row.close_reason.expect("a reason")
}

fn code(execution: &Execution) -> &str {
    execution.error.as_ref().map_or("", |error| &error.code)
}

async fn the_wall_limit_interrupts_and_the_session_continues() {
    let world = World::new().await;
    let session = world.session_with(|policy| policy.settings.limits.wall_ms = 50).await;
    let ended = world.run(session, "spin").await.expect("ends");
    assert_eq!((ended.status, code(&ended)), (ExecutionStatus::Timeout, "WALL_LIMIT"));
    world.assert_unharmed(session).await;
    world.end().await;
}

async fn a_native_that_never_polls_is_killed_at_its_wall_limit() {
    let world = World::new().await;
    let sibling = world.session().await;
    let session = world.session_with(|policy| policy.settings.limits.wall_ms = 50).await;
    let ended = world.run(session, "hang").await.expect("ends");
    assert_eq!((ended.status, code(&ended)), (ExecutionStatus::Timeout, "WALL_LIMIT"));
    assert_eq!(gone(&world, session).await, "limit(wall)");
    world.assert_unharmed(sibling).await;
    world.end().await;
}

async fn a_native_that_never_polls_is_killed_at_its_cpu_limit() {
    let world = World::new().await;
    let sibling = world.session().await;
    let session = world.session_with(|policy| policy.settings.limits.cpu_ms = 50).await;
    let ended = world.run(session, "hang").await.expect("ends");
    assert_eq!((ended.status, code(&ended)), (ExecutionStatus::Timeout, "CPU_LIMIT"));
    assert!(ended.metrics.cpu_ms >= 50, "{:?}", ended.metrics);
    assert_eq!(gone(&world, session).await, "limit(cpu)");
    world.assert_unharmed(sibling).await;
    world.end().await;
}

async fn a_native_that_never_polls_is_killed_after_a_cancel() {
    let world = World::new().await;
    let sibling = world.session().await;
    let session = world.session().await;
    let execution = world.busy(session, "hang").await;
    world.runtime.cancel_execution(execution).await.expect("cancelled");
    let ended = world.end_of(execution).await;
    assert_eq!((ended.status, code(&ended)), (ExecutionStatus::Cancelled, "CANCELLED"));
    assert_eq!(gone(&world, session).await, "killed(cancel)");
    world.assert_unharmed(sibling).await;
    world.end().await;
}

async fn too_much_output_ends_the_worker_that_does_not_stop_by_itself() {
    let world = World::new().await;
    let session = world.session_with(|policy| policy.settings.limits.max_events = 100).await;
    let ended = world.run(session, "print:100000").await.expect("ends");
    assert_eq!((ended.status, code(&ended)), (ExecutionStatus::Error, "OUTPUT_LIMIT_EXCEEDED"));
    assert_eq!(gone(&world, session).await, "limit(events)");
    assert!(ended.metrics.events < 130, "{:?}", ended.metrics);
    world.end().await;
}

async fn an_operators_kill_is_recorded_as_one() {
    let world = World::new().await;
    let session = world.session().await;
    let execution = world.busy(session, "hang").await;
    world.runtime.kill_session(session, 9).await.expect("killed");
    let ended = world.stored_execution(execution).await.expect("a row");
    assert_eq!(ended.error.expect("an error").reason.as_deref(), Some("killed(operator)"));
    assert_eq!(world.stored(session).await.close_reason.as_deref(), Some("killed(operator)"));
    world.end().await;
}

async fn kills_from_outside_are_named_by_their_signal() {
    let world = World::new().await;
    let sibling = world.session().await;
    for (sent, reason) in [(Signal::SIGKILL, "signal(SIGKILL)"), (Signal::SIGSEGV, "signal(SIGSEGV)")] {
        let session = world.session().await;
        let execution = world.busy(session, "hang").await;
        signal(world.inspect(session).await.pid, sent);
        let ended = world.end_of(execution).await;
        assert_eq!((ended.status, code(&ended)), (ExecutionStatus::Error, "WORKER_DIED"));
        assert_eq!(ended.error.expect("an error").reason.as_deref(), Some(reason));
        assert_eq!(gone(&world, session).await, reason);
    }
    world.assert_unharmed(sibling).await;
    world.end().await;
}

async fn a_stopped_worker_is_killed_at_its_limit() {
    let world = World::new().await;
    let sibling = world.session().await;
    let session = world.session_with(|policy| policy.settings.limits.wall_ms = 200).await;
    let execution = world.busy(session, "spin").await;
    signal(world.inspect(session).await.pid, Signal::SIGSTOP);
    world.assert_unharmed(sibling).await;
    let ended = world.end_of(execution).await;
    assert_eq!((ended.status, code(&ended)), (ExecutionStatus::Timeout, "WALL_LIMIT"));
    assert_eq!(gone(&world, session).await, "limit(wall)");
    world.end().await;
}

async fn exits_by_the_worker_itself_are_named() {
    let world = World::new().await;
    let sibling = world.session().await;
    for (order, reason) in [
        ("exit:3", "exited(3)"),
        ("exit:0", "exited(0)"),
        ("segv", "signal(SIGSEGV)"),
        ("forbidden", "seccomp(openat)"),
    ] {
        let session = world.session().await;
        let ended = world.run(session, order).await.expect("ends");
        assert_eq!((ended.status, code(&ended)), (ExecutionStatus::Error, "WORKER_DIED"), "{order}");
        assert_eq!(gone(&world, session).await, reason, "{order}");
    }
    world.assert_unharmed(sibling).await;
    world.end().await;
}

async fn a_forbidden_call_is_named_in_a_replaced_jail_too() {
    let world = World::new().await;
    let (session, sibling) = (world.session().await, world.session().await);
    let jail = world.runtime.jail();
    let keeper = jail.keeper_pid();
    for zygote in jail.zygote_pids() {
        signal(zygote, Signal::SIGKILL);
    }
    drop(jail);
    world.wait_until(|runtime| runtime.jail().keeper_pid() != keeper).await;
    let ended = world.run(session, "forbidden").await.expect("ends");
    assert_eq!((ended.status, code(&ended)), (ExecutionStatus::Error, "WORKER_DIED"));
    assert_eq!(gone(&world, session).await, "seccomp(openat)");
    world.assert_unharmed(sibling).await;
    world.end().await;
}
