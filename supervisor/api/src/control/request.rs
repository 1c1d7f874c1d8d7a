//! One verb of one client: passes the verb to the handler, streams its events, then sends its reply.

use super::frame;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use vm_system_ops::{VerbHandler, VerbRequest};
use vm_system_protocol::control::{ErrorCode, OpError, ServerFrame};
use vm_system_protocol::model::{Event, EventPayload};
use vm_system_runtime::client_memory::ReplyMemory;
use vm_system_runtime::shares::Share;
use vm_system_runtime::{FollowedBatch, follower};
use vm_system_store::BoxFuture;

/// Most batches of events that are queued between the handler and a client's socket.
const QUEUED_BATCHES: usize = 1;
/// Most bytes of events in one frame (estimated); a larger event gets a frame of its own.
const EVENTS_FRAME_BYTES: usize = 256 * 1024;
/// Upper bound of an event's size without its texts (bytes).
const EVENT_OVERHEAD_BYTES: usize = 64;

/// The queue of frames for a client; bounded, so that a slow reader delays only its own requests.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) frames: mpsc::Sender<QueuedFrame>,
    pub(super) frame_bytes: usize,
}

/// The bytes of a frame, with their reservation.
pub(super) struct QueuedFrame {
    pub(super) bytes: Vec<u8>,
    _memory: Option<Arc<Share>>,
}

/// The client has disconnected.
pub(super) struct Gone;

impl Outgoing {
    /// Sends a reply. Its memory stays reserved until it is written, or the connection is closed; one that was not reserved before
    /// it was built is replaced by an error if there is none for it.
    pub(super) async fn reply(&self, reply: ServerFrame, memory: &ReplyMemory) -> Result<(), Gone> {
        let ServerFrame::Reply { id, .. } = &reply else { return Err(Gone) };
        let id = *id;
        let mut bytes = self.encoded(&reply)?.unwrap_or_default();
        // While it waits for the client it is there only once.
        drop(reply);
        let memory = match memory.settle(bytes.len()) {
            Ok(share) => share.map(Arc::new),
            Err(refusal) => {
                let error = OpError::from(refusal);
                let refused = ServerFrame::Reply { id, result: Err(Box::new(error)) };
                bytes = self.encoded(&refused)?.unwrap_or_default();
                None
            }
        };
        self.frames.send(QueuedFrame { bytes, _memory: memory }).await.map_err(|_| Gone)
    }

    async fn events(&self, frame: ServerFrame, memory: Option<Arc<Share>>) -> Result<(), Gone> {
        let Some(bytes) = self.encoded(&frame)? else { return Ok(()) };
        drop(frame);
        self.frames.send(QueuedFrame { bytes, _memory: memory }).await.map_err(|_| Gone)
    }

    /// The bytes of a frame; `None`: of an event that is too large.
    fn encoded(&self, frame: &ServerFrame) -> Result<Option<Vec<u8>>, Gone> {
        match frame::encode(frame, self.frame_bytes) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => {
                let Some(smaller) = too_large(frame, &error) else { return Ok(None) };
                frame::encode(&smaller, self.frame_bytes).map(Some).map_err(|_| Gone)
            }
        }
    }
}

/// The replacement of a frame that cannot be encoded.
fn too_large(frame: &ServerFrame, error: &dyn std::fmt::Display) -> Option<ServerFrame> {
    let ServerFrame::Reply { id, .. } = frame else {
        tracing::error!(%error, "an event is too large for a frame and is left out of the stream");
        return None;
    };
    let error = OpError::new(ErrorCode::Internal, format!("the reply is too large for a frame: {error}"))
        .with_hint("request less at a time: --limit, --after-seq");
    Some(ServerFrame::Reply { id: *id, result: Err(Box::new(error)) })
}

