//! `repl [SESSION]`: an interactive JavaScript shell.
//!
//! Without a session it embeds a supervisor with the current folder. Ctrl-C cancels the running code, not the shell.

mod assist;
mod complete_input;
mod dot;
mod input;
mod properties;

use super::exec::repl::new_execution;
use super::exec::start::{self, CodeRunner};
use super::run::{Grants, embedded, session};
use crate::args::{OutputFormat, SandboxArg};
use crate::backend::Backend;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::parse;
use crate::script_output::{ScriptOutput, ShowValues, exit_of_input};
use crate::signals::Interrupts;
use dot::Dot;
use input::{Input, Line};
use properties::Properties;
use std::time::Duration;
use vm_system_daemon::Operator;
use vm_system_protocol::control::{
    ExecGet, ExecutionState, INTERACTIVE_INPUT, SessionGet, SessionInspect, TaskGet,
};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Execution, SessionStatus, Task, TaskStatus};

/// Arguments of `repl`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A session of the daemon [default: a private session in the current folder]
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Time limit of one input, for CPU time and for wall-clock time: 500ms, 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = parse::duration, default_value = "30s", conflicts_with = "session")]
    timeout: Duration,
    /// Memory limit (MiB)
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with = "session")]
    memory: u32,
    /// The sandbox walls to set up
    #[arg(long, value_name = "MODE", value_enum, default_value_t, conflicts_with = "session")]
    sandbox: SandboxArg,
}

impl Args {
    /// Whether it is the shell of a session of a daemon.
    pub(crate) fn is_in_session(&self) -> bool {
        self.session.is_some()
    }
}

pub(crate) fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    if context.out.format != OutputFormat::Table {
        return Err(CliError::usage("repl is for people; use `exec repl` with --output"));
    }
    match args.session {
        Some(session) => context.block_on(in_session(context, session)),
        None => context.block_on_embedded(in_embedded(context, args.timeout, args.memory, args.sandbox)),
    }
}

async fn in_session(context: &Context, session: String) -> Result<u8, CliError> {
    let interrupts = Interrupts::listen_to_ctrl_c()?;
    let session = context.call(SessionGet { session }).await?;
    // A session is ready or waiting while an execution of it waits.
    let pending = match session.status {
        SessionStatus::Ready | SessionStatus::Waiting => {
            waiting(context, context.daemon(), session.id.to_string()).await?
        }
        _ => None,
    };
    let is_idle = matches!(session.status, SessionStatus::Ready | SessionStatus::Suspended);
    if !is_idle && pending.is_none() {
        let message = format!("session {} is {}", session.id, session.status);
        return Err(CliError::new(exit::FAILED, message)
            .with_hint("create a new one with `vm-system session create`"));
    }
    converse(context, context.daemon(), &interrupts, session.id.to_string(), pending).await
}

async fn in_embedded(
    context: &Context,
    timeout: Duration,
    memory: u32,
    sandbox: SandboxArg,
) -> Result<u8, CliError> {
    let interrupts = Interrupts::listen_to_ctrl_c()?;
    let folder = embedded::current_folder()?;
    let own = embedded::start(sandbox, Operator::default(), None).await?;
    let result = async {
        let session = session(&own, embedded::settings(timeout, memory), folder, &Grants::default()).await?;
        converse(context, own.backend(), &interrupts, session, None).await
    }
    .await;
    own.stop().await;
    result
}

/// An execution that waits for an answer, and what prints its output.
struct Pending {
    execution: ExecutionId,
    task: Option<Task>,
    output: ScriptOutput,
}

/// The state to which an input or an answer has led.
enum Outcome {
    Ended(Box<Execution>, ScriptOutput),
    Waits(Pending),
}

impl Outcome {
    fn from_stop(stop: ExecutionState, output: ScriptOutput) -> Self {
        match stop {
            ExecutionState::Execution(execution) => Self::Ended(Box::new(execution), output),
            ExecutionState::Run(run) => {
                Self::Waits(Pending { execution: run.execution.id, task: run.task, output })
            }
        }
    }
}

