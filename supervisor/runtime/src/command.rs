//! Commands to the owner task of a session. A request is the machine's own input, with the caller that gets the reply: between a verb
//! and the machine nothing is packed again.

use super::api::RuntimeError;
use super::builds::WorkerBuild;
use super::callers::{Awaited, SessionCaller};
use super::followers::Batches;
use super::fork::Forks;
use super::inspect::Facts;
use super::registry::LiveSession;
use crate::shares::Share;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use vm_system_core::{Refusal, SessionInput as Input, Token};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Event, SessionCheckpoint};

/// Commands that may wait for a session's owner task.
const COMMANDS: usize = 16;

/// A command to an owner task.
#[derive(Debug)]
pub(super) enum Command {
    /// A request of a client.
    Request(Box<SessionCall>),
    /// An event that others than the owner task notice; nobody waits for a reply.
    Notice(Input),
    /// The session's checkpoints.
    Checkpoints {
        responder: oneshot::Sender<Vec<SessionCheckpoint>>,
    },
    Follow {
        execution: ExecutionId,
        responder: oneshot::Sender<Option<Batches>>,
    },
    Inspect {
        responder: oneshot::Sender<Facts>,
    },
    /// The build that the session's worker runs.
    Build {
        responder: oneshot::Sender<Option<WorkerBuild>>,
    },
}

/// A request to a session's machine.
#[derive(Debug)]
pub(super) struct SessionCall {
    pub(super) input: Input,
    /// Gets the reply to the input's token.
    pub(super) caller: SessionCaller,
    pub(super) part: Option<CallPart>,
}

/// A part of a request that the machine does not see.
#[derive(Debug)]
pub(super) enum CallPart {
    /// The children of a fork.
    Forks(Box<Forks>),
    /// The share of the process that a checkpoint is.
    Copy(Share),
    /// Receives the events of the execution.
    Follower(ExecutionId, mpsc::Sender<Arc<[Event]>>),
}

/// Receives the reply of the type `R`.
pub(super) type SessionResponse<R> = oneshot::Receiver<Result<R, Refusal>>;

/// The queue of an owner task.
pub(super) fn commands() -> (mpsc::Sender<Command>, mpsc::Receiver<Command>) {
    mpsc::channel(COMMANDS)
}

impl LiveSession {
    /// A request, and the receiver of its reply.
    pub(super) fn request<R: Awaited>(
        &self,
        input: impl FnOnce(Token<R>) -> Input,
        part: Option<CallPart>,
    ) -> (Command, SessionResponse<R>) {
        let token = Token::new(self.next_caller());
        let (responder, response) = oneshot::channel();
        let call = SessionCall { input: input(token), caller: R::caller(token, responder), part };
        (Command::Request(Box::new(call)), response)
    }

    /// Makes a request and waits for its reply.
    pub(super) async fn call<R: Awaited>(
        &self,
        input: impl FnOnce(Token<R>) -> Input,
    ) -> Result<R, RuntimeError> {
        self.call_with(input, None).await
    }

    /// As [`Self::call`], with a part that the machine does not see.
    pub(super) async fn call_with<R: Awaited>(
        &self,
        input: impl FnOnce(Token<R>) -> Input,
        part: Option<CallPart>,
    ) -> Result<R, RuntimeError> {
        let (command, response) = self.request(input, part);
        self.commands.send(command).await.map_err(|_| RuntimeError::NotLive)?;
        Ok(response.await.map_err(|_| RuntimeError::NotLive)??)
    }
}
