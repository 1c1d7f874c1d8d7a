//! The decision about one host call: its grant with bounds, or the denial. Does not rely on checks of the worker, which may be
//! hostile.

use super::effective::EffectivePolicy;
use super::net::{self, AllowedRequest, NET_DENIED};
use super::paths::{CleanPath, PathBudget, PathRules, PathTooLong};
use super::rights::{DatabaseRights, ExecRights, FsRights};
use super::usage::{HostUsage, LOADS, SessionUsage};
use vm_system_protocol::broker::{
    BrokerCall, DatabaseRequest, DatabaseTerms, ExecRequest, ExecTerms, FsRequest, FsTerms, SqlParameters,
    SqlValue,
};
use vm_system_protocol::counted::counted;
use vm_system_protocol::egress::HttpCall;
use vm_system_protocol::limits::{
    EXEC_ARGUMENT_BYTES, EXEC_ARGUMENTS, HTTP_EXCHANGES, HTTP_PIECE_BYTES, HTTP_WAIT_MS, SQL_BYTES,
    SQL_PARAMETERS, STDIN_CHUNK_BYTES,
};
use vm_system_protocol::model::NoteCode;
use vm_system_protocol::worker::{HostError, HostRequest, NOT_GRANTED};

/// Longest path that the kernel accepts (bytes; `PATH_MAX` without its null byte).
const MAX_PATH_BYTES: usize = 4_095;

/// A permitted call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    /// Read the first of some files of the worktree that exists.
    LoadModule {
        /// Relative to the worktree.
        candidates: Vec<String>,
        /// `import` or `require`.
        import: bool,
        /// The `package.json` that applies to the file is read, too.
        package: bool,
    },
    /// A call for a broker.
    Broker(BrokerCall),
    /// Read the standard input, if the session has one.
    Stdin {
        /// At least 1.
        max_bytes: u32,
        /// Longest wait (milliseconds).
        wait_ms: u64,
    },
    /// A call about HTTP.
    Http(HttpPermit),
}

/// A permitted call about HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpPermit {
    Open { exchange: u64, allowed: Box<AllowedRequest> },
    Send { exchange: u64, data: Vec<u8>, end: bool },
    Wait { open: Vec<u64>, pull: Vec<u64>, timeout_ms: u32 },
    Close { exchange: u64 },
}

/// A denied call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub module: &'static str,
    /// The name of the call.
    pub name: &'static str,
    /// The error that the script sees.
    pub error: HostError,
    /// The cause, if clients can do something about it.
    pub code: Option<NoteCode>,
}

/// Decides about a call and counts it.
pub fn judge(
    policy: &EffectivePolicy,
    request: HostRequest,
    usage: &mut HostUsage,
    session: &mut SessionUsage,
) -> Result<Permit, Denial> {
    let changes = request.has_effect();
    match request {
        HostRequest::LoadModule { candidates, import, package } if usage.loads() => {
            Ok(Permit::LoadModule { candidates, import, package })
        }
        HostRequest::LoadModule { .. } => {
            let message = format!("more than {LOADS} modules were requested in one execution");
            let error = error("ERR_CALL_LIMIT", &message);
            Err(Denial { module: "modules", name: "load", error, code: None })
        }
        HostRequest::Fs(request) => {
            let name = fs_name(&request);
            let rights = granted(policy, "fs", name, policy.fs.as_ref())?;
            // Whatever else is wrong with the call: no change is permitted.
            let code = (changes && rights.write.is_none()).then_some(NoteCode::NoChanges);
            let judged = fs(rights, request, usage, session);
            judged.map(Permit::Broker).map_err(|error| Denial { module: "fs", name, error, code })
        }
        HostRequest::Database(request) => {
            let name = database_name(&request);
            let rights = granted(policy, "database", name, policy.database.as_ref())?;
            let judged = database(rights, request, usage);
            judged.map(Permit::Broker).map_err(|error| Denial { module: "database", name, error, code: None })
        }
        HostRequest::Exec(request) => {
            let rights = granted(policy, "exec", "run", policy.exec.as_ref())?;
            let judged = exec(policy, rights, request, usage);
            judged.map(Permit::Broker).map_err(|error| Denial {
                module: "exec",
                name: "run",
                error,
                code: None,
            })
        }
        HostRequest::Http(call) => judge_http(policy, call, usage).map(Permit::Http),
        // Needs no right: whoever gives a script an input lets it read that.
        HostRequest::Stdin { max_bytes, wait_ms } => {
            Ok(Permit::Stdin { max_bytes: max_bytes.clamp(1, STDIN_CHUNK_BYTES), wait_ms })
        }
        // Handled by the session's machine, not by the host.
        HostRequest::Ask { .. } => {
            let (code, message) = ("ENOTSUP".to_owned(), "the host does not handle tasks".to_owned());
            Err(Denial { module: "CC", name: "CC", error: HostError { code, message }, code: None })
        }
    }
}

