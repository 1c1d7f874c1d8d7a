//! Tools for programs and for the server itself.

use super::{Effect, ToolResult, ToolRow, ToolSet, plans};
use crate::mcp::FileRefusal;
use crate::mcp::call::ToolCall;
use crate::mcp::confirm::TokenCheck;
use crate::mcp::lists;
use crate::mcp::output::{ToolError, ToolOutput};
use crate::mcp::schema::{self, JsonSchema, schemars};
use crate::mcp::views::ProgramView;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use vm_system_protocol::control::{
    ErrorCode, ProgramDelete, ProgramGet, ProgramList, ProgramLoad, ProgramTotals, RuntimeInfoGet,
};
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;
use vm_system_protocol::model::Program;

/// Largest source that is read from files (bytes); the compiler has its own limit.
const SOURCE_BYTES: usize = CONTROL_FRAME_BYTES / 2;

pub(super) fn rows() -> Vec<ToolRow> {
    vec![
        ToolRow {
            name: "server_info",
            title: "About this server",
            description: "Name and version of the server, and the number of programs and executions.",
            input: schema::input::<Nothing>,
            output: schema::output::<ServerView>,
            effect: Effect::Reads,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(server_info(call)),
        },
        ToolRow {
            name: "load",
            title: "Load a program",
            description: "Compile a program (JavaScript or TypeScript) and keep it under a name. In it, \
                `CC(prompt, options?)` gives you a task and pauses: its state is kept until you answer, also across \
                restarts. Options: `schema` (a JSON Schema for the answer, which is a string without it), `timeout_ms` \
                with `default` (the answer after that time; without it `CC` throws), `retries` (how many answers that do \
                not fit are refused before `CC` throws). Another source under the same name becomes a new version; paused executions keep theirs. Pass `source`, with \
                `files` if it imports others, or `filePath` if the server runs on your machine.",
            input: schema::input::<Load>,
            output: schema::output::<ProgramView>,
            effect: Effect::Adds,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(load(call)),
        },
        ToolRow {
            name: "loadFile",
            title: "Load a program from a file",
            description: "Read a program from a file and load it as `load` does. The file must be in a folder that \
                the server may read. `@planexecutor` is the built-in program that goes through the plan that \
                parsePlan compiled last.",
            input: schema::input::<LoadFile>,
            output: schema::output::<ProgramView>,
            effect: Effect::Adds,
            set: ToolSet::Plans,
            reads_files: true,
            run: |call| Box::pin(load_file(call)),
        },
        ToolRow {
            name: "list_programs",
            title: "List programs",
            description: "Loaded programs, newest first (200 at a time).",
            input: schema::input::<ListPrograms>,
            output: schema::output::<ProgramListView>,
            effect: Effect::Reads,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(list(call)),
        },
        ToolRow {
            name: "delete_program",
            title: "Delete a program",
            description: "Delete a program; its executions continue. The first call returns a token; a second call \
                with this token deletes.",
            input: schema::input::<Delete>,
            output: schema::output::<ProgramDeletion>,
            effect: Effect::Destroys,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(delete(call)),
        },
    ]
}

/// Result of a tool that deletes only when it is called a second time.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Deletion {
    /// Whether it was deleted
    deleted: bool,
    /// Call again with the token
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmation_required: Option<bool>,
    /// The next step
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Valid once, for this deletion only
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl Deletion {
    pub(super) fn done() -> Self {
        Self { deleted: true, confirmation_required: None, message: None, token: None }
    }
}

/// The first of two calls; `named` is the client's name for the object `id`.
pub(super) fn ask_first(call: &ToolCall<'_>, kind: &'static str, named: &str, id: String) -> Deletion {
    let token = call.confirmations.issue(call.about(kind, id));
    let message = format!("To delete {kind} '{named}', call this tool again with the confirmation token");
    Deletion {
        deleted: false,
        confirmation_required: Some(true),
        message: Some(message),
        token: Some(token.clone()),
    }
}

