//! `repl` with input from a pipe: the same as at a terminal, without editing.

use crate::environment::TestEnvironment;

#[test]
fn declarations_are_kept_and_incomplete_input_continues() {
    let env = TestEnvironment::new();
    let printed =
        env.run_with_stdin(["repl"], "let x = 40\nfunction add(n) {\n  return x + n\n}\nadd(2)\n").ok();
    assert_eq!(printed, "42\n");
}

#[test]
fn input_continues_behind_an_operator_and_the_head_of_a_statement() {
    let env = TestEnvironment::new();
    let text = "let x =\n5\nx+\n1\nif (x)\n7\nx.\ntoString()\nfor (const a of [1])\nx++\nx\n";
    assert_eq!(env.run_with_stdin(["repl"], text).ok(), "6\n7\n'5'\n5\n6\n");
}

#[test]
fn saved_inputs_can_be_loaded() {
    let env = TestEnvironment::new();
    let inputs = "const o={alpha:1}\no.alpha\n[1,\"s\",null]\n`a`\nlet = )\n(2)\n.save all.js\n";
    env.run_with_stdin(["repl"], inputs);
    let run = env.run_with_stdin(["repl"], ".load all.js\no\n");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "2\n{ alpha: 1 }\n"), "{run:?}");
}

#[test]
fn an_error_does_not_end_the_shell_and_the_last_input_sets_the_exit_code() {
    let env = TestEnvironment::new();
    let run = env.run_with_stdin(["repl"], "nope\n1\n");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "1\n"));
    assert!(run.stderr.contains("ReferenceError"), "{run:?}");
    assert_eq!(env.run_with_stdin(["repl"], "1\nnope\n").code, Some(1));
}

#[test]
fn dot_commands_work() {
    let env = TestEnvironment::new();
    env.file("lib.js", "var loaded = 'yes'");
    let run = env.run_with_stdin(["repl"], ".load lib.js\nloaded\n.nonsense\n.exit\n1\n");
    assert_eq!(run.stdout, "'yes'\n");
    assert!(run.stderr.contains("unknown command `.nonsense`"), "{run:?}");
}

#[test]
fn it_can_use_a_session_of_the_daemon() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session();
    env.run_with_stdin(["repl", &session], "var shared = 7\n").ok();
    assert_eq!(env.run(["exec", "repl", &session, "shared"]).ok(), "7\n");
    env.run(["session", "close", &session]).ok();
    let error = env.run_with_stdin(["repl", &session], "1\n").failed(1);
    assert!(error.contains("is closed"), "{error}");
}
