//! The worker's end of its channel: numbered messages that are kept until they are acknowledged, batches of events, host calls.
//! All calls block: a worker does one thing at a time. The process exits when the channel is closed.

mod fork;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::hello::Hello;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::limits::{
    EVENT_BATCH_BYTES, EVENT_BATCH_MS, HOST_MESSAGE_BYTES, PACKET_BYTES, UNACKED_BYTES, UNACKED_SURE_BYTES,
    WORKER_MESSAGE_BYTES,
};
use vm_system_protocol::packet::{Reassembler, pieces};
use vm_system_protocol::worker::{
    Done, FromWorker, HostError, HostReply, HostRequest, ToWorker, WorkerEvent,
};
use vm_system_sandbox::process::exit_now;
use vm_system_sandbox::socket::{self, Wait};

/// Exit code of a worker that got an invalid message from its supervisor, or could not send.
const EXIT_PROTOCOL: i32 = 74;
/// Longest wait: a signal that arrives between the check of the flag and the wait is noticed after this time.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The same while a task is pending, perhaps for days; the supervisor's reply to the call also reports an interruption.
const TASK_CHECK_INTERVAL: Duration = Duration::from_mins(1);
/// Approximate size of an event without its texts (bytes).
const EVENT_OVERHEAD: usize = 32;
/// The sequence number of the reply to an adoption, which is outside the sequence.
const OUTSIDE_SEQUENCE: u64 = 0;

/// Sends the hello, the first packet of a channel, with an encoding that never changes.
pub fn send_hello(channel: &OwnedFd) -> io::Result<()> {
    socket::send(channel, &[&Hello::ours().to_packet()], &[], Wait::Yes)
}

/// The worker's end of the channel.
pub struct Link {
    socket: OwnedFd,
    /// Set by the interrupt signal.
    interrupted: &'static AtomicBool,
    incoming: Reassembler,
    buffer: Vec<u8>,
    /// The descriptors of the last packet.
    descriptor: Option<OwnedFd>,
    next_seq: u64,
    unacked: VecDeque<(u64, Vec<u8>)>,
    unacked_bytes: usize,
    batch: Vec<WorkerEvent>,
    batch_bytes: usize,
    last_flush: Instant,
    execution: Option<ExecutionId>,
    /// The last execution that ended.
    finished: Option<ExecutionId>,
    calls: u64,
    reply: Option<HostReply>,
}

/// The buffer into which a link receives packets. Allocated and cleared in the zygote, so that a new worker writes only to the
/// pages that packets fill.
pub struct PacketBuffer(Vec<u8>);

impl PacketBuffer {
    /// A buffer for the largest packet.
    pub fn new() -> Self {
        Self(vec![0; PACKET_BYTES])
    }
}

impl Default for PacketBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl Link {
    /// Opens a new channel and sends the hello.
    pub fn open(
        socket: OwnedFd,
        interrupted: &'static AtomicBool,
        PacketBuffer(buffer): PacketBuffer,
    ) -> io::Result<Self> {
        send_hello(&socket)?;
        let mut incoming = Reassembler::new(HOST_MESSAGE_BYTES);
        // The supervisor is trusted, and a new one does not know the sequence number of the old one.
        incoming.accept_any();
        Ok(Self {
            socket,
            interrupted,
            incoming,
            buffer,
            descriptor: None,
            next_seq: 1,
            unacked: VecDeque::new(),
            unacked_bytes: 0,
            batch: Vec::new(),
            batch_bytes: 0,
            last_flush: Instant::now(),
            execution: None,
            finished: None,
            calls: 0,
            reply: None,
        })
    }

    /// The raw channel, for tests with hostile workers.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Waits for the next order: `Start`, `Execute`, `Durable` or `Fork`. Ends the process on `Shutdown` and at the
    /// channel's end.
    pub fn next_order(&mut self) -> ToWorker {
        loop {
            match self.receive() {
                Some(
                    order @ (ToWorker::Start(_)
                    | ToWorker::Execute(_)
                    | ToWorker::Durable(_)
                    | ToWorker::Fork { .. }),
                ) => return order,
                // The reply to a call that was abandoned when its execution was interrupted.
                Some(ToWorker::HostReply { .. }) | None => {}
                Some(_) => exit_now(EXIT_PROTOCOL),
            }
        }
    }

