//! Callers that wait for the result of a request. The machine identifies each by a [`Token`].

use tokio::sync::oneshot;
use vm_system_core::Token;

/// Receives the result of a request.
pub(super) type Responder<T, E> = oneshot::Sender<Result<T, E>>;

/// Callers of one owner task. Only a few, so a list is faster than a map.
#[derive(Debug)]
pub(super) struct Callers<T, E> {
    last: u64,
    waiting: Vec<(Token, Responder<T, E>)>,
}

impl<T, E> Default for Callers<T, E> {
    fn default() -> Self {
        Self { last: 0, waiting: Vec::new() }
    }
}

impl<T, E> Callers<T, E> {
    pub(super) fn add(&mut self, caller: Responder<T, E>) -> Token {
        self.last += 1;
        let token = Token(self.last);
        self.waiting.push((token, caller));
        token
    }

    pub(super) fn reply(&mut self, token: Token, result: Result<T, E>) {
        if let Some(at) = self.waiting.iter().position(|(waiting, _)| *waiting == token) {
            // No error if the caller has left.
            let _ = self.waiting.swap_remove(at).1.send(result);
        }
    }
}
