//! The table of routes: what each of them is called and does, and its handler, whose signature has the rest of its description.

use super::endpoint::Endpoint;
use super::envelope::RestError;
use super::{
    App, PREFIX, archives, durable, executions, parts, programs, restorations, runtime, schedules, sessions,
    templates, upgrade,
};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::handler::Handler;
use axum::http::header::{self, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use hyper_util::service::TowerToHyperService;
use std::collections::HashMap;
use std::sync::Arc;

#[cfg(test)]
use super::openapi::DescribedOperation;

type NamedMethod = (&'static str, MethodFilter);
const GET: NamedMethod = ("GET", MethodFilter::GET);
const POST: NamedMethod = ("POST", MethodFilter::POST);
const PUT: NamedMethod = ("PUT", MethodFilter::PUT);
const PATCH: NamedMethod = ("PATCH", MethodFilter::PATCH);
const DELETE: NamedMethod = ("DELETE", MethodFilter::DELETE);

/// The query parameters of each route, by its method and its path.
type Queries = HashMap<(&'static str, &'static str), &'static [&'static str]>;

/// Routes with their handlers.
#[derive(Default)]
struct Table {
    router: Router<Arc<App>>,
    queries: Queries,
}

impl Table {
    fn add<H, T>(&mut self, (name, filter): NamedMethod, path: &'static str, handler: H)
    where
        H: Handler<T, Arc<App>> + Endpoint<T>,
        T: 'static,
    {
        self.queries.insert((name, path), H::QUERY);
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, on(filter, handler));
    }
}

/// A route as it is described.
#[cfg(test)]
pub(super) struct Row {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    /// Statuses of success.
    pub(super) statuses: &'static [u16],
    /// Statuses of refusals that routes of this method do not have in general.
    pub(super) refusals: &'static [u16],
    /// The query, the body and the response of its handler.
    pub(super) describe: fn(&mut DescribedOperation<'_>),
}

#[cfg(test)]
fn described<H: Handler<T, Arc<App>> + Endpoint<T>, T>(_: H) -> fn(&mut DescribedOperation<'_>) {
    H::describe
}

/// Declares the routes: method, path and handler, the operation's id and its tag, the statuses of success, and the statuses of
/// refusals that are not those of all routes of its method. Its comment is the summary of its description.
macro_rules! routes {
    ($(
        $(#[doc = $summary:literal])+
        $method:ident $path:literal $handler:path, $id:literal, $tag:literal, [$($status:literal),+]
        $(or [$($refusal:literal),+])?;
    )+) => {
        /// All routes below [`PREFIX`].
        fn table() -> Table {
            let mut table = Table::default();
            $(table.add($method, $path, $handler);)+
            table
        }

        /// All routes with their descriptions.
        #[cfg(test)]
        pub(super) fn rows() -> Vec<Row> {
            vec![$(Row {
                method: $method.0,
                path: $path,
                summary: concat!($($summary),+),
                id: $id,
                tag: $tag,
                statuses: &[$($status),+],
                refusals: &[$($($refusal),+)?],
                describe: described($handler),
            }),+]
        }
    };
}

routes! {
    /// Reports that the supervisor responds.
    GET "/health" runtime::health, "getHealth", "runtime", [200];
    /// The sessions that have a worker now. Sessions of other owners only for administrators.
    GET "/runtime/summary" runtime::summary, "getRuntimeSummary", "runtime", [200];
    /// Version, sandbox walls, zygotes, figures, and the store's queue: of all owners for administrators, the caller's own for
    /// others.
    GET "/runtime" runtime::info, "getRuntime", "runtime", [200];
    /// Which builds the workers run. Administrators only.
    GET "/runtime/upgrade" runtime::upgrade, "getUpgrade", "runtime", [200];
    /// Sets the deadline by which workers of other builds than the supervisor's are replaced, or withdraws it. Administrators
    /// only.
    PUT "/runtime/upgrade" runtime::drain, "setUpgradeDeadline", "runtime", [200];
    /// The host modules that templates may name.
    GET "/modules" runtime::modules, "listModules", "runtime", [200];
    /// The libraries that templates may name, and whether each is installed.
    GET "/libraries" runtime::libraries, "listLibraries", "runtime", [200];
    /// This description.
    GET "/openapi.json" runtime::description, "getDescription", "runtime", [200];
    /// Templates, newest first.
    GET "/templates" templates::list, "listTemplates", "templates", [200];
    /// Create a template with default settings.
    POST "/templates" templates::create, "createTemplate", "templates", [201];
    /// One template with its settings, capabilities and startup files.
    GET "/templates/{template_id}" templates::get, "getTemplate", "templates", [200];
    /// Change a template. Narrowed rights apply from the next execution on, widened ones to new sessions.
    PATCH "/templates/{template_id}" templates::update, "updateTemplate", "templates", [200];
    /// Delete a template; its sessions continue, its name is free again.
    DELETE "/templates/{template_id}" templates::delete, "deleteTemplate", "templates", [200];
    /// The capabilities of a template.
    GET "/templates/{template_id}/capabilities" parts::capabilities, "listCapabilities", "template parts", [200];
    /// Add a capability: it grants, narrows or withdraws a right.
    POST "/templates/{template_id}/capabilities" parts::add_capability, "addCapability", "template parts", [201];
    /// Remove a capability.
    DELETE "/templates/{template_id}/capabilities/{capability_id}" parts::remove_capability, "removeCapability", "template parts", [200];
    /// The startup files of a template, in the order in which they run.
    GET "/templates/{template_id}/startup-files" parts::startup_files, "listStartupFiles", "template parts", [200];
    /// Add a file that new sessions run at their start.
    POST "/templates/{template_id}/startup-files" parts::add_startup_file, "addStartupFile", "template parts", [201];
    /// Remove a startup file.
    DELETE "/templates/{template_id}/startup-files/{file_id}" parts::remove_startup_file, "removeStartupFile", "template parts", [200];
    /// The names of a template's host modules.
    GET "/templates/{template_id}/modules" parts::modules, "listTemplateModules", "template parts", [200];
    /// Add a host module that sessions may require. Adding it twice changes nothing.
    POST "/templates/{template_id}/modules" parts::add_module, "addTemplateModule", "template parts", [201];
    /// Remove a host module. Removing an absent one changes nothing.
    DELETE "/templates/{template_id}/modules/{name}" parts::remove_module, "removeTemplateModule", "template parts", [200];
    /// The names of a template's libraries.
    GET "/templates/{template_id}/libraries" parts::libraries, "listTemplateLibraries", "template parts", [200];
    /// Add a library for new sessions: `id-version`, or `id` for the installed version.
    POST "/templates/{template_id}/libraries" parts::add_library, "addTemplateLibrary", "template parts", [201];
    /// Remove a library; existing sessions keep it.
    DELETE "/templates/{template_id}/libraries/{name}" parts::remove_library, "removeTemplateLibrary", "template parts", [200];
    /// Sessions, newest first.
    GET "/sessions" sessions::list, "listSessions", "sessions", [200];
    /// Create a session and wait until it is ready.
    POST "/sessions" sessions::create, "createSession", "sessions", [201];
    /// One session.
    GET "/sessions/{session_id}" sessions::get, "getSession", "sessions", [200];
    /// Give a session that has not ended another name.
    POST "/sessions/{session_id}/rename" sessions::rename, "renameSession", "sessions", [200];
    /// End a session; a running execution becomes `cancelled` first. Idempotent.
    POST "/sessions/{session_id}/close" sessions::close, "closeSession", "sessions", [200];
    /// The same as `close`.
    DELETE "/sessions/{session_id}" sessions::delete, "deleteSession", "sessions", [200];
    /// A session's process as the kernel reports it.
    GET "/sessions/{session_id}/inspect" sessions::inspect, "inspectSession", "sessions", [200];
    /// Events of a session's life, in order: its executions, forks, adoptions and its end; as a live stream with `Accept:
    /// text/event-stream`.
    GET "/sessions/{session_id}/events" sessions::events, "listSessionEvents", "sessions", [200, 204];
    /// Send a session's worker a signal.
    POST "/sessions/{session_id}/kill" sessions::kill, "killSession", "sessions", [202];
    /// Create copies of an idle session, each with its current state; if one fails, none is created.
    POST "/sessions/{session_id}/fork" sessions::fork, "forkSession", "sessions", [201];
    /// Checkpoints of a live session, oldest first.
    GET "/sessions/{session_id}/checkpoints" sessions::checkpoints, "listSessionCheckpoints", "sessions", [200] or [409, 422];
    /// Keep a frozen copy of an idle session, to which it can be rolled back.
    POST "/sessions/{session_id}/checkpoints" sessions::checkpoint, "createSessionCheckpoint", "sessions", [201];
    /// Give up a checkpoint.
    DELETE "/sessions/{session_id}/checkpoints/{checkpoint}" sessions::delete_checkpoint, "deleteSessionCheckpoint", "sessions", [200] or [422];
    /// Continue an idle session from a checkpoint, which stays.
    POST "/sessions/{session_id}/rollback" sessions::rollback, "rollbackSession", "sessions", [200];
    /// Stop the worker of an idle session until a request needs it.
    POST "/sessions/{session_id}/suspend" sessions::suspend, "suspendSession", "sessions", [200];
    /// Let the worker of a suspended session run again.
    POST "/sessions/{session_id}/resume" sessions::resume, "resumeSession", "sessions", [200];
    /// Repeat the successful inputs of an ended session in a new one.
    POST "/sessions/{session_id}/restore" restorations::restore, "restoreSession", "sessions", [201];
    /// How far the restoration in a new session is, or its result.
    GET "/sessions/{session_id}/restoration" restorations::get, "getRestoration", "sessions", [200];
    /// Turns the connection into one of the control protocol, which the command line speaks (RFC 9110, section 7.8). Its caller
    /// is the caller of this request. Not for pages in a browser.
    GET "/control" upgrade::begin, "upgradeToControl", "runtime", [101];
    /// Evaluate input in a session.
    POST "/executions/repl" executions::repl, "evaluateInput", "executions", [201, 202];
    /// Run a file of the worktree in a session.
    POST "/executions/run-file" executions::run_file, "runFile", "executions", [201, 202];
    /// Executions of a session, or of programs; newest first, without events and tasks; with filters.
    GET "/executions" executions::list, "listExecutions", "executions", [200] or [404];
    /// One execution, by id or name; for an execution of a program also the program, its version and the pending task.
    GET "/executions/{execution_id}" executions::get, "getExecution", "executions", [200];
    /// End a running execution as `cancelled`. Does nothing if it has already ended.
    POST "/executions/{execution_id}/cancel" executions::cancel, "cancelExecution", "executions", [202];
    /// Events of an execution, in order; as a live stream with `Accept: text/event-stream`.
    GET "/executions/{execution_id}/events" executions::events, "listEvents", "executions", [200, 204];
    /// Programs, newest first, without sources; with filters.
    GET "/programs" programs::list, "listPrograms", "programs", [200];
    /// Compile a source text and store it as a program.
    POST "/programs" programs::load, "loadProgram", "programs", [201];
    /// One program with its source, by id or name.
    GET "/programs/{program}" programs::get, "getProgram", "programs", [200];
    /// Versions of a program, newest first, without sources.
    GET "/programs/{program}/versions" programs::versions, "listProgramVersions", "programs", [200];
    /// Delete a program; its executions continue, its name is free again.
    DELETE "/programs/{program}" programs::delete, "deleteProgram", "programs", [200];
    /// Executions of a program, newest first, without tasks; with filters.
    GET "/programs/{program}/executions" programs::executions, "listProgramExecutions", "programs", [200];
    /// Compile a plan, or report its errors; nothing is stored.
    POST "/plans" programs::check_plan, "checkPlan", "programs", [200];
    /// A program with all its versions, as a file that can be imported.
    GET "/programs/{program}/export" archives::export_program, "exportProgram", "programs", [200];
    /// A waiting or ended execution of a program, with its program version, states, tasks and output, as a file that can be
    /// imported. The file has all data of the program.
    GET "/executions/{execution_id}/export" archives::export_execution, "exportExecution", "programs", [200];
    /// Create a program from a file, under a new id.
    POST "/imports/program" archives::import_program, "importProgram", "programs", [201];
    /// Create an execution from a file, under a new id; its program is created too, unless the same one exists.
    POST "/imports/execution" archives::import_execution, "importExecution", "programs", [201];
    /// Run a program to its first pause or its end.
    POST "/executions/program" durable::start, "startProgram", "programs", [201, 202];
    /// Delete an execution of a program with its output and states; if it has not ended, it is ended first.
    DELETE "/executions/{execution_id}" durable::forget, "deleteExecution", "programs", [200];
    /// The current execution of a client: the one that its requests use if they name none. Clients of `vm-system mcp --client
    /// NAME` are called `client NAME`.
    GET "/clients/{client}/current-execution" durable::current, "getCurrentExecution", "programs", [200];
    /// Set the current execution of a client.
    PUT "/clients/{client}/current-execution" durable::set_current, "setCurrentExecution", "programs", [200];
    /// Status of an execution of a program, and its pending task. Reading it changes nothing.
    GET "/executions/{execution_id}/task" durable::task, "getTask", "tasks", [200];
    /// Submit an answer; the response follows when the program has reached its next pause or its end.
    POST "/executions/{execution_id}/task" durable::submit, "submitAnswer", "tasks", [200, 202];
    /// Pending tasks, oldest first; with a `status`, tasks that have ended, newest first.
    GET "/tasks" durable::tasks, "listTasks", "tasks", [200] or [404];
    /// Give an execution of a program an event, or all that wait for it. The response follows when it is stored.
    POST "/events" durable::emit, "emitEvent", "tasks", [200];
    /// Frames and variables of a program that waits or has ended.
    GET "/executions/{execution_id}/state" durable::state, "getState", "programs", [200];
    /// Change a variable of a waiting execution.
    PATCH "/executions/{execution_id}/state" durable::set, "setVariable", "programs", [200];
    /// The stored checkpoints of an execution.
    GET "/executions/{execution_id}/checkpoints" durable::checkpoints, "listCheckpoints", "programs", [200];
    /// Start a new execution from a checkpoint; it takes over the name, and the old one ends as `cancelled`. The response follows
    /// at its next pause or its end.
    POST "/executions/{execution_id}/rewind" durable::rewind, "rewindExecution", "programs", [200];
    /// Start a new execution from a checkpoint; the old one is not changed. The response follows at its next pause or its end.
    POST "/executions/{execution_id}/fork" durable::branch_off, "forkExecution", "programs", [201];
    /// Start a new execution from a checkpoint with other answers and other values of variables, all of it or nothing. The response
    /// follows at its next pause or its end.
    POST "/executions/{execution_id}/rerun" durable::rerun, "rerunExecution", "programs", [201];
    /// Schedules, newest first.
    GET "/schedules" schedules::list, "listSchedules", "schedules", [200];
    /// Start a program at certain times.
    POST "/schedules" schedules::add, "addSchedule", "schedules", [201];
    /// One schedule, by id or name.
    GET "/schedules/{schedule}" schedules::get, "getSchedule", "schedules", [200];
    /// Delete a schedule; its executions continue.
    DELETE "/schedules/{schedule}" schedules::delete, "deleteSchedule", "schedules", [200];
    /// Start nothing until the schedule is resumed; a time that waits is given up.
    POST "/schedules/{schedule}/pause" schedules::pause, "pauseSchedule", "schedules", [200];
    /// Let a paused schedule go on with its next time.
    POST "/schedules/{schedule}/resume" schedules::resume, "resumeSchedule", "schedules", [200];
    /// Start the program of a schedule now, beside its times.
    POST "/schedules/{schedule}/run" schedules::run, "runSchedule", "schedules", [201];
}

/// Refuses query parameters that a route does not have.
async fn known_parameters(
    State(queries): State<Arc<Queries>>,
    request: Request,
    next: Next,
) -> Result<Response, RestError> {
    if let Some(query) = request.uri().query()
        && let Some(path) = request.extensions().get::<MatchedPath>()
    {
        let path = path.as_str().strip_prefix(PREFIX).unwrap_or_default();
        let known = queries.get(&(request.method().as_str(), path)).copied().unwrap_or_default();
        if let Some(message) = unknown_parameter(query, known) {
            return Err(RestError::invalid(message));
        }
    }
    Ok(next.run(request).await)
}

/// The error about the first parameter of a query that is not known; `None`: all are.
pub(super) fn unknown_parameter(query: &str, known: &[&str]) -> Option<String> {
    let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    let unknown = names.find(|name| !known.contains(&name.as_ref()))?;
    let shown: String = unknown.chars().take(100).collect();
    let all =
        if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
    Some(format!("this resource has no query parameter {shown:?} ({all})"))
}

/// The response to a method that a resource does not have, with those that it has in the header `Allow`: 204 for `OPTIONS`.
pub(super) fn other_method(method: &Method, allow: &'static str) -> Response {
    let mut response = without_allow(method);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}

/// As [`other_method`] where the router adds the header.
fn without_allow(method: &Method) -> Response {
    if *method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    RestError::method().into_response()
}

/// The router for all connections.
pub(super) fn service(app: Arc<App>) -> TowerToHyperService<Router> {
    let Table { router, queries } = table();
    let routes = router
        .route_layer(middleware::from_fn_with_state(Arc::new(queries), known_parameters))
        .fallback(|| async { RestError::no_route() })
        .method_not_allowed_fallback(|method: Method| async move { without_allow(&method) });
    let whole =
        Router::new().nest(PREFIX, routes).fallback(|| async { RestError::no_route() }).with_state(app);
    TowerToHyperService::new(whole)
}
