//! `template add-capability`, `list-capabilities` and `remove-capability`: rights that a template grants, narrows or
//! withdraws.

use super::{Of, detail};
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Rows;
use crate::parse;
use vm_system_protocol::control::{NewCapability, TemplateAddCapability, TemplateRemoveCapability};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::CapabilityKind;

/// Arguments of `template add-capability`.
#[derive(Debug, clap::Args)]
pub struct AddCapability {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// Kind of the right
    #[arg(long, value_name = "KIND", value_parser = parse::capability_kind())]
    kind: CapabilityKind,
    /// Name of the module, global, variable, …
    #[arg(long, value_name = "NAME")]
    name: String,
    /// An object that narrows the right
    #[arg(long, value_name = "JSON", value_parser = parse::json_object, default_value = "{}")]
    config: JsonText,
    /// Enable the capability: it grants or narrows a right. One that is not enabled withdraws a module, a global or reading; for
    /// other rights it has no effect
    #[arg(long)]
    enabled: bool,
}

/// Arguments of `template remove-capability`.
#[derive(Debug, clap::Args)]
pub struct RemoveCapability {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// The capability's id, or a unique beginning of it
    #[arg(value_name = "CAPABILITY")]
    capability: String,
}

pub(super) async fn add(context: &Context, args: AddCapability) -> Result<u8, CliError> {
    let AddCapability { template, kind, name, config, enabled } = args;
    let capability = NewCapability { kind, name, enabled, config };
    let row = context.call(TemplateAddCapability { template, capability }).await?;
    let state = if row.enabled { "enabled" } else { "disabled" };
    let line = format!("Added capability: {}:{} (ID: {}, {state})", row.kind, row.name, row.id);
    context.out.done(&row, &line, &row.id.to_string())?;
    let withdraws = match row.kind {
        CapabilityKind::Module | CapabilityKind::Global => true,
        CapabilityKind::Fs => row.name == "read",
        CapabilityKind::Net | CapabilityKind::Env => false,
    };
    if !row.enabled && !withdraws {
        context.out.note("note: the capability is not enabled, so it has no effect: add it with --enabled");
    }
    Ok(exit::OK)
}

pub(super) async fn list(context: &Context, args: Of) -> Result<u8, CliError> {
    let capabilities = detail(context, args.template).await?.capabilities;
    context.out.list(&capabilities, "No capabilities.", || {
        let mut rows = Rows::new(["ID", "KIND", "NAME", "ENABLED", "CONFIG"]);
        for row in &capabilities {
            rows.row([
                row.id.to_string(),
                row.kind.to_string(),
                row.name.clone(),
                row.enabled.to_string(),
                row.config.as_str().to_owned(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}

pub(super) async fn remove(context: &Context, args: RemoveCapability) -> Result<u8, CliError> {
    let RemoveCapability { template, capability } = args;
    let row = context.call(TemplateRemoveCapability { template, capability }).await?;
    let line = format!("Removed capability: {}:{} (ID: {})", row.kind, row.name, row.id);
    context.out.done(&row, &line, &row.id.to_string())?;
    Ok(exit::OK)
}
