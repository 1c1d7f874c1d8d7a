//! A jail for a case, and orders to its workers.

use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionKind, Limits, Resolver};
use vm_system_protocol::worker::{Execute, FromWorker, Outcome, Policy, SourceFormat, Start, ToWorker};
use vm_system_spawn::{
    Received, SpawnConfig, SpawnEvent, Spawner, WorkerChannelError, WorkerHandle, WorkerKind, WorkerLimits,
};

/// Who has the workers.
pub(crate) const OWNER: &str = "uid:0";
pub(crate) const LIMITS: WorkerLimits = WorkerLimits { memory_bytes: 64 << 20, cpu: None };

pub(crate) fn session(number: u8) -> SessionId {
    SessionId::from_bytes([number; 16])
}

pub(crate) async fn embedded() -> (Spawner, Receiver<SpawnEvent>) {
    Spawner::start(SpawnConfig::embedded()).await.expect("a jail")
}

pub(crate) async fn started(spawner: &Spawner, number: u8) -> WorkerHandle {
    spawner.spawn_worker(session(number), OWNER, &LIMITS, &WorkerKind::plain()).await.expect("a worker")
}

pub(crate) fn start(number: u8) -> ToWorker {
    let limits = Limits::default();
    ToWorker::Start(Box::new(Start { session: session(number), limits, random_seed: [0; 32], console: true }))
}

pub(crate) fn order(source: impl Into<String>) -> ToWorker {
    let policy = Policy {
        limits: Limits::default(),
        resolver: Resolver::default(),
        strict: false,
        modules: Vec::new(),
        refused_modules: Vec::new(),
        disabled_globals: Vec::new(),
    };
    ToWorker::Execute(Box::new(Execute {
        execution: ExecutionId::from_bytes([7; 16]),
        kind: ExecutionKind::Repl,
        source: source.into(),
        file_name: "repl".to_owned(),
        format: SourceFormat::Script,
        args: JsonText::empty_object(),
        env: Vec::new(),
        argv: Vec::new(),
        policy,
    }))
}

pub(crate) async fn next(worker: &mut WorkerHandle) -> Result<Received, WorkerChannelError> {
    let patience = Duration::from_secs(30);
    timeout(patience, worker.receiver.recv()).await.expect("a worker replies within 30 s")
}

/// Sends an order and returns the text of its end; events before it are acknowledged and dropped.
pub(crate) async fn obey(
    worker: &mut WorkerHandle,
    source: impl Into<String>,
) -> Result<String, WorkerChannelError> {
    worker.sender.send(&order(source)).await?;
    loop {
        let received = next(worker).await?;
        worker.sender.send(&ToWorker::Ack { seq: received.seq }).await?;
        if let FromWorker::Done(done) = received.message {
            let Outcome::Exception { message } = done.outcome else { panic!("{:?}", done.outcome) };
            return Ok(message);
        }
    }
}

pub(crate) async fn event(events: &mut Receiver<SpawnEvent>) -> SpawnEvent {
    let patience = Duration::from_secs(10);
    timeout(patience, events.recv()).await.expect("an event within 10 s").expect("the jail still reports")
}
