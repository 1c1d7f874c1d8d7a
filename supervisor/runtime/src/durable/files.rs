//! The calls of `fs` in durable programs, carried out by the broker beneath the execution's worktree. A missing or forbidden
//! file is a value (`null`, `false`, `[]`), as in the original; a call that failed for another reason throws an `Error`. A call
//! whose broker exited is repeated: its failure would be in the program's state for ever.

use super::filter::Filter;
use super::listing::Listing;
use super::live::lock;
use super::task::ProgramContext;
use crate::RuntimeError;
use crate::brokers::{AllowedCall, CallFailure};
use crate::memory::{Reservation, largest_reply};
use crate::shares::Holder;
use crate::task::{FilesError, RuntimeContext};
use crate::workspaces::{WorkspaceKey, Workspaces};
use crate::worktree::{Worktree, WorktreeError};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use vm_system_core::durable::{HostCallRequest, REFILL_MS};
use vm_system_policy::{EffectivePolicy, HostUsage, Permit, SessionUsage, from_host, judge};
use vm_system_protocol::broker::{BrokerCall, BrokerReply, FsReply, FsRequest, WriteMode};
use vm_system_protocol::control::ErrorCode;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::HOST_MESSAGE_BYTES;
use vm_system_protocol::worker::HostRequest;
use vm_system_record::{AuditEntry, RecordedWorktree, Write};

/// Longest time of a list, without the call for the last folder.
const LIST: Duration = Duration::from_mins(1);

/// How long a call without a reply is repeated: after repeated exits brokers are started again after a
/// minute ([`crate::brokers`]).
const RETRY_FOR: Duration = Duration::from_secs(90);
/// The first pause before a repetition, …
const PAUSE: Duration = Duration::from_millis(10);
/// … which doubles up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Errors of a broker about the path and the rights to it: missing or forbidden files. All others (an I/O
/// error, a full disk, no more descriptors, a call that the host forbids) are not about the file.
const ABOUT_THE_FILE: [&str; 11] = [
    "EACCES",
    "EBUSY",
    "EEXIST",
    "EFBIG",
    "EINVAL",
    "EISDIR",
    "ELOOP",
    "ENAMETOOLONG",
    "ENOENT",
    "ENOTDIR",
    "EROFS",
];

/// An execution's use of files and of the network: since the last submitted answer, and in total.
pub(super) type Used = Arc<Mutex<(HostUsage, SessionUsage)>>;

/// Restores limits of calls after a task that waited this long (milliseconds), in the same proportion as the other limits.
pub(super) fn give_back(used: &Used, policy: &EffectivePolicy, waited_ms: u64) {
    let share = |most: u64| {
        let waited = waited_ms.min(REFILL_MS);
        most / REFILL_MS * waited + most % REFILL_MS * waited / REFILL_MS
    };
    let mut used = lock(used);
    if let Some(rights) = &policy.fs {
        used.0.give_back("fs", share(u64::from(rights.max_calls)), share(rights.max_total_bytes));
    }
    if let Some(rights) = &policy.net {
        let (requests, bytes) = rights.most();
        used.0.give_back("http", share(requests.into()), share(bytes));
    }
}

/// Carries out a call; JSON of its result, or the message of an `Error`. An effect that is repeated after a
/// crash has the same result: files are written as a whole.
pub(super) async fn call(
    shared: Arc<RuntimeContext>,
    (execution, session): (ExecutionId, SessionId),
    context: ProgramContext,
    used: Used,
    reservation: Reservation,
    work: HostCallRequest,
) -> Result<JsonText, String> {
    if context.worktree.is_empty() {
        let why = "this execution has no worktree: to use files, start it with one (--worktree-path DIR; `worktree` of \
                   the tool `start`; `worktree_path` over REST)";
        return Err(why.to_owned());
    }
    let args = match work.call.args.to_value() {
        Some(Value::Array(args)) => args,
        _ => Vec::new(),
    };
    let opened = match &context.recorded {
        Some(recorded) => shared.reopen_worktree(recorded, &context.owner).await,
        None => shared.open_worktree(PathBuf::from(&context.worktree), &context.owner, None).await,
    };
    let worktree = match opened {
        Err(RuntimeError::ShuttingDown) => return stopping().await,
        Err(RuntimeError::Worktree(WorktreeError::OwnerGone(why))) => {
            return Err(format!("{}: {why}", ErrorCode::OwnerGone));
        }
        opened => opened.map_err(|error| format!("the worktree cannot be used: {error}"))?,
    };
    report_change(&shared, execution, &context, &worktree).await;
    let holder = shared.holder(&context.owner);
    let files = Files { shared, execution, session, worktree, context, used, reservation, holder };
    let result = match work.call.name.as_str() {
        "readFile" => files.read(&args).await?,
        "listFiles" => files.list(&args).await?,
        "writeFile" => Value::from(files.write(&args).await?),
        other => return Err(format!("fs.{other} is not available")),
    };
    Ok(JsonText::from_value(&result))
}

