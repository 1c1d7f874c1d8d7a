//! The table of tools: the description of each for agents, and its handler.

mod evaluations;
mod executions;
mod hints;
mod plans;
mod programs;
mod restorations;
mod schedules;
mod session_tasks;
mod sessions;
mod states;
mod tasks;

pub(super) use executions::console;
pub(super) use tasks::end_text;

use super::VerbFuture;
use super::call::ToolCall;
use super::output::{ToolError, ToolOutput};
use super::schema;
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
    pub(super) set: ToolSet,
    /// Reads files of the client.
    pub(super) reads_files: bool,
    /// The handler.
    pub(super) run: for<'a> fn(&'a ToolCall<'a>) -> VerbFuture<'a, ToolResult>,
}

/// The changes that a tool makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    Reads,
    /// Creates an object, or continues an execution.
    Adds,
    /// May delete or overwrite data.
    Destroys,
}

/// A group of tools that clients choose together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolSet {
    /// The tools that driving a program and using a session need: always listed.
    Basic,
    /// Rewind, fork, change variables.
    Branch,
    /// Programs and executions one by one: the original system's other tools.
    Admin,
    /// Plans.
    Plans,
    /// The other tools for sessions.
    Sessions,
}

/// The names of the sets that can be chosen.
pub(super) const SETS: &[(&str, &[ToolSet])] = &[
    ("default", &[]),
    ("branch", &[ToolSet::Branch]),
    ("admin", &[ToolSet::Admin]),
    ("plans", &[ToolSet::Plans]),
    ("sessions", &[ToolSet::Sessions]),
    ("all", &[ToolSet::Branch, ToolSet::Admin, ToolSet::Plans, ToolSet::Sessions]),
];

/// The sets of tools that are listed for a client, in addition to the basic ones. Every tool can be called, listed or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSets(Vec<ToolSet>);

impl ToolSets {
    /// The names of the sets that can be chosen.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SETS.iter().map(|(name, _)| *name)
    }

    fn has(&self, set: ToolSet) -> bool {
        set == ToolSet::Basic || self.0.contains(&set)
    }

    /// The name of a tool in a text for this client; of one that is not listed for it with how its user lists it. Hosts let their
    /// agents call listed tools only.
    pub(super) fn named(&self, tool: &'static str) -> String {
        let row = find(tool).filter(|row| !row.is_in(self));
        let set = row.and_then(|row| SETS.iter().find(|(_, sets)| *sets == [row.set]));
        match set {
            Some((set, _)) => {
                format!(
                    "{tool} (listed with `vm-system mcp --toolsets {set}`, over HTTP with /mcp?toolsets={set})"
                )
            }
            None => tool.to_owned(),
        }
    }
}

impl std::str::FromStr for ToolSets {
    type Err = String;

    /// Names separated by commas.
    fn from_str(names: &str) -> Result<Self, String> {
        let mut chosen = Vec::new();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let Some((_, sets)) = SETS.iter().find(|(known, _)| *known == name) else {
                let name: String = name.chars().take(100).collect();
                let known: Vec<&str> = SETS.iter().map(|(known, _)| *known).collect();
                return Err(format!("there is no set of tools {name:?}: the sets are {}", known.join(", ")));
            };
            chosen.extend_from_slice(sets);
        }
        Ok(Self(chosen))
    }
}

/// All tools, in the order in which they are listed.
pub(super) static TOOLS: LazyLock<Vec<ToolRow>> = LazyLock::new(|| {
    let mut rows = Vec::new();
    rows.extend(programs::rows());
    rows.extend(plans::rows());
    rows.extend(executions::rows());
    rows.extend(tasks::rows());
    rows.extend(states::rows());
    rows.extend(schedules::rows());
    rows.extend(sessions::rows());
    rows.extend(restorations::rows());
    rows
});

/// Looks a tool up by name.
pub(super) fn find(name: &str) -> Option<&'static ToolRow> {
    TOOLS.iter().find(|row| row.name == name)
}

impl ToolRow {
    /// Whether the tool is listed for a client with these sets.
    pub(super) fn is_in(&self, sets: &ToolSets) -> bool {
        sets.has(self.set)
    }

    /// The texts that agents may read about the tool: its description, and the schemas of its arguments and of its result.
    #[cfg(test)]
    pub(super) fn texts(&self) -> [String; 3] {
        let schema = |schema: JsonObject| serde_json::Value::Object(schema).to_string();
        [self.description.to_owned(), schema((self.input)()), schema((self.output)())]
    }

    /// The tool's entry in `tools/list`.
    pub(super) fn listed(&self) -> Tool {
        let hints = ToolAnnotations::new()
            .read_only(self.effect == Effect::Reads)
            .destructive(self.effect == Effect::Destroys)
            .idempotent(self.effect == Effect::Reads)
            .open_world(false);
        Tool::new(self.name, self.description, Arc::new((self.input)()))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(schema::undescribed((self.output)())))
            .with_annotations(hints)
    }
}

/// The tools as a page of the docs.
pub fn reference() -> String {
    let mut page = String::from(
        "# Tools for agents\n\nGenerated from the code; a test compares both. How to set an agent up, and the sets of \
         tools: [mcp.md](mcp.md). Every result has one or\nmore texts and, as `structuredContent`, the same as data that \
         match the tool's `outputSchema`. A tool that fails returns `isError` with\n`Error: …`, and \
         `_meta[\"vm-system/error\"]` has the code and details of the [API](api-reference.md).\n",
    );
    for row in TOOLS.iter() {
        let in_set = |(_, sets): &&(&str, &[ToolSet])| **sets == [row.set];
        let set = SETS.iter().find(in_set).map_or_else(String::new, |(name, _)| format!(" (set `{name}`)"));
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## `{}`{set}\n\n{}\n\n", row.name, row.description);
        let input = (row.input)();
        if !fields(&mut page, "parameter", &input) {
            page.push_str("No parameters.\n");
        }
        page.push('\n');
        fields(&mut page, "field of the result", &(row.output)());
    }
    page
}

/// Writes the fields of an object's schema as a table; false if it has none.
fn fields(page: &mut String, title: &str, schema: &JsonObject) -> bool {
    let Some(fields) = schema["properties"].as_object().filter(|fields| !fields.is_empty()) else {
        return false;
    };
    // Writing to a String cannot fail.
    let _ = write!(page, "| {title} | meaning |\n|---|---|\n");
    for (name, field) in fields {
        let required = schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let note = if required { " (required)" } else { "" };
        let kind = field["type"].as_str().unwrap_or("any");
        let meaning = field["description"].as_str().unwrap_or_default();
        let _ = writeln!(page, "| `{name}`: {kind} | {meaning}{note} |");
    }
    true
}
