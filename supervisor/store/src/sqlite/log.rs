//! The file of the store's write-ahead log, as the connections that write see it. SQLite writes a commit in two pieces for
//! each page and flushes it with `fsync`; here the pieces of a commit are one write, and a flush is an `fdatasync` of a file
//! that is already as large as it needs to be. Decides nothing about what is written when: order, locks and recovery are
//! SQLite's. `sys.rs` hands it to SQLite.

mod sys;

pub(super) use sys::vfs;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A frame of the log is this header, then a page (`walformat.html`, section 2 of SQLite's documentation).
const FRAME_HEADER_BYTES: usize = 24;
/// Offset in a frame's header of the database's size in pages after this commit; 0 in frames that do not end one.
const COMMIT_FIELD: std::ops::Range<usize> = 4..8;
/// Frames of one transaction that are gathered at most (bytes).
const GATHERED_BYTES: usize = 256 * 1024;
/// Where each commit is flushed, the log grows in such steps (bytes): what enlarges a file takes the file system's own
/// journal to flush, as long as everything else together.
const GROWTH_BYTES: u64 = 1 << 20;

/// The log, open for writing.
///
/// Gathered frames are not in the file yet. No reader notices: SQLite lets other connections see a commit only after all of its
/// frames were written, and the frame that ends a commit writes what is gathered. Every other access to the file
/// writes it too. A process that exits before has lost a transaction that was never committed.
#[derive(Debug)]
struct Log {
    file: File,
    is_writable: bool,
    /// As long as its folder does not surely name it.
    unnamed: Option<PathBuf>,
    /// Frames in order, from the offset `begin` on.
    gathered: Vec<u8>,
    begin: u64,
    /// Whether the last header was one of a frame that ends a commit.
    ends_commit: bool,
    /// Whether the file grows ahead of what is written.
    grows_ahead: bool,
    /// Up to here it has grown, as far as is known.
    grown: u64,
}

impl Log {
    /// Opens it, or creates it if it does not exist and `create` is set. A file without write permission is opened for reading,
    /// as by SQLite itself, which then reports the error at the first write.
    fn open(path: &Path, create: bool, grows_ahead: bool) -> io::Result<Self> {
        let is_new = create && !path.try_exists()?;
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(create).truncate(false).mode(0o600).open(path);
        let is_forbidden = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
        };
        let (file, is_writable) = match opened {
            Err(error) if is_forbidden(&error) => (File::open(path)?, false),
            opened => (opened?, true),
        };
        let grown = file.metadata()?.len();
        Ok(Self {
            file,
            is_writable,
            unnamed: is_new.then(|| path.to_owned()),
            gathered: Vec::new(),
            begin: 0,
            ends_commit: false,
            grows_ahead,
            grown,
        })
    }

    /// Where the next piece belongs if it continues the last one.
    fn end(&self) -> u64 {
        self.begin + self.gathered.len() as u64
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let is_header = bytes.len() == FRAME_HEADER_BYTES;
        if is_header {
            self.ends_commit = bytes[COMMIT_FIELD] != [0; 4];
        }
        if offset != self.end() {
            // The log's own header, a frame that is written again, the first one after a transaction that was undone.
            self.write_gathered()?;
            self.file.write_all_at(bytes, offset)?;
            self.begin = offset + bytes.len() as u64;
            return Ok(());
        }
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= GATHERED_BYTES || (self.ends_commit && !is_header) {
            self.write_gathered()?;
        }
        Ok(())
    }

    /// After an error nothing is gathered any more: SQLite undoes the transaction.
    fn write_gathered(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let end = self.end();
        if self.grows_ahead && end > self.grown {
            self.grow(end);
        }
        let written = self.file.write_all_at(&self.gathered, self.begin);
        self.gathered.clear();
        self.gathered.shrink_to(GATHERED_BYTES);
        self.begin = end;
        written
    }

    /// Zeros behind what is about to be written. They are no frames: a frame repeats two numbers of the log's header.
    fn grow(&mut self, end: u64) {
        let grown = end.next_multiple_of(GROWTH_BYTES);
        let zeros = vec![0; usize::try_from(grown - end).unwrap_or(0)];
        // A disk that is too full for it may still hold the commit.
        self.grows_ahead = self.file.write_all_at(&zeros, end).is_ok();
        self.grown = grown;
    }

    fn sync(&mut self) -> io::Result<()> {
        self.write_gathered()?;
        self.file.sync_data()?;
        if let Some(path) = self.unnamed.take() {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // As SQLite itself: there are file systems that cannot flush a folder.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }

    /// Reads as much as there is; gives its length (bytes).
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.write_gathered()?;
        let mut read = 0;
        while read < buffer.len() {
            match self.file.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.write_gathered()?;
        self.file.set_len(bytes)?;
        self.grown = self.grown.min(bytes);
        Ok(())
    }

    fn size(&mut self) -> io::Result<u64> {
        self.write_gathered()?;
        Ok(self.file.metadata()?.len())
    }
}

#[cfg(test)]
mod tests;
