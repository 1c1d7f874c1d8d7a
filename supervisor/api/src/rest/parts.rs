//! Routes about the parts of a template: capabilities, startup files, modules, libraries.

use super::ask::{Ask, unexpected};
use super::envelope::{Answer, Problem, created, ok};
use super::input::{At, Input, id, object, required};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use vm_system_protocol::control::{NewCapability, NewStartupFile, Op, Reply};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{CapabilityKind, TemplateDetail};

/// A capability that is to be; (kind, name) is unique in its template.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CapabilityBody {
    /// `module`, `global`, `fs`, `net` or `env`.
    kind: Option<String>,
    name: Option<String>,
    /// Whether it gives (true) or withdraws (false, the default).
    enabled: Option<bool>,
    /// What narrows it.
    config: Option<Box<RawValue>>,
}

/// A startup file that is to be; its path is unique in its template.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StartupFileBody {
    /// Relative to the session's worktree.
    path: Option<String>,
    /// Lower runs first (default 0).
    order_index: Option<i64>,
    /// `eval` (default), or `import` where the template's `runtime.esm` is true.
    mode: Option<String>,
}

/// A name that is added to a template.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NameBody {
    name: Option<String>,
}

/// What was taken away.
#[derive(Serialize)]
struct Removed<'a, T> {
    status: &'static str,
    #[serde(flatten)]
    what: &'a T,
}

fn removed<T: Serialize>(what: &T) -> Answer {
    ok(&Removed { status: "ok", what })
}

async fn template(ask: &Ask, template: &str) -> Result<Box<TemplateDetail>, Problem> {
    match ask.op(Op::TemplateGet { template: id("template_id", template)? }).await? {
        Reply::TemplateDetail(detail) => Ok(detail),
        other => Err(unexpected(&other)),
    }
}

/// The capabilities of a template.
pub(super) async fn capabilities(ask: Ask, At(of): At<String>) -> Answer {
    ok(&template(&ask, &of).await?.capabilities)
}

/// Give, narrow or withdraw a right.
pub(super) async fn add_capability(
    ask: Ask,
    At(of): At<String>,
    Input(body): Input<CapabilityBody>,
) -> Answer {
    let template = id("template_id", &of)?;
    let kind: CapabilityKind = required("kind", body.kind)?
        .parse()
        .map_err(|_| Problem::invalid("kind must be one of module, global, fs, net, env"))?;
    let name = required("name", body.name)?;
    let config = object("config", body.config.as_deref())?.unwrap_or_else(JsonText::empty_object);
    let enabled = body.enabled.unwrap_or_default();
    let capability = Box::new(NewCapability { kind, name, enabled, config });
    created(&ask.op(Op::TemplateAddCapability { template, capability }).await?)
}

/// Take a capability away.
pub(super) async fn remove_capability(ask: Ask, At((of, which)): At<(String, String)>) -> Answer {
    let (template, capability) = (id("template_id", &of)?, id("capability_id", &which)?);
    match ask.op(Op::TemplateRemoveCapability { template, capability }).await? {
        Reply::Capability(capability) => removed(&capability),
        other => Err(unexpected(&other)),
    }
}

/// The startup files of a template, in the order in which they run.
pub(super) async fn startup_files(ask: Ask, At(of): At<String>) -> Answer {
    ok(&template(&ask, &of).await?.startup_files)
}

/// Let new sessions run a file first.
pub(super) async fn add_startup_file(
    ask: Ask,
    At(of): At<String>,
    Input(body): Input<StartupFileBody>,
) -> Answer {
    let template = id("template_id", &of)?;
    let path = body.path.ok_or_else(|| Problem::invalid("path is missing"))?;
    let mode = body.mode.filter(|mode| !mode.trim().is_empty()).unwrap_or_else(|| "eval".to_owned());
    let file = Box::new(NewStartupFile { path, order_index: body.order_index.unwrap_or_default(), mode });
    created(&ask.op(Op::TemplateAddStartup { template, file }).await?)
}

/// Take a startup file away.
pub(super) async fn remove_startup_file(ask: Ask, At((of, which)): At<(String, String)>) -> Answer {
    let (template, file) = (id("template_id", &of)?, id("file_id", &which)?);
    match ask.op(Op::TemplateRemoveStartup { template, file }).await? {
        Reply::StartupFile(file) => removed(&file),
        other => Err(unexpected(&other)),
    }
}

/// The names of a template's host modules.
pub(super) async fn modules(ask: Ask, At(of): At<String>) -> Answer {
    ok(&template(&ask, &of).await?.template.exposed_modules)
}

/// Let sessions require a host module. Adding it twice changes nothing.
pub(super) async fn add_module(ask: Ask, At(of): At<String>, Input(body): Input<NameBody>) -> Answer {
    let (template, name) = (id("template_id", &of)?, required("name", body.name)?);
    created(&ask.op(Op::TemplateAddModule { template, name }).await?)
}

/// Withdraw a host module. Removing an absent one changes nothing.
pub(super) async fn remove_module(ask: Ask, At((of, name)): At<(String, String)>) -> Answer {
    let template = id("template_id", &of)?;
    match ask.op(Op::TemplateRemoveModule { template, name }).await? {
        Reply::TemplateName(name) => removed(&name),
        other => Err(unexpected(&other)),
    }
}

/// The names of a template's libraries.
pub(super) async fn libraries(ask: Ask, At(of): At<String>) -> Answer {
    ok(&template(&ask, &of).await?.template.libraries)
}

/// Give new sessions a library: `id-version`, or `id` for the version that is installed.
pub(super) async fn add_library(ask: Ask, At(of): At<String>, Input(body): Input<NameBody>) -> Answer {
    let (template, name) = (id("template_id", &of)?, required("name", body.name)?);
    created(&ask.op(Op::TemplateAddLibrary { template, name }).await?)
}

/// Take a library away; sessions that have it keep it.
pub(super) async fn remove_library(ask: Ask, At((of, name)): At<(String, String)>) -> Answer {
    let template = id("template_id", &of)?;
    match ask.op(Op::TemplateRemoveLibrary { template, name }).await? {
        Reply::TemplateName(name) => removed(&name),
        other => Err(unexpected(&other)),
    }
}