/// The name of requests over the network among the modules, and of one call.
const HTTP: &str = "http";
const FETCH: &str = "fetch";
/// Refused requests of one execution above which no further one is compared with the rows.
const DENIED_REQUESTS: u64 = 1_000;

/// Decides about a call of the network alone, for a caller that makes no other ones.
pub fn judge_http(
    policy: &EffectivePolicy,
    call: HttpCall,
    usage: &mut HostUsage,
) -> Result<HttpPermit, Denial> {
    http(policy, call, usage).map_err(|error| {
        let code = (error.code == NET_DENIED).then_some(NoteCode::NetNotGranted);
        Denial { module: HTTP, name: FETCH, error, code }
    })
}

fn http(policy: &EffectivePolicy, call: HttpCall, usage: &mut HostUsage) -> Result<HttpPermit, HostError> {
    if !matches!(call, HttpCall::Open { .. }) && usage.module(HTTP).calls == 0 {
        let why =
            "no request of this execution is under way: none was made, or the daemon was restarted meanwhile";
        return Err(HostError { code: "ERR_NET_EGRESS_LOST".to_owned(), message: why.to_owned() });
    }
    let too_many = || error("ERR_INVALID_ARG_VALUE", "a piece or a list of exchanges is too large");
    Ok(match call {
        HttpCall::Open { exchange, request } => {
            if usage.module(HTTP).not_permitted() >= DENIED_REQUESTS {
                let message = format!("more than {DENIED_REQUESTS} requests of this execution were refused");
                return Err(HostError { code: "ERR_NET_LIMIT".to_owned(), message });
            }
            let allowed = net::decide(policy.net.as_ref(), policy.refusal(HTTP), request)?;
            let limit = |what: String| HostError { code: "ERR_NET_LIMIT".to_owned(), message: what };
            let (most, most_bytes) = (allowed.max_requests, allowed.max_total_bytes);
            let used = usage.module(HTTP);
            if used.calls >= u64::from(most) {
                return Err(limit(format!(
                    "more than {} in one execution (max_requests)",
                    counted(most, "request")
                )));
            }
            if used.bytes_in.saturating_add(used.bytes_out) >= most_bytes {
                let kib = most_bytes / 1024;
                return Err(limit(format!("more than {kib} KiB of bodies in one execution (max_total_kb)")));
            }
            usage.passed(HTTP, FETCH, allowed.request.data.len() as u64);
            HttpPermit::Open { exchange, allowed: Box::new(allowed) }
        }
        HttpCall::Send { exchange, data, end } if data.len() <= HTTP_PIECE_BYTES => {
            usage.module(HTTP).bytes_out += data.len() as u64;
            HttpPermit::Send { exchange, data, end }
        }
        HttpCall::Wait { open, pull, timeout_ms } if open.len().max(pull.len()) <= HTTP_EXCHANGES => {
            HttpPermit::Wait { open, pull, timeout_ms: timeout_ms.min(HTTP_WAIT_MS) }
        }
        HttpCall::Close { exchange } => HttpPermit::Close { exchange },
        HttpCall::Send { .. } | HttpCall::Wait { .. } => return Err(too_many()),
    })
}

