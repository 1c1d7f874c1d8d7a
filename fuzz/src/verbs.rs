//! The verbs on a store in a temporary folder and on a runtime without processes, in which no session is live; and a handler that
//! refuses every verb, for the code before the verbs.

use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use vm_system_core::durable::SubmittedAnswer;
use vm_system_core::{ExecuteRequest, SessionRequest};
use vm_system_ops::{Caller, ClientPresence, IdempotencyKey, Ops, OpsOptions, VerbHandler, VerbRequest};
use vm_system_protocol::control::{DoctorReport, ErrorCode, Op, OpError, Reply, UpgradeReport, Verb};
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::model::{Execution, Session, SessionCheckpoint, SessionInspection};
use vm_system_record::{Owner, PolicySnapshot};
use vm_system_runtime::client_memory::ReplyMemory;
use vm_system_runtime::shares::Holder;
use vm_system_runtime::{
    CreateSession, DrainChange, Follower, ForkSession, RuntimeApi, RuntimeCondition, RuntimeError,
    RuntimeFacts,
};
use vm_system_spawn::Library;
use vm_system_spawn::libraries::LibraryStore;
use vm_system_store::{BoxFuture, open_temporary};

/// A runtime in which nothing is live.
struct NoRuntime;

fn not_live<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, RuntimeError>> {
    Box::pin(std::future::ready(Err(RuntimeError::NotLive)))
}

impl RuntimeApi for NoRuntime {
    fn create_session(&self, _: CreateSession) -> BoxFuture<'_, Result<Session, RuntimeError>> {
        not_live()
    }
    fn fork_session(&self, _: ForkSession) -> BoxFuture<'_, Result<Vec<Session>, RuntimeError>> {
        not_live()
    }
    fn checkpoint_session(
        &self,
        _: SessionId,
        _: Option<String>,
    ) -> BoxFuture<'_, Result<SessionCheckpoint, RuntimeError>> {
        not_live()
    }
    fn checkpoints(&self, _: SessionId) -> BoxFuture<'_, Result<Vec<SessionCheckpoint>, RuntimeError>> {
        not_live()
    }
    fn delete_checkpoint(&self, _: SessionId, _: String) -> BoxFuture<'_, Result<(), RuntimeError>> {
        not_live()
    }
    fn request(&self, _: SessionId, _: SessionRequest) -> BoxFuture<'_, Result<Session, RuntimeError>> {
        not_live()
    }
    fn check_library(&self, _: Owner, _: Library) -> BoxFuture<'_, Result<Result<(), String>, RuntimeError>> {
        not_live()
    }
    fn close_session(&self, _: SessionId) -> BoxFuture<'_, Result<Option<Session>, RuntimeError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
    fn kill_session(&self, _: SessionId, _: i32) -> BoxFuture<'_, Result<(), RuntimeError>> {
        not_live()
    }
    fn inspect_session(
        &self,
        _: SessionId,
        _: Holder,
    ) -> BoxFuture<'_, Result<SessionInspection, RuntimeError>> {
        not_live()
    }
    fn execute(
        &self,
        _: SessionId,
        _: Box<ExecuteRequest>,
        _: Option<Arc<PolicySnapshot>>,
        _: Option<Follower>,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        not_live()
    }
    fn is_suspended(&self, _: SessionId) -> bool {
        false
    }
    fn repeat_input(
        &self,
        _: SessionId,
        _: Box<ExecuteRequest>,
        _: Option<Arc<PolicySnapshot>>,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        not_live()
    }
    fn builds(&self, _: DrainChange) -> BoxFuture<'_, UpgradeReport> {
        Box::pin(async { UpgradeReport { drain_at: None, builds: Vec::new(), unreached: Vec::new() } })
    }
    fn submit_answer(
        &self,
        _: ExecutionId,
        _: (Option<TaskId>, SubmittedAnswer),
        _: bool,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        not_live()
    }
    fn cancel_execution(&self, _: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn abandon_execution(&self, _: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn follow(&self, _: ExecutionId, _: u64, _: Follower) -> BoxFuture<'_, Option<()>> {
        Box::pin(std::future::ready(None))
    }
    fn session_owner(&self, _: SessionId) -> Option<Owner> {
        None
    }
    fn live_sessions(&self) -> Vec<SessionId> {
        Vec::new()
    }
    fn degraded(&self, _: ExecutionId) -> Option<Arc<Execution>> {
        None
    }
    fn condition(&self) -> RuntimeCondition {
        RuntimeCondition::default()
    }
    fn facts(&self, _: Option<&Owner>) -> RuntimeFacts {
        RuntimeFacts::default()
    }
    fn doctor(&self, _: Option<&Owner>) -> BoxFuture<'_, DoctorReport> {
        let (kernel, layers, host) = (String::new(), Vec::new(), Vec::new());
        Box::pin(std::future::ready(DoctorReport {
            kernel,
            ok: true,
            problem: None,
            layers,
            host,
            stuck: Vec::new(),
        }))
    }
}

/// The verbs with an empty store.
pub fn ops() -> Ops {
    let store = open_temporary().expect("a temporary folder can be made");
    let stop = CancellationToken::new();
    Ops::new(store, Arc::new(NoRuntime), OpsOptions::default(), LibraryStore::in_memory(), stop)
}

/// A client without rights of an administrator.
pub fn caller() -> Caller {
    Caller { owner: Owner::new("uid:1000"), admin: false, api: "control" }
}

/// One verb, as an API runs it.
pub async fn run(ops: &Ops, op: Op, key: Option<String>) -> Result<Reply, OpError> {
    ops.handle(VerbRequest {
        presence: ClientPresence::default(),
        caller: caller(),
        idempotency_key: key.as_deref().map(IdempotencyKey::parse).transpose()?,
        op,
        events: None,
        memory: ReplyMemory::default(),
    })
    .await
}

/// As [`run`], of one verb without a key.
pub async fn call<V: Verb>(ops: &Ops, verb: V) -> Result<V::Reply, OpError> {
    Ok(V::reply_from(run(ops, verb.into(), None).await?)?)
}

/// Refuses every verb.
#[derive(Debug)]
pub struct NoVerbs;

impl VerbHandler for NoVerbs {
    fn handle(&self, _: VerbRequest) -> BoxFuture<'_, Result<Reply, OpError>> {
        Box::pin(std::future::ready(Err(OpError::new(ErrorCode::NotFound, "nothing is here"))))
    }
}
