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
        summary: "Templates, sessions, executions, limits",
        text: include_str!("../../../docs/templates-and-sessions.md"),
    },
    Topic {
        name: "programs",
        summary: "Durable programs: writing, running, guarantees",
        text: include_str!("../../../docs/programs.md"),
    },
    Topic {
        name: "javascript",
        summary: "What scripts of sessions can use: globals, modules, limits",
        text: include_str!("../../../docs/javascript.md"),
    },
    Topic {
        name: "rights",
        summary: "Modules, capabilities, and who may use which files",
        text: include_str!("../../../docs/rights.md"),
    },
    Topic {
        name: "plans",
        summary: "Markdown plans that an agent executes task by task",
        text: include_str!("../../../docs/plans.md"),
    },
    Topic {
        name: "mcp",
        summary: "Tools for agents: setting up the MCP server",
        text: include_str!("../../../docs/mcp.md"),
    },
    Topic {
        name: "mcp-tools",
        summary: "Every tool for agents with its fields",
        text: include_str!("../../../docs/mcp-tools.md"),
    },
    Topic {
        name: "api-reference",
        summary: "The REST API: listeners, tokens, routes, codes",
        text: include_str!("../../../docs/api-reference.md"),
    },
    Topic {
        name: "remote",
        summary: "A daemon behind a URL: tokens, TLS, what is different",
        text: include_str!("../../../docs/remote.md"),
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
    Topic {
        name: "threat-model",
        summary: "What is defended, by which wall, and what is not",
        text: include_str!("../../../docs/threat-model.md"),
    },
    Topic {
        name: "escape-suite",
        summary: "What native code has tried against the walls of a worker",
        text: include_str!("../../../docs/security/escape-suite.md"),
    },
    Topic {
        name: "durable-state",
        summary: "How programs and their states are stored",
        text: include_str!("../../../docs/durable-state.md"),
    },
    Topic {
        name: "cvm-differences",
        summary: "Where the engine of programs differs from others",
        text: include_str!("../../../docs/cvm-differences.md"),
    },
    Topic {
        name: "cvm-test262",
        summary: "Conformance tests that the engine of programs fails",
        text: include_str!("../../../docs/cvm-test262.md"),
    },
];

/// Names and summaries of the topics.
pub(crate) fn topics() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOPICS.iter().map(|topic| (topic.name, topic.summary))
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<u8, CliError> {
    if args.json {
        let json = serde_json::to_string_pretty(&contract::contract())
            .map_err(|error| CliError::internal(format!("cannot write the contract as JSON: {error}")))?;
        context.out.write(&format!("{json}\n"))?;
        return Ok(exit::OK);
    }
    if args.reference {
        context.out.page_of_markdown(&contract::reference())?;
        return Ok(exit::OK);
    }
    if args.topic.is_empty() {
        context.out.write(&index())?;
        return Ok(exit::OK);
    }
    if let [name] = args.topic.as_slice()
        && let Some(topic) = topic(name)
    {
        context.out.page_of_markdown(topic.text)?;
        return Ok(exit::OK);
    }
    // Texts refer to the page of the docs by its name; it is generated.
    if let [name] = args.topic.as_slice()
        && base_name(name).eq_ignore_ascii_case("cli-reference")
    {
        context.out.page_of_markdown(&contract::reference())?;
        return Ok(exit::OK);
    }
    let mut root = Cli::command();
    root.build();
    let mut command = &mut root;
    for name in &args.topic {
        let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        command = command.find_subcommand_mut(name).ok_or_else(|| unknown(&args.topic, name, names))?;
    }
    context.out.page(&command.render_long_help().to_string())?;
    Ok(exit::OK)
}

fn base_name(name: &str) -> &str {
    let name = name.strip_prefix("docs/").unwrap_or(name);
    name.strip_suffix(".md").unwrap_or(name)
}

/// A topic by its name; texts refer to topics also as files of the source tree (`docs/rights.md`).
fn topic(name: &str) -> Option<&'static Topic> {
    let name = base_name(name);
    TOPICS.iter().find(|topic| topic.name.eq_ignore_ascii_case(name))
}

fn unknown(words: &[String], name: &str, mut names: Vec<String>) -> CliError {
    let error = CliError::usage(format!("no such topic or command: `{}`", words.join(" ")));
    if words.len() == 1 {
        names.extend(TOPICS.iter().map(|topic| topic.name.to_owned()));
    }
    let similar = names.iter().map(|known| (strsim::jaro_winkler(known, &name.to_lowercase()), known));
    match similar.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(likeness, _)| *likeness > 0.8) {
        Some((_, known)) => {
            let begin = words.split_last().map_or(&[][..], |(_, begin)| begin).iter().map(String::as_str);
            let whole: Vec<&str> = begin.chain([known.as_str()]).collect();
            error.with_hint(format!("did you mean `vm-system help {}`?", whole.join(" ")))
        }
        None => error.with_hint("`vm-system help` lists the topics, `vm-system --help` the commands"),
    }
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
