//! `session events`

use crate::backend::explain;
use crate::client::CallError;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::cut_events;
use crate::output::{Output, escape};
use vm_system_protocol::control::SessionEvents;
use vm_system_protocol::model::SessionEvent;

/// Events in one request.
const PAGE: u32 = 1_000;

/// Arguments of `session events`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// Only events after this sequence number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after_seq: u64,
    /// At most this many; 0 means all
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "follow")]
    limit: usize,
    /// Continue with new events until the session ends
    #[arg(long)]
    follow: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    if args.follow {
        return follow(context, args).await;
    }
    let mut events: Vec<SessionEvent> = Vec::new();
    let most = if args.limit == 0 { usize::MAX } else { args.limit };
    while events.len() <= most {
        let after = events.last().map_or(args.after_seq, |event| event.seq);
        let op = SessionEvents { session: args.session.clone(), after_seq: after, limit: PAGE, wait: false };
        let page = context.call(op).await?;
        if page.events.is_empty() {
            break;
        }
        events.extend(page.events);
    }
    cut_events(&mut events, args.limit, |event| event.seq);
    let line = |event: &SessionEvent| line(event, context.out) + "\n";
    context.out.result(&events, || events.iter().map(line).collect())?;
    Ok(exit::OK)
}

async fn follow(context: &Context, args: Args) -> Result<u8, CliError> {
    let (mut after, mut first) = (args.after_seq, true);
    let mut reconnect = context.reconnect();
    let mut was_reached = false;
    loop {
        let op = SessionEvents { session: args.session.clone(), after_seq: after, limit: PAGE, wait: true };
        let page = match context.daemon().call_following(op, None, &mut |_| Ok(())).await {
            Ok(reply) => reply,
            Err(error) => {
                was_reached |= !matches!(error, CallError::Own(_));
                if !was_reached || !reconnect.again(&error).await {
                    return Err(explain(error));
                }
                continue;
            }
        };
        was_reached = true;
        reconnect.reached();
        for event in &page.events {
            context.out.element(event, first, || line(event, context.out))?;
            (after, first) = (event.seq, false);
        }
        if page.is_last {
            return Ok(exit::OK);
        }
    }
}

fn line(event: &SessionEvent, out: Output) -> String {
    let subject = event.execution_id.map(|id| id.to_string());
    let subject = subject.or_else(|| event.other_session_id.map(|id| id.to_string()));
    let rest: Vec<String> = subject.into_iter().chain(event.detail.clone()).collect();
    let head = format!("{:>6}  {}  {:<17}  ", event.seq, event.at, event.kind.as_str());
    out.entry(&head, &escape::for_cell(&rest.join("  "))).trim_end().to_owned()
}
