//! `check` without the real compiler, which `tests/tests/system/npm.rs` gets from a registry: what it refuses, and what it does with what a
//! compiler reports.

use crate::environment::TestEnvironment;

#[test]
fn without_a_compiler_the_error_has_the_command_that_installs_it() {
    let env = TestEnvironment::new();
    env.file("a.ts", "const x: number = 1");
    let run = env.run(["check", "a.ts"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{}", run.stderr);
    let folder = env.work().canonicalize().unwrap();
    let expected = format!("error: {} has no package typescript in node_modules", folder.display());
    assert!(run.stderr.contains(&expected), "{}", run.stderr);
    assert!(run.stderr.contains("hint: `npm install --save-dev typescript@5`"), "{}", run.stderr);
    for (source, expected) in [
        ("exports.version = '7.0.0'", "typescript 7.0.0 has no compiler in JavaScript (version 5 has one)"),
        ("exports.x = (", "the package typescript cannot be loaded"),
    ] {
        env.file("node_modules/typescript/index.js", source);
        let error = env.run(["check", "a.ts"]).failed(1);
        assert!(error.contains(expected) && error.contains("typescript@5"), "{error}");
    }
}

#[test]
fn files_that_cannot_be_checked_are_refused_by_name() {
    let env = TestEnvironment::new();
    env.file("a.ts", "");
    env.file("a.md", "");
    env.file("inner/b.ts", "");
    for (args, code, expected) in [
        (&["check"][..], 2, "FILE"),
        (&["check", "none.ts"], 1, "cannot read none.ts"),
        (&["check", "inner"], 2, "inner is neither TypeScript nor JavaScript"),
        (&["check", "a.md"], 2, "a.md is neither TypeScript nor JavaScript"),
        (&["check", "../a.ts"], 2, "../a.ts is not in the folder"),
        (&["check", "a.ts", "--worktree", "inner"], 2, "a.ts is not in the folder"),
        (&["check", "a.ts", "--worktree", "none"], 1, "none"),
        (&["check", "a.ts", "--server-url", "http://127.0.0.1:1"], 2, "on this machine"),
    ] {
        let error = env.run(args).failed(code);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}

const COMPILER: &str = include_str!("../../../tests/stub-typescript.js");

#[test]
fn errors_have_the_file_the_line_and_the_column() {
    let env = TestEnvironment::new();
    env.file("node_modules/typescript/index.js", COMPILER);
    env.file("a.ts", "throw new Error('not run')\n  wrong");
    env.file("inner/b.mts", "wrong");
    env.file("good.ts", "right");
    let run = env.run(["check", "a.ts", "./inner/b.mts", "good.ts"]);
    assert_eq!(
        run.stdout, "a.ts:2:3: error TS9: found\ninner/b.mts:1:1: error TS9: found\n",
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("checking 3 files with TypeScript 5.0.0"), "{}", run.stderr);
    assert!(run.stderr.ends_with("2 errors\n"), "{}", run.stderr);
    let run = env.run(["check", "--program", "good.ts"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{}", run.stderr);
    let quiet = env.run(["-q", "check", "good.ts", "a.ts"]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("a.ts:2:3: error TS9: found\n", ""));
    let list = env.run(["check", "good.ts", "a.ts", "--output", "json"]);
    assert_eq!((list.code, list.stderr.as_str()), (Some(1), ""));
    let list: serde_json::Value = serde_json::from_str(&list.stdout).expect("JSON");
    let expected =
        r#"[{"file":"a.ts","line":2,"column":3,"severity":"error","code":"TS9","message":"found"}]"#;
    assert_eq!(list, serde_json::from_str::<serde_json::Value>(expected).expect("JSON"));
    assert_eq!(env.run(["check", "good.ts", "--output", "json"]).ok().trim(), "[]");
    let csv = env.run(["check", "a.ts", "--output", "csv"]).stdout;
    assert_eq!(csv, "file,line,column,severity,code,message\na.ts,2,3,error,TS9,found\n");
    // From another folder, editors find the files by whole paths.
    let folder = env.work().canonicalize().unwrap();
    let mut elsewhere = env.command(["check", "--worktree"]);
    elsewhere.arg(&folder).arg(folder.join("a.ts")).current_dir(env.path("home"));
    let output = elsewhere.output().unwrap();
    let expected = format!("{}/a.ts:2:3: error TS9: found\n", folder.display());
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
