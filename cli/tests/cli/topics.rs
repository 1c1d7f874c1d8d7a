//! Every command in the help topics works: each block of `sh` is run, in order, with a daemon in the background, unless the page
//! starts its own.

use crate::environment::{Run, TestEnvironment};

/// The `sh` code blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in page.lines() {
        match &mut open {
            Some(_) if line.starts_with("```") => blocks.extend(open.take()),
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None if line == "```sh" => open = Some(String::new()),
            None => {}
        }
    }
    blocks
}

const SERVE: &str = "vm-system serve --detach";

fn runs(topic: &str) {
    let env = TestEnvironment::new();
    let page = env.run(["help", topic]).ok();
    let mut script = blocks(&page).concat();
    assert!(!script.is_empty(), "{topic} has nothing to run");
    let _daemon = if script.contains(SERVE) {
        // The usual places belong to the user who runs the test.
        let serve =
            format!("{SERVE} --root-files --durability normal --state-dir {}", env.path("state").display());
        let stop = "trap 'vm-system ops shutdown >/dev/null 2>&1 || true' EXIT";
        script = format!("{stop}\n{}", script.replacen(SERVE, &serve, 1));
        None
    } else {
        Some(env.serve())
    };
    let run = Run::from_output(&env.program("sh").args(["-eux", "-c", &script]).output().unwrap());
    let failed = run.stderr.contains("error:");
    assert!(run.code == Some(0) && !failed, "{topic}:\n{}\n{}", run.stdout, run.stderr);
}

#[test]
fn getting_started() {
    runs("getting-started");
}

#[test]
fn templates_and_sessions() {
    runs("templates-and-sessions");
}

#[test]
fn cli_command_reference() {
    runs("cli-command-reference");
}

#[test]
fn examples() {
    runs("examples");
}

#[test]
fn security() {
    runs("security");
}

#[test]
fn operations() {
    runs("operations");
}
