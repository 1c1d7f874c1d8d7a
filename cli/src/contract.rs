//! The command line as data: every command with its arguments, for `help --json` (scripts are checked against it) and for
//! the reference in the docs. Generated from the tree that parses the arguments, so that the two cannot differ.

use crate::args::Cli;
use crate::error::exit;
use clap::{Arg, ArgAction, Command, CommandFactory as _};
use serde::Serialize;
use std::fmt::Write as _;

/// The whole command line.
#[derive(Debug, Serialize)]
pub struct Contract {
    /// Version of the binary.
    pub version: String,
    /// Flags that every command accepts.
    pub global: Vec<Argument>,
    /// Every command without subcommands, in the order of `--help`.
    pub commands: Vec<CommandVerb>,
    /// The exit codes.
    pub exit_codes: Vec<ExitCode>,
}

/// A command.
#[derive(Debug, Serialize)]
pub struct CommandVerb {
    /// Full name, such as `template add-startup`.
    pub command: String,
    /// One line of help.
    pub about: String,
    /// The order of its arguments, as `--help` shows it.
    pub usage: String,
    /// Flags, options and positional arguments, without the global ones.
    pub arguments: Vec<Argument>,
}

/// An argument.
#[derive(Debug, Serialize)]
pub struct Argument {
    /// `--order`, or `TEMPLATE` for a positional one.
    pub name: String,
    /// `-q`, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// Name of its value; none for a flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    pub required: bool,
    /// May be given more than once.
    pub multiple: bool,
    /// The allowed values; empty if any value is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The value if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    pub help: String,
}

/// An exit code.
#[derive(Debug, Serialize)]
pub struct ExitCode {
    pub code: u8,
    pub meaning: &'static str,
}

const EXIT_CODES: &[(u8, &str)] = &[
    (exit::OK, "success"),
    (
        exit::FAILED,
        "the script failed, or the command: the supervisor refused it, a file is missing or invalid, the output cannot be written",
    ),
    (exit::USAGE, "the command line is invalid, or the configuration of `serve`: nothing was done"),
    (exit::UNSETTLED, "the script's top-level `await` can never settle"),
    (exit::NO_DAEMON, "no supervisor responds"),
    (70, "a bug, a host without a required feature, or an execution that the store could not record"),
    (75, "busy; try again"),
    (77, "not permitted"),
    (124, "a time limit ended the script"),
    (129, "SIGHUP"),
    (130, "Ctrl-C, or the execution was cancelled"),
    (141, "the reader of stdout has closed it (SIGPIPE)"),
    (143, "SIGTERM"),
];

/// The contract of this binary.
pub fn contract() -> Contract {
    let mut root = Cli::command();
    root.build();
    let global = root.get_arguments().filter(|argument| argument.is_global_set()).map(argument).collect();
    let mut commands = Vec::new();
    verbs(&root, "", &mut commands);
    let exit_codes = EXIT_CODES.iter().map(|(code, meaning)| ExitCode { code: *code, meaning }).collect();
    Contract { version: env!("CARGO_PKG_VERSION").to_owned(), global, commands, exit_codes }
}

fn verbs(command: &Command, path: &str, all: &mut Vec<CommandVerb>) {
    let mut leaf = true;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        leaf = false;
        let path =
            if path.is_empty() { sub.get_name().to_owned() } else { format!("{path} {}", sub.get_name()) };
        verbs(sub, &path, all);
    }
    if leaf {
        let own = command.get_arguments().filter(|argument| {
            !argument.is_global_set() && !argument.is_hide_set() && argument.get_id() != "help"
        });
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let arguments = own.map(argument).collect();
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage:").trim().replace("\n       ", "\n");
        all.push(CommandVerb { command: path.to_owned(), about, usage, arguments });
    }
}

fn argument(argument: &Arg) -> Argument {
    let names =
        argument.get_value_names().map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let value = names.map(|names| names.join(" "));
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let positional = value.clone().unwrap_or_else(|| argument.get_id().to_string().to_uppercase());
    let name = argument.get_long().map_or(positional, |long| format!("--{long}"));
    let defaults = argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    let default = takes_value.then(|| defaults.collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty());
    let values = if takes_value { argument.get_possible_values() } else { Vec::new() };
    let multiple = matches!(argument.get_action(), ArgAction::Append)
        || argument.get_num_args().is_some_and(|range| range.max_values() > 1);
    Argument {
        short: argument.get_short().map(|short| format!("-{short}")),
        value: value.filter(|_| takes_value && argument.get_long().is_some()),
        required: argument.is_required_set(),
        multiple,
        values: values.iter().map(|value| value.get_name().to_owned()).collect(),
        default,
        help: argument.get_help().map(ToString::to_string).unwrap_or_default(),
        name,
    }
}

/// The reference as a page of the docs.
pub fn reference() -> String {
    let Contract { global, commands, exit_codes, .. } = contract();
    let mut page = String::from(
        "# Command reference\n\nGenerated from the code (`vm-system help --reference`); a test compares both. \
         `vm-system help --json` is the same\nas JSON. An id may be shortened to a unique beginning; templates, \
         programs,\nexecutions and live sessions may also be given by name.\n\n## Every command\n\n",
    );
    // Writing to a String cannot fail.
    table(&mut page, &global);
    for verb in commands {
        let _ = write!(page, "\n## `vm-system {}`\n\n{}.\n\n", verb.command, verb.about);
        let _ = write!(page, "```text\n{}\n```\n\n", verb.usage);
        if !verb.arguments.is_empty() {
            table(&mut page, &verb.arguments);
        }
    }
    page.push_str("\n## Exit codes\n\nA script's `process.exit(N)` sets the exit code N.\n\n| code | meaning |\n|---|---|\n");
    for ExitCode { code, meaning } in exit_codes {
        let _ = writeln!(page, "| {code} | {meaning} |");
    }
    page
}

fn table(page: &mut String, arguments: &[Argument]) {
    page.push_str("| argument | meaning |\n|---|---|\n");
    for argument in arguments {
        let value = argument.value.as_ref().map(|value| format!(" {value}")).unwrap_or_default();
        let short = argument.short.as_ref().map(|short| format!("{short}, ")).unwrap_or_default();
        let mut help = argument.help.replace('\n', " ").replace('|', "\\|");
        if !argument.values.is_empty() {
            let _ = write!(help, " ({})", argument.values.join(", "));
        }
        if let Some(default) = &argument.default {
            let _ = write!(help, " [default: {default}]");
        }
        if argument.required {
            help.push_str(" (required)");
        }
        let _ = writeln!(page, "| `{short}{}{value}` | {help} |", argument.name);
    }
}
