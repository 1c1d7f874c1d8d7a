//! Asynchronous standard streams: one thread each, because a read of stdin may never return.

use std::io::{self, Read as _, Write as _};
use std::thread::JoinHandle;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::runtime::Handle;

/// Buffer between a thread and the runtime (bytes).
const QUEUED_BYTES: usize = 256 * 1024;
/// Size of one read (bytes).
const CHUNK_BYTES: usize = 64 * 1024;

/// Stdin and stdout.
pub(super) struct Streams {
    pub(super) input: DuplexStream,
    pub(super) output: DuplexStream,
    /// Ends when `output` is dropped and everything is written, or when stdout is closed by its reader.
    pub(super) writer: JoinHandle<()>,
}

impl Streams {
    /// Must be called inside the runtime. The reading thread is not joined at the end of the process.
    pub(super) fn open() -> Self {
        let (input, mut filled) = tokio::io::duplex(QUEUED_BYTES);
        let (output, mut drained) = tokio::io::duplex(QUEUED_BYTES);
        let runtime = Handle::current();
        std::thread::spawn(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            loop {
                match io::stdin().lock().read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => return,
                    Ok(len) => {
                        if runtime.block_on(filled.write_all(&chunk[..len])).is_err() {
                            return;
                        }
                    }
                }
            }
        });
        let runtime = Handle::current();
        let writer = std::thread::spawn(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            while let Ok(len @ 1..) = runtime.block_on(drained.read(&mut chunk)) {
                let mut stdout = io::stdout().lock();
                if stdout.write_all(&chunk[..len]).and_then(|()| stdout.flush()).is_err() {
                    return;
                }
            }
        });
        Self { input, output, writer }
    }
}
