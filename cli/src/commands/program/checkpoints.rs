//! `program checkpoints`

use super::status::Args;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::CheckpointList;

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let op = CheckpointList { execution: args.execution };
    let checkpoints = context.call_once(op, None).await?;
    context.out.list(&checkpoints, "No checkpoints.", || {
        let mut rows = Rows::new(["CHECKPOINT", "CAUSE", "TIME", "BYTES"]);
        for checkpoint in &checkpoints {
            rows.row([
                checkpoint.seq.to_string(),
                checkpoint.cause.clone(),
                checkpoint.at.to_string(),
                checkpoint.bytes.to_string(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}
