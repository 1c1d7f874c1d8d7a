//! The table of routes. `docs/openapi.json` describes each of them; a test in `openapi` compares the two.

use super::envelope::RestError;
use super::{
    App, PREFIX, archives, durable, executions, openapi, parts, programs, restorations, runtime, sessions,
    templates, upgrade,
};
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::handler::Handler;
use axum::http::header::{self, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;

type NamedMethod = (&'static str, MethodFilter);
const GET: NamedMethod = ("GET", MethodFilter::GET);
const POST: NamedMethod = ("POST", MethodFilter::POST);
const PUT: NamedMethod = ("PUT", MethodFilter::PUT);
const PATCH: NamedMethod = ("PATCH", MethodFilter::PATCH);
const DELETE: NamedMethod = ("DELETE", MethodFilter::DELETE);

/// Routes with their handlers.
pub(super) struct Table {
    router: Router<Arc<App>>,
    /// `GET /templates/{template_id}`.
    pub(super) listed: Vec<String>,
}

impl Table {
    fn with<H, T>(mut self, (name, filter): NamedMethod, path: &str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        self.listed.push(format!("{name} {path}"));
        self.router = self.router.route(path, on(filter, handler));
        self
    }
}

/// All routes below [`PREFIX`].
pub(super) fn table() -> Table {
    Table { router: Router::new(), listed: Vec::new() }
        .with(GET, "/health", runtime::health)
        .with(GET, "/runtime/summary", runtime::summary)
        .with(GET, "/runtime", runtime::info)
        .with(GET, "/runtime/upgrade", runtime::upgrade)
        .with(PUT, "/runtime/upgrade", runtime::drain)
        .with(GET, "/modules", runtime::modules)
        .with(GET, "/libraries", runtime::libraries)
        .with(GET, "/openapi.json", runtime::description)
        .with(GET, "/templates", templates::list)
        .with(POST, "/templates", templates::create)
        .with(GET, "/templates/{template_id}", templates::get)
        .with(PATCH, "/templates/{template_id}", templates::update)
        .with(DELETE, "/templates/{template_id}", templates::delete)
        .with(GET, "/templates/{template_id}/capabilities", parts::capabilities)
        .with(POST, "/templates/{template_id}/capabilities", parts::add_capability)
        .with(DELETE, "/templates/{template_id}/capabilities/{capability_id}", parts::remove_capability)
        .with(GET, "/templates/{template_id}/startup-files", parts::startup_files)
        .with(POST, "/templates/{template_id}/startup-files", parts::add_startup_file)
        .with(DELETE, "/templates/{template_id}/startup-files/{file_id}", parts::remove_startup_file)
        .with(GET, "/templates/{template_id}/modules", parts::modules)
        .with(POST, "/templates/{template_id}/modules", parts::add_module)
        .with(DELETE, "/templates/{template_id}/modules/{name}", parts::remove_module)
        .with(GET, "/templates/{template_id}/libraries", parts::libraries)
        .with(POST, "/templates/{template_id}/libraries", parts::add_library)
        .with(DELETE, "/templates/{template_id}/libraries/{name}", parts::remove_library)
        .with(GET, "/sessions", sessions::list)
        .with(POST, "/sessions", sessions::create)
        .with(GET, "/sessions/{session_id}", sessions::get)
        .with(POST, "/sessions/{session_id}/rename", sessions::rename)
        .with(POST, "/sessions/{session_id}/close", sessions::close)
        .with(DELETE, "/sessions/{session_id}", sessions::delete)
        .with(GET, "/sessions/{session_id}/inspect", sessions::inspect)
        .with(GET, "/sessions/{session_id}/events", sessions::events)
        .with(POST, "/sessions/{session_id}/kill", sessions::kill)
        .with(POST, "/sessions/{session_id}/fork", sessions::fork)
        .with(GET, "/sessions/{session_id}/checkpoints", sessions::checkpoints)
        .with(POST, "/sessions/{session_id}/checkpoints", sessions::checkpoint)
        .with(DELETE, "/sessions/{session_id}/checkpoints/{checkpoint}", sessions::delete_checkpoint)
        .with(POST, "/sessions/{session_id}/rollback", sessions::rollback)
        .with(POST, "/sessions/{session_id}/suspend", sessions::suspend)
        .with(POST, "/sessions/{session_id}/resume", sessions::resume)
        .with(POST, "/sessions/{session_id}/restore", restorations::restore)
        .with(GET, "/sessions/{session_id}/restoration", restorations::get)
        .with(GET, "/control", upgrade::begin)
        .with(POST, "/executions/repl", executions::repl)
        .with(POST, "/executions/run-file", executions::run_file)
        .with(GET, "/executions", executions::list)
        .with(GET, "/executions/{execution_id}", executions::get)
        .with(POST, "/executions/{execution_id}/cancel", executions::cancel)
        .with(GET, "/executions/{execution_id}/events", executions::events)
        .with(GET, "/programs", programs::list)
        .with(POST, "/programs", programs::load)
        .with(GET, "/programs/{program}", programs::get)
        .with(GET, "/programs/{program}/versions", programs::versions)
        .with(DELETE, "/programs/{program}", programs::delete)
        .with(GET, "/programs/{program}/executions", programs::executions)
        .with(POST, "/plans", programs::check_plan)
        .with(GET, "/programs/{program}/export", archives::export_program)
        .with(GET, "/executions/{execution_id}/export", archives::export_execution)
        .with(POST, "/imports/program", archives::import_program)
        .with(POST, "/imports/execution", archives::import_execution)
        .with(POST, "/executions/program", durable::start)
        .with(DELETE, "/executions/{execution_id}", durable::forget)
        .with(GET, "/clients/{client}/current-execution", durable::current)
        .with(PUT, "/clients/{client}/current-execution", durable::set_current)
        .with(GET, "/executions/{execution_id}/task", durable::task)
        .with(POST, "/executions/{execution_id}/task", durable::submit)
        .with(GET, "/tasks", durable::tasks)
        .with(GET, "/executions/{execution_id}/state", durable::state)
        .with(PATCH, "/executions/{execution_id}/state", durable::set)
        .with(GET, "/executions/{execution_id}/checkpoints", durable::checkpoints)
        .with(POST, "/executions/{execution_id}/rewind", durable::rewind)
        .with(POST, "/executions/{execution_id}/fork", durable::branch_off)
}

/// Refuses query parameters that the description does not have for a route.
async fn known_parameters(request: Request, next: Next) -> Result<Response, RestError> {
    if let Some(query) = request.uri().query()
        && let Some(path) = request.extensions().get::<MatchedPath>()
    {
        let path = path.as_str().strip_prefix(PREFIX).unwrap_or_default();
        let known = openapi::query_parameters(request.method(), path);
        if let Some(message) = unknown_parameter(query, &known) {
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
    let routes = table()
        .router
        .route_layer(middleware::from_fn(known_parameters))
        .fallback(|| async { RestError::no_route() })
        .method_not_allowed_fallback(|method: Method| async move { without_allow(&method) });
    let whole =
        Router::new().nest(PREFIX, routes).fallback(|| async { RestError::no_route() }).with_state(app);
    TowerToHyperService::new(whole)
}
