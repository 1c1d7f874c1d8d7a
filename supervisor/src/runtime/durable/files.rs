//! The calls of `fs` in durable programs, by the broker beneath the execution's worktree. What goes wrong is an answer
//! of the call (`null`, `false`, `[]`), as in the original.

use super::live::lock;
use super::task::Place;
use crate::brokers::Call;
use crate::core::durable::HostWork;
use crate::policy::{Permit, SessionUsage, Usage, judge};
use crate::runtime::task::Shared;
use crate::workspaces::{Workspace, Workspaces};
use crate::worktree::Worktree;
use serde_json::Value;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use vm_system_protocol::broker::{BrokerReply, FileKind, FsReply, FsRequest, WriteMode};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::FS_DIR_ENTRIES;
use vm_system_protocol::worker::HostRequest;

/// What an execution used of its files, counted as long as it has an owner task.
pub(super) type Used = Arc<Mutex<(Usage, SessionUsage)>>;

/// Makes a call; JSON of its result, or the message of an `Error`. An effect that was made before and is made again after a
/// crash leaves the same: a file is written whole.
pub(super) async fn call(
    shared: Arc<Shared>,
    (execution, session): (ExecutionId, SessionId),
    (place, used): (Place, Used),
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
    let files = Files { shared, execution, session, worktree, place, used };
    let result = match work.call.name.as_str() {
        "readFile" => files.read(&args).await,
        "listFiles" => files.list(&args).await,
        "writeFile" => Value::from(files.write(&args).await.is_some()),
        other => return Err(format!("fs.{other} is not available")),
    };
    Ok(JsonText::from_value(&result))
}

struct Files {
    shared: Arc<Shared>,
    execution: ExecutionId,
    session: SessionId,
    worktree: Worktree,
    place: Place,
    used: Used,
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
        match self.shared.brokers.call(self.session, call).await {
            Ok(BrokerReply::Fs(reply)) => Some(reply),
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
            Some(FsReply::Bytes(bytes)) => match String::from_utf8(bytes) {
                Ok(text) => Value::from(text),
                Err(error) => Value::from(String::from_utf8_lossy(error.as_bytes()).into_owned()),
            },
            _ => Value::Null,
        }
    }

    /// Paths beneath a folder, sorted, a folder before its content; links are left out.
    async fn list(&self, args: &[Value]) -> Value {
        let start = args.first().and_then(Value::as_str).unwrap_or(".");
        let Some(start) = self.relative(start) else { return Value::Array(Vec::new()) };
        let options = args.get(1);
        let recursive = options.and_then(|o| o.get("recursive")).is_some_and(|value| *value == true);
        let filter = options.and_then(|o| o.get("filter")).and_then(Value::as_str);
        let base = if start == "." { String::new() } else { format!("{}/", start.trim_end_matches('/')) };
        let (mut found, mut folders) = (Vec::new(), vec![String::new()]);
        while let Some(folder) = folders.pop() {
            let path = if folder.is_empty() { start.clone() } else { format!("{base}{folder}") };
            let Some(FsReply::Entries(entries)) = self.ask(FsRequest::ReadDir { path }).await else {
                continue;
            };
            for entry in entries {
                let relative =
                    if folder.is_empty() { entry.name.clone() } else { format!("{folder}/{}", entry.name) };
                match entry.kind {
                    FileKind::Directory if recursive => folders.push(relative.clone()),
                    FileKind::Directory | FileKind::File => {}
                    _ => continue,
                }
                if found.len() >= FS_DIR_ENTRIES {
                    return Value::Array(Vec::new());
                }
                if filter.is_none_or(|filter| glob(filter.as_bytes(), relative.as_bytes())) {
                    found.push(relative);
                }
            }
        }
        // A folder before its content: by the parts of the path, not by its bytes.
        found.sort_by(|a, b| a.split('/').cmp(b.split('/')));
        let root = self.place.worktree.trim_end_matches('/');
        found.into_iter().map(|path| Value::from(format!("{root}/{base}{path}"))).collect()
    }
}

/// Whether a path fits a pattern: `*` and `?` within a part of the path, `**` over parts. Looks back at most once for each
/// kind of star, so that the time is bounded by the product of both lengths.
fn glob(pattern: &[u8], path: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let mut stars: Option<(usize, usize)> = None;
    loop {
        if t == path.len() && pattern[p..].iter().all(|byte| *byte == b'*') {
            return true;
        }
        match pattern.get(p) {
            Some(b'*') if pattern.get(p + 1) == Some(&b'*') => {
                // `**/` is also nothing at all.
                p += if pattern.get(p + 2) == Some(&b'/') { 3 } else { 2 };
                (stars, star) = (Some((p, t)), None);
            }
            Some(b'*') => {
                p += 1;
                star = Some((p, t));
            }
            Some(b'?') if path.get(t).is_some_and(|byte| *byte != b'/') => (p, t) = (p + 1, t + 1),
            Some(byte) if path.get(t) == Some(byte) => (p, t) = (p + 1, t + 1),
            _ => match (star, stars) {
                (Some((back, from)), _) if path.get(from).is_some_and(|byte| *byte != b'/') => {
                    (p, t) = (back, from + 1);
                    star = Some((back, from + 1));
                }
                (_, Some((back, from))) if from < path.len() => {
                    (p, t) = (back, from + 1);
                    (stars, star) = (Some((back, from + 1)), None);
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn stars_stay_in_a_part_of_the_path_and_two_do_not() {
        let fits = |pattern: &str, path: &str| glob(pattern.as_bytes(), path.as_bytes());
        for (pattern, path) in [
            ("*.ts", "a.ts"),
            ("**/*.ts", "a.ts"),
            ("**/*.ts", "x/y/a.ts"),
            ("src/*/a?.js", "src/x/ab.js"),
            ("**", "x/y"),
            ("*", "x"),
            ("a*b*c", "aXbYbc"),
        ] {
            assert!(fits(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.ts", "x/a.ts"),
            ("*", "x/y"),
            ("a?c", "a/c"),
            ("src/*.js", "src/x/a.js"),
            ("", "a"),
            ("a", ""),
        ] {
            assert!(!fits(pattern, path), "{pattern} {path}");
        }
    }
}
