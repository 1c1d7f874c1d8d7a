//! The steps before and after SQLite recovers a database from its log: lost commits are refused or, if the operator accepts them,
//! reported, and the damaged log is kept. SQLite itself would drop them without a word.

use super::open::judge;
use super::wal_check::{OlderThan, WalDamage, WalVerdict, check, is_without_database};
use super::{Durability, in_use, second_look};
use crate::error::OpenError;
use rusqlite::Connection;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// The path with more text at its end.
pub(super) fn path_beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The error of a file that the kernel cannot use.
pub(super) fn unusable(path: &Path, what: &str, error: &io::Error) -> OpenError {
    let path = path.to_owned();
    if second_look::is_eio(error) {
        return OpenError::ReadError { path, detail: format!("{what}: {}", second_look::read_error(error)) };
    }
    OpenError::Unusable { path, detail: format!("{what}: {error}") }
}

/// The state of the log of a database that no process has open.
pub(super) fn verdict(database: &Path) -> Result<WalVerdict, OpenError> {
    let (log, index) = (path_beside(database, "-wal"), path_beside(database, "-shm"));
    let verdict = check(&log, &index, database);
    let verdict = verdict.map_err(|error| unusable(&log, "cannot be checked", &error))?;
    let is_readable = matches!(verdict, WalVerdict::Whole | WalVerdict::Torn);
    if is_readable && in_use::lacks_its_log(database)? { Ok(WalVerdict::Lost) } else { Ok(verdict) }
}

/// Checks the log of a database that no process has open. An error refuses to open it.
pub(super) fn before_opening(
    database: &Path,
    durability: Durability,
    accepts_damage: bool,
) -> Result<WalVerdict, OpenError> {
    let (log, index) = (path_beside(database, "-wal"), path_beside(database, "-shm"));
    let unusable = |error: io::Error| unusable(&log, "cannot be checked", &error);
    if is_without_database(database, &log).map_err(unusable)? {
        return Err(OpenError::Emptied { path: database.to_owned(), log });
    }
    let verdict = verdict(database)?;
    match verdict {
        WalVerdict::Whole => {}
        WalVerdict::Lost if !accepts_damage => {
            return Err(OpenError::LostLog { path: log, database: database.to_owned() });
        }
        WalVerdict::Lost => tracing::error!(
            log = %log.display(),
            "acknowledged records may be lost: the log is missing, empty or cut, and the database was in use"
        ),
        WalVerdict::Older(than) => {
            let than = match than {
                OlderThan::Index => index,
                OlderThan::Database => database.to_owned(),
            };
            if !accepts_damage {
                return Err(OpenError::OlderLog { path: log, than, commits: None });
            }
            return put_aside(database, &than);
        }
        WalVerdict::Torn => {
            tracing::warn!(log = %log.display(), "the log ends with a transaction that was not committed, as after a power cut or on a full disk");
        }
        WalVerdict::Damaged(WalDamage { frame, commits, lost_frames, is_older }) => {
            let kept = path_beside(&log, ".damaged");
            // Under `normal` a power cut leaves the same, and the last commits may be lost.
            if durability == Durability::Full && !accepts_damage {
                return Err(OpenError::DamagedLog { path: log, frame, commits, lost_frames, kept });
            }
            match std::fs::copy(&log, &kept) {
                // The log is missing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                copied => drop(copied.map_err(unusable)?),
            }
            if is_older {
                OpenOptions::new().write(true).open(&log).and_then(|log| log.set_len(0)).map_err(unusable)?;
                std::fs::remove_file(&index).map_err(unusable)?;
            }
            tracing::error!(
                log = %log.display(),
                frame,
                commits,
                lost_frames,
                kept = %kept.display(),
                "acknowledged records are lost: the log is damaged from this frame on"
            );
        }
    }
    Ok(verdict)
}

/// Puts a log aside that is older than what is beside it, so that it is not copied over the database.
pub(super) fn put_aside(database: &Path, than: &Path) -> Result<WalVerdict, OpenError> {
    let (log, index) = (path_beside(database, "-wal"), path_beside(database, "-shm"));
    let unusable = |error: io::Error| OpenError::Unusable {
        path: log.clone(),
        detail: format!("cannot be put aside: {error}"),
    };
    let kept = path_beside(&log, ".saved");
    std::fs::rename(&log, &kept).map_err(unusable)?;
    match std::fs::remove_file(&index) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unusable(error)),
        _ => {}
    }
    tracing::error!(
        log = %log.display(),
        than = %than.display(),
        kept = %kept.display(),
        "acknowledged records may be lost: the log is older than what is beside it, and was put aside"
    );
    Ok(WalVerdict::Older(OlderThan::Database))
}

/// Empties a log of which SQLite has not used everything, so that a later check does not find its rest again. Parts of what follows a
/// damaged frame may be in the database already: it is checked in full.
pub(super) fn after_opening(
    connection: &Connection,
    database: &Path,
    verdict: WalVerdict,
) -> Result<(), OpenError> {
    if matches!(verdict, WalVerdict::Damaged(_) | WalVerdict::Older(_) | WalVerdict::Lost) {
        let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        let found = found.map_err(|error| judge(database, &error))?;
        if found != "ok" {
            return Err(OpenError::Corrupt { path: database.to_owned(), detail: found });
        }
    }
    if verdict != WalVerdict::Whole {
        let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        emptied
            .map_err(|error| OpenError::Unusable { path: database.to_owned(), detail: error.to_string() })?;
    }
    Ok(())
}
