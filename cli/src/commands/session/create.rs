//! `session create`

use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use std::path::{Path, PathBuf};
use vm_system_protocol::control::SessionCreate;

/// Arguments of `session create`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The template: id, unique beginning of an id, or name
    #[arg(long, value_name = "TEMPLATE")]
    template_id: String,
    /// The workspace, any name: your sessions with the same one share its database files
    #[arg(long, value_name = "ID", default_value = "default")]
    workspace_id: String,
    /// The commit of the worktree, any text: it is only recorded
    #[arg(long, value_name = "OID", default_value = "none")]
    base_commit: String,
    /// The folder whose files the session may use if its template has the module `fs` [default: the current folder]
    #[arg(long, value_name = "DIR")]
    worktree_path: Option<PathBuf>,
    /// For administrators: use the folder with the rights of this user (name or number) instead of your own
    #[arg(long, value_name = "USER")]
    as_user: Option<String>,
    /// A name, of no other of your sessions that has not ended
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// End the session this long after its creation (seconds); at most the template's value
    #[arg(long, value_name = "S")]
    ttl_s: Option<u32>,
    /// End the session this long after its last execution (seconds); at most the template's value
    #[arg(long, value_name = "S")]
    idle_timeout_s: Option<u32>,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let folder = args.worktree_path.as_deref().unwrap_or(Path::new("."));
    let worktree_path = crate::paths::worktree(folder, &context.target)?;
    let op = SessionCreate {
        template: args.template_id,
        workspace_id: args.workspace_id,
        base_commit_oid: args.base_commit,
        worktree_path,
        as_user: args.as_user,
        name: args.name,
        ttl_s: args.ttl_s,
        idle_timeout_s: args.idle_timeout_s,
    };
    let session = context.call_once(op, args.idempotency.idempotency_key).await?;
    context.out.done(&session, &format!("Created session: {}", session.id), &session.id.to_string())?;
    Ok(exit::OK)
}
