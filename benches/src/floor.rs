//! Lower bounds: the time of the steps that no implementation can avoid on this machine, that is, a write that survives power
//! loss, and waking another thread through a socket. Other figures are compared with these.

use crate::figure::Figure;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use vm_system_sandbox::socket::{self, Wait};

/// About the size of a short execution's commit in the store's log (bytes).
const COMMIT_BYTES: usize = 5 * 4_120;
/// About the size of a request, and of its response (bytes).
const MESSAGE_BYTES: usize = 256;
/// Size of the file (bytes), which is overwritten and not enlarged, like the store's log after its first checkpoint.
const FILE_BYTES: usize = 4 << 20;

/// Overwrites one commit's bytes and flushes them to the disk of `folder`.
pub fn flush(folder: &Path, count: usize) -> io::Result<Figure> {
    use std::os::unix::fs::FileExt as _;
    let path = folder.join("floor");
    let file = File::create(&path)?;
    file.write_all_at(&vec![1; FILE_BYTES], 0)?;
    file.sync_all()?;
    let commit = vec![2; COMMIT_BYTES];
    let mut failed = None;
    let figure = Figure::of_times("floor: one commit's bytes, fdatasync", count, |round| {
        let place = (round * COMMIT_BYTES) % (FILE_BYTES - COMMIT_BYTES);
        if let Err(error) = file.write_all_at(&commit, place as u64).and_then(|()| file.sync_data()) {
            failed = Some(error);
        }
    });
    std::fs::remove_file(path)?;
    failed.map_or(Ok(figure), Err)
}

/// A round trip over a stream socket, as between a client and the supervisor.
pub fn stream(count: usize) -> io::Result<Figure> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    let echo = std::thread::spawn(move || {
        let mut bytes = [0; MESSAGE_BYTES];
        while theirs.read_exact(&mut bytes).is_ok() && theirs.write_all(&bytes).is_ok() {}
    });
    let mut bytes = [0; MESSAGE_BYTES];
    let figure = Figure::of_times("floor: round trip over a stream socket", count, |_| {
        // A failure would show as an implausible figure.
        let _ = ours.write_all(&bytes).and_then(|()| ours.read_exact(&mut bytes));
    });
    drop(ours);
    let _ = echo.join();
    Ok(figure)
}

/// A round trip over a packet socket, as between the supervisor and a worker.
pub fn packets(count: usize) -> io::Result<Figure> {
    let (ours, theirs) = socket::pair()?;
    let echo = std::thread::spawn(move || {
        let mut bytes = [0; MESSAGE_BYTES];
        while socket::receive(&theirs, &mut bytes, Wait::Yes).is_ok_and(|got| got.len > 0)
            && socket::send(&theirs, &[&bytes], &[], Wait::Yes).is_ok()
        {}
    });
    let mut bytes = [0; MESSAGE_BYTES];
    let figure = Figure::of_times("floor: round trip over a packet socket", count, |_| {
        let _ = socket::send(&ours, &[&bytes], &[], Wait::Yes)
            .and_then(|()| socket::receive(&ours, &mut bytes, Wait::Yes));
    });
    drop(ours);
    let _ = echo.join();
    Ok(figure)
}
