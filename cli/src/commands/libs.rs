//! `libs …`: JavaScript libraries that templates may name.
//!
//! Files are read and npm is run by the client, with the user's rights and configuration; the daemon gets the source.

mod download;
mod install;
pub(super) mod list;
mod remove;
mod verify;

use crate::context::{Context, expect_reply};
use crate::error::CliError;
use clap::Subcommand;
use vm_system_protocol::control::{LibraryInfo, NewLibrary, Op, Reply};

/// Verbs of libraries.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Install a package of the npm registry, or a file
    Install(install::Args),
    /// Install what is missing of the original catalog: axios, dayjs, lodash, moment, ramda, zustand
    Download(download::Args),
    /// Show the libraries that are installed, and the rest of the catalog
    List,
    /// Compare installed libraries with what was installed
    Verify(verify::Args),
    /// Remove an installed library; sessions that have it keep it
    Remove(remove::Args),
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::Install(args) => install::run(context, args).await,
        Command::Download(args) => download::run(context, args).await,
        Command::List => list::run(context).await,
        Command::Verify(args) => verify::run(context, args).await,
        Command::Remove(args) => remove::run(context, args).await,
    }
}

/// What is installed, and what could be.
async fn catalog(context: &Context) -> Result<Vec<LibraryInfo>, CliError> {
    Ok(expect_reply!(context.call(Op::LibraryCatalog).await?, Reply::Libraries(list) => list))
}

/// Gives a library to the daemon.
async fn give(context: &Context, library: NewLibrary) -> Result<LibraryInfo, CliError> {
    let reply = context.call(Op::LibraryInstall(Box::new(library))).await?;
    Ok(*expect_reply!(reply, Reply::Library(library) => library))
}

/// `Installed library: lodash-4.17.21 (73015 bytes of lodash.min.js, global _)`.
fn installed_line(library: &LibraryInfo, file: &str) -> String {
    let bytes = library.bytes.unwrap_or_default();
    let global = library.global.as_ref().map(|name| format!(", global {name}")).unwrap_or_default();
    format!("Installed library: {} ({bytes} bytes of {file}{global})", library.name)
}
