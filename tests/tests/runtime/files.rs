//! Files of the worktree: run, required, read by `fs`.

use crate::cases;
use crate::world::{World, repl, run_file};
use std::os::unix::fs::symlink;
use vm_system_protocol::control::ErrorCode;
use vm_system_protocol::model::ExecutionStatus;

cases! {
    run_file_reads_beneath_the_worktree_only,
    a_source_over_its_limit_is_refused_before_it_runs,
    the_first_candidate_that_exists_is_loaded,
    fs_calls_need_the_module_and_get_their_reply,
}

async fn run_file_reads_beneath_the_worktree_only() {
    let world = World::new().await;
    let session = world.session().await;
    world.write("scripts/app.js", "echo:from a file");
    symlink("/etc/passwd", world.worktree.path().join("outside.js")).expect("a link");
    let ran = world.execute(run_file(session, "./scripts/app.js")).await.expect("runs");
    assert_eq!(ran.result_json(), Some("\"from a file\""));
    assert_eq!((ran.path.as_deref(), ran.input), (Some("scripts/app.js"), None));
    for (path, code) in [
        ("/etc/passwd", ErrorCode::InvalidPath),
        ("../x.js", ErrorCode::InvalidPath),
        (" ", ErrorCode::InvalidPath),
        ("outside.js", ErrorCode::InvalidPath),
        ("scripts", ErrorCode::FileNotFound),
        ("nothing.js", ErrorCode::FileNotFound),
    ] {
        let request = run_file(session, path);
        let id = request.1.id;
        let error = world.execute(request).await.expect_err("refused");
        assert_eq!(error.code(), code, "{path}: {error}");
        assert_eq!(world.stored_execution(id).await, None, "{path} left a row behind");
    }
    world.assert_unharmed(session).await;
    world.end().await;
}

async fn a_source_over_its_limit_is_refused_before_it_runs() {
    let world = World::new().await;
    let session = world.session_with(|policy| policy.settings.limits.max_source_kb = 1).await;
    let big = format!("echo:{}", "x".repeat(2_000));
    world.write("big.js", &big);
    for request in [repl(session, &big), run_file(session, "big.js")] {
        let id = request.1.id;
        let error = world.execute(request).await.expect_err("refused");
        assert_eq!(error.code(), ErrorCode::ValidationError);
        assert!(error.to_string().contains("max_source_kb"), "{error}");
        assert_eq!(world.stored_execution(id).await, None);
    }
    world.assert_unharmed(session).await;
    world.end().await;
}

async fn the_first_candidate_that_exists_is_loaded() {
    let world = World::new().await;
    let session = world.session_with(|policy| policy.settings.resolver.roots = vec!["lib".to_owned()]).await;
    world.write("lib/tool.js", "the tool");
    let found = world.run(session, "require:lib/tool.js").await.expect("runs");
    assert_eq!(found.result_json(), Some("\"lib/tool.js=the tool\""));
    let missing = world.run(session, "require:nothing").await.expect("runs");
    assert_eq!(missing.status, ExecutionStatus::Error);
    assert_eq!(missing.error.expect("an error").message, "MODULE_NOT_FOUND");
    world.end().await;
}

async fn fs_calls_need_the_module_and_get_their_reply() {
    let world = World::new().await;
    world.write("a.txt", "a");
    let with = world.session().await;
    let without = world.session_with(|policy| policy.modules.clear()).await;
    let answer = world.run(with, "exists:a.txt").await.expect("runs");
    assert_eq!(answer.result_json(), Some("\"Bool(true)\""), "{answer:?}");
    let denied = world.run(without, "exists:a.txt").await.expect("runs");
    assert_eq!(denied.error.expect("an error").message, "MODULE_NOT_ALLOWED");
    world.end().await;
}
