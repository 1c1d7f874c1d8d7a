//! Tools of programs, and of the server itself.

use super::{Answer, Effect, Row, plans};
use crate::api::mcp::call::Call;
use crate::api::mcp::confirm::Worth;
use crate::api::mcp::outcome::{Failure, Outcome};
use crate::api::mcp::{FileRefusal, schema, views};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use vm_system_protocol::control::{DurableOp, DurableReply, ErrorCode, ListPage, Op, Reply};
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;
use vm_system_protocol::model::Program;

/// Largest source that is read from a file (bytes); whether it may be as large is decided where it is compiled.
const SOURCE_BYTES: usize = CONTROL_FRAME_BYTES / 2;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "server_info",
            title: "About this server",
            description: "Name and version of the server, and how many programs and executions there are.",
            input: || schema::object(&[], &[]),
            output: || {
                schema::object(
                    &[
                        ("name", schema::text("Of the server")),
                        ("version", schema::text("Of the server")),
                        ("programs", schema::count("Programs that are loaded")),
                        ("executions", schema::count("Executions of programs, ended ones too")),
                    ],
                    &["name", "version", "programs", "executions"],
                )
            },
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(server_info(call)),
        },
        Row {
            name: "load",
            title: "Load a program",
            description: "Compile a program (JavaScript or TypeScript) and keep it under a name. In it, `CC(prompt)` \
                asks you a question and pauses: its state is kept until you answer, across restarts. Another \
                text under the same name makes a new version; executions that are paused keep theirs.",
            input: || {
                schema::object(
                    &[
                        ("programId", schema::text("The program's name")),
                        ("source", schema::text("Its source; `main()` is called if it is declared")),
                    ],
                    &["programId", "source"],
                )
            },
            output: schema::program,
            effect: Effect::Adds,
            reads_files: false,
            run: |call| Box::pin(load(call)),
        },
        Row {
            name: "loadFile",
            title: "Load a program from a file",
            description: "Read a program from a file and load it as `load` does. The file must lie in a folder that \
                the server was allowed to read. `@planexecutor` is the built-in program that walks through the plan \
                that parsePlan compiled last.",
            input: || {
                schema::object(
                    &[
                        ("programId", schema::text("The program's name")),
                        ("filePath", schema::text("The file, .js or .ts; or @planexecutor")),
                    ],
                    &["programId", "filePath"],
                )
            },
            output: schema::program,
            effect: Effect::Adds,
            reads_files: true,
            run: |call| Box::pin(load_file(call)),
        },
        Row {
            name: "list_programs",
            title: "List programs",
            description: "All programs that are loaded, newest first.",
            input: || schema::object(&[], &[]),
            output: || {
                schema::object(
                    &[("programs", schema::list(schema::program(), "Newest first"))],
                    &["programs"],
                )
            },
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(list(call)),
        },
        Row {
            name: "delete_program",
            title: "Delete a program",
            description: "Delete a program; its executions go on. The first call answers a token, the second one \
                with this token deletes.",
            input: || {
                schema::object(
                    &[
                        ("programId", schema::text("Name or id of the program")),
                        ("confirmToken", schema::text("The token of the first call")),
                    ],
                    &["programId"],
                )
            },
            output: || confirmation("programId"),
            effect: Effect::Destroys,
            reads_files: false,
            run: |call| Box::pin(delete(call)),
        },
    ]
}

/// What a tool answers that deletes only when it is asked twice.
pub(super) fn confirmation(id: &str) -> Value {
    schema::object(
        &[
            (id, schema::text("What it is about")),
            ("deleted", schema::flag("Whether it is gone")),
            ("confirmationRequired", schema::flag("Call again with the token")),
            ("message", schema::text("What to do")),
            ("token", schema::text("Counts once, for this alone")),
        ],
        &[id, "deleted"],
    )
}

