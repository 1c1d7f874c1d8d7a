//! The zygote: a process that has everything a worker needs and never gets a job. It forks workers (and further
//! zygotes) as its own siblings, children of the keeper. It holds no session's descriptor longer than a fork takes.

use crate::link::say_hello;
use crate::roles::{Body, Modes, live};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::zygote::{FromZygote, ToZygote};
use vm_system_sandbox::process::{self, Fork};
use vm_system_sandbox::seccomp::{self, table_worker};
use vm_system_sandbox::{rlimit, socket};

/// Exit codes of zygotes and newborns that could not go on.
pub(crate) const EXIT_CHANNEL: i32 = 70;
const EXIT_PRELOAD: i32 = 71;
const EXIT_FILTER: i32 = 72;
/// Of a worker whose own code panicked.
pub(crate) const EXIT_PANIC: i32 = 73;

/// An order fits easily.
const ORDER_BYTES: usize = 64;

/// The first zygote: still without a filter.
pub(crate) fn first(channel: OwnedFd, modes: Modes) -> ! {
    // A message on standard error would be a forbidden system call once the filter is in place.
    std::panic::set_hook(Box::new(|_| {}));
    if process::close_from(process::FIRST_FD as u32 + 1).is_err() {
        process::exit_now(EXIT_CHANNEL);
    }
    let Ok(body) = (modes.preload)() else { process::exit_now(EXIT_PRELOAD) };
    let limited = rlimit::worker_constant();
    let Some(listener) = limited.and_then(|()| seccomp::install_with_listener(table_worker::TABLE)).ok()
    else {
        process::exit_now(EXIT_FILTER);
    };
    if say_hello(&channel).is_err() || say(&channel, FromZygote::Ready, &[listener.as_fd()]).is_err() {
        process::exit_now(EXIT_CHANNEL);
    }
    drop(listener);
    take_orders(channel, body)
}

fn say(channel: &OwnedFd, message: FromZygote, fds: &[BorrowedFd<'_>]) -> std::io::Result<()> {
    let bytes = encode(&message, ORDER_BYTES).map_err(std::io::Error::other)?;
    socket::send(channel, &[&bytes], fds, socket::Wait::Yes)
}

fn take_orders(channel: OwnedFd, body: Box<dyn Body>) -> ! {
    let mut buffer = [0; ORDER_BYTES];
    loop {
        let mut got = match socket::receive(&channel, &mut buffer, socket::Wait::Yes) {
            Ok(got) if got.len > 0 => got,
            // Keeper and supervisor have let go.
            _ => process::exit_now(0),
        };
        let (Ok(ToZygote::Fork { order, as_zygote }), Some(newborns)) =
            (decode::<ToZygote>(&buffer[..got.len]), got.fds.pop())
        else {
            process::exit_now(EXIT_CHANNEL)
        };
        match process::fork_sibling() {
            Ok(Fork::Parent(_)) => drop(newborns),
            Ok(Fork::Child) => {
                // From here on the zygote's channel is out of reach.
                if process::replace(&channel, &newborns).is_err() {
                    process::exit_now(EXIT_CHANNEL);
                }
                drop(newborns);
                if !as_zygote {
                    live(body, channel);
                }
                if say_hello(&channel).is_err() || say(&channel, FromZygote::Ready, &[]).is_err() {
                    process::exit_now(EXIT_CHANNEL);
                }
            }
            Err(error) => {
                // First of all: its end tells the supervisor that there is no newborn.
                drop(newborns);
                let errno = error.raw_os_error().unwrap_or(0);
                if say(&channel, FromZygote::ForkFailed { order, errno }, &[]).is_err() {
                    process::exit_now(EXIT_CHANNEL);
                }
            }
        }
    }
}
