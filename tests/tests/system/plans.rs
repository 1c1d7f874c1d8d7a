//! Plans through the real binary: an agent that compiles one and executes it, with fixes, repeated prompts and a daemon that is
//! killed in the middle; executions that skip finished blocks; errors of plans; the same with the other APIs.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use vm_system_tests::PATIENCE;
use vm_system_tests::command::readable;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::mcp::{Agent, OnDemand};
use vm_system_tests::place::{TestDir, User};

/// Writes the example plans to the worktree, in which agents are started.
fn with_examples(place: &TestDir) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/plans");
    for name in ["slugs.md", "slugs/code.md", "slugs/page.md", "tidy.md"] {
        place.write(&format!("plans/{name}"), std::fs::read(from.join(name)).expect("an example"));
    }
}

fn place() -> OnDemand {
    let home = OnDemand::new(TestDir::new(User::AsStarted));
    with_examples(&home.place);
    home
}

/// The block and the phase of a task: the first line of its prompt before ` (block`.
fn phase(prompt: &str) -> String {
    let line = prompt.lines().next().unwrap_or_default();
    line.split(" (block").next().unwrap_or_default().to_owned()
}

/// The answer of an agent that succeeds in every step.
fn obliging(prompt: &str) -> String {
    match phase(prompt).split_once("] ").map_or("", |(_, phase)| phase) {
        "VERIFY" | "RE-VERIFY" => "passed".to_owned(),
        "CROSS-CHECK" => prompt.lines().last().expect("the form of the answer").to_owned(),
        "NOTES" => "none".to_owned(),
        _ => "did it".to_owned(),
    }
}

/// Answers all tasks with `answer(index, prompt)`; their phases in order.
fn walk(agent: &mut Agent, mut answer: impl FnMut(usize, &str) -> String) -> Vec<String> {
    let mut phases = Vec::new();
    loop {
        let task = agent.data("getTask", json!({}));
        if task["state"] != "AWAITING_COGNITIVE_RESULT" {
            return phases;
        }
        let prompt = task["task"]["prompt"].as_str().expect("a prompt").to_owned();
        let result = answer(phases.len(), &prompt);
        phases.push(phase(&prompt));
        assert!(phases.len() < 100, "the walk has no end: {phases:?}");
        agent.text("submitTask", json!({ "result": result, "taskId": task["task"]["id"] }));
    }
}

const WHOLE: &[&str] = &[
    "[01-plain-titles] RED",
    "[01-plain-titles] GREEN",
    "[01-plain-titles] VERIFY",
    "[01-plain-titles] FIX 1 of 10",
    "[01-plain-titles] RE-VERIFY",
    "[01-plain-titles] CROSS-CHECK",
    "[01-plain-titles] CROSS-CHECK",
    "[01-plain-titles] FIX 1 of 10",
    "[01-plain-titles] CROSS-CHECK",
    "[01-plain-titles] NOTES",
    "[01-plain-titles] COMMIT",
    "[02-other-letters] RED",
    "[02-other-letters] GREEN",
    "[02-other-letters] VERIFY",
    "[02-other-letters] CROSS-CHECK",
    "[02-other-letters] NOTES",
    "[02-other-letters] COMMIT",
    "[03-page] EXECUTE",
    "[03-page] VERIFY",
    "[03-page] FIX 1 of 10",
    "[03-page] RE-VERIFY",
    "[03-page] NOTES",
    "[03-page] COMMIT",
    "FINAL REVIEW",
];

