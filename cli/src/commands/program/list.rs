//! `program list`

use super::call;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{DurableOp, DurableReply, ListPage};

/// Arguments of `program list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// At most this many [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let reply =
        call(context, DurableOp::ProgramList(ListPage { limit: args.limit, after: None }), None).await?;
    let programs = expect_reply!(reply, DurableReply::Programs(programs) => programs);
    context.out.list(&programs, "No programs.", || {
        let mut rows = Rows::new(["ID", "NAME", "VERSION", "MODIFIED"]);
        for program in &programs {
            rows.row([
                program.id.to_string(),
                program.name.clone(),
                program.version.to_string(),
                program.modified_at.to_string(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}