/// The first of two calls about the thing of this id, which the client calls `named`.
pub(super) fn ask_first(
    call: &Call<'_>,
    (kind, field): (&'static str, &str),
    named: &str,
    id: &str,
) -> Outcome {
    let token = call.confirmations.give(call.about(kind, id.to_owned()));
    let message = format!("To delete {kind} '{named}', call this tool again with the confirmation token");
    Outcome::json(json!({
        field: named, "deleted": false, "confirmationRequired": true, "message": message, "token": token
    }))
}

/// The second one: whether the token was given for what the name means now.
pub(super) fn confirmed(
    call: &Call<'_>,
    kind: &'static str,
    named: &str,
    id: &str,
    token: &str,
) -> Result<(), Failure> {
    let (code, message) = match call.confirmations.take(&call.about(kind, id.to_owned()), token) {
        Worth::Counts => return Ok(()),
        Worth::ForAnother => (
            ErrorCode::Conflict,
            format!(
                "This confirmation token was given for another {kind}: '{named}' is {id} now. Nothing was deleted; call \
                 again without a token to get one for it"
            ),
        ),
        Worth::Nothing => (
            ErrorCode::ValidationError,
            "Invalid confirmation token: call again without one to get a new one".to_owned(),
        ),
    };
    Err(Failure::Told { message, code: code.as_str(), details: None })
}

async fn server_info(call: &Call<'_>) -> Answer {
    let Reply::RuntimeInfo(info) = call.ask(Op::RuntimeInfo).await? else {
        return Err(Failure::unexpected(&"RuntimeInfo"));
    };
    let counts = match call.durable(DurableOp::Counts).await? {
        DurableReply::Counts(counts) => counts,
        other => return Err(Failure::unexpected(&other)),
    };
    Ok(Outcome::json(json!({
        "name": "vm-system", "version": info.version,
        "programs": counts.programs, "executions": counts.executions
    })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Load {
    program_id: String,
    source: String,
}

async fn load(call: &Call<'_>) -> Answer {
    let Load { program_id, source } = call.input()?;
    let program = compile(call, program_id, source, None).await?;
    Ok(Outcome::new(format!("Program loaded successfully: {}", program.name), views::program(&program)))
}

async fn compile(
    call: &Call<'_>,
    name: String,
    source: String,
    typescript: Option<bool>,
) -> Result<Box<Program>, Failure> {
    match call.durable(DurableOp::ProgramLoad { name, source, typescript }).await? {
        DurableReply::Program(program) => Ok(program),
        other => Err(Failure::unexpected(&other)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LoadFile {
    program_id: String,
    file_path: String,
}

async fn load_file(call: &Call<'_>) -> Answer {
    let LoadFile { program_id, file_path } = call.input()?;
    if file_path == plans::EXECUTOR {
        let program = plans::load(call, program_id).await?;
        let text = format!("Program loaded successfully from {file_path}: {}", program.name);
        return Ok(Outcome::new(text, views::program(&program)));
    }
    let path = Path::new(&file_path);
    let source = call.front.read(path, SOURCE_BYTES).map_err(|refusal| refused(&refusal))?;
    let typescript = match path.extension().and_then(|extension| extension.to_str()) {
        Some("ts" | "mts" | "cts") => Some(true),
        Some("js" | "mjs" | "cjs") => Some(false),
        _ => None,
    };
    let program = compile(call, program_id, source, typescript).await?;
    let text = format!("Program loaded successfully from {file_path}: {}", program.name);
    Ok(Outcome::new(text, views::program(&program)))
}

/// A file that was not read.
pub(super) fn refused(refusal: &FileRefusal) -> Failure {
    let code = match refusal {
        FileRefusal::NotFound(_) => ErrorCode::FileNotFound,
        FileRefusal::Denied(_) => ErrorCode::NotPermitted,
        FileRefusal::Unfit(_) => ErrorCode::ValidationError,
    };
    Failure::Told { message: refusal.to_string(), code: code.as_str(), details: None }
}

async fn programs(call: &Call<'_>) -> Result<Vec<Program>, Failure> {
    match call.durable(DurableOp::ProgramList(ListPage::default())).await? {
        DurableReply::Programs(programs) => Ok(programs),
        other => Err(Failure::unexpected(&other)),
    }
}

async fn list(call: &Call<'_>) -> Answer {
    let programs: Vec<Value> = programs(call).await?.iter().map(views::program).collect();
    let text = if programs.is_empty() {
        "No programs loaded".to_owned()
    } else {
        serde_json::to_string_pretty(&programs).unwrap_or_default()
    };
    Ok(Outcome::new(text, json!({ "programs": programs })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Delete {
    program_id: String,
    confirm_token: Option<String>,
}

async fn delete(call: &Call<'_>) -> Answer {
    let Delete { program_id, confirm_token } = call.input()?;
    let op = DurableOp::ProgramGet { program: program_id.clone(), version: None };
    let id = match call.durable(op).await? {
        DurableReply::Program(program) => program.id.to_string(),
        other => return Err(Failure::unexpected(&other)),
    };
    let Some(token) = confirm_token else {
        return Ok(ask_first(call, ("program", "programId"), &program_id, &id));
    };
    confirmed(call, "program", &program_id, &id, &token)?;
    call.durable(DurableOp::ProgramDelete { program: id }).await?;
    let data = json!({ "programId": program_id, "deleted": true });
    Ok(Outcome::new(format!("Program deleted: {program_id}"), data))
}
