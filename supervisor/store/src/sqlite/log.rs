//! The file of the store's write-ahead log, for the connections that write. SQLite writes a commit in two pieces for
//! each page and flushes it with `fsync`; here the pieces of a commit are one write, and a flush is an `fdatasync` of a file
//! that is already large enough. Decides nothing about what is written when: order, locks and recovery are
//! SQLite's. `sys.rs` registers it with SQLite.

mod sys;

pub(super) use sys::vfs;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A frame of the log is this header, then a page (`walformat.html`, section 2 of SQLite's documentation).
const FRAME_HEADER_BYTES: usize = 24;
/// Field of a frame's header: the database's size in pages after this commit; 0 in frames that do not end a commit.
const COMMIT_FIELD: std::ops::Range<usize> = 4..8;
/// Most frames of one transaction that are gathered (bytes).
const GATHERED_BYTES: usize = 256 * 1024;
/// If each commit is flushed, the log grows in steps of this size (bytes): flushing a larger file also flushes the file system's
/// journal, which doubles the time.
const GROWTH_BYTES: u64 = 1 << 20;

/// The log, open for writing.
///
/// Gathered frames are not in the file yet. Readers are not affected: SQLite lets other connections see a commit only after all
/// of its frames were written, and the frame that ends a commit writes the gathered ones. Every other access to the file
/// writes them too. A process that exits before loses only a transaction that was not committed.
#[derive(Debug)]
struct Log {
    file: File,
    is_writable: bool,
    /// Its path, until the folder entry is flushed.
    unnamed: Option<PathBuf>,
    /// Frames in order, starting at offset `begin`.
    gathered: Vec<u8>,
    begin: u64,
    /// Whether the last header belongs to a frame that ends a commit.
    ends_commit: bool,
    /// Whether the file is enlarged ahead of writes.
    grows_ahead: bool,
    /// The known size of the file (bytes).
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

    /// The offset of a piece that continues the last one.
    fn end(&self) -> u64 {
        self.begin + self.gathered.len() as u64
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let is_header = bytes.len() == FRAME_HEADER_BYTES;
        if is_header {
            self.ends_commit = bytes[COMMIT_FIELD] != [0; 4];
        }
        if offset != self.end() {
            // The log's header, a rewritten frame, or the first frame after a rollback.
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

    /// After an error the gathered frames are dropped: SQLite rolls the transaction back.
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

    /// Writes zeros after the next write. They are not valid frames: a frame repeats two numbers of the log's header.
    fn grow(&mut self, end: u64) {
        let grown = end.next_multiple_of(GROWTH_BYTES);
        let zeros = vec![0; usize::try_from(grown - end).unwrap_or(0)];
        // A disk that is too full for the zeros may still hold the commit.
        self.grows_ahead = self.file.write_all_at(&zeros, end).is_ok();
        self.grown = grown;
    }

    fn sync(&mut self) -> io::Result<()> {
        self.write_gathered()?;
        self.file.sync_data()?;
        if let Some(path) = self.unnamed.take() {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // Errors are ignored as in SQLite: some file systems cannot flush a folder.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }

    /// Reads as much as exists; returns its length (bytes).
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
