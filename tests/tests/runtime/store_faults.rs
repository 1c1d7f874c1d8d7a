//! A store that cannot write: an error for the caller, a mark on the record, nothing lost.

use crate::cases;
use crate::world::{World, policy};
use vm_system_protocol::control::ErrorCode;
use vm_system_protocol::model::{ExecutionStatus, SessionStatus};
use vm_system_runtime::RuntimeApi;

cases! {
    a_full_disk_is_an_error_and_a_mark_and_heals,
    a_session_that_cannot_be_stored_is_not_created,
    an_end_that_could_not_be_stored_is_stored_later,
}

const FULL: &str = "No space left on device";

async fn a_full_disk_is_an_error_and_a_mark_and_heals() {
    let world = World::new().await;
    let session = world.session().await;
    world.faults.set(Some(FULL));
    let request = crate::world::repl(session, "echo:lost");
    let id = request.1.id;
    let error = world.execute(request).await.expect_err("not stored");
    assert_eq!(error.code(), ErrorCode::StorageUnavailable);
    assert!(error.to_string().contains(FULL), "{error}");
    let shown = world.runtime.degraded(id).expect("kept in memory");
    assert!(shown.degraded && shown.status == ExecutionStatus::Ok);
    assert_eq!(shown.events.as_ref().map(Vec::len), Some(1), "the fallback event");
    world.faults.set(None);
    world.wait_until(|runtime| runtime.degraded(id).is_none()).await;
    let stored = world.stored_execution(id).await.expect("stored at last");
    assert!(stored.degraded && stored.status == ExecutionStatus::Ok);
    world.assert_unharmed(session).await;
    world.end().await;
}

async fn a_session_that_cannot_be_stored_is_not_created() {
    let world = World::new().await;
    world.faults.set(Some(FULL));
    let error = world.runtime.create_session(world.creation(policy(|_| {}))).await.expect_err("not stored");
    assert_eq!(error.code(), ErrorCode::StorageUnavailable);
    world.faults.set(None);
    world.wait_until(|runtime| runtime.live_sessions().is_empty()).await;
    let session = world.session().await;
    world.assert_unharmed(session).await;
    world.end().await;
}

async fn an_end_that_could_not_be_stored_is_stored_later() {
    let world = World::new().await;
    let session = world.session().await;
    world.faults.set(Some(FULL));
    let error = world.runtime.close_session(session).await.expect_err("not stored");
    assert_eq!(error.code(), ErrorCode::StorageUnavailable);
    assert_eq!(world.stored(session).await.status, SessionStatus::Ready);
    world.faults.set(None);
    world.gone(session).await;
    assert_eq!(world.stored(session).await.status, SessionStatus::Closed);
    world.end().await;
}
