//! The table of routes. Each is added together with its description, so that none is served without one.

use super::envelope::Problem;
use super::{App, PREFIX, archives, durable, executions, parts, programs, runtime, sessions, templates};
use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use utoipa::openapi::HttpMethod;

/// Routes, and what is served by them.
pub(super) struct Table {
    router: Router<Arc<App>>,
    /// `GET /templates/{template_id}`.
    pub(super) listed: Vec<String>,
}

impl Table {
    /// Adds the route that `description` describes.
    fn with<P, H, T>(mut self, _description: P, handler: H) -> Self
    where
        P: utoipa::Path,
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let path = P::path();
        let mut all: Option<MethodFilter> = None;
        for method in P::methods() {
            let (name, filter) = match method {
                HttpMethod::Post => ("POST", MethodFilter::POST),
                HttpMethod::Patch => ("PATCH", MethodFilter::PATCH),
                HttpMethod::Delete => ("DELETE", MethodFilter::DELETE),
                HttpMethod::Put => ("PUT", MethodFilter::PUT),
                _ => ("GET", MethodFilter::GET),
            };
            self.listed.push(format!("{name} {path}"));
            all = Some(all.map_or(filter, |all| all.or(filter)));
        }
        if let Some(all) = all {
            self.router = self.router.route(&path, on(all, handler));
        }
        self
    }
}

/// All routes below [`PREFIX`].
pub(super) fn table() -> Table {
    Table { router: Router::new(), listed: Vec::new() }
        .with(runtime::__path_health, runtime::health)
        .with(runtime::__path_summary, runtime::summary)
        .with(runtime::__path_info, runtime::info)
        .with(runtime::__path_modules, runtime::modules)
        .with(runtime::__path_libraries, runtime::libraries)
        .with(runtime::__path_description, runtime::description)
        .with(templates::__path_list, templates::list)
        .with(templates::__path_create, templates::create)
        .with(templates::__path_get, templates::get)
        .with(templates::__path_update, templates::update)
        .with(templates::__path_delete, templates::delete)
        .with(parts::__path_capabilities, parts::capabilities)
        .with(parts::__path_add_capability, parts::add_capability)
        .with(parts::__path_remove_capability, parts::remove_capability)
        .with(parts::__path_startup_files, parts::startup_files)
        .with(parts::__path_add_startup_file, parts::add_startup_file)
        .with(parts::__path_remove_startup_file, parts::remove_startup_file)
        .with(parts::__path_modules, parts::modules)
        .with(parts::__path_add_module, parts::add_module)
        .with(parts::__path_remove_module, parts::remove_module)
        .with(parts::__path_libraries, parts::libraries)
        .with(parts::__path_add_library, parts::add_library)
        .with(parts::__path_remove_library, parts::remove_library)
        .with(sessions::__path_list, sessions::list)
        .with(sessions::__path_create, sessions::create)
        .with(sessions::__path_get, sessions::get)
        .with(sessions::__path_close, sessions::close)
        .with(sessions::__path_delete, sessions::delete)
        .with(sessions::__path_inspect, sessions::inspect)
        .with(sessions::__path_kill, sessions::kill)
        .with(sessions::__path_fork, sessions::fork)
        .with(executions::__path_repl, executions::repl)
        .with(executions::__path_run_file, executions::run_file)
        .with(executions::__path_list, executions::list)
        .with(executions::__path_get, executions::get)
        .with(executions::__path_cancel, executions::cancel)
        .with(executions::__path_events, executions::events)
        .with(programs::__path_list, programs::list)
        .with(programs::__path_load, programs::load)
        .with(programs::__path_get, programs::get)
        .with(programs::__path_versions, programs::versions)
        .with(programs::__path_delete, programs::delete)
        .with(programs::__path_executions, programs::executions)
        .with(programs::__path_check_plan, programs::check_plan)
        .with(archives::__path_export_program, archives::export_program)
        .with(archives::__path_export_execution, archives::export_execution)
        .with(archives::__path_import_program, archives::import_program)
        .with(archives::__path_import_execution, archives::import_execution)
        .with(durable::__path_start, durable::start)
        .with(durable::__path_forget, durable::forget)
        .with(durable::__path_current, durable::current)
        .with(durable::__path_set_current, durable::set_current)
        .with(durable::__path_task, durable::task)
        .with(durable::__path_submit, durable::submit)
        .with(durable::__path_tasks, durable::tasks)
        .with(durable::__path_state, durable::state)
        .with(durable::__path_set, durable::set)
        .with(durable::__path_checkpoints, durable::checkpoints)
        .with(durable::__path_rewind, durable::rewind)
        .with(durable::__path_branch_off, durable::branch_off)
}

/// What answers the requests of all connections.
pub(super) fn service(app: Arc<App>) -> TowerToHyperService<Router> {
    let routes = table()
        .router
        .fallback(|| async { Problem::no_route() })
        .method_not_allowed_fallback(|| async { Problem::method() });
    let whole = Router::new().nest(PREFIX, routes).fallback(|| async { Problem::no_route() }).with_state(app);
    TowerToHyperService::new(whole)
}
