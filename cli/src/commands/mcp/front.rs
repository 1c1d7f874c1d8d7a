//! The backend of an agent on standard streams: runs verbs through the control socket, on several connections if needed. After
//! a lost connection the request is repeated on a new one with the same key, so that it does not run twice.

use super::files::Files;
use super::workspace::Workspace;
use crate::client::{CallError, Connection};
use crate::error::{CliError, exit};
use crate::hints::with_options;
use crate::on_demand::{self, Starter};
use crate::program_files;
use crate::reconnect::Reconnect;
use crate::target::DaemonTarget;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use uuid::Uuid;
use vm_system_api::mcp::{
    self, CLIENT_CHARS, Extensions, FileRefusal, McpBackend, McpClient, ToolSets, VerbFuture,
};
use vm_system_ops::IdempotencyKey;
use vm_system_protocol::control::{ErrorCode, Op, OpError, ProgramLoad, Reply};
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;

/// Most connections of one agent.
const CONNECTIONS: usize = 8;
/// Most connections in a row that break soon after a request was sent: it may be the request that ends the daemon.
const TRIES: usize = 10;
/// A connection that lasted longer than this breaks for a reason of its own.
const SOON: Duration = Duration::from_secs(5);

/// The backend of one agent.
pub(super) struct StdioFront {
    client: McpClient,
    target: DaemonTarget,
    starter: Option<Arc<Starter>>,
    files: Files,
    worktree: Option<String>,
    workspace: Workspace,
    idle: Mutex<Vec<Connection>>,
    slots: Semaphore,
    /// How long to connect again to a daemon that was reachable.
    patience: Duration,
    was_reached: AtomicBool,
}

/// The key of a named client's current execution.
pub(crate) fn key_of_client(name: &str) -> Result<String, CliError> {
    let invalid =
        || CliError::usage(format!("the name of a client has 1 to {CLIENT_CHARS} printable characters"));
    mcp::key_of_client(name).ok_or_else(invalid)
}

impl StdioFront {
    pub(super) fn new(
        (client, toolsets): (Option<String>, ToolSets),
        (target, patience): (DaemonTarget, Duration),
        starter: Option<Starter>,
        files: Files,
        worktree: Option<String>,
        workspace: Workspace,
    ) -> Result<Self, CliError> {
        let client = match client {
            Some(name) => key_of_client(&name)?,
            None => format!("run {}", Uuid::new_v4()),
        };
        Ok(Self {
            client: McpClient { key: Some(client), toolsets, ..McpClient::default() },
            target,
            starter: starter.map(Arc::new),
            files,
            worktree,
            workspace,
            idle: Mutex::default(),
            slots: Semaphore::new(CONNECTIONS),
            patience,
            was_reached: AtomicBool::new(false),
        })
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connection(&self) -> Result<Connection, CliError> {
        let kept = self.kept().pop();
        match (kept, &self.starter) {
            (Some(connection), _) => Ok(connection),
            (None, Some(starter)) => on_demand::connect(&self.target, starter).await,
            (None, None) => Connection::open(&self.target).await,
        }
    }

    async fn call(&self, op: Op, key: IdempotencyKey) -> Result<Reply, OpError> {
        // The semaphore is never closed.
        let _slot = self.slots.acquire().await;
        let mut lost = String::new();
        let mut reconnect = Reconnect::new(self.patience);
        let mut tries = 0;
        while tries < TRIES {
            let mut connection = match self.connection().await {
                Ok(connection) => connection,
                // A daemon that never responded is not waited for.
                Err(error) => {
                    if self.was_reached.load(Ordering::Relaxed) && reconnect.open_again(&error).await {
                        continue;
                    }
                    return Err(op_error(&error));
                }
            };
            self.was_reached.store(true, Ordering::Relaxed);
            reconnect.reached();
            let sent = Instant::now();
            tries += 1;
            let request = (op.clone(), mcp::is_waited_for(&op));
            match connection.call(request, Some(key.to_string()), |_| Ok(())).await {
                Ok(reply) => {
                    self.kept().push(connection);
                    return Ok(reply);
                }
                Err(CallError::Op(error)) if error.code == ErrorCode::ShuttingDown => lost = error.message,
                Err(CallError::Op(error)) => {
                    self.kept().push(connection);
                    return Err(*error);
                }
                Err(CallError::Lost(why)) => lost = why,
                Err(CallError::Own(error)) => return Err(op_error(&error)),
            }
            // The idle connections lead to the same daemon.
            self.kept().clear();
            if sent.elapsed() > SOON {
                tries = 0;
            }
        }
        let message = format!(
            "the connection to the daemon broke {TRIES} times, each time soon after this request: {lost}"
        );
        Err(OpError::new(ErrorCode::ShuttingDown, message))
    }
}

/// An error of this process, as the error of a tool call.
fn op_error(error: &CliError) -> OpError {
    let code = match error.exit_code() {
        exit::NOT_PERMITTED => ErrorCode::NotPermitted,
        exit::NO_DAEMON | exit::BUSY => ErrorCode::ShuttingDown,
        exit::USAGE | exit::FAILED => ErrorCode::ValidationError,
        _ => ErrorCode::Internal,
    };
    let message = match error.hint() {
        Some(hint) => format!("{error} ({})", with_options(hint)),
        None => error.to_string(),
    };
    OpError::new(code, message)
}

impl McpBackend for StdioFront {
    fn client(&self, _: &Extensions) -> Result<McpClient, String> {
        Ok(self.client.clone())
    }

    fn perform<'a>(
        &'a self,
        _: &'a McpClient,
        op: Op,
        key: IdempotencyKey,
    ) -> VerbFuture<'a, Result<Reply, OpError>> {
        Box::pin(self.call(op, key))
    }

    fn read(&self, path: &Path, most: usize) -> Result<String, FileRefusal> {
        self.files.read(path, most)
    }

    fn read_program(&self, path: &Path, most: usize) -> Result<ProgramLoad, FileRefusal> {
        let source = self.files.read(path, most)?;
        program_files::gather(path, source, most, |file, most| self.files.read(file, most))
            .map_err(FileRefusal::from)
    }

    fn reads_files(&self) -> bool {
        true
    }

    fn worktree(&self) -> Option<String> {
        self.worktree.clone()
    }

    fn kept(&self, name: &str, most: usize) -> Result<Option<String>, FileRefusal> {
        self.workspace.kept(name, most)
    }

    fn keep(&self, name: &str, text: &str) -> Result<String, FileRefusal> {
        self.workspace.keep(name, text, CONTROL_FRAME_BYTES)
    }
}
