//! `session checkpoint`, `session checkpoints`, `session delete-checkpoint` and `session rollback`

use super::SessionArg;
use crate::args::IdempotencyArgs;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{Op, Reply};

/// Arguments of `session checkpoint`.
#[derive(Debug, clap::Args)]
pub struct CheckpointArgs {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// A name for the checkpoint, unique in the session
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

/// Arguments of `session delete-checkpoint`.
#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// Number or name of the checkpoint
    #[arg(value_name = "CHECKPOINT")]
    checkpoint: String,
}

/// Arguments of `session rollback`.
#[derive(Debug, clap::Args)]
pub struct RollbackArgs {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// Number or name of the checkpoint; the newest by default
    #[arg(value_name = "CHECKPOINT")]
    checkpoint: Option<String>,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn create(context: &Context, args: CheckpointArgs) -> Result<u8, CliError> {
    let op = Op::SessionCheckpoint { session: args.session, name: args.name };
    let reply = context.call_once(op, args.idempotency.idempotency_key).await?;
    let checkpoint = expect_reply!(reply, Reply::Checkpoint(checkpoint) => checkpoint);
    let number = checkpoint.number.to_string();
    context.out.done(&checkpoint, &format!("Checkpoint: {number}"), &number)?;
    Ok(exit::OK)
}

pub(crate) async fn list(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    let reply = context.call(Op::SessionCheckpoints { session: args.session }).await?;
    let checkpoints = expect_reply!(reply, Reply::Checkpoints(checkpoints) => checkpoints);
    context.out.list(&checkpoints, "No checkpoints.", || {
        let mut rows = Rows::new(["CHECKPOINT", "NAME", "TIME", "HEAP BYTES"]);
        for checkpoint in &checkpoints {
            rows.row([
                checkpoint.number.to_string(),
                checkpoint.name.clone().unwrap_or_default(),
                checkpoint.created_at.to_string(),
                checkpoint.heap_bytes.to_string(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}

pub(crate) async fn delete(context: &Context, args: DeleteArgs) -> Result<u8, CliError> {
    let op = Op::SessionDeleteCheckpoint { session: args.session, checkpoint: args.checkpoint.clone() };
    expect_reply!(context.call(op).await?, Reply::Done => ());
    let document = serde_json::json!({ "status": "ok", "checkpoint": args.checkpoint });
    context.out.done(&document, &format!("Deleted checkpoint: {}", args.checkpoint), "")?;
    Ok(exit::OK)
}

pub(crate) async fn roll_back(context: &Context, args: RollbackArgs) -> Result<u8, CliError> {
    let op = Op::SessionRollback { session: args.session, checkpoint: args.checkpoint };
    let reply = context.call_once(op, args.idempotency.idempotency_key).await?;
    let session = expect_reply!(reply, Reply::Session(session) => session);
    let id = session.id.to_string();
    context.out.done(&session, &format!("Rolled back session: {id}"), &id)?;
    Ok(exit::OK)
}
