//! `program versions`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::ListArgs;
use crate::output::Rows;
use vm_system_protocol::control::{ListPage, ProgramVersions};
use vm_system_protocol::model::ProgramVersion;

/// Arguments of `program versions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name, id, or unique beginning of an id
    #[arg(value_name = "PROGRAM")]
    program: String,
    #[command(flatten)]
    list: ListArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let part = async |last: Option<&ProgramVersion>, limit| {
        let page = ListPage::after_last(last, limit);
        let op = ProgramVersions { program: args.program.clone(), page };
        context.call_once(op, None).await
    };
    let versions = args.list.collect(part).await?;
    context.out.list(&versions, "No versions.", || {
        let mut rows = Rows::new(["VERSION", "LOADED", "SOURCE HASH"]);
        for version in &versions {
            rows.row([
                version.version.to_string(),
                version.created_at.to_string(),
                version.source_hash.clone(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}
