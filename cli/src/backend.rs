//! Who answers verbs: the daemon behind its socket, or a supervisor of our own inside this process.

use crate::client::{CallError, Connection, OnEvents};
use crate::error::{CliError, exit};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::sync::mpsc;
use vm_system_daemon::Embedded;
use vm_system_protocol::control::{Op, Reply};

/// Batches of events that may wait for our output.
const QUEUED_BATCHES: usize = 16;

/// Who answers verbs.
pub(crate) enum Backend {
    /// A daemon; connections are made when they are needed and kept for the next verb.
    Daemon { places: Vec<PathBuf>, idle: Mutex<Option<Connection>> },
    /// A supervisor in this process.
    Embedded(Arc<Embedded>),
}

impl Backend {
    pub(crate) fn daemon(places: Vec<PathBuf>) -> Self {
        Self::Daemon { places, idle: Mutex::new(None) }
    }

    /// Does one verb. Several may be under way at a time.
    pub(crate) async fn call(&self, op: Op, key: Option<String>) -> Result<Reply, CliError> {
        self.call_following(op, key, &mut |_| Ok(())).await.map_err(explain)
    }

    /// Does one verb whose events are followed.
    pub(crate) async fn call_following(
        &self,
        op: Op,
        key: Option<String>,
        on_events: OnEvents<'_>,
    ) -> Result<Reply, CallError> {
        match self {
            Self::Daemon { places, idle } => {
                let kept = idle.lock().await.take();
                let mut connection = match kept {
                    Some(connection) => connection,
                    None => Connection::open(places).await.map_err(CallError::Own)?,
                };
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
    let (sender, mut events) = mpsc::channel(QUEUED_BATCHES);
    let embedded = Arc::clone(embedded);
    // A task of its own, so that the supervisor goes on while our output waits for its reader.
    let work = tokio::spawn(async move { embedded.handle(op, key, sender).await });
    while let Some(batch) = events.recv().await {
        on_events(batch).map_err(CallError::Own)?;
    }
    match work.await {
        Ok(result) => result.map_err(|error| CallError::Op(Box::new(error))),
        Err(failure) => {
            Err(CallError::Own(CliError::internal(format!("the embedded supervisor failed: {failure}"))))
        }
    }
}

/// A failed call for people.
pub(crate) fn explain(error: CallError) -> CliError {
    match error {
        CallError::Op(error) => CliError::from(*error),
        CallError::Own(error) => error,
        CallError::Lost(why) => {
            CliError::new(exit::NO_DAEMON, format!("the connection to the supervisor broke: {why}"))
                .with_hint(
                    "did it stop? its log says why; `--idempotency-key` makes it safe to repeat a request",
                )
        }
    }
}
