//! `program state`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::escape;
use std::fmt::Write as _;
use vm_system_protocol::control::{RunGet, StateGet};
use vm_system_protocol::counted::counted;
use vm_system_protocol::model::{ExecutionStatus, ProgramState, Variable};

/// Arguments of `program state`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "EXECUTION")]
    execution: String,
    /// State at this checkpoint [default: the current state]
    #[arg(long, value_name = "N")]
    checkpoint: Option<u64>,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    // The status is read first, so that the state is not older than the status.
    let running = context.out.is_table() && args.checkpoint.is_none() && {
        let run = context.call_once(RunGet { execution: args.execution.clone() }, None).await?;
        run.execution.status == ExecutionStatus::Running
    };
    let state = state_of(context, &args.execution, args.checkpoint).await?;
    context.out.result(&state, || text(&state, running))?;
    Ok(exit::OK)
}

/// The state of an execution, at a checkpoint or now.
pub(super) async fn state_of(
    context: &Context,
    execution: &str,
    checkpoint: Option<u64>,
) -> Result<ProgramState, CliError> {
    let op = StateGet { execution: execution.to_owned(), checkpoint };
    context.call_once(op, None).await
}

fn text(state: &ProgramState, running: bool) -> String {
    let mut text = String::new();
    if running {
        text.push_str("The execution is running; this is its last checkpoint.\n");
    }
    for (number, frame) in state.frames.iter().enumerate() {
        let function = if frame.function.is_empty() { "(top level)" } else { &frame.function };
        let (function, place) = (escape::for_message(function), frame.place());
        let _ = writeln!(text, "#{number} {function} at {}", escape::for_message(&place));
        let _ = writeln!(text, "    {}", escape::for_message(frame.source_line.trim()));
        if !frame.items.is_empty() {
            let items = frame.items.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "    suspended until an item is answered: {items}");
        }
        variables(&mut text, &frame.variables);
    }
    if state.more_frames > 0 {
        let _ = writeln!(text, "… {}, further out", counted(state.more_frames, "more call"));
    }
    if !state.globals.is_empty() {
        text.push_str("globals\n");
        variables(&mut text, &state.globals);
    }
    if state.frames.is_empty() {
        text.push_str(if running {
            "The execution has no frames yet.\n"
        } else {
            "The state has no frames.\n"
        });
    }
    text
}

fn variables(text: &mut String, list: &[Variable]) {
    for variable in list {
        let _ = write!(text, "  {} = ", escape::for_message(&variable.name));
        for (number, line) in variable.value.lines().enumerate() {
            let indent = if number > 0 { "\n    " } else { "" };
            let _ = write!(text, "{indent}{}", escape::for_message(line));
        }
        text.push('\n');
    }
}
