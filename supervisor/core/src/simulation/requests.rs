//! The parts from which a simulated session is created, and the requests of its clients.

use crate::{ExecuteRequest, SessionSpec, Source};
use std::sync::Arc;
use vm_system_policy::EffectivePolicy;
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Engine, ExecutionKind, OnCrash, Session, SessionFacts, SessionStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{SourceFormat, Start};
use vm_system_record::Owner;
use vm_system_testkit::SeededRandom;

pub(super) fn spec(rng: &mut SeededRandom, policy: &Arc<EffectivePolicy>) -> SessionSpec {
    let id = SessionId::from_bytes(rng.id());
    let startup =
        (0..rng.below(4).saturating_sub(2) * 2).map(|_| request(rng, ExecutionKind::Startup)).collect();
    SessionSpec {
        record: Session {
            id,
            name: None,
            template_id: TemplateId::from_bytes([1; 16]),
            vm_id: TemplateId::from_bytes([1; 16]),
            workspace_id: "w".to_owned(),
            base_commit_oid: "c".to_owned(),
            worktree_path: "/w".to_owned(),
            status: SessionStatus::Starting,
            created_at: Timestamp(0),
            closed_at: None,
            last_error: None,
            close_reason: None,
            runtime_meta: SessionFacts::default(),
            engine: Engine::Quickjs,
            execution_id: None,
            owner: None,
        },
        owner: Owner::new("uid:0"),
        worktree: None,
        snapshot: Arc::new(crate::tests::snapshot()),
        start: Start { session: id, limits: policy.wire.limits.clone(), random_seed: [0; 32], console: true },
        startup,
        startup_policy: Arc::clone(policy),
        ttl_s: if rng.one_in(8) { 60 } else { 0 },
        idle_timeout_s: if rng.one_in(8) { 5 } else { 0 },
        on_crash: match rng.below(6) {
            0 | 1 => OnCrash::Rollback,
            2 | 3 => OnCrash::Restart,
            _ => OnCrash::Close,
        },
    }
}

pub(super) fn request(rng: &mut SeededRandom, kind: ExecutionKind) -> ExecuteRequest {
    let source = if kind == ExecutionKind::Repl {
        let text = if rng.one_in(30) { "x".repeat(2 * 1024 * 1024) } else { "1".to_owned() };
        Source::Text { text, file_name: "repl".to_owned(), format: Some(SourceFormat::Script) }
    } else {
        Source::File { path: "a.js".to_owned(), format: None }
    };
    ExecuteRequest {
        id: ExecutionId::from_bytes(rng.id()),
        kind,
        source,
        args: JsonText::empty_object(),
        env: Vec::new(),
        argv: Vec::new(),
        recorded_args: JsonText::empty_object(),
        recorded_env: JsonText::empty_object(),
        wait: rng.below(4) > 0,
        collect_events: rng.one_in(2),
        stored_first: kind != ExecutionKind::Startup && rng.one_in(3),
    }
}
