//! What a step said: its output as `run` shows it, and where its error was thrown. Only for people: documents have it all in
//! `exec events`.

use crate::commands::task::called;
use crate::context::{Context, expect_reply};
use crate::error::CliError;
use crate::script_output::{ScriptOutput, ShowValues, places};
use vm_system_protocol::control::{Op, Reply};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Event, EventPayload, Execution, ExecutionKind};

/// Code of the error of an execution that threw.
const THROWN: &str = "EXCEPTION";
/// An exception is among the last events of what ended with it.
const LAST_EVENTS: u64 = 4;

/// An execution as it stands before a step: its events behind this are the step's.
pub(crate) struct Step {
    execution: ExecutionId,
    output: ScriptOutput,
}

impl Step {
    /// The first step of an execution that was just made.
    pub(crate) fn first(context: &Context, execution: ExecutionId) -> Self {
        Self { execution, output: ScriptOutput::new(context.out.style, ShowValues::Never) }
    }

    /// The step that an answer begins; none where nobody looks at it, or whoever answers is told why it cannot be.
    pub(crate) async fn behind(context: &Context, reference: &str) -> Result<Option<Self>, CliError> {
        if !is_shown(context) {
            return Ok(None);
        }
        let Ok(status) = called(context, reference.to_owned()).await else { return Ok(None) };
        let Ok(execution) = execution(context, status.execution_id).await else { return Ok(None) };
        let step = Self::first(context, execution.id);
        if execution.kind == ExecutionKind::Program {
            step.output.skip_to(execution.metrics.events);
        } else {
            // The counters of a live execution are not those of its record.
            step.each(context, |events| {
                step.output.skip_to(events.last().map_or(0, |event| event.seq));
                Ok(())
            })
            .await?;
        }
        Ok(Some(step))
    }

    /// Prints what it has said since.
    pub(crate) async fn print(&self, context: &Context) -> Result<(), CliError> {
        if !is_shown(context) {
            return Ok(());
        }
        self.each(context, |mut events| {
            let last = events.last().map_or(0, |event| event.seq);
            // Questions and errors are told with where it stands now.
            events.retain(|event| {
                !matches!(event.payload, EventPayload::Task { .. } | EventPayload::Exception { .. })
            });
            self.output.events(&events)?;
            self.output.skip_to(last);
            Ok(())
        })
        .await
    }

    /// All events that are still to come, part by part: one answer has room for so many.
    async fn each(
        &self,
        context: &Context,
        mut part: impl FnMut(Vec<Event>) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        loop {
            let events = events(context, self.execution, self.output.last_seq()).await?;
            if events.is_empty() {
                return Ok(());
            }
            part(events)?;
        }
    }
}

fn is_shown(context: &Context) -> bool {
    context.out.is_table() && !context.out.quiet
}

/// Where an execution's error was thrown: the lines of its stack, for people; empty if it threw nothing.
pub(crate) async fn stack(context: &Context, execution: &Execution) -> Result<String, CliError> {
    if execution.error.as_ref().is_none_or(|error| error.code != THROWN) {
        return Ok(String::new());
    }
    let after = execution.metrics.events.saturating_sub(LAST_EVENTS);
    let events = events(context, execution.id, after).await?;
    let thrown = events.iter().rev().find_map(|event| match &event.payload {
        EventPayload::Exception { message, stack } => Some(places(message, stack)),
        _ => None,
    });
    Ok(thrown.unwrap_or_default())
}

/// As [`stack`], of an execution of which only the id is known.
pub(crate) async fn stack_of(context: &Context, id: ExecutionId) -> Result<String, CliError> {
    let execution = execution(context, id).await?;
    stack(context, &execution).await
}

async fn events(context: &Context, id: ExecutionId, after_seq: u64) -> Result<Vec<Event>, CliError> {
    let op = Op::ExecEvents { execution: id.to_string(), after_seq, limit: 0, follow: false };
    Ok(expect_reply!(context.call(op).await?, Reply::Events(events) => events))
}

async fn execution(context: &Context, id: ExecutionId) -> Result<Box<Execution>, CliError> {
    let reply = context.call(Op::ExecGet { execution: id.to_string() }).await?;
    Ok(expect_reply!(reply, Reply::Execution(execution) => execution))
}
