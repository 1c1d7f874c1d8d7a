//! `ops backup`: receives a copy of the database and stores it with the rights of this process.

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::signals::Interrupts;
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use vm_system_protocol::control::{BackupBegin, BackupEnd, BackupInfo, BackupPart};
use vm_system_spawn::libraries::hex;

/// Arguments of `ops backup`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The new file, readable only by you
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let path = &args.file;
    if !args.force && path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let cannot = |error: &io::Error| CliError::written_file(path.display(), error);
    // Mode 0600, removed unless it gets its name.
    let mut file = tempfile::Builder::new()
        .prefix(".vm-system-backup-")
        .tempfile_in(folder)
        .map_err(|error| cannot(&error))?;
    let interrupts = Interrupts::listen()?;
    let info = tokio::select! {
        info = receive(context, &mut file, path) => info?,
        () = interrupts.next() => return Err(CliError::silent(interrupts.exit_code())),
    };
    file.as_file().sync_all().map_err(|error| cannot(&error))?;
    if args.force {
        file.persist(path).map_err(|error| cannot(&error.error))?;
    } else if let Err(error) = file.persist_noclobber(path) {
        let has_come = error.error.kind() == io::ErrorKind::AlreadyExists;
        return Err(if has_come { exists(path) } else { cannot(&error.error) });
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| cannot(&error))?;
    let line = format!("Backed up {} bytes to {} (SHA-256 {})", info.bytes, path.display(), info.sha256);
    let result = serde_json::json!({
        "file": path.display().to_string(),
        "bytes": info.bytes,
        "sha256": info.sha256,
        "at": info.at,
    });
    context.out.done(&result, &line, &path.display().to_string())?;
    Ok(exit::OK)
}

fn exists(path: &Path) -> CliError {
    CliError::new(exit::FAILED, format!("{} exists already", path.display()))
        .with_hint("choose another name, or replace it with --force")
}

async fn receive(context: &Context, file: &mut NamedTempFile, path: &Path) -> Result<BackupInfo, CliError> {
    let info = context.call(BackupBegin).await?;
    let result = transfer(context, file, path, &info).await;
    // Without it the daemon gives the copy up after a minute; the first error matters.
    let _ = context.call(BackupEnd { backup: info.id.clone() }).await;
    result.map(|()| info)
}

async fn transfer(
    context: &Context,
    file: &mut NamedTempFile,
    path: &Path,
    info: &BackupInfo,
) -> Result<(), CliError> {
    let progress = progress(context, info.bytes);
    let (mut at, mut hash) = (0, Sha256::new());
    while at < info.bytes {
        let op = BackupPart { backup: info.id.clone(), at };
        let part = context.call(op).await?;
        if part.is_empty() {
            break;
        }
        hash.update(&part);
        file.write_all(&part).map_err(|error| CliError::written_file(path.display(), &error))?;
        at += part.len() as u64;
        progress.set_position(at);
    }
    progress.finish_and_clear();
    let received = hex(&hash.finalize().into());
    if at != info.bytes || received != info.sha256 {
        let message = format!("the copy is not what the daemon sent: {at} of {} bytes", info.bytes);
        return Err(CliError::internal(message).with_hint("try again"));
    }
    Ok(())
}

/// On a terminal only.
fn progress(context: &Context, bytes: u64) -> ProgressBar {
    if !context.out.style.stderr_is_terminal() || context.out.quiet {
        return ProgressBar::hidden();
    }
    // An invalid template would be a bug; the default one is readable too.
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(bytes).with_style(style)
}
