//! Plans: Markdown files that a built-in program goes through with the agent.

use super::programs::refused;
use super::{Effect, ToolResult, ToolRow, ToolSet};
use crate::mcp::FileRefusal;
use crate::mcp::call::ToolCall;
use crate::mcp::output::{ToolError, ToolOutput};
use crate::mcp::schema::{self, JsonSchema, schemars};
use serde::{Deserialize, Serialize};
use vm_system_ops::plans;
use vm_system_protocol::control::{CompiledPlan, ErrorCode, PlanLoad};
use vm_system_protocol::model::Program;

/// The argument of `loadFile` for the built-in program.
pub(super) const EXECUTOR: &str = "@planexecutor";
/// File of the compiled plan, in the workspace.
const COMPILED: &str = "uplan.json";
/// File of the completed blocks, in the workspace; written by earlier programs.
const PROGRESS: &str = "uplan-progress.json";

pub(super) fn rows() -> Vec<ToolRow> {
    vec![ToolRow {
        name: "parsePlan",
        title: "Compile a plan",
        description: "Read a plan from a Markdown file (and the files that it lists), and report its errors or compile \
            it: then `loadFile` with the filePath @planexecutor loads the program that goes through it with you, block \
            by block. The files must be in a folder that the server may read.",
        input: schema::input::<Parse>,
        output: schema::output::<PlanView>,
        effect: Effect::Adds,
        set: ToolSet::Plans,
        reads_files: true,
        run: |call| Box::pin(parse(call)),
    }]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Parse {
    /// Path of the plan, or of the index of its files
    file_path: String,
}

/// Data of `parsePlan`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PlanView {
    /// Always true: an invalid plan is an error
    valid: bool,
    /// Number of blocks
    blocks: u32,
    /// Path of the compiled plan
    path: String,
    /// In the order of execution
    block_ids: Vec<String>,
}

async fn parse(call: &ToolCall<'_>) -> ToolResult {
    let Parse { file_path } = call.input()?;
    let read = |path: &std::path::Path, most: usize| match call.backend.read(path, most) {
        Ok(text) => Ok(Some(text)),
        Err(FileRefusal::NotFound(_)) => Ok(None),
        Err(other) => Err(refused(&other)),
    };
    let text =
        plans::gather(&file_path, read)?.ok_or_else(|| refused(&FileRefusal::NotFound(file_path.clone())))?;
    let plan = call.perform(text).await?;
    let path = call.backend.keep(COMPILED, plan.plan.as_str()).map_err(|refusal| refused(&refusal))?;
    let CompiledPlan { valid, blocks, block_ids, .. } = plan;
    Ok(ToolOutput::json(&PlanView { valid, blocks, path, block_ids }))
}

/// Loads the built-in program for the plan that was compiled last.
pub(super) async fn load(call: &ToolCall<'_>, name: String) -> Result<Program, ToolError> {
    let kept =
        |name: &str| call.backend.kept(name, 2 * plans::PLAN_BYTES).map_err(|refusal| refused(&refusal));
    let plan = kept(COMPILED)?.ok_or_else(|| ToolError::Reported {
        message: format!(
            "File not found: {COMPILED} (call {} first)",
            call.client.toolsets.named("parsePlan")
        ),
        code: ErrorCode::FileNotFound.as_str(),
        details: None,
    })?;
    let done = kept(PROGRESS)?.map(|text| plans::done_blocks(&text)).unwrap_or_default();
    call.perform(PlanLoad { name, plan, done }).await
}