/// Runs one request to its end, even if the client disconnects. `unfollow` ends the stream early, whose `share` is returned then;
/// `free_id` frees the
/// request's id before the client can see the reply.
pub(super) async fn run(
    handler: Arc<dyn VerbHandler>,
    id: u32,
    mut request: VerbRequest,
    outgoing: Outgoing,
    (unfollow, share): (CancellationToken, Option<Share>),
    free_id: impl FnOnce(),
) {
    let mut stream = None;
    if request.op.follows() {
        let (follower, receiver) = follower(QUEUED_BATCHES, request.memory.clone());
        request.events = Some(follower);
        stream = Some(receiver);
    }
    let memory = request.memory.clone();
    let gone = memory.clone();
    let frames = outgoing.frames.clone();
    // Whoever reads for a client that has gone stops.
    let watching = async move {
        frames.closed().await;
        gone.client_left();
        std::future::pending::<()>().await;
    };
    let work = contained(handler.handle(request));
    let work = async {
        tokio::select! {
            result = work => result,
            () = watching => None,
        }
    };
    let result = match stream {
        // Concurrently: the verb waits while its stream is full.
        Some(receiver) => {
            let forwarding = async {
                forward(id, receiver, &outgoing, &unfollow).await;
                drop(share);
            };
            tokio::join!(work, forwarding).0
        }
        None => work.await,
    };
    let result = result.unwrap_or_else(|| {
        tracing::error!(request = id, "a request ended without a reply");
        Err(OpError::new(ErrorCode::Internal, "the supervisor failed at this request; see its log"))
    });
    free_id();
    let reply = ServerFrame::Reply { id, result: result.map_err(Box::new) };
    // If the client has disconnected, the reply is dropped.
    let _ = outgoing.reply(reply, &memory).await;
}

/// Runs the work; `None` if it panicked, so that a bug in a verb is only this request's error.
async fn contained<T>(mut work: BoxFuture<'_, T>) -> Option<T> {
    let poll = |context: &mut Context<'_>| {
        // After a panic the work is never polled again, so that no code sees its inconsistent state.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    };
    std::future::poll_fn(poll).await
}

async fn forward(
    id: u32,
    mut receiver: mpsc::Receiver<FollowedBatch>,
    outgoing: &Outgoing,
    unfollow: &CancellationToken,
) {
    loop {
        let batch = tokio::select! {
            biased;
            () = unfollow.cancelled() => return,
            () = outgoing.frames.closed() => return,
            batch = receiver.recv() => batch,
        };
        let Some(batch) = batch else { return };
        let memory = batch.memory.map(Arc::new);
        for events in split(batch.events) {
            if outgoing.events(ServerFrame::Events { id, events }, memory.clone()).await.is_err() {
                return;
            }
        }
    }
}

/// Cuts a batch into pieces that fit a frame.
fn split(batch: Vec<Event>) -> Vec<Vec<Event>> {
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    let mut bytes = 0;
    for event in batch {
        let size = size_of_event(&event);
        if bytes + size > EVENTS_FRAME_BYTES && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            bytes = 0;
        }
        bytes += size;
        piece.push(event);
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

fn size_of_event(event: &Event) -> usize {
    let echo = match &event.payload {
        EventPayload::InputEcho { text } => text.len(),
        _ => 0,
    };
    EVENT_OVERHEAD_BYTES + echo + event.payload.output_bytes() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_system_protocol::ids::ExecutionId;
    use vm_system_protocol::model::ConsoleLevel;
    use vm_system_protocol::time::Timestamp;

    fn event(seq: u64, bytes: usize) -> Event {
        Event {
            execution_id: ExecutionId::from_bytes([1; 16]),
            seq,
            ts: Timestamp(0),
            payload: EventPayload::console(ConsoleLevel::Log, "x".repeat(bytes)),
        }
    }

    #[test]
    fn a_large_batch_is_split_in_order_and_a_giant_event_has_its_own_frame() {
        let batch =
            vec![event(1, 10), event(2, 10), event(3, 2 * EVENTS_FRAME_BYTES), event(4, 10), event(5, 10)];
        let lengths: Vec<_> = split(batch.clone()).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1, 2]);
        assert_eq!(split(batch.clone()).concat(), batch);
        assert!(split(Vec::new()).is_empty());
    }
}
