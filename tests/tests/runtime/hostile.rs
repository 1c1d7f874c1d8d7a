//! A worker that breaks the protocol, in ten ways.

use crate::body::LIES;
use crate::cases;
use crate::world::World;
use vm_system_protocol::model::{ExecutionStatus, SessionStatus};

cases! {
    every_lie_ends_the_session_and_no_sibling_notices,
}

async fn every_lie_ends_the_session_and_no_sibling_notices() {
    let world = World::new().await;
    let sibling = world.session().await;
    for lie in 0..LIES {
        let session = world.session().await;
        let ended = world.run(session, &format!("lie:{lie}")).await.expect("ends");
        assert_eq!(ended.status, ExecutionStatus::Error, "lie {lie}");
        let error = ended.error.expect("says why");
        assert_eq!(error.code, "WORKER_DIED", "lie {lie}");
        let reason = error.reason.expect("says why");
        assert!(reason.starts_with("protocol_violation("), "lie {lie}: {reason}");
        world.gone(session).await;
        let row = world.stored(session).await;
        assert_eq!((row.status, row.close_reason), (SessionStatus::Crashed, Some(reason)), "lie {lie}");
        world.assert_unharmed(sibling).await;
    }
    world.end().await;
}
