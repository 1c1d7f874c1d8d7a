//! Sessions and executions from start to end: the responses of their callers, and the stored rows.

use crate::cases;
use crate::world::{SESSIONS, World, is_alive, policy, repl, signal, start};
use nix::sys::signal::Signal;
use std::time::Duration;
use vm_system_protocol::control::ErrorCode;
use vm_system_protocol::ids::{SessionId, StartupFileId, TemplateId};
use vm_system_protocol::model::{EventPayload, ExecutionStatus, SessionStatus, StartupFile, StartupMode};
use vm_system_record::Owner;
use vm_system_runtime::RuntimeApi;
use vm_system_runtime::client_memory::ReplyMemory;
use vm_system_runtime::shares::Holder;

cases! {
    a_session_keeps_its_variables_until_it_is_closed,
    events_are_stored_as_they_were_returned,
    the_second_execution_is_refused_at_once,
    cancel_ends_the_execution_and_the_session_continues,
    the_next_request_waits_for_the_end_of_a_cancelled_execution,
    close_first_cancels_the_running_execution,
    a_follower_receives_every_event_once,
    a_response_can_come_before_the_end,
    startup_files_run_before_the_session_is_ready,
    a_failing_startup_file_ends_the_session,
    an_idle_session_ends_by_itself,
    more_sessions_than_allowed_are_refused,
    sessions_of_an_exited_supervisor_are_marked_on_start,
    a_lost_keeper_is_replaced,
    shutdown_leaves_no_process_and_no_open_end,
    inspection_shows_the_walls,
}

async fn a_session_keeps_its_variables_until_it_is_closed() {
    let world = World::new().await;
    let session = world.session().await;
    world.run(session, "set:42").await.expect("runs");
    let got = world.run(session, "get").await.expect("runs");
    assert_eq!(got.result_json(), Some("\"42\""));
    assert_eq!(world.stored(session).await.status, SessionStatus::Ready);
    let pid = world.inspect(session).await.pid;
    let closed = world.runtime.close_session(session).await.expect("closes").expect("was live");
    assert_eq!((closed.status, closed.close_reason.as_deref()), (SessionStatus::Closed, Some("exited")));
    assert_eq!(world.stored(session).await, closed);
    assert!(!is_alive(pid));
    let refused = world.run(session, "get").await.expect_err("closed");
    assert_eq!(refused.code(), ErrorCode::SessionNotReady);
    assert_eq!(world.runtime.close_session(session).await, Ok(None), "closing twice is fine");
    world.end().await;
}

async fn events_are_stored_as_they_were_returned() {
    let world = World::new().await;
    let session = world.session().await;
    let execution = world.run(session, "print:300").await.expect("runs");
    let events = execution.events.clone().expect("collected");
    assert_eq!(events.len(), 302, "the echo, 300 lines, the value");
    assert!(events.iter().map(|event| event.seq).eq(1..=302));
    assert!(matches!(&events[0].payload, EventPayload::InputEcho { text } if text == "print:300"));
    assert!(events.is_sorted_by_key(|event| event.ts));
    assert_eq!(world.store.events(execution.id, 0, 0).await.expect("readable"), events);
    assert_eq!(execution.metrics.events, 302);
    let mut stored = world.stored_execution(execution.id).await.expect("a row");
    stored.events = Some(events);
    assert_eq!(stored, execution);
    world.end().await;
}

async fn the_second_execution_is_refused_at_once() {
    let world = World::new().await;
    let session = world.session().await;
    let first = world.busy(session, "spin").await;
    let second = repl(session, "echo:x");
    let id = second.1.id;
    let refused = world.execute(second).await.expect_err("busy");
    assert_eq!(refused.code(), ErrorCode::SessionBusy);
    assert_eq!(world.stored_execution(id).await, None, "no row is left behind");
    world.runtime.cancel_execution(first).await.expect("cancelled");
    world.end_of(first).await;
    world.assert_unharmed(session).await;
    world.end().await;
}

