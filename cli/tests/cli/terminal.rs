//! On a terminal: colour, control characters, Ctrl-C, and progress bars. The terminal is that of `script` (util-linux).

use crate::environment::{DEADLINE, TestEnvironment, wait};
use crate::fake::FakeDaemon;
use crate::libraries::{archive, integrity};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A command whose stdin, stdout and stderr are one terminal.
struct Terminal {
    child: Child,
    keyboard: Option<std::process::ChildStdin>,
    screen: Receiver<Vec<u8>>,
    shown: String,
}

impl Terminal {
    /// `None`, with a message, if there is no `script`.
    fn run(env: &TestEnvironment, command: &str, variables: &[(&str, &str)]) -> Option<Self> {
        if !std::path::Path::new("/usr/bin/script").exists() {
            vm_system_testkit::skip("script", "a terminal needs util-linux's script");
            return None;
        }
        let mut script = env.program("/usr/bin/script");
        // Replaces the shell, which Ctrl-C would end too.
        let command = format!("exec {command}");
        script.args(["-q", "-e", "-c", &command, "/dev/null"]).env("TERM", "xterm").env("SHELL", "/bin/sh");
        script.envs(variables.iter().copied());
        let mut child = script.stdin(Stdio::piped()).spawn().unwrap();
        let keyboard = child.stdin.take();
        let mut stdout = child.stdout.take().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(len @ 1..) = stdout.read(&mut bytes) {
                if sender.send(bytes[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        Some(Self { child, keyboard, screen, shown: String::new() })
    }

    fn types(&mut self, text: &str) {
        let keyboard = self.keyboard.as_mut().unwrap();
        keyboard.write_all(text.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    /// Waits until this text is on the screen, after the texts of earlier calls.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        let until = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.shown.find(text) {
                self.shown.drain(..at + text.len());
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("no {text:?} on the screen ({error}): {:?}", self.shown),
            }
        }
    }

    /// The remaining output, and the exit code.
    fn end(mut self) -> (String, Option<i32>) {
        while let Ok(bytes) = self.screen.recv_timeout(DEADLINE) {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        drop(self.keyboard.take());
        (std::mem::take(&mut self.shown), wait(&mut self.child).code())
    }
}

#[test]
fn colour_is_for_terminals_only_and_no_color_is_honoured() {
    let env = TestEnvironment::new();
    let wrong = "vm-system run missing.js";
    let Some(terminal) = Terminal::run(&env, wrong, &[]) else { return };
    let (shown, code) = terminal.end();
    assert!(shown.contains("\u{1b}[") && shown.contains("missing.js"), "{shown:?}");
    assert_eq!(code, Some(1));
    let Some(plain) = Terminal::run(&env, wrong, &[("NO_COLOR", "1")]) else { return };
    let (shown, _) = plain.end();
    assert!(!shown.contains('\u{1b}') && shown.contains("error: "), "{shown:?}");
    let piped = env.run(["run", "missing.js"]).failed(1);
    assert!(!piped.contains('\u{1b}'), "{piped:?}");
}

#[test]
fn control_characters_of_a_script_do_not_reach_a_terminal() {
    let env = TestEnvironment::new();
    env.file("evil.js", r"console.log('a\x1b[2Jb\x07c\x9bd\u202ee'); console.error('\x1b]0;title\x07')");
    let Some(terminal) = Terminal::run(&env, "vm-system run evil.js", &[("NO_COLOR", "1")]) else { return };
    let (shown, code) = terminal.end();
    assert!(shown.contains(r"a\x1b[2Jb\x07c\x9bd\u{202e}e"), "{shown:?}");
    assert!(shown.contains(r"\x1b]0;title\x07") && !shown.contains('\u{1b}'), "{shown:?}");
    assert_eq!(code, Some(0));
    // A pipe gets the script's output unchanged, as data.
    assert!(env.run(["run", "evil.js"]).stdout.contains("a\u{1b}[2Jb\u{7}c"));
}

#[test]
fn ctrl_c_in_the_repl_cancels_the_execution_and_not_the_shell() {
    let env = TestEnvironment::new();
    let Some(mut terminal) = Terminal::run(&env, "vm-system repl --timeout 10m", &[("NO_COLOR", "1")]) else {
        return;
    };
    terminal.shows("> ");
    terminal.types("var kept = 40\r");
    terminal.shows("undefined");
    // Concatenated, so that the echo of the input does not match the expected text.
    terminal.types("console.log('be' + 'gun'); for (;;) {}\r");
    terminal.shows("begun");
    terminal.types("\u{3}");
    terminal.shows("> ");
    terminal.types("kept + 2\r");
    terminal.shows("42");
    // At the prompt, Ctrl-C drops the line.
    terminal.shows("> ");
    terminal.types("nonsense");
    terminal.shows("nonsense");
    terminal.types("\u{3}");
    terminal.shows("> ");
    terminal.types("kept + 3\r");
    terminal.shows("43");
    terminal.types(".exit\r");
    assert_eq!(terminal.end().1, Some(0));
}

#[test]
fn lines_that_arrive_together_are_all_evaluated() {
    let env = TestEnvironment::new();
    let Some(mut terminal) = Terminal::run(&env, "vm-system repl", &[("NO_COLOR", "1")]) else { return };
    terminal.shows("> ");
    terminal.types("10 + 1\r20 + 2\r30 + 3\r.exit\r");
    for result in ["11", "22", "33"] {
        terminal.shows(result);
    }
    assert_eq!(terminal.end().1, Some(0));
}

#[test]
fn a_script_that_has_paused_its_input_ends_on_a_terminal() {
    let env = TestEnvironment::new();
    env.file(
        "question.js",
        "const rl = require('readline').createInterface({ input: process.stdin, output: process.stdout });
         rl.question('your ' + 'name? ', (name) => { console.log('hello', name.toUpperCase()); rl.close() })",
    );
    env.file(
        "once.js",
        "console.log('your ' + 'name?');
         process.stdin.once('data', (line) => {
             console.log('hello', String(line).trim().toUpperCase());
             process.stdin.pause();
         })",
    );
    // A paused output continues where it was.
    env.file(
        "resumed.js",
        "console.log('your ' + 'name?');
         process.stdin.once('data', () => {
             process.stdin.pause();
             setTimeout(() => {
                 process.stdin.once('data', (line) => {
                     console.log('hello', String(line).trim().toUpperCase());
                     process.stdin.pause();
                 });
                 process.stdin.resume();
                 console.log('your ' + 'name?');
             }, 1);
         })",
    );
    for (script, names) in [("question.js", 1), ("once.js", 1), ("resumed.js", 2)] {
        let command = format!("vm-system run {script}");
        let Some(mut terminal) = Terminal::run(&env, &command, &[("NO_COLOR", "1")]) else { return };
        for _ in 0..names {
            terminal.shows("your name?");
            terminal.types("bob\r");
        }
        terminal.shows("hello BOB");
        assert_eq!(terminal.end().1, Some(0), "{script}");
    }
}

#[test]
fn a_question_in_the_shell_is_answered_by_the_next_line() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.run(["template", "create", "--name", "t"]).ok();
    let create = ["--template-id", "t", "--workspace-id", "w", "--base-commit", "c", "--worktree-path", "."];
    let session = env.run(["--quiet", "session", "create"].iter().chain(&create)).ok();
    for command in [format!("vm-system repl {}", session.trim()), "vm-system repl".to_owned()] {
        let Some(mut terminal) = Terminal::run(&env, &command, &[("NO_COLOR", "1")]) else { return };
        terminal.shows("> ");
        terminal.types("'got ' + CC('your ' + 'name?') + CC('and ' + 'age?', {schema: {type: 'integer'}})\r");
        terminal.shows("[task] your name?");
        terminal.shows("answer> ");
        terminal.types("Bob {\r");
        terminal.shows("[task] and age?");
        terminal.shows("integer");
        terminal.shows("answer> ");
        // An answer that does not match leaves the question pending.
        terminal.types("many\r");
        terminal.shows("ANSWER_INVALID");
        terminal.shows("answer> ");
        terminal.types(".answer 7\r");
        terminal.shows("'got Bob {7'");
        terminal.shows("> ");
        terminal.types("CC('an' + 'other?')\r");
        terminal.shows("[task] another?");
        terminal.shows("answer> ");
        terminal.types(".cancel\r");
        terminal.shows("> ");
        terminal.types("40 + 2\r");
        terminal.shows("42");
        terminal.shows("> ");
        terminal.types("_ + 1\r");
        terminal.shows("43");
        terminal.types(".exit\r");
        assert_eq!(terminal.end().1, Some(0), "{command}");
    }
    // A question that another client has left is shown first.
    assert_eq!(env.run(["exec", "repl", session.trim(), "CC('left be' + 'hind?') + '!'"]).code, Some(0));
    let command = format!("vm-system repl {}", session.trim());
    let Some(mut terminal) = Terminal::run(&env, &command, &[("NO_COLOR", "1")]) else { return };
    terminal.shows("[task] left behind?");
    terminal.shows("answer> ");
    terminal.types("yes\r");
    terminal.shows("'yes!'");
    terminal.types(".exit\r");
    assert_eq!(terminal.end().1, Some(0));
}

#[test]
fn a_shell_in_a_pipe_answers_with_the_next_line_and_knows_its_last_value() {
    let env = TestEnvironment::new();
    let run = env.run_with_stdin(["repl"], "CC('name?') + '!'\nBob\n_.length\nlet _ = 5\n_\n1\n_\n");
    assert_eq!(run.stdout, "'Bob!'\n4\n5\n1\n5\n", "{run:?}");
    let run = env.run_with_stdin(["repl"], "let a = 1\nlet b = {\n  c: a\n}\n.save kept.js\n.save kept.js\n");
    assert!(run.stderr.contains("cannot write kept.js"), "an existing file is kept: {run:?}");
    assert_eq!(
        std::fs::read_to_string(env.work().join("kept.js")).unwrap(),
        "let a = 1\nlet b = {\n  c: a\n}\n"
    );
    let run = env.run_with_stdin(["repl"], ".load kept.js\nb\n");
    assert_eq!(run.stdout, "{ c: 1 }\n");
    // Only a shell has `_`.
    assert_eq!(env.run(["run", "-e", "1; typeof _"]).ok(), "'undefined'\n");
}

#[test]
fn the_shell_completes_properties_and_colours_values() {
    let env = TestEnvironment::new();
    let Some(mut terminal) = Terminal::run(&env, "vm-system repl", &[]) else { return };
    terminal.shows("> ");
    terminal.types("var thing = { inner: { longNameOfIt: 6 * 7 }, get trap() { throw 1 } }\r");
    terminal.shows("undefined");
    terminal.shows("> ");
    terminal.types("thing.inner.longN\t\r");
    terminal.shows("\u{1b}[33m42\u{1b}[0m");
    terminal.shows("> ");
    terminal.types("'te' + 'xt'\r");
    terminal.shows("\u{1b}[32m'text'\u{1b}[0m");
    terminal.types(".exit\r");
    assert_eq!(terminal.end().1, Some(0));
}

#[test]
fn a_table_fits_the_terminal_and_wide_does_not() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.run(["template", "create", "--name", &"n".repeat(150)]).ok();
    let id = env.run(["--quiet", "template", "list"]).ok();
    let id = id.trim();
    let list = "sh -c 'stty rows 20 cols 80; exec vm-system template list'";
    let Some(terminal) = Terminal::run(&env, list, &[("NO_COLOR", "1")]) else { return };
    let (shown, _) = terminal.end();
    let widest = shown.lines().map(|line| line.trim_end().chars().count()).max();
    assert!(widest <= Some(80) && shown.contains('…'), "{shown}");
    assert!(shown.contains(&id[..13]) && !shown.contains(id), "{shown}");
    assert!(shown.contains("ago") || shown.contains("now"), "{shown}");
    // The shown beginning of the id names the row.
    env.run(["template", "get", &id[..13]]).ok();
    let list = "sh -c 'stty rows 20 cols 80; exec vm-system template list --wide'";
    let Some(terminal) = Terminal::run(&env, list, &[("NO_COLOR", "1")]) else { return };
    let (shown, _) = terminal.end();
    assert!(shown.contains(id) && shown.contains(&"n".repeat(150)), "{shown}");
    // In a pipe nothing is shortened.
    assert!(env.run(["template", "list"]).ok().contains(id));
}

/// The lines of a command on a terminal of this width.
fn lines_at(env: &TestEnvironment, columns: u32, command: &str) -> Option<Vec<String>> {
    let command = format!("sh -c 'stty rows 20 cols {columns}; exec {command}'");
    let (shown, code) = Terminal::run(env, &command, &[("NO_COLOR", "1"), ("PAGER", "cat")])?.end();
    assert!(matches!(code, Some(0 | 1)), "{command}: {shown}");
    Some(shown.lines().map(|line| line.trim_end().to_owned()).collect())
}

fn widest(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn names_and_values_are_wrapped_on_a_terminal_and_whole_in_a_pipe() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let about = "a text of several words ".repeat(8);
    env.run(["template", "create", "--name", "t"]).ok();
    env.run([
        "--quiet",
        "session",
        "create",
        "--template-id",
        "t",
        "--name",
        "s",
        "--base-commit",
        about.trim(),
    ])
    .ok();
    // The event of this execution has a long id behind long columns.
    env.run(["exec", "repl", "s", "1"]).ok();
    for command in ["template get t", "session inspect s", "session events s", "ops doctor", "ops runtime"] {
        let Some(lines) = lines_at(&env, 80, &format!("vm-system {command}")) else { return };
        assert!(widest(&lines) <= 80, "{command}: {lines:#?}");
    }
    let lines = lines_at(&env, 80, "vm-system session get s").unwrap();
    let first = lines.iter().position(|line| line.contains("a text of several")).unwrap();
    let column = lines[first].find("a text").unwrap();
    let next = lines[first + 1].trim_start();
    assert_eq!(lines[first + 1].len() - next.len(), column, "below the value: {lines:#?}");
    let wide = lines_at(&env, 80, "vm-system --wide session get s").unwrap();
    for whole in [wide.join("\n"), env.run(["session", "get", "s"]).ok()] {
        assert!(whole.contains(about.trim()), "{whole}");
    }
}

#[test]
fn a_list_that_does_not_fit_shows_each_row_as_a_block_with_its_ids() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.file("ask.js", "function main() { return CC('a question of several words, which is long') }");
    env.run(["program", "load", "ask.js", "--name", "ask"]).ok();
    env.run(["program", "start", "ask", "--name", "first"]).ok();
    let tasks: serde_json::Value =
        serde_json::from_str(&env.run(["task", "list", "--output", "json"]).ok()).unwrap();
    let execution = &tasks[0]["execution_id"].as_str().unwrap()[..13];
    for columns in [60, 80, 120] {
        let Some(lines) = lines_at(&env, columns, "vm-system task list") else { return };
        assert!(widest(&lines) <= columns as usize, "{columns}: {lines:#?}");
        assert!(lines.iter().any(|line| line.contains(execution)), "{columns}: {lines:#?}");
    }
    let lines = lines_at(&env, 60, "vm-system task list").unwrap();
    assert!(lines.iter().any(|line| line.starts_with("EXECUTION  ")), "{lines:#?}");
}

