//! Routes of templates.

use super::endpoint::Paged;
use super::envelope::{RestError, RestResult, created, ok};
use super::filters::TemplateQuery;
use super::input::{JsonBody, PathSegments, id, required, with_integers};
use super::pages;
use super::query::Query;
use super::request::RestRequest;
use super::shapes::{Name, Patch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use vm_system_protocol::control::{
    ErrorCode, OpError, TemplateChange, TemplateCreate, TemplateDelete, TemplateDeleted, TemplateGet,
    TemplateList, TemplateUpdate,
};
use vm_system_protocol::ids::TemplateId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Capability, Engine, Limits, Resolver, RuntimeSettings, Settings, StartupFile, Template, TemplateDetail,
};

/// A new template.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TemplateBody {
    /// Unique among the owner's templates.
    #[schemars(with = "Name")]
    name: Option<String>,
    /// `quickjs` (default), `goja` (an alias of it), `cvm`.
    #[schemars(with = "Option<Engine>")]
    engine: Option<String>,
}

/// Changes to a template: absent fields are not changed; within a part, `null` resets a field to its default.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TemplatePatch {
    #[schemars(with = "Option<Name>")]
    name: Option<String>,
    /// Any fields of `Limits`; `null` resets a field to its default.
    #[schemars(with = "Option<Patch<Limits>>")]
    limits: Option<Box<RawValue>>,
    /// Any fields of `Resolver`; `null` resets a field to its default.
    #[schemars(with = "Option<Patch<Resolver>>")]
    resolver: Option<Box<RawValue>>,
    /// Any fields of `RuntimeSettings`; `null` resets a field to its default.
    #[schemars(with = "Option<Patch<RuntimeSettings>>")]
    runtime: Option<Box<RawValue>>,
}

pub(super) async fn list(
    request: RestRequest,
    Query(query): Query<TemplateQuery>,
) -> RestResult<Vec<Template>, Paged> {
    let page = pages::requested(query.limit, query.cursor, pages::MOST);
    let built_in = query.built_in.0;
    let templates = request.op(TemplateList { page, built_in }).await?;
    pages::response(page, &templates)
}

pub(super) async fn create(
    request: RestRequest,
    JsonBody(body): JsonBody<TemplateBody>,
) -> RestResult<Template> {
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

pub(super) async fn get(
    request: RestRequest,
    PathSegments(template): PathSegments<String>,
) -> RestResult<DetailBody> {
    with_settings(request.op(TemplateGet { template: id("template_id", &template)? }).await?)
}

pub(super) async fn update(
    request: RestRequest,
    PathSegments(template): PathSegments<String>,
    JsonBody(body): JsonBody<TemplatePatch>,
) -> RestResult<DetailBody> {
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
    with_settings(request.op(TemplateUpdate { template, change }).await?)
}

pub(super) async fn delete(
    request: RestRequest,
    PathSegments(template): PathSegments<String>,
) -> RestResult<TemplateDeleted> {
    let template = id("template_id", &template)?;
    ok(&request.op(TemplateDelete { template }).await?)
}

/// The details of a template; `settings` has the template's id as `vm_id`, as in the original system.
fn with_settings(found: TemplateDetail) -> RestResult<DetailBody> {
    ok(&DetailBody {
        settings: SettingsBody { vm_id: found.template.id, settings: found.settings },
        template: found.template,
        capabilities: found.capabilities,
        startup_files: found.startup_files,
    })
}

/// A template with everything that its sessions inherit.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TemplateDetail")]
pub(super) struct DetailBody {
    template: Template,
    settings: SettingsBody,
    capabilities: Vec<Capability>,
    /// In the order in which they run.
    startup_files: Vec<StartupFile>,
}

/// All settings of a template.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Settings")]
struct SettingsBody {
    /// The template.
    vm_id: TemplateId,
    #[serde(flatten)]
    settings: Settings,
}
