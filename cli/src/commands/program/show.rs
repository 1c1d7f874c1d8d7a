//! Executions of programs, for people.

use super::step;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::escape;
use crate::script_output::{exit_code, note_truncated_error};
use std::fmt::Write as _;
use vm_system_protocol::counted::counted;
use vm_system_protocol::model::{ExecutionStatus, Run, WaitingFor};

/// Prints the status of an execution; returns the exit code.
pub(crate) async fn run(context: &Context, run: &Run) -> Result<u8, CliError> {
    if context.out.quiet && context.out.is_table() {
        context.out.write(&format!("{}\n", run.execution.id))?;
    } else if context.out.is_table() {
        let stack = step::stack(context, &run.execution).await?;
        context.out.result(run, || text(run, &stack))?;
    } else {
        context.out.result(run, String::new)?;
    }
    note_truncated_error(run.execution.error.as_ref());
    Ok(code(run))
}

/// The exit code: 0 while the execution waits or runs.
pub(crate) fn code(run: &Run) -> u8 {
    if run.execution.status.is_final() { exit_code(&run.execution) } else { exit::OK }
}

/// The name of an execution's program.
pub(crate) fn program(run: &Run) -> String {
    let deleted = || run.program_id.map_or_else(|| "-".to_owned(), |id| format!("{id} (deleted)"));
    run.program.clone().unwrap_or_else(deleted)
}

fn text(run: &Run, stack: &str) -> String {
    let execution = &run.execution;
    let mut text = String::new();
    let name = run.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let _ = writeln!(text, "Execution: {}{}", execution.id, escape::for_message(&name));
    if let Some(version) = run.program_version {
        let _ = writeln!(text, "Program: {} version {version}", escape::for_message(&program(run)));
    }
    let _ = writeln!(text, "Status: {}", execution.status);
    if let Some(activity) = &run.activity {
        let _ = writeln!(text, "Activity: it {activity}");
    }
    if let Some(json) = execution.result_json() {
        let _ = writeln!(text, "Result: {}", escape::for_message(json));
    }
    if let Some(error) = &execution.error {
        let _ = writeln!(text, "Error: {} ({})", escape::for_message(&error.message), error.code);
        text.push_str(stack);
    }
    // A single task is shown below.
    if let Some(waiting) = run
        .waiting_for
        .as_ref()
        .filter(|waiting| waiting.questions != 1 || waiting.timers + waiting.events > 0)
    {
        let _ = writeln!(text, "Waiting for: {}", waiting_for(waiting));
    }
    if let Some(task) = &run.task {
        let _ = writeln!(text, "Task: {}{}", task.id, more_tasks(run));
        if let Some(deadline) = task.deadline {
            let _ = writeln!(text, "Deadline: {deadline}");
        }
        if let Some(schema) = &task.schema {
            let _ = writeln!(text, "Schema: {}", escape::for_message(schema.as_str()));
        }
        let _ = writeln!(text, "Prompt: {}", escape::for_message(&task.prompt));
    } else if run.waiting_for.is_none() && execution.status == ExecutionStatus::Waiting {
        let _ = writeln!(text, "The execution waits for an answer: `vm-system task get {}`", execution.id);
    }
    for item in &run.abandoned {
        let (name, answer) = (item.name.as_deref().unwrap_or_default(), item.answer.as_deref());
        let answer = answer.map(|answer| format!(": {answer}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "Abandoned: {} {}",
            item.kind.as_str(),
            escape::for_message(&format!("{name}{answer}")).replace('\n', " ")
        );
    }
    text
}

/// How to find the tasks besides the one that is shown.
fn more_tasks(run: &Run) -> String {
    match run.waiting_for.map_or(0, |waiting| waiting.questions) {
        0 | 1 => String::new(),
        tasks => {
            format!(" (and {} more: `vm-system task list --execution {}`)", tasks - 1, run.execution.id)
        }
    }
}

/// The things that an execution waits for, as a text.
pub(crate) fn waiting_for(waiting: &WaitingFor) -> String {
    let WaitingFor { questions, timers, events, wakes_at } = waiting;
    let parts = [(questions, "task"), (timers, "timer"), (events, "event")];
    let parts = parts.into_iter().filter(|(number, _)| **number > 0);
    let mut text =
        parts.map(|(number, what)| counted(u64::from(*number), what)).collect::<Vec<_>>().join(", ");
    if let Some(at) = wakes_at {
        let _ = write!(text, "; until {at} at the latest");
    }
    text
}
