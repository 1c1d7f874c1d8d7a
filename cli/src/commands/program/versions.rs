//! `program versions`

use super::call;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{DurableOp, DurableReply, ListPage};

/// Arguments of `program versions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name, id, or unique beginning of an id
    #[arg(value_name = "PROGRAM")]
    program: String,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let op = DurableOp::ProgramVersions { program: args.program, page: ListPage::first(args.limit) };
    let reply = call(context, op, None).await?;
    let versions = expect_reply!(reply, DurableReply::Versions(versions) => versions);
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