    /// Starts an execution: later events and calls belong to it.
    pub fn begin(&mut self, execution: ExecutionId) {
        self.execution = Some(execution);
        self.last_flush = Instant::now();
    }

    /// Sends the remaining events of the execution and its end.
    pub fn finish(&mut self, mut done: Done) {
        // One message, unless the rest of the batch is large by itself.
        if self.batch_bytes < EVENT_BATCH_BYTES {
            self.batch.append(&mut done.events);
            done.events = std::mem::take(&mut self.batch);
            self.batch_bytes = 0;
        } else {
            self.flush();
        }
        self.finished = self.execution.take();
        self.send(&FromWorker::Done(Box::new(done)));
    }

    /// Sends a message: numbered, kept until acknowledged; waits while too much is unacknowledged.
    pub fn send(&mut self, message: &FromWorker) {
        let Ok(bytes) = encode(message, WORKER_MESSAGE_BYTES) else { exit_now(EXIT_PROTOCOL) };
        self.send_encoded(bytes);
    }

    fn send_encoded(&mut self, bytes: Vec<u8>) {
        while self.unacked_bytes > UNACKED_SURE_BYTES && self.unacked_bytes + bytes.len() > UNACKED_BYTES {
            let message = self.receive();
            self.put_aside(message);
        }
        // The number is taken after the wait: an adoption during it repeats what was sent, and nothing beyond that.
        let seq = self.next_seq;
        self.next_seq += 1;
        self.transmit(seq, &bytes);
        self.unacked_bytes += bytes.len();
        self.unacked.push_back((seq, bytes));
    }

    /// Sends a message that is not kept, because this worker exits with its supervisor.
    pub fn send_unkept(&mut self, message: &FromWorker) {
        let Ok(bytes) = encode(message, WORKER_MESSAGE_BYTES) else { exit_now(EXIT_PROTOCOL) };
        let seq = self.next_seq;
        self.next_seq += 1;
        self.transmit(seq, &bytes);
    }

    /// Adds one event of the running execution.
    pub fn emit(&mut self, event: WorkerEvent) {
        self.batch_bytes += event.payload.output_bytes() as usize + EVENT_OVERHEAD;
        self.batch.push(event);
        if self.batch_bytes >= EVENT_BATCH_BYTES || self.is_flush_due() {
            self.flush();
        }
    }

    /// Called regularly while code runs: sends the batch of events when it is due, receives acknowledgements.
    pub fn poll(&mut self) {
        if !self.is_flush_due() {
            return;
        }
        self.flush();
        self.last_flush = Instant::now();
        self.receive_pending();
    }

    /// Sends a host call and waits for its reply, or for an interruption. A call that fits no message has failed: a script chooses its
    /// size.
    pub fn call(&mut self, request: HostRequest) -> HostReply {
        self.flush();
        let Some(execution) = self.execution else { return interrupted() };
        self.calls += 1;
        self.reply = None;
        let call = self.calls;
        let longest_wait =
            if matches!(request, HostRequest::Ask { .. }) { TASK_CHECK_INTERVAL } else { CHECK_INTERVAL };
        let message = FromWorker::HostCall { execution, call, request };
        let Ok(bytes) = encode(&message, WORKER_MESSAGE_BYTES) else { return too_large() };
        drop(message);
        self.send_encoded(bytes);
        loop {
            if let Some(reply) = self.reply.take() {
                return reply;
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return interrupted();
            }
            self.wait_readable(longest_wait);
            self.receive_pending();
        }
    }

    /// Waits for a message or an interruption, at most `at_most`.
    pub fn sleep(&mut self, at_most: Duration) {
        self.flush();
        if !self.interrupted.load(Ordering::Relaxed) {
            self.wait_readable(at_most.min(CHECK_INTERVAL));
        }
        self.receive_pending();
    }

    fn is_flush_due(&self) -> bool {
        self.last_flush.elapsed() >= Duration::from_millis(EVENT_BATCH_MS)
    }

    fn flush(&mut self) {
        if let (Some(execution), false) = (self.execution, self.batch.is_empty()) {
            let events = std::mem::take(&mut self.batch);
            self.batch_bytes = 0;
            self.send(&FromWorker::Events { execution, events });
            self.last_flush = Instant::now();
        }
    }

