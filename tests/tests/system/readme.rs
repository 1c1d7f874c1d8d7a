//! Runs every command that README.md shows and every `curl` request of the API reference, in one shell from top to bottom, and
//! compares the output with the page. `…` in a line matches any text, a line of only `…` any number of lines.

use std::path::Path;
use vm_system_tests::command::{command, run};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::program;
use vm_system_tests::skip;

/// One command and its expected output.
#[derive(Debug, Default)]
struct Step {
    command: String,
    expected: Vec<String>,
}

impl Step {
    /// Whether its here-document has not ended.
    fn is_open(&self) -> bool {
        let tag = self.command.split_once("<<'").and_then(|(_, rest)| rest.split_once('\''));
        tag.is_some_and(|(tag, _)| !self.command.ends_with(&format!("\n{tag}")))
    }
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            inside = fence == "console";
        } else if !inside {
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), expected: Vec::new() });
        } else if let Some(step) = steps.last_mut() {
            if step.is_open() {
                step.command.extend(["\n", line]);
            } else {
                step.expected.push(line.to_owned());
            }
        }
    }
    steps
}

fn line_matches(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in &parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

fn matches(expected: &[String], lines: &[&str]) -> bool {
    match expected {
        [] => lines.is_empty(),
        [any, rest @ ..] if any == "…" => (0..=lines.len()).any(|skip| matches(rest, &lines[skip..])),
        [first, rest @ ..] => {
            lines.split_first().is_some_and(|(line, lines)| line_matches(first, line) && matches(rest, lines))
        }
    }
}

#[test]
fn every_command_in_the_readme_prints_what_the_page_shows() {
    tour("README.md", 10);
}

#[test]
fn every_command_of_the_page_about_programs_prints_what_the_page_shows() {
    tour("docs/programs.md", 10);
}

#[test]
fn every_request_of_the_api_reference_has_the_response_of_the_page() {
    if !Path::new("/usr/bin/curl").exists() {
        skip("curl", "there is no curl here");
        return;
    }
    tour("docs/api-reference.md", 12);
}

/// Runs the commands of a page, of which there are more than `least`.
fn tour(page: &str, least: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("repository");
    let text = std::fs::read_to_string(root.join(page)).expect(page);
    let steps = steps(&text);
    assert!(steps.len() > least, "only {} commands found", steps.len());
    let place = TestDir::new(User::AsStarted);
    let binary = program::path(program::PRODUCT, User::AsStarted);
    std::os::unix::fs::symlink(&binary, place.path("run/vm-system")).expect("link");
    // As in a checkout: the current folder is the worktree and has the examples.
    let copied =
        std::process::Command::new("cp").arg("-r").arg(root.join("examples")).arg(place.worktree()).status();
    assert!(copied.is_ok_and(|status| status.success()), "copy of the examples");
    let mut script = String::from(
        "set -u\ntrap 'vm-system --state-dir \"$HOME/vm-system\" ops shutdown >/dev/null 2>&1; wait' EXIT\n",
    );
    for (number, step) in steps.iter().enumerate() {
        // The build is not tested here.
        let line = step.command.replace("cargo run --release --", "vm-system");
        // The files of these pages are the reader's own, who is root here.
        let line = if User::can_be_switched() {
            line.replace("vm-system serve", "vm-system serve --root-files")
        } else {
            line
        };
        script.extend(["echo '==== ", &number.to_string(), "'\n", &line, "\n"]);
        if line.ends_with('&') {
            script.push_str(
                "until vm-system --state-dir \"$HOME/vm-system\" ops health >/dev/null 2>&1; do :; done\n",
            );
        }
    }
    let path = format!("{}:/usr/bin:/bin", place.path("run").display());
    let mut shell = command(&place, program::PRODUCT);
    let mut bash = std::process::Command::new("/bin/bash");
    bash.arg("-c").arg(&script).env_clear().env("PATH", path);
    for (name, value) in shell.get_envs().filter(|(name, _)| *name != "PATH" && *name != "VM_SYSTEM_SOCKET") {
        bash.env(name, value.expect("set"));
    }
    bash.current_dir(place.worktree());
    shell.arg("--version");
    let output = run(&mut bash, "");
    let mut printed: Vec<Vec<&str>> = Vec::new();
    for line in output.stdout.lines() {
        if line.starts_with("==== ") {
            printed.push(Vec::new());
        } else if let Some(lines) = printed.last_mut() {
            lines.push(line);
        }
    }
    assert_eq!(printed.len(), steps.len(), "stdout:\n{}\nstderr:\n{}", output.stdout, output.stderr);
    for (step, lines) in steps.iter().zip(&printed) {
        // The output of a command without shown output is not compared.
        let fits = step.expected.is_empty() || matches(&step.expected, lines);
        assert!(
            fits,
            "$ {}\nsays {:?}\nprinted {lines:?}\nstderr:\n{}",
            step.command, step.expected, output.stderr
        );
    }
    let failed = output.stderr.lines().find(|line| line.contains("error:") && !line.contains("(CPU_LIMIT)"));
    assert_eq!(failed, None, "stderr:\n{}", output.stderr);
}

#[test]
fn ellipses_of_expected_lines_match_any_text() {
    assert!(line_matches("Created template: tour (ID: …)", "Created template: tour (ID: 1-2)"));
    assert!(!line_matches("Created template: tour (ID: …)", "Created template: other (ID: 1-2)"));
    assert!(!line_matches("42", "421") && line_matches("42", "42") && line_matches("a…", "ab"));
    assert!(line_matches("{a…c…}", "{a{b}c{d}}") && !line_matches("{a…}", "{a}b"));
    let any = ["…".to_owned(), "end".to_owned()];
    assert!(matches(&any, &["x", "y", "end"]) && matches(&any, &["end"]) && !matches(&any, &["x"]));
}
