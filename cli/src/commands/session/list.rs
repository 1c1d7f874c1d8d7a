//! `session list`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::ListArgs;
use crate::output::{Rows, with_owners};
use crate::parse;
use vm_system_protocol::control::{ListPage, SessionList};
use vm_system_protocol::model::{Engine, Session, SessionStatus};

/// Arguments of `session list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only sessions with this status; `waiting`: of programs, whose sessions wait without a process
    #[arg(long, value_name = "STATUS", value_parser = parse::session_status())]
    status: Option<SessionStatus>,
    /// Only sessions of this template
    #[arg(long, value_name = "TEMPLATE")]
    template_id: Option<String>,
    /// Only sessions of this workspace
    #[arg(long, value_name = "ID")]
    workspace_id: Option<String>,
    /// Only sessions of this engine; `cvm`: sessions of programs, which are otherwise left out
    #[arg(long, value_name = "ENGINE", value_parser = parse::engine())]
    engine: Option<Engine>,
    #[command(flatten)]
    list: ListArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let part = async |last: Option<&Session>, limit| {
        let filter = SessionList {
            status: args.status,
            template: args.template_id.clone(),
            workspace_id: args.workspace_id.clone(),
            engine: args.engine,
            page: ListPage::after_last(last, limit),
        };
        context.call(filter).await
    };
    let sessions = args.list.collect(part).await?;
    let owners = || sessions.iter().map(|session| session.owner.as_deref());
    context.out.list(&sessions, "No sessions.", || {
        if args.engine == Some(Engine::Cvm) || args.status == Some(SessionStatus::Waiting) {
            return with_owners(context, of_programs(&sessions), owners());
        }
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
        with_owners(context, rows, owners())
    })?;
    Ok(exit::OK)
}

/// The table of programs' sessions, which have an execution but no name and no workspace.
fn of_programs(sessions: &[Session]) -> Rows {
    let mut rows = Rows::new(["ID", "EXECUTION", "STATUS", "CREATED", "REASON", "WORKTREE"]);
    let or_none =
        |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
    for session in sessions {
        rows.row([
            session.id.to_string(),
            or_none(session.execution_id.map(|id| id.to_string())),
            session.status.to_string(),
            session.created_at.to_string(),
            or_none(session.close_reason.clone()),
            or_none(Some(session.worktree_path.clone())),
        ]);
    }
    rows
}
