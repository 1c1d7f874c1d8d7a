//! Why a database cannot be opened, and what to do.

use std::path::{Path, PathBuf};
use vm_system_protocol::counted::counted;

/// How much a log lacks of its database.
fn missing(commits: Option<u64>) -> String {
    commits.map_or_else(String::new, |commits| {
        format!(", which has {} that are not in it", counted(commits, "later commit"))
    })
}

/// How much of a log is lost, as far as it is known.
fn lost(commits: u64, frames: Option<u64>) -> String {
    let commits = (commits > 0).then(|| format!("at least {}", counted(commits, "commit")));
    let frames = frames.map(|frames| counted(frames, "page"));
    let known: Vec<String> = commits.into_iter().chain(frames).collect();
    if known.is_empty() { String::new() } else { format!(" ({} behind it)", known.join(", ")) }
}

fn holder(pid: Option<u32>, socket: Option<&Path>) -> String {
    let pid = pid.map(|pid| format!("pid {pid}"));
    let socket = socket.map(|socket| format!("socket {}", socket.display()));
    let known: Vec<String> = pid.into_iter().chain(socket).collect();
    if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) }
}

/// How the lock of a holder is released.
const fn release(exiting: bool) -> &'static str {
    if exiting {
        "that process was killed and cannot exit; a file system that does not respond (FUSE, a server that is gone) may hold \
         it: end its server or `umount -f` it"
    } else {
        "stop it first"
    }
}

/// Why a store could not be opened. The message contains what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another supervisor owns the state directory.
    #[error(
        "{} is in use by another supervisor{}: {}, or choose another {option}",
        path.display(), holder(*pid, socket.as_deref()), release(*exiting)
    )]
    InUse {
        /// The state directory, or the database.
        path: PathBuf,
        /// The command-line option that names it.
        option: &'static str,
        /// The supervisor that has the database, if the lock file names it.
        pid: Option<u32>,
        /// Where it listens, if the lock file names it.
        socket: Option<PathBuf>,
        /// It was killed and cannot exit.
        exiting: bool,
    },
    /// A newer version of the program has migrated the database.
    #[error(
        "{} has schema version {found}, and this program opens versions up to {known}: start the newer program, or restore a backup",
        path.display()
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        found: u32,
        /// The newest version that this program supports.
        known: u32,
    },
    /// The database was created by a program before the first release.
    #[error(
        "{} has schema version {found}, of a program before the first release, and this program opens schema version {known}: to start with \
         an empty database, move it away or choose another --state-dir; what is in it is read by the program that wrote it",
        path.display()
    )]
    Unreleased {
        /// The database file.
        path: PathBuf,
        found: u32,
        /// The version that this program writes.
        known: u32,
    },
    /// The file is not a database of ours, or damaged.
    #[error(
        "{} is damaged or not a database ({detail}): `vm-system ops check --db` with this path shows what it cost; move it away and \
         restore a backup, or start with an empty state directory",
        path.display()
    )]
    Corrupt {
        /// The database file.
        path: PathBuf,
        detail: String,
    },
    /// The disk fails to read.
    #[error(
        "{}: {detail}: nothing was changed. `dmesg` names the disk and the reason; start again when it can be read, and if it stays so, \
         copy the folder to another disk",
        path.display()
    )]
    ReadError {
        /// The database file.
        path: PathBuf,
        /// The error of the read.
        detail: String,
    },
    /// The database file, or its content, is gone.
    #[error(
        "{} is missing or empty, and its log {} is not: what was stored cannot be read without it. Bring the file back if it was moved; or \
         keep a copy of the folder and restore a backup, or move both away to start with an empty database",
        path.display(), log.display()
    )]
    Emptied {
        /// The database file.
        path: PathBuf,
        /// The write-ahead log.
        log: PathBuf,
    },
    /// Committed transactions in the write-ahead log cannot be read.
    #[error(
        "{} is damaged at frame {frame}{}, or missing: acknowledged records from there on would be lost. Keep a copy of the \
         folder and restore a backup, or start once with --accept-damage, which keeps the log as {}",
        path.display(), lost(*.commits, *.lost_frames), kept.display()
    )]
    DamagedLog {
        /// The write-ahead log.
        path: PathBuf,
        /// The log's first frame that cannot be read, from 1; 0 is the header.
        frame: u64,
        /// Commits that can be recognised from there on.
        commits: u64,
        /// Frames of commits from there on, if the log's index counts them.
        lost_frames: Option<u64>,
        /// The name of a copy of the log.
        kept: PathBuf,
    },
    /// The files are of different times.
    #[error(
        "{} is older than {}{}: the files were copied at different times. With this log acknowledged records would be lost, and others \
         mixed with older ones. Bring back the files of one time together, or restore a backup; `--accept-damage` starts with the \
         database file alone, without the records that only logs have, and keeps this log with the ending .saved",
        path.display(), than.display(), missing(*.commits)
    )]
    OlderLog {
        /// The write-ahead log.
        path: PathBuf,
        /// The newer file: the log's index, or the database.
        than: PathBuf,
        /// Commits of the database that are not in the log, if they are counted.
        commits: Option<u64>,
    },
    /// The log of a database that was in use is gone, or a part of it.
    #[error(
        "{} is missing, empty or cut, and {} was in use when its process ended: acknowledged records that only this log has would be \
         lost. Bring the log back, or keep a copy of the folder and restore a backup; `--accept-damage` starts with what is there, which is \
         everything if another program, such as sqlite3, has copied the log into the database and removed it",
        path.display(), database.display()
    )]
    LostLog {
        /// The write-ahead log.
        path: PathBuf,
        /// The database file.
        database: PathBuf,
    },
    /// The database was deleted while a supervisor used it, and that supervisor saved the content.
    #[error(
        "{} {}, and {} has the content that it had then: rename this copy to use it, or move it away to start with {}",
        path.display(),
        if *.is_replaced { "was replaced while a supervisor used it" } else { "is missing" },
        saved.display(),
        if *.is_replaced { "the other file" } else { "an empty database" }
    )]
    Deleted {
        /// The database file.
        path: PathBuf,
        /// The copy.
        saved: PathBuf,
        /// Another file has its name.
        is_replaced: bool,
    },
    /// Another process holds the database without the lock file (a shell, a backup tool).
    #[error("{} is locked by another process: end it and try again", path.display())]
    Locked {
        /// The database file.
        path: PathBuf,
    },
    /// The directory or file belongs to another user.
    #[error("{}: permission denied: start as its owner, or choose another --state-dir", path.display())]
    Denied {
        /// The directory or file.
        path: PathBuf,
    },
    /// Others than the user of the supervisor (and root) may put files of their own in place of the supervisor's.
    #[error(
        "the state directory {} {why}: others could replace the database. `chmod 0700` it as the supervisor's user, or choose \
         another --state-dir",
        path.display()
    )]
    NotPrivate {
        /// The state directory.
        path: PathBuf,
        /// Who may.
        why: String,
    },
    /// The state directory is not a folder.
    #[error("{} is not a folder: choose another --state-dir", path.display())]
    NotAFolder { path: PathBuf },
    /// The folder of a temporary database could not be created.
    #[error("{}: cannot create a folder for temporary files ({detail}): set TMPDIR to a folder that you may write", path.display())]
    NoTemporaryFolder {
        /// The parent folder.
        path: PathBuf,
        detail: String,
    },
    /// The directory or file cannot be used.
    #[error("{}: {detail}", path.display())]
    Unusable {
        /// The directory or file.
        path: PathBuf,
        detail: String,
    },
}
