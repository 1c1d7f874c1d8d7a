//! Routes of the parts of a template: capabilities, startup files, modules, libraries.

use super::envelope::{DoneStatus, RestError, RestResult, created, ok};
use super::input::{JsonBody, PathSegments, id, required, whole, with_integers};
use super::request::RestRequest;
use super::shapes::{LibraryName, ModuleName, RelativePath, StartupModeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use vm_system_protocol::control::{
    NewCapability, NewStartupFile, TemplateAddCapability, TemplateAddLibrary, TemplateAddModule,
    TemplateAddStartup, TemplateGet, TemplateName, TemplateRemoveCapability, TemplateRemoveLibrary,
    TemplateRemoveModule, TemplateRemoveStartup,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, CapabilityKind, StartupFile, TemplateDetail};

/// A new capability; (kind, name) is unique in its template. Its kind and name determine what its `config` may have.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(with = "vm_system_ops::AnyCapability")]
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
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartupFileBody {
    /// Relative to the session's worktree.
    #[schemars(with = "RelativePath")]
    path: Option<String>,
    /// Lower runs first (default 0).
    #[serde(default, deserialize_with = "whole")]
    order_index: Option<i64>,
    /// `eval` (default), or `import` if the template's `runtime.esm` is true.
    #[schemars(with = "Option<StartupModeName>")]
    mode: Option<String>,
}

/// A library that is added to a template.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LibraryBody {
    #[schemars(with = "LibraryName")]
    name: Option<String>,
}

/// A host module that is added to a template.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ModuleNameBody {
    /// `database`, `exec` (where the operator lists commands) or `fs`: `GET /modules` has the catalog.
    #[schemars(with = "ModuleName")]
    name: Option<String>,
}

/// A removed part of a template.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Removed")]
pub(super) struct Removed<T> {
    status: DoneStatus,
    #[serde(flatten)]
    what: T,
}

fn removed<T: Serialize>(what: T) -> RestResult<Removed<T>> {
    ok(&Removed { status: DoneStatus::Ok, what })
}

async fn template(request: &RestRequest, template: &str) -> Result<TemplateDetail, RestError> {
    request.op(TemplateGet { template: id("template_id", template)? }).await
}

pub(super) async fn capabilities(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
) -> RestResult<Vec<Capability>> {
    ok(&template(&request, &of).await?.capabilities)
}

pub(super) async fn add_capability(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
    JsonBody(body): JsonBody<CapabilityBody>,
) -> RestResult<Capability> {
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

pub(super) async fn remove_capability(
    request: RestRequest,
    PathSegments((of, which)): PathSegments<(String, String)>,
) -> RestResult<Removed<Capability>> {
    let (template, capability) = (id("template_id", &of)?, id("capability_id", &which)?);
    let capability = request.op(TemplateRemoveCapability { template, capability }).await?;
    removed(capability)
}

pub(super) async fn startup_files(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
) -> RestResult<Vec<StartupFile>> {
    ok(&template(&request, &of).await?.startup_files)
}

pub(super) async fn add_startup_file(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
    JsonBody(body): JsonBody<StartupFileBody>,
) -> RestResult<StartupFile> {
    let template = id("template_id", &of)?;
    let path = body.path.ok_or_else(|| RestError::invalid("path is missing"))?;
    let mode = body.mode.filter(|mode| !mode.trim().is_empty()).unwrap_or_else(|| "eval".to_owned());
    let file = NewStartupFile { path, order_index: body.order_index.unwrap_or_default(), mode };
    created(&request.op(TemplateAddStartup { template, file }).await?)
}

pub(super) async fn remove_startup_file(
    request: RestRequest,
    PathSegments((of, which)): PathSegments<(String, String)>,
) -> RestResult<Removed<StartupFile>> {
    let (template, file) = (id("template_id", &of)?, id("file_id", &which)?);
    let file = request.op(TemplateRemoveStartup { template, file }).await?;
    removed(file)
}

pub(super) async fn modules(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
) -> RestResult<Vec<String>> {
    ok(&template(&request, &of).await?.template.exposed_modules)
}

pub(super) async fn add_module(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
    JsonBody(body): JsonBody<ModuleNameBody>,
) -> RestResult<TemplateName> {
    let (template, name) = (id("template_id", &of)?, required("name", body.name)?);
    created(&request.op(TemplateAddModule { template, name }).await?)
}

pub(super) async fn remove_module(
    request: RestRequest,
    PathSegments((of, name)): PathSegments<(String, String)>,
) -> RestResult<Removed<TemplateName>> {
    let template = id("template_id", &of)?;
    let name = request.op(TemplateRemoveModule { template, name }).await?;
    removed(name)
}

pub(super) async fn libraries(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
) -> RestResult<Vec<String>> {
    ok(&template(&request, &of).await?.template.libraries)
}

pub(super) async fn add_library(
    request: RestRequest,
    PathSegments(of): PathSegments<String>,
    JsonBody(body): JsonBody<LibraryBody>,
) -> RestResult<TemplateName> {
    let (template, name) = (id("template_id", &of)?, required("name", body.name)?);
    created(&request.op(TemplateAddLibrary { template, name }).await?)
}

pub(super) async fn remove_library(
    request: RestRequest,
    PathSegments((of, name)): PathSegments<(String, String)>,
) -> RestResult<Removed<TemplateName>> {
    let template = id("template_id", &of)?;
    let name = request.op(TemplateRemoveLibrary { template, name }).await?;
    removed(name)
}
