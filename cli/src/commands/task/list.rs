//! `task list`

use crate::commands::program::{call, show};
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::lists::ListArgs;
use crate::output::Rows;
use std::collections::HashMap;
use vm_system_protocol::control::{DurableOp, DurableReply, ListPage, Op, Reply};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::Task;

/// Longest part of a prompt in a table that fits a terminal (characters).
const PROMPT_CHARS: usize = 60;

/// Arguments of `task list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    list: ListArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let part = async |last: Option<&Task>, limit| {
        let reply = call(context, DurableOp::TaskList(ListPage::behind(last, limit)), None).await?;
        Ok(expect_reply!(reply, DurableReply::Tasks(tasks) => tasks))
    };
    let tasks = args.list.collect(part).await?;
    let sources = if context.out.is_table() { sources(context, &tasks).await? } else { HashMap::new() };
    context.out.list(&tasks, "No pending tasks.", || {
        let mut rows = Rows::new(["TASK", "EXECUTION", "NAME", "PROGRAM", "CREATED", "DEADLINE", "PROMPT"]);
        for task in &tasks {
            let (name, program) = sources.get(&task.execution_id).cloned().unwrap_or_default();
            rows.row([
                task.id.to_string(),
                task.execution_id.to_string(),
                name,
                program,
                task.created_at.to_string(),
                task.deadline.map_or_else(|| "-".to_owned(), |deadline| deadline.to_string()),
                context.out.cell(&task.prompt, PROMPT_CHARS),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}

/// Name and program of each task's execution; an execution of a session has neither.
async fn sources(
    context: &Context,
    tasks: &[Task],
) -> Result<HashMap<ExecutionId, (String, String)>, CliError> {
    let mut sources = HashMap::new();
    for task in tasks {
        let none = || "-".to_owned();
        let op = Op::Durable(DurableOp::RunGet { execution: task.execution_id.to_string() });
        // The execution may have been deleted meanwhile, or belong to a session.
        let names = match context.call(op).await {
            Ok(Reply::Durable(DurableReply::Run(run))) => {
                (run.name.clone().unwrap_or_else(none), show::program(&run))
            }
            _ => (none(), none()),
        };
        sources.insert(task.execution_id, names);
    }
    Ok(sources)
}