#[test]
fn a_topic_has_paragraphs_of_the_width_of_the_terminal() {
    let env = TestEnvironment::new();
    let Some(lines) = lines_at(&env, 70, "vm-system help rights") else { return };
    let page = env.run(["help", "rights"]).ok();
    assert!(widest(&page.lines().map(str::to_owned).collect::<Vec<_>>()) > 100, "as it is in a pipe");
    let mut in_code = false;
    for line in &lines {
        in_code ^= line.trim_start().starts_with("```");
        let is_kept = in_code || line.starts_with(['|', '#']);
        assert!(is_kept || line.chars().count() <= 70, "{line}");
    }
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&lines.join("\n")), words(&page), "the same words");
}

#[test]
fn long_help_goes_through_the_pager_on_a_terminal() {
    let env = TestEnvironment::new();
    for command in ["vm-system help rights", "vm-system serve --help"] {
        let command = &format!("sh -c 'stty rows 20 cols 80; exec {command}'");
        let Some(terminal) = Terminal::run(&env, command, &[("PAGER", "sed s/^/paged:/"), ("NO_COLOR", "1")])
        else {
            return;
        };
        let (shown, code) = terminal.end();
        assert!(shown.contains("paged:") && code == Some(0), "{command}: {shown}");
        let Some(terminal) = Terminal::run(&env, command, &[("PAGER", "no-such-pager"), ("NO_COLOR", "1")])
        else {
            return;
        };
        let (shown, _) = terminal.end();
        assert!(shown.contains("--") || shown.contains("# Rights"), "{command}: {shown}");
    }
}

