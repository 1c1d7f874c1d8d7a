//! `session restore` and `session restoration`

use super::SessionArg;
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::{escape, notice};
use crate::read;
use crate::signals::Interrupts;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use vm_system_protocol::control::{GivenInput, RestorationGet, SessionClose, SessionRestore};
use vm_system_protocol::counted::counted;
use vm_system_protocol::model::{RestorationStatus, SessionRestoration};

/// Behind the options in the long help.
pub(super) const HELP: &str = "The new session has the rights and the worktree of the ended one. Inputs that did not end \
ok are not repeated. Tasks (CC) get their recorded answers. Inputs that changed files or ran commands, used databases or made HTTP \
requests other than GET are refused without --repeat-effects, before anything runs.\n\nWhat the record does not have (values whose \
name contains `secret`, arguments, texts of sent files) is given with --inputs:\n\n  \
[{\"input\": 3, \"args\": {\"secret\": \"x\"}, \"env\": {\"API_SECRET\": \"y\"}, \"argv\": [\"-v\"], \"source\": \"1 + 1\"}]\n\n\
Ctrl-C cancels the restoration and ends the new session.";

/// Arguments of `session restore`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name of the ended session
    #[arg(value_name = "SESSION")]
    session: String,
    /// Repeat inputs that had effects outside of the session, too
    #[arg(long)]
    repeat_effects: bool,
    /// A JSON file with what the record of inputs does not have; `-` is stdin
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// Return when the startup files of the new session have run
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let inputs = args.inputs.as_deref().map_or(Ok(Vec::new()), given)?;
    let new =
        SessionRestore { session: args.session, repeat_effects: args.repeat_effects, inputs, wait: false };
    let interrupts = Interrupts::listen()?;
    let reply = context.call_once(new, args.idempotency.idempotency_key).await?;
    let mut now = reply;
    let session = now.session.id.to_string();
    while now.status == RestorationStatus::Running && !args.no_wait {
        let op = RestorationGet { session: session.clone(), wait_after: Some(now.repeated) };
        tokio::select! {
            reply = context.call(op) => {
                now = reply?;
            }
            () = interrupts.next() => {
                context.call(SessionClose { session: session.clone() }).await?;
                notice(&format!("the restoration was cancelled after {} of {}", now.repeated, counted(now.inputs, "input")));
                return Ok(interrupts.exit_code());
            }
        }
    }
    finish(context, &now)
}

pub(crate) async fn show(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    let op = RestorationGet { session: args.session, wait_after: None };
    let now = context.call(op).await?;
    finish(context, &now)
}

fn finish(context: &Context, now: &SessionRestoration) -> Result<u8, CliError> {
    context.out.done(now, &text(now), &now.session.id.to_string())?;
    let is_good = matches!(now.status, RestorationStatus::Done | RestorationStatus::Running);
    Ok(if is_good { exit::OK } else { exit::FAILED })
}

/// Reads what the record does not have.
fn given(file: &Path) -> Result<Vec<GivenInput>, CliError> {
    let text = if file == Path::new("-") { read::read_stdin()? } else { read::read_file(file)? };
    let json = serde_json::from_str(&text)
        .map_err(|error| CliError::unfit(format!("{}: {error}", file.display())))?;
    GivenInput::list(json).map_err(|error| CliError::unfit(format!("{}: {error}", file.display())))
}

fn text(now: &SessionRestoration) -> String {
    let id = now.session.id;
    let mut text = match now.status {
        RestorationStatus::Done => format!("Restored session: {id}"),
        RestorationStatus::Running => format!("Restoring in session: {id}"),
        RestorationStatus::Failed | RestorationStatus::Cancelled => {
            format!("The restoration in session {id} is {}", now.status)
        }
    };
    let _ = write!(text, "\nRepeated inputs: {} of {}", now.repeated, now.inputs);
    if now.not_repeated > 0 {
        let _ = write!(text, "\nNot repeated, because they did not end ok: {}", now.not_repeated);
    }
    if now.different > 0 {
        let _ = write!(text, "\nDifferent results: {}", now.different);
    }
    for difference in &now.differences {
        let (before, after) = (escape::for_cell(&difference.before), escape::for_cell(&difference.now));
        let _ = write!(text, "\n  input {}: {before} -> {after}", difference.input);
    }
    let left_out = now.different - now.differences.len() as u64;
    if left_out > 0 {
        let _ = write!(text, "\n  and {left_out} more");
    }
    if let Some(error) = &now.error {
        let _ = write!(text, "\nError: {}", escape::for_cell(error));
    }
    text
}
