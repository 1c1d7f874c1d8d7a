//! `libs remove`

use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::LibraryRemove;

/// Arguments of `libs remove`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the library with its version, or only the name if one version is installed
    #[arg(value_name = "NAME")]
    name: String,
}

pub(super) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let library = context.call(LibraryRemove { name: args.name }).await?;
    context.out.done(&library, &format!("Removed library: {}", library.name), &library.name)?;
    Ok(exit::OK)
}