#[test]
fn an_agent_walks_through_a_mixed_plan_and_a_killed_daemon_loses_nothing() {
    let home = place();
    let mut agent = Agent::start(&home.place, &["--client", "walker"]);
    let none = agent.fails("loadFile", json!({ "programId": "plan", "filePath": "@planexecutor" }));
    assert_eq!(none, "Error: File not found: uplan.json (call parsePlan first)");
    let parsed = agent.data("parsePlan", json!({ "filePath": "plans/slugs.md" }));
    assert_eq!(
        (&parsed["valid"], &parsed["blocks"], &parsed["blockIds"]),
        (&json!(true), &json!(3), &json!(["01-plain-titles", "02-other-letters", "03-page"]))
    );
    let compiled = parsed["path"].as_str().expect("a path");
    let compiled = std::fs::read_to_string(home.place.worktree().join(compiled)).expect("the compiled plan");
    let plan: Value = serde_json::from_str(&compiled).expect("JSON");
    assert_eq!(
        (&plan["type"], &plan["sourceFiles"]),
        (&json!("tddab"), &json!(["slugs/code.md", "slugs/page.md"]))
    );
    assert_eq!(plan["blocks"][1]["redKeys"], json!(["writes_umlauts_as_two_letters"]));

    let loaded = agent.text("loadFile", json!({ "programId": "plan", "filePath": "@planexecutor" }));
    assert_eq!(loaded, "Program loaded successfully from @planexecutor: plan");
    agent.text("start", json!({ "programId": "plan", "executionId": "first" }));
    let mut seen = BTreeSet::new();
    let phases = walk(&mut agent, |at, prompt| {
        if at == 4 || at == 15 {
            let daemon = home.daemon().expect("a daemon");
            daemon.kill().expect("SIGKILL");
            assert!(readable(&daemon, PATIENCE));
        }
        let phase = phase(prompt);
        if !seen.insert(phase.clone()) {
            // At the second cross-check, a test is missing.
            if phase == "[01-plain-titles] CROSS-CHECK" && seen.insert("missing".to_owned()) {
                return r#"{"joins_words_by_dashes": true, "drops_what_is_no_letter_or_digit": false}"#
                    .to_owned();
            }
            return obliging(prompt);
        }
        match phase.as_str() {
            "[01-plain-titles] VERIFY" | "[03-page] VERIFY" => "no: the empty text is missing".to_owned(),
            "[01-plain-titles] CROSS-CHECK" => "all of them are there".to_owned(),
            "[01-plain-titles] NOTES" => "slug.js has the table of letters".to_owned(),
            "[01-plain-titles] FIX 1 of 10" => {
                assert!(prompt.contains("no: the empty text is missing"), "{prompt}");
                "fixed".to_owned()
            }
            "[02-other-letters] RED" => {
                assert!(prompt.contains("[01-plain-titles] slug.js has the table of letters"), "{prompt}");
                "written".to_owned()
            }
            _ => obliging(prompt),
        }
    });
    assert_eq!(phases, WHOLE);
    let result = agent.data("getTask", json!({}))["result"].clone();
    assert_eq!((&result["state"], &result["done"]), (&json!("completed"), &parsed["blockIds"]), "{result}");

    // All blocks are done: another execution only reviews, unless `PLAN_DONE` overrides this.
    agent.text("start", json!({ "programId": "plan", "executionId": "second" }));
    assert_eq!(walk(&mut agent, |_, prompt| obliging(prompt)), ["FINAL REVIEW"]);
    let again = json!({ "programId": "plan", "executionId": "third", "env": { "PLAN_DONE": "[]" } });
    agent.text("start", again);
    assert_eq!(phase(&agent.text("getTask", json!({}))), "[01-plain-titles] RED");
    agent.close();
}

#[test]
fn a_plan_continues_after_the_blocks_that_an_earlier_execution_finished() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    agent.data("parsePlan", json!({ "filePath": "plans/slugs.md" }));
    let load = json!({ "programId": "plan", "filePath": "@planexecutor" });
    agent.text("loadFile", load.clone());
    agent.text("start", json!({ "programId": "plan", "executionId": "first" }));
    for _ in 0..6 {
        let prompt = agent.text("getTask", json!({}));
        agent.text("submitTask", json!({ "result": obliging(&prompt) }));
    }
    assert_eq!(phase(&agent.text("getTask", json!({}))), "[02-other-letters] RED");
    agent.text("start", json!({ "programId": "plan", "executionId": "second" }));
    assert_eq!(phase(&agent.text("getTask", json!({}))), "[02-other-letters] RED");
    assert_eq!(agent.data("get_output", json!({}))["lines"], json!(["done before: 01-plain-titles"]));

    // Progress that an earlier program stored is read when the program is loaded.
    home.place
        .write(".vm-system/uplan-progress.json", r#"{"completed": ["02-other-letters"], "03-page": false}"#);
    agent.text("loadFile", load);
    agent.text("start", json!({ "programId": "plan", "executionId": "third" }));
    assert_eq!(phase(&agent.text("getTask", json!({}))), "[03-page] EXECUTE");

    // Another mission under the same program name ignores that progress, also if its blocks have the same names.
    home.place.write(
        "other.md",
        std::fs::read_to_string(home.place.worktree().join("plans/tidy.md"))
            .expect("an example")
            .replace("01-readme", "01-plain-titles"),
    );
    std::fs::remove_file(home.place.worktree().join(".vm-system/uplan-progress.json")).expect("removed");
    agent.data("parsePlan", json!({ "filePath": "other.md" }));
    agent.text("loadFile", json!({ "programId": "plan", "filePath": "@planexecutor" }));
    agent.text("start", json!({ "programId": "plan", "executionId": "fourth" }));
    assert_eq!(phase(&agent.text("getTask", json!({}))), "[01-plain-titles] EXECUTE");
}

