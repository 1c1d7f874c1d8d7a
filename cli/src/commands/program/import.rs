//! `program import`

use super::show;
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use vm_system_protocol::control::{
    ImportBegin, ImportDrop, ImportEnd, ImportPart, ImportedObject, PART_BYTES,
};
use vm_system_protocol::counted::counted;

/// Arguments of `program import`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file that `program export` wrote; `-` reads it from stdin
    #[arg(value_name = "FILE")]
    file: String,
    /// The name of the program or the execution [default: the one in the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Executions: the name of the program that they run [default: the one in the file]
    #[arg(long, value_name = "NAME")]
    program_name: Option<String>,
    /// Executions: the template with their limits [default: the built-in one]
    #[arg(long, value_name = "TEMPLATE")]
    template_id: Option<String>,
    /// Executions: the folder whose files the program may use [default: no files]
    #[arg(long, value_name = "PATH")]
    worktree_path: Option<PathBuf>,
    /// For administrators: use the folder with the rights of this user (name or number) instead of your own
    #[arg(long, value_name = "USER", requires = "worktree_path")]
    as_user: Option<String>,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let mut file: Box<dyn Read + Send> = if args.file == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(&args.file).map_err(|error| CliError::file(&args.file, &error))?)
    };
    let worktree_path = args.worktree_path.as_deref();
    let worktree_path =
        worktree_path.map(|folder| crate::paths::worktree(folder, &context.target)).transpose()?;
    let new = ImportBegin {
        kind: None,
        name: args.name,
        program_name: args.program_name,
        template: args.template_id,
        worktree_path,
        as_user: args.as_user,
    };
    let import = context.call_once(new, None).await?;
    if let Err(error) = send(context, &import, &mut *file, &args.file).await {
        // The file of an error of the supervisor is dropped already.
        let _ = context.call_once(ImportDrop { import }, None).await;
        return Err(error);
    }
    match context.call_once(ImportEnd { import }, args.idempotency.idempotency_key).await? {
        ImportedObject::Program(program) => {
            let line = format!(
                "Imported program: {} with {} (ID: {})",
                program.name,
                counted(program.version, "version"),
                program.id
            );
            context.out.done(&program, &line, &program.id.to_string())?;
        }
        ImportedObject::Run(run) => {
            show::run(context, &run).await?;
        }
    }
    Ok(exit::OK)
}

async fn send(context: &Context, import: &str, file: &mut dyn Read, name: &str) -> Result<(), CliError> {
    let mut at = 0;
    loop {
        let mut bytes = Vec::new();
        let mut part = (&mut *file).take(PART_BYTES as u64);
        part.read_to_end(&mut bytes).map_err(|error| CliError::file(name, &error))?;
        if bytes.is_empty() {
            return Ok(());
        }
        let next = at + bytes.len() as u64;
        context.call_once(ImportPart { import: import.to_owned(), at, bytes }, None).await?;
        at = next;
    }
}
