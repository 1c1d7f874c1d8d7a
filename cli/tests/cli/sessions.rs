//! Sessions of a daemon, used by commands in sequence and concurrently.

use crate::daemon::first_line;
use crate::environment::{Run, TestEnvironment, signal_child, wait};
use nix::sys::signal::Signal;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn separate_processes_share_a_sessions_state() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session();
    assert_eq!(env.run(["exec", "repl", &session, "var x = 42"]).ok(), "");
    assert_eq!(env.run(["exec", "repl", &session, "x"]).ok(), "42\n");
    assert_eq!(
        env.run(["exec", "repl", &session[..13], "x + 1"]).ok(),
        "43\n",
        "a unique beginning is enough"
    );
    let other = env.session();
    let error = env.run(["exec", "repl", &other, "x"]).failed(1);
    assert!(error.contains("ReferenceError: x is not defined"), "{error}");
}

#[test]
fn a_file_of_the_worktree_gets_its_arguments() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session();
    env.file("scripts/app.js", "console.log(args.n * 2, process.env.GREETING); console.error('careful')");
    let args = [
        "exec",
        "run-file",
        &session,
        "scripts/app.js",
        "--args",
        "{\"n\":3}",
        "--env",
        "{\"GREETING\":\"hi\"}",
    ];
    let run = env.run(args);
    assert_eq!(run, Run { code: Some(0), stdout: "6 hi\n".into(), stderr: "careful\n".into() });
    let error = env.run(["exec", "run-file", &session, "../secret.js"]).failed(1);
    assert!(error.contains("INVALID_PATH"), "{error}");
    let error = env.run(["exec", "run-file", &session, "missing.js"]).failed(1);
    assert!(error.contains("FILE_NOT_FOUND"), "{error}");
    let listed = json(&env.run(["exec", "list", &session, "--output", "json"]).ok());
    assert_eq!(listed.as_array().unwrap().len(), 1, "what was refused leaves no row");
}

#[test]
fn an_id_that_is_too_short_is_refused_with_that_reason() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session();
    let error = env.run(["session", "get", &session[..3]]).failed(1);
    assert!(error.contains("first 4 characters"), "{error}");
    env.run(["session", "get", &session[..13]]).ok();
}

#[test]
fn a_running_execution_is_followed_and_cancelled_by_others() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session_of(&["--cpu-ms", "60000", "--wall-ms", "60000"]);
    let code = "console.log('one'); for (;;) {}";
    let execution = env.run(["-q", "exec", "repl", "--no-wait", &session, code]).ok();
    let execution = execution.trim();
    let mut follower = env.command(["exec", "events", "--follow", execution]).spawn().unwrap();
    assert!(first_line(&mut follower).contains("input_echo"));
    assert!(first_line(&mut follower).contains("[log] one"));
    let busy = env.run(["exec", "repl", &session, "1"]).failed(75);
    assert!(busy.contains("SESSION_BUSY") && busy.contains("hint:"), "{busy}");
    let line = env.run(["exec", "cancel", execution]).ok();
    assert_eq!(line, format!("Cancelled execution: {execution}\n"));
    assert_eq!(wait(&mut follower).code(), Some(0));
    let record = json(&env.run(["exec", "get", execution, "--output", "json"]).ok());
    assert_eq!(record["status"], "cancelled");
    assert_eq!(env.run(["exec", "cancel", execution]).ok(), line, "again changes nothing");
    assert_eq!(env.run(["exec", "repl", &session, "1"]).ok(), "1\n", "the session continues");
    let listed = json(&env.run(["exec", "list", &session, "--output", "json"]).ok());
    let ended = listed.as_array().unwrap().iter().find(|execution| execution["status"] == "ok").unwrap();
    let ended = ended["id"].as_str().unwrap();
    let line = env.run(["exec", "cancel", ended]).ok();
    let hint = format!("(`vm-system exec get {ended}` shows its result)");
    assert_eq!(line, format!("Execution {ended} had already ended: ok {hint}\n"));
}

#[test]
fn ctrl_c_cancels_the_execution_and_not_the_session() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session_of(&["--cpu-ms", "60000", "--wall-ms", "60000"]);
    let mut child =
        env.command(["exec", "repl", &session, "console.log('up'); for (;;) {}"]).spawn().unwrap();
    assert_eq!(first_line(&mut child), "up");
    signal_child(&child, Signal::SIGINT);
    assert_eq!(wait(&mut child).code(), Some(130));
    assert_eq!(env.run(["exec", "repl", &session, "1"]).ok(), "1\n");
}