async fn cancel_ends_the_execution_and_the_session_continues() {
    let world = World::new().await;
    let session = world.session().await;
    let execution = world.busy(session, "spin").await;
    world.runtime.cancel_execution(execution).await.expect("cancelled");
    let ended = world.end_of(execution).await;
    assert_eq!(ended.status, ExecutionStatus::Cancelled);
    assert_eq!(ended.error.expect("an error").code, "CANCELLED");
    world.runtime.cancel_execution(execution).await.expect("cancelling what has ended is fine");
    world.assert_unharmed(session).await;
    world.end().await;
}

async fn the_next_request_waits_for_the_end_of_a_cancelled_execution() {
    let world = World::new().await;
    let session = world.session().await;
    for _ in 0..30 {
        let execution = world.busy(session, "spin").await;
        world.runtime.cancel_execution(execution).await.expect("cancelled");
        world.assert_unharmed(session).await;
        let ended = world.stored_execution(execution).await.expect("a row");
        assert_eq!(ended.status, ExecutionStatus::Cancelled);
    }
    world.end().await;
}

async fn close_first_cancels_the_running_execution() {
    let world = World::new().await;
    let session = world.session().await;
    let execution = world.busy(session, "spin").await;
    let closed = world.runtime.close_session(session).await.expect("closes").expect("was live");
    assert_eq!((closed.status, closed.close_reason.as_deref()), (SessionStatus::Closed, Some("exited")));
    let ended = world.stored_execution(execution).await.expect("a row");
    assert_eq!(ended.status, ExecutionStatus::Cancelled);
    world.end().await;
}

async fn a_follower_receives_every_event_once() {
    let world = World::new().await;
    let session = world.session().await;
    let (follower, mut events) = vm_system_runtime::follower(1, ReplyMemory::default());
    let mut request = repl(session, "print:900");
    (request.1.collect_events, request.1.wait) = (false, true);
    let id = request.1.id;
    let reading = async {
        let mut seen = Vec::new();
        while let Some(batch) = events.recv().await {
            seen.extend(batch.events);
        }
        seen
    };
    let (answer, seen) =
        tokio::join!(world.runtime.execute(request.0, Box::new(request.1), None, Some(follower)), reading);
    assert_eq!(answer.expect("runs").events, None, "they were passed on already");
    assert_eq!(seen, world.store.events(id, 0, 0).await.expect("readable"));
    assert_eq!(seen.len(), 902);
    world.end().await;
}

async fn a_response_can_come_before_the_end() {
    let world = World::new().await;
    let session = world.session().await;
    let execution = world.busy(session, "spin").await;
    let row = world.stored_execution(execution).await.expect("the start is stored");
    assert_eq!(row.status, ExecutionStatus::Running);
    assert_eq!(world.runtime.session_of_execution(execution), Some(session));
    world.end().await;
}

fn startup_file(path: &str, order_index: i64) -> StartupFile {
    StartupFile {
        id: StartupFileId::from_bytes([order_index as u8; 16]),
        vm_id: TemplateId::from_bytes([1; 16]),
        path: path.to_owned(),
        order_index,
        mode: StartupMode::Eval,
    }
}

async fn startup_files_run_before_the_session_is_ready() {
    let world = World::new().await;
    world.write("first.js", "set:from the first");
    world.write("second.js", "echo:second");
    let session = world
        .session_with(|policy| {
            policy.startup_files = vec![startup_file("first.js", 1), startup_file("second.js", 2)];
        })
        .await;
    let got = world.run(session, "get").await.expect("runs");
    assert_eq!(got.result_json(), Some("\"from the first\""));
    world.end().await;
}

async fn a_failing_startup_file_ends_the_session() {
    let world = World::new().await;
    world.write("bad.js", "throw:Error: no");
    for (file, expected) in [("bad.js", "bad.js: Error: no"), ("missing.js", "missing.js: ")] {
        let creation = world.creation(policy(|policy| policy.startup_files = vec![startup_file(file, 1)]));
        let id = creation.id;
        let error = world.runtime.create_session(creation).await.expect_err("fails");
        assert_eq!(error.code(), ErrorCode::StartupFailed, "{error}");
        let row = world.stored(id).await;
        assert_eq!(row.status, SessionStatus::Crashed);
        assert!(row.last_error.as_deref().is_some_and(|text| text.contains(expected)), "{row:?}");
    }
    assert!(world.runtime.live_sessions().is_empty());
    world.end().await;
}

