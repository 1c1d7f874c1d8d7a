//! TypeScript's compiler, of a worktree's `node_modules`, on files that are to run (`typecheck`).
//!
//! The compiler is code of a package: it runs in a session of its own, the *checker*, which belongs to the owner of the session with the
//! file, has the same worktree, reads what `import` in that session could load, and may do nothing else. It keeps the loaded compiler, so
//! that only the first check pays for that, and ends when it is idle. What it returns is hostile input: a bounded list of diagnostics.

mod report;

use super::api::{CreateSession, RuntimeError};
use super::facade::{Runtime, WeakRuntime};
use super::interface::RuntimeApi as _;
use super::libraries::Libraries;
use super::specs::without_arguments;
use crate::worktree::Worktree;
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;
use vm_system_core::{CheckedTypes, Executed, Refusal, SessionInput as Input, Source};
use vm_system_policy::paths::PathRules;
use vm_system_policy::{EffectivePolicy, FsRights};
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::model::{
    Engine, Execution, ExecutionKind, Limits, Resolver, RuntimeSettings, Session, Settings, TypeCheck,
};
use vm_system_protocol::worker::Policy;
use vm_system_record::{Owner, PolicySnapshot, RecordedWorktree};
use vm_system_spawn::LibrarySet;

/// Longest source text of a module (KiB): the compiler is one file of 9 MB.
pub const MAX_SOURCE_KB: u32 = 16 * 1024 - 1;
/// Time that one check may take (milliseconds).
const CHECK_MS: u32 = 120_000;
/// Longest wait for a check, with those before it in the same checker.
const DEADLINE: Duration = Duration::from_mins(5);
/// A checker ends after this time without a check (seconds).
const IDLE_S: u32 = 300;
/// Memory of a checker (MiB), if `mem_mb` of the session with the file is not more and the operator's ceiling is not less.
const MEMORY_MB: u32 = 512;
const SCRIPT_NAME: &str = "vm-system-check.js";

const SCRIPT: &str = include_str!("type_checks/check.js");
/// The globals and modules of sessions and programs, for the compiler.
const DECLARATIONS: &[(&str, &str)] = &[
    ("cc.d.ts", include_str!("type_checks/cc.d.ts")),
    ("console.d.ts", include_str!("type_checks/console.d.ts")),
    ("node.d.ts", include_str!("type_checks/node.d.ts")),
    ("program.d.ts", include_str!("type_checks/program.d.ts")),
    ("session.d.ts", include_str!("type_checks/session.d.ts")),
    ("url.d.ts", include_str!("type_checks/url.d.ts")),
    ("web.d.ts", include_str!("type_checks/web.d.ts")),
];

/// How the script prints what it finds.
#[derive(Debug, Clone)]
pub struct PrintedCheck<'a> {
    /// The worktree, as its user knows it.
    pub folder: &'a str,
    /// The beginning of names of files.
    pub shown: &'a str,
    /// The files are durable programs.
    pub program: bool,
    /// Nothing about its progress.
    pub quiet: bool,
    /// The findings are the script's value: `{errors, diagnostics: [{file, line, column, severity, code, message}], left_out}`.
    pub as_value: bool,
}

/// The script that runs the compiler on files of the worktree. It prints what it finds, or its value is a report.
pub fn script(files: &[String], print: Option<&PrintedCheck<'_>>) -> String {
    script_with(files, None, print)
}

/// As [`script`]; with the text of the first file, which is read from the worktree otherwise.
fn script_with(files: &[String], text: Option<&str>, print: Option<&PrintedCheck<'_>>) -> String {
    let declarations: serde_json::Map<String, serde_json::Value> =
        DECLARATIONS.iter().map(|(name, text)| ((*name).to_owned(), (*text).into())).collect();
    let print = print.map(|print| {
        let PrintedCheck { folder, shown, program, quiet, as_value } = *print;
        json!({ "folder": folder, "shown": shown, "program": program, "quiet": quiet, "as_value": as_value })
    });
    let check = json!({ "files": files, "text": text, "declarations": declarations, "print": print });
    format!("({SCRIPT})({check})")
}

/// The most that a checker has under the operator's ceilings. The length of a source has none: the compiler needs it, and its memory is
/// bounded.
pub fn limits(ceilings: &Limits) -> Limits {
    Limits {
        cpu_ms: CHECK_MS.min(ceilings.cpu_ms),
        wall_ms: CHECK_MS.min(ceilings.wall_ms),
        mem_mb: ceilings.mem_mb,
        max_source_kb: MAX_SOURCE_KB,
        ..Limits::default()
    }
}

