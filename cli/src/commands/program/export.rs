//! `program export`

use super::call;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use vm_system_protocol::control::{ArchiveKind, DurableOp, DurableReply};

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
    let cannot =
        |error: &io::Error| CliError::new(exit::FAILED, format!("cannot write {}: {error}", path.display()));
    let mut file = create(path).map_err(|error| cannot(&error))?;
    if let Err(error) = write(context, kind, &args.reference, &mut file).await {
        // An incomplete file cannot be imported.
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    file.sync_all().map_err(|error| cannot(&error))?;
    context.out.note(&format!("Exported to {}", path.display()));
    Ok(exit::OK)
}

/// Mode 0600: the file has all data of the program.
fn create(path: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}

async fn write(
    context: &Context,
    kind: ArchiveKind,
    reference: &str,
    to: &mut (dyn Write + Send),
) -> Result<(), CliError> {
    let mut after = None;
    loop {
        let op = DurableOp::Export { kind, reference: reference.to_owned(), after };
        let reply = call(context, op, None).await?;
        let part = expect_reply!(reply, DurableReply::Exported(part) => part);
        to.write_all(part.text.as_bytes()).map_err(|error| CliError::output(&error))?;
        match part.next {
            Some(next) => after = Some(Box::new(next)),
            None => return to.flush().map_err(|error| CliError::output(&error)),
        }
    }
}
