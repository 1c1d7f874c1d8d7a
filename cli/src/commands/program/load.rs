//! `program load`

use super::plan;
use crate::args::IdempotencyArgs;
use crate::commands::run::source::looks_typed;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::program_files::{self, language_of};
use crate::read::{read_file, read_stdin};
use std::path::{Path, PathBuf};
use vm_system_protocol::control::{ErrorCode, ProgramGet, ProgramLoad};
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;
use vm_system_protocol::model::Program;

/// Most bytes of all files of a program; the daemon has a limit of its own.
const SOURCE_BYTES: usize = CONTROL_FRAME_BYTES - (64 << 10);

/// Arguments of `program load`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The source file, JavaScript or TypeScript; `-` reads it from stdin
    #[arg(value_name = "FILE")]
    file: String,
    /// The program's name [default: the file's name, without folder and extension]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// FILE is a plan, in Markdown or compiled: the program is the built-in one that goes through it
    #[arg(long)]
    plan: bool,
    #[arg(
        long,
        value_name = "FILE",
        requires = "plan",
        help = "Blocks of the plan that are already done, as JSON [default: uplan-progress.json beside the plan, if it exists]"
    )]
    done: Option<PathBuf>,
    #[command(flatten)]
    imports: ImportArgs,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

/// Arguments of commands that load a program from a file.
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The folder with the files that FILE may import; FILE itself may be elsewhere [default: the folder of FILE]
    #[arg(long, value_name = "DIR")]
    import_root: Option<PathBuf>,
}

impl ImportArgs {
    /// Refuses the option where no file is loaded that may import others.
    pub(super) fn refuse(&self, why: &str) -> Result<(), CliError> {
        match self.import_root {
            Some(_) => Err(CliError::usage(format!("--import-root is for a file: {why}"))),
            None => Ok(()),
        }
    }
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let key = args.idempotency.idempotency_key;
    let program = if args.plan {
        args.imports.refuse("a plan imports nothing")?;
        let stem = Path::new(&args.file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name =
            args.name.or(stem).ok_or_else(|| CliError::usage("a plan needs a file name, or --name"))?;
        plan::load(context, &args.file, args.done.as_deref(), name, key).await?
    } else {
        load(context, &args.file, args.name, &args.imports, key).await?
    };
    let language = if program.typescript == Some(true) { "TypeScript" } else { "JavaScript" };
    let (name, version, id) = (&program.name, program.version, program.id);
    let line = format!("Loaded program: {name} version {version}, {language} (ID: {id})");
    context.out.done(&program, &line, &program.id.to_string())?;
    Ok(exit::OK)
}

/// Reads a file and loads it; returns the program's id. If the file does not exist, the text is the name of a program.
pub(super) async fn of_file(context: &Context, file: &str, imports: &ImportArgs) -> Result<String, CliError> {
    if file.contains('/') || Path::new(file).exists() {
        return Ok(load(context, file, None, imports, None).await?.id.to_string());
    }
    imports.refuse("no file has this name")?;
    let op = ProgramGet { program: file.to_owned(), version: None };
    match context.call(op).await {
        Ok(program) => Ok(program.id.to_string()),
        Err(error) if error.exit_code() != exit::FAILED => Err(error),
        _ => Err(CliError::new(exit::FAILED, format!("neither a file nor a program is called {file}"))
            .with_hint("`vm-system program list` shows the programs")),
    }
}

/// Reads a file, and the files that it imports, and loads them.
async fn load(
    context: &Context,
    file: &str,
    name: Option<String>,
    imports: &ImportArgs,
    key: Option<String>,
) -> Result<Program, CliError> {
    let path = Path::new(file);
    let source = if file == "-" { read_stdin()? } else { read_file(path)? };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let Some(name) = name.or(stem.filter(|_| file != "-")) else {
        return Err(CliError::usage("a program from stdin needs --name"));
    };
    let is_plan = path.extension().is_some_and(|extension| extension == "md");
    let is_typed = language_of(path) == Some(false) && looks_typed(&source);
    let path = if file == "-" { Path::new("stdin") } else { path };
    let text = program_files::of_user(path, source, imports.import_root.as_ref(), SOURCE_BYTES)?;
    let text = ProgramLoad { name, ..text };
    match context.call_once(text, key).await {
        Ok(program) => Ok(program),
        Err(error) if error.code() == Some(ErrorCode::CompileError) && is_plan => {
            Err(error.and_hint("a plan in Markdown is loaded with --plan"))
        }
        Err(error) if error.code() == Some(ErrorCode::CompileError) && is_typed => {
            Err(error.and_hint("if it is TypeScript, give the file the extension .ts"))
        }
        Err(error) => Err(error),
    }
}
