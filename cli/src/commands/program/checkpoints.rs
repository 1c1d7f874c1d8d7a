//! `program checkpoints`

use super::call;
use super::status::Args;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{DurableOp, DurableReply};

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let op = DurableOp::CheckpointList { execution: args.execution };
    let reply = call(context, op, None).await?;
    let checkpoints = expect_reply!(reply, DurableReply::Checkpoints(checkpoints) => checkpoints);
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
