//! Errors on the command line: `error:`, `hint:`, and the exit code.

use crate::environment::TestEnvironment;
use crate::fake::FakeDaemon;
use std::os::unix::fs::PermissionsExt as _;
use vm_system_protocol::control::ErrorCode;

#[test]
fn without_a_daemon_the_error_and_a_hint_to_start_one_are_printed() {
    let env = TestEnvironment::new();
    for args in [vec!["ops", "health"], vec!["session", "list"], vec!["exec", "repl", "s", "1"]] {
        let error = env.run(&args).failed(69);
        let lines: Vec<_> = error.lines().collect();
        assert_eq!(lines.len(), 2, "{error}");
        assert!(lines[0].starts_with("error: no supervisor responds at "), "{error}");
        assert!(lines[0].contains("control.sock") && lines[1].contains("vm-system serve"), "{error}");
    }
}

#[test]
fn a_stale_socket_is_no_daemon() {
    let env = TestEnvironment::new();
    std::fs::create_dir(env.path("state")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(env.socket()).unwrap());
    env.run(["ops", "health"]).failed(69);
}

#[test]
fn a_socket_without_permission_is_not_permitted() {
    if nix::unistd::geteuid().is_root() {
        return; // Root may connect to everything.
    }
    let env = TestEnvironment::new();
    let _daemon = FakeDaemon::start(&env);
    std::fs::set_permissions(env.socket(), std::fs::Permissions::from_mode(0o000)).unwrap();
    let error = env.run(["ops", "health"]).failed(77);
    assert!(error.contains("no permission"), "{error}");
}

#[test]
fn another_listener_is_distinguished_from_a_supervisor() {
    use std::io::Write as _;
    let env = TestEnvironment::new();
    std::fs::create_dir(env.path("state")).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(env.socket()).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"220 mail.example.com ESMTP\r\n").unwrap();
        // Until the client disconnects.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let error = env.run(["ops", "health"]).failed(70);
    assert!(error.contains("does not speak the control protocol"), "{error}");
    other.join().unwrap();
}

#[test]
fn a_supervisor_of_another_version_is_refused_with_both_versions() {
    use std::io::{Read as _, Write as _};
    use vm_system_protocol::control::ServerHello;
    let env = TestEnvironment::new();
    std::fs::create_dir(env.path("state")).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(env.socket()).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 4];
        stream.read_exact(&mut hello).unwrap();
        let answer = ServerHello { protocol: 99, version: "9.9.9".into(), refusal: Some("too old".into()) };
        let answer = vm_system_protocol::control::frame::encode(&answer, 1 << 16).unwrap();
        stream.write_all(&answer).unwrap();
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let error = env.run(["ops", "health"]).failed(70);
    assert!(error.contains("version 9.9.9") && error.contains("protocol 99"), "{error}");
    other.join().unwrap();
}

#[test]
fn the_nearest_name_is_suggested_first_and_not_too_many() {
    let env = TestEnvironment::new();
    let tip = env.run(["template", "crate"]).failed(2);
    assert!(tip.contains("'create', 'update'"), "{tip}");
    let tip = env.run(["template", "lst"]).failed(2);
    assert!(tip.contains("exist: 'list', ") && tip.matches("'list").count() == 3, "{tip}");
}

#[test]
fn every_error_code_has_its_exit_code_and_no_control_character_gets_through() {
    let env = TestEnvironment::new();
    let _daemon = FakeDaemon::start(&env);
    for code in ErrorCode::ALL {
        let error = env.run(["exec", "cancel", code.as_str()]).failed(i32::from(code.exit_code()));
        assert!(error.starts_with(&format!("error: it was refused\\x1b[31m ({code})\n")), "{error:?}");
    }
    let busy = env.run(["exec", "repl", "s", "slow"]).failed(75);
    assert!(busy.contains("SESSION_BUSY") && busy.contains("hint: wait"), "{busy}");
}