/// A file of a session, and what its checker needs of the session.
#[derive(Debug)]
pub(super) struct TypesToCheck {
    owner: Owner,
    template: TemplateId,
    /// Labels, and the path as the client named it.
    workspace_id: String,
    base_commit_oid: String,
    worktree_path: PathBuf,
    worktree: Worktree,
    path: String,
    /// The text that will run, whatever the file has by then.
    text: String,
    /// The rights of the execution.
    policy: Arc<EffectivePolicy>,
}

impl TypesToCheck {
    pub(super) fn new(
        of: &Session,
        owner: &Owner,
        worktree: &Worktree,
        (path, text): (String, String),
        policy: Arc<EffectivePolicy>,
    ) -> Self {
        Self {
            owner: owner.clone(),
            template: of.template_id,
            workspace_id: of.workspace_id.clone(),
            base_commit_oid: of.base_commit_oid.clone(),
            worktree_path: PathBuf::from(&of.worktree_path),
            worktree: worktree.clone(),
            path,
            text,
            policy,
        }
    }
}

/// A checker's session, once there is one. Held during a check: there is one at a time.
type CheckerSession = Arc<tokio::sync::Mutex<Option<SessionId>>>;

/// The key of a checker: sessions that are equal in all of these fields share one, which keeps the files that it has read.
#[derive(Debug)]
struct Checker {
    owner: Owner,
    worktree: Option<Arc<RecordedWorktree>>,
    load: Option<PathRules>,
    memory_mb: u32,
    session: CheckerSession,
}

impl Checker {
    fn is_for(&self, request: &TypesToCheck, memory_mb: u32) -> bool {
        self.owner == request.owner
            && self.memory_mb == memory_mb
            && self.worktree.as_ref() == request.worktree.recorded()
            && self.load == request.policy.load
    }

    /// Whether it does nothing and has no session.
    fn is_over(&self, runtime: &Runtime) -> bool {
        let has_ended = |id: &SessionId| runtime.live(*id).is_err();
        self.session.try_lock().is_ok_and(|session| session.as_ref().is_none_or(has_ended))
    }
}

/// The checkers of all owners.
#[derive(Debug)]
pub(super) struct TypeChecks {
    /// The most that one has.
    limits: Limits,
    runtime: OnceLock<WeakRuntime>,
    checkers: Mutex<Vec<Checker>>,
}