async fn converse(
    context: &Context,
    backend: &Backend,
    interrupts: &Interrupts,
    session: String,
    mut pending: Option<Pending>,
) -> Result<u8, CliError> {
    let mut input = Input::open(context, Properties::new(backend, &session))?;
    backend.cancel_on_disconnect(input.is_terminal());
    if input.is_terminal() {
        context.out.note("vm-system repl: .help for help, .exit to leave");
    }
    if let Some(task) = pending.as_ref().and_then(|pending| pending.task.as_ref()) {
        context.out.note(&format!("[task] {}", task.prompt));
        show_schema(context, task);
    }
    let mut code = exit::OK;
    loop {
        let text = match input.next(pending.is_some())? {
            Line::End => break,
            Line::Text(text) if text.trim().is_empty() => continue,
            Line::Text(text) => text,
        };
        let stop = match (Dot::parse(&text), pending.take()) {
            (Some(Dot::Exit), before) => {
                pending = before;
                break;
            }
            (Some(Dot::Answer(answer)), Some(before)) => {
                answer_pending(context, backend, interrupts, before, answer).await
            }
            (None, Some(before)) => {
                let answer = text.trim_end_matches(['\r', '\n']).to_owned();
                answer_pending(context, backend, interrupts, before, answer).await
            }
            (Some(Dot::Cancel), Some(Pending { execution, output, .. })) => {
                let ended = start::cancel_waiting(backend, execution, &output).await;
                ended.map(|execution| Outcome::Ended(Box::new(execution), output))
            }
            (Some(Dot::Load(_) | Dot::Editor), before @ Some(_)) => {
                CliError::usage("the session waits for an answer")
                    .with_hint(".answer TEXT, or .cancel")
                    .print(context.out.style);
                pending = before;
                continue;
            }
            (dot, before) => {
                pending = before;
                let text = match dot {
                    None => text,
                    Some(dot) => match dot.perform(context, &mut input)? {
                        Some(text) => text,
                        None => continue,
                    },
                };
                input.learn(&text);
                let values = if input.is_terminal() { ShowValues::Always } else { ShowValues::Defined };
                let output = ScriptOutput::new(context.out.style, values);
                let new = new_execution(session.clone(), text, Some(INTERACTIVE_INPUT));
                interrupts.forget();
                let stop = CodeRunner { context, backend, interrupts }.run_to_stop(new, None, &output).await;
                stop.map(|stop| Outcome::from_stop(stop, output))
            }
        };
        match stop {
            Ok(Outcome::Ended(execution, output)) => {
                if output.has_syntax_error() {
                    input.forget_last();
                }
                code = start::report_end(context, interrupts, &execution, &output)?;
                if let Some(exit) = exit_of_input(&execution) {
                    if let Backend::Daemon { .. } = backend {
                        context.out.note(&format!(
                            "process.exit({exit}) ended the shell; session {session} continues: `vm-system repl {session}`"
                        ));
                    } else if input.is_terminal() {
                        context.out.note(&format!("process.exit({exit}) ended the shell and its session"));
                    }
                    input.save();
                    return Ok(exit);
                }
            }
            Ok(Outcome::Waits(waits)) => {
                // The prompt was among the events.
                if let Some(task) = &waits.task {
                    show_schema(context, task);
                }
                pending = Some(waits);
            }
            Err(error) if input.is_terminal() && is_usable(backend, &session).await => {
                error.print(context.out.style);
            }
            Err(error) => return Err(error),
        }
    }
    input.save();
    if let Some(Pending { execution: id, .. }) = pending {
        if let Backend::Embedded(_) = backend {
            // The session of `repl` without an argument ends with this command.
            if input.is_terminal() {
                return Ok(exit::OK);
            }
            return Err(CliError::new(exit::FAILED, "the input ended before the answer to a question (CC)"));
        }
        context.out.note(&format!(
            "hint: the execution waits: answer it with `vm-system task submit {id} ANSWER`, or end it with `vm-system exec cancel {id}`"
        ));
    }
    // On a terminal the error was shown; for a pipe the exit code is that of the last input.
    Ok(if input.is_terminal() { exit::OK } else { code })
}

/// Answers the pending task; after an answer that does not match, it is still pending.
async fn answer_pending(
    context: &Context,
    backend: &Backend,
    interrupts: &Interrupts,
    pending: Pending,
    answer: String,
) -> Result<Outcome, CliError> {
    let Pending { execution, task, output } = pending;
    interrupts.forget();
    let id = task.as_ref().map(|task| task.id);
    match start::submit_answer(backend, interrupts, (execution, id), answer, &output).await {
        Err(error) if error.is_about_the_answer() => {
            error.print(context.out.style);
            let now = status(backend, execution).await?;
            if now.status.is_final() {
                let ended = backend.call(ExecGet { execution: execution.to_string() }, None).await?;
                return Ok(Outcome::Ended(Box::new(ended), output));
            }
            Ok(Outcome::Waits(Pending { execution, task: now.task, output }))
        }
        stop => Ok(Outcome::from_stop(stop?, output)),
    }
}

async fn status(backend: &Backend, execution: ExecutionId) -> Result<TaskStatus, CliError> {
    let op = TaskGet { execution: execution.to_string() };
    backend.call(op, None).await
}

/// The execution of a session that waits for an answer; its output up to now is not shown again.
async fn waiting(context: &Context, backend: &Backend, session: String) -> Result<Option<Pending>, CliError> {
    let inspection = backend.call(SessionInspect { session }, None).await?;
    let Some(execution) = inspection.running_execution else { return Ok(None) };
    // None: it runs, or has ended in the meantime.
    let Ok(Some(task)) = status(backend, execution).await.map(|now| now.task) else { return Ok(None) };
    let output = ScriptOutput::new(context.out.style, ShowValues::Always);
    start::skip_events(backend, &execution.to_string(), &output).await?;
    Ok(Some(Pending { execution, task: Some(task), output }))
}

fn show_schema(context: &Context, task: &Task) {
    if let Some(schema) = &task.schema {
        context.out.note(&format!("[task] the answer must match {}", schema.as_str()));
    }
}

/// Whether the session still runs inputs or waits, so that the shell can continue after an error.
async fn is_usable(backend: &Backend, session: &str) -> bool {
    let op = SessionGet { session: session.to_owned() };
    matches!(
        backend.call(op, None).await,
        Ok(session) if matches!(session.status, SessionStatus::Ready | SessionStatus::Waiting | SessionStatus::Suspended)
    )
}
