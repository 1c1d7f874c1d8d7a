//! Routes of the supervisor itself, and the catalogs.

use super::envelope::{RestResult, ok};
use super::input::JsonBody;
use super::openapi;
use super::request::RestRequest;
use axum::body::Body;
use axum::http::{Response, header};
use serde::Deserialize;
use vm_system_protocol::control::{
    HealthGet, LibraryCatalog, ModuleCatalog, RuntimeInfoGet, RuntimeSummaryGet, Upgrade, UpgradeDrain,
};
use vm_system_protocol::time::Timestamp;

/// Reports that the supervisor responds.
pub(super) async fn health(request: RestRequest) -> RestResult {
    ok(&request.op(HealthGet).await?)
}

/// The sessions that have a worker now. Sessions of other owners only for administrators.
pub(super) async fn summary(request: RestRequest) -> RestResult {
    ok(&request.op(RuntimeSummaryGet).await?)
}

/// Version, sandbox walls, zygotes, totals, and the store's queue.
pub(super) async fn info(request: RestRequest) -> RestResult {
    ok(&request.op(RuntimeInfoGet).await?)
}

/// Which builds the workers run. Administrators only.
pub(super) async fn upgrade(request: RestRequest) -> RestResult {
    ok(&request.op(Upgrade).await?)
}

/// By when workers of other builds than the supervisor's are replaced.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DrainBody {
    /// Absent: they are not replaced any more.
    drain_by: Option<Timestamp>,
}

/// Sets the deadline by which workers of other builds than the supervisor's are replaced, or withdraws it. Administrators only.
pub(super) async fn drain(request: RestRequest, JsonBody(body): JsonBody<DrainBody>) -> RestResult {
    let DrainBody { drain_by } = body;
    ok(&request.op(UpgradeDrain { drain_by }).await?)
}

/// The host modules that templates may name.
pub(super) async fn modules(request: RestRequest) -> RestResult {
    let modules = request.op(ModuleCatalog).await?;
    ok(&modules)
}

/// The libraries that templates may name, and whether each is installed.
pub(super) async fn libraries(request: RestRequest) -> RestResult {
    let libraries = request.op(LibraryCatalog).await?;
    ok(&libraries)
}

/// This description.
pub(super) async fn description(_: RestRequest) -> Response<Body> {
    let mut response = Response::new(Body::from(openapi::TEXT));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
