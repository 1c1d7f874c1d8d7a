//! The pending tasks of sessions, as a part of `list_executions`.

use crate::mcp::call::ToolCall;
use crate::mcp::output::{ToolError, listed};
use crate::mcp::schema::{JsonSchema, schemars};
use serde::Serialize;
use std::collections::HashSet;
use vm_system_protocol::control::{ExecGet, ListPage, TaskList};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{ExecutionKind, Run};

/// Pending tasks among which those of sessions are looked for.
const LISTED: u32 = 200;
/// Most tasks of sessions in a list.
const SESSION_TASKS: usize = 50;
/// Longest prompt in a list (bytes).
const PROMPT_BYTES: usize = 1_000;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListedSessionTask {
    /// Id of the execution, for submitTask
    pub(super) execution_id: String,
    /// Id of the session
    pub(super) session_id: String,
    /// The prompt; of a long one the beginning, and its size
    pub(super) prompt: String,
}

/// The pending tasks of sessions, oldest first; the listed executions of programs have theirs.
pub(super) async fn session_tasks(
    call: &ToolCall<'_>,
    runs: &[Run],
) -> Result<Vec<ListedSessionTask>, ToolError> {
    let page = ListPage { limit: Some(LISTED), after: None };
    let tasks = call.perform(TaskList::pending(page)).await?;
    let listed_runs: HashSet<ExecutionId> = runs.iter().map(|run| run.execution.id).collect();
    let mut found = Vec::new();
    let tasks = tasks.iter().map(|listed| &listed.task);
    for task in tasks.filter(|task| !listed_runs.contains(&task.execution_id)).take(SESSION_TASKS) {
        let execution = task.execution_id.to_string();
        match call.perform(ExecGet { execution: execution.clone() }).await {
            // One of a program that is not listed.
            Ok(of_program) if of_program.kind == ExecutionKind::Program => {}
            Ok(of_session) => {
                call.give(task.execution_id, None, Some(task.id));
                found.push(ListedSessionTask {
                    execution_id: execution,
                    session_id: of_session.session_id.to_string(),
                    prompt: listed(&task.prompt, PROMPT_BYTES),
                });
            }
            // Deleted meanwhile.
            Err(ToolError::Reported { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
