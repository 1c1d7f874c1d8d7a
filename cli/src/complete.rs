//! Completion in shells: the script that `completions` prints calls this binary, which knows its commands, and requests ids
//! and names from the daemon.

use crate::args::{Cli, RemoteArgs};
use crate::backend::Backend;
use crate::paths::Environment;
use crate::target::DaemonTarget;
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;
use vm_system_api::mcp::ToolSets;
use vm_system_protocol::control::{
    CheckpointList, LibraryCatalog, ListPage, ModuleCatalog, ProgramList, RunList, ScheduleList,
    SessionCheckpoints, SessionList, TaskList, TemplateGet, TemplateList,
};
use vm_system_protocol::model::ExecutionStatus;

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
    let command = command.mut_args(|arg| match Kind::from_arg(&path, &arg) {
        Some(kind) => arg.add(ArgValueCompleter::new(move |begin: &OsStr| candidates(kind, begin))),
        None => arg,
    });
    let path = path.trim_start_matches(" vm-system").to_owned();
    command.mut_subcommands(|sub| with_values(sub, &path))
}

/// The kind of thing that a value names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Session,
    Template,
    Program,
    /// A program, or a file of one.
    ProgramOrFile,
    Schedule,
    /// An execution of a program.
    Run,
    /// An execution that waits for an answer.
    Waiting,
    /// Of the session that the line names.
    SessionCheckpoint,
    /// Of the execution that the line names.
    RunCheckpoint,
    /// Of the template that the line names.
    StartupFile,
    ToolSets,
    Library,
    Module,
    Topic,
}