#[test]
fn time_limits_end_with_124_and_the_session_continues() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session_of(&["--cpu-ms", "100", "--wall-ms", "10000"]);
    let error = env.run(["exec", "repl", &session, "for (;;) {}"]).failed(124);
    assert!(error.contains("CPU_LIMIT"), "{error}");
    assert_eq!(env.run(["exec", "repl", &session, "1"]).ok(), "1\n");
}

#[test]
fn a_killed_session_is_crashed_with_the_reason() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let (killed, sibling) = (env.session(), env.session());
    assert_eq!(env.run(["session", "kill", &killed]).ok(), format!("Killed session: {killed}\n"));
    let record = json(&env.run(["session", "get", &killed, "--output", "json"]).ok());
    assert_eq!(
        (record["status"].as_str(), record["close_reason"].as_str()),
        (Some("crashed"), Some("killed(operator)"))
    );
    let error = env.run(["exec", "repl", &killed, "1"]).failed(1);
    assert!(error.contains("SESSION_NOT_READY"), "{error}");
    assert_eq!(env.run(["exec", "repl", &sibling, "1"]).ok(), "1\n");
    let inspection = json(&env.run(["session", "inspect", &sibling, "--output", "json"]).ok());
    assert_eq!(inspection["seccomp_mode"], 2, "{inspection}");
    let summary = json(&env.run(["ops", "runtime-summary", "--output", "json"]).ok());
    assert_eq!(summary["active_session_ids"], serde_json::json!([sibling]));
}

#[test]
fn closing_is_idempotent_and_a_closed_session_refuses_executions() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session();
    for _ in 0..2 {
        assert_eq!(env.run(["session", "close", &session]).ok(), format!("Closed session: {session}\n"));
    }
    let error = env.run(["exec", "repl", &session, "1"]).failed(1);
    assert!(error.contains("SESSION_NOT_READY"), "{error}");
}

#[test]
fn a_renamed_session_is_found_by_its_new_name_and_its_old_one_is_free() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let (first, second) = (env.session(), env.session());
    env.run(["session", "rename", &first, "draft"]).ok();
    let line = env.run(["session", "rename", "draft", "nightly", "--idempotency-key", "k"]).ok();
    assert_eq!(line, format!("Renamed session: nightly (ID: {first})\n"));
    let again = env.run(["session", "rename", "draft", "nightly", "--idempotency-key", "k"]).ok();
    assert_eq!(again, line, "the same request");
    assert_eq!(env.run(["exec", "repl", "nightly", "1 + 1"]).ok(), "2\n");
    let listed = env.run(["session", "list"]).ok();
    assert!(listed.contains("nightly") && !listed.contains("draft"), "{listed}");
    let error = env.run(["session", "get", "draft"]).failed(1);
    assert!(error.contains("SESSION_NOT_FOUND"), "{error}");
    let error = env.run(["session", "rename", &second, "nightly"]).failed(1);
    assert!(error.contains("CONFLICT") && error.contains("\"nightly\""), "{error}");
    let error = env.run(["session", "rename", &second, "a\tb"]).failed(1);
    assert!(error.contains("VALIDATION_ERROR"), "{error}");
    env.run(["session", "rename", &second, "draft"]).ok();
    let record = json(&env.run(["session", "get", "draft", "--output", "json"]).ok());
    assert_eq!(record["id"], second.as_str());
    env.run(["session", "close", "nightly"]).ok();
    let error = env.run(["session", "rename", &first, "late"]).failed(1);
    assert!(error.contains("SESSION_NOT_READY"), "{error}");
    env.run(["session", "rename", "draft", "nightly"]).ok();
}

#[test]
fn a_request_with_the_same_key_runs_once() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session();
    env.run(["exec", "repl", &session, "var n = 0"]).ok();
    let once = ["--output", "json", "exec", "repl", "--idempotency-key", "k1", &session, "++n"];
    let (first, again) = (json(&env.run(once).ok()), json(&env.run(once).ok()));
    assert_eq!(first["id"], again["id"]);
    assert_eq!(env.run(["exec", "repl", &session, "n"]).ok(), "1\n");
    let other = ["exec", "repl", "--idempotency-key", "k1", &session, "n"];
    let error = env.run(other).failed(1);
    assert!(error.contains("IDEMPOTENCY_MISMATCH"), "{error}");
}

