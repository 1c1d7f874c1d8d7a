//! A worker's fork of itself, and how the child becomes the worker of another session. Knows nothing of the engine.
//!
//! The descriptor in the order is used only for the child's hello: the parent held that descriptor too, so nothing that arrives
//! over it later is trusted. The reply to the hello carries the child's channel, which the parent never held.

use super::{EXIT_PROTOCOL, Link, send_hello};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Instant;
use vm_system_protocol::hello::Hello;
use vm_system_protocol::limits::HOST_MESSAGE_BYTES;
use vm_system_protocol::packet::Reassembler;
use vm_system_protocol::worker::FromWorker;
use vm_system_sandbox::process::{self, Fork, exit_now};
use vm_system_sandbox::socket::{self, Wait};

/// Exit code of a child that did not get a channel.
const EXIT_CHANNEL: i32 = 70;

impl Link {
    /// Executes the order to fork, between two executions. Returns whether this process is the child; then no message of the
    /// parent's channel is left, and the next order is a `Start`.
    pub fn fork(&mut self, order: u64) -> bool {
        let Some(descriptor) = self.descriptor.take() else { exit_now(EXIT_PROTOCOL) };
        match process::fork_sibling() {
            Ok(Fork::Child) => {
                if self.replace_channel(&descriptor).is_err() {
                    exit_now(EXIT_CHANNEL);
                }
                self.reset();
                return true;
            }
            Ok(Fork::Parent(_)) => {
                drop(descriptor);
                self.send(&FromWorker::Forked { order });
            }
            Err(error) => {
                drop(descriptor);
                let errno = error.raw_os_error().unwrap_or(0);
                self.send(&FromWorker::ForkFailed { order, errno });
            }
        }
        false
    }

    /// Replaces the parent's channel by the descriptor of the order, and that descriptor by a channel that only this process has.
    fn replace_channel(&mut self, descriptor: &OwnedFd) -> io::Result<()> {
        process::replace(&self.socket, descriptor)?;
        send_hello(&self.socket)?;
        let mut got = socket::receive(&self.socket, &mut self.buffer, Wait::Yes)?;
        let hello = Hello::from_packet(&self.buffer[..got.len]);
        let (Ok(_), Some(channel)) = (hello, got.fds.pop()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        process::replace(&self.socket, &channel)?;
        send_hello(&self.socket)
    }

    fn reset(&mut self) {
        self.interrupted.store(false, Ordering::Relaxed);
        self.incoming = Reassembler::new(HOST_MESSAGE_BYTES);
        self.incoming.accept_any();
        self.descriptor = None;
        self.next_seq = 1;
        self.unacked.clear();
        self.unacked_bytes = 0;
        self.batch.clear();
        self.batch_bytes = 0;
        self.last_flush = Instant::now();
        self.execution = None;
        self.calls = 0;
        self.reply = None;
    }
}
