//! Reads texts to send to the supervisor: at most the size of a request, from any kind of file.

use crate::error::CliError;
use std::io::{self, BufRead, Read};
use std::path::Path;
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;

/// Reads a whole file; more than fits a request is an error, also for devices and growing files.
pub(crate) fn read_file(file: &Path) -> Result<String, CliError> {
    std::fs::File::open(file).and_then(read_text).map_err(|error| CliError::file(file.display(), &error))
}

/// Reads a line with its line feed; empty at the end of the input.
pub(crate) fn read_line(from: impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.take(CONTROL_FRAME_BYTES as u64).read_line(&mut line)? == CONTROL_FRAME_BYTES {
        return Err(too_large());
    }
    Ok(line)
}

/// Reads all of stdin.
pub(crate) fn read_stdin() -> Result<String, CliError> {
    read_text(io::stdin().lock()).map_err(|error| CliError::file("stdin", &error))
}

fn read_text(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let read = from.take(CONTROL_FRAME_BYTES as u64).read_to_string(&mut text)?;
    if read == CONTROL_FRAME_BYTES {
        return Err(too_large());
    }
    Ok(text)
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "it is too large to be sent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_input_is_refused_and_lines_keep_their_ends() {
        assert_eq!(read_text(io::repeat(b'x')).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let endless = io::BufReader::new(io::repeat(b'x'));
        assert_eq!(read_line(endless).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let mut lines = &b"one\ntwo"[..];
        assert_eq!(read_line(&mut lines).unwrap(), "one\n");
        assert_eq!(read_line(&mut lines).unwrap(), "two");
        assert_eq!(read_line(&mut lines).unwrap(), "");
    }
}
