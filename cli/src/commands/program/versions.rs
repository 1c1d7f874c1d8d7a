//! `program versions`

use super::call;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::lists::ListArgs;
use crate::output::Rows;
use vm_system_protocol::control::{DurableOp, DurableReply, ListPage};
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
        let page = ListPage::behind(last, limit);
        let op = DurableOp::ProgramVersions { program: args.program.clone(), page };
        Ok(expect_reply!(call(context, op, None).await?, DurableReply::Versions(versions) => versions))
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