fn granted<'a, T>(
    policy: &EffectivePolicy,
    module: &'static str,
    name: &'static str,
    rights: Option<&'a T>,
) -> Result<&'a T, Denial> {
    rights.ok_or_else(|| {
        let refusal = policy.refusal(module);
        let message = format!("the module '{module}' is not allowed: {}", refusal.unwrap_or(NOT_GRANTED));
        let error = HostError { code: "MODULE_NOT_ALLOWED".to_owned(), message };
        let code = refusal.is_none().then_some(NoteCode::ModuleNotGranted);
        Denial { module, name, error, code }
    })
}

fn error(code: &str, message: &str) -> HostError {
    HostError { code: code.to_owned(), message: format!("{code}: {message}") }
}

/// Counts a call of a module against the limit of calls.
fn within_calls(
    usage: &mut HostUsage,
    module: &'static str,
    name: &'static str,
    bytes_out: u64,
    max_calls: u32,
) -> Result<(), HostError> {
    if usage.module(module).calls >= u64::from(max_calls) {
        let message = format!(
            "more than {} of the module '{module}' in one execution (max_calls)",
            counted(max_calls, "call")
        );
        return Err(error("ERR_CALL_LIMIT", &message));
    }
    usage.passed(module, name, bytes_out);
    Ok(())
}

fn fs_name(request: &FsRequest) -> &'static str {
    match request {
        FsRequest::ReadFile { .. } => "readFile",
        FsRequest::ReadDir { .. } => "readdir",
        FsRequest::Stat { .. } => "stat",
        FsRequest::Exists { .. } => "exists",
        FsRequest::Access { .. } => "access",
        FsRequest::RealPath { .. } => "realpath",
        FsRequest::Write { .. } => "writeFile",
        FsRequest::MakeDir { .. } => "mkdir",
        FsRequest::RemoveFile { .. } => "unlink",
        FsRequest::RemoveDir { .. } => "rmdir",
        FsRequest::Remove { .. } => "rm",
        FsRequest::Rename { .. } => "rename",
        FsRequest::Copy { .. } => "copyFile",
    }
}

/// The name of a request in errors, as the broker and Node have it.
fn fs_syscall(request: &FsRequest) -> &'static str {
    match request {
        FsRequest::ReadFile { .. } | FsRequest::Write { .. } => "open",
        FsRequest::ReadDir { .. } => "scandir",
        FsRequest::Stat { no_follow: true, .. } => "lstat",
        FsRequest::Exists { .. } => "access",
        FsRequest::Copy { .. } => "copyfile",
        same => fs_name(same),
    }
}

/// The rules of one right, applied to the path of one request.
struct Checked<'a> {
    rights: &'a FsRights,
    syscall: &'static str,
    terms: FsTerms,
    /// The call may create missing folders.
    levels: bool,
}

impl Checked<'_> {
    /// The path for the broker. Where patterns are in force it is the clean path, and links are not followed.
    fn path(&mut self, path: String, rules: Option<&PathRules>, right: &str) -> Result<String, HostError> {
        let (path, syscall) = (from_worktree(path), self.syscall);
        if path.len() > MAX_PATH_BYTES {
            // The kernel's error. Checked first: the time of every operation on a path grows with its length.
            return Err(error("ENAMETOOLONG", &format!("name too long, {syscall} '{}'", shown(&path))));
        }
        let refused = |why: String| {
            error("EACCES", &format!("permission denied ({why}), {syscall} '{}'", shown(&path)))
        };
        let Some(rules) = rules else {
            return Err(refused(format!("no path may be {right}")));
        };
        if rules.is_everything() {
            return Ok(path);
        }
        let Some(clean) = CleanPath::parse(&path) else {
            // The broker reports the error for such a path.
            self.terms.links = false;
            return Ok(path);
        };
        let mut budget = PathBudget::one_path();
        let too_long = |why: PathTooLong| refused(why.to_string());
        if !rules.covers(&clean, &mut budget).map_err(too_long)? {
            return Err(refused(format!("not among the paths that may be {right}")));
        }
        self.terms.links = false;
        self.terms.tree &= rules.covers_tree(&clean, &mut budget).map_err(too_long)?;
        if self.levels {
            self.terms.existing_levels = rules.uncovered_levels(&clean, &mut budget).map_err(too_long)?;
        }
        Ok(clean.as_str().to_owned())
    }

    fn read(&mut self, path: String) -> Result<String, HostError> {
        let rules = self.rights.read.as_ref();
        self.path(path, rules, "read")
    }

    fn write(&mut self, path: String) -> Result<String, HostError> {
        let rules = self.rights.write.as_ref();
        self.path(path, rules, "changed")
    }
}

