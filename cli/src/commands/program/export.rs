//! `program export`

use crate::context::Context;
use crate::error::{CliError, exit};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use vm_system_protocol::control::{ArchiveExport, ArchiveKind};

/// Arguments of `program export`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A program; with `--execution` an execution: name, id, or unique beginning of an id
    #[arg(value_name = "NAME")]
    reference: String,
    /// Export an execution that waits or has ended, with its states, tasks and output
    #[arg(long)]
    execution: bool,
    /// Write to this file, readable only by you; one that exists is replaced [default: stdout]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let kind = if args.execution { ArchiveKind::Execution } else { ArchiveKind::Program };
    let Some(path) = &args.to else {
        // Unlike results, data is not escaped for terminals.
        write(context, kind, &args.reference, &mut io::stdout()).await?;
        return Ok(exit::OK);
    };
    let cannot = |error: &io::Error| CliError::written_file(path.display(), error);
    let there = path.symlink_metadata().ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        // A pipe or a link, which is not replaced.
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(path).map_err(|error| cannot(&error))?;
        write(context, kind, &args.reference, &mut file).await?;
    } else {
        // An incomplete file cannot be imported: the path gets the whole one. Mode 0600: it has all data of the program.
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| cannot(&error))?;
        write(context, kind, &args.reference, &mut file).await?;
        file.as_file().sync_all().map_err(|error| cannot(&error))?;
        file.persist(path).map_err(|error| cannot(&error.error))?;
    }
    let instead = if there.is_some() { ", instead of the file that was there" } else { "" };
    context.out.note(&format!("Exported to {}{instead}", path.display()));
    Ok(exit::OK)
}

async fn write(
    context: &Context,
    kind: ArchiveKind,
    reference: &str,
    to: &mut (dyn Write + Send),
) -> Result<(), CliError> {
    let mut after = None;
    loop {
        let op = ArchiveExport { kind, reference: reference.to_owned(), after };
        let part = context.call_once(op, None).await?;
        to.write_all(part.text.as_bytes()).map_err(|error| CliError::output(&error))?;
        match part.next {
            Some(next) => after = Some(next),
            None => return to.flush().map_err(|error| CliError::output(&error)),
        }
    }
}
