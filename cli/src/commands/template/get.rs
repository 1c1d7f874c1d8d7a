//! `template get`

use super::detail;
use crate::context::Context;
use crate::error::{CliError, exit};

/// Arguments of `template get`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of one, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let detail = detail(context, args.template).await?;
    context.out.details(&detail)?;
    Ok(exit::OK)
}
