//! The memory of one HTTP request and its response: reserved before they are read or built, until the bytes are sent.

use super::envelope::RestError;
use axum::body::{Body, Bytes};
use axum::http::Response;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use vm_system_protocol::control::OpError;
use vm_system_runtime::client_memory::{ClientMemory, ReplyMemory};
use vm_system_runtime::shares::{Holder, Share};

/// The memory of one request, shared by all that works for it.
#[derive(Debug, Clone)]
pub(super) struct RequestMemory {
    budget: ClientMemory,
    holder: Holder,
    /// Of its body.
    body: Arc<Mutex<Option<Share>>>,
    /// Of its response.
    pub(super) reply: ReplyMemory,
}

impl RequestMemory {
    pub(super) fn new(budget: &ClientMemory, holder: Holder) -> Self {
        let reply = budget.reply(holder.clone());
        Self { budget: budget.clone(), holder, body: Arc::default(), reply }
    }

    /// Reserves memory for a body before it is read; returned with the last copy of this value.
    pub(super) async fn body(&self, bytes: usize) -> Result<(), RestError> {
        let share = self.budget.request(&self.holder, bytes).await.map_err(OpError::from)?;
        *self.body.lock().unwrap_or_else(PoisonError::into_inner) = share;
        Ok(())
    }
}

/// Ends what reads for a response when it is dropped.
#[derive(Debug)]
pub(super) struct Leaving(pub(super) ReplyMemory);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.client_left();
    }
}

/// A response with the reservation of its body, or the refusal in its place. The parts of a stream have their own.
pub(super) fn reserved(memory: &ReplyMemory, response: Response<Body>) -> Result<Response<Body>, RestError> {
    let Some(length) = http_body::Body::size_hint(response.body()).exact() else { return Ok(response) };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    match memory.settle(length).map_err(OpError::from)? {
        Some(share) => {
            let share = Arc::new(share);
            Ok(response.map(|body| Body::new(Reserved { body, share })))
        }
        None => Ok(response),
    }
}

/// Bytes with their reservation, which ends when they are written, or dropped with the connection.
pub(super) fn with_share(bytes: Bytes, share: Arc<Share>) -> Bytes {
    struct Owned(Bytes, #[expect(dead_code, reason = "returned when it is dropped")] Arc<Share>);
    impl AsRef<[u8]> for Owned {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Owned(bytes, share))
}

struct Reserved {
    body: Body,
    share: Arc<Share>,
}

impl http_body::Body for Reserved {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // The connection's buffer keeps the bytes longer than this body.
        let share = &self.share;
        Poll::Ready(
            frame
                .map(|frame| frame.map(|frame| frame.map_data(|bytes| with_share(bytes, Arc::clone(share))))),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