fn fs(
    rights: &FsRights,
    request: FsRequest,
    usage: &mut HostUsage,
    session: &mut SessionUsage,
) -> Result<BrokerCall, HostError> {
    let name = fs_name(&request);
    let bytes = match &request {
        FsRequest::Write { data, .. } => data.len() as u64,
        _ => 0,
    };
    let used = usage.module("fs");
    let total = used.bytes_in.saturating_add(used.bytes_out);
    if total.saturating_add(bytes) > rights.max_total_bytes || total == rights.max_total_bytes {
        let limit = rights.max_total_bytes / 1024;
        return Err(error(
            "EDQUOT",
            &format!("more than {limit} KiB in one execution (max_total_kb), {name}"),
        ));
    }
    if session.written_bytes.saturating_add(bytes) > rights.write_quota_bytes {
        let limit = rights.write_quota_bytes / 1024;
        return Err(error(
            "EDQUOT",
            &format!("more than {limit} KiB written by this session (write_quota_kb), {name}"),
        ));
    }
    let terms = FsTerms {
        links: true,
        tree: true,
        existing_levels: 0,
        max_file_bytes: rights.max_file_bytes,
        max_entries: rights.max_entries,
    };
    let levels = matches!(request, FsRequest::MakeDir { recursive: true, .. });
    let mut checked = Checked { rights, syscall: fs_syscall(&request), terms, levels };
    let request = rewrite(&mut checked, request)?;
    if let FsRequest::Copy { .. } = &request {
        // The copied size is known afterwards; until then the largest file size counts.
        let left = rights.write_quota_bytes.saturating_sub(session.written_bytes);
        checked.terms.max_file_bytes = checked.terms.max_file_bytes.min(left);
    }
    within_calls(usage, "fs", name, bytes, rights.max_calls)?;
    session.written_bytes = session.written_bytes.saturating_add(bytes);
    Ok(BrokerCall::Fs { request, terms: checked.terms })
}

/// Checks each path of a request against the right that it needs.
fn rewrite(checked: &mut Checked<'_>, request: FsRequest) -> Result<FsRequest, HostError> {
    Ok(match request {
        FsRequest::ReadFile { path } => FsRequest::ReadFile { path: checked.read(path)? },
        FsRequest::ReadDir { path } => FsRequest::ReadDir { path: checked.read(path)? },
        FsRequest::Stat { path, no_follow } => FsRequest::Stat { path: checked.read(path)?, no_follow },
        FsRequest::Exists { path } => FsRequest::Exists { path: checked.read(path)? },
        FsRequest::RealPath { path } => FsRequest::RealPath { path: checked.read(path)? },
        FsRequest::Access { path, mode } => {
            let path = if mode & 2 == 0 { checked.read(path)? } else { checked.write(path)? };
            FsRequest::Access { path, mode }
        }
        FsRequest::Write { path, data, how, mode } => {
            FsRequest::Write { path: checked.write(path)?, data, how, mode }
        }
        FsRequest::MakeDir { path, recursive, mode } => {
            FsRequest::MakeDir { path: checked.write(path)?, recursive, mode }
        }
        FsRequest::RemoveFile { path } => FsRequest::RemoveFile { path: checked.write(path)? },
        FsRequest::RemoveDir { path } => FsRequest::RemoveDir { path: checked.write(path)? },
        FsRequest::Remove { path, recursive, force } => {
            FsRequest::Remove { path: checked.write(path)?, recursive, force }
        }
        FsRequest::Rename { from, to } => {
            // A moved file may be readable under its new name: it must be readable under the old one.
            let from = checked.read(from)?;
            FsRequest::Rename { from: checked.write(from)?, to: checked.write(to)? }
        }
        FsRequest::Copy { from, to, exclusive } => {
            FsRequest::Copy { from: checked.read(from)?, to: checked.write(to)?, exclusive }
        }
    })
}

