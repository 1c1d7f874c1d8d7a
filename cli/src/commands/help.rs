//! `help [TOPIC…]`: topics are pages compiled in; the names of commands show their `--help`.

use crate::args::Cli;
use crate::context::Context;
use crate::contract;
use crate::error::{CliError, exit};
use clap::CommandFactory as _;
use std::fmt::Write as _;

/// Arguments of `help`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A topic, or a command such as `exec repl`; without it, the topics are listed
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
    /// Print every command with its arguments as JSON, for checking scripts
    #[arg(long, conflicts_with = "topic")]
    json: bool,
    /// Print every command with its arguments as a Markdown page
    #[arg(long, conflicts_with_all = ["topic", "json"])]
    reference: bool,
}

/// A page.
struct Topic {
    name: &'static str,
    summary: &'static str,
    text: &'static str,
}

/// In reading order. Topics that are also for readers of the repository are in `docs/`.
const TOPICS: &[Topic] = &[
    Topic {
        name: "getting-started",
        summary: "First steps: a script in a sandbox, and a daemon",
        text: include_str!("../../../docs/getting-started.md"),
    },
    Topic {
        name: "architecture",
        summary: "The processes and what each of them may do",
        text: include_str!("../help/architecture.md"),
    },
    Topic {
        name: "templates-and-sessions",
        summary: "Profiles, sessions, executions, limits",
        text: include_str!("../../../docs/templates-and-sessions.md"),
    },
    Topic {
        name: "programs",
        summary: "Durable programs: writing, running, guarantees",
        text: include_str!("../../../docs/programs.md"),
    },
    Topic {
        name: "api-reference",
        summary: "The REST API: listeners, tokens, routes, codes",
        text: include_str!("../../../docs/api-reference.md"),
    },
    Topic {
        name: "cli-command-reference",
        summary: "All commands, exit codes, formats, environment",
        text: include_str!("../help/cli-command-reference.md"),
    },
    Topic { name: "examples", summary: "Examples to copy", text: include_str!("../../../docs/examples.md") },
    Topic {
        name: "security",
        summary: "How hostile scripts are contained",
        text: include_str!("../help/security.md"),
    },
    Topic {
        name: "operations",
        summary: "Running the daemon: state, sockets, logs, stopping",
        text: include_str!("../help/operations.md"),
    },
];

pub(crate) fn run(context: &Context, args: &Args) -> Result<u8, CliError> {
    if args.json {
        let json = serde_json::to_string_pretty(&contract::contract())
            .map_err(|error| CliError::internal(format!("cannot write the contract as JSON: {error}")))?;
        context.out.write(&format!("{json}\n"))?;
        return Ok(exit::OK);
    }
    if args.reference {
        context.out.write(&contract::reference())?;
        return Ok(exit::OK);
    }
    let [name, ..] = args.topic.as_slice() else {
        context.out.write(&index())?;
        return Ok(exit::OK);
    };
    if let Some(topic) = TOPICS.iter().find(|topic| topic.name == name)
        && args.topic.len() == 1
    {
        context.out.write(topic.text)?;
        return Ok(exit::OK);
    }
    let mut root = Cli::command();
    root.build();
    let mut command = &mut root;
    for name in &args.topic {
        command = command.find_subcommand_mut(name).ok_or_else(|| {
            CliError::usage(format!("no such topic or command: `{}`", args.topic.join(" ")))
                .with_hint("`vm-system help` lists the topics, `vm-system --help` the commands")
        })?;
    }
    context.out.write(&command.render_long_help().to_string())?;
    Ok(exit::OK)
}

fn index() -> String {
    let mut text = String::from("Topics:\n");
    for topic in TOPICS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {:<24}{}", topic.name, topic.summary);
    }
    text.push_str("\n`vm-system help TOPIC` shows one; `vm-system help COMMAND` explains a command.\n");
    text
}
