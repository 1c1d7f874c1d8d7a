//! Starts an execution and waits for its end: shared by `exec repl`, `exec run-file`, `run` and `repl`.
//!
//! Ctrl-C cancels the execution; a second Ctrl-C exits without waiting for the end.

use crate::backend::{Backend, explain};
use crate::client::CallError;
use crate::commands::program::show;
use crate::context::{Context, expect_reply, unexpected};
use crate::error::{CliError, exit};
use crate::script_output::{ScriptOutput, exit_code, note_truncation};
use crate::signals::Interrupts;
use std::time::Duration;
use vm_system_protocol::control::{DurableOp, DurableReply, GivenAnswer, NewExecution, Op, Reply};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::model::{Event, Execution, Run};

/// Interval between queries for the running execution, if Ctrl-C came before the execution's first event.
const QUERY_INTERVAL: Duration = Duration::from_millis(20);

/// Where an execution has come to.
pub(crate) enum ExecutionStop {
    Ended(Box<Execution>),
    /// It waits for the answer to a task.
    Waits(Box<Run>),
}

/// Runs code and prints its output as it arrives (tables), or the whole record at the end; returns the exit code.
pub(crate) async fn to_its_end(
    context: &Context,
    backend: &Backend,
    interrupts: &Interrupts,
    new: NewExecution,
    key: Option<String>,
    output: &ScriptOutput,
) -> Result<u8, CliError> {
    match to_its_stop(context, backend, interrupts, new, key, output).await? {
        ExecutionStop::Ended(execution) => ended(context, interrupts, &execution, output),
        ExecutionStop::Waits(run) => at_task(context, backend, &run).await,
    }
}

/// Runs code and prints its output as it arrives (tables).
pub(crate) async fn to_its_stop(
    context: &Context,
    backend: &Backend,
    interrupts: &Interrupts,
    mut new: NewExecution,
    key: Option<String>,
    output: &ScriptOutput,
) -> Result<ExecutionStop, CliError> {
    new.wait = true;
    new.follow = context.out.is_table();
    let session = new.session.clone();
    let print = &mut |events: Vec<_>| output.events(&events);
    let call = backend.call_following(Op::ExecStart(Box::new(new)), key, print);
    tokio::pin!(call);
    let give_up = async {
        interrupts.next().await;
        cancel(backend, session, output).await;
        interrupts.next().await;
    };
    tokio::pin!(give_up);
    let result = tokio::select! {
        biased;
        result = &mut call => result,
        () = &mut give_up => return Err(CliError::silent(interrupts.exit_code())),
    };
    match result {
        Ok(Reply::Execution(execution)) => Ok(ExecutionStop::Ended(execution)),
        Ok(Reply::Durable(DurableReply::Run(run))) => Ok(ExecutionStop::Waits(run)),
        Ok(other) => Err(unexpected(&other)),
        Err(CallError::Lost(why)) => match output.execution() {
            Some(id) => Ok(ExecutionStop::Ended(resume(backend, id, output, why).await?)),
            None => Err(explain(CallError::Lost(why))),
        },
        Err(error) => Err(explain(error)),
    }
}

/// Answers the task of an execution and prints its output up to its next stop.
pub(crate) async fn answered(
    backend: &Backend,
    interrupts: &Interrupts,
    (execution, task): (ExecutionId, Option<TaskId>),
    answer: String,
    output: &ScriptOutput,
) -> Result<ExecutionStop, CliError> {
    let execution = execution.to_string();
    let op = Op::Durable(DurableOp::TaskSubmit {
        execution: execution.clone(),
        task: task.map(|task| task.to_string()),
        result: GivenAnswer::Typed(answer),
        wait: true,
    });
    let call = backend.call(op, None);
    tokio::pin!(call);
    let reply = tokio::select! {
        biased;
        reply = &mut call => reply?,
        () = interrupts.next() => {
            backend.call(Op::ExecCancel { execution: execution.clone() }, None).await?;
            call.await?
        }
    };
    let run = expect_reply!(reply, Reply::Durable(DurableReply::Run(run)) => run);
    further(backend, &execution, output, |events| output.events(events)).await?;
    Ok(if run.execution.status.is_final() {
        ExecutionStop::Ended(Box::new(run.execution))
    } else {
        ExecutionStop::Waits(run)
    })
}

/// Cancels an execution that waits, and prints the rest of its output.
pub(crate) async fn cancelled(
    backend: &Backend,
    execution: ExecutionId,
    output: &ScriptOutput,
) -> Result<Box<Execution>, CliError> {
    let execution = execution.to_string();
    backend.call(Op::ExecCancel { execution: execution.clone() }, None).await?;
    // Returns when it has ended.
    let op =
        Op::ExecEvents { execution: execution.clone(), after_seq: output.last_seq(), limit: 0, follow: true };
    let rest =
        backend.call_following(op, None, &mut |events| output.events(&events)).await.map_err(explain)?;
    output.events(&expect_reply!(rest, Reply::Events(rest) => rest))?;
    let reply = backend.call(Op::ExecGet { execution }, None).await?;
    Ok(expect_reply!(reply, Reply::Execution(execution) => execution))
}

