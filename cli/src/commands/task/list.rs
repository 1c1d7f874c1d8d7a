//! `task list`

use crate::commands::program::call;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{DurableOp, DurableReply, ListPage};

/// Longest part of a prompt in a table (characters).
const PROMPT_CHARS: usize = 60;

/// Arguments of `task list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let reply = call(context, DurableOp::TaskList(ListPage::first(args.limit)), None).await?;
    let tasks = expect_reply!(reply, DurableReply::Tasks(tasks) => tasks);
    context.out.list(&tasks, "No open questions.", || {
        let mut rows = Rows::new(["TASK", "EXECUTION", "ASKED", "DEADLINE", "PROMPT"]);
        for task in &tasks {
            rows.row([
                task.id.to_string(),
                task.execution_id.to_string(),
                task.created_at.to_string(),
                task.deadline.map_or_else(|| "-".to_owned(), |deadline| deadline.to_string()),
                short(&task.prompt),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}

fn short(prompt: &str) -> String {
    let line = prompt.lines().next().unwrap_or_default();
    if line.chars().count() <= PROMPT_CHARS && line.len() == prompt.len() {
        return line.to_owned();
    }
    line.chars().take(PROMPT_CHARS).chain(['…']).collect()
}