/// A path as seen from the worktree, which is the root and the current folder of a script: `/a` is `a`. Only the text changes: what
/// leaves the worktree is refused later.
fn from_worktree(path: String) -> String {
    match path.strip_prefix('/').map(|rest| rest.trim_start_matches('/')) {
        None => path,
        Some("") => ".".to_owned(),
        Some(rest) => rest.to_owned(),
    }
}

/// The part of a path that messages show.
fn shown(path: &str) -> &str {
    &path[..path.floor_char_boundary(200)]
}

fn database_name(request: &DatabaseRequest) -> &'static str {
    match request {
        DatabaseRequest::Configure { .. } => "configure",
        DatabaseRequest::Query { .. } => "query",
        DatabaseRequest::Exec { .. } => "exec",
        DatabaseRequest::Close { .. } => "close",
    }
}

fn database(
    rights: &DatabaseRights,
    request: DatabaseRequest,
    usage: &mut HostUsage,
) -> Result<BrokerCall, HostError> {
    let (database, sql, parameters) = match &request {
        DatabaseRequest::Configure { database } | DatabaseRequest::Close { database } => (database, "", None),
        DatabaseRequest::Query { database, sql, parameters }
        | DatabaseRequest::Exec { database, sql, parameters } => (database, sql.as_str(), Some(parameters)),
    };
    if !is_database_name(database) {
        return Err(error(
            "ERR_INVALID_ARG_VALUE",
            "a database is ':memory:' or a plain name of letters, digits, '.', '_' and '-'",
        ));
    }
    if sql.len() > SQL_BYTES {
        return Err(error("SQLITE_TOOBIG", &format!("the statement has more than {SQL_BYTES} bytes")));
    }
    if sql.contains('\0') {
        return Err(error("ERR_INVALID_ARG_VALUE", "the statement contains a null byte"));
    }
    let (count, bytes) = match parameters {
        None => (0, 0),
        Some(SqlParameters::Positional(values)) => (values.len(), values.iter().map(SqlValue::bytes).sum()),
        Some(SqlParameters::Named(values)) => {
            (values.len(), values.iter().map(|(name, value)| name.len() + value.bytes()).sum::<usize>())
        }
    };
    if count > SQL_PARAMETERS {
        return Err(error("SQLITE_RANGE", &format!("more than {SQL_PARAMETERS} parameters")));
    }
    let name = database_name(&request);
    within_calls(usage, "database", name, (sql.len() + bytes) as u64, rights.max_calls)?;
    let terms = DatabaseTerms {
        read_only: rights.read_only,
        max_rows: rights.max_rows,
        max_result_bytes: rights.max_result_bytes,
        max_database_bytes: rights.max_database_bytes,
        // The runtime knows how much the workspace may grow, and only when the call is made.
        growth_bytes: u64::MAX,
        timeout_ms: rights.timeout_ms,
    };
    Ok(BrokerCall::Database { request, terms })
}

fn is_database_name(name: &str) -> bool {
    name == ":memory:"
        || (!name.is_empty()
            && name.len() <= 64
            && !name.starts_with('.')
            && !name.ends_with("-journal")
            && !name.ends_with("-wal")
            && !name.ends_with("-shm")
            && name.chars().all(|char| char.is_ascii_alphanumeric() || "._-".contains(char)))
}

