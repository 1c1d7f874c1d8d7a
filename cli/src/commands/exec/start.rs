//! Starts an execution and waits for its end: shared by `exec repl`, `exec run-file`, `run` and `repl`.
//!
//! Ctrl-C cancels the execution; a second Ctrl-C exits without waiting for the end.

use crate::backend::{Backend, explain};
use crate::client::CallError;
use crate::commands::program::show;
use crate::context::{Context, expect_reply, unexpected};
use crate::error::{CliError, exit};
use crate::script_output::{ScriptOutput, exit_code};
use crate::signals::Interrupts;
use std::time::Duration;
use vm_system_protocol::control::{DurableReply, NewExecution, Op, Reply};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Execution, Run};

/// Interval between queries for the running execution, if Ctrl-C came before the execution's first event.
const QUERY_INTERVAL: Duration = Duration::from_millis(20);

/// Runs code and prints its output as it arrives (tables), or the whole record at the end; returns the exit code.
pub(crate) async fn to_its_end(
    context: &Context,
    backend: &Backend,
    interrupts: &Interrupts,
    mut new: NewExecution,
    key: Option<String>,
    output: &ScriptOutput,
) -> Result<u8, CliError> {
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
    let execution = match result {
        Ok(Reply::Execution(execution)) => execution,
        Ok(Reply::Durable(DurableReply::Run(run))) => return at_task(context, backend, &run).await,
        Ok(other) => return Err(unexpected(&other)),
        Err(CallError::Lost(why)) => match output.execution() {
            Some(id) => resume(backend, id, output, why).await?,
            None => return Err(explain(CallError::Lost(why))),
        },
        Err(error) => return Err(explain(error)),
    };
    let code = if context.out.is_table() {
        output.end(&execution)
    } else {
        context.out.result(&execution, String::new)?;
        exit_code(&execution)
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
