//! Routes of the supervisor itself, and the catalogs.

use super::envelope::{RestResult, ok};
use super::input::JsonBody;
use super::openapi;
use super::request::RestRequest;
use super::shapes::Object;
use axum::body::Body;
use axum::http::{Response, header};
use schemars::JsonSchema;
use serde::Deserialize;
use vm_system_protocol::control::{
    Health, HealthGet, LibraryCatalog, LibraryInfo, ModuleCatalog, ModuleInfo, RuntimeInfo, RuntimeInfoGet,
    RuntimeSummary, RuntimeSummaryGet, Upgrade, UpgradeDrain, UpgradeReport,
};
use vm_system_protocol::time::Timestamp;

pub(super) async fn health(request: RestRequest) -> RestResult<Health> {
    ok(&request.op(HealthGet).await?)
}

pub(super) async fn summary(request: RestRequest) -> RestResult<RuntimeSummary> {
    ok(&request.op(RuntimeSummaryGet).await?)
}

pub(super) async fn info(request: RestRequest) -> RestResult<RuntimeInfo> {
    ok(&request.op(RuntimeInfoGet).await?)
}

pub(super) async fn upgrade(request: RestRequest) -> RestResult<UpgradeReport> {
    ok(&request.op(Upgrade).await?)
}

/// By when workers of other builds than the supervisor's are replaced.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DrainBody {
    /// Absent: they are not replaced any more.
    drain_by: Option<Timestamp>,
}

pub(super) async fn drain(
    request: RestRequest,
    JsonBody(body): JsonBody<DrainBody>,
) -> RestResult<UpgradeReport> {
    let DrainBody { drain_by } = body;
    ok(&request.op(UpgradeDrain { drain_by }).await?)
}

pub(super) async fn modules(request: RestRequest) -> RestResult<Vec<ModuleInfo>> {
    let modules = request.op(ModuleCatalog).await?;
    ok(&modules)
}

pub(super) async fn libraries(request: RestRequest) -> RestResult<Vec<LibraryInfo>> {
    let libraries = request.op(LibraryCatalog).await?;
    ok(&libraries)
}

pub(super) async fn description(_: RestRequest) -> RestResult<Object> {
    let mut response = Response::new(Body::from(openapi::TEXT));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response.into())
}