impl TypeChecks {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, runtime: OnceLock::new(), checkers: Mutex::default() }
    }

    /// The runtime that has the checkers; before its first session.
    pub(super) fn connect(&self, runtime: WeakRuntime) {
        let _ = self.runtime.set(runtime);
    }

    /// Checks a file. Dropping the future cancels the check.
    pub(super) async fn check(&self, request: TypesToCheck) -> CheckedTypes {
        let failed = |why: String| CheckedTypes::Failed { why, hint: None };
        let Some(runtime) = self.runtime.get().and_then(WeakRuntime::upgrade) else {
            return failed("the supervisor is stopping".to_owned());
        };
        match tokio::time::timeout(DEADLINE, self.in_checker(&runtime, &request)).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(error)) => failed(format!("the compiler could not be started: {error}")),
            Err(_) => failed(format!("no result within {} s", DEADLINE.as_secs())),
        }
    }

    /// The limits of a checker for files of sessions with these rights.
    fn limits_for(&self, policy: &EffectivePolicy) -> Limits {
        let memory_mb = policy.wire.limits.mem_mb.max(MEMORY_MB).min(self.limits.mem_mb);
        Limits { mem_mb: memory_mb, ..self.limits.clone() }
    }

    async fn in_checker(
        &self,
        runtime: &Runtime,
        request: &TypesToCheck,
    ) -> Result<CheckedTypes, RuntimeError> {
        let limits = self.limits_for(&request.policy);
        let may_have_more = limits.mem_mb < self.limits.mem_mb;
        let conclude = |execution: &Execution| report::read(execution, limits.mem_mb, may_have_more);
        let checker = self.checker(runtime, request);
        let mut session = checker.lock().await;
        if let Some(id) = *session {
            match self.run(runtime, id, request).await {
                Err(RuntimeError::NotLive | RuntimeError::Refused(Refusal::NotReady(_))) => *session = None,
                result => return concluded(runtime, &mut session, conclude(&result?)).await,
            }
        }
        let created = runtime.create_in(self.creation(request), request.worktree.clone()).await?;
        *session = Some(created.id);
        let execution = self.run(runtime, created.id, request).await?;
        concluded(runtime, &mut session, conclude(&execution)).await
    }

    fn checker(&self, runtime: &Runtime, request: &TypesToCheck) -> CheckerSession {
        // Nothing under this lock can panic half-way through a change.
        let mut checkers = self.checkers.lock().unwrap_or_else(PoisonError::into_inner);
        let memory_mb = self.limits_for(&request.policy).mem_mb;
        if let Some(known) = checkers.iter().find(|checker| checker.is_for(request, memory_mb)) {
            return Arc::clone(&known.session);
        }
        // One that waits for its turn has the lock's value, too.
        checkers.retain(|checker| Arc::strong_count(&checker.session) > 1 || !checker.is_over(runtime));
        let session = CheckerSession::default();
        checkers.push(Checker {
            owner: request.owner.clone(),
            worktree: request.worktree.recorded().cloned(),
            load: request.policy.load.clone(),
            memory_mb,
            session: Arc::clone(&session),
        });
        session
    }

    /// Of the template of the session with the file, which is where its owner finds it; with a copy of its own that grants nothing.
    fn creation(&self, request: &TypesToCheck) -> CreateSession {
        let id = Uuid::now_v7();
        let runtime = RuntimeSettings { idle_timeout_s: IDLE_S, ..RuntimeSettings::default() };
        let settings = Settings { limits: self.limits_for(&request.policy), runtime, ..Settings::default() };
        let policy = PolicySnapshot {
            engine: Engine::Quickjs,
            settings,
            modules: Vec::new(),
            libraries: Vec::new(),
            capabilities: Vec::new(),
            startup_files: Vec::new(),
        };
        let random = id.simple().to_string().split_off(24);
        CreateSession {
            id: SessionId::from_uuid(id),
            owner: request.owner.clone(),
            name: Some(format!("typecheck-{random}")),
            template_id: request.template,
            policy: Arc::new(policy),
            workspace_id: request.workspace_id.clone(),
            base_commit_oid: request.base_commit_oid.clone(),
            worktree_path: request.worktree_path.clone(),
            as_user: None,
            libraries: Libraries::Installed(LibrarySet::default()),
            restores: None,
        }
    }

    async fn run(
        &self,
        runtime: &Runtime,
        session: SessionId,
        request: &TypesToCheck,
    ) -> Result<Execution, RuntimeError> {
        let live = runtime.live(session)?;
        let source = Source::Text {
            text: script_with(std::slice::from_ref(&request.path), Some(&request.text), None),
            file_name: SCRIPT_NAME.to_owned(),
            format: None,
        };
        let execute = without_arguments(ExecutionKind::RunFile, source);
        let id = execute.id;
        let policy = Arc::new(self.rights(&request.policy));
        let request = Box::new(execute);
        let (command, response) =
            live.request::<Executed>(|token| Input::Execute { token, request, policy }, None);
        live.commands.send(command).await.map_err(|_| RuntimeError::NotLive)?;
        // Dropped with this future, if its caller gives up.
        let (over, is_over) = oneshot::channel();
        runtime.tasks().spawn(cancel_unawaited(runtime.clone(), id, is_over));
        let result = response.await;
        let _ = over.send(());
        let executed = result.map_err(|_| RuntimeError::NotLive)??;
        Ok(Arc::unwrap_or_clone(executed.record))
    }

    /// To read what the execution's `import` could load.
    fn rights(&self, of: &EffectivePolicy) -> EffectivePolicy {
        EffectivePolicy {
            wire: Policy {
                limits: self.limits_for(of),
                resolver: Resolver::default(),
                strict: false,
                modules: vec!["fs".to_owned()],
                refused_modules: Vec::new(),
                disabled_globals: Vec::new(),
            },
            esm: false,
            typecheck: TypeCheck::Off,
            env: Vec::new(),
            fs: Some(FsRights { read: of.load.clone(), ..FsRights::default() }),
            load: of.load.clone(),
            database: None,
            exec: None,
            programs: std::collections::BTreeMap::new(),
            net: None,
        }
    }
}

/// The result of a check. A checker without a result is closed: it has a compiler that does not work, or that has used its memory, or it
/// waits for an answer; the next check makes another one.
async fn concluded(
    runtime: &Runtime,
    session: &mut Option<SessionId>,
    checked: CheckedTypes,
) -> Result<CheckedTypes, RuntimeError> {
    if matches!(checked, CheckedTypes::Failed { .. })
        && let Some(id) = session.take()
    {
        runtime.close_session(id).await?;
    }
    Ok(checked)
}

/// Cancels a check whose result nobody awaits any more.
async fn cancel_unawaited(runtime: Runtime, id: ExecutionId, is_over: oneshot::Receiver<()>) {
    if is_over.await.is_err() {
        // It may have ended meanwhile.
        let _ = runtime.cancel_execution(id).await;
    }
}
