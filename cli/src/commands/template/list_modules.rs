//! `template list-modules`

use super::detail;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Rows;

/// Arguments of `template list-modules`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of one, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let modules = detail(context, args.template).await?.template.exposed_modules;
    context.out.result(&modules, || {
        let mut rows = Rows::new(["MODULE"]);
        for name in &modules {
            rows.row([name.clone()]);
        }
        rows.finish("No modules.")
    })?;
    Ok(exit::OK)
}
