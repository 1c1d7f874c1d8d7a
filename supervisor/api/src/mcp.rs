//! The MCP API, for agents: the Model Context Protocol over standard streams and over HTTP, in the generations that the SDK
//! knows (with and without `initialize`). A thin adapter: each tool is a few verbs, and what a verb does is decided in
//! [`ops`](vm_system_ops), for this API as for the others.
//!
//! The same tools serve both transports; what differs between them is a [`McpBackend`]: identifies the client, runs verbs, and reads
//! the client's files. Every client is treated as clumsy or hostile: sizes and counts are bounded, and an invalid message
//! gets an error of JSON-RPC wherever a response is possible.
//!
//! Reading order:
//! - `server`: requests of the protocol → tools, prompts, resources
//! - `tools`: the table of tools; below it one file for each noun
//! - `call`, `output`, `views`, `schema`: one call of a tool, its result, the types of results, JSON Schema
//! - `confirm`: confirmation of deletions; `prompts`, `resources`: the prompts and documents
//! - `watch`: notifications of changed executions; `background`: executions as tasks of the protocol's extension
//! - [`lines`]: messages over standard streams; `http`: over HTTP

mod background;
mod call;
mod confirm;
pub(crate) mod http;
pub mod lines;
mod output;
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
pub use tools::reference;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use vm_system_ops::Caller;
use vm_system_protocol::control::{Op, OpError, Reply};

/// The future of a method of a trait object.
pub type VerbFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The client that calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpClient {
    /// The principal; none where the backend's own connection determines it.
    pub caller: Option<Caller>,
    /// Distinguishes the clients of one owner: each has a current execution of its own. None: it cannot be distinguished from
    /// others and has no current execution; a shared one would submit the answers of one agent to the program of another.
    pub key: Option<String>,
}

/// Most characters of a client's name.
pub const CLIENT_CHARS: usize = 150;

/// What the current execution of a client that was given a name is kept under; none if the name is empty or too long.
pub fn key_of_client(name: &str) -> Option<String> {
    let name = name.trim();
    let fits = !name.is_empty() && name.chars().count() <= CLIENT_CHARS;
    fits.then(|| format!("client {name}"))
}

/// What differs between the transports. By default it has no files of the client.
pub trait McpBackend: Send + Sync + 'static {
    /// The client, from the extensions that the transport added to the request; the error is the reason of a refusal.
    fn client(&self, beside: &Extensions) -> Result<McpClient, String>;

    /// Runs one verb. `key` makes it safe to repeat the request after a broken connection.
    fn perform<'a>(
        &'a self,
        client: &'a McpClient,
        op: Op,
        key: String,
    ) -> VerbFuture<'a, Result<Reply, OpError>>;

    /// Reads a text file with the client's own rights, wherever it may name files; why not.
    fn read(&self, path: &Path, _most: usize) -> Result<String, FileRefusal> {
        Err(FileRefusal::Denied(path.display().to_string()))
    }

    /// Whether [`McpBackend::read`] reads anything at all.
    fn reads_files(&self) -> bool {
        false
    }

    /// The folder that the client works in: programs may use its files.
    fn worktree(&self) -> Option<String> {
        None
    }

    /// Text of a file among the data of the client's workspace, as [`McpBackend::keep`] names them; none if it is not there.
    fn kept(&self, name: &str, _most: usize) -> Result<Option<String>, FileRefusal> {
        Err(FileRefusal::Denied(name.to_owned()))
    }

    /// Keeps a text there, whole or not at all; what had the name before has it with `.bak` behind it. Returns its path.
    fn keep(&self, name: &str, _text: &str) -> Result<String, FileRefusal> {
        Err(FileRefusal::Denied(name.to_owned()))
    }
}

/// Serves one client on a pair of streams until it leaves.
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
        Err(error) => tracing::debug!(%error, "a client left before it began"),
    }
}

/// A file is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileRefusal {
    /// There is none.
    #[error("File not found: {0}")]
    NotFound(String),
    /// The client may not read it, or it lies outside of the folders that may be named.
    #[error("Permission denied: {0}")]
    Denied(String),
    /// It is not a text file of a sane size.
    #[error("{0}")]
    Unfit(String),
}
