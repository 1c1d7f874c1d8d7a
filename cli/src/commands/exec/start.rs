//! Starts an execution and waits for its end: shared by `exec repl`, `exec run-file`, `run` and `repl`.
//!
//! Ctrl-C cancels the execution; a second Ctrl-C exits without waiting for the end.

use crate::backend::{Backend, explain};
use crate::client::CallError;
use crate::commands::program::show;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::reconnect::Reconnect;
use crate::script_output::{
    OUTPUT_LIMIT_OF_TEMPLATES, ScriptOutput, exit_code, note_truncated_error, note_truncation,
};
use crate::signals::Interrupts;
use std::cell::Cell;
use std::time::Duration;
use uuid::Uuid;
use vm_system_protocol::control::{
    ExecCancel, ExecEvents, ExecGet, ExecStart, ExecWait, ExecutionState, GivenAnswer, SessionInspect,
    TaskSubmit,
};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::model::{Event, EventPayload, Execution, Run};

/// Interval between queries for the running execution, if Ctrl-C came before the execution's first event.
const QUERY_INTERVAL: Duration = Duration::from_millis(20);

/// A command that runs code and waits for it.
#[derive(Clone, Copy)]
pub(crate) struct CodeRunner<'a> {
    pub(crate) context: &'a Context,
    pub(crate) backend: &'a Backend,
    pub(crate) interrupts: &'a Interrupts,
}

impl CodeRunner<'_> {
    /// Runs code and prints its output as it arrives (tables), or the whole record at the end; returns the exit code.
    pub(crate) async fn run_to_end(
        self,
        new: ExecStart,
        key: Option<String>,
        output: &ScriptOutput,
    ) -> Result<u8, CliError> {
        match self.run_to_stop(new, key, output).await? {
            ExecutionState::Execution(execution) => {
                report_end(self.context, self.interrupts, &execution, output)
            }
            ExecutionState::Run(run) => report_task(self.context, self.backend, &run).await,
        }
    }

    /// Runs code and prints its output as it arrives (tables).
    pub(crate) async fn run_to_stop(
        self,
        mut new: ExecStart,
        key: Option<String>,
        output: &ScriptOutput,
    ) -> Result<ExecutionState, CliError> {
        let Self { context, backend, interrupts } = self;
        new.wait = true;
        new.follow = context.out.is_table();
        let session = new.session.clone();
        output.interrupted_by(interrupts);
        let result = {
            let call = self.call_until_stop(new, key, output);
            let give_up = async {
                interrupts.next().await;
                cancel(backend, session.clone(), output).await;
                interrupts.next().await;
            };
            tokio::select! {
                biased;
                result = call => result,
                () = give_up => return Err(CliError::silent(interrupts.exit_code())),
            }
        };
        if !output.is_interrupted() {
            return result;
        }
        // Nobody reads the output, so none of it is waited for: a second signal is not needed.
        cancel(backend, session, output).await;
        Err(CliError::silent(interrupts.exit_code()))
    }

    /// Starts an execution and waits until it stops, also if the daemon is restarted meanwhile: until something of the execution is
    /// known, the request is repeated with its key, so that the code never runs twice; afterwards only its events are requested.
    async fn call_until_stop(
        self,
        new: ExecStart,
        key: Option<String>,
        output: &ScriptOutput,
    ) -> Result<ExecutionState, CliError> {
        let Self { context, backend, .. } = self;
        let is_daemon = matches!(backend, Backend::Daemon { .. });
        let key = key.or_else(|| is_daemon.then(|| Uuid::new_v4().to_string()));
        let mut reconnect = context.reconnect();
        let mut was_sent = false;
        loop {
            let print = &mut |events: Vec<_>| output.events(&events);
            let op = new.clone();
            let error = match backend.call_following(op, key.clone(), print).await {
                Ok(reply) => {
                    reconnect.reached();
                    return Ok(reply);
                }
                Err(error) => error,
            };
            // A daemon that never responded is not waited for.
            was_sent |= !matches!(error, CallError::Own(_));
            if !is_daemon || !was_sent || !reconnect.again(&error).await {
                return Err(explain(error));
            }
            if let Some(id) = output.execution() {
                return resume(backend, id, output, reconnect).await;
            }
        }
    }
}

/// Answers the task of an execution and prints its output up to its next stop.
pub(crate) async fn submit_answer(
    backend: &Backend,
    interrupts: &Interrupts,
    (execution, task): (ExecutionId, Option<TaskId>),
    answer: String,
    output: &ScriptOutput,
) -> Result<ExecutionState, CliError> {
    let execution = execution.to_string();
    let op = TaskSubmit {
        execution: execution.clone(),
        task: task.map(|task| task.to_string()),
        result: GivenAnswer::Typed(answer),
        wait: true,
    };
    let call = backend.call(op, None);
    tokio::pin!(call);
    let run = tokio::select! {
        biased;
        reply = &mut call => reply?,
        () = interrupts.next() => {
            backend.call(ExecCancel { execution: execution.clone() }, None).await?;
            call.await?
        }
    };
    read_further(backend, &execution, output, |events| output.events(events)).await?;
    Ok(if run.execution.status.is_final() {
        ExecutionState::Execution(run.execution)
    } else {
        ExecutionState::Run(run)
    })
}