/// Reports once that another folder is at the recorded place. Its files are used: the rights decide, not which folder it is.
async fn report_change(
    shared: &RuntimeContext,
    execution: ExecutionId,
    context: &ProgramContext,
    worktree: &Worktree,
) {
    let handle = |recorded: Option<&Arc<RecordedWorktree>>| recorded.and_then(|found| found.handle.clone());
    let (then, now) = (handle(context.recorded.as_ref()), handle(worktree.recorded()));
    let changed = then.zip(now).is_some_and(|(then, now)| then != now);
    if !changed || context.reported.swap(true, Ordering::Relaxed) {
        return;
    }
    let (owner, path) = (&context.owner, &context.worktree);
    tracing::warn!(%execution, %owner, %path, "another folder is at the place of a program's worktree");
    let entry = AuditEntry {
        at: shared.store.now(),
        owner: owner.clone(),
        api: "supervisor".to_owned(),
        verb: "worktree open".to_owned(),
        subject: execution.to_string(),
        outcome: "FOLDER_CHANGED".to_owned(),
    };
    if let Err(error) = shared.store.for_owner(owner).apply(Write::Audit(Box::new(entry))).await {
        tracing::warn!(%execution, %error, "the changed folder is not in the audit log");
    }
}

/// The supervisor is stopping: the program gets no result, and repeats the call when it resumes.
async fn stopping<T>() -> T {
    std::future::pending().await
}

/// Longest text for a program, as JSON (bytes): the capacity of a message.
const TEXT_BYTES: usize = HOST_MESSAGE_BYTES - 4096;

