//! Tools that inspect states, change variables, rewind and fork.

use super::tasks::given;
use super::{Effect, ToolResult, ToolRow, ToolSet};
use crate::mcp::call::{ToolCall, exact_json};
use crate::mcp::outcome;
use crate::mcp::output::ToolOutput;
use crate::mcp::schema::{self, JsonSchema, schemars};
use crate::mcp::views::{self, ExecutionView};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vm_system_protocol::control::{
    CheckpointList, OtherAnswer, OtherValue, RunFork, RunGet, RunRerun, RunRewind, StateGet, StateSet,
};
use vm_system_protocol::model::Variable;

/// Most checkpoints in a response, the newest ones.
const CHECKPOINTS: usize = 200;

pub(super) fn rows() -> Vec<ToolRow> {
    vec![
        ToolRow {
            name: "get_state",
            title: "Inspect the state",
            description: "State of an execution that waits or has ended: calls with their variables and source lines, \
                global variables, and the checkpoints to which it can be rewound.",
            input: schema::input::<Get>,
            output: schema::output::<StateView>,
            effect: Effect::Reads,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(get(call)),
        },
        ToolRow {
            name: "set_variable",
            title: "Change a variable",
            description: "Change a variable of an execution that waits for an answer.",
            input: schema::input::<Set>,
            output: schema::output::<ExecutionView>,
            effect: Effect::Destroys,
            set: ToolSet::Branch,
            reads_files: false,
            run: |call| Box::pin(set(call)),
        },
        ToolRow {
            name: "rewind",
            title: "Rewind to a checkpoint",
            description: "Rewind to a checkpoint: a new execution starts there and takes over the name, the old one ends. \
                Changes that the program made to files since then are not undone.",
            input: schema::input::<Rewind>,
            output: schema::output::<ExecutionView>,
            effect: Effect::Destroys,
            set: ToolSet::Branch,
            reads_files: false,
            run: |call| Box::pin(rewind(call)),
        },
        ToolRow {
            name: "fork",
            title: "Fork an execution",
            description: "Start a new execution from the current state of this one, or from a checkpoint. The old one is \
                not changed.",
            input: schema::input::<Fork>,
            output: schema::output::<ExecutionView>,
            effect: Effect::Adds,
            set: ToolSet::Branch,
            reads_files: false,
            run: |call| Box::pin(branch_off(call)),
        },
        ToolRow {
            name: "rerun",
            title: "Continue with another answer",
            description: "Start a new execution from a checkpoint of this one, with other answers to the tasks that were open \
                there and other values of variables; all of it or nothing. The old one is not changed, unless endOld is true.",
            input: schema::input::<Rerun>,
            output: schema::output::<ExecutionView>,
            effect: Effect::Destroys,
            set: ToolSet::Branch,
            reads_files: false,
            run: |call| Box::pin(rerun(call)),
        },
    ]
}

