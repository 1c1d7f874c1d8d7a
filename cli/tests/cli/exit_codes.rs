//! The same cause has the same exit code in every command.

use crate::environment::{Run, TestEnvironment};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

/// A user who is not root.
const NOBODY: u32 = 65_534;

/// Commands that use a file or folder of this name.
fn commands(path: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["run", path],
        vec!["run", "--worktree", path, "-e", "1"],
        vec!["serve", "--config", path],
        vec!["serve", "--secrets", path],
        vec!["serve", "--tokens", path],
        vec!["serve", "--ui-dir", path],
        vec!["ops", "check", "--db", path],
        vec!["program", "import", path],
        vec!["libs", "install", "a@1.0.0", "--file", path],
        vec!["--server-url", "https://127.0.0.1:1", "--token-file", path, "ops", "health"],
    ]
}

/// Runs a command as a user without rights of root.
fn run(env: &TestEnvironment, args: &[&str]) -> Run {
    let mut command = env.command(args);
    command.env("HOME", env.path("nobody")).env("VM_SYSTEM_SOCKET", env.path("nobody").join("control.sock"));
    if nix::unistd::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    Run::from_output(&command.output().unwrap())
}

/// An environment with a folder of the user, and a folder that the user cannot enter.
fn environment() -> TestEnvironment {
    let env = TestEnvironment::new();
    for (name, mode) in [("nobody", 0o700), ("work/closed", 0o000)] {
        std::fs::create_dir(env.path(name)).unwrap();
        std::fs::set_permissions(env.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(env.path("nobody"), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    env
}

#[test]
fn a_missing_right_has_one_code_and_a_hint_that_names_folder_and_right() {
    let env = environment();
    let closed = std::fs::canonicalize(env.work()).unwrap().join("closed");
    let mut all = commands("closed/file.js");
    all.extend([
        vec!["man", "closed/pages"],
        vec!["serve", "--state-dir", "closed/state"],
        vec!["serve", "--detach", "--state-dir", "closed/state"],
    ]);
    for args in all {
        let error = run(&env, &args).failed(77);
        let names_folder = error.contains(&format!("x (to enter it) of the folder {}", closed.display()));
        // The database's own hint names its owner.
        let is_of_state = args == ["serve", "--state-dir", "closed/state"];
        assert!(names_folder || is_of_state, "{args:?}: {error}");
    }
    let file = env.file("unreadable.js", "1");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    let error = run(&env, &["run", "unreadable.js"]).failed(77);
    assert!(error.contains("needs the right r (to read it) of the file "), "{error}");
    let error = run(&env, &["man", "pages"]).failed(77);
    assert!(error.contains("needs the right w (to change it) of the folder "), "{error}");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_missing_file_has_one_code() {
    let env = environment();
    for args in commands("missing") {
        let error = run(&env, &args).failed(1);
        assert!(error.contains("missing"), "{args:?}: {error}");
    }
    let command = format!("wc={}", env.path("missing").display());
    run(&env, &["serve", "--allow-exec", &command]).failed(1);
    for path in [["--state-dir", "/proc/missing"], ["--db", "/missing/x.db"]] {
        for detach in [&["serve"][..], &["serve", "--detach"]] {
            let error = run(&env, &[detach, &path].concat()).failed(1);
            assert!(error.contains("missing"), "{path:?}: {error}");
        }
    }
    let _daemon = env.serve();
    env.run(["program", "start", "missing"]).failed(1);
    env.run(["program", "load", "missing.js", "--name", "p"]).failed(1);
}

#[test]
fn only_the_command_line_itself_is_a_usage_error() {
    let env = environment();
    env.file("file", "x");
    let _daemon = env.serve();
    env.run(["template", "create", "--name", "t"]).ok();
    let create = ["session", "create", "--template-id", "t"];
    for (args, code) in [
        (vec!["run", "--worktree", "file", "-e", "1"], 1),
        (vec!["run", "--worktree", "/none", "-e", "1"], 1),
        ([&create[..], &["--worktree-path", "file"]].concat(), 1),
        ([&create[..], &["--worktree-path", "/none"]].concat(), 1),
        ([&create[..], &["--workspace-id", ""]].concat(), 1),
        (vec!["session", "create"], 2),
        (vec!["run", "--worktree"], 2),
        (vec!["run"], 2),
    ] {
        let error = env.run(&args).failed(code);
        assert!(error.contains("error:"), "{args:?}: {error}");
    }
}

#[test]
fn a_file_that_is_not_text_has_one_code() {
    let env = environment();
    std::fs::write(env.work().join("binary.js"), [0xff, 0xfe]).unwrap();
    std::fs::write(env.work().join("a-1.0.0.js"), [0xff, 0xfe]).unwrap();
    for args in [
        vec!["run", "binary.js"],
        vec!["serve", "--config", "binary.js"],
        vec!["libs", "install", "--file", "a-1.0.0.js"],
    ] {
        run(&env, &args).failed(1);
    }
}
