//! A worker's fork of itself, and how the child becomes a worker of its own. Knows no engine.
//!
//! The descriptor in the order is only the way over which the child introduces itself: the parent has had it, so nothing
//! that comes over it later is believed. What the child gets in return, and its parent never had, is its channel.

use super::{EXIT_PROTOCOL, Link, say_hello};
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

/// Exit code of a child that did not get a channel of its own.
const EXIT_CHANNEL: i32 = 70;

impl Link {
    /// Forks as ordered, between two executions. Whether this process is the child now: then nothing of the parent's
    /// talk is left, and the next order is a `Start`.
    pub fn fork(&mut self, order: u64) -> bool {
        let Some(way) = self.descriptor.take() else { exit_now(EXIT_PROTOCOL) };
        match process::fork_sibling() {
            Ok(Fork::Child) => {
                if self.move_out(&way).is_err() {
                    exit_now(EXIT_CHANNEL);
                }
                self.begin_anew();
                return true;
            }
            Ok(Fork::Parent(_)) => {
                drop(way);
                self.send(&FromWorker::Forked { order });
            }
            Err(error) => {
                drop(way);
                let errno = error.raw_os_error().unwrap_or(0);
                self.send(&FromWorker::ForkFailed { order, errno });
            }
        }
        false
    }

    /// Exchanges the parent's channel for the way, and the way for a channel that only this process has.
    fn move_out(&mut self, way: &OwnedFd) -> io::Result<()> {
        process::replace(&self.socket, way)?;
        say_hello(&self.socket)?;
        let mut got = socket::receive(&self.socket, &mut self.buffer, Wait::Yes)?;
        let welcome = Hello::from_packet(&self.buffer[..got.len]);
        let (Ok(_), Some(channel)) = (welcome, got.fds.pop()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        process::replace(&self.socket, &channel)?;
        say_hello(&self.socket)
    }

    fn begin_anew(&mut self) {
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
