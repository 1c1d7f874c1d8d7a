//! Completion in shells: the script that `completions` prints calls this binary, which knows its commands, and requests ids
//! and names from the daemon.

use crate::args::{Cli, RemoteArgs};
use crate::backend::Backend;
use crate::paths::Environment;
use crate::target::DaemonTarget;
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;
use vm_system_protocol::control::{DurableOp, DurableReply, ListPage, Op, Reply, SessionFilter};

/// The variable with which the shell's script calls this binary.
pub(crate) const VARIABLE: &str = "COMPLETE";
/// Time for the daemon's response: the user waits for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most objects of a kind that are offered.
const MOST: u32 = 200;

/// Writes the candidates if a shell's script calls this process; `true` if it does.
pub(crate) fn answer(arguments: &[OsString]) -> Result<bool, clap::Error> {
    // Without a folder it offers no files: the shell does, because it quotes their names.
    CompleteEnv::with_factory(command).var(VARIABLE).try_complete(arguments.iter().cloned(), None)
}

/// The tree of commands with the candidates for their values.
fn command() -> Command {
    with_values(Cli::command(), "")
}

fn with_values(command: Command, parent: &str) -> Command {
    let path = format!("{parent} {}", command.get_name());
    let command = command.mut_args(|arg| match Kind::of(&path, &arg) {
        Some(kind) => arg.add(ArgValueCompleter::new(move |begin: &OsStr| candidates(kind, begin))),
        None => arg,
    });
    let path = path.trim_start_matches(" vm-system").to_owned();
    command.mut_subcommands(|sub| with_values(sub, &path))
}

/// What a value names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Session,
    Template,
    Program,
    /// An execution of a program.
    Run,
    Library,
    Module,
    Topic,
}

impl Kind {
    fn of(command: &str, arg: &Arg) -> Option<Self> {
        let value = arg.get_value_names().and_then(|names| names.first())?.as_str();
        Some(match (command, value) {
            (_, "SESSION") => Self::Session,
            (_, "TEMPLATE") => Self::Template,
            (_, "PROGRAM") => Self::Program,
            (_, "EXECUTION") => Self::Run,
            (
                " libs remove" | " libs verify" | " template add-library" | " template remove-library",
                "NAME",
            ) => Self::Library,
            (" template add-module" | " template remove-module", "NAME") => Self::Module,
            (" help", "TOPIC") => Self::Topic,
            _ => return None,
        })
    }
}

/// Ids and names that begin with what was typed; none if no daemon responds in time.
fn candidates(kind: Kind, begin: &OsStr) -> Vec<CompletionCandidate> {
    let Some(begin) = begin.to_str() else { return Vec::new() };
    let all = match kind {
        Kind::Topic => {
            crate::commands::help::topics().map(|(name, help)| (name.to_owned(), help.to_owned())).collect()
        }
        kind => objects(kind).unwrap_or_default(),
    };
    all.into_iter()
        .filter(|(value, _)| value.starts_with(begin) && is_one_word(value))
        .map(|(value, help)| CompletionCandidate::new(value).help(Some(help.into())))
        .collect()
}

/// Whether every shell takes it as one word and evaluates nothing in it: other owners choose names, and a shell inserts what is
/// offered as it is.
fn is_one_word(value: &str) -> bool {
    !value.starts_with('-') && value.chars().all(|char| char.is_alphanumeric() || "-_.:/@+,".contains(char))
}

/// The daemon's objects of a kind: value → description.
fn objects(kind: Kind) -> Option<BTreeMap<String, String>> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let path = |flag: &str| option(&words, flag).map(PathBuf::from);
    let remote = RemoteArgs {
        server_url: option(&words, "--server-url").map(|url| url.to_string_lossy().into_owned()),
        token_file: path("--token-file"),
        ca_file: path("--ca-file"),
        server_user: option(&words, "--server-user").map(|user| user.to_string_lossy().into_owned()),
        insecure_http: words.iter().any(|word| word == "--insecure-http"),
    };
    let (socket, state_dir) = (path("--socket"), path("--state-dir"));
    let target = DaemonTarget::new(socket.as_deref(), state_dir.as_deref(), remote, &Environment::detect());
    let daemon = Backend::daemon(target);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let listed = async { tokio::time::timeout(PATIENCE, list(&daemon, kind)).await.ok().flatten() };
    runtime.block_on(listed)
}

