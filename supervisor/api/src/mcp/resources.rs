//! Resources: executions with their output, and sources of programs, as documents to read.

use super::call::ToolCall;
use super::completions::Completable;
use super::output::{ToolError, cut};
use super::tools::console;
use super::views;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use vm_system_protocol::control::{
    ErrorCode, ExecEvents, ListPage, ProgramGet, ProgramList, RunGet, RunList,
};

/// Most executions, and most programs, that are listed.
const LISTED: u32 = 100;
/// Events of one document.
const EVENTS: u32 = 1_000;
/// Output of one document (bytes).
const OUTPUT_BYTES: usize = 128 * 1024;

const EXECUTIONS: &str = "vm://executions/";
const PROGRAMS: &str = "vm://programs/";

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, about: &str, kind: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(kind)
    };
    vec![
        template(
            "vm://executions/{id}",
            "execution",
            "An execution of a program: its status, its pending task, its result",
            "application/json",
        ),
        template("vm://executions/{id}/output", "output", "Console output of an execution", "text/plain"),
        template(
            "vm://executions/{id}/events",
            "events",
            "Events of an execution, in order",
            "application/json",
        ),
        template("vm://programs/{id}", "program", "The source of a program", "text/javascript"),
    ]
}

/// The newest executions and programs.
pub(super) async fn list(call: &ToolCall<'_>) -> Result<Vec<Resource>, ToolError> {
    let mut listed = Vec::new();
    for run in call.perform(RunList { page: ListPage::first(LISTED), ..RunList::default() }).await? {
        let id = run.execution.id;
        let about = format!(
            "Execution of {}: {}",
            run.program.as_deref().unwrap_or("a deleted program"),
            views::legacy_of(&run)
        );
        let resource = Resource::new(format!("{EXECUTIONS}{id}"), views::name_of(&run));
        listed.push(resource.with_description(about).with_mime_type("application/json"));
    }
    for program in
        call.perform(ProgramList { page: ListPage::first(LISTED), ..ProgramList::default() }).await?
    {
        let resource = Resource::new(format!("{PROGRAMS}{}", program.id), program.name);
        listed.push(resource.with_description("Source of a program").with_mime_type("text/javascript"));
    }
    Ok(listed)
}

/// The document at `uri`.
pub(super) async fn read(call: &ToolCall<'_>, uri: &str) -> Result<ReadResourceResult, ToolError> {
    let contents = |text: String, kind: &str| {
        let text = ResourceContents::text(cut(text), uri).with_mime_type(kind);
        Ok(ReadResourceResult::new(vec![text]))
    };
    if let Some(id) = uri.strip_prefix(PROGRAMS) {
        let program = call.perform(ProgramGet { program: plain(id, uri)?, version: None }).await?;
        return contents(program.source.unwrap_or_default(), "text/javascript");
    }
    let rest = uri.strip_prefix(EXECUTIONS).ok_or_else(|| unknown(uri))?;
    let (id, part) = rest.split_once('/').unwrap_or((rest, ""));
    let id = plain(id, uri)?;
    match part {
        "" => {
            let run = call.perform(RunGet { execution: id }).await?;
            let text = serde_json::to_string_pretty(&json!(call.give_run(&run))).unwrap_or_default();
            contents(text, "application/json")
        }
        "output" => {
            let (lines, next, more) = console(call, &id, 0, OUTPUT_BYTES).await?;
            let note = if more {
                format!("\n[truncated: getTask executionId={id} after={next} has the rest]")
            } else {
                String::new()
            };
            contents(lines.join("\n") + &note, "text/plain")
        }
        "events" => {
            let op = ExecEvents { execution: id, after_seq: 0, limit: EVENTS, follow: false };
            let events = call.perform(op).await?;
            if events.len() < EVENTS as usize {
                call.give_last_of(&events);
            }
            contents(serde_json::to_string_pretty(&events).unwrap_or_default(), "application/json")
        }
        _ => Err(unknown(uri)),
    }
}

/// The execution of a document that can be subscribed to.
pub(super) fn execution_of(uri: &str) -> Option<String> {
    plain(uri.strip_prefix(EXECUTIONS)?, uri).ok()
}

/// The kind of thing that the variable of a template of addresses names.
pub(super) fn completable(template: &str, variable: &str) -> Option<Completable> {
    if variable != "id" || !templates().iter().any(|known| known.uri_template == template) {
        return None;
    }
    Some(if template.starts_with(PROGRAMS) { Completable::Program } else { Completable::Execution })
}

/// An id or a plain name; an object with another name is addressed by its id.
fn plain(id: &str, uri: &str) -> Result<String, ToolError> {
    if is_plain(id) { Ok(id.to_owned()) } else { Err(unknown(uri)) }
}

/// Whether a name can stand in an address.
pub(super) fn is_plain(id: &str) -> bool {
    let sane = |char: char| char.is_alphanumeric() || "-_.".contains(char);
    !id.is_empty() && id.len() <= 800 && id.chars().all(sane)
}

fn unknown(uri: &str) -> ToolError {
    ToolError::Reported {
        message: format!("Resource not found: {}", uri.chars().take(200).collect::<String>()),
        code: ErrorCode::NotFound.as_str(),
        details: None,
    }
}