#[test]
fn two_concurrent_clients_use_two_sessions() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let sessions = [env.session(), env.session()];
    let children: Vec<_> = sessions
        .iter()
        .enumerate()
        .map(|(n, session)| {
            let code = format!("let s = 0; for (let i = 0; i < 200000; i++) s += {n}; s");
            env.command(["exec", "repl", session, &code]).spawn().unwrap()
        })
        .collect();
    let printed: Vec<_> =
        children.into_iter().map(|child| Run::from_output(&child.wait_with_output().unwrap()).ok()).collect();
    assert_eq!(printed, ["0\n", "200000\n"]);
}

#[test]
fn run_can_use_a_session_of_the_daemon() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session();
    assert_eq!(env.run(["run", "--session", &session, "-e", "globalThis.k = 5"]).ok(), "5\n");
    env.file("k.js", "console.log(k + 1, process.argv[2])");
    assert_eq!(env.run(["run", "--session", &session, "k.js", "arg"]).ok(), "6 arg\n");
}

#[test]
fn a_template_is_changed_and_its_modules_are_added_and_removed() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.run(["template", "create", "--name", "t", "--mem-mb", "32"]).ok();
    env.run(["template", "update", "t", "--wall-ms", "777", "--name", "u"]).ok();
    let detail = json(&env.run(["template", "get", "u", "--output", "json"]).ok());
    assert_eq!(
        (&detail["settings"]["limits"]["wall_ms"], &detail["settings"]["limits"]["mem_mb"]),
        (&777.into(), &32.into())
    );
    assert!(env.run(["template", "list-available-modules"]).ok().contains("fs"));
    let id =
        format!("{}\n", detail["template"]["id"].as_str().unwrap_or(detail["id"].as_str().unwrap_or("-")));
    assert_eq!(env.run(["-q", "template", "list"]).ok(), id, "what a shell loops over");
    env.run(["template", "add-module", "u", "--name", "FS "]).ok();
    assert_eq!(env.run(["template", "list-modules", "u", "--output", "csv"]).ok(), "value\nfs\n");
    env.run(["template", "remove-module", "u", "--name", "fs"]).ok();
    let none = env.run(["template", "list-modules", "u"]);
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.as_str()), (Some(0), "", "No modules.\n"));
    assert_eq!(env.run(["-q", "template", "list-modules", "u"]).ok(), "");
    let error = env.run(["template", "add-module", "u", "--name", "math"]).failed(1);
    assert!(error.contains("MODULE_NOT_ALLOWED") && error.contains("hint: "), "{error}");
    let error = env.run(["template", "create", "--name", "u"]).failed(1);
    assert!(error.contains("CONFLICT"), "{error}");
    env.run(["template", "delete", "u"]).ok();
    env.run(["template", "get", "u"]).failed(1);
}

#[test]
fn a_library_is_loaded_by_itself_before_it_is_installed() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.file("needs-1.0.0.js", "const other = require('other-package'); module.exports = other");
    env.file("other-package-1.0.0.js", "module.exports = 7");
    let error = env.run(["libs", "install", "--file", "needs-1.0.0.js"]).failed(1);
    assert!(error.contains("Invalid module 'other-package'") && error.contains("--unchecked"), "{error}");
    assert!(!env.run(["libs", "list"]).ok().contains("needs"), "nothing was installed");
    env.run(["libs", "install", "--file", "needs-1.0.0.js", "--unchecked"]).ok();
    env.run(["libs", "install", "--file", "other-package-1.0.0.js"]).ok();
    env.run(["template", "create", "--name", "alone"]).ok();
    env.run(["template", "add-library", "alone", "--name", "needs"]).ok();
    let create = |template: &str| {
        let place = ["--workspace-id", "w", "--base-commit", "c", "--worktree-path", "."];
        env.run(["--quiet", "session", "create", "--template-id", template].iter().chain(&place))
    };
    // Every session that names it says so, not only the first.
    for _ in 0..2 {
        assert!(create("alone").failed(1).contains("Invalid module 'other-package'"));
    }
    env.run(["template", "add-library", "alone", "--name", "other-package"]).ok();
    let session = create("alone").ok();
    assert_eq!(env.run(["exec", "repl", session.trim(), "require('needs')"]).ok(), "7\n");
}

