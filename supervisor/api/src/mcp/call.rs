//! One call of a tool: its arguments, the verbs that it runs, progress notifications of a long call, cancellation by the client.

use super::confirm::{ConfirmationSubject, Confirmations};
use super::evaluations::Evaluations;
use super::given::{GivenTasks, GivenTo};
use super::output::ToolError;
use super::views::{ExecutionView, TaskStatusView};
use super::{McpBackend, McpClient};
use rmcp::RoleServer;
use rmcp::model::{JsonObject, ProgressNotificationParam};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, interval};
use vm_system_ops::IdempotencyKey;
use vm_system_protocol::control::{CurrentGet, CurrentSet, ErrorCode, OpError, Reply, RunGet, Verb};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::input::read_value;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Event, EventPayload, Run, TaskStatus};

/// The interval of progress notifications of a long call.
const PROGRESS: Duration = Duration::from_secs(1);

/// One call of a tool.
pub(super) struct ToolCall<'a> {
    pub(super) backend: &'a dyn McpBackend,
    pub(super) client: McpClient,
    pub(super) confirmations: &'a Confirmations,
    pub(super) given: &'a GivenTasks,
    pub(super) evaluations: &'a Evaluations,
    pub(super) context: &'a RequestContext<RoleServer>,
    pub(super) arguments: JsonObject,
}

