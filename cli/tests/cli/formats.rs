//! Results as tables, JSON, YAML and CSV; REST's field names; only the result on stdout.

use crate::environment::TestEnvironment;
use crate::fake::FakeDaemon;
use std::fmt::Write as _;
use vm_system_protocol::control::Op;

const T: &str = "01010101-0101-0101-0101-010101010101";
const S: &str = "02020202-0202-0202-0202-020202020202";
const E: &str = "03030303-0303-0303-0303-030303030303";

#[test]
fn lines_that_scripts_parse_do_not_change() {
    let env = TestEnvironment::new();
    let _daemon = FakeDaemon::start(&env);
    let create = ["template", "create", "--name", "mine"];
    assert_eq!(env.run(create).ok(), format!("Created template: mine (ID: {T})\n"));
    let create = "session create --template-id t --workspace-id w --base-commit c --worktree-path /work";
    assert_eq!(env.run(create.split(' ')).ok(), format!("Created session: {S}\n"));
    assert_eq!(env.run(["session", "close", S]).ok(), format!("Closed session: {S}\n"));
    assert_eq!(env.run(["-q", "session", "close", S]).ok(), format!("{S}\n"));
    let add = ["template", "add-library", "t", "--name", "lodash-4.17.21"];
    assert_eq!(env.run(add).ok(), "Added library: lodash-4.17.21\n");
}

#[test]
fn every_format_of_every_kind_of_result() {
    let env = TestEnvironment::new();
    let _daemon = FakeDaemon::start(&env);
    let mut all = String::new();
    for args in [
        "template list",
        "template get t",
        "template list-modules t",
        "template list-available-modules",
        "template list-startup t",
        "template list-capabilities t",
        "template list-libraries t",
        "template add-capability t --kind fs --name read --enabled",
        "template add-startup t --path a.js --order -1",
        "libs list",
        "session list",
        "session get s",
        "session kill s",
        "exec list s",
        "exec get e",
        "exec events e",
        "exec events e --follow",
        "exec repl s ok",
        "ops health",
    ] {
        for format in ["table", "json", "yaml", "csv"] {
            let run = env.run(args.split(' ').chain(["--output", format]));
            assert_eq!(run.code, Some(0), "{run:?}");
            write!(all, "$ vm-system {args} --output {format}\n{}", run.stdout).unwrap();
            if !run.stderr.is_empty() {
                write!(all, "--- stderr\n{}", run.stderr).unwrap();
            }
            all.push('\n');
        }
    }
    insta::assert_snapshot!("formats", all);
}

#[test]
fn an_execution_ends_with_the_exit_code_of_its_status_in_every_format() {
    let env = TestEnvironment::new();
    let _daemon = FakeDaemon::start(&env);
    for (code, exit) in [("ok", 0), ("error", 1), ("timeout", 124), ("cancelled", 130)] {
        for format in ["table", "json"] {
            let run = env.run(["exec", "repl", "s", code, "--output", format]);
            assert_eq!(run.code, Some(exit), "{run:?}");
        }
    }
    let error = env.run(["exec", "repl", "s", "error"]).failed(1);
    assert!(error.contains("error: it ended (WORKER_DIED)"), "{error}");
}

#[test]
fn arguments_reach_the_supervisor_unchanged() {
    let env = TestEnvironment::new();
    let daemon = FakeDaemon::start(&env);
    let args = ["exec", "run-file", "s", "a.js", "--args", "{\"n\": 3}", "--env", "{\"A\":\"b\"}"];
    env.run(args.into_iter().chain(["--idempotency-key", "k"]));
    let (op, key) = daemon.requests().remove(0);
    assert_eq!(key.as_deref(), Some("k"));
    let Op::ExecStart(new) = op else { panic!("{op:?}") };
    assert_eq!((new.args.as_str(), new.path.as_deref(), new.wait), ("{\"n\":3}", Some("a.js"), true));
    assert_eq!(new.env, [("A".to_owned(), "b".to_owned())]);
    env.run_with_stdin(["exec", "repl", "s", "-"], "from stdin");
    let (op, key) = daemon.requests().remove(1);
    assert!(key.is_some_and(|key| key.len() == 36), "a key of its own");
    let Op::ExecStart(new) = op else { panic!("{op:?}") };
    assert_eq!(new.input.as_deref(), Some("from stdin"));
}

#[test]
fn without_a_terminal_there_is_no_colour_and_scripts_output_is_untouched() {
    let env = TestEnvironment::new();
    let _daemon = FakeDaemon::start(&env);
    let run = env.run(["exec", "repl", "s", "ok"]);
    assert_eq!(run.stdout, "to stdout \x1b[31m\ntwo\nlines\n42\n");
    assert_eq!(run.stderr, "to stderr\n");
    let names = env.run(["template", "list"]).ok();
    assert!(names.contains("\\x1b[31mred"), "cells of tables are always escaped: {names}");
    let error = env.run(["exec", "cancel", E]).failed(1);
    assert!(error.starts_with("error: "), "{error:?}");
}

#[test]
fn a_list_that_is_not_whole_says_so_also_with_quiet() {
    let env = TestEnvironment::new();
    let _daemon = FakeDaemon::start(&env);
    for (args, rows, note) in [
        (&["--limit", "1"][..], 1, "There are more than 1: `--limit N` or `--all` shows them.\n"),
        (&["--limit", "2"], 2, ""),
        (&["--all"], 2, ""),
        (&[], 2, ""),
    ] {
        let run = env.run([&["--quiet", "template", "list"], args].concat());
        assert_eq!(
            (run.code, run.stdout.lines().count(), run.stderr.as_str()),
            (Some(0), rows, note),
            "{args:?}"
        );
    }
}
