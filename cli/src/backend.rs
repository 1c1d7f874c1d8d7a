//! The target of verbs: a daemon behind its socket, or a supervisor that is embedded in this process.

use crate::client::{CallError, Connection, OnEvents};
use crate::error::{CliError, exit};
use crate::target::DaemonTarget;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Mutex;
use vm_system_daemon::Embedded;
use vm_system_protocol::control::{Op, Reply, Verb};

/// Batches of events that may wait until this process has printed them.
const QUEUED_BATCHES: usize = 16;

/// The target of verbs.
pub(crate) enum Backend {
    /// A daemon; connections are opened on demand and reused for later verbs.
    Daemon {
        target: DaemonTarget,
        idle: Mutex<Option<Connection>>,
        /// Executions for which this process waits are cancelled when it disconnects.
        cancel_on_disconnect: AtomicBool,
    },
    /// A supervisor that is embedded in this process.
    Embedded(Arc<Embedded>),
}

impl Backend {
    pub(crate) fn daemon(target: DaemonTarget) -> Self {
        Self::Daemon { target, idle: Mutex::new(None), cancel_on_disconnect: AtomicBool::new(false) }
    }

    /// Chooses what becomes of executions for which this process waits when it disconnects.
    pub(crate) fn cancel_on_disconnect(&self, cancel: bool) {
        if let Self::Daemon { cancel_on_disconnect, .. } = self {
            cancel_on_disconnect.store(cancel, Ordering::Relaxed);
        }
    }

    /// Runs one verb. Several may run at a time.
    pub(crate) async fn call<V: Verb>(&self, verb: V, key: Option<String>) -> Result<V::Reply, CliError> {
        self.call_following(verb, key, &mut |_| Ok(())).await.map_err(explain)
    }

    /// Who listens at the socket of the last verb.
    pub(crate) async fn listener(&self) -> Option<u32> {
        match self {
            Self::Daemon { idle, .. } => idle.lock().await.as_ref().and_then(Connection::listener),
            Self::Embedded(_) => None,
        }
    }

    /// Runs one verb and follows its events.
    pub(crate) async fn call_following<V: Verb>(
        &self,
        verb: V,
        key: Option<String>,
        on_events: OnEvents<'_>,
    ) -> Result<V::Reply, CallError> {
        let reply = self.send(verb.into(), key, on_events).await?;
        V::reply_from(reply).map_err(|other| CallError::Lost(other.to_string()))
    }

    async fn send(&self, op: Op, key: Option<String>, on_events: OnEvents<'_>) -> Result<Reply, CallError> {
        match self {
            Self::Daemon { target, idle, cancel_on_disconnect } => {
                let kept = idle.lock().await.take();
                let mut open = None;
                if let Some(mut connection) = kept
                    && connection.is_open().await
                {
                    open = Some(connection);
                }
                let mut connection = match open {
                    Some(connection) => connection,
                    None => Connection::open(target).await.map_err(CallError::Own)?,
                };
                let op = (op, cancel_on_disconnect.load(Ordering::Relaxed));
                let result = connection.call(op, key, on_events).await;
                if matches!(result, Ok(_) | Err(CallError::Op(_))) {
                    *idle.lock().await = Some(connection);
                }
                result
            }
            Self::Embedded(embedded) => call_embedded(embedded, op, key, on_events).await,
        }
    }
}

async fn call_embedded(
    embedded: &Arc<Embedded>,
    op: Op,
    key: Option<String>,
    on_events: OnEvents<'_>,
) -> Result<Reply, CallError> {
    let (follower, mut events) = Embedded::follower(QUEUED_BATCHES);
    let embedded = Arc::clone(embedded);
    // A separate task, so that the supervisor continues while stdout blocks.
    let work = tokio::spawn(async move { embedded.handle(op, key, follower).await });
    while let Some(batch) = events.recv().await {
        on_events(batch.events).map_err(CallError::Own)?;
    }
    match work.await {
        Ok(result) => result.map_err(|error| CallError::Op(Box::new(error))),
        Err(failure) => {
            Err(CallError::Own(CliError::internal(format!("the embedded supervisor failed: {failure}"))))
        }
    }
}

/// A failed call as an error for people.
pub(crate) fn explain(error: CallError) -> CliError {
    match error {
        CallError::Op(error) => CliError::from(*error),
        CallError::Own(error) => error,
        CallError::Lost(why) => CliError::new(
            exit::NO_DAEMON,
            format!("the connection to the supervisor broke: {why}"),
        )
        .with_hint(
            "if it stopped, its log has the reason; `--idempotency-key` makes it safe to repeat a request",
        ),
    }
}
