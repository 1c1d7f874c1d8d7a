//! The presence of a session's agent. A connection that ends is no cancellation (MCP, *Streamable HTTP*): the agent may
//! connect again. One without a request and without an open response for a while has gone, and so has who waits for its evaluations.

use axum::body::{Body, Bytes};
use axum::http::Response;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Time for an agent whose connection broke to come back.
const ABSENCE: Duration = Duration::from_secs(10);

/// The presence of one session's agent.
#[derive(Debug, Clone)]
pub(super) struct AgentPresence {
    state: Arc<Mutex<Presence>>,
    absence: Duration,
}

impl Default for AgentPresence {
    fn default() -> Self {
        Self { state: Arc::default(), absence: ABSENCE }
    }
}

#[derive(Debug)]
struct Presence {
    /// Requests without a whole response.
    open: usize,
    last: Instant,
    /// A response did not arrive as a whole: an evaluation may run for nobody since then.
    is_broken: bool,
    /// Cancelled when the agent has gone; another one is for requests after that.
    gone: CancellationToken,
}

impl Default for Presence {
    fn default() -> Self {
        Self { open: 0, last: Instant::now(), is_broken: false, gone: CancellationToken::new() }
    }
}

/// A request of the agent, until its response has ended.
#[derive(Debug)]
pub(super) struct OpenResponse {
    agent: AgentPresence,
    /// The agent has got all of it.
    is_whole: bool,
}

impl AgentPresence {
    fn lock(&self) -> MutexGuard<'_, Presence> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request; the token is cancelled when the agent has gone.
    pub(super) fn enter(&self) -> (OpenResponse, CancellationToken) {
        let mut presence = self.lock();
        presence.open += 1;
        presence.last = Instant::now();
        (OpenResponse { agent: self.clone(), is_whole: false }, presence.gone.clone())
    }

    /// The agent has gone if there was nothing of it since then.
    fn leave_if_absent_since(&self, since: Instant) {
        let mut presence = self.lock();
        if presence.open == 0 && presence.last == since {
            presence.is_broken = false;
            std::mem::take(&mut presence.gone).cancel();
        }
    }
}

impl Drop for OpenResponse {
    fn drop(&mut self) {
        let since = {
            let mut presence = self.agent.lock();
            presence.open -= 1;
            presence.last = Instant::now();
            presence.is_broken |= !self.is_whole;
            if presence.open > 0 || !presence.is_broken {
                return;
            }
            presence.last
        };
        let agent = self.agent.clone();
        // None: the last connections end with the process.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(agent.absence).await;
                agent.leave_if_absent_since(since);
            });
        }
    }
}

/// The response, which notes its end.
pub(super) fn watched(response: Response<Body>, open: OpenResponse) -> Response<Body> {
    response.map(|body| Body::new(WatchedBody { body, open }))
}

struct WatchedBody {
    body: Body,
    open: OpenResponse,
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.open.is_whole = true;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::AgentPresence;
    use std::time::Duration;

    /// Lets what was spawned run to its end.
    async fn settle() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn an_agent_has_gone_when_its_connection_has_ended_and_it_does_not_come_back() {
        let agent = AgentPresence { absence: Duration::ZERO, ..AgentPresence::default() };
        let whole = || {
            let (mut open, _) = agent.enter();
            open.is_whole = true;
        };
        let (first, gone) = agent.enter();
        let (stream, _) = agent.enter();
        drop(first);
        settle().await;
        assert!(!gone.is_cancelled(), "it has another connection");
        drop(stream);
        // Before the time has passed.
        let (again, _) = agent.enter();
        settle().await;
        assert!(!gone.is_cancelled(), "it came back");
        whole();
        drop(again);
        gone.cancelled().await;
        let (_, gone) = agent.enter();
        gone.cancelled().await;
        let (_open, gone) = agent.enter();
        whole();
        settle().await;
        assert!(!gone.is_cancelled(), "it may still come back");
    }
}
