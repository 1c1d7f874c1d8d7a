//! A worker that breaks the protocol, in ten ways.

use crate::body::VIOLATIONS;
use crate::cases;
use crate::world::World;
use vm_system_protocol::model::{ExecutionStatus, SessionStatus};

cases! {
    every_violation_ends_the_session_and_harms_no_sibling,
}

async fn every_violation_ends_the_session_and_harms_no_sibling() {
    let world = World::new().await;
    let sibling = world.session().await;
    for number in 0..VIOLATIONS {
        let session = world.session().await;
        let ended = world.run(session, &format!("violation:{number}")).await.expect("ends");
        assert_eq!(ended.status, ExecutionStatus::Error, "violation {number}");
        let error = ended.error.expect("an error");
        assert_eq!(error.code, "WORKER_DIED", "violation {number}");
        let reason = error.reason.expect("a reason");
        assert!(reason.starts_with("protocol_violation("), "violation {number}: {reason}");
        world.gone(session).await;
        let row = world.stored(session).await;
        assert_eq!(
            (row.status, row.close_reason),
            (SessionStatus::Crashed, Some(reason)),
            "violation {number}"
        );
        world.assert_unharmed(sibling).await;
    }
    world.end().await;
}
