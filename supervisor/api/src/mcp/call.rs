//! One call of a tool: its arguments, the verbs it asks, progress while it takes long, and the client's taking it back.

use super::confirm::{About, Confirmations};
use super::outcome::Failure;
use super::{Asker, Front};
use rmcp::RoleServer;
use rmcp::model::{JsonObject, ProgressNotificationParam};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, interval};
use uuid::Uuid;
use vm_system_protocol::control::{DurableOp, DurableReply, ErrorCode, Op, Reply};
use vm_system_protocol::model::Run;

/// How often a call that takes long says that it is under way.
const PROGRESS: Duration = Duration::from_secs(1);

/// One call.
pub(super) struct Call<'a> {
    pub(super) front: &'a dyn Front,
    pub(super) asker: Asker,
    pub(super) confirmations: &'a Confirmations,
    pub(super) context: &'a RequestContext<RoleServer>,
    pub(super) arguments: JsonObject,
}

impl Call<'_> {
    /// The arguments as a tool wants them.
    pub(super) fn input<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_value(Value::Object(self.arguments.clone()))
            .map_err(|error| Failure::invalid(format!("invalid arguments: {error}")))
    }

    /// Whether it is answered with a task of the protocol's extension: the client wants that, and knows the extension.
    pub(super) fn is_as_task(&self) -> bool {
        self.arguments.get("asTask") == Some(&Value::Bool(true))
            && self.context.client_capabilities().is_some_and(|known| known.supports_tasks())
    }

    /// Does one verb.
    pub(super) async fn ask(&self, op: Op) -> Result<Reply, Failure> {
        let key = Uuid::new_v4().to_string();
        Ok(self.front.ask(&self.asker, op, key).await?)
    }

    /// Does one verb of durable programs.
    pub(super) async fn durable(&self, op: DurableOp) -> Result<DurableReply, Failure> {
        durable(self.ask(Op::Durable(op)).await?)
    }

    /// One that answers where an execution stands.
    pub(super) async fn run(&self, op: DurableOp) -> Result<Box<Run>, Failure> {
        run(self.durable(op).await?)
    }

    /// One after which a program runs on, perhaps for long.
    pub(super) async fn long_run(&self, op: DurableOp) -> Result<Box<Run>, Failure> {
        run(durable(self.long(Op::Durable(op)).await?)?)
    }

    /// Does one verb that may take long: tells the client that it is under way, if it wants to know. When the client
    /// takes its request back, the verb goes on, and nobody waits for it.
    pub(super) async fn long(&self, op: Op) -> Result<Reply, Failure> {
        let key = Uuid::new_v4().to_string();
        let mut work = self.front.ask(&self.asker, op, key);
        let wanted = self.context.meta.get_progress_token();
        let begin = Instant::now();
        let mut ticks = interval(PROGRESS);
        loop {
            tokio::select! {
                biased;
                answer = &mut work => return Ok(answer?),
                () = self.context.ct.cancelled() => return Err(Failure::Cancelled),
                _ = ticks.tick(), if wanted.is_some() => {
                    let Some(token) = wanted.clone() else { continue };
                    let seconds = begin.elapsed().as_secs();
                    let mut progress = ProgressNotificationParam::new(token, seconds as f64);
                    progress.message = Some(format!("running for {seconds} s"));
                    // A client that is gone is noticed by the transport.
                    let _ = self.context.peer.notify_progress(progress).await;
                }
            }
        }
    }

    /// The execution that a tool is about: the one that is named, else the client's current one.
    pub(super) async fn which(&self, named: Option<String>) -> Result<String, Failure> {
        match named {
            Some(name) => Ok(name),
            None => match self.current().await? {
                Some(run) => Ok(run.execution.id.to_string()),
                None if self.asker.client.is_none() => Err(Failure::nameless()),
                None => Err(Failure::Told {
                    message: "No current execution set. Use list_executions to see available executions."
                        .to_owned(),
                    code: ErrorCode::ExecutionNotFound.as_str(),
                    details: None,
                }),
            },
        }
    }

    /// The client's current execution, if one is set.
    pub(super) async fn current(&self) -> Result<Option<Box<Run>>, Failure> {
        let Some(client) = self.asker.client.clone() else { return Ok(None) };
        match self.durable(DurableOp::CurrentGet { client }).await? {
            DurableReply::Runs(mut runs) => Ok(runs.pop().map(Box::new)),
            other => Err(Failure::unexpected(&other)),
        }
    }

    /// Makes an execution the client's current one.
    pub(super) async fn set_current(&self, execution: String) -> Result<Box<Run>, Failure> {
        let client = self.asker.client.clone().ok_or_else(Failure::nameless)?;
        self.run(DurableOp::CurrentSet { client, execution }).await
    }

    /// The same where the client has such a thing; whether it has.
    pub(super) async fn make_current(&self, run: &Run) -> Result<bool, Failure> {
        if self.asker.client.is_none() {
            return Ok(false);
        }
        self.set_current(run.execution.id.to_string()).await.map(|_| true)
    }

    /// What a token to delete something is for.
    pub(super) fn about(&self, kind: &'static str, id: String) -> About {
        let owner = self.asker.caller.as_ref().map(|caller| caller.owner.clone());
        let client = self.asker.client.clone().unwrap_or_default();
        About { owner, client, kind, id }
    }
}

/// Where an execution stands, in an answer that says it.
pub(super) fn run_of(reply: Reply) -> Result<Box<Run>, Failure> {
    run(durable(reply)?)
}

fn durable(reply: Reply) -> Result<DurableReply, Failure> {
    match reply {
        Reply::Durable(reply) => Ok(reply),
        other => Err(Failure::unexpected(&other)),
    }
}

fn run(reply: DurableReply) -> Result<Box<Run>, Failure> {
    match reply {
        DurableReply::Run(run) => Ok(run),
        other => Err(Failure::unexpected(&other)),
    }
}
