//! The standard input of a command as its script reads it: the runtime says when it is wanted, and the command's thread reads it
//! then. Nothing is read ahead of the script: what it leaves belongs to the next command of the shell.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::time::timeout;
use vm_system_protocol::worker::{HostError, HostReply, StdinReply};

/// The runtime's end of a script's standard input.
#[derive(Debug)]
pub struct ScriptInput {
    demand: Arc<Demand>,
    read: AsyncMutex<ReadSide>,
}

/// The command's end: a thread reads while it is wanted.
#[derive(Debug)]
pub struct InputReader {
    demand: Arc<Demand>,
    chunks: mpsc::Sender<io::Result<Vec<u8>>>,
}

#[derive(Debug)]
struct ReadSide {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// Of the last chunk, what is not returned yet.
    rest: VecDeque<u8>,
    ended: bool,
}

/// The demand of a script that waits for its input.
#[derive(Debug, Default)]
struct Demand {
    state: Mutex<DemandState>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct DemandState {
    wanted: bool,
    closed: bool,
}

impl Demand {
    fn state(&self) -> MutexGuard<'_, DemandState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, change: impl FnOnce(&mut DemandState)) {
        change(&mut self.state());
        self.changed.notify_all();
    }
}

/// Takes the demand back when a script does not wait any more.
struct Wanted<'a>(&'a Demand);

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.set(|state| state.wanted = false);
    }
}

/// Both ends of a standard input.
pub fn script_input() -> (ScriptInput, InputReader) {
    let demand = Arc::new(Demand::default());
    // One chunk: the thread reads when a script waits, and not again until it waits again.
    let (sender, chunks) = mpsc::channel(1);
    let read = AsyncMutex::new(ReadSide { chunks, rest: VecDeque::new(), ended: false });
    (ScriptInput { demand: Arc::clone(&demand), read }, InputReader { demand, chunks: sender })
}

impl ScriptInput {
    /// Reads at most `most` bytes; waits at most this long for the first one. May be dropped at any time.
    pub(super) async fn read(&self, most: usize, wait: Duration) -> HostReply {
        let mut side = self.read.lock().await;
        if side.rest.is_empty() && !side.ended {
            let chunk = if let Ok(chunk) = side.chunks.try_recv() {
                // Came too late for the read before.
                Ok(Some(chunk))
            } else {
                let wanted = Wanted(&self.demand);
                self.demand.set(|state| state.wanted = true);
                let chunk = timeout(wait, side.chunks.recv()).await;
                drop(wanted);
                chunk
            };
            match chunk {
                Err(_) => return HostReply::Stdin(StdinReply::NotYet),
                Ok(Some(Err(error))) => return HostReply::Failed(read_error(&error)),
                Ok(None) => side.ended = true,
                Ok(Some(Ok(bytes))) if bytes.is_empty() => side.ended = true,
                Ok(Some(Ok(bytes))) => side.rest = bytes.into(),
            }
        }
        let len = side.rest.len().min(most);
        let bytes: Vec<u8> = side.rest.drain(..len).collect();
        HostReply::Stdin(if bytes.is_empty() { StdinReply::End } else { StdinReply::Data(bytes) })
    }
}

impl Drop for ScriptInput {
    fn drop(&mut self) {
        self.demand.set(|state| state.closed = true);
    }
}

impl InputReader {
    /// Blocks until a script waits for its input; false: none ever will again.
    pub fn wait_until_wanted(&self) -> bool {
        let state = self.demand.state();
        let waits = |state: &mut DemandState| !state.wanted && !state.closed;
        let state = self.demand.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }

    /// Whether a script still waits.
    pub fn is_wanted(&self) -> bool {
        let state = self.demand.state();
        state.wanted && !state.closed
    }

    /// Hands over what was read; no bytes are the end. Blocks while the last chunk is not taken. Not to be called in a runtime.
    pub fn deliver(&self, read: io::Result<Vec<u8>>) {
        self.demand.set(|state| state.wanted = false);
        let _ = self.chunks.blocking_send(read);
    }
}

fn read_error(error: &io::Error) -> HostError {
    let (code, words) = match error.raw_os_error() {
        Some(libc::EISDIR) => ("EISDIR", "illegal operation on a directory".to_owned()),
        Some(libc::EBADF) => ("EBADF", "bad file descriptor".to_owned()),
        _ => ("EIO", format!("i/o error ({error})")),
    };
    HostError { code: code.to_owned(), message: format!("{code}: {words}, read") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_mins(1);

    fn data(text: &str) -> HostReply {
        HostReply::Stdin(StdinReply::Data(text.as_bytes().to_vec()))
    }

    #[tokio::test]
    async fn a_chunk_is_handed_over_in_pieces_and_the_end_stays_the_end() {
        let (input, reader) = script_input();
        let thread = std::thread::spawn(move || {
            for chunk in ["abc", "d", ""] {
                assert!(reader.wait_until_wanted());
                reader.deliver(Ok(chunk.as_bytes().to_vec()));
            }
            reader
        });
        assert_eq!(input.read(2, LONG).await, data("ab"));
        assert_eq!(input.read(2, LONG).await, data("c"));
        assert_eq!(input.read(2, LONG).await, data("d"));
        for _ in 0..2 {
            assert_eq!(input.read(2, LONG).await, HostReply::Stdin(StdinReply::End));
        }
        let reader = thread.join().unwrap();
        drop(input);
        assert!(!reader.wait_until_wanted());
    }

    #[tokio::test]
    async fn nothing_is_wanted_while_no_script_waits() {
        let (input, reader) = script_input();
        assert!(!reader.is_wanted());
        assert_eq!(input.read(1, NOW).await, HostReply::Stdin(StdinReply::NotYet));
        assert!(!reader.is_wanted(), "after a read that was too short");
        {
            let mut read = Box::pin(input.read(1, LONG));
            tokio::select! {
                biased;
                _ = &mut read => unreachable!("nothing was delivered"),
                () = std::future::ready(()) => {}
            }
            assert!(reader.is_wanted());
        }
        assert!(!reader.is_wanted(), "after a read that was given up");
        let failed = io::Error::from_raw_os_error(libc::EISDIR);
        let thread = std::thread::spawn(move || reader.deliver(Err(failed)));
        let HostReply::Failed(error) = input.read(1, LONG).await else { panic!("no error") };
        assert_eq!(error.code, "EISDIR");
        thread.join().unwrap();
    }
}