/// The second call: whether the token was issued for the object that the name refers to now.
pub(super) fn confirmed(
    call: &ToolCall<'_>,
    kind: &'static str,
    named: &str,
    id: &str,
    token: &str,
) -> Result<(), ToolError> {
    let (code, message) = match call.confirmations.check(&call.about(kind, id.to_owned()), token) {
        TokenCheck::Valid => return Ok(()),
        TokenCheck::ForAnother => (
            ErrorCode::Conflict,
            format!(
                "This confirmation token was issued for another {kind}: '{named}' is {id} now. Nothing was deleted; \
                 call again without a token to get one for it"
            ),
        ),
        TokenCheck::Unknown => (
            ErrorCode::ValidationError,
            "Invalid confirmation token: call again without one to get a new one".to_owned(),
        ),
    };
    Err(ToolError::Reported { message, code: code.as_str(), details: None })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Data of `server_info`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ServerView {
    /// Name of the server
    name: &'static str,
    /// Version of the server
    version: String,
    /// Number of loaded programs
    programs: u64,
    /// Number of executions of programs, including ended ones
    executions: u64,
}

async fn server_info(call: &ToolCall<'_>) -> ToolResult {
    let info = call.perform(RuntimeInfoGet).await?;
    let counts = call.perform(ProgramTotals).await?;
    let (programs, executions) = (counts.programs, counts.executions);
    Ok(ToolOutput::json(&ServerView {
        name: "vm-system",
        version: info.version.clone(),
        programs,
        executions,
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Load {
    /// Name of the program
    program_id: String,
    /// Source text; `main()` is called if it is declared
    source: Option<String>,
    /// Texts of the files that the source imports, by their names relative to it, such as `lib/tax.ts`
    files: Option<BTreeMap<String, String>>,
    /// Path of a .js or .ts file instead, in a folder that the server may read; what it imports is read from there, too
    file_path: Option<String>,
}

async fn load(call: &ToolCall<'_>) -> ToolResult {
    let Load { program_id, source, files, file_path } = call.input()?;
    let source = match (source, file_path) {
        (Some(source), None) => source,
        (None, Some(_)) if files.is_some() => {
            return Err(ToolError::invalid(
                "`files` belongs to `source`: the files that `filePath` imports are read",
            ));
        }
        (None, Some(file_path)) if call.backend.reads_files() => {
            return load_path(call, program_id, file_path).await;
        }
        (None, Some(_)) => {
            return Err(ToolError::invalid("the server does not read files of its clients: pass `source`"));
        }
        _ => return Err(ToolError::invalid("pass `source` or `filePath`, one of them")),
    };
    let files = files.unwrap_or_default().into_iter().collect();
    let text = ProgramLoad { name: program_id, source, files, ..ProgramLoad::default() };
    let program = compile(call, text).await?;
    Ok(ToolOutput::new(format!("Program loaded successfully: {}", program.name), &ProgramView::new(&program)))
}

async fn compile(call: &ToolCall<'_>, text: ProgramLoad) -> Result<Program, ToolError> {
    call.perform(text).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LoadFile {
    /// Name of the program
    program_id: String,
    /// Path of a .js or .ts file, or @planexecutor
    file_path: String,
}

async fn load_file(call: &ToolCall<'_>) -> ToolResult {
    let LoadFile { program_id, file_path } = call.input()?;
    load_path(call, program_id, file_path).await
}

async fn load_path(call: &ToolCall<'_>, program_id: String, file_path: String) -> ToolResult {
    if file_path == plans::EXECUTOR {
        let program = plans::load(call, program_id).await?;
        let text = format!("Program loaded successfully from {file_path}: {}", program.name);
        return Ok(ToolOutput::new(text, &ProgramView::new(&program)));
    }
    let path = Path::new(&file_path);
    let text = call.backend.read_program(path, SOURCE_BYTES).map_err(|refusal| refused(&refusal))?;
    let program = compile(call, ProgramLoad { name: program_id, ..text }).await?;
    let text = format!("Program loaded successfully from {file_path}: {}", program.name);
    Ok(ToolOutput::new(text, &ProgramView::new(&program)))
}

/// A file that was not read.
pub(super) fn refused(refusal: &FileRefusal) -> ToolError {
    let code = match refusal {
        FileRefusal::NotFound(_) => ErrorCode::FileNotFound,
        FileRefusal::Denied(_) => ErrorCode::NotPermitted,
        FileRefusal::Unfit(_) => ErrorCode::ValidationError,
    };
    ToolError::Reported { message: refusal.to_string(), code: code.as_str(), details: None }
}

/// Data of `list_programs`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProgramListView {
    /// Newest first
    programs: Vec<ProgramView>,
    /// There are more: pass it as `cursor`
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ListPrograms {
    /// Only the program with exactly this name
    name: Option<String>,
    /// Only programs that were first loaded at or after this time (RFC 3339)
    since: Option<String>,
    /// Only programs that were first loaded before this time (RFC 3339)
    until: Option<String>,
    /// For administrators: only programs of this owner
    owner: Option<String>,
    /// `nextCursor` of an earlier result, with the same filters: older programs
    cursor: Option<String>,
}

async fn list(call: &ToolCall<'_>) -> ToolResult {
    let ListPrograms { name, since, until, owner, cursor } = call.input()?;
    let filter = ProgramList { name, period: lists::period(since, until)?, owner, ..ProgramList::default() };
    let mut list = lists::ListParts::new(cursor)?;
    while let Some(page) = list.wanted() {
        let part = call.perform(ProgramList { page, ..filter.clone() }).await?;
        list.add(part);
    }
    let (programs, next_cursor) = list.finish();
    let programs: Vec<ProgramView> = programs.iter().map(ProgramView::new).collect();
    let text = if programs.is_empty() {
        "No programs loaded".to_owned()
    } else {
        serde_json::to_string_pretty(&json!(programs)).unwrap_or_default()
    };
    let note = lists::note(next_cursor.as_ref());
    let output = ToolOutput::new(text, &ProgramListView { programs, next_cursor });
    Ok(match note {
        Some(note) => output.and(note),
        None => output,
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Delete {
    /// Name or id of the program
    program_id: String,
    /// The token that the first call returned
    confirm_token: Option<String>,
}

/// Data of `delete_program`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProgramDeletion {
    /// The name or id that was given
    program_id: String,
    #[serde(flatten)]
    deletion: Deletion,
}

async fn delete(call: &ToolCall<'_>) -> ToolResult {
    let Delete { program_id, confirm_token } = call.input()?;
    let op = ProgramGet { program: program_id.clone(), version: None };
    let id = call.perform(op).await?.id.to_string();
    let Some(token) = confirm_token else {
        let deletion = ask_first(call, "program", &program_id, id);
        return Ok(ToolOutput::json(&ProgramDeletion { program_id, deletion }));
    };
    confirmed(call, "program", &program_id, &id, &token)?;
    call.perform(ProgramDelete { program: id }).await?;
    let text = format!("Program deleted: {program_id}");
    Ok(ToolOutput::new(text, &ProgramDeletion { program_id, deletion: Deletion::done() }))
}
