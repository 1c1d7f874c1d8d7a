//! The output of a step in the format of `run`, and the position of its error. Only for tables: `exec events` has the same as
//! data.

use crate::commands::task::task_status;
use crate::context::Context;
use crate::error::CliError;
use crate::script_output::{ScriptOutput, ShowValues, places};
use vm_system_protocol::control::{ExecEvents, ExecGet};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Event, EventPayload, Execution, ExecutionKind};

/// Code of the error of an execution that threw.
const THROWN: &str = "EXCEPTION";
/// Number of last events that are searched for the exception that ended an execution.
const LAST_EVENTS: u64 = 4;

/// An execution before a step: later events are those of the step.
pub(crate) struct Step {
    execution: ExecutionId,
    output: ScriptOutput,
}

impl Step {
    /// The first step of a new execution.
    pub(crate) fn first(context: &Context, execution: ExecutionId) -> Self {
        Self { execution, output: ScriptOutput::new(context.out.style, ShowValues::Never) }
    }

    /// The step after an answer; none if its output is not shown, or if the answer will be refused.
    pub(crate) async fn find_after(context: &Context, reference: &str) -> Result<Option<Self>, CliError> {
        if !is_shown(context) {
            return Ok(None);
        }
        let Ok(status) = task_status(context, reference.to_owned()).await else { return Ok(None) };
        let Ok(execution) = execution(context, status.execution_id).await else { return Ok(None) };
        let step = Self::first(context, execution.id);
        if execution.kind == ExecutionKind::Program {
            step.output.skip_to(execution.metrics.events);
        } else {
            // The record of a live execution does not have its current counters.
            step.each(context, |events| {
                step.output.skip_to(events.last().map_or(0, |event| event.seq));
                Ok(())
            })
            .await?;
        }
        Ok(Some(step))
    }

    /// Prints the output of the step.
    pub(crate) async fn print(&self, context: &Context) -> Result<(), CliError> {
        if !is_shown(context) {
            return Ok(());
        }
        self.each(context, |mut events| {
            let last = events.last().map_or(0, |event| event.seq);
            // Tasks and errors are printed with the status.
            events.retain(|event| {
                !matches!(event.payload, EventPayload::Task { .. } | EventPayload::Exception { .. })
            });
            self.output.events(&events)?;
            self.output.skip_to(last);
            Ok(())
        })
        .await
    }

    /// All further events, in parts: one reply has a limited size.
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

/// The lines of the stack of an execution's error, for people; empty if it threw nothing.
pub(crate) async fn stack(context: &Context, execution: &Execution) -> Result<String, CliError> {
    if execution.error.as_ref().is_none_or(|error| error.code != THROWN) {
        return Ok(String::new());
    }
    let after = execution.metrics.events.saturating_sub(LAST_EVENTS);
    let events = events(context, execution.id, after).await?;
    let thrown = events.iter().rev().find_map(|event| match &event.payload {
        EventPayload::Exception { message, stack, .. } => Some(places(message, stack)),
        _ => None,
    });
    Ok(thrown.unwrap_or_default())
}

/// The same as [`stack`], by id.
pub(crate) async fn stack_of(context: &Context, id: ExecutionId) -> Result<String, CliError> {
    let execution = execution(context, id).await?;
    stack(context, &execution).await
}

async fn events(context: &Context, id: ExecutionId, after_seq: u64) -> Result<Vec<Event>, CliError> {
    let op = ExecEvents { execution: id.to_string(), after_seq, limit: 0, follow: false };
    context.call(op).await
}

async fn execution(context: &Context, id: ExecutionId) -> Result<Execution, CliError> {
    context.call(ExecGet { execution: id.to_string() }).await
}