fn exec(
    policy: &EffectivePolicy,
    rights: &ExecRights,
    request: ExecRequest,
    usage: &mut HostUsage,
) -> Result<BrokerCall, HostError> {
    let program = policy.programs.get(&request.command).and_then(|path| path.to_str());
    let Some(program) = program else {
        let known: Vec<&str> = policy.programs.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let what: String = request.command.chars().take(100).collect();
        return Err(error(
            "COMMAND_NOT_ALLOWED",
            &format!("the command {what:?} is not among those that operator and template permit ({known})"),
        ));
    };
    let variables = request.environment.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    let bytes = request.arguments.iter().map(String::len).sum::<usize>() + variables;
    if request.arguments.len() > EXEC_ARGUMENTS
        || request.environment.len() > EXEC_ARGUMENTS
        || bytes > EXEC_ARGUMENT_BYTES
    {
        return Err(error("E2BIG", "arguments and variables are too long"));
    }
    let nul = |text: &str| text.contains('\0');
    let strange = |(name, value): &(String, String)| {
        name.is_empty() || name.contains('=') || nul(name) || nul(value) || loads_code(name)
    };
    if request.arguments.iter().any(|argument| nul(argument)) || nul(&request.folder) {
        return Err(error("ERR_INVALID_ARG_VALUE", "an argument contains a null byte"));
    }
    if let Some((name, _)) = request.environment.iter().find(|variable| strange(variable)) {
        let name: String = name.chars().take(100).collect();
        return Err(error("ERR_INVALID_ARG_VALUE", &format!("the variable {name:?} may not be set")));
    }
    within_calls(usage, "exec", "run", (bytes + request.input.len()) as u64, rights.max_calls)?;
    let terms = ExecTerms {
        program: program.to_owned(),
        // Commands have no path patterns: a command gets the access that `fs` has without patterns.
        read: policy.fs.as_ref().is_some_and(|fs| whole(fs.read.as_ref())),
        write: policy.fs.as_ref().is_some_and(|fs| whole(fs.read.as_ref()) && whole(fs.write.as_ref())),
        timeout_ms: rights.timeout_ms,
        max_output_bytes: rights.max_output_bytes,
        memory_bytes: rights.memory_bytes,
        processes: rights.processes,
    };
    let folder = if request.folder.is_empty() { request.folder } else { from_worktree(request.folder) };
    Ok(BrokerCall::Exec { request: ExecRequest { folder, ..request }, terms })
}

fn whole(rules: Option<&PathRules>) -> bool {
    rules.is_some_and(PathRules::is_everything)
}

/// Variables that make the dynamic linker, shells and the common interpreters run other code than the
/// operator named. The list can never be complete; the jail confines whatever a command runs.
fn loads_code(name: &str) -> bool {
    const BEGINNINGS: &[&str] = &["LD_", "GLIBC_", "BASH_FUNC_", "GIT_CONFIG", "PERL5", "OPENSSL_"];
    const NAMES: &[&str] = &[
        "PATH",
        "HOME",
        "IFS",
        "ENV",
        "BASH_ENV",
        "SHELLOPTS",
        "GCONV_PATH",
        "LOCPATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "PYTHONUSERBASE",
        "PYTHONBREAKPOINT",
        "PYTHONINSPECT",
        "PERLLIB",
        "RUBYOPT",
        "RUBYLIB",
        "NODE_OPTIONS",
        "NODE_PATH",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "_JAVA_OPTIONS",
        "CLASSPATH",
        "LUA_INIT",
        "LUA_PATH",
        "LUA_CPATH",
        "GIT_EXEC_PATH",
        "GIT_EXTERNAL_DIFF",
        "GIT_PAGER",
        "GIT_EDITOR",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "PAGER",
        "EDITOR",
        "VISUAL",
    ];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) || NAMES.contains(&name)
}