async fn an_idle_session_ends_by_itself() {
    let world = World::new().await;
    let session = world.session_with(|policy| policy.settings.runtime.idle_timeout_s = 1).await;
    let pid = world.inspect(session).await.pid;
    world.gone(session).await;
    let row = world.stored(session).await;
    assert_eq!((row.status, row.close_reason.as_deref()), (SessionStatus::Closed, Some("idle")));
    assert!(!is_alive(pid));
    world.end().await;
}

async fn more_sessions_than_allowed_are_refused() {
    let world = World::new().await;
    for _ in 0..SESSIONS {
        world.session().await;
    }
    let error = world.runtime.create_session(world.creation(policy(|_| {}))).await.expect_err("full");
    assert_eq!(error.code(), ErrorCode::CapacityExceeded);
    let one = world.runtime.live_sessions()[0];
    world.runtime.close_session(one).await.expect("closes");
    world.session().await;
    world.end().await;
}

async fn sessions_of_an_exited_supervisor_are_marked_on_start() {
    let world = World::new().await;
    let session = world.session().await;
    let execution = world.busy(session, "spin").await;
    // A second runtime on the same store treats the first as exited.
    let second = start(world.store.clone()).await;
    let row = world.stored(session).await;
    assert_eq!((row.status, row.close_reason.as_deref()), (SessionStatus::Crashed, Some("host_restart")));
    let ended = world.stored_execution(execution).await.expect("a row");
    assert_eq!(ended.status, ExecutionStatus::Error);
    let error = ended.error.expect("an error");
    assert_eq!((error.code.as_str(), error.reason.as_deref()), ("WORKER_DIED", Some("host_restart")));
    second.shutdown(Duration::from_secs(5)).await;
    world.end().await;
}

async fn a_lost_keeper_is_replaced() {
    let world = World::new().await;
    let session = world.session().await;
    let execution = world.busy(session, "spin").await;
    let keeper = world.runtime.jail().keeper_pid();
    signal(keeper, Signal::SIGKILL);
    let ended = world.end_of(execution).await;
    assert_eq!(ended.error.expect("an error").reason.as_deref(), Some("keeper_lost"));
    world.gone(session).await;
    assert_eq!(world.stored(session).await.close_reason.as_deref(), Some("keeper_lost"));
    world.wait_until(|runtime| runtime.jail().keeper_pid() != keeper).await;
    let next = world.session().await;
    world.assert_unharmed(next).await;
    world.end().await;
}

async fn shutdown_leaves_no_process_and_no_open_end() {
    let world = World::new().await;
    let sessions = [world.session().await, world.session().await, world.session().await];
    let spinning = world.busy(sessions[0], "spin").await;
    let hanging = world.busy(sessions[1], "hang").await;
    let mut pids = vec![world.runtime.jail().keeper_pid()];
    for session in sessions {
        pids.push(world.inspect(session).await.pid);
    }
    world.runtime.shutdown(Duration::from_secs(10)).await;
    assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 0);
    for session in sessions {
        assert_eq!(world.stored(session).await.status, SessionStatus::Closed);
    }
    for execution in [spinning, hanging] {
        let row = world.stored_execution(execution).await.expect("a row");
        assert_eq!(row.status, ExecutionStatus::Cancelled);
    }
    let refused = world.runtime.create_session(world.creation(policy(|_| {}))).await.expect_err("stopped");
    assert_eq!(refused.code(), ErrorCode::ShuttingDown);
}

async fn inspection_shows_the_walls() {
    let world = World::new().await;
    let session = world.session().await;
    let seen = world.inspect(session).await;
    assert_eq!((seen.seccomp_mode, seen.no_new_privs, seen.cap_eff), (Some(2), Some(true), Some(0)));
    assert!(seen.namespaces.iter().any(|name| name.starts_with("pid=")), "{:?}", seen.namespaces);
    assert!(
        seen.uss_kib.is_some() && seen.rlimits.iter().any(|limit| limit.starts_with("core=0")),
        "{seen:?}"
    );
    let holder = Holder::Owner(Owner::new("tests"));
    let unknown = world.runtime.inspect_session(SessionId::from_bytes([9; 16]), holder);
    let unknown = unknown.await.expect_err("unknown");
    assert_eq!(unknown.code(), ErrorCode::SessionNotReady);
    world.end().await;
}
