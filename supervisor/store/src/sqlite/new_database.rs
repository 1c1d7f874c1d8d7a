//! A new database: the file of an empty one, made when the program is tested and copied at a start. Carrying out the statements of
//! `schema.sql` instead takes four times as long, which is a sixth of `vm-system run`. Knows nothing of what is in the file.
//!
//! `new_database.bin` is the file in pieces: zeros left out (`u32`), bytes that follow (`u32`), those bytes; numbers in little endian.

use super::recovery::path_beside;
use super::{Durability, space};
use crate::error::OpenError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Puts the file in the place of an empty one, all of it or nothing. The path has no link, which would be replaced.
pub(super) fn write(path: &Path, pieces: &[u8], durability: Durability) -> Result<(), OpenError> {
    replace(path, &unpack(pieces), durability).map_err(|error| OpenError::Unusable {
        path: path.to_owned(),
        detail: space::with_problem(path, &error),
    })
}

fn replace(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let new = path_beside(path, "-new");
    // Of a start that was killed; it could have other permissions.
    let _ = fs::remove_file(&new);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
    let written = made.and_then(|mut file| {
        file.write_all(content)?;
        // Before the name: a machine that fails must not leave a file of this name with less in it.
        if durability == Durability::Off { Ok(()) } else { file.sync_all() }
    });
    if let Err(error) = written.and_then(|()| fs::rename(&new, path)) {
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    match path.parent() {
        // Before the first commit, which would be in the log of a file without a name.
        Some(folder) if durability != Durability::Off => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// The file of `new_database.bin`. What is not in this form ends it, and a test reads all of it.
pub(crate) fn unpack(mut pieces: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    let number = |from: &mut &[u8]| {
        let (number, rest) = from.split_first_chunk()?;
        *from = rest;
        usize::try_from(u32::from_le_bytes(*number)).ok()
    };
    while let (Some(zeros), Some(length)) = (number(&mut pieces), number(&mut pieces)) {
        let Some((bytes, rest)) = pieces.split_at_checked(length) else { break };
        content.resize(content.len() + zeros, 0);
        content.extend_from_slice(bytes);
        pieces = rest;
    }
    content
}