    fn wait_readable(&self, at_most: Duration) {
        let mut ready = socket::PollSet::with_capacity(1);
        ready.add(&self.socket);
        // The caller checks whether it is readable.
        let _ = ready.wait(Some(at_most));
    }

    fn receive_pending(&mut self) {
        while let Some(len) = self.receive_packet(Wait::No) {
            let message = self.complete(len);
            self.put_aside(message);
        }
    }

    /// Waits for one packet; returns the message that it completes, unless that was handled here.
    fn receive(&mut self) -> Option<ToWorker> {
        let len = self.receive_packet(Wait::Yes)?;
        self.complete(len)
    }

    /// Receives one packet into the buffer; returns its length (bytes).
    fn receive_packet(&mut self, wait: Wait) -> Option<usize> {
        match socket::receive(&self.socket, &mut self.buffer, wait) {
            Ok(mut got) if got.len > 0 => {
                self.descriptor = got.fds.pop();
                Some(got.len)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            // Supervisor and keeper have closed the channel.
            _ => exit_now(0),
        }
    }

    /// Appends the packet in the buffer to the unfinished message.
    fn complete(&mut self, len: usize) -> Option<ToWorker> {
        let packet = &self.buffer[..len];
        let message = self.incoming.push(packet).or_else(|_| {
            // A new supervisor's message begins while the old one's is unfinished.
            self.incoming.accept_any();
            self.incoming.push(packet)
        });
        let Ok(message) = message else { exit_now(EXIT_PROTOCOL) };
        let Ok(message) = decode::<ToWorker>(&message?.bytes) else { exit_now(EXIT_PROTOCOL) };
        match message {
            ToWorker::Ack { seq } => self.acknowledged(seq),
            ToWorker::Adopt { last_committed, nonce } => self.adopted(last_committed, nonce),
            ToWorker::Shutdown => exit_now(0),
            #[cfg(feature = "next-protocol")]
            ToWorker::Announce { .. } => {}
            message => return Some(message),
        }
        None
    }

    /// Handles a message that arrives while an execution runs.
    fn put_aside(&mut self, message: Option<ToWorker>) {
        match message {
            Some(ToWorker::HostReply { call, reply }) if call == self.calls => self.reply = Some(reply),
            Some(ToWorker::HostReply { .. }) | None => {}
            Some(_) => exit_now(EXIT_PROTOCOL),
        }
    }

    fn acknowledged(&mut self, up_to: u64) {
        while self.unacked.front().is_some_and(|(seq, _)| *seq <= up_to) {
            let bytes = self.unacked.pop_front().map_or(0, |(_, bytes)| bytes.len());
            self.unacked_bytes -= bytes;
        }
    }

    fn adopted(&mut self, last_committed: u64, nonce: u64) {
        self.acknowledged(last_committed);
        let adopted = FromWorker::Adopted {
            nonce,
            acknowledged: self.unacked.front().map_or(self.next_seq, |(seq, _)| *seq) - 1,
            last_sent: self.next_seq - 1,
            running: self.execution,
            finished: self.finished,
        };
        let Ok(reply) = encode(&adopted, WORKER_MESSAGE_BYTES) else { exit_now(EXIT_PROTOCOL) };
        // The reply comes before the repeated messages: everything that was queued before it is dropped by the new supervisor.
        self.transmit(OUTSIDE_SEQUENCE, &reply);
        for (seq, bytes) in &self.unacked {
            self.transmit(*seq, bytes);
        }
    }

    fn transmit(&self, seq: u64, message: &[u8]) {
        for (header, piece) in pieces(seq, message) {
            if socket::send(&self.socket, &[&header, piece], &[], Wait::Yes).is_err() {
                exit_now(0);
            }
        }
    }
}

fn too_large() -> HostReply {
    HostReply::Failed(HostError {
        code: "E2BIG".to_owned(),
        message: format!("the arguments of a call are larger than {} MiB", WORKER_MESSAGE_BYTES >> 20),
    })
}

fn interrupted() -> HostReply {
    HostReply::Failed(HostError {
        code: "INTERRUPTED".to_owned(),
        message: "the execution was interrupted".to_owned(),
    })
}
