//! The standard input of this process for the script. Reads only while the script waits for it: what the script leaves belongs to
//! the next command of the shell.

use crate::error::CliError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use vm_system_daemon::{InputReader, ScriptInput, script_input};
use vm_system_protocol::limits::STDIN_CHUNK_BYTES;

/// Starts the thread that reads it. It ends with the process: a wait for a person may never end.
pub(super) fn of_this_process() -> Result<ScriptInput, CliError> {
    let failed = |error: io::Error| CliError::file("stdin", &error);
    // Not `io::stdin()`: its buffer would take more than the script wants.
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    let (input, reader) = script_input();
    let read = move || {
        while reader.wait_until_wanted() {
            if let Some(read) = read_while_wanted(&mut stdin, &reader) {
                reader.deliver(read);
            }
        }
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(read).map_err(failed)?;
    Ok(input)
}

/// One chunk, or nothing if the script gave up before there was one.
fn read_while_wanted(stdin: &mut File, reader: &InputReader) -> Option<io::Result<Vec<u8>>> {
    let mut chunk = vec![0; STDIN_CHUNK_BYTES as usize];
    loop {
        match poll(&mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => continue,
            Err(error) => return Some(Err(error.into())),
            Ok(_) if !reader.is_wanted() => return None,
            Ok(_) => {}
        }
        match stdin.read(&mut chunk) {
            Ok(len) => {
                chunk.truncate(len);
                return Some(Ok(chunk));
            }
            // Another process that shares it was faster, or a signal came.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}