/// Cancels an execution that waits, and prints the rest of its output.
pub(crate) async fn cancel_waiting(
    backend: &Backend,
    execution: ExecutionId,
    output: &ScriptOutput,
) -> Result<Execution, CliError> {
    let execution = execution.to_string();
    backend.call(ExecCancel { execution: execution.clone() }, None).await?;
    // Returns when it has ended.
    let op =
        ExecEvents { execution: execution.clone(), after_seq: output.last_seq(), limit: 0, follow: true };
    let rest =
        backend.call_following(op, None, &mut |events| output.events(&events)).await.map_err(explain)?;
    output.events(&rest)?;
    backend.call(ExecGet { execution }, None).await
}

/// Reads all further events, in parts: one reply has a limited size.
async fn read_further(
    backend: &Backend,
    execution: &str,
    output: &ScriptOutput,
    take: impl Fn(&[Event]) -> Result<(), CliError>,
) -> Result<(), CliError> {
    loop {
        let after_seq = output.last_seq();
        let op = ExecEvents { execution: execution.to_owned(), after_seq, limit: 0, follow: false };
        let events = backend.call(op, None).await?;
        if events.is_empty() {
            return Ok(());
        }
        take(&events)?;
    }
}

/// Skips the events up to now: they are not printed.
pub(crate) async fn skip_events(
    backend: &Backend,
    execution: &str,
    output: &ScriptOutput,
) -> Result<(), CliError> {
    let pass = |events: &[Event]| {
        for event in events {
            output.skip_to(event.seq);
        }
        Ok(())
    };
    read_further(backend, execution, output, pass).await
}

/// Reports the end of an execution whose output was printed; returns the exit code.
pub(crate) fn report_end(
    context: &Context,
    interrupts: &Interrupts,
    execution: &Execution,
    output: &ScriptOutput,
) -> Result<u8, CliError> {
    let code = if context.out.is_table() {
        output.end(execution)
    } else {
        context.out.result(execution, String::new)?;
        note_truncation(execution, OUTPUT_LIMIT_OF_TEMPLATES);
        note_truncated_error(execution.error.as_ref());
        exit_code(execution)
    };
    Ok(if code == exit::INTERRUPTED { interrupts.exit_code() } else { code })
}

/// The execution waits for an answer (`CC`) and continues to wait; the client that answers gets its further output.
pub(crate) async fn report_task(context: &Context, backend: &Backend, run: &Run) -> Result<u8, CliError> {
    if let Backend::Embedded(_) = backend {
        let execution = run.execution.id.to_string();
        backend.call(ExecCancel { execution }, None).await?;
        let message = "the script waits for an answer (CC), which cannot be given here";
        let hint = "run it in a session of the daemon, where `vm-system task submit` answers";
        return Err(CliError::new(exit::FAILED, message).with_hint(hint));
    }
    show::run(context, run).await
}

/// The connection broke during the stream (the daemon was restarted, or the reader paused too long): continues after the last event.
async fn resume(
    backend: &Backend,
    id: ExecutionId,
    output: &ScriptOutput,
    mut reconnect: Reconnect,
) -> Result<ExecutionState, CliError> {
    loop {
        let error = match events_to_a_stop(backend, id, output).await {
            Ok(()) => match backend.call_following(wait_for(id), None, &mut |_| Ok(())).await {
                Ok(reply) => {
                    reconnect.reached();
                    let stop = reply;
                    read_further(backend, &id.to_string(), output, |events| output.events(events)).await?;
                    return Ok(stop);
                }
                Err(error) => error,
            },
            Err(error) => error,
        };
        if !reconnect.again(&error).await {
            return Err(explain(error));
        }
    }
}

fn wait_for(id: ExecutionId) -> ExecWait {
    ExecWait { execution: id.to_string() }
}

/// Prints the events of an execution after the last one, until it has ended or waits for an answer.
async fn events_to_a_stop(
    backend: &Backend,
    id: ExecutionId,
    output: &ScriptOutput,
) -> Result<(), CallError> {
    let waits = Cell::new(false);
    let op = ExecEvents { execution: id.to_string(), after_seq: output.last_seq(), limit: 0, follow: true };
    let print = &mut |events: Vec<Event>| {
        output.events(&events)?;
        waits.set(events.iter().any(|event| matches!(event.payload, EventPayload::Task { .. })));
        // Ends the stream with its connection; the caller learns whether the execution still waits.
        if waits.get() { Err(CliError::silent(exit::OK)) } else { Ok(()) }
    };
    match backend.call_following(op, None, print).await {
        Ok(rest) => output.events(&rest).map_err(CallError::Own),
        Err(CallError::Own(_)) if waits.get() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Requests the cancellation of the execution. The caller waits for its end, whatever the result.
async fn cancel(backend: &Backend, session: String, output: &ScriptOutput) {
    let execution = loop {
        if let Some(id) = output.execution() {
            break id;
        }
        let inspection = backend.call(SessionInspect { session: session.clone() }, None).await;
        match inspection {
            Ok(inspection) => {
                if let Some(id) = inspection.running_execution {
                    break id;
                }
            }
            Err(_) => return,
        }
        tokio::time::sleep(QUERY_INTERVAL).await;
    };
    if let Err(error) = backend.call(ExecCancel { execution: execution.to_string() }, None).await {
        tracing::warn!(%error, "cannot cancel");
    }
}

/// Starts an execution and returns at once with its record.
pub(crate) async fn start_and_leave(
    context: &Context,
    mut new: ExecStart,
    key: Option<String>,
) -> Result<u8, CliError> {
    new.wait = false;
    new.follow = false;
    let state = context.call_once(new, key).await?;
    let execution = state.execution();
    context.out.done(
        execution,
        &format!("Started execution: {}", execution.id),
        &execution.id.to_string(),
    )?;
    Ok(exit::OK)
}
