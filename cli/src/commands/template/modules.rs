//! `template add-module`, `remove-module`, `list-modules` and `list-available-modules`: the host modules of a template.

use super::{Of, detail};
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{
    ModuleCatalog, TemplateAddModule, TemplateName, TemplateRemoveModule, Verb,
};

/// Arguments of `template add-module` and `template remove-module`.
#[derive(Debug, clap::Args)]
pub struct ModuleChange {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// Name of the module
    #[arg(long, value_name = "NAME")]
    name: String,
}

pub(super) async fn add(context: &Context, args: ModuleChange) -> Result<u8, CliError> {
    let (module, of) = change(context, args, |template, name| TemplateAddModule { template, name }).await?;
    done(context, &module, &format!("Added module: {} (to template {of})", module.name))
}

pub(super) async fn remove(context: &Context, args: ModuleChange) -> Result<u8, CliError> {
    let before = detail(context, args.template.clone()).await?.template.exposed_modules;
    let (module, of) =
        change(context, args, |template, name| TemplateRemoveModule { template, name }).await?;
    let line = if before.contains(&module.name) {
        format!("Removed module: {} (from template {of})", module.name)
    } else {
        format!("Not among the modules of template {of}: {}", module.name)
    };
    done(context, &module, &line)
}

/// Requests the change; returns the module and the template's name.
async fn change<V: Verb>(
    context: &Context,
    args: ModuleChange,
    verb: impl FnOnce(String, String) -> V,
) -> Result<(TemplateName, String), CliError> {
    let current = detail(context, args.template).await?.template;
    let module = TemplateName { template_id: current.id, name: args.name.trim().to_lowercase() };
    context.call(verb(module.template_id.to_string(), module.name.clone())).await?;
    Ok((module, current.name))
}

fn done(context: &Context, module: &TemplateName, line: &str) -> Result<u8, CliError> {
    context.out.done(module, line, &module.name)?;
    Ok(exit::OK)
}

pub(super) async fn list(context: &Context, args: Of) -> Result<u8, CliError> {
    let modules = detail(context, args.template).await?.template.exposed_modules;
    context.out.list(&modules, "No modules.", || {
        let mut rows = Rows::new(["MODULE"]);
        for name in &modules {
            rows.row([name.clone()]);
        }
        rows
    })?;
    Ok(exit::OK)
}

pub(super) async fn list_available(context: &Context) -> Result<u8, CliError> {
    let modules = context.call(ModuleCatalog).await?;
    context.out.list(&modules, "No modules.", || {
        let mut rows = Rows::new(["MODULE", "DESCRIPTION"]);
        for module in &modules {
            rows.row([module.name.clone(), module.description.clone()]);
        }
        rows
    })?;
    Ok(exit::OK)
}