#[test]
fn an_invalid_plan_changes_nothing_and_no_other_file_is_read() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let data = home.place.worktree().join(".vm-system");
    let wrong = agent.fails("parsePlan", json!({ "filePath": "none.md" }));
    assert_eq!(wrong, "Error: File not found: none.md");
    home.place.write("empty.md", "only prose");
    let wrong = agent.fails("parsePlan", json!({ "filePath": "empty.md" }));
    assert_eq!(
        wrong,
        "Error: Plan validation failed:\nline 1: Missing <mission> tag\nline 1: No <block> tags found"
    );
    assert!(!data.exists(), "nothing is written on an error");
    let parsed = agent.data("parsePlan", json!({ "filePath": "plans/tidy.md" }));
    assert_eq!((&parsed["blocks"], &parsed["blockIds"]), (&json!(1), &json!(["01-readme"])));
    let first = std::fs::read_to_string(data.join("uplan.json")).expect("the compiled plan");
    agent.fails("parsePlan", json!({ "filePath": "empty.md" }));
    assert_eq!(std::fs::read_to_string(data.join("uplan.json")).expect("still there"), first);
    assert!(!data.join("uplan.json.bak").exists());
    agent.data("parsePlan", json!({ "filePath": "plans/slugs.md" }));
    assert_eq!(std::fs::read_to_string(data.join("uplan.json.bak")).expect("kept"), first);

    std::fs::write(home.place.path("secret.md"), "<block id=\"01-a\">\n<red>\nsecret\n</red>\n")
        .expect("file");
    std::os::unix::fs::symlink(home.place.path("secret.md"), home.place.worktree().join("link.md"))
        .expect("link");
    let index = |name: &str| format!("<mission>m</mission>\n<files>\n- {name}\n</files>\n");
    for name in ["../secret.md", "link.md", "/etc/hostname"] {
        home.place.write("index.md", index(name));
        for file in ["index.md", name] {
            let denied = agent.fails("parsePlan", json!({ "filePath": file }));
            assert!(denied.starts_with("Error: Permission denied: "), "{name}: {denied}");
            assert!(!denied.contains("unparseable"), "{denied}");
        }
    }
    home.place.write("index.md", index("gone.md"));
    let gone = agent.fails("parsePlan", json!({ "filePath": "index.md" }));
    assert_eq!(gone, "Error: Index plan validation failed:\nline 3: Sub-file not found: gone.md");
    home.place.write("large.md", vec![b'x'; (4 << 20) + 1]);
    let large = agent.fails("parsePlan", json!({ "filePath": "large.md" }));
    assert!(large.contains("more than"), "{large}");
}

#[test]
fn the_command_line_checks_loads_and_walks_through_the_same_plans() {
    let daemon = Daemon::start(User::AsStarted);
    with_examples(&daemon.place);
    let file = |name: &str| daemon.place.worktree().join("plans").join(name).to_string_lossy().into_owned();
    let check = daemon.cli(&["program", "plan", &file("slugs.md")]);
    assert_eq!(check.code, Some(0), "{check:?}");
    assert!(
        check.stdout.contains("02-other-letters") && check.stdout.contains("See slugs/page.md lines 5-14"),
        "{check:?}"
    );
    let check = daemon.cli(&["program", "plan", &file("slugs.md"), "--output", "json"]);
    let plan: Value = serde_json::from_str(&check.stdout).expect("JSON");
    assert_eq!((&plan["valid"], &plan["blocks"]), (&json!(true), &json!(3)));
    daemon.place.write("plans/compiled.json", plan["plan"].to_string());
    daemon.place.write("plans/uplan-progress.json", r#"["01-plain-titles", "02-other-letters"]"#);

    for (from, name) in [("slugs.md", "from-text"), ("compiled.json", "from-compiled")] {
        let loaded = daemon.cli(&["program", "load", "--plan", &file(from), "--name", name]);
        assert_eq!(loaded.code, Some(0), "{loaded:?}");
        assert!(loaded.stdout.starts_with(&format!("Loaded program: {name} version 1")), "{loaded:?}");
        daemon.place.write("answers.json", r#"["did it", "passed", "none", "abc123", "fine"]"#);
        let answers = daemon.place.worktree().join("answers.json");
        let run = daemon.cli(&["program", "start", name, "--answers", &answers.to_string_lossy()]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let lines: Vec<&str> = run.stdout.lines().collect();
        let expected = ["done before: 01-plain-titles", "done before: 02-other-letters", "done: 03-page"];
        assert_eq!(lines[..3], expected, "{run:?}");
        let result: Value = serde_json::from_str(lines[3]).expect("JSON");
        assert_eq!((&result["state"], &result["review"]), (&json!("completed"), &json!("fine")));
    }
    // Started from another folder, the program still has its progress.
    let archive = file("from-text.json");
    assert_eq!(daemon.cli(&["program", "export", "from-text", "--to", &archive]).code, Some(0));
    let imported = daemon.cli(&["program", "import", &archive, "--name", "from-file"]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let answers = daemon.place.worktree().join("answers.json");
    let run = daemon.cli(&["program", "start", "from-file", "--answers", &answers.to_string_lossy()]);
    assert!(run.stdout.starts_with("done before: 01-plain-titles\n"), "{run:?}");
    daemon.place.write("plans/bad.md", "<mission>m</mission>\n<files>\n- ../answers.json\n</files>\n");
    let denied = daemon.cli(&["program", "plan", &file("bad.md")]);
    assert_eq!(denied.code, Some(77), "{denied:?}");
    daemon.place.write("plans/bad.md", "prose");
    let wrong = daemon.cli(&["program", "load", "--plan", &file("bad.md")]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("line 1: Missing <mission> tag"), "{wrong:?}");
    daemon.stop();
}