/// Length of a text as JSON (bytes).
fn quoted(text: &str) -> usize {
    let more = |byte: u8| match byte {
        b'"' | b'\\' => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.len() + 2 + text.bytes().map(more).sum::<usize>()
}

struct Files {
    shared: Arc<RuntimeContext>,
    execution: ExecutionId,
    session: SessionId,
    worktree: Worktree,
    context: ProgramContext,
    used: Used,
    reservation: Reservation,
    holder: Holder,
}

impl Files {
    /// The path for the broker: relative to the worktree. A program may also name a file by its place outside of the sandbox.
    fn relative(&self, path: &str) -> String {
        let path = from_host(path, &self.context.worktree).unwrap_or(path);
        let path = path.trim_start_matches('/').trim_start_matches("./");
        if path.is_empty() { ".".to_owned() } else { path.to_owned() }
    }

    /// `None`: missing or forbidden. An error: the call could not be carried out.
    async fn request(&self, request: FsRequest) -> Result<Option<FsReply>, String> {
        let policy = &self.context.policy;
        let permit = {
            let mut used = lock(&self.used);
            let (usage, session) = &mut *used;
            judge(policy, HostRequest::Fs(request), usage, session)
        };
        let Ok(Permit::Broker(request)) = permit else { return Ok(None) };
        let held = self.shared.budget.wait(&self.holder, largest_reply(&request)).await;
        let reply = self.call_broker(request).await;
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
                    self.reservation.hold(held);
                }
                Ok(Some(reply))
            }
            Err(CallFailure::Refused(error)) if ABOUT_THE_FILE.contains(&error.code.as_str()) => Ok(None),
            Err(CallFailure::Refused(error) | CallFailure::Unanswered(error)) => Err(error.message),
            Ok(_) => Err("the broker's reply is not about files".to_owned()),
        }
    }

    /// The reply of a broker or of one of its successors: reading changes nothing, folders are created and files are
    /// written as a whole, so each call may be repeated.
    async fn call_broker(&self, request: BrokerCall) -> Result<BrokerReply, CallFailure> {
        let until = Instant::now() + RETRY_FOR;
        let mut pause = PAUSE;
        loop {
            let call = AllowedCall {
                execution: self.execution,
                request: request.clone(),
                write: self.context.policy.may_write_files(),
                worktree: self.worktree.clone(),
                // Programs have no databases.
                workspaces: Workspaces::default(),
                workspace: WorkspaceKey { owner: String::new(), id: String::new() },
                holder: self.holder.clone(),
            };
            match self.shared.brokers.call(self.session, call).await {
                Err(CallFailure::Unanswered(_)) if self.shared.brokers.is_stopped() => {
                    return stopping().await;
                }
                Err(CallFailure::Unanswered(error)) if Instant::now() + pause < until => {
                    tracing::debug!(session = %self.session, %error.message, "a file call is repeated");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                reply => return reply,
            }
        }
    }

    /// Creates missing folders; replaces an existing file. Returns whether the file is written.
    async fn write(&self, args: &[Value]) -> Result<bool, String> {
        let text = |i: usize| args.get(i).and_then(Value::as_str);
        let Some((path, data)) = text(0).map(|path| self.relative(path)).zip(text(1)) else {
            return Ok(false);
        };
        let data = data.as_bytes().to_vec();
        if let Some((folder, _)) = path.rsplit_once('/') {
            let folder = FsRequest::MakeDir { path: folder.to_owned(), recursive: true, mode: 0o777 };
            if self.request(folder).await?.is_none() {
                return Ok(false);
            }
        }
        let how = WriteMode { create: true, exclusive: false, truncate: true, append: false };
        Ok(self.request(FsRequest::Write { path, data, how, mode: 0o666 }).await?.is_some())
    }

    async fn read(&self, args: &[Value]) -> Result<Value, String> {
        let Some(path) = args.first().and_then(Value::as_str).map(|path| self.relative(path)) else {
            return Ok(Value::Null);
        };
        Ok(match self.request(FsRequest::ReadFile { path }).await? {
            Some(FsReply::Bytes(bytes)) => {
                let text = String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                if quoted(&text) > TEXT_BYTES { Value::Null } else { Value::from(text) }
            }
            _ => Value::Null,
        })
    }

    /// Paths beneath a folder, sorted, a folder before its content; without links, and without the content of folders that may
    /// not be read. A list that is too long or takes too long is empty.
    async fn list(&self, args: &[Value]) -> Result<Value, String> {
        let path = args.first().and_then(Value::as_str).unwrap_or(".");
        let filter = args.get(1).and_then(|o| o.get("filter")).and_then(Value::as_str).map(Filter::new);
        let whole = match filter {
            // An invalid pattern.
            Some(None) => None,
            filter => self.walk(self.relative(path), args.get(1), filter.flatten()).await?,
        };
        Ok(whole.unwrap_or_else(|| Value::Array(Vec::new())))
    }

    async fn walk(
        &self,
        start: String,
        options: Option<&Value>,
        filter: Option<Filter>,
    ) -> Result<Option<Value>, String> {
        let until = Instant::now() + LIST;
        let recursive = options.and_then(|o| o.get("recursive")).is_some_and(|value| *value == true);
        let base = if start == "." { String::new() } else { format!("{}/", start.trim_end_matches('/')) };
        let root = format!("{}/{base}", self.context.worktree.trim_end_matches('/'));
        let mut listing = Listing::new(root, recursive, filter);
        while let Some(folder) = listing.next_folder() {
            if Instant::now() >= until {
                return Ok(None);
            }
            let path = if folder.is_empty() { start.clone() } else { format!("{base}{folder}") };
            let Some(FsReply::Entries(entries)) = self.request(FsRequest::ReadDir { path }).await? else {
                continue;
            };
            let taken = self.work(move || listing.take(&folder, entries)).await?;
            let Some(more) = taken else { return Ok(None) };
            listing = more;
        }
        self.work(move || listing.finish()).await.map(Some)
    }

    async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
        match self.shared.files(&self.holder, work).await {
            Err(FilesError::Stopping) => stopping().await,
            result => result.map_err(|error| error.to_string()),
        }
    }
}
