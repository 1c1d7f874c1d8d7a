//! Tools that restore ended sessions.

use super::{Effect, ToolResult, ToolRow, ToolSet};
use crate::mcp::call::ToolCall;
use crate::mcp::output::{ToolError, ToolOutput};
use crate::mcp::schema::{self, JsonSchema, schemars};
use crate::mcp::views::SessionView;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vm_system_protocol::control::{GivenInput, RestorationGet, SessionRestore, Verb};
use vm_system_protocol::counted::counted;
use vm_system_protocol::model::SessionRestoration;

/// Differences in a response.
const DIFFERENCES: usize = 20;

pub(super) fn rows() -> Vec<ToolRow> {
    vec![
        ToolRow {
            name: "session_restore",
            title: "Restore an ended session",
            description: "Repeat the successful inputs of an ended session in a new one, with the recorded answers to its \
                tasks. Inputs that changed files, ran commands, used databases or made HTTP requests other than GET need \
                repeatEffects. The error says which inputs lack something in their record: give it in inputs.",
            input: schema::input::<Restore>,
            output: schema::output::<RestorationView>,
            effect: Effect::Destroys,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(restore(call)),
        },
        ToolRow {
            name: "session_restoration",
            title: "Show a restoration",
            description: "How far the restoration in a new session is, or its result. session_close with the new session \
                cancels it.",
            input: schema::input::<Restored>,
            output: schema::output::<RestorationView>,
            effect: Effect::Reads,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(restoration(call)),
        },
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Restore {
    /// Id of the ended session, its unique beginning, or its name
    session_id: String,
    /// Repeat inputs that had effects outside of the session, too (default false)
    repeat_effects: Option<bool>,
    /// The parts of inputs that the record does not have: [{"input": 1, "args": {}, "env": {}, "argv": [], "source": ""}]
    #[schemars(with = "Option<Vec<Value>>")]
    inputs: Option<Value>,
    /// false: return as soon as the startup files of the new session have run (default true)
    wait: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Restored {
    /// Id of the new session, its unique beginning, or its name
    session_id: String,
}

/// Data of `session_restore` and `session_restoration`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RestorationView {
    /// The new session
    session: SessionView,
    /// Id of the ended session
    restored_from: String,
    /// running, done, failed or cancelled
    status: String,
    /// Inputs to be repeated
    inputs: u64,
    /// Inputs that were repeated so far
    repeated: u64,
    /// Inputs that are not repeated, because they did not end ok
    not_repeated: u64,
    /// Inputs with another result than before
    different: u64,
    /// The first of them
    differences: Vec<DifferenceView>,
    /// Why it failed
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DifferenceView {
    /// Number of the input
    input: u64,
    /// The input's result before
    before: String,
    /// The input's result or error now
    now: String,
}

async fn restore(call: &ToolCall<'_>) -> ToolResult {
    let Restore { session_id, repeat_effects, inputs, wait } = call.input()?;
    let inputs = inputs.map_or(Ok(Vec::new()), GivenInput::list).map_err(ToolError::invalid)?;
    let new = SessionRestore {
        session: session_id,
        repeat_effects: repeat_effects.unwrap_or(false),
        inputs,
        wait: wait.unwrap_or(true),
    };
    perform(call, new).await
}

async fn restoration(call: &ToolCall<'_>) -> ToolResult {
    let Restored { session_id } = call.input()?;
    perform(call, RestorationGet { session: session_id, wait_after: None }).await
}

async fn perform(call: &ToolCall<'_>, verb: impl Verb<Reply = SessionRestoration>) -> ToolResult {
    let now = call.perform(verb).await?;
    Ok(ToolOutput::new(text(&now), &view(now)))
}

fn text(now: &SessionRestoration) -> String {
    let SessionRestoration { session, status, repeated, inputs, different, .. } = now;
    format!(
        "Restoration {status} in session {}: {repeated} of {}, {}",
        session.id,
        counted(*inputs, "input"),
        counted(*different, "different result")
    )
}

fn view(now: SessionRestoration) -> RestorationView {
    let difference = |one: vm_system_protocol::model::InputDifference| DifferenceView {
        input: one.input,
        before: one.before,
        now: one.now,
    };
    RestorationView {
        session: SessionView::new(&now.session),
        restored_from: now.restored_from.to_string(),
        status: now.status.to_string(),
        inputs: now.inputs,
        repeated: now.repeated,
        not_repeated: now.not_repeated,
        different: now.different,
        differences: now.differences.into_iter().take(DIFFERENCES).map(difference).collect(),
        error: now.error,
    }
}
