//! Owner tasks of durable programs with a store that fails and workers that do not stop.

use crate::cases;
use crate::world::{TEMPLATE, World, is_alive, policy};
use std::sync::Arc;
use uuid::Uuid;
use vm_system_core::durable::{Fresh, fresh_record, session_record};
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Engine, ExecutionStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{NewProgramVersion, Owner, PolicySnapshot, Write};
use vm_system_runtime::{RunIdentity, StartProgram};
use vm_system_tests::watch::Watch;

cases! {
    a_program_over_its_time_is_killed_while_the_store_accepts_nothing,
}

/// A program that never ends.
async fn endless(world: &World, policy: Arc<PolicySnapshot>) -> StartProgram {
    let (owner, at, program) = (Owner::new("uid:0"), Timestamp(1), ProgramId::from_uuid(Uuid::now_v7()));
    let version = NewProgramVersion {
        owner: owner.clone(),
        id: program,
        name: "endless".to_owned(),
        source: String::new(),
        source_hash: [0; 32],
        format: 1,
        code: Vec::new(),
        at,
    };
    world.store.apply(Write::ProgramVersion(Box::new(version))).await.expect("a program");
    let (id, session) = (ExecutionId::from_uuid(Uuid::now_v7()), SessionId::from_uuid(Uuid::now_v7()));
    let json = |text: &str| JsonText::from_untrusted(text.to_owned());
    let record = fresh_record(id, session, ExecutionStatus::Running, json("[]"), json("{}"), at);
    let creation = vec![
        Write::SessionInsert {
            owner: owner.clone(),
            session: Arc::new(session_record(session, TEMPLATE, "", at)),
            policy: Arc::clone(&policy),
            worktree: None,
        },
        Write::ExecutionStarted { name: None, execution: Arc::new(record.clone()) },
        Write::ProgramRun { execution: id, program, version: 1 },
    ];
    let fresh = Fresh { args: Vec::new(), env: Vec::new(), seed: 1, creation };
    let identity = Arc::new(RunIdentity { owner, name: None, program, version: 1, program_name: None });
    StartProgram { record, identity, policy, worktree_path: String::new(), worktree: None, fresh }
}

async fn a_program_over_its_time_is_killed_while_the_store_accepts_nothing() {
    let world = World::new().await;
    let policy = policy(|policy| {
        policy.engine = Engine::Cvm;
        policy.settings.limits.wall_ms = 1_000;
    });
    let start = endless(&world, policy).await;
    let (id, session) = (start.record.id, start.record.session_id);
    let durables = Arc::clone(world.runtime.durables());
    world.faults.set_full(true);
    let running = tokio::spawn(async move { durables.run(start, true).await });
    let mut watch = Watch::begin();
    while world.runtime.durables().live_sessions().is_empty() {
        watch.pause_async(|| "it never began".to_owned()).await;
    }
    let pid = world.inspect(session).await.pid;
    let mut watch = Watch::begin();
    while is_alive(pid) {
        watch.pause_async(|| "its worker outlives its limit of time".to_owned()).await;
    }
    assert!(!running.is_finished(), "its end cannot be stored yet");
    world.faults.set_full(false);
    let ended = running.await.expect("no panic").expect("ended");
    assert_eq!(ended.record.status, ExecutionStatus::Timeout);
    assert_eq!(ended.record.error.expect("an error").code, "WALL_LIMIT");
    assert_eq!(world.stored_execution(id).await.expect("stored").status, ExecutionStatus::Timeout);
    world.end().await;
}