impl Kind {
    fn from_arg(command: &str, arg: &Arg) -> Option<Self> {
        let value = arg.get_value_names().and_then(|names| names.first())?.as_str();
        Some(match (command, value) {
            (_, "SESSION") => Self::Session,
            (_, "TEMPLATE") => Self::Template,
            (" program start", "PROGRAM") => Self::ProgramOrFile,
            (_, "PROGRAM") => Self::Program,
            (" task submit" | " event emit", "EXECUTION") => Self::Waiting,
            (_, "SCHEDULE") => Self::Schedule,
            (_, "EXECUTION") => Self::Run,
            (" session rollback" | " session delete-checkpoint", "CHECKPOINT") => Self::SessionCheckpoint,
            (" program rewind" | " program rerun", "CHECKPOINT") | (" program fork", "N") => {
                Self::RunCheckpoint
            }
            (" template remove-startup", "FILE") => Self::StartupFile,
            (" mcp", "SETS") => Self::ToolSets,
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
        Kind::Topic => topics(),
        Kind::ToolSets => ToolSets::names().map(|name| (name.to_owned(), String::new())).collect(),
        kind => objects(kind).unwrap_or_default(),
    };
    let known = all.into_iter().filter(|(value, _)| value.starts_with(begin));
    let known = known.map(|(value, help)| CompletionCandidate::new(value).help(Some(help.into())));
    let files = match kind {
        Kind::ProgramOrFile => PathCompleter::any().complete(OsStr::new(begin)),
        _ => Vec::new(),
    };
    let words = known.chain(files).filter(|one| one.get_value().to_str().is_some_and(is_one_word));
    // As they come: names before ids.
    words.enumerate().map(|(place, one)| one.display_order(Some(place))).collect()
}

/// The topics, or behind the name of a group of commands, its commands.
fn topics() -> Vec<(String, String)> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let behind = words.iter().skip_while(|word| *word != "help").skip(1);
    let path: Vec<&OsString> = behind.collect();
    let mut command = Cli::command();
    for word in path.iter().take(path.len().saturating_sub(1)) {
        let Some(sub) = word.to_str().and_then(|name| command.find_subcommand(name)) else {
            return Vec::new();
        };
        command = sub.clone();
    }
    if path.len() <= 1 {
        let of_topic = |(name, help): (&str, &str)| (name.to_owned(), help.to_owned());
        return crate::commands::help::topics().map(of_topic).collect();
    }
    let about = |sub: &Command| sub.get_about().map(ToString::to_string).unwrap_or_default();
    command.get_subcommands().map(|sub| (sub.get_name().to_owned(), about(sub))).collect()
}

/// Whether every shell takes it as one word and evaluates nothing in it: other owners choose names, and a shell inserts what is
/// offered as it is.
fn is_one_word(value: &str) -> bool {
    !value.starts_with('-') && value.chars().all(|char| char.is_alphanumeric() || "-_.:/@+,".contains(char))
}

/// The daemon's objects of a kind with descriptions: names, then ids.
fn objects(kind: Kind) -> Option<Vec<(String, String)>> {
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
    let listed = async { tokio::time::timeout(PATIENCE, list(&daemon, kind, &words)).await.ok().flatten() };
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

/// The object behind the name of the command, to which the one that is completed belongs.
fn parent(words: &[OsString]) -> Option<String> {
    const COMMANDS: [&str; 6] =
        ["rollback", "delete-checkpoint", "rewind", "rerun", "fork", "remove-startup"];
    let is_command = |word: &&OsString| word.to_str().is_some_and(|word| COMMANDS.contains(&word));
    let behind = words.iter().skip_while(|word| !is_command(word)).skip(1);
    behind.filter_map(|word| word.to_str()).find(|word| !word.starts_with('-')).map(str::to_owned)
}

async fn list(daemon: &Backend, kind: Kind, words: &[OsString]) -> Option<Vec<(String, String)>> {
    let page = ListPage::first(MOST);
    let (mut names, mut ids) = (Vec::new(), Vec::new());
    // A name, if there is one, and the id.
    let mut put = |id: String, name: Option<String>, about: String| {
        names.extend(name.map(|name| (name, about.clone())));
        ids.push((id, about));
    };
    match kind {
        Kind::Session => {
            for one in daemon.call(SessionList { page, ..SessionList::default() }, None).await.ok()? {
                put(one.id.to_string(), one.name, format!("{} session of {}", one.status, one.workspace_id));
            }
        }
        Kind::Template => {
            for one in daemon.call(TemplateList { page, built_in: true }, None).await.ok()? {
                put(
                    one.id.to_string(),
                    Some(one.name.clone()),
                    format!("template {} ({})", one.name, one.engine),
                );
            }
        }
        Kind::Library => {
            for one in daemon.call(LibraryCatalog, None).await.ok()? {
                let state = if one.installed { "installed" } else { "not installed" };
                put(one.name, None, state.to_owned());
            }
        }
        Kind::Module => {
            for one in daemon.call(ModuleCatalog, None).await.ok()? {
                put(one.name, None, one.description);
            }
        }
        Kind::Program | Kind::ProgramOrFile => {
            for one in daemon.call(ProgramList { page, ..ProgramList::default() }, None).await.ok()? {
                put(one.id.to_string(), Some(one.name), format!("program, version {}", one.version));
            }
        }
        Kind::Schedule => {
            for one in daemon.call(ScheduleList { page, ..ScheduleList::default() }, None).await.ok()? {
                put(one.id.to_string(), Some(one.name), format!("schedule of {}", one.program));
            }
        }
        Kind::Run | Kind::Waiting => {
            let runs = daemon.call(RunList { page, ..RunList::default() }, None).await.ok()?;
            let is_wanted = |status| kind == Kind::Run || status == ExecutionStatus::Waiting;
            for one in runs.into_iter().filter(|one| is_wanted(one.execution.status)) {
                put(
                    one.execution.id.to_string(),
                    one.name,
                    format!("{} execution of a program", one.execution.status),
                );
            }
        }
        Kind::SessionCheckpoint => {
            let session = parent(words)?;
            for one in daemon.call(SessionCheckpoints { session }, None).await.ok()? {
                put(one.number.to_string(), one.name, format!("checkpoint of {}", one.created_at));
            }
        }
        Kind::RunCheckpoint => {
            let execution = parent(words)?;
            for one in daemon.call(CheckpointList { execution }, None).await.ok()? {
                put(one.seq.to_string(), None, format!("{} at {}", one.cause, one.at));
            }
        }
        Kind::StartupFile => {
            let template = parent(words)?;
            for one in daemon.call(TemplateGet { template }, None).await.ok()?.startup_files {
                put(one.id.to_string(), Some(one.path), format!("startup file ({})", one.mode));
            }
        }
        Kind::Topic | Kind::ToolSets => return None,
    }
    // Tasks of sessions are in no list of executions.
    if kind == Kind::Waiting
        && let Ok(tasks) = daemon.call(TaskList::pending(page), None).await
    {
        let tasks = tasks.into_iter().map(|listed| listed.task);
        ids.extend(tasks.map(|task| (task.execution_id.to_string(), task.prompt)));
    }
    names.extend(ids);
    let mut seen = HashSet::new();
    names.retain(|(value, _)| seen.insert(value.clone()));
    Some(names)
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
