//! Routes of the parts of a template: capabilities, startup files, modules, libraries.

use super::envelope::{RestError, RestResult, created, ok};
use super::input::{JsonBody, PathSegments, id, required, whole, with_integers};
use super::request::RestRequest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use vm_system_protocol::control::{
    NewCapability, NewStartupFile, TemplateAddCapability, TemplateAddLibrary, TemplateAddModule,
    TemplateAddStartup, TemplateGet, TemplateRemoveCapability, TemplateRemoveLibrary, TemplateRemoveModule,
    TemplateRemoveStartup,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{CapabilityKind, TemplateDetail};

/// A new capability; (kind, name) is unique in its template.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CapabilityBody {
    /// `module`, `global`, `fs`, `net` or `env`.
    kind: Option<String>,
    name: Option<String>,
    /// Whether it grants (true) or withdraws (false, the default).
    enabled: Option<bool>,
    /// Bounds of the right.
    config: Option<Box<RawValue>>,
}

/// A new startup file; its path is unique in its template.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StartupFileBody {
    /// Relative to the session's worktree.
    path: Option<String>,
    /// Lower runs first (default 0).
    #[serde(deserialize_with = "whole")]
    order_index: Option<i64>,
    /// `eval` (default), or `import` if the template's `runtime.esm` is true.
    mode: Option<String>,
}

/// A name that is added to a template.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NameBody {
    name: Option<String>,
}

/// The response about a removed part.
#[derive(Serialize)]
struct Removed<'a, T> {
    status: &'static str,
    #[serde(flatten)]
    what: &'a T,
}

fn removed<T: Serialize>(what: &T) -> RestResult {
    ok(&Removed { status: "ok", what })
}

async fn template(request: &RestRequest, template: &str) -> Result<TemplateDetail, RestError> {
    request.op(TemplateGet { template: id("template_id", template)? }).await
}

/// The capabilities of a template.
pub(super) async fn capabilities(request: RestRequest, PathSegments(of): PathSegments<String>) -> RestResult {
    ok(&template(&request, &of).await?.capabilities)
}

/// Add a capability: it grants, narrows or withdraws a right.
pub(super) async fn add_capability(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
    JsonBody(body): JsonBody<CapabilityBody>,
) -> RestResult {
    let template = id("template_id", &of)?;
    let kind: CapabilityKind = required("kind", body.kind)?
        .parse()
        .map_err(|_| RestError::invalid("kind must be one of module, global, fs, net, env"))?;
    let name = required("name", body.name)?;
    let config = with_integers("config", body.config.as_deref())?.unwrap_or_else(JsonText::empty_object);
    let enabled = body.enabled.unwrap_or_default();
    let capability = NewCapability { kind, name, enabled, config };
    created(&request.op(TemplateAddCapability { template, capability }).await?)
}

/// Remove a capability.
pub(super) async fn remove_capability(
    request: RestRequest,
    PathSegments((of, which)): PathSegments<(String, String)>,
) -> RestResult {
    let (template, capability) = (id("template_id", &of)?, id("capability_id", &which)?);
    let capability = request.op(TemplateRemoveCapability { template, capability }).await?;
    removed(&capability)
}

/// The startup files of a template, in the order in which they run.
pub(super) async fn startup_files(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
) -> RestResult {
    ok(&template(&request, &of).await?.startup_files)
}

/// Add a file that new sessions run at their start.
pub(super) async fn add_startup_file(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
    JsonBody(body): JsonBody<StartupFileBody>,
) -> RestResult {
    let template = id("template_id", &of)?;
    let path = body.path.ok_or_else(|| RestError::invalid("path is missing"))?;
    let mode = body.mode.filter(|mode| !mode.trim().is_empty()).unwrap_or_else(|| "eval".to_owned());
    let file = NewStartupFile { path, order_index: body.order_index.unwrap_or_default(), mode };
    created(&request.op(TemplateAddStartup { template, file }).await?)
}

/// Remove a startup file.
pub(super) async fn remove_startup_file(
    request: RestRequest,
    PathSegments((of, which)): PathSegments<(String, String)>,
) -> RestResult {
    let (template, file) = (id("template_id", &of)?, id("file_id", &which)?);
    let file = request.op(TemplateRemoveStartup { template, file }).await?;
    removed(&file)
}

/// The names of a template's host modules.
pub(super) async fn modules(request: RestRequest, PathSegments(of): PathSegments<String>) -> RestResult {
    ok(&template(&request, &of).await?.template.exposed_modules)
}

/// Add a host module that sessions may require. Adding it twice changes nothing.
pub(super) async fn add_module(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
    JsonBody(body): JsonBody<NameBody>,
) -> RestResult {
    let (template, name) = (id("template_id", &of)?, required("name", body.name)?);
    created(&request.op(TemplateAddModule { template, name }).await?)
}

/// Remove a host module. Removing an absent one changes nothing.
pub(super) async fn remove_module(
    request: RestRequest,
    PathSegments((of, name)): PathSegments<(String, String)>,
) -> RestResult {
    let template = id("template_id", &of)?;
    let name = request.op(TemplateRemoveModule { template, name }).await?;
    removed(&name)
}

/// The names of a template's libraries.
pub(super) async fn libraries(request: RestRequest, PathSegments(of): PathSegments<String>) -> RestResult {
    ok(&template(&request, &of).await?.template.libraries)
}

/// Add a library for new sessions: `id-version`, or `id` for the installed version.
pub(super) async fn add_library(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
    JsonBody(body): JsonBody<NameBody>,
) -> RestResult {
    let (template, name) = (id("template_id", &of)?, required("name", body.name)?);
    created(&request.op(TemplateAddLibrary { template, name }).await?)
}

/// Remove a library; existing sessions keep it.
pub(super) async fn remove_library(
    request: RestRequest,
    PathSegments((of, name)): PathSegments<(String, String)>,
) -> RestResult {
    let template = id("template_id", &of)?;
    let name = request.op(TemplateRemoveLibrary { template, name }).await?;
    removed(&name)
}
