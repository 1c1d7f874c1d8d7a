//! `event emit`

use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::escape;
use crate::read::read_stdin;
use std::fmt::Write as _;
use vm_system_protocol::control::{EmittedEvent, EventEmit};
use vm_system_protocol::counted::counted;
use vm_system_protocol::json::JsonText;

/// Arguments of `event emit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the event: at most 256 bytes
    #[arg(value_name = "NAME")]
    name: String,
    /// The content, at most 1 MiB: `'{"paid": 3}'`, `'"a text"'`, `null`; `-` reads it from stdin
    #[arg(value_name = "JSON", allow_hyphen_values = true)]
    event: String,
    /// The execution that gets it (id, unique beginning of an id, or name); if it does not wait for it, it keeps it until it does
    #[arg(long, value_name = "EXECUTION", required_unless_present = "all", conflicts_with = "all")]
    execution: Option<String>,
    /// All your executions that wait for it now
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let text = if args.event == "-" { read_stdin()? } else { args.event };
    let event = JsonText::from_untrusted(text.trim().to_owned());
    let op = EventEmit { name: args.name, event, execution: args.execution };
    let emitted = context.call_once(op, args.idempotency.idempotency_key).await?;
    if emitted.received == 0 && context.out.is_table() {
        context.out.note("No execution waits for this event.");
        return Ok(exit::OK);
    }
    context.out.result(&emitted, || if context.out.quiet { ids(&emitted) } else { text_of(&emitted) })?;
    Ok(exit::OK)
}

fn ids(emitted: &EmittedEvent) -> String {
    let ids: Vec<String> = emitted.receivers.iter().map(|one| one.execution_id.to_string()).collect();
    ids.join("\n")
}

fn text_of(emitted: &EmittedEvent) -> String {
    let mut text = String::new();
    for receiver in &emitted.receivers {
        let name = receiver.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let what = if receiver.awaited { "Received" } else { "Kept until it waits for it" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{what}: {}{}", receiver.execution_id, escape::for_message(&name));
    }
    let more = emitted.received.saturating_sub(emitted.receivers.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "Received by {}", counted(more, "more execution"));
    }
    text
}
