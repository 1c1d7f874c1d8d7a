//! The parameters of a session's machine.

use super::api::{CreateSession, RestoredSession};
use super::registry::LiveSession;
use crate::worktree::Worktree;
use std::sync::Arc;
use uuid::Uuid;
use vm_system_core::run_file_format;
use vm_system_core::{ExecuteRequest, SessionSpec, Source};
use vm_system_policy::EffectivePolicy;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Engine, ExecutionKind, RestorationPlan, Session, SessionFacts, SessionStatus, StartupFile, StartupMode,
};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{SourceFormat, Start};
use vm_system_record::{Owner, PolicySnapshot};

/// The parameters for the machine of a new session.
pub(super) fn spec(
    (request, created_at): (&CreateSession, Timestamp),
    worktree: &Worktree,
    policy: &Arc<EffectivePolicy>,
) -> SessionSpec {
    let record = Session {
        id: request.id,
        name: request.name.clone(),
        template_id: request.template_id,
        vm_id: request.template_id,
        workspace_id: request.workspace_id.clone(),
        base_commit_oid: request.base_commit_oid.clone(),
        worktree_path: request.worktree_path.to_string_lossy().into_owned(),
        status: SessionStatus::Starting,
        created_at,
        closed_at: None,
        last_error: None,
        close_reason: None,
        runtime_meta: request.restores.as_ref().map_or_else(SessionFacts::default, |restored| {
            let &RestoredSession { id, inputs, not_repeated, .. } = restored;
            let restoration = Some(RestorationPlan { inputs, not_repeated });
            SessionFacts { restored_from: Some(id), restoration, ..SessionFacts::default() }
        }),
        engine: Engine::Quickjs,
        execution_id: None,
        owner: None,
    };
    SessionSpec {
        startup: request.policy.startup_files.iter().map(startup).collect(),
        ..spec_of(record, (&request.owner, &request.policy), worktree, policy)
    }
}

/// The parameters for a forked session: the parent's worktree and rights, no name, no startup files.
pub(super) fn spec_of_fork(
    live: &LiveSession,
    (parent, worktree): (&Session, &Worktree),
    policy: &Arc<EffectivePolicy>,
    (runtime_meta, created_at): (SessionFacts, Timestamp),
) -> SessionSpec {
    let record = Session {
        id: live.id,
        name: None,
        status: SessionStatus::Starting,
        created_at,
        runtime_meta,
        ..parent.clone()
    };
    spec_of(record, (&live.owner, live.snapshot()), worktree, policy)
}

/// The parameters for a session with this record, without startup files.
pub(super) fn spec_of(
    record: Session,
    (owner, snapshot): (&Owner, &Arc<PolicySnapshot>),
    worktree: &Worktree,
    policy: &Arc<EffectivePolicy>,
) -> SessionSpec {
    let runtime = &snapshot.settings.runtime;
    SessionSpec {
        start: Start {
            session: record.id,
            limits: policy.wire.limits.clone(),
            random_seed: seed(),
            console: runtime.console,
        },
        record,
        owner: owner.clone(),
        worktree: worktree.recorded().cloned(),
        snapshot: Arc::clone(snapshot),
        startup: Vec::new(),
        startup_policy: Arc::clone(policy),
        ttl_s: runtime.ttl_s,
        idle_timeout_s: runtime.idle_timeout_s,
        on_crash: runtime.on_crash,
    }
}

/// 244 random bits from the kernel, in the form of two version 4 UUIDs.
pub(super) fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(Uuid::new_v4().as_bytes());
    seed[16..].copy_from_slice(Uuid::new_v4().as_bytes());
    seed
}

pub(super) fn startup(file: &StartupFile) -> ExecuteRequest {
    let format = match file.mode {
        StartupMode::Import => Some(as_module(&file.path)),
        // A script even where modules are the default.
        StartupMode::Eval => Some(run_file_format(&file.path, false)),
    };
    without_arguments(ExecutionKind::Startup, Source::File { path: file.path.clone(), format })
}

/// An execution that no client has requested.
pub(super) fn without_arguments(kind: ExecutionKind, source: Source) -> ExecuteRequest {
    ExecuteRequest {
        id: ExecutionId::from_uuid(Uuid::now_v7()),
        kind,
        source,
        args: JsonText::empty_object(),
        env: Vec::new(),
        argv: Vec::new(),
        recorded_args: JsonText::empty_object(),
        recorded_env: JsonText::empty_object(),
        wait: true,
        collect_events: false,
        stored_first: false,
    }
}

fn as_module(path: &str) -> SourceFormat {
    match run_file_format(path, true) {
        SourceFormat::TypeScript | SourceFormat::TypeScriptModule => SourceFormat::TypeScriptModule,
        _ => SourceFormat::Module,
    }
}