#[test]
fn nonsense_on_the_command_line_is_a_usage_error() {
    let env = TestEnvironment::new();
    let cases: &[&[&str]] = &[
        &[],
        &["nonsense"],
        &["run"],
        &["run", "--timeout", "1d", "-e", "1"],
        &["run", "--memory", "0", "-e", "1"],
        &["exec", "repl", "s"],
        &["exec", "run-file", "s", "f", "--args", "[1]"],
        &["exec", "run-file", "s", "f", "--env", "{\"A\":1}"],
        &["exec", "list", "s", "--limit", "x"],
        &["session", "list", "--status", "asleep"],
        &["session", "kill", "s", "--signal", "NOPE"],
        &["template", "create"],
        &["template", "create", "--name", "x", "--engine", "v8"],
        &["--output", "xml", "ops", "health"],
        &["--log-level", "a=b=c", "ops", "health"],
        &["--log-level", "inof", "ops", "health"],
        &["--log-level", "info,vm_system_runtime", "ops", "health"],
        &["run", "--allow-env", "HOME=/x", "-e", "1"],
        &["run", "--allow-env", "", "-e", "1"],
        &["repl", "--output", "json"],
    ];
    for args in cases {
        let run = env.run(*args);
        assert_eq!(run.code, Some(2), "{args:?}: {run:?}");
        assert!(!run.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn errors_of_the_operator_are_not_reported_as_bugs() {
    let env = TestEnvironment::new();
    let file = env.file("file", "");
    let tokens = env.file("tokens", "{}");
    let serve = |args: &[&str]| {
        let run = env.run(["serve", "--state-dir", env.path("state").to_str().unwrap()].iter().chain(args));
        assert_eq!(run.code, Some(2), "{args:?}: {run:?}");
        run.stderr
    };
    assert!(serve(&["--listen", "0.0.0.0:0"]).contains("--tokens"));
    assert!(serve(&["--tokens", tokens.to_str().unwrap()]).contains("tokens"));
    assert!(serve(&["--ui-dir", tokens.to_str().unwrap()]).contains("ui_dir"));
    let run = env.run(["serve", "--state-dir", file.to_str().unwrap()]);
    assert!(run.code == Some(2) && run.stderr.contains("is not a folder"), "{run:?}");
}

#[test]
fn a_closed_stdout_is_no_error() {
    let env = TestEnvironment::new();
    let _daemon = FakeDaemon::start(&env);
    for args in [
        vec!["help", "cli-command-reference"],
        vec!["session", "list"],
        vec!["exec", "events", "--follow", "e"],
    ] {
        let mut child = env.command(&args).spawn().unwrap();
        drop(child.stdout.take());
        let run = crate::environment::Run::from_output(&child.wait_with_output().unwrap());
        assert_eq!(run.stderr, "", "{args:?}");
        assert!(matches!(run.code, Some(0 | 141)), "{args:?}: {run:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let env = TestEnvironment::new();
    let _daemon = FakeDaemon::start(&env);
    for args in [
        &["--help"][..],
        &["exec", "--help"],
        &["--version"],
        &["help", "rights"],
        &["help", "--json"],
        &["completions", "bash"],
        &["session", "list"],
        &["session", "list", "--output", "json"],
        &["exec", "events", "--follow", "e"],
        &["run", "-e", "1"],
        &["run", "-e", "console.log(1)"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error =
            crate::environment::Run::from_output(&env.command(args).stdout(full).output().unwrap()).failed(1);
        assert_eq!(
            error, "error: cannot write the output: No space left on device (os error 28)\n",
            "{args:?}"
        );
    }
}

#[test]
fn errors_say_what_to_do() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.run(["template", "create", "--name", "t"]).ok();
    env.file("typed.js", "function main() { const n: number = 1; return n }");
    env.file("plan.md", "# A plan");
    let add = "template add-capability t --kind fs --name write";
    env.run(format!("{add} --enabled").split(' ')).ok();
    for (args, hint) in [
        ("template create --name t", "hint: choose another name"),
        ("template update t", "hint: `vm-system"),
        ("template update t --cpu-ms 99999999", "in [ceilings]"),
        ("session get nobody-at-all", "which `vm-system"),
        (
            "session create --template-id t --worktree-path /nowhere",
            "existing folder of the daemon's machine",
        ),
        ("program start typed.js", "hint: if it is TypeScript"),
        ("program load plan.md", "hint: a plan in Markdown is loaded with --plan"),
        ("program plan nowhere.md", "hint: relative paths are looked up in /"),
        ("run nowhere.js", "hint: relative paths are looked up in /"),
        ("run --timeout 100ms -e for(;;){}", "hint: `--timeout TIME`"),
        ("run -e require('database')", "`database` and `exec` are for sessions of a daemon"),
        ("run -e import.meta", "hint: `import.meta` is for modules"),
        (add, "remove-capability"),
    ] {
        let out = env.run(args.split(' '));
        let error = out.stderr;
        assert!(error.contains(hint), "{args}: {error}");
    }
    // In plain words, with the field.
    let config = ["--config", r#"{"paths":"x"}"#];
    let error = env.run(add.split(' ').chain(config)).failed(1);
    assert!(error.contains("`paths` must be a list, not the text \"x\""), "{error}");
    env.file("bad.toml", "\nmax_sessions = \"many\"");
    let error = env.run(["serve", "--state-dir", "other", "--config", "bad.toml"]).failed(2);
    assert!(error.contains("line 2: `max_sessions` must be a whole number"), "{error}");
    let error = env.run(["run", "--allow-env", "NOT_SET_ANYWHERE", "-e", "1"]).stderr;
    assert!(error.contains("NOT_SET_ANYWHERE: your environment has no such variable"), "{error}");
    // The configuration of an agent's host is checked at the start.
    let error = env.run(["mcp", "--state-dir", "a", "--server-url", "unix:/x"]).failed(2);
    assert!(error.contains("name two daemons"), "{error}");
    env.run(["mcp", "--server-url", "nonsense"]).failed(2);
}

#[test]
fn a_session_needs_no_more_than_a_template() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    env.run(["template", "create", "--name", "t"]).ok();
    let made = env.run(["session", "create", "--template-id", "t", "--name", "s", "--output", "json"]).ok();
    assert!(
        made.contains("\"workspace_id\": \"default\"") && made.contains("\"base_commit_oid\": \"none\""),
        "{made}"
    );
    let error = env.run(["session", "create", "--template-id", "t", "--name", "s"]).failed(1);
    assert!(error.contains("CONFLICT") && error.contains("session close"), "{error}");
    env.run(["session", "close", "s"]).ok();
    env.run(["session", "create", "--template-id", "t", "--name", "s"]).ok();
    env.file("ask.js", "function main() { return CC('?') }");
    env.file("answers", "a\nb\nc\n");
    let out = env.run(["program", "start", "ask.js", "--answers", "answers"]);
    assert!(out.stderr.contains("unused answers of the file: 2"), "{}", out.stderr);
    let removed = env.run(["template", "remove-library", "t", "--name", "nosuch"]).ok();
    assert!(removed.contains("Not among the template's libraries: nosuch"), "{removed}");
}
