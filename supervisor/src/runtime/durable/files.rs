//! The calls of `fs` in durable programs, by the broker beneath the execution's worktree. What goes wrong is an answer
//! of the call (`null`, `false`, `[]`), as in the original.

use super::filter::Filter;
use super::listing::Listing;
use super::live::lock;
use super::task::Place;
use crate::brokers::Call;
use crate::core::durable::{HostWork, REFILL_MS};
use crate::policy::{EffectivePolicy, Permit, SessionUsage, Usage, judge};
use crate::runtime::room::{Room, largest_answer};
use crate::runtime::task::Shared;
use crate::workspaces::{Workspace, Workspaces};
use crate::worktree::Worktree;
use serde_json::Value;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use vm_system_protocol::broker::{BrokerReply, FsReply, FsRequest, WriteMode};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::HOST_MESSAGE_BYTES;
use vm_system_protocol::worker::HostRequest;

/// A list takes at most so long, and the last folder's call.
const LIST: Duration = Duration::from_mins(1);

/// What an execution used of its files: since somebody else answered it, and in its life.
pub(super) type Used = Arc<Mutex<(Usage, SessionUsage)>>;

/// A question has ended: so much waiting (milliseconds) gives as much of the limits back as of all others.
pub(super) fn give_back(used: &Used, policy: &EffectivePolicy, waited_ms: u64) {
    let Some(rights) = &policy.fs else { return };
    let share = |most: u64| {
        let waited = waited_ms.min(REFILL_MS);
        most / REFILL_MS * waited + most % REFILL_MS * waited / REFILL_MS
    };
    let (calls, bytes) = (share(u64::from(rights.max_calls)), share(rights.max_total_bytes));
    lock(used).0.give_back("fs", calls, bytes);
}

/// Makes a call; JSON of its result, or the message of an `Error`. An effect that was made before and is made again after a
/// crash leaves the same: a file is written whole.
pub(super) async fn call(
    shared: Arc<Shared>,
    (execution, session): (ExecutionId, SessionId),
    (place, used, room): (Place, Used, Room),
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
    let files = Files { shared, execution, session, worktree, place, used, room };
    let result = match work.call.name.as_str() {
        "readFile" => files.read(&args).await,
        "listFiles" => files.list(&args).await,
        "writeFile" => Value::from(files.write(&args).await.is_some()),
        other => return Err(format!("fs.{other} is not available")),
    };
    Ok(JsonText::from_value(&result))
}

/// Longest text that a program is given, as JSON (bytes): what a message can carry.
const TEXT_BYTES: usize = HOST_MESSAGE_BYTES - 4096;

/// How long a text is as JSON (bytes).
fn quoted(text: &str) -> usize {
    let more = |byte: u8| match byte {
        b'"' | b'\\' => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.len() + 2 + text.bytes().map(more).sum::<usize>()
}

struct Files {
    shared: Arc<Shared>,
    execution: ExecutionId,
    session: SessionId,
    worktree: Worktree,
    place: Place,
    used: Used,
    room: Room,
}

impl Files {
    /// A path as the broker takes it: relative to the worktree.
    fn relative(&self, path: &str) -> Option<String> {
        let path = match path.strip_prefix(self.place.worktree.trim_end_matches('/')) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/'),
            _ => path,
        };
        let path = path.trim_start_matches("./");
        (!path.starts_with('/')).then(|| if path.is_empty() { ".".to_owned() } else { path.to_owned() })
    }

    /// `None`: it is not allowed, or it failed.
    async fn ask(&self, request: FsRequest) -> Option<FsReply> {
        let policy = &self.place.policy;
        let permit = {
            let mut used = lock(&self.used);
            let (usage, session) = &mut *used;
            judge(policy, HostRequest::Fs(request), usage, session)
        };
        let Ok(Permit::Broker(request)) = permit else { return None };
        let call = Call {
            execution: self.execution,
            request,
            access: policy.broker_access(),
            worktree: self.worktree.as_fd().try_clone_to_owned().ok()?,
            // Programs have no database.
            workspaces: Workspaces::default(),
            workspace: Workspace { owner: String::new(), id: String::new() },
        };
        let held = self.shared.rooms.wait(largest_answer(&call.request)).await;
        let reply = self.shared.brokers.call(self.session, call).await;
        let bytes = match &reply {
            Ok(BrokerReply::Fs(FsReply::Bytes(bytes))) => bytes.len(),
            Ok(BrokerReply::Fs(FsReply::Entries(entries))) => {
                entries.iter().map(|entry| entry.name.len()).sum()
            }
            _ => 0,
        };
        lock(&self.used).0.answered("fs", bytes as u64, reply.is_err());
        match reply {
            Ok(BrokerReply::Fs(reply)) => {
                if let FsReply::Bytes(_) = &reply {
                    self.room.hold(held);
                }
                Some(reply)
            }
            _ => None,
        }
    }

    /// Makes folders on the way; replaces what is there.
    async fn write(&self, args: &[Value]) -> Option<()> {
        let path = self.relative(args.first()?.as_str()?)?;
        let data = args.get(1)?.as_str()?.as_bytes().to_vec();
        if let Some((folder, _)) = path.rsplit_once('/') {
            let folder = FsRequest::MakeDir { path: folder.to_owned(), recursive: true, mode: 0o777 };
            self.ask(folder).await?;
        }
        let how = WriteMode { create: true, exclusive: false, truncate: true, append: false };
        self.ask(FsRequest::Write { path, data, how, mode: 0o666 }).await.map(drop)
    }

    async fn read(&self, args: &[Value]) -> Value {
        let Some(path) = args.first().and_then(Value::as_str).and_then(|path| self.relative(path)) else {
            return Value::Null;
        };
        match self.ask(FsRequest::ReadFile { path }).await {
            Some(FsReply::Bytes(bytes)) => {
                let text = String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                if quoted(&text) > TEXT_BYTES { Value::Null } else { Value::from(text) }
            }
            _ => Value::Null,
        }
    }

    /// Paths beneath a folder, sorted, a folder before its content; links are left out. A list that cannot be made whole
    /// is empty.
    async fn list(&self, args: &[Value]) -> Value {
        self.walk(args).await.unwrap_or_else(|| Value::Array(Vec::new()))
    }

    async fn walk(&self, args: &[Value]) -> Option<Value> {
        let until = Instant::now() + LIST;
        let start = self.relative(args.first().and_then(Value::as_str).unwrap_or("."))?;
        let options = args.get(1);
        let recursive = options.and_then(|o| o.get("recursive")).is_some_and(|value| *value == true);
        let filter = match options.and_then(|o| o.get("filter")).and_then(Value::as_str) {
            Some(pattern) => Some(Filter::new(pattern)?),
            None => None,
        };
        let base = if start == "." { String::new() } else { format!("{}/", start.trim_end_matches('/')) };
        let root = format!("{}/{base}", self.place.worktree.trim_end_matches('/'));
        let mut listing = Listing::new(root, recursive, filter);
        while let Some(folder) = listing.next_folder() {
            if Instant::now() >= until {
                return None;
            }
            let path = if folder.is_empty() { start.clone() } else { format!("{base}{folder}") };
            let Some(FsReply::Entries(entries)) = self.ask(FsRequest::ReadDir { path }).await else {
                continue;
            };
            listing = self.shared.files(move || listing.take(&folder, entries)).await??;
        }
        self.shared.files(move || listing.finish()).await
    }
}
