//! From the process's arguments to its exit code.
//!
//! The hidden modes are checked before anything else starts: no runtime, no logging, no argument parser.

use crate::args::{Cli, Command};
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Style;
use crate::{commands, complete, hints, logging, output};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Most names that an error suggests.
const SUGGESTIONS: usize = 3;

/// The text of `--version`.
const VERSION: &str = concat!("vm-system ", env!("CARGO_PKG_VERSION"), "\n");

/// Runs this process as one of its hidden modes if `modes` recognises the arguments, else as the command line.
pub fn main_with(modes: impl FnOnce() -> Option<ExitCode>) -> ExitCode {
    if let Some(code) = modes() {
        return code;
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    ExitCode::from(run(&arguments))
}

fn run(arguments: &[OsString]) -> u8 {
    match complete::answer(arguments) {
        Ok(false) => {}
        Ok(true) => return exit::OK,
        Err(error) => {
            let _ = error.print();
            return exit::USAGE;
        }
    }
    let style = Style::detect(arguments.iter().any(|argument| argument == "--no-color"));
    if requests_version(arguments) {
        return match write!(io::stdout().lock(), "{VERSION}") {
            Ok(()) => exit::OK,
            Err(error) => {
                let failed = CliError::output(&error);
                failed.print(style);
                failed.exit_code()
            }
        };
    }
    let cli = match parse(arguments, style) {
        Ok(cli) => cli,
        Err(error) => {
            // Usage errors exit with 2, help and version with 0.
            let code = u8::try_from(error.exit_code()).unwrap_or(exit::USAGE);
            return match show(&error, style).map_err(|error| CliError::output(&error)) {
                Err(failed) if !error.use_stderr() => {
                    failed.print(style);
                    failed.exit_code()
                }
                _ => code,
            };
        }
    };
    // Among the arguments of a script the flag is the script's.
    let style = Style::detect(cli.global.no_color);
    match prepare(&cli).and_then(|()| commands::run(&Context::new(cli.global, style), cli.command)) {
        Ok(code) => code,
        Err(error) => {
            error.print(style);
            error.exit_code()
        }
    }
}

/// Whether nothing but the version is requested: an answer without the tree of commands, which takes longer to build than all else.
fn requests_version(arguments: &[OsString]) -> bool {
    matches!(arguments, [_, only] if only == "--version" || only == "-V")
}

fn show(error: &clap::Error, style: Style) -> io::Result<()> {
    let text = error.render();
    if error.kind() == ErrorKind::DisplayHelp {
        let text = if style.color_allowed() { text.ansi().to_string() } else { text.to_string() };
        if style.stdout_is_terminal() && output::page(&text) {
            return Ok(());
        }
    }
    match own_words(&text.to_string()) {
        Some(text) => write!(io::stderr().lock(), "{text}"),
        None => error.print().and_then(|()| io::stdout().flush()),
    }
}

/// The message with what the standard library says about a number replaced.
fn own_words(text: &str) -> Option<String> {
    let pairs = [
        ("invalid digit found in string", "a whole number is expected"),
        ("cannot parse integer from empty string", "a whole number is expected"),
        ("number too large to fit in target type", "the number is too large"),
        ("number too small to fit in target type", "the number is too small"),
        ("invalid socket address syntax", "an address with a port is expected, such as 127.0.0.1:3210"),
    ];
    if let Some((theirs, ours)) = pairs.iter().find(|(theirs, _)| text.contains(theirs)) {
        return Some(text.replace(theirs, ours));
    }
    range_in_words(text)
}

/// The message with Rust's notation of a range (`0 is not in 1..=9`, `9 is not in 1..9`) replaced by its bounds.
fn range_in_words(text: &str) -> Option<String> {
    const THEIRS: &str = " is not in ";
    let (before, rest) = text.split_once(THEIRS)?;
    let (range, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
    let (least, end) = range.split_once("..")?;
    let most = match end.strip_prefix('=') {
        Some(most) => most.parse::<i64>().ok()?,
        None => end.parse::<i64>().ok()? - 1,
    };
    Some(format!("{before} is not {least} to {most}{after}"))
}

/// The suggestions of an error with the nearest first: clap has them in the order of likeness, the nearest last.
fn nearest_first(mut error: clap::Error) -> clap::Error {
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        if let Some(ContextValue::Strings(names)) = error.get(kind) {
            let nearest = names.iter().rev().take(SUGGESTIONS).cloned().collect();
            error.insert(kind, ContextValue::Strings(nearest));
        }
    }
    error
}

fn parse(arguments: &[OsString], style: Style) -> Result<Cli, clap::Error> {
    let choice = if style.color_allowed() { clap::ColorChoice::Auto } else { clap::ColorChoice::Never };
    let mut command = Cli::command().color(choice);
    let matches = command.try_get_matches_from_mut(arguments).map_err(nearest_first)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Prepares this process for its command.
fn prepare(cli: &Cli) -> Result<(), CliError> {
    let Cli { global, command } = cli;
    if matches!(command, Command::Serve(_) | Command::Run(_) | Command::Check(_) | Command::Repl(_)) {
        // Supervisors: what their starter has left open is nobody's business there.
        vm_system_daemon::close_leaked(std::env::args_os());
    }
    hints::remember(global);
    logging::start(global, matches!(command, Command::Serve(_)))
}

#[cfg(test)]
mod tests {
    use super::{VERSION, own_words, parse, requests_version};
    use crate::output::Style;
    use std::ffi::OsString;

    #[test]
    fn version_is_the_one_of_the_tree_of_commands() {
        for flag in ["--version", "-V"] {
            let arguments = ["vm-system", flag].map(OsString::from);
            assert!(requests_version(&arguments));
            let text = parse(&arguments, Style::detect(true)).map(|_| String::new());
            assert_eq!(text.unwrap_or_else(|answer| answer.to_string()), VERSION);
        }
        assert!(!requests_version(&["vm-system", "run", "--version"].map(OsString::from)));
    }

    #[test]
    fn ranges_are_shown_with_their_bounds() {
        let words = |text| own_words(text).unwrap_or_default();
        assert_eq!(
            words("'0' for '--limit <N>': 0 is not in 1..=9\n\nMore"),
            "'0' for '--limit <N>': 0 is not 1 to 9\n\nMore"
        );
        assert_eq!(words("0 is not in 1..16384"), "0 is not 1 to 16383");
        assert_eq!(own_words("another error"), None);
    }
}
