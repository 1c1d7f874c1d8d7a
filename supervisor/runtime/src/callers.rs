//! Callers that wait for the result of a request. The machine identifies each by a [`Token`], whose type is that of the reply.

use tokio::sync::oneshot;
use vm_system_core::{Executed, Refusal, ReplyToCaller, SessionReply, Token};
use vm_system_protocol::model::{Session, SessionCheckpoint};

/// Receives the result of a request.
pub(super) type Responder<T, E> = oneshot::Sender<Result<T, E>>;

/// Callers of one owner task that wait for a reply of one type. Only a few, so a list is faster than a map.
#[derive(Debug)]
pub(super) struct Callers<T, E> {
    waiting: Vec<(Token<T>, Responder<T, E>)>,
}

impl<T, E> Default for Callers<T, E> {
    fn default() -> Self {
        Self { waiting: Vec::new() }
    }
}

impl<T, E> Callers<T, E> {
    pub(super) fn add(&mut self, token: Token<T>, caller: Responder<T, E>) {
        self.waiting.push((token, caller));
    }

    pub(super) fn reply(&mut self, token: Token<T>, result: Result<T, E>) {
        if let Some(at) = self.waiting.iter().position(|(waiting, _)| *waiting == token) {
            // No error if the caller has left.
            let _ = self.waiting.swap_remove(at).1.send(result);
        }
    }
}

/// A caller of a session.
#[derive(Debug)]
pub(super) enum SessionCaller {
    Done(Token<()>, Responder<(), Refusal>),
    Session(Token<Session>, Responder<Session, Refusal>),
    Executed(Token<Executed>, Responder<Executed, Refusal>),
    Checkpoint(Token<SessionCheckpoint>, Responder<SessionCheckpoint, Refusal>),
}

/// The type of a reply for which callers of a session wait.
pub(super) trait Awaited: ReplyToCaller {
    fn caller(token: Token<Self>, responder: Responder<Self, Refusal>) -> SessionCaller;
}

impl Awaited for () {
    fn caller(token: Token<Self>, responder: Responder<Self, Refusal>) -> SessionCaller {
        SessionCaller::Done(token, responder)
    }
}

impl Awaited for Session {
    fn caller(token: Token<Self>, responder: Responder<Self, Refusal>) -> SessionCaller {
        SessionCaller::Session(token, responder)
    }
}

impl Awaited for Executed {
    fn caller(token: Token<Self>, responder: Responder<Self, Refusal>) -> SessionCaller {
        SessionCaller::Executed(token, responder)
    }
}

impl Awaited for SessionCheckpoint {
    fn caller(token: Token<Self>, responder: Responder<Self, Refusal>) -> SessionCaller {
        SessionCaller::Checkpoint(token, responder)
    }
}

/// The callers of one session, by the type of their reply.
#[derive(Debug, Default)]
pub(super) struct SessionCallers {
    done: Callers<(), Refusal>,
    sessions: Callers<Session, Refusal>,
    executed: Callers<Executed, Refusal>,
    checkpoints: Callers<SessionCheckpoint, Refusal>,
}

impl SessionCallers {
    pub(super) fn add(&mut self, caller: SessionCaller) {
        match caller {
            SessionCaller::Done(token, responder) => self.done.add(token, responder),
            SessionCaller::Session(token, responder) => self.sessions.add(token, responder),
            SessionCaller::Executed(token, responder) => self.executed.add(token, responder),
            SessionCaller::Checkpoint(token, responder) => self.checkpoints.add(token, responder),
        }
    }

    pub(super) fn reply(&mut self, reply: SessionReply) {
        match reply {
            SessionReply::Done(token, result) => self.done.reply(token, result),
            SessionReply::Session(token, result) => {
                self.sessions.reply(token, result.map(|session| *session));
            }
            SessionReply::Executed(token, result) => self.executed.reply(token, result),
            SessionReply::Checkpoint(token, result) => {
                self.checkpoints.reply(token, result.map(|checkpoint| *checkpoint));
            }
        }
    }
}
