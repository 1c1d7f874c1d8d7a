//! Hints name commands; these must reach the same daemon as the command that gives the hint, so the options that name it are
//! repeated in them.

use crate::args::GlobalArgs;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The options that name the daemon, as they were given; empty if none was. Set once, when the arguments are known.
static GIVEN: OnceLock<String> = OnceLock::new();

/// The beginning of a command in a hint.
const COMMAND: &str = "`vm-system ";

/// Commands that talk to no daemon.
const WITHOUT_DAEMON: &[&str] = &["run ", "run`", "help", "--help", "completions", "man"];

/// Remembers the options of this command.
pub(crate) fn remember(global: &GlobalArgs) {
    let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
    let remote = &global.remote;
    let given = [
        ("--socket", text(&global.socket)),
        ("--state-dir", text(&global.state_dir)),
        ("--server-url", remote.server_url.clone()),
        ("--token-file", text(&remote.token_file)),
        ("--ca-file", text(&remote.ca_file)),
    ];
    let words = given
        .iter()
        .filter_map(|(flag, value)| value.as_ref().map(|value| format!("{flag} {} ", quoted(value))));
    let words = words.chain(remote.insecure_http.then(|| "--insecure-http ".to_owned()));
    // A second command of this process cannot be: the first value stays.
    let _ = GIVEN.set(words.collect());
}

/// Whether the state directory was given.
pub(crate) fn names_state_dir() -> bool {
    GIVEN.get().is_some_and(|given| given.contains("--state-dir "))
}

/// The text with the given options in the commands that it names.
pub(crate) fn with_options(text: &str) -> Cow<'_, str> {
    add_options(GIVEN.get().map_or("", String::as_str), text)
}

fn add_options<'a>(options: &str, text: &'a str) -> Cow<'a, str> {
    if options.is_empty() || !text.contains(COMMAND) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split(COMMAND);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole.push_str(COMMAND);
        if !WITHOUT_DAEMON.iter().any(|word| part.starts_with(word)) {
            whole.push_str(options);
        }
        whole.push_str(part);
    }
    Cow::Owned(whole)
}

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_reach_a_daemon_get_the_options() {
        let text = "start one with `vm-system serve`; `vm-system run` needs none, `vm-system help x` neither";
        let expected = "start one with `vm-system --state-dir /s serve`; `vm-system run` needs none, `vm-system help x` neither";
        assert_eq!(add_options("--state-dir /s ", text), expected);
        assert_eq!(add_options("", text), text);
    }

    #[test]
    fn paths_are_words_of_a_shell() {
        assert_eq!(quoted("/run/vm-system/x.sock"), "/run/vm-system/x.sock");
        assert_eq!(quoted("a b's"), r"'a b'\''s'");
    }
}