/// The value of an option among the words of the line that is being typed.
fn option(words: &[OsString], flag: &str) -> Option<OsString> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == flag {
            return words.next().cloned();
        }
        if let Some(value) = word.to_str().and_then(|word| word.strip_prefix(flag)?.strip_prefix('=')) {
            return Some(value.into());
        }
    }
    None
}

async fn list(daemon: &Backend, kind: Kind) -> Option<BTreeMap<String, String>> {
    let durable = Op::Durable;
    let page = ListPage::first(MOST);
    let op = match kind {
        Kind::Session => Op::SessionList(SessionFilter { page, ..SessionFilter::default() }),
        Kind::Template => Op::TemplateList { page, built_in: true },
        Kind::Program => durable(DurableOp::ProgramList(page)),
        Kind::Run => durable(DurableOp::RunList { program: None, page }),
        Kind::Library => Op::LibraryCatalog,
        Kind::Module => Op::ModuleCatalog,
        Kind::Topic => return None,
    };
    let mut all = BTreeMap::new();
    // A name, if there is one, and the id.
    let mut put = |id: String, name: Option<String>, about: String| {
        if let Some(name) = name {
            all.insert(name, about.clone());
        }
        all.insert(id, about);
    };
    match daemon.call(op, None).await.ok()? {
        Reply::Sessions(sessions) => {
            for one in sessions {
                put(one.id.to_string(), one.name, format!("{} session of {}", one.status, one.workspace_id));
            }
        }
        Reply::Templates(templates) => {
            for one in templates {
                put(
                    one.id.to_string(),
                    Some(one.name.clone()),
                    format!("template {} ({})", one.name, one.engine),
                );
            }
        }
        Reply::Libraries(libraries) => {
            for one in libraries {
                let state = if one.installed { "installed" } else { "not installed" };
                put(one.name, None, state.to_owned());
            }
        }
        Reply::Modules(modules) => modules.into_iter().for_each(|one| put(one.name, None, one.description)),
        Reply::Durable(DurableReply::Programs(programs)) => {
            for one in programs {
                put(one.id.to_string(), Some(one.name), format!("program, version {}", one.version));
            }
        }
        Reply::Durable(DurableReply::Runs(runs)) => {
            for one in runs {
                put(
                    one.execution.id.to_string(),
                    one.name,
                    format!("{} execution of a program", one.execution.status),
                );
            }
        }
        _ => return None,
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_shell_would_evaluate_are_not_offered() {
        for name in ["web", "a-b_c.d", "2024/11", "uid:1000", "äöü", "a@1.2.3", "x+y"] {
            assert!(is_one_word(name), "{name}");
        }
        for name in [
            "q;touch$IFS/tmp/x;",
            "$(id)",
            "`id`",
            "a b",
            "a|b",
            "a&b",
            "a>b",
            "a'b",
            "a\"b",
            "a\\b",
            "-rf",
            "!!",
            "~root",
            "*",
            "a?b",
            "[a]",
            "{a,b}",
            "#a",
            "a=b",
            "a\u{202e}b",
            "a\nb",
            "%1",
            "^a^b",
        ] {
            assert!(!is_one_word(name), "{name}");
        }
    }

    #[test]
    fn options_of_the_typed_line_name_the_daemon() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            option(&words("-- vm-system --state-dir /s session get"), "--state-dir"),
            Some("/s".into())
        );
        assert_eq!(option(&words("-- vm-system session get --socket=/x"), "--socket"), Some("/x".into()));
        assert_eq!(option(&words("-- vm-system session get"), "--socket"), None);
    }
}
