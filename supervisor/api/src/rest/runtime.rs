//! Routes about the supervisor itself, and the catalogs.

use super::ask::{Ask, unexpected};
use super::envelope::{Answer, ok};
use super::openapi;
use axum::body::Body;
use axum::http::{Response, header};
use vm_system_protocol::control::{Op, Reply};

/// Whether the supervisor answers.
pub(super) async fn health(ask: Ask) -> Answer {
    ok(&ask.op(Op::Health).await?)
}

/// Which sessions are alive: workers of this moment, not records. Of others only for administrators.
pub(super) async fn summary(ask: Ask) -> Answer {
    ok(&ask.op(Op::RuntimeSummary).await?)
}

/// Version, walls in force, zygotes, totals, the store's lag.
pub(super) async fn info(ask: Ask) -> Answer {
    ok(&ask.op(Op::RuntimeInfo).await?)
}

/// The host modules that templates may name.
pub(super) async fn modules(ask: Ask) -> Answer {
    match ask.op(Op::ModuleCatalog).await? {
        Reply::Modules(modules) => ok(&modules),
        other => Err(unexpected(&other)),
    }
}

/// The libraries that templates may name, with what is installed.
pub(super) async fn libraries(ask: Ask) -> Answer {
    match ask.op(Op::LibraryCatalog).await? {
        Reply::Libraries(libraries) => ok(&libraries),
        other => Err(unexpected(&other)),
    }
}

/// This description.
pub(super) async fn description(_: Ask) -> Response<Body> {
    let mut response = Response::new(Body::from(openapi::TEXT));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