impl ToolCall<'_> {
    /// The arguments, parsed as the tool's input type.
    pub(super) fn input<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        read_value("the object of the arguments", Value::Object(self.arguments.clone()))
            .map_err(|why| ToolError::invalid(format!("invalid arguments: {why}")))
    }

    /// Whether the result is a task of the protocol's extension: the call requests one and the client declares the extension.
    pub(super) fn is_as_task(&self) -> bool {
        self.arguments.get("asTask") == Some(&Value::Bool(true))
            && self.context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
    }

    /// Runs one verb.
    pub(super) async fn perform<V: Verb>(&self, verb: V) -> Result<V::Reply, ToolError> {
        let key = IdempotencyKey::unique();
        self.reply::<V>(self.backend.perform(&self.client, verb.into(), key).await)
    }

    fn reply<V: Verb>(&self, result: Result<Reply, OpError>) -> Result<V::Reply, ToolError> {
        let reply = result.and_then(|reply| Ok(V::reply_from(reply)?));
        reply.map_err(|error| ToolError::from_verb(error, &self.client.toolsets))
    }

    /// Runs one verb that may take long: sends progress to the client if it requests that. When the client cancels its
    /// request, the verb continues, and its result is dropped.
    pub(super) async fn long<V: Verb>(&self, verb: V) -> Result<V::Reply, ToolError> {
        let key = IdempotencyKey::unique();
        let mut work = self.backend.perform(&self.client, verb.into(), key);
        let progress_token = self.context.meta.get_progress_token();
        let begin = Instant::now();
        let mut ticks = interval(PROGRESS);
        loop {
            tokio::select! {
                biased;
                result = &mut work => return self.reply::<V>(result),
                () = self.context.ct.cancelled() => return Err(ToolError::Cancelled),
                _ = ticks.tick(), if progress_token.is_some() => {
                    let Some(token) = progress_token.clone() else { continue };
                    let seconds = begin.elapsed().as_secs();
                    let mut progress = ProgressNotificationParam::new(token, seconds as f64);
                    progress.message = Some(format!("running for {seconds} s"));
                    // The transport notices that a client has disconnected.
                    let _ = self.context.peer.notify_progress(progress).await;
                }
            }
        }
    }

    /// The named execution, else the client's current one.
    pub(super) async fn which(&self, named: Option<String>) -> Result<String, ToolError> {
        match named {
            Some(name) => Ok(name),
            None => match self.current().await? {
                Some(run) => Ok(run.execution.id.to_string()),
                None if self.client.key.is_none() => Err(ToolError::nameless()),
                None => Err(ToolError::Reported {
                    message: "No current execution set. Use list_executions to see available executions."
                        .to_owned(),
                    code: ErrorCode::ExecutionNotFound.as_str(),
                    details: None,
                }),
            },
        }
    }

    /// The client's current execution, if one is set.
    pub(super) async fn current(&self) -> Result<Option<Run>, ToolError> {
        let Some(client) = self.client.key.clone() else { return Ok(None) };
        self.perform(CurrentGet { client }).await
    }

    /// Makes an execution the client's current one.
    pub(super) async fn set_current(&self, execution: String) -> Result<Run, ToolError> {
        let client = self.client.key.clone().ok_or_else(ToolError::nameless)?;
        self.perform(CurrentSet { client, execution }).await
    }

    /// The same if the client can have a current execution; false if it cannot.
    pub(super) async fn make_current(&self, run: &Run) -> Result<bool, ToolError> {
        if self.client.key.is_none() {
            return Ok(false);
        }
        self.set_current(run.execution.id.to_string()).await.map(|_| true)
    }

    /// The state of an execution for the client, which is given the pending task with it.
    pub(super) fn give_run(&self, run: &Run) -> ExecutionView {
        let task = run.task.as_ref().map(|task| task.id);
        self.give(run.execution.id, run.name.as_deref(), task);
        ExecutionView::new(run)
    }

    /// The status of an execution's task for the client, which is given the pending task with it.
    pub(super) fn give_status(&self, status: &TaskStatus) -> TaskStatusView {
        let task = status.task.as_ref().map(|task| task.id);
        self.give(status.execution_id, status.name.as_deref(), task);
        TaskStatusView::new(status)
    }

    /// Notes that the client is given this task.
    pub(super) fn give(&self, execution: ExecutionId, name: Option<&str>, task: Option<TaskId>) {
        if let (Some(to), Some(task)) = (self.given_to(), task) {
            self.given.note(to, execution, name, task);
        }
    }

    /// Notes that the client is given the last task of an execution's events, which are all that there are.
    pub(super) fn give_last_of(&self, events: &[Event]) {
        let last = events.iter().rev().find_map(|event| match event.payload {
            EventPayload::Task { task_id, .. } => Some((event.execution_id, task_id)),
            _ => None,
        });
        if let Some((execution, task)) = last {
            self.give(execution, None, Some(task));
        }
    }

    /// The task of an execution, by its id or name, that an answer without a task's id is for: the one that the client was last given.
    pub(super) async fn task_of_answer(&self, execution: &str) -> Option<TaskId> {
        if let Some(task) = self.last_given(execution) {
            return Some(task);
        }
        if execution.parse::<ExecutionId>().is_ok() {
            return None;
        }
        // A list gave the client the task without this name.
        let run = self.perform(RunGet { execution: execution.to_owned() }).await.ok()?;
        self.last_given(&run.execution.id.to_string())
    }

    /// The task of an execution that the client was last given; none for a client that cannot be distinguished from others.
    fn last_given(&self, execution: &str) -> Option<TaskId> {
        self.given.last(&self.given_to()?, execution)
    }

    fn given_to(&self) -> Option<GivenTo> {
        let owner = self.client.caller.as_ref().map(|caller| caller.owner.clone());
        Some(GivenTo { owner, client: self.client.key.clone()? })
    }

    /// The subject for which a confirmation token is issued.
    pub(super) fn about(&self, kind: &'static str, id: String) -> ConfirmationSubject {
        let owner = self.client.caller.as_ref().map(|caller| caller.owner.clone());
        let client = self.client.key.clone().unwrap_or_default();
        ConfirmationSubject { owner, client, kind, id }
    }
}

/// A value of a call's arguments as JSON for JavaScript. An integer beyond 64 bits, and one beyond 2^53 with a point or an exponent,
/// may have been rounded when the call was parsed.
pub(super) fn exact_json(value: &Value) -> Result<JsonText, ToolError> {
    fn has_rounded(value: &Value) -> bool {
        // 2^53: smaller integers are exact.
        const PARSED_EXACTLY: f64 = 9_007_199_254_740_992.0;
        match value {
            Value::Number(number) => number.as_f64().is_some_and(|double| {
                number.is_f64() && double.fract() == 0.0 && double.abs() >= PARSED_EXACTLY
            }),
            Value::Array(items) => items.iter().any(has_rounded),
            Value::Object(members) => members.values().any(has_rounded),
            _ => false,
        }
    }
    if has_rounded(value) {
        return Err(ToolError::invalid(
            "an integer of 2^64 or more, or one of 2^53 or more that is written with a point or an exponent, is not kept exactly: \
             write its digits, or send it as a string",
        ));
    }
    Ok(JsonText::from_value(value))
}
