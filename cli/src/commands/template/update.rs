//! `template update`

use super::settings::SettingsArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::{TemplateChange, TemplateUpdate};
use vm_system_protocol::json::JsonText;

/// It changes only what is given: the settings have no defaults here.
fn without_default(argument: clap::Arg) -> clap::Arg {
    let cut = |text: &clap::builder::StyledStr| {
        let text = text.to_string();
        text.find(" [default: ").map(|end| text[..end].to_owned())
    };
    match argument.get_help().and_then(cut) {
        Some(text) => argument.help(text).long_help(None),
        None => argument,
    }
}

/// Arguments of `template update`.
#[derive(Debug, clap::Args)]
#[command(after_help = "A setting that is not given stays as it is.", mut_args = without_default)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// New name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    if args.name.is_none() && args.settings.patch().is_none() {
        return Err(CliError::usage("nothing to change: give --name or a setting")
            .with_hint("`vm-system template update --help` lists the settings"));
    }
    let settings = args.settings.patch().map(|patch| JsonText::from_value(&patch));
    let change = TemplateChange { name: args.name, settings };
    let template = args.template;
    let op = TemplateUpdate { template, change };
    let template = context.call(op).await?.template;
    let line = format!("Updated template: {} (ID: {})", template.name, template.id);
    context.out.done(&template, &line, &template.id.to_string())?;
    Ok(exit::OK)
}