#[test]
fn ctrl_c_ends_a_run_with_130() {
    let env = TestEnvironment::new();
    let command = r#"vm-system run -e "console.log('be' + 'gun'); for (;;) {}" --timeout 10m"#;
    let Some(mut terminal) = Terminal::run(&env, command, &[("NO_COLOR", "1")]) else { return };
    terminal.shows("begun");
    terminal.types("\u{3}");
    assert_eq!(terminal.end().1, Some(130));
}

/// A fake npm with the packages of a folder; it waits for a line from a pipe before it returns `dayjs`. It refuses to look for
/// configuration in folders above its own, and to run git.
const NPM: &str = r#"#!/bin/sh
[ "$2 $npm_config_git" = "--no-workspaces false" ] && [ -f package.json ] || exit 1
spec=$([ "$1" = pack ] && echo "$6" || echo "$5")
name=${spec%@*}
case "$1" in
pack)
    [ "$name" = dayjs ] && read -r go <"$HOME/go"
    cp "$HOME/$name.tgz" .
    printf '[{"name":"%s","version":"%s","filename":"%s.tgz"}]' "$name" "${spec#*@}" "$name" ;;
view) cat "$HOME/$name.integrity" ;;
esac
"#;

/// Creates the package of a catalog library, and the registry's record of it.
fn put_package(env: &TestEnvironment, id: &str) {
    let entry = vm_system_spawn::libraries::catalog_entry(id).expect("of the catalog");
    let manifest = format!(r#"{{"name":"{id}","version":"{}"}}"#, entry.version);
    let bytes = archive(&[("package.json", manifest.as_str()), (entry.file, "globalThis.it = 1")]);
    std::fs::write(env.path("home").join(format!("{id}.tgz")), &bytes).unwrap();
    let file = env.path("home").join(format!("{id}.integrity"));
    std::fs::write(file, format!("{:?}", integrity(&bytes))).unwrap();
}

#[test]
fn a_download_shows_progress_and_leaves_only_its_result() {
    let env = TestEnvironment::new();
    let _daemon = FakeDaemon::start(&env);
    for id in ["lodash", "dayjs"] {
        put_package(&env, id);
    }
    let npm = env.path("home").join("npm");
    std::fs::write(&npm, NPM).unwrap();
    std::fs::set_permissions(&npm, std::fs::Permissions::from_mode(0o755)).unwrap();
    let go = env.path("home").join("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // Opened for reading too, so that opening does not block.
    let mut go = std::fs::File::options().read(true).write(true).open(&go).unwrap();
    let usual = env.program("").get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    let path = format!("{}:{}", env.path("home").display(), usual.to_string_lossy());
    let command = "vm-system libs download lodash dayjs";
    let Some(mut terminal) = Terminal::run(&env, command, &[("PATH", &path), ("NO_COLOR", "1")]) else {
        return;
    };
    terminal.shows("0/2 lodash");
    terminal.shows("1/2 dayjs");
    go.write_all(b"go\n").unwrap();
    let (shown, code) = terminal.end();
    assert_eq!(code, Some(0), "{shown:?}");
    let result = shown.rsplit('\u{1b}').next().unwrap();
    assert!(result.contains("lodash-1.0.0") && result.contains("dayjs-1.0.0"), "{shown:?}");
    assert!(!result.contains("/2"), "the bar is gone: {shown:?}");

    // Into a pipe: only the result.
    go.write_all(b"go\n").unwrap();
    let mut piped = env.command(["libs", "download", "lodash", "dayjs"]);
    let output = piped.env("PATH", &path).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// Creates a task for a number of at least 2, then one for a text.
const PROMPTS: &str = "
    function main() {
        const n: number = CC('how many?', { schema: { type: 'number', minimum: 2 } });
        console.log('twice is', n * 2);
        return CC('and which?') + ' x ' + n;
    }
";

#[test]
fn a_task_is_repeated_on_the_terminal_until_an_answer_matches() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.file("prompts.ts", PROMPTS);
    let command = "vm-system program start prompts.ts --interactive";
    let Some(mut terminal) = Terminal::run(&env, command, &[("NO_COLOR", "1")]) else { return };
    terminal.shows("how many?");
    terminal.shows("\"minimum\":2");
    terminal.shows("> ");
    terminal.types("one\n");
    terminal.shows("error: ");
    terminal.shows("ANSWER_INVALID");
    terminal.shows("how many?");
    terminal.shows("> ");
    terminal.types("21\n");
    terminal.shows("twice is 42");
    terminal.shows("and which?");
    terminal.shows("> ");
    terminal.types("apples\n");
    terminal.shows("\"apples x 21\"");
    assert_eq!(terminal.end().1, Some(0));
}

#[test]
fn ctrl_c_at_a_task_leaves_the_program_waiting_with_a_hint() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.file("prompts.ts", PROMPTS);
    let command = "vm-system program start prompts.ts --name left --interactive";
    let Some(mut terminal) = Terminal::run(&env, command, &[("NO_COLOR", "1")]) else { return };
    terminal.shows("how many?");
    terminal.shows("> ");
    terminal.types("4\n");
    terminal.shows("and which?");
    terminal.shows("> ");
    terminal.types("\u{3}");
    terminal.shows("hint: ");
    let (shown, code) = terminal.end();
    assert_eq!(code, Some(130), "{shown:?}");
    let (_, rest) = shown.split_once("`vm-system task submit ").unwrap_or_else(|| panic!("{shown:?}"));
    let (id, _) = rest.split_once(' ').unwrap();
    assert_eq!(env.run(["task", "get", "left"]).ok(), "and which?\n");
    assert!(env.run(["task", "submit", id, "pears"]).ok().contains("pears x 4"));
}

#[test]
fn a_task_is_answered_by_its_id_with_and_without_waiting() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.file("prompts.ts", PROMPTS);
    let json = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let run = json(env.run(["program", "start", "prompts.ts", "--output", "json"]).ok());
    let task = run["task"]["id"].as_str().unwrap();
    // The prompt alone is the output.
    let got = env.run(["task", "get", task]);
    assert_eq!((got.code, got.stdout.as_str()), (Some(0), "how many?\n"));
    assert!(got.stderr.starts_with("Schema of the answer: {"), "{}", got.stderr);
    // A JSON string is not a number; a typed answer is parsed as JSON.
    env.run(["task", "submit", task, "--json", "\"7\""]).failed(1);
    let answered = json(env.run(["task", "submit", task, "7", "--no-wait", "--output", "json"]).ok());
    assert_eq!((&answered["id"], answered["status"].as_str()), (&run["id"], Some("running")));
    // The answer was accepted: the task is no longer pending.
    assert!(env.run(["task", "submit", task, "8"]).failed(1).contains("TASK_NOT_PENDING"));
    let id = run["id"].as_str().unwrap();
    let until = Instant::now() + DEADLINE;
    while env.run(["task", "get", id]).ok() != "and which?\n" {
        assert!(Instant::now() < until, "the program does not continue");
    }
    assert!(env.run(["task", "submit", id, "x"]).ok().contains("x x 7"));
    env.run(["program", "forget", id]).ok();
    env.run(["program", "status", id]).failed(1);
}
