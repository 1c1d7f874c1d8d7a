//! `session list`

use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use crate::parse;
use vm_system_protocol::control::{ListPage, Op, Reply, SessionFilter};
use vm_system_protocol::model::SessionStatus;

/// Arguments of `session list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only of this status
    #[arg(long, value_name = "STATUS", value_parser = parse::session_status())]
    status: Option<SessionStatus>,
    /// Only of this template
    #[arg(long, value_name = "TEMPLATE")]
    template_id: Option<String>,
    /// Only of this workspace
    #[arg(long, value_name = "ID")]
    workspace_id: Option<String>,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let filter = SessionFilter {
        status: args.status,
        template: args.template_id,
        workspace_id: args.workspace_id,
        page: ListPage::default(),
    };
    let reply = context.call(Op::SessionList(filter)).await?;
    let sessions = expect_reply!(reply, Reply::Sessions(sessions) => sessions);
    context.out.list(&sessions, "No sessions.", || {
        let mut rows = Rows::new(["ID", "NAME", "STATUS", "WORKSPACE", "CREATED", "REASON", "WORKTREE"]);
        for session in &sessions {
            rows.row([
                session.id.to_string(),
                session.name.clone().unwrap_or_else(|| "-".to_owned()),
                session.status.to_string(),
                session.workspace_id.clone(),
                session.created_at.to_string(),
                session.close_reason.clone().unwrap_or_else(|| "-".to_owned()),
                session.worktree_path.clone(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}