#[test]
fn an_unknown_name_or_id_gets_what_may_have_been_meant() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.run(["template", "create", "--name", "nightly"]).ok();
    let create =
        ["--template-id", "nightly", "--workspace-id", "w", "--base-commit", "c", "--worktree-path", "."];
    let id = env.run(["--quiet", "session", "create", "--name", "builder"].iter().chain(&create)).ok();
    env.file("pause.js", "function main() { return CC('?') }");
    env.run(["program", "start", "pause.js", "--name", "bigprogram"]).ok();
    for (args, meant) in [
        (["task", "get", "bigprogam"], "bigprogram"),
        (["libs", "remove", "lodahs"], "lodash"),
        (["template", "get", "nighlty"], "nightly"),
        (["session", "get", "bulder"], "builder"),
        (["session", "get", &format!("{}zz", &id[..30])], id.trim()),
    ] {
        let error = env.run(args).failed(1);
        assert!(error.contains(&format!("hint: did you mean \"{meant}\"?")), "{args:?}: {error}");
    }
    let error = env.run(["template", "add-library", "nightly", "--name", "lodahs"]).failed(1);
    assert!(error.contains("did you mean \"lodash\"?"), "{error}");
    let error = env.run(["template", "add-startup", "nightly", "--path", "a.js", "--mode", "foo"]).failed(2);
    assert!(error.contains("eval") && error.contains("import"), "{error}");
    let error = env.run(["session", "get", "something-else"]).failed(1);
    assert!(!error.contains("did you mean"), "{error}");
}

#[test]
fn a_capability_without_effect_is_noted() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.run(["template", "create", "--name", "t"]).ok();
    let add = |kind: &str, name: &str, more: &[&str]| {
        let run = ["template", "add-capability", "t", "--kind", kind, "--name", name];
        let run = env.run(run.iter().chain(more));
        assert_eq!(run.code, Some(0), "{run:?}");
        run.stderr
    };
    assert!(add("fs", "write", &[]).contains("add it with --enabled"));
    assert!(add("env", "LANG", &[]).contains("add it with --enabled"));
    assert_eq!(add("env", "HOME", &["--enabled"]), "");
    // Withdraws.
    assert_eq!(add("fs", "read", &[]), "");
}

#[test]
fn a_pipe_gets_whole_cells() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let long = "abcdefghij".repeat(20);
    let session = env.session();
    assert_eq!(env.run(["exec", "repl", &session, &format!("CC('{long}')")]).code, Some(0));
    assert!(env.run(["task", "list"]).stdout.contains(&long));
    assert!(env.run(["exec", "list", &session]).stdout.contains(&format!("CC('{long}')")));
    env.file("it-1.0.0.js", "globalThis.it = 1");
    env.run(["libs", "install", "--file", "it-1.0.0.js"]).ok();
    let table = env.run(["libs", "list"]).ok();
    let line = table.lines().find(|line| line.starts_with("it-1.0.0")).unwrap();
    assert_eq!(line.split_whitespace().last().map(str::len), Some(64), "{table}");
}

#[test]
fn process_exit_ends_a_shell_with_its_code_and_says_what_continues() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session();
    for (code, status) in
        [("process.exit(4)", 4), ("process.exit(0)", 0), ("setTimeout(process.exit, 0, 5)", 5)]
    {
        let input = format!("1\n{code}\n2\n");
        let run = env.run_with_stdin(["repl", &session], &input);
        assert_eq!((run.code, run.stdout.as_str()), (Some(status), "1\n"), "{code}: {run:?}");
        let note = format!("process.exit({status}) ended the shell; session {session} continues");
        assert!(run.stderr.contains(&note), "{code}: {run:?}");
        let run = env.run_with_stdin(["repl"], &input);
        assert_eq!((run.code, run.stdout.as_str()), (Some(status), "1\n"), "{code}: {run:?}");
    }
    assert_eq!(env.run(["exec", "repl", &session, "1"]).ok(), "1\n", "the session continues");
}
