//! The schema and its versions: which databases are opened, and how one of an earlier version becomes one of this program's. Reads and
//! writes nothing but the schema and the two numbers in the file's header.

use super::open::judge;
use crate::error::OpenError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// `vmsy`: the application id that identifies our database.
pub(super) const APPLICATION_ID: i32 = 0x766d_7379;

/// The schema of this program.
pub(crate) const SCHEMA: StoreSchema = StoreSchema {
    // Not 1: programs before the first release wrote files with the lower numbers, by which those are recognized and refused.
    first: 20,
    new: include_bytes!("new_database.bin"),
    // A new field in a stored text (JSON) needs a step of its own, too: programs before it take the field for damage. A new step
    // needs a golden database of its version (`store/tests/golden.rs`), and the older ones stay: every later program opens them.
    steps: &[from_20],
};

/// Version 21.
fn from_20(c: &Connection) -> Result<(), rusqlite::Error> {
    c.execute_batch(include_str!("from_20.sql"))
}

/// The refusal of another program's database.
pub(super) fn foreign(path: &Path) -> OpenError {
    OpenError::Corrupt { path: path.to_owned(), detail: "it belongs to another program".to_owned() }
}

/// Migrates a database from one version to the next one, within the transaction of all steps.
pub(crate) type MigrationStep = fn(&Connection) -> Result<(), rusqlite::Error>;

/// An empty database, and the steps from the first version to each later one. Tests have others than [`SCHEMA`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreSchema {
    /// The oldest version that is opened.
    pub(crate) first: u32,
    /// The pieces of an empty database of a version that is opened (`new_database.rs`).
    pub(crate) new: &'static [u8],
    /// Step `n` migrates version `first + n` to the next one.
    pub(crate) steps: &'static [MigrationStep],
}

impl StoreSchema {
    /// The version that this program writes.
    pub(crate) const fn version(&self) -> u32 {
        self.first + self.steps.len() as u32
    }

    /// The version of a database of ours. Refuses databases of other programs, of newer versions, and of versions before the first
    /// release.
    pub(super) fn identify(&self, connection: &Connection, path: &Path) -> Result<u32, OpenError> {
        let judged = |error: rusqlite::Error| judge(path, &error);
        let version: i64 =
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(judged)?;
        let application: i32 =
            connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(judged)?;
        let (path, known) = (path.to_owned(), self.version());
        match (application, u32::try_from(version)) {
            (APPLICATION_ID, Ok(found)) if found > known => Err(OpenError::Newer { path, found, known }),
            (APPLICATION_ID, Ok(found)) if found >= self.first => Ok(found),
            (APPLICATION_ID, Ok(found)) => Err(OpenError::Unreleased { path, found, known }),
            (APPLICATION_ID, Err(_)) => {
                Err(OpenError::Corrupt { path, detail: format!("schema version {version}") })
            }
            _ => Err(foreign(&path)),
        }
    }

    /// Migrates a database to the newest version: all of it or nothing.
    pub(super) fn migrate(&self, connection: &mut Connection, found: u32) -> Result<(), rusqlite::Error> {
        // One transaction for all steps and the number: a process that is killed in between leaves the database as it was.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for step in self.steps.iter().skip((found - self.first) as usize) {
            step(&transaction)?;
        }
        transaction.pragma_update(None, "user_version", self.version())?;
        transaction.commit()
    }
}