/// Data of `get_state`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StateView {
    /// Name of the execution, or its id if it has none
    execution_id: String,
    /// Id of the execution
    id: String,
    /// Calls in progress, innermost first
    frames: Vec<FrameView>,
    /// Number of further, outer calls that are not in `frames`
    #[serde(skip_serializing_if = "Option::is_none")]
    more_frames: Option<u64>,
    /// Global variables
    globals: Vec<Variable>,
    /// The newest 200, oldest first
    checkpoints: Vec<CheckpointView>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FrameView {
    /// Name of the function; empty at the top level
    function: String,
    /// Name of the file, if the program has several
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Line that the call has reached
    line: u32,
    /// Column that the call has reached
    column: u32,
    /// Text of the line
    source: String,
    /// Variables of the call
    variables: Vec<Variable>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CheckpointView {
    /// Number of the checkpoint
    checkpoint: u64,
    /// When it was written
    at: String,
    /// start, pause, effect, steps, edit or end
    cause: String,
    /// Size of the pages that were written with it
    bytes: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Get {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// State at this checkpoint; absent: the current state
    checkpoint: Option<u64>,
}

async fn get(call: &ToolCall<'_>) -> ToolResult {
    let Get { execution_id, checkpoint } = call.input()?;
    let execution = call.which(execution_id).await?;
    let run = call.perform(RunGet { execution }).await?;
    let id = run.execution.id.to_string();
    let state = call.perform(StateGet { execution: id.clone(), checkpoint }).await?;
    let kept = call.perform(CheckpointList { execution: id.clone() }).await?;
    let frames = state.frames.iter().map(|frame| FrameView {
        function: frame.function.clone(),
        file: frame.file.clone(),
        line: frame.line,
        column: frame.column,
        source: frame.source_line.clone(),
        variables: views::variables(&frame.variables),
    });
    let checkpoints = kept.iter().skip(kept.len().saturating_sub(CHECKPOINTS)).map(|point| CheckpointView {
        checkpoint: point.seq,
        at: point.at.to_string(),
        cause: point.cause.clone(),
        bytes: point.bytes,
    });
    Ok(ToolOutput::json(&StateView {
        execution_id: views::name_of(&run),
        id,
        frames: frames.collect(),
        more_frames: (state.more_frames > 0).then_some(state.more_frames),
        globals: views::variables(&state.globals),
        checkpoints: checkpoints.collect(),
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Set {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// Name of the variable
    name: String,
    /// New value, any JSON
    value: Value,
    /// Frame of the variable, 0 is the innermost; absent: the innermost frame that has the variable
    frame: Option<u32>,
}

async fn set(call: &ToolCall<'_>) -> ToolResult {
    let Set { execution_id, name, value, frame } = call.input()?;
    let execution = call.which(execution_id).await?;
    let value = exact_json(&value)?;
    let run = call.perform(StateSet { execution, name: name.clone(), value, frame }).await?;
    let mut data = call.give_run(&run);
    let current = call.current().await?.is_some_and(|current| current.execution.id == run.execution.id);
    data.is_current = Some(current);
    Ok(ToolOutput::new(format!("Variable set: {name}"), &data))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Rewind {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// Number of the checkpoint, as get_state lists it
    checkpoint: u64,
}

async fn rewind(call: &ToolCall<'_>) -> ToolResult {
    let Rewind { execution_id, checkpoint } = call.input()?;
    let execution = call.which(execution_id).await?;
    let old = call.perform(RunGet { execution }).await?;
    let current = call.current().await?.is_some_and(|current| current.execution.id == old.execution.id);
    let op = RunRewind { execution: old.execution.id.to_string(), checkpoint };
    let run = call.long(op).await?;
    let mut data = call.give_run(&run);
    if current {
        // The client of the old one continues with the new one.
        call.make_current(&run).await?;
    }
    data.is_current = Some(current);
    let text = format!("Execution rewound to checkpoint {checkpoint}: {}", views::name_of(&run));
    let done = ToolOutput::new(text, &data).and(earlier_output(&old.execution.id.to_string()));
    Ok(done.with_outcome(outcome::describe(call, &run).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Fork {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// Number of the checkpoint, as get_state lists it; absent: the current state
    checkpoint: Option<u64>,
    /// A name for the new execution
    new_execution_id: Option<String>,
    /// Make it the current execution (default: false)
    #[serde(default)]
    set_current: bool,
}

async fn branch_off(call: &ToolCall<'_>) -> ToolResult {
    let Fork { execution_id, checkpoint, new_execution_id, set_current } = call.input()?;
    let execution = call.which(execution_id).await?;
    let old = call.perform(RunGet { execution: execution.clone() }).await?.execution.id.to_string();
    let run = call.long(RunFork { execution, checkpoint, name: new_execution_id }).await?;
    let mut data = call.give_run(&run);
    let current = set_current && call.make_current(&run).await?;
    data.is_current = Some(current);
    let note = if current { " (set as current)" } else { "" };
    let done = ToolOutput::new(format!("Execution forked: {}{note}", views::name_of(&run)), &data);
    Ok(done.and(earlier_output(&old)).with_outcome(outcome::describe(call, &run).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Rerun {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// Number of the checkpoint, as get_state lists it
    checkpoint: u64,
    /// Answers to tasks that were open there, in the order in which the program gets them
    #[serde(default)]
    answers: Vec<Answer>,
    /// Values of variables, changed before an answer is used; for a checkpoint at which the execution waits
    #[serde(default)]
    variables: Vec<VariableValue>,
    /// A name for the new execution
    new_execution_id: Option<String>,
    /// The old execution ends, and the new one takes over its name (default: false)
    #[serde(default)]
    end_old: bool,
    /// Make the new one the current execution (default: false)
    #[serde(default)]
    set_current: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Answer {
    /// Id of the task of the old execution
    task_id: String,
    /// As of submitTask
    #[schemars(with = "String")]
    result: Value,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct VariableValue {
    /// Name of the variable
    name: String,
    /// New value, any JSON
    value: Value,
    /// Frame of the variable, 0 is the innermost; absent: the innermost frame that has the variable
    frame: Option<u32>,
}

async fn rerun(call: &ToolCall<'_>) -> ToolResult {
    let input: Rerun = call.input()?;
    let execution = call.which(input.execution_id).await?;
    let old = call.perform(RunGet { execution }).await?;
    let was_current = call.current().await?.is_some_and(|current| current.execution.id == old.execution.id);
    let mut answers = Vec::with_capacity(input.answers.len());
    for Answer { task_id, result } in input.answers {
        answers.push(OtherAnswer { task: task_id, result: given(result)? });
    }
    let mut variables = Vec::with_capacity(input.variables.len());
    for VariableValue { name, value, frame } in input.variables {
        variables.push(OtherValue { name, value: exact_json(&value)?, frame });
    }
    let old = old.execution.id.to_string();
    let (checkpoint, name, end_old) = (input.checkpoint, input.new_execution_id, input.end_old);
    let op = RunRerun { execution: old.clone(), checkpoint, answers, variables, name, end_old };
    let run = call.long(op).await?;
    let mut data = call.give_run(&run);
    // The client of an execution that has ended continues with the new one.
    let current = (input.set_current || end_old && was_current) && call.make_current(&run).await?;
    data.is_current = Some(current);
    let note = if current { " (set as current)" } else { "" };
    let text = format!("Execution continues from checkpoint {checkpoint}: {}{note}", views::name_of(&run));
    let done = ToolOutput::new(text, &data).and(earlier_output(&old));
    Ok(done.with_outcome(outcome::describe(call, &run).await?))
}

/// Where the output before a branch's checkpoint is.
fn earlier_output(execution: &str) -> String {
    format!(
        "The output before the checkpoint is that of the original: getTask executionId={execution} after=0"
    )
}
