//! The `database` module: SQLite databases of the session's workspace, each with a separate connection.
//!
//! - [`open`]: a connection with its limits, and the names in the workspace's folder
//! - [`guard`]: the actions that SQLite refuses in every statement
//! - [`run`]: statements, their parameters and rows
//! - [`error`]: SQLite's errors in the form that scripts see
//! - [`sys`]: the only unsafe code: opening by a name relative to the workspace's folder

mod error;
mod guard;
mod open;
mod run;
mod sys;

use open::OpenDatabase;
use std::collections::BTreeMap;
use vm_system_protocol::broker::{DatabaseReply, DatabaseRequest, DatabaseTerms};
use vm_system_protocol::limits::SQL_DATABASES;
use vm_system_protocol::worker::HostError;

/// The databases that a session has open.
pub struct Databases {
    /// There is a folder for database files, the working directory.
    has_folder: bool,
    open: BTreeMap<String, OpenDatabase>,
}

impl Databases {
    /// No database is open. Database files are in the working directory, if `has_folder`.
    pub fn new(has_folder: bool) -> Self {
        Self { has_folder, open: BTreeMap::new() }
    }

    /// Carries out one request.
    pub fn handle_request(
        &mut self,
        request: &DatabaseRequest,
        terms: DatabaseTerms,
    ) -> Result<DatabaseReply, HostError> {
        match request {
            DatabaseRequest::Configure { database } => {
                self.connection(database, terms).map(|_| DatabaseReply::Done)
            }
            DatabaseRequest::Query { database, sql, parameters } => {
                run::query(self.connection(database, terms)?, sql, parameters, terms)
            }
            DatabaseRequest::Exec { database, sql, parameters } => {
                run::execute(self.connection(database, terms)?, sql, parameters, terms)
            }
            DatabaseRequest::Close { database } => {
                self.open.remove(database);
                Ok(DatabaseReply::Done)
            }
        }
    }

    /// Rolls back the transactions that an execution left open.
    pub fn roll_back(&mut self) {
        self.open.retain(|_, open| open.roll_back());
    }

    /// The open database with a name; it is opened again if the terms have changed.
    fn connection(&mut self, database: &str, terms: DatabaseTerms) -> Result<&mut OpenDatabase, HostError> {
        let fits = self.open.get(database).is_some_and(|open| open.fits(terms));
        if !fits {
            self.open.remove(database);
            if self.open.len() >= SQL_DATABASES {
                let message = format!("ERR_DATABASE_LIMIT: {SQL_DATABASES} databases are open already");
                return Err(HostError { code: "ERR_DATABASE_LIMIT".to_owned(), message });
            }
            let open = OpenDatabase::new(database, self.has_folder, terms)?;
            self.open.insert(database.to_owned(), open);
        }
        let open = self.open.get_mut(database).ok_or_else(|| HostError {
            code: "EBROKER".to_owned(),
            message: "EBROKER: the database is not open".to_owned(),
        })?;
        open.limit_growth(terms)?;
        Ok(open)
    }
}
