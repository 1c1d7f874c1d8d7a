//! Copies of the control database for administrators, and its check. A copy is a file without a name, which its client reads in parts:
//! the supervisor writes to no path that a client names. One at a time; one that is not read any more is given up, at once if the
//! connection that has begun it ends.

use super::errors::invalid;
use super::{Ops, VerbCall};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;
use vm_system_protocol::control::{
    BackupBegin, BackupEnd, BackupInfo, BackupPart, CheckReport, DatabaseCheck, ErrorCode, OpError,
    PART_BYTES,
};
use vm_system_spawn::libraries::hex;

/// A copy that was not read for so long is given up: its client has gone.
const IDLE: Duration = Duration::from_mins(1);

/// The copy that is being transferred.
#[derive(Default)]
pub(super) struct Backups(Mutex<Option<Transfer>>);

struct Transfer {
    id: String,
    /// None while the copy is being written.
    file: Option<Arc<File>>,
    used: Instant,
}

/// The transfer that a request has begun; it ends with this value, unless the copy was made.
struct Begun {
    backups: Arc<Backups>,
    id: String,
    is_made: bool,
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.is_made {
            self.backups.end(&self.id);
        }
    }
}

impl Backups {
    fn lock(&self) -> MutexGuard<'_, Option<Transfer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>) -> Result<Begun, OpError> {
        let mut current = self.lock();
        if current.is_some() {
            return Err(OpError::new(ErrorCode::CapacityExceeded, "another backup is in progress")
                .with_hint(
                    "try again when it has ended; one that is not read any more is given up after a minute",
                ));
        }
        let id = Uuid::new_v4().simple().to_string();
        *current = Some(Transfer { id: id.clone(), file: None, used: Instant::now() });
        Ok(Begun { backups: Arc::clone(self), id, is_made: false })
    }

    fn made(&self, id: &str, file: Arc<File>) {
        if let Some(transfer) = self.lock().as_mut().filter(|transfer| transfer.id == id) {
            (transfer.file, transfer.used) = (Some(file), Instant::now());
        }
    }

    fn file(&self, id: &str) -> Result<Arc<File>, OpError> {
        let mut current = self.lock();
        let found = current.as_mut().filter(|transfer| transfer.id == id).and_then(|transfer| {
            transfer.used = Instant::now();
            transfer.file.clone()
        });
        found.ok_or_else(|| {
            OpError::new(ErrorCode::NotFound, "there is no such backup")
                .with_hint("begin again: a backup that is not read for a minute is given up")
        })
    }

    fn end(&self, id: &str) {
        self.lock().take_if(|transfer| transfer.id == id);
    }

    /// Ends the transfer if it was not used for long; returns when to look again.
    fn expire(&self, id: &str) -> Option<Instant> {
        let mut current = self.lock();
        let until = current.as_ref().filter(|transfer| transfer.id == id)?.used + IDLE;
        if until > Instant::now() {
            return Some(until);
        }
        current.take();
        None
    }
}

impl Ops {
    pub(crate) async fn backup_begin(
        &self,
        call: &VerbCall<'_>,
        _: BackupBegin,
    ) -> Result<BackupInfo, OpError> {
        let result = self.make_backup(call).await;
        let subject = result.as_ref().map_or_else(|_| String::new(), |info| info.sha256.clone());
        self.audit(call, subject, &result).await;
        result
    }

    async fn make_backup(&self, call: &VerbCall<'_>) -> Result<BackupInfo, OpError> {
        only_administrators(call, "copy the database")?;
        let mut begun = self.backups.begin()?;
        let at = self.store.now();
        let file = self.store.backup().await.map_err(|error| self.stored(error))?;
        let hashed = tokio::task::spawn_blocking(move || fingerprint(file)).await;
        let (file, bytes, sha256) = hashed
            .map_err(|_| io::Error::from(io::ErrorKind::Interrupted))
            .and_then(|hashed| hashed)
            .map_err(|error| unreadable(&error))?;
        let id = begun.id.clone();
        self.backups.made(&id, Arc::new(file));
        begun.is_made = true;
        let (backups, watched) = (Arc::clone(&self.backups), id.clone());
        let finished = call.presence.finished.clone();
        tokio::spawn(async move {
            let expired = async {
                while let Some(at) = backups.expire(&watched) {
                    tokio::time::sleep_until(at.into()).await;
                }
            };
            tokio::select! {
                () = finished.cancelled() => backups.end(&watched),
                () = expired => {}
            }
        });
        Ok(BackupInfo { id, bytes, sha256, at })
    }

    pub(crate) async fn backup_part(
        &self,
        call: &VerbCall<'_>,
        BackupPart { backup, at }: BackupPart,
    ) -> Result<Vec<u8>, OpError> {
        only_administrators(call, "copy the database")?;
        let file = self.backups.file(&backup)?;
        let part = tokio::task::spawn_blocking(move || part_of(&file, at)).await;
        let part = part.map_err(|_| io::Error::from(io::ErrorKind::Interrupted)).and_then(|part| part);
        part.map_err(|error| unreadable(&error))
    }

    #[expect(clippy::unused_async, reason = "as all handlers of verbs")]
    pub(crate) async fn backup_end(
        &self,
        call: &VerbCall<'_>,
        BackupEnd { backup }: BackupEnd,
    ) -> Result<(), OpError> {
        only_administrators(call, "copy the database")?;
        if backup.is_empty() {
            return Err(invalid("a backup has an id"));
        }
        self.backups.end(&backup);
        Ok(())
    }

    pub(crate) async fn database_check(
        &self,
        call: &VerbCall<'_>,
        _: DatabaseCheck,
    ) -> Result<CheckReport, OpError> {
        only_administrators(call, "check the database")?;
        let report = self.store.check().await.map_err(|error| self.stored(error))?;
        Ok(report)
    }
}

/// The database has the records of all owners, and the jails have their processes.
pub(super) fn only_administrators(call: &VerbCall<'_>, what: &str) -> Result<(), OpError> {
    if call.caller.admin {
        return Ok(());
    }
    Err(OpError::new(ErrorCode::NotPermitted, format!("only an administrator may {what}")).with_hint(
        "repeat the request as root, as the user that the daemon runs as, or with a token of role admin",
    ))
}

fn unreadable(error: &io::Error) -> OpError {
    OpError::new(ErrorCode::StorageUnavailable, format!("the copy of the database cannot be read: {error}"))
}

fn fingerprint(file: File) -> io::Result<(File, u64, String)> {
    let (mut hash, mut at, mut part) = (Sha256::new(), 0, vec![0; PART_BYTES]);
    loop {
        match file.read_at(&mut part, at)? {
            0 => break,
            read => {
                hash.update(&part[..read]);
                at += read as u64;
            }
        }
    }
    Ok((file, at, hex(&hash.finalize().into())))
}

fn part_of(file: &File, at: u64) -> io::Result<Vec<u8>> {
    let mut part = vec![0; PART_BYTES];
    let mut filled = 0;
    while filled < part.len() {
        match file.read_at(&mut part[filled..], at.saturating_add(filled as u64))? {
            0 => break,
            read => filled += read,
        }
    }
    part.truncate(filled);
    Ok(part)
}
