//! The shapes of answers as OpenAPI describes them. They are written by the protocol's own types; that the two are the
//! same is checked by the contract test, which holds every answer of the real daemon against this description.
#![expect(dead_code, reason = "described, never made: the answers are written by the protocol's types")]

use std::collections::BTreeMap;
use utoipa::ToSchema;

type Json = serde_json::Value;

/// Two shapes, of which the second has the fields of the first and some more. Not as one within the other (`allOf`), which
/// generators of clients make unhandy types of.
macro_rules! and_with_more {
    (
        $(#[$about:meta])* $base:ident { $($(#[$field:meta])* $name:ident: $type:ty,)* }
        $(#[$more_about:meta])* $more:ident { $($(#[$more_field:meta])* $more_name:ident: $more_type:ty,)* }
    ) => {
        $(#[$about])*
        #[derive(ToSchema)]
        pub(in crate::api::rest) struct $base {
            $($(#[$field])* $name: $type,)*
        }

        $(#[$more_about])*
        #[derive(ToSchema)]
        pub(in crate::api::rest) struct $more {
            $($(#[$field])* $name: $type,)*
            $($(#[$more_field])* $more_name: $more_type,)*
        }
    };
}

mod executions;
mod programs;

pub(super) use executions::{Event, Execution, ExecutionCancelled, ProgramExecution};
pub(super) use programs::{
    Checkpoint, ExecutionForgotten, Plan, Program, ProgramDeleted, ProgramState, ProgramVersion, Task,
    TaskState,
};

/// What is refused, whatever it is.
#[derive(ToSchema)]
pub(super) struct Envelope {
    error: Refusal,
}

#[derive(ToSchema)]
struct Refusal {
    /// What programs match on.
    code: String,
    /// What happened, for people; may change.
    message: String,
    /// Facts for programs.
    #[schema(value_type = Option<Object>, nullable = false)]
    details: Option<BTreeMap<String, Json>>,
}

#[derive(ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: String,
}

#[derive(ToSchema)]
pub(super) struct RuntimeSummary {
    active_sessions: u64,
    /// Sorted.
    #[schema(value_type = Vec<String>)]
    active_session_ids: Vec<String>,
}

#[derive(ToSchema)]
pub(super) struct RuntimeInfo {
    version: String,
    pid: u32,
    /// Milliseconds.
    uptime_ms: u64,
    #[schema(required)]
    keeper_pid: Option<u32>,
    sandbox: Vec<SandboxLayer>,
    zygotes: Vec<ZygoteInfo>,
    active_sessions: u64,
    sessions_created: u64,
    executions_started: u64,
    /// `full` or `normal`.
    durability: String,
    /// Batches that wait for the store.
    store_queue: u64,
}

/// A wall around the workers.
#[derive(ToSchema)]
struct SandboxLayer {
    name: String,
    in_force: bool,
    required: bool,
    detail: String,
}

/// A process from which sessions are forked.
#[derive(ToSchema)]
struct ZygoteInfo {
    engine: String,
    libraries: Vec<String>,
    pid: u32,
    forks: u64,
}

#[derive(ToSchema)]
pub(super) struct ModuleInfo {
    /// What `require` and `import` call it.
    name: String,
    description: String,
}

#[derive(ToSchema)]
pub(super) struct LibraryInfo {
    /// `id-version`: what templates call it.
    name: String,
    /// What `require` and `import` call it.
    id: String,
    version: String,
    /// The global variable that it becomes.
    #[schema(required)]
    global: Option<String>,
    installed: bool,
    /// Of its source, hexadecimal.
    #[schema(required)]
    sha256: Option<String>,
    /// Of its source.
    #[schema(required)]
    bytes: Option<u64>,
    #[schema(required, format = "date-time")]
    installed_at: Option<String>,
}

/// A profile from which sessions are made.
#[derive(ToSchema)]
pub(super) struct Template {
    #[schema(format = "uuid")]
    id: String,
    /// Unique among the owner's templates.
    name: String,
    engine: Engine,
    is_active: bool,
    /// Host modules that sessions may require.
    exposed_modules: Vec<String>,
    /// `id-version` of libraries that sessions get.
    libraries: Vec<String>,
    #[schema(format = "date-time")]
    created_at: String,
    #[schema(format = "date-time")]
    updated_at: String,
    /// The system's own, which nobody changes; absent in all others.
    #[schema(nullable = false)]
    built_in: Option<bool>,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum Engine {
    Quickjs,
    /// The original's name of `quickjs`.
    Goja,
    Cvm,
}

#[derive(ToSchema)]
pub(super) struct TemplateDetail {
    template: Template,
    settings: Settings,
    capabilities: Vec<Capability>,
    startup_files: Vec<StartupFile>,
}

#[derive(ToSchema)]
struct Settings {
    /// The template.
    #[schema(format = "uuid")]
    vm_id: String,
    limits: Limits,
    resolver: Resolver,
    runtime: RuntimeSettings,
}

/// What an execution may use up.
#[derive(ToSchema)]
struct Limits {
    cpu_ms: u32,
    /// Without waits for the host.
    wall_ms: u32,
    /// JavaScript heap of the session (MiB).
    mem_mb: u32,
    max_events: u32,
    max_output_kb: u32,
    max_source_kb: u32,
    /// Engine cvm; 0 = no limit.
    max_steps: u64,
    /// Engine cvm.
    max_stack_depth: u32,
    /// Engine cvm.
    max_state_mb: u32,
}

/// How `require` and `import` find files of the worktree.
#[derive(ToSchema)]
struct Resolver {
    /// Folders of the worktree; empty = the worktree itself.
    roots: Vec<String>,
    /// Tried in order behind a specifier without one.
    extensions: Vec<String>,
    /// `/x/y.js` means the worktree's root.
    allow_absolute_repo_imports: bool,
}

/// How code is run.
#[derive(ToSchema)]
struct RuntimeSettings {
    /// run-file treats `.js` as a module; `import` startup files are allowed.
    esm: bool,
    strict: bool,
    /// There is a `console` global.
    console: bool,
    on_crash: OnCrash,
    /// 0 = never.
    ttl_s: u32,
    /// 0 = never.
    idle_timeout_s: u32,
}

/// The session is `crashed`; there is nothing else in this version.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum OnCrash {
    Close,
}

#[derive(ToSchema)]
pub(super) struct TemplateDeleted {
    /// `ok`.
    status: String,
    #[schema(format = "uuid")]
    template_id: String,
}

and_with_more! {
    /// A right that a template gives, narrows or withdraws.
    Capability {
        #[schema(format = "uuid")]
        id: String,
        /// The template.
        #[schema(format = "uuid")]
        vm_id: String,
        kind: CapabilityKind,
        name: String,
        enabled: bool,
        #[schema(value_type = Object)]
        config: BTreeMap<String, Json>,
    }
    /// The capability that is gone.
    CapabilityRemoved {
        /// `ok`.
        status: String,
    }
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum CapabilityKind {
    Module,
    Global,
    Fs,
    Net,
    Env,
}

and_with_more! {
    /// A file that every new session runs.
    StartupFile {
        #[schema(format = "uuid")]
        id: String,
        /// The template.
        #[schema(format = "uuid")]
        vm_id: String,
        /// Relative to the session's worktree.
        path: String,
        /// Lower runs first.
        order_index: i64,
        mode: StartupMode,
    }
    /// The startup file that is gone.
    StartupFileRemoved {
        /// `ok`.
        status: String,
    }
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum StartupMode {
    Eval,
    Import,
}

and_with_more! {
    /// A module's or library's name in a template.
    TemplateName {
        #[schema(format = "uuid")]
        template_id: String,
        /// As it is stored.
        name: String,
    }
    /// The name that is gone.
    TemplateNameRemoved {
        /// `ok`.
        status: String,
    }
}

/// `starting → ready → closed`, `starting|ready → crashed`. Those of programs are `ready` while they have a process, and
/// `waiting` while they have none.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum SessionStatus {
    Starting,
    Ready,
    Crashed,
    Closed,
    Waiting,
}

/// One sandboxed worker process and its record.
#[derive(ToSchema)]
pub(super) struct Session {
    #[schema(format = "uuid")]
    id: String,
    /// For people; several may have the same.
    #[schema(nullable = false)]
    name: Option<String>,
    #[schema(format = "uuid")]
    template_id: String,
    /// The same, for old clients.
    #[schema(format = "uuid")]
    vm_id: String,
    workspace_id: String,
    base_commit_oid: String,
    worktree_path: String,
    status: SessionStatus,
    #[schema(format = "date-time")]
    created_at: String,
    #[schema(format = "date-time", nullable = false)]
    closed_at: Option<String>,
    #[schema(nullable = false)]
    last_error: Option<String>,
    /// Why it ended.
    #[schema(nullable = false)]
    close_reason: Option<String>,
    #[schema(value_type = Object)]
    runtime_meta: BTreeMap<String, Json>,
    /// `cvm`: of a durable program; absent in all others.
    #[schema(nullable = false)]
    engine: Option<Engine>,
    /// The execution that a program's session was made for; it ends with it.
    #[schema(format = "uuid", nullable = false)]
    execution_id: Option<String>,
}

/// A live session as the kernel sees it; only `js_heap_bytes` is the worker's own word.
#[derive(ToSchema)]
pub(super) struct SessionInspection {
    #[schema(format = "uuid")]
    session_id: String,
    status: SessionStatus,
    pid: u32,
    cpu_ms: u64,
    #[schema(required)]
    rss_kib: Option<u64>,
    #[schema(required)]
    pss_kib: Option<u64>,
    #[schema(required)]
    uss_kib: Option<u64>,
    #[schema(required)]
    js_heap_bytes: Option<u64>,
    #[schema(required)]
    fds: Option<u32>,
    #[schema(required)]
    seccomp_mode: Option<u32>,
    #[schema(required)]
    no_new_privs: Option<bool>,
    #[schema(required)]
    cap_eff: Option<u64>,
    /// `name=inode`, where they differ from the supervisor's.
    namespaces: Vec<String>,
    /// `name=value`.
    rlimits: Vec<String>,
    #[schema(required, format = "uuid")]
    running_execution: Option<String>,
    heartbeat_age_ms: u64,
    /// Taken over from an earlier supervisor.
    adopted: bool,
}

#[derive(ToSchema)]
pub(super) struct SessionKilled {
    /// `ok`.
    status: String,
    #[schema(format = "uuid")]
    session_id: String,
}
