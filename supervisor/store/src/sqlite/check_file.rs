//! Checks a database that no process has open, without changing it or its log: SQLite would recover the log, and with that overwrite the
//! index that shows what a damaged log has lost. A log with content is therefore read in a copy.

use super::check::{self, CheckMode, examine};
use super::recovery::{self, path_beside};
use super::second_look::{self, Look};
use super::wal_check::{self, OlderThan, WalDamage, WalVerdict};
use super::{TemporaryFolder, commit_count, open};
use crate::error::OpenError;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rusqlite::{Connection, OpenFlags};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;
use vm_system_protocol::control::CheckReport;
use vm_system_protocol::counted::counted;
use vm_system_record::StoreError;

/// Where SQLite locks a database file (`src/os.h`): every open connection of a database with a log has a lock there.
const PENDING_BYTE: i64 = 0x4000_0000;
const LOCKED_BYTES: i64 = 512;

/// Checks the database at `path`.
pub fn check_file(path: &Path) -> Result<CheckReport, OpenError> {
    let unusable =
        |error: io::Error| OpenError::Unusable { path: path.to_owned(), detail: error.to_string() };
    // A pipe without a writer would wait for one.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => OpenError::Denied { path: path.to_owned() },
        _ => unusable(error),
    })?;
    let metadata = file.metadata().map_err(unusable)?;
    if !metadata.is_file() {
        return Err(unusable(io::Error::other("not a file")));
    }
    if let Some(pid) = user_of(&file).map_err(|error| unusable(error.into()))? {
        let detail = format!(
            "the process {pid} has it open: stop it, or check the database of a running daemon with `vm-system ops check` without \
             --db"
        );
        return Err(OpenError::Unusable { path: path.to_owned(), detail });
    }
    let log = path_beside(path, "-wal");
    if wal_check::is_without_database(path, &log).map_err(unusable)? {
        return Err(OpenError::Emptied { path: path.to_owned(), log });
    }
    let verdict = recovery::verdict(path)?;
    let log_bytes = std::fs::metadata(&log).map_or(0, |log| log.len());
    let mut about = CheckReport { ok: true, bytes: metadata.len() + log_bytes, ..CheckReport::default() };
    let is_older =
        matches!(verdict, WalVerdict::Older(_) | WalVerdict::Damaged(WalDamage { is_older: true, .. }));
    about_log(verdict, &mut about);
    let uses_log = log_bytes > 0 && !is_older;
    second_look::opened_and_examined(path, || match examined(path, &log, uses_log, about.clone()) {
        Ok(report) => match check::of_the_disk(&report) {
            Some(what) => Look::Damaged { what, result: Ok(report) },
            None => Look::Done(Ok(report)),
        },
        Err(OpenError::ReadError { detail, .. }) => Look::Unreadable(detail),
        Err(OpenError::Corrupt { path, detail }) => {
            Look::Damaged { what: detail.clone(), result: Err(OpenError::Corrupt { path, detail }) }
        }
        failed => Look::Done(failed),
    })
}

/// Adds what is found in the database, read with its log or alone.
fn examined(
    path: &Path,
    log: &Path,
    uses_log: bool,
    mut report: CheckReport,
) -> Result<CheckReport, OpenError> {
    let go_on = || Ok::<(), StoreError>(());
    let alone = |report: &mut CheckReport| {
        let connection = unchanging(path).map_err(|error| open::judge(path, &error))?;
        Ok(examine(&connection, CheckMode::WholeFile, &go_on, report))
    };
    let examined = if uses_log {
        let folder = TemporaryFolder::make()?;
        let _lock = crate::StoreLock::acquire(folder.path(), None)?;
        let copy = folder.path().join("copy.db");
        let copied = copy_private(path, &copy).and_then(|()| copy_private(log, &path_beside(&copy, "-wal")));
        copied.map_err(|error| {
            let what = "its log has content, so it is checked in a copy, which cannot be made";
            recovery::unusable(path, what, &error)
        })?;
        let connection =
            open::read_only(&copy, Duration::from_secs(5)).map_err(|error| open::judge(path, &error))?;
        if commit_count::missing_from_log(commit_count::in_file(path), &connection).is_some() {
            about_log(WalVerdict::Older(OlderThan::Database), &mut report);
            alone(&mut report)?
        } else {
            examine(&connection, CheckMode::WholeFile, &go_on, &mut report)
        }
    } else {
        alone(&mut report)?
    };
    examined.map_err(|error| OpenError::Unusable { path: path.to_owned(), detail: error.to_string() })?;
    Ok(report)
}

/// The process that has the database open, if one has.
fn user_of(file: &File) -> nix::Result<Option<i32>> {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as _,
        l_whence: libc::SEEK_SET as _,
        l_start: PENDING_BYTE,
        l_len: LOCKED_BYTES,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_GETLK(&mut lock))?;
    Ok((i32::from(lock.l_type) != libc::F_UNLCK).then_some(lock.l_pid))
}

/// A connection that takes no lock and makes no file: nobody changes the database.
pub(super) fn unchanging(path: &Path) -> Result<Connection, rusqlite::Error> {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    Connection::open_with_flags(uri, flags)
}

fn copy_private(from: &Path, to: &Path) -> io::Result<()> {
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut File::open(from)?, &mut to).map(drop)
}

fn about_log(verdict: WalVerdict, report: &mut CheckReport) {
    let detail = match verdict {
        WalVerdict::Whole => return,
        WalVerdict::Torn => {
            "the log ends with an incomplete transaction, as after a power cut: nothing that was acknowledged under `full` is in it"
                .to_owned()
        }
        WalVerdict::Lost => {
            "the log is missing, empty or cut, and the database was in use when its process ended: acknowledged records that only the \
             log had are lost"
                .to_owned()
        }
        WalVerdict::Older(than) => {
            let than = match than {
                OlderThan::Index => "its index (-shm)",
                OlderThan::Database => "the database",
            };
            format!("the log is older than {than}: the files were copied at different times; it was left out")
        }
        WalVerdict::Damaged(WalDamage { frame, commits, lost_frames, is_older }) => {
            let pages = lost_frames.map_or_else(String::new, |frames| format!(", {}", counted(frames, "page")));
            let older = if is_older { "; the database is newer than what is readable of the log" } else { "" };
            format!(
                "the log is damaged at frame {frame}: at least {commits} commits{pages} behind it are lost{older}; records after \
                 the newest one are lost"
            )
        }
    };
    report.add("log", None, detail);
}
