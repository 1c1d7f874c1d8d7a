//! `template create`

use super::settings::SettingsArgs;
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::parse;
use vm_system_protocol::control::TemplateCreate;
use vm_system_protocol::model::Engine;

/// Arguments of `template create`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the template, unique among yours
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Engine that runs the code: quickjs (goja is another name for it), or cvm for durable programs
    #[arg(long, value_name = "ENGINE", default_value = "quickjs", value_parser = parse::engine())]
    engine: Engine,
    /// A host module that sessions may require (may be given several times)
    #[arg(long = "module", value_name = "NAME")]
    modules: Vec<String>,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let settings = args.settings.settings()?;
    let op = TemplateCreate { name: args.name, engine: args.engine, settings, modules: args.modules };
    let template = context.call_once(op, args.idempotency.idempotency_key).await?;
    let line = format!("Created template: {} (ID: {})", template.name, template.id);
    context.out.done(&template, &line, &template.id.to_string())?;
    Ok(exit::OK)
}
