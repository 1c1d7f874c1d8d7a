//! The table of tools: the description of each for agents, and its handler.

mod executions;
mod plans;
mod programs;
mod sessions;
mod states;
mod tasks;

pub(super) use executions::console;
pub(super) use tasks::end_text;

use super::VerbFuture;
use super::call::ToolCall;
use super::output::{ToolError, ToolOutput};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

/// The result of a tool.
pub(super) type ToolResult = Result<ToolOutput, ToolError>;

/// One tool.
pub(super) struct ToolRow {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    input: fn() -> JsonObject,
    output: fn() -> JsonObject,
    effect: Effect,
    /// Reads files of the client.
    pub(super) reads_files: bool,
    /// The handler.
    pub(super) run: for<'a> fn(&'a ToolCall<'a>) -> VerbFuture<'a, ToolResult>,
}

/// What a tool changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    Reads,
    /// Creates an object, or continues an execution.
    Adds,
    /// May delete or overwrite data.
    Destroys,
}

/// All tools, in the order in which they are listed.
pub(super) static TOOLS: LazyLock<Vec<ToolRow>> = LazyLock::new(|| {
    let mut rows = Vec::new();
    rows.extend(programs::rows());
    rows.extend(plans::rows());
    rows.extend(executions::rows());
    rows.extend(tasks::rows());
    rows.extend(states::rows());
    rows.extend(sessions::rows());
    rows
});

/// Looks a tool up by name.
pub(super) fn find(name: &str) -> Option<&'static ToolRow> {
    TOOLS.iter().find(|row| row.name == name)
}

impl ToolRow {
    /// The tool's entry in `tools/list`.
    pub(super) fn listed(&self) -> Tool {
        let hints = ToolAnnotations::new()
            .read_only(self.effect == Effect::Reads)
            .destructive(self.effect == Effect::Destroys)
            .idempotent(self.effect == Effect::Reads)
            .open_world(false);
        Tool::new(self.name, self.description, Arc::new((self.input)()))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new((self.output)()))
            .with_annotations(hints)
    }
}

/// The tools as a page of the docs.
pub fn reference() -> String {
    let mut page = String::from(
        "# Tools for agents\n\nGenerated from the code; a test compares both. How to set an agent up: [mcp.md](mcp.md). \
         Every result has a text and, as `structuredContent`,\nthe same as data that match the tool's `outputSchema`. A \
         tool that fails returns `isError` with `Error: …`, and `_meta[\"vm-system/error\"]`\nhas the code and details \
         of the [API](api-reference.md).\n",
    );
    for row in TOOLS.iter() {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## `{}`\n\n{}\n\n", row.name, row.description);
        let input = (row.input)();
        let Some(fields) = input["properties"].as_object().filter(|fields| !fields.is_empty()) else {
            page.push_str("No parameters.\n");
            continue;
        };
        page.push_str("| parameter | meaning |\n|---|---|\n");
        for (name, field) in fields {
            let required = input["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
            let note = if required { " (required)" } else { "" };
            let kind = field["type"].as_str().unwrap_or("any");
            let meaning = field["description"].as_str().unwrap_or_default();
            let _ = writeln!(page, "| `{name}`: {kind} | {meaning}{note} |");
        }
    }
    page
}
