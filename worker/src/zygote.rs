//! The zygote: a process with a preloaded engine that never runs a session. It forks workers (and further zygotes) as its own
//! siblings, children of the keeper. It holds no session's descriptor longer than a fork takes.

use crate::allocator;
use crate::engine::{LibraryEvaluationError, LibrarySource, ModuleText};
use crate::link::send_hello;
use crate::roles::{Modes, WorkerBody, run_body};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::limits::{LIBRARY_BYTES, ZYGOTE_MESSAGE_BYTES};
use vm_system_protocol::zygote::{FromZygote, ToZygote};
use vm_system_sandbox::process::{self, Fork};
use vm_system_sandbox::seccomp::{self, table_worker};
use vm_system_sandbox::{rlimit, socket};

/// Exit codes of zygotes and new workers that could not continue.
pub(crate) const EXIT_CHANNEL: i32 = 70;
const EXIT_PRELOAD: i32 = 71;
const EXIT_FILTER: i32 = 72;
/// Exit code of a worker that panicked.
pub(crate) const EXIT_PANIC: i32 = 73;

/// Exit code of a zygote that could not evaluate its libraries.
const EXIT_LIBRARIES: i32 = 75;

/// The first zygote: still without a filter.
pub(crate) fn first(channel: OwnedFd, modes: Modes) -> ! {
    // A message on standard error would be a forbidden system call once the filter is in place.
    std::panic::set_hook(Box::new(|_| {}));
    allocator::end_on_failure();
    // Before the filter, under which the engine could not be prepared: every worker inherits both.
    let Ok(body) = (modes.preload)() else { process::exit_now(EXIT_PRELOAD) };
    let limited = rlimit::worker_constant();
    let Some(listener) = limited.and_then(|()| seccomp::install_with_listener(table_worker::TABLE)).ok()
    else {
        process::exit_now(EXIT_FILTER);
    };
    if send_hello(&channel).is_err()
        || send_message(&channel, &FromZygote::Ready, &[listener.as_fd()]).is_err()
    {
        process::exit_now(EXIT_CHANNEL);
    }
    // The listener is the supervisor's alone: a worker that had it could answer its own notifications.
    drop(listener);
    take_orders(channel, body)
}

fn send_message(channel: &OwnedFd, message: &FromZygote, fds: &[BorrowedFd<'_>]) -> std::io::Result<()> {
    let bytes = encode(message, ZYGOTE_MESSAGE_BYTES).map_err(std::io::Error::other)?;
    socket::send(channel, &[&bytes], fds, socket::Wait::Yes)
}

fn take_orders(channel: OwnedFd, mut body: Box<dyn WorkerBody>) -> ! {
    let mut buffer = [0; ZYGOTE_MESSAGE_BYTES];
    let (mut libraries, mut modules) = (Vec::new(), Vec::new());
    loop {
        let mut got = match socket::receive(&channel, &mut buffer, socket::Wait::Yes) {
            Ok(got) if got.len > 0 && !got.truncated => got,
            // Keeper and supervisor have closed the channel.
            _ => process::exit_now(0),
        };
        match (decode::<ToZygote>(&buffer[..got.len]), got.fds.pop()) {
            (Ok(ToZygote::Fork { order, as_zygote }), Some(child_channel)) => {
                if fork(&channel, child_channel, order, as_zygote) {
                    run_body(body, channel);
                }
            }
            (Ok(ToZygote::Library { name, id, global, source_bytes }), None) => {
                let Some(source) = receive_source(&channel, source_bytes) else {
                    process::exit_now(EXIT_CHANNEL)
                };
                libraries.push(LibrarySource { name, id, global, source });
            }
            (Ok(ToZygote::Evaluate), None) => {
                evaluate(&channel, body.as_mut(), std::mem::take(&mut libraries));
            }
            (Ok(ToZygote::Module { path, source_bytes }), None) => {
                let Some(source) = receive_source(&channel, source_bytes) else {
                    process::exit_now(EXIT_CHANNEL)
                };
                modules.push(ModuleText { path, source });
            }
            (Ok(ToZygote::Compile), None) => {
                let modules = std::mem::take(&mut modules);
                prepare(&channel, || body.compile(modules));
            }
            (Ok(ToZygote::PreparePrograms), None) => prepare(&channel, || body.prepare_programs()),
            _ => process::exit_now(EXIT_CHANNEL),
        }
    }
}

/// Prepares the engine for the workers that will be forked, and reports it; exits if that panics.
fn prepare(channel: &OwnedFd, work: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err() {
        process::exit_now(EXIT_PRELOAD);
    }
    if send_message(channel, &FromZygote::Loaded, &[]).is_err() {
        process::exit_now(EXIT_CHANNEL);
    }
}

/// Forks; returns whether this process is the new worker. Returns false in a new zygote too, after it has sent its hello.
fn fork(channel: &OwnedFd, child_channel: OwnedFd, order: u64, as_zygote: bool) -> bool {
    match process::fork_sibling() {
        Ok(Fork::Parent(_)) => drop(child_channel),
        Ok(Fork::Child) => {
            // From here on this process has no descriptor of the zygote's channel.
            if process::replace(channel, &child_channel).is_err() {
                process::exit_now(EXIT_CHANNEL);
            }
            drop(child_channel);
            if !as_zygote {
                return true;
            }
            if send_hello(channel).is_err() || send_message(channel, &FromZygote::Ready, &[]).is_err() {
                process::exit_now(EXIT_CHANNEL);
            }
        }
        Err(error) => {
            // Closed before the report is sent: the closed channel shows the supervisor that there is no worker.
            drop(child_channel);
            let errno = error.raw_os_error().unwrap_or(0);
            if send_message(channel, &FromZygote::ForkFailed { order, errno }, &[]).is_err() {
                process::exit_now(EXIT_CHANNEL);
            }
        }
    }
    false
}

/// Receives a library's source, in as many packets as needed.
fn receive_source(channel: &OwnedFd, source_bytes: u64) -> Option<String> {
    let wanted = usize::try_from(source_bytes).ok().filter(|bytes| *bytes <= LIBRARY_BYTES)?;
    let mut source = vec![0; wanted];
    let mut filled = 0;
    while filled < wanted {
        let got = socket::receive(channel, &mut source[filled..], socket::Wait::Yes).ok()?;
        if got.len == 0 || got.truncated {
            return None;
        }
        filled += got.len;
    }
    String::from_utf8(source).ok()
}

/// Evaluates the libraries and reports the result. A zygote exits if one of its libraries fails.
fn evaluate(channel: &OwnedFd, body: &mut dyn WorkerBody, libraries: Vec<LibrarySource>) {
    let names: Vec<String> = libraries.iter().map(|library| library.name.clone()).collect();
    let evaluated = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body.load_libraries(libraries)));
    let evaluated = evaluated.unwrap_or_else(|_| {
        let message = "the engine failed while it was evaluated".to_owned();
        Err(LibraryEvaluationError { name: names.join(", ").chars().take(200).collect(), message })
    });
    let reply = match evaluated {
        Ok(()) => FromZygote::Loaded,
        Err(LibraryEvaluationError { name, message }) => FromZygote::LibraryFailed { name, message },
    };
    let failed = reply != FromZygote::Loaded;
    if send_message(channel, &reply, &[]).is_err() {
        process::exit_now(EXIT_CHANNEL);
    }
    if failed {
        process::exit_now(EXIT_LIBRARIES);
    }
}
