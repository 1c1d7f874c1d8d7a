//! `session checkpoint`, `session checkpoints`, `session delete-checkpoint` and `session rollback`

use super::SessionArg;
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{
    SessionAddCheckpoint, SessionCheckpoints, SessionDeleteCheckpoint, SessionRollback,
};

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
    let op = SessionAddCheckpoint { session: args.session, name: args.name };
    let checkpoint = context.call_once(op, args.idempotency.idempotency_key).await?;
    let number = checkpoint.number.to_string();
    context.out.done(&checkpoint, &format!("Checkpoint: {number}"), &number)?;
    Ok(exit::OK)
}

pub(crate) async fn list(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    let checkpoints = context.call(SessionCheckpoints { session: args.session }).await?;
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
    let op = SessionDeleteCheckpoint { session: args.session, checkpoint: args.checkpoint.clone() };
    context.call(op).await?;
    let document = serde_json::json!({ "status": "ok", "checkpoint": args.checkpoint });
    context.out.done(&document, &format!("Deleted checkpoint: {}", args.checkpoint), "")?;
    Ok(exit::OK)
}

pub(crate) async fn roll_back(context: &Context, args: RollbackArgs) -> Result<u8, CliError> {
    let op = SessionRollback { session: args.session, checkpoint: args.checkpoint };
    let session = context.call_once(op, args.idempotency.idempotency_key).await?;
    let id = session.id.to_string();
    context.out.done(&session, &format!("Rolled back session: {id}"), &id)?;
    Ok(exit::OK)
}
