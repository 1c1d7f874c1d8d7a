//! `template add-module`

use crate::context::Context;
use crate::error::{CliError, exit};
use serde::Serialize;
use vm_system_protocol::control::Op;

/// Arguments of `template add-module`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of one, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// The module
    #[arg(long, value_name = "NAME")]
    name: String,
}

#[derive(Serialize)]
struct Module {
    template_id: String,
    name: String,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let current = super::detail(context, args.template).await?;
    let template_id = current.template.id.to_string();
    let name = args.name.trim().to_lowercase();
    context.call(Op::TemplateAddModule { template: template_id.clone(), name: name.clone() }).await?;
    let line = format!("Added module: {name} (to template {})", current.template.name);
    context.out.done(&Module { template_id, name: name.clone() }, &line, &name)?;
    Ok(exit::OK)
}
