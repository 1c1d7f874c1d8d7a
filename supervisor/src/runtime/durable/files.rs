//! The calls of `fs` in durable programs, by the broker beneath the execution's worktree. What goes wrong is an answer
//! of the call (`null`, `false`, `[]`), as in the original.

use super::task::Place;
use crate::core::durable::HostWork;
use crate::runtime::task::Shared;
use crate::worktree::Worktree;
use serde_json::Value;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use vm_system_protocol::broker::{FsReply, FsRequest};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::json::JsonText;

/// Makes a call; JSON of its result, or the message of an `Error`.
pub(super) async fn call(
    shared: Arc<Shared>,
    session: SessionId,
    place: Place,
    work: HostWork,
) -> Result<JsonText, String> {
    if place.worktree.is_empty() {
        return Err("this execution has no worktree: start it with one to use files".to_owned());
    }
    let args = match work.call.args.to_value() {
        Some(Value::Array(args)) => args,
        _ => Vec::new(),
    };
    let path = PathBuf::from(&place.worktree);
    let roots = shared.roots.clone();
    let worktree = shared.files(move || Worktree::open(&path, &roots)).await;
    let worktree = worktree
        .ok_or("the supervisor is stopping")?
        .map_err(|error| format!("the worktree cannot be used: {error}"))?;
    let files = Files { shared, session, worktree, root: place.worktree };
    let result = match work.call.name.as_str() {
        "readFile" => files.read(&args).await,
        "listFiles" => files.list(&args).await,
        other => return Err(format!("fs.{other} is not available")),
    };
    Ok(JsonText::from_value(&result))
}

struct Files {
    shared: Arc<Shared>,
    session: SessionId,
    worktree: Worktree,
    root: String,
}

impl Files {
    /// A path as the broker takes it: relative to the worktree.
    fn relative(&self, path: &str) -> Option<String> {
        let path = match path.strip_prefix(self.root.trim_end_matches('/')) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/'),
            _ => path,
        };
        let path = path.trim_start_matches("./");
        (!path.starts_with('/')).then(|| if path.is_empty() { ".".to_owned() } else { path.to_owned() })
    }

    async fn ask(&self, request: FsRequest) -> Option<FsReply> {
        self.shared.brokers.call(self.session, self.worktree.as_fd(), request).await.ok()
    }

    async fn read(&self, args: &[Value]) -> Value {
        let Some(path) = args.first().and_then(Value::as_str).and_then(|path| self.relative(path)) else {
            return Value::Null;
        };
        match self.ask(FsRequest::ReadFile { path }).await {
            Some(FsReply::Bytes(bytes)) => match String::from_utf8(bytes) {
                Ok(text) => Value::from(text),
                Err(error) => Value::from(String::from_utf8_lossy(error.as_bytes()).into_owned()),
            },
            _ => Value::Null,
        }
    }

    async fn list(&self, _args: &[Value]) -> Value {
        Value::Array(Vec::new())
    }
}
