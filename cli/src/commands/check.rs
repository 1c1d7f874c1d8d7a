//! `check`: the types of files, by TypeScript's own compiler of the folder's `node_modules`, which runs in a session of a supervisor inside
//! this process, as any script does.

use super::exec::start::{self, CodeRunner};
use super::run::source::{beneath, check_readable};
use super::run::{Grants, embedded, session};
use crate::args::{GlobalArgs, OutputFormat, SandboxArg};
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::{Columns, notice};
use crate::parse;
use crate::script_output::{ScriptOutput, ShowValues};
use crate::signals::Interrupts;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vm_system_daemon::Operator;
use vm_system_daemon::type_checks::{self, PrintedCheck};
use vm_system_protocol::control::{ExecStart, ExecutionState};
use vm_system_protocol::counted::counted;
use vm_system_protocol::model::{Execution, ExecutionKind};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The compiler is the package typescript in node_modules of the first file's folder or above it. A tsconfig.json there \
        applies, except for what decides where output goes and how modules are found. The names that sessions have (CC, \
        require, fetch, `database`, `exec`, …) are declared; with the package @types/node, modules of Node have types, too.\n\n\
        Nothing of the files is run. Each error is a line FILE:LINE:COLUMN: error TSNUMBER: MESSAGE on stdout; \
        with --output json, yaml or csv a list with the fields file, line, column, severity, code and message.\n\n\
        Exit status: 0 without errors, 1 with errors or without a compiler, 124 after --timeout, 130 after Ctrl-C.\n\n\
        Example: vm-system check report.ts && vm-system run report.ts"
)]
pub struct Args {
    /// The files (.ts, .mts, .cts, .js, .mjs, .cjs); files that they import are checked, too
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// They are durable programs: what these have is declared instead of what sessions have
    #[arg(long)]
    program: bool,
    /// The folder with the files and their `node_modules` [default: the current folder]
    #[arg(long, value_name = "DIR")]
    worktree: Option<PathBuf>,
    /// Time limit, for CPU time and for wall-clock time: 500ms, 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = parse::duration, default_value = "5m")]
    timeout: Duration,
    /// Memory limit (MiB)
    #[arg(long, value_name = "MIB", default_value_t = 2_048, value_parser = clap::value_parser!(u32).range(1..))]
    memory: u32,
    /// The sandbox walls to set up
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    sandbox: SandboxArg,
}

pub(crate) fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    context.block_on_embedded(in_embedded(context, args))
}

async fn in_embedded(context: &Context, args: Args) -> Result<u8, CliError> {
    let interrupts = Interrupts::listen()?;
    let current = embedded::current_folder()?;
    let folder = match &args.worktree {
        Some(folder) => embedded::existing_folder(folder)?,
        None => current.clone(),
    };
    let files: Vec<String> =
        args.files.iter().map(|file| path_within(&folder, file)).collect::<Result<_, _>>()?;
    let shown = if folder == current { String::new() } else { format!("{folder}/") };
    let as_value = !context.out.is_table();
    let print = PrintedCheck {
        folder: &folder,
        shown: &shown,
        program: args.program,
        quiet: context.out.quiet || as_value,
        as_value,
    };
    let script = type_checks::script(&files, Some(&print));
    let mut settings = embedded::settings(args.timeout, args.memory);
    settings.limits.max_source_kb = type_checks::MAX_SOURCE_KB;
    let own = tokio::select! {
        own = embedded::start(args.sandbox, Operator::default(), None) => own?,
        () = interrupts.next() => return Err(CliError::silent(interrupts.exit_code())),
    };
    let result = async {
        let grants = Grants::default();
        let session = tokio::select! {
            session = session(&own, settings, folder.clone(), &grants) => session?,
            () = interrupts.next() => return Err(CliError::silent(interrupts.exit_code())),
        };
        let output = ScriptOutput::new(context.out.style, ShowValues::Never);
        let new = ExecStart {
            input: Some(script),
            path: Some("vm-system-check.js".to_owned()),
            follow: true,
            ..ExecStart::new(session, ExecutionKind::RunFile)
        };
        // The check's output is always text, whatever the format of results.
        let global = GlobalArgs { output: OutputFormat::Table, ..context.global.clone() };
        let shown = Context::new(global, context.out.style);
        let runner = CodeRunner { context: &shown, backend: own.backend(), interrupts: &interrupts };
        match runner.run_to_stop(new, None, &output).await? {
            ExecutionState::Execution(execution) => {
                let errors = if as_value { print_report(context, &execution)? } else { 0 };
                let code = start::report_end(&shown, &interrupts, &execution, &output)?;
                Ok(if errors > 0 { exit::FAILED } else { code })
            }
            ExecutionState::Run(run) => start::report_task(&shown, own.backend(), &run).await,
        }
    }
    .await;
    own.stop().await;
    result
}

/// The value of the check ([`PrintedCheck::as_value`]).
#[derive(serde::Deserialize)]
struct Report {
    errors: u64,
    diagnostics: Vec<Diagnostic>,
    left_out: u64,
}

#[derive(serde::Deserialize, serde::Serialize)]
struct Diagnostic {
    /// None for what is wrong with the settings of the compiler.
    file: Option<String>,
    line: Option<u64>,
    column: Option<u64>,
    severity: String,
    code: String,
    message: String,
}

impl Columns for Diagnostic {
    const FIELDS: &'static [&'static str] = &["file", "line", "column", "severity", "code", "message"];
}

/// Prints the diagnostics as a list, and returns how many errors there are. There is no list if the check itself failed, which has been
/// said.
fn print_report(context: &Context, execution: &Execution) -> Result<u64, CliError> {
    let Some(report) = execution.result_json() else { return Ok(0) };
    let Report { errors, diagnostics, left_out } = serde_json::from_str(report)
        .map_err(|error| CliError::internal(format!("the report of the check is not readable: {error}")))?;
    if left_out > 0 {
        notice(&format!("{} not in the list: without --output all are printed.", counted(left_out, "error")));
    }
    context.out.result(&diagnostics, String::new)?;
    Ok(errors)
}

/// The path of a file beneath the folder; an error if it is no file that can be read.
fn path_within(folder: &str, file: &Path) -> Result<String, CliError> {
    let current = std::env::current_dir().map_err(|error| CliError::file("the current folder", &error))?;
    let Some(path) = beneath(Path::new(folder), &current.join(file)) else {
        let message = format!("{} is not in the folder {folder}", file.display());
        return Err(CliError::usage(message)
            .with_hint("`--worktree DIR` names a folder that has all files and their node_modules"));
    };
    let name = file.display().to_string();
    if ![".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx"].iter().any(|end| name.ends_with(end)) {
        return Err(CliError::usage(format!("{name} is neither TypeScript nor JavaScript"))
            .with_hint("give files with an extension such as .ts or .js"));
    }
    check_readable(file)?;
    Ok(path)
}
