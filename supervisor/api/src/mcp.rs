//! The MCP API, for agents: the Model Context Protocol over standard streams and over HTTP, in the generations that the SDK
//! supports (with and without `initialize`). A thin adapter: each tool runs a few verbs, which [`ops`](vm_system_ops)
//! implements for all APIs.
//!
//! Both transports have the same tools; each has a [`McpBackend`], which identifies the client, runs verbs, and reads the
//! client's files. Every client is treated as clumsy or hostile: sizes and counts are bounded, and an invalid message
//! gets an error of JSON-RPC wherever a response is possible.
//!
//! Reading order:
//! - `server`: requests of the protocol → tools, prompts, resources
//! - `tools`: the table of tools; below it one file per noun
//! - `call`, `output`, `views`, `schema`: one call of a tool, its result, the types of results, JSON Schema
//! - `lists`: parts of lists, and their filters
//! - `outcome`: what an execution has come to, as text
//! - `evaluations`: cancelled evaluations that still occupy their session
//! - `given`: the task that each client was last given; `per_owner`: the bounded list of it and of `confirm`
//! - `confirm`: confirmation of deletions; `prompts`, `resources`: the prompts and documents; `completions`: of their arguments
//! - `watch`: notifications of changed executions; `background`: executions as tasks of the protocol's extension
//! - [`lines`]: messages over standard streams; `http`: over HTTP

mod background;
mod call;
mod completions;
mod confirm;
mod evaluations;
mod given;
pub mod http;
pub mod lines;
mod lists;
mod outcome;
mod output;
mod per_owner;
mod prompts;
mod resources;
mod schema;
mod server;
#[cfg(test)]
mod tests;
#[allow(clippy::doc_markdown, reason = "comments of these types are the descriptions that agents read")]
mod tools;
#[allow(clippy::doc_markdown, reason = "comments of these types are the descriptions that agents read")]
mod views;
mod watch;

pub use rmcp::model::Extensions;
pub use server::McpServer;
pub use tools::{ToolSets, reference};

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use vm_system_ops::{Caller, IdempotencyKey, is_printable};
use vm_system_protocol::control::{Op, OpError, ProgramLoad, Reply};

/// The future of a method of a trait object.
pub type VerbFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whether an agent waits for an execution in a session by this verb, so that the execution ends with an agent that goes.
pub fn is_waited_for(op: &Op) -> bool {
    match op {
        Op::ExecWait(_) => true,
        Op::TaskSubmit(submit) => submit.wait,
        _ => false,
    }
}

/// The client that calls a tool.
#[derive(Debug, Clone, Default)]
pub struct McpClient {
    /// The principal; none if the backend's connection determines it.
    pub caller: Option<Caller>,
    /// Distinguishes the clients of one owner: each has its own current execution. None: a client that cannot be distinguished
    /// from others has no current execution, because a shared one would pass answers of one agent to the program of another.
    pub key: Option<String>,
    /// The tools that are listed for it.
    pub toolsets: ToolSets,
    /// Cancelled when the client has gone, if the backend's connection does not show it.
    pub gone: CancellationToken,
}

/// Most characters of a client's name.
pub const CLIENT_CHARS: usize = 150;

/// The key of a named client's current execution; none if the name is empty, too long, or has characters that are not printable: the
/// verbs refuse such a key, some of them after an effect.
pub fn key_of_client(name: &str) -> Option<String> {
    let name = name.trim();
    let fits = !name.is_empty() && name.chars().count() <= CLIENT_CHARS && name.chars().all(is_printable);
    fits.then(|| format!("client {name}"))
}

/// The part that differs between the transports. By default without access to files of the client.
pub trait McpBackend: Send + Sync + 'static {
    /// The client, from the extensions that the transport added to the request; the error is the reason of a refusal.
    fn client(&self, beside: &Extensions) -> Result<McpClient, String>;

    /// Runs one verb. `key` makes it safe to repeat the request after a broken connection.
    fn perform<'a>(
        &'a self,
        client: &'a McpClient,
        op: Op,
        key: IdempotencyKey,
    ) -> VerbFuture<'a, Result<Reply, OpError>>;

    /// Reads a text file with the client's own rights, if the client may name it.
    fn read(&self, path: &Path, _most: usize) -> Result<String, FileRefusal> {
        Err(FileRefusal::Denied(path.display().to_string()))
    }

    /// Reads a program's file and the files that it imports, with the client's own rights, if the client may name them.
    fn read_program(&self, path: &Path, _most: usize) -> Result<ProgramLoad, FileRefusal> {
        Err(FileRefusal::Denied(path.display().to_string()))
    }

    /// Whether [`McpBackend::read`] is supported.
    fn reads_files(&self) -> bool {
        false
    }

    /// The folder that the client works in: programs may use its files.
    fn worktree(&self) -> Option<String> {
        None
    }

    /// Reads a file that [`McpBackend::keep`] stored in the client's workspace; none if it does not exist.
    fn kept(&self, name: &str, _most: usize) -> Result<Option<String>, FileRefusal> {
        Err(FileRefusal::Denied(name.to_owned()))
    }

    /// Stores a text in the client's workspace, atomically; a previous file is kept with the suffix `.bak`. Returns the path.
    fn keep(&self, name: &str, _text: &str) -> Result<String, FileRefusal> {
        Err(FileRefusal::Denied(name.to_owned()))
    }
}

/// Serves one client on a pair of streams until it disconnects.
pub async fn serve<R, W>(backend: Arc<dyn McpBackend>, client: lines::LineTransport<R, W>)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    match rmcp::serve_server(McpServer::new(backend), client).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::error!(%error, "the service of a client failed");
            }
        }
        Err(error) => tracing::debug!(%error, "a client disconnected before its first request"),
    }
}

/// Why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileRefusal {
    /// The file does not exist.
    #[error("File not found: {0}")]
    NotFound(String),
    /// The client may not read the file, or the file is outside of the readable folders.
    #[error("Permission denied: {0}")]
    Denied(String),
    /// The file is not UTF-8 text, or too large.
    #[error("{0}")]
    Unfit(String),
}
