//! `exec events`

use crate::backend::explain;
use crate::client::CallError;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::cut_events;
use crate::output::escape;
use crate::script_output::{http_line, places};
use std::cell::Cell;
use vm_system_protocol::control::ExecEvents;
use vm_system_protocol::model::{Event, EventPayload};

/// Arguments of `exec events`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "EXECUTION")]
    execution: String,
    /// Only events after this sequence number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after_seq: u64,
    /// At most this many; 0 means all
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "follow")]
    limit: u32,
    /// Continue with new events until the execution ends
    #[arg(long)]
    follow: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    if args.follow {
        return follow(context, args).await;
    }
    let mut events = stored(context, &args).await?;
    cut_events(&mut events, args.limit as usize, |event| event.seq);
    let line = |event: &Event| line(event) + "\n";
    context.out.result(&events, || events.iter().map(line).collect())?;
    Ok(exit::OK)
}

/// All requested events and one more, in several requests: one reply has a limited size.
async fn stored(context: &Context, args: &Args) -> Result<Vec<Event>, CliError> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let had = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let limit = if args.limit == 0 { 0 } else { args.limit.saturating_add(1).saturating_sub(had) };
        if args.limit != 0 && limit == 0 {
            return Ok(events);
        }
        let after_seq = events.last().map_or(args.after_seq, |event| event.seq);
        let op = ExecEvents { execution: args.execution.clone(), after_seq, limit, follow: false };
        let page = context.call(op).await?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}

async fn follow(context: &Context, args: Args) -> Result<u8, CliError> {
    let last = Cell::new(args.after_seq);
    let first = Cell::new(true);
    let mut print = |events: Vec<Event>| {
        for event in &events {
            last.set(event.seq);
            let first = first.replace(false);
            context.out.element(event, first, || line(event))?;
        }
        Ok(())
    };
    let mut reconnect = context.reconnect();
    let mut was_sent = false;
    loop {
        let before = last.get();
        let op = ExecEvents { execution: args.execution.clone(), after_seq: before, limit: 0, follow: true };
        match context.daemon().call_following(op, None, &mut print).await {
            Ok(rest) => {
                print(rest)?;
                return Ok(exit::OK);
            }
            // The daemon is restarted, or the reader paused for too long: continues after the last event.
            Err(error) => {
                if last.get() > before {
                    reconnect.reached();
                }
                was_sent |= !matches!(error, CallError::Own(_));
                if !was_sent || !reconnect.again(&error).await {
                    return Err(explain(error));
                }
            }
        }
    }
}

/// An event on one line, and the positions of an exception under it.
fn line(event: &Event) -> String {
    let text = match &event.payload {
        EventPayload::InputEcho { text } | EventPayload::Stdout { text } | EventPayload::Stderr { text } => {
            text.clone()
        }
        EventPayload::Console { level, text, .. } => format!("[{level}] {text}"),
        EventPayload::Value(value) => format!("[{}] {}", value.kind, value.preview),
        EventPayload::Exception { message, .. } => message.clone(),
        EventPayload::System { message, level, .. } => format!("[{level}] {message}"),
        EventPayload::Http(record) => http_line(record),
        EventPayload::Task { prompt, .. } => prompt.clone(),
    };
    let head = format!("{:>6}  {}  {:<10}  ", event.seq, event.ts, event.payload.type_name());
    let line = head + &escape::for_cell(&text);
    match &event.payload {
        EventPayload::Exception { message, stack, .. } => {
            let places = places(message, stack);
            if places.is_empty() { line } else { format!("{line}\n{}", places.trim_end()) }
        }
        _ => line,
    }
}