/// Reads all further events, in parts: one reply has a limited size.
async fn further(
    backend: &Backend,
    execution: &str,
    output: &ScriptOutput,
    take: impl Fn(&[Event]) -> Result<(), CliError>,
) -> Result<(), CliError> {
    loop {
        let after_seq = output.last_seq();
        let op = Op::ExecEvents { execution: execution.to_owned(), after_seq, limit: 0, follow: false };
        let events = expect_reply!(backend.call(op, None).await?, Reply::Events(events) => events);
        if events.is_empty() {
            return Ok(());
        }
        take(&events)?;
    }
}

/// Skips the events up to now: they are not printed.
pub(crate) async fn skip(backend: &Backend, execution: &str, output: &ScriptOutput) -> Result<(), CliError> {
    let pass = |events: &[Event]| {
        for event in events {
            output.skip_to(event.seq);
        }
        Ok(())
    };
    further(backend, execution, output, pass).await
}

/// Reports the end of an execution whose output was printed; returns the exit code.
pub(crate) fn ended(
    context: &Context,
    interrupts: &Interrupts,
    execution: &Execution,
    output: &ScriptOutput,
) -> Result<u8, CliError> {
    let code = if context.out.is_table() {
        output.end(execution)
    } else {
        context.out.result(execution, String::new)?;
        note_truncation(execution);
        exit_code(execution)
    };
    Ok(if code == exit::INTERRUPTED { interrupts.exit_code() } else { code })
}

/// The execution waits for an answer (`CC`) and continues to wait; the client that answers gets its further output.
async fn at_task(context: &Context, backend: &Backend, run: &Run) -> Result<u8, CliError> {
    if let Backend::Embedded(_) = backend {
        let execution = run.execution.id.to_string();
        backend.call(Op::ExecCancel { execution }, None).await?;
        let message = "the script waits for an answer (CC), which cannot be given here";
        let hint = "run it in a session of the daemon, where `vm-system task submit` answers";
        return Err(CliError::new(exit::FAILED, message).with_hint(hint));
    }
    show::run(context, run).await
}

/// The connection broke during the stream (a reader that paused too long): continues after the last event.
async fn resume(
    backend: &Backend,
    id: ExecutionId,
    output: &ScriptOutput,
    why: String,
) -> Result<Box<Execution>, CliError> {
    let mut lost = why;
    loop {
        let before = output.last_seq();
        let op = Op::ExecEvents { execution: id.to_string(), after_seq: before, limit: 0, follow: true };
        match backend.call_following(op, None, &mut |events| output.events(&events)).await {
            Ok(Reply::Events(rest)) => output.events(&rest)?,
            Ok(other) => return Err(unexpected(&other)),
            Err(CallError::Lost(_)) if output.last_seq() > before => continue,
            Err(CallError::Lost(again)) => {
                lost.push_str("; then ");
                lost.push_str(&again);
                return Err(explain(CallError::Lost(lost)));
            }
            // The daemon was reachable before: it has exited since.
            Err(CallError::Own(_)) => return Err(explain(CallError::Lost(lost))),
            Err(error) => return Err(explain(error)),
        }
        let reply = backend.call(Op::ExecGet { execution: id.to_string() }, None).await?;
        return Ok(expect_reply!(reply, Reply::Execution(execution) => execution));
    }
}

/// Requests the cancellation of the execution. The caller waits for its end, whatever the result.
async fn cancel(backend: &Backend, session: String, output: &ScriptOutput) {
    let execution = loop {
        if let Some(id) = output.execution() {
            break id;
        }
        let inspection = backend.call(Op::SessionInspect { session: session.clone() }, None).await;
        match inspection {
            Ok(Reply::Inspection(inspection)) => {
                if let Some(id) = inspection.running_execution {
                    break id;
                }
            }
            Ok(_) | Err(_) => return,
        }
        tokio::time::sleep(QUERY_INTERVAL).await;
    };
    if let Err(error) = backend.call(Op::ExecCancel { execution: execution.to_string() }, None).await {
        tracing::warn!(?error, "cannot cancel");
    }
}

/// Starts an execution and returns at once with its record.
pub(crate) async fn and_leave(
    context: &Context,
    mut new: NewExecution,
    key: Option<String>,
) -> Result<u8, CliError> {
    new.wait = false;
    new.follow = false;
    let reply = context.call_once(Op::ExecStart(Box::new(new)), key).await?;
    let execution = expect_reply!(reply, Reply::Execution(execution) => execution);
    context.out.done(
        &execution,
        &format!("Started execution: {}", execution.id),
        &execution.id.to_string(),
    )?;
    Ok(exit::OK)
}
