//! Routes of templates.

use super::envelope::{RestError, RestResult, created, ok};
use super::input::{JsonBody, PathSegments, QueryParams, id, required, with_integers};
use super::pages;
use super::request::RestRequest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use vm_system_protocol::control::{
    ErrorCode, OpError, TemplateChange, TemplateCreate, TemplateDelete, TemplateGet, TemplateList,
    TemplateUpdate,
};
use vm_system_protocol::ids::TemplateId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, Engine, Settings, StartupFile, Template, TemplateDetail};

/// A new template.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NewTemplate {
    /// Unique among the owner's templates.
    name: Option<String>,
    /// `quickjs` (default), `goja` (an alias of it), `cvm`.
    engine: Option<String>,
}

/// Changes to a template: absent fields are not changed; within a part, `null` resets a field to its default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TemplatePatch {
    name: Option<String>,
    /// Any fields of the settings' `limits`.
    limits: Option<Box<RawValue>>,
    /// Any fields of the settings' `resolver`.
    resolver: Option<Box<RawValue>>,
    /// Any fields of the settings' `runtime`.
    runtime: Option<Box<RawValue>>,
}

/// Templates, newest first.
pub(super) async fn list(request: RestRequest, params: QueryParams) -> RestResult {
    let (page, built_in) = (pages::requested(&params, pages::MOST)?, params.flag("built_in", false)?);
    let templates = request.op(TemplateList { page, built_in }).await?;
    pages::response(page, &templates)
}

/// Create a template with default settings.
pub(super) async fn create(request: RestRequest, JsonBody(body): JsonBody<NewTemplate>) -> RestResult {
    let name = required("name", body.name)?;
    let engine = match body.engine.as_deref() {
        None | Some("") => Engine::Quickjs,
        Some(engine) => engine.parse().map_err(|_| unknown_engine(engine))?,
    };
    let settings = Settings::default();
    created(&request.op(TemplateCreate { name, engine, settings, modules: Vec::new() }).await?)
}

fn unknown_engine(engine: &str) -> RestError {
    OpError::new(ErrorCode::EngineUnsupported, format!("unknown engine {engine:?}"))
        .with_hint("engines: quickjs (also called goja), cvm")
        .into()
}

/// One template with its settings, capabilities and startup files.
pub(super) async fn get(request: RestRequest, PathSegments(template): PathSegments<String>) -> RestResult {
    with_settings(&request.op(TemplateGet { template: id("template_id", &template)? }).await?)
}

/// Change a template. Narrowed rights apply from the next execution on, widened ones to new sessions.
pub(super) async fn update(
    request: RestRequest,
    PathSegments(template): PathSegments<String>,
    JsonBody(body): JsonBody<TemplatePatch>,
) -> RestResult {
    let template = id("template_id", &template)?;
    let mut parts = Vec::new();
    for (field, raw) in [("limits", &body.limits), ("resolver", &body.resolver), ("runtime", &body.runtime)] {
        if let Some(text) = with_integers(field, raw.as_deref())? {
            parts.push(format!("\"{field}\":{}", text.as_str()));
        }
    }
    // The members are whole JSON documents, so the concatenation is one too.
    let settings = (!parts.is_empty()).then(|| JsonText::from_untrusted(format!("{{{}}}", parts.join(","))));
    let change = TemplateChange { name: body.name, settings };
    with_settings(&request.op(TemplateUpdate { template, change }).await?)
}

/// Delete a template; its sessions continue, its name is free again.
pub(super) async fn delete(request: RestRequest, PathSegments(template): PathSegments<String>) -> RestResult {
    let template = id("template_id", &template)?;
    ok(&request.op(TemplateDelete { template }).await?)
}

/// The details of a template; `settings` has the template's id as `vm_id`, as in the original system.
fn with_settings(found: &TemplateDetail) -> RestResult {
    ok(&DetailBody {
        template: &found.template,
        settings: SettingsBody { vm_id: found.template.id, settings: &found.settings },
        capabilities: &found.capabilities,
        startup_files: &found.startup_files,
    })
}

#[derive(Serialize)]
struct DetailBody<'a> {
    template: &'a Template,
    settings: SettingsBody<'a>,
    capabilities: &'a [Capability],
    startup_files: &'a [StartupFile],
}

#[derive(Serialize)]
struct SettingsBody<'a> {
    vm_id: TemplateId,
    #[serde(flatten)]
    settings: &'a Settings,
}
