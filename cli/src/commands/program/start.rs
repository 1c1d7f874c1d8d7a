//! `program start`

use super::answers::{Answers, Next};
use super::step::{self, Step};
use super::{load, show};
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::parse;
use crate::script_output::note_truncated_error;
use crate::signals::Interrupts;
use std::path::PathBuf;
use std::time::Duration;
use vm_system_protocol::control::{ErrorCode, ProgramStart, RunGet, TaskSubmit};
use vm_system_protocol::model::{ExecutionStatus, Run};

/// Interval between two queries of a running program's status.
const POLL: Duration = Duration::from_millis(20);

/// Arguments of `program start`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name, id, or unique beginning of an id; with @VERSION an older version; or a .js or .ts file, which is loaded first
    #[arg(value_name = "PROGRAM")]
    program: String,
    /// The program's `args`
    #[arg(value_name = "ARGS", last = true)]
    inputs: Vec<String>,
    /// A name for the execution, unique among your executions that have not ended
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The program's `env`: a JSON object of strings
    #[arg(long, value_name = "JSON", value_parser = parse::variables)]
    env: Option<parse::Variables>,
    /// The template with its limits [default: the built-in one]
    #[arg(long, value_name = "TEMPLATE")]
    template_id: Option<String>,
    /// The folder whose files the program may use [default: no files]
    #[arg(long, value_name = "PATH")]
    worktree_path: Option<PathBuf>,
    /// For administrators: use the folder with the rights of this user (name or number) instead of your own
    #[arg(long, value_name = "USER", requires = "worktree_path")]
    as_user: Option<String>,
    /// Answer the program's tasks on the terminal
    #[arg(long, conflicts_with = "answers")]
    interactive: bool,
    /// Answer the program's tasks from this file: a JSON array, or one line per answer
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Return the execution's id as soon as the execution is recorded
    #[arg(long, conflicts_with_all = ["interactive", "answers"])]
    no_wait: bool,
    #[command(flatten)]
    imports: load::ImportArgs,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let mut answers = match &args.answers {
        Some(file) => Answers::read(file)?,
        None => Answers::None,
    };
    let program = if is_file(&args.program) {
        load::of_file(context, &args.program, &args.imports).await?
    } else {
        args.imports.refuse("the program is loaded already")?;
        args.program
    };
    let worktree_path = args.worktree_path.as_deref();
    let worktree_path =
        worktree_path.map(|folder| crate::paths::worktree(folder, &context.target)).transpose()?;
    let (wait, key) = (!args.no_wait, args.idempotency.idempotency_key);
    let new = ProgramStart {
        program,
        name: args.name,
        args: args.inputs,
        env: args.env.unwrap_or_default().0,
        template: args.template_id,
        worktree_path,
        as_user: args.as_user,
        wait,
    };
    let name = new.program.clone();
    let run = context.call_once(new, key).await.map_err(|error| with_file_hint(error, &name))?;
    if args.interactive {
        answers = Answers::Terminal(Interrupts::listen()?);
    }
    if matches!(answers, Answers::None) {
        if wait {
            Step::first(context, run.execution.id).print(context).await?;
        }
        return show::run(context, &run).await;
    }
    answer_all(context, run, &mut answers).await
}

/// Adds the remedy if the name of an unknown program was meant as a file.
fn with_file_hint(error: CliError, program: &str) -> CliError {
    if !error.has_code(ErrorCode::ProgramNotFound) {
        return error;
    }
    if program == "-" {
        return error.with_hint("`vm-system program load - --name NAME` reads a program from stdin");
    }
    if std::path::Path::new(program).is_file() {
        return error.with_hint(format!("there is a file of this name: ./{program} starts it"));
    }
    error
}

/// Whether the argument is a path, or has the extension of a source file.
fn is_file(program: &str) -> bool {
    let path = std::path::Path::new(program);
    let source =
        path.extension().is_some_and(|e| ["js", "mjs", "cjs", "ts", "mts", "cts"].iter().any(|s| e == *s));
    program.contains('/') || source
}

/// Answers tasks until the program ends or there are no more answers; prints console output as it arrives.
async fn answer_all(context: &Context, run: Run, answers: &mut Answers) -> Result<u8, CliError> {
    let steps = Step::first(context, run.execution.id);
    let mut run = run;
    loop {
        steps.print(context).await?;
        let Some(task) = run.task.clone().filter(|_| run.execution.status == ExecutionStatus::Waiting) else {
            break;
        };
        let answer = match answers.next(context, &task).await? {
            Next::Answer(answer) => answer,
            Next::None => break,
            Next::Interrupted => return Ok(left_waiting(context, &run)),
        };
        let op = TaskSubmit {
            execution: run.execution.id.to_string(),
            task: Some(task.id.to_string()),
            result: answer,
            wait: true,
        };
        let answered = tokio::select! {
            answered = context.call_once(op, None) => answered,
            () = answers.interrupted() => return Ok(left_running(context, &run)),
        };
        match answered {
            Ok(next) => run = next,
            // The task may have expired meanwhile.
            Err(error) if error.is_about_the_answer() || error.has_code(ErrorCode::TaskNotPending) => {
                let now = settled_run(context, &run).await?;
                if now.execution.status == ExecutionStatus::Waiting && !answers.may_be_more() {
                    return Err(error);
                }
                error.print(context.out.style);
                run = now;
            }
            Err(error) => return Err(error),
        }
    }
    if answers.may_be_more() && run.execution.status.is_final() {
        answers.note_unused(context);
    }
    if run.execution.status.is_final() && context.out.is_table() && !context.out.quiet {
        if let Some(result) = run.execution.result_json().filter(|json| *json != "null") {
            context.out.write(&format!("{result}\n"))?;
        }
        if let Some(error) = &run.execution.error {
            context.out.note(&format!("error: {} ({})", error.message, error.code));
            context.out.note(step::stack(context, &run.execution).await?.trim_end());
            note_truncated_error(Some(error));
        }
        return Ok(show::code(&run));
    }
    show::run(context, &run).await
}

/// The user stopped answering; the program continues to wait.
fn left_waiting(context: &Context, run: &Run) -> u8 {
    let id = run.execution.id;
    // Ends the line with the prompt and the terminal's `^C`.
    context.out.note("");
    context.out.note("The execution continues to wait for the answer.");
    context.out.note(&format!(
        "hint: answer it with `vm-system task submit {id} ANSWER`, or end it with `vm-system exec cancel {id}`"
    ));
    exit::INTERRUPTED
}

/// The user stopped waiting for the result of the answer.
fn left_running(context: &Context, run: &Run) -> u8 {
    let id = run.execution.id;
    context.out.note("");
    context.out.note("The execution continues without this command.");
    context.out.note(&format!("hint: `vm-system program status {id}` shows its status"));
    exit::INTERRUPTED
}

/// Waits until the execution does not run: after the last answer that did not match, it continues without an answer.
async fn settled_run(context: &Context, run: &Run) -> Result<Run, CliError> {
    loop {
        let op = RunGet { execution: run.execution.id.to_string() };
        let now = context.call_once(op, None).await?;
        if now.execution.status != ExecutionStatus::Running {
            return Ok(now);
        }
        tokio::time::sleep(POLL).await;
    }
}
