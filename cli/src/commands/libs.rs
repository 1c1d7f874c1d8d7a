//! `libs …`: JavaScript libraries that templates may name.
//!
//! The client reads files and runs npm, with the user's rights and configuration, and sends the source to the daemon.

mod download;
mod install;
pub(super) mod list;
mod remove;
mod verify;

use crate::context::Context;
use crate::error::CliError;
use clap::Subcommand;
use vm_system_protocol::control::{LibraryCatalog, LibraryInfo, LibraryInstall};
use vm_system_protocol::counted::counted;

/// Verbs of libraries.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Install a package from the npm registry, or a file
    Install(install::Args),
    /// Install the missing libraries of the catalog: axios, dayjs, lodash, moment, ramda, zustand
    Download(download::Args),
    /// Show the installed libraries, and the rest of the catalog
    List,
    /// Compare the files of installed libraries with their recorded hashes
    Verify(verify::Args),
    /// Remove an installed library; existing sessions keep it
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

/// The installed libraries and the rest of the catalog.
async fn catalog(context: &Context) -> Result<Vec<LibraryInfo>, CliError> {
    context.call(LibraryCatalog).await
}

/// Sends a library to the daemon.
async fn send(context: &Context, library: LibraryInstall) -> Result<LibraryInfo, CliError> {
    context.call(library).await
}

/// `Installed library: lodash-4.17.21 (73015 bytes of lodash.min.js, global _)`.
fn installed_line(library: &LibraryInfo, file: &str) -> String {
    let bytes = library.bytes.unwrap_or_default();
    let global = library.global.as_ref().map(|name| format!(", global {name}")).unwrap_or_default();
    format!("Installed library: {} ({} of {file}{global})", library.name, counted(bytes, "byte"))
}
