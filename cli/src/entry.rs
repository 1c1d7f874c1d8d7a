//! From the process's arguments to its exit code.
//!
//! The hidden modes are checked before anything else starts: no runtime, no logging, no argument parser.

use crate::args::{Cli, Command};
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Style;
use crate::{args, commands, logging};
use clap::{CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs this process as one of its hidden modes if `modes` recognises the arguments, else as the command line.
pub fn main_with(modes: impl FnOnce() -> Option<ExitCode>) -> ExitCode {
    if let Some(code) = modes() {
        return code;
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    ExitCode::from(run(&arguments))
}

fn run(arguments: &[OsString]) -> u8 {
    let style = Style::detect(arguments.iter().any(|argument| argument == "--no-color"));
    let cli = match parse(arguments, style) {
        Ok(cli) => cli,
        Err(error) => {
            // Usage errors exit with 2, help and version with 0; a closed pipe does not matter here.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(exit::USAGE);
        }
    };
    match command(cli, style) {
        Ok(code) => code,
        Err(error) => {
            error.print(style);
            error.exit_code()
        }
    }
}

fn parse(arguments: &[OsString], style: Style) -> Result<Cli, clap::Error> {
    let choice = if style.color_allowed() { clap::ColorChoice::Auto } else { clap::ColorChoice::Never };
    let mut command = Cli::command().color(choice);
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn command(cli: Cli, style: Style) -> Result<u8, CliError> {
    let args::Cli { global, command } = cli;
    logging::start(&global, matches!(command, Command::Serve(_)))?;
    let context = Context::new(global, style);
    commands::run(&context, command)
}
