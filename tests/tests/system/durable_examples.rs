//! The examples of durable programs, through the CLI, with scripted answers.

use std::path::Path;
use vm_system_tests::client::Client;
use vm_system_tests::command::CommandOutput;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::place::User;
use vm_system_tests::programs::{ended, result};
use vm_system_tests::watch::wait_until;

/// Copies an example to the worktree, where a client may read it.
fn copy(daemon: &Daemon, name: &str) -> String {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/durable").join(name);
    let to = daemon.place.worktree().join(name);
    std::fs::copy(from, &to).expect("an example");
    to.to_string_lossy().into_owned()
}

#[track_caller]
fn succeeded(output: CommandOutput) -> String {
    assert_eq!(output.code, Some(0), "{output:?}");
    output.stdout
}

#[test]
fn a_purchase_is_approved() {
    let daemon = Daemon::start(User::AsStarted);
    let (program, answers) = (copy(&daemon, "approval.ts"), copy(&daemon, "approval.answers.json"));
    let run = daemon.cli(&["program", "start", &program, "--answers", &answers, "--", "1200"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert_eq!(
        run.stdout,
        "team lead: yes\nfinance: yes\nordered from ACME\n{\"amount\":1200,\"bought\":true,\"supplier\":\"ACME\"}\n"
    );
    daemon.stop();
}

#[test]
fn two_of_three_reviewers_decide_and_a_deadline_ends_it_without_them() {
    let daemon = Daemon::start(User::AsStarted);
    let (program, mut client) = (copy(&daemon, "reviewers.ts"), daemon.client());
    succeeded(daemon.cli(&["program", "start", &program, "--name", "publish"]));
    let mut tasks = client.tasks();
    tasks.sort_by(|a, b| a.prompt.cmp(&b.prompt));
    let prompts: Vec<&str> = tasks.iter().map(|task| task.prompt.as_str()).collect();
    assert_eq!(prompts, ["ann: may we publish?", "ben: may we publish?", "eva: may we publish?"]);
    let ambiguous = daemon.cli(&["task", "submit", "publish", r#"{"ok": true}"#]);
    assert!(ambiguous.code == Some(1) && ambiguous.stderr.contains("TASK_AMBIGUOUS"), "{ambiguous:?}");
    assert!(tasks.iter().all(|task| ambiguous.stderr.contains(&task.id.to_string())), "{ambiguous:?}");
    let submit = |task: usize, answer: &str| {
        succeeded(daemon.cli(&["task", "submit", &tasks[task].id.to_string(), answer]))
    };
    submit(2, r#"{"ok": false, "reason": "a typo"}"#);
    let decided = submit(0, r#"{"ok": false}"#);
    assert!(decided.contains(r#"Result: {"outcome":"rejected","yes":0,"no":2}"#), "{decided}");
    assert!(decided.contains("Abandoned: question ben: may we publish?\nAbandoned: timer"), "{decided}");
    assert!(client.tasks().is_empty(), "the last task is withdrawn");

    let late =
        succeeded(daemon.cli(&["program", "start", &program, "--name", "late", "--no-wait", "--", "50"]));
    assert!(late.contains("(late)"), "{late}");
    let run = vm_system_tests::programs::ended(&mut client, "late");
    let result = r#"{"outcome":"not decided in time","yes":0,"no":0}"#;
    assert_eq!(vm_system_tests::programs::result(&run), result);
    daemon.stop();
}

#[test]
fn a_queue_handles_its_events_in_their_order() {
    let daemon = Daemon::start(User::AsStarted);
    let (program, mut client) = (copy(&daemon, "queue.ts"), daemon.client());
    succeeded(daemon.cli(&["program", "start", &program, "--name", "queue"]));
    for job in [r#"{"title": "first"}"#, r#"{"title": "second"}"#, "null"] {
        succeeded(daemon.cli(&["event", "emit", "job", job, "--execution", "queue"]));
    }
    for title in ["first", "second"] {
        let prompt = format!("Please: {title}");
        let waits = |client: &mut Client| client.task("queue").task.is_some_and(|task| task.prompt == prompt);
        wait_until(|| waits(&mut client), || format!("no task for the {title} one"));
        client.submit("queue", "done").expect("it is pending");
    }
    let run = vm_system_tests::programs::ended(&mut client, "queue");
    assert_eq!(vm_system_tests::programs::result(&run), r#"{"handled":2}"#);
    let output = succeeded(daemon.cli(&["exec", "events", "queue"]));
    assert!(output.contains("first: done") && output.contains("second: done"), "{output}");
    daemon.stop();
}

#[test]
fn expenses_are_reviewed_by_a_program_of_several_files() {
    let daemon = Daemon::start(User::AsStarted);
    std::fs::create_dir(daemon.place.worktree().join("expenses")).expect("a folder");
    for name in ["expenses/review.ts", "expenses/policy.json"] {
        copy(&daemon, name);
    }
    let (program, answers) = (copy(&daemon, "expenses/main.ts"), copy(&daemon, "expenses/answers.json"));
    let expenses = ["taxi=40", "hotel=310", "dinner=95"];
    let arguments = ["program", "start", &program, "--answers", &answers, "--"];
    let run = daemon.cli(&[&arguments[..], &expenses].concat());
    let output = "350 EUR are paid\n{\"paid\":350,\"refused\":[\"dinner\"]}\n";
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), output), "{run:?}");
    daemon.stop();
}

#[test]
fn a_decision_tree_takes_what_fits_and_decides_where_nothing_does() {
    let daemon = Daemon::start(User::AsStarted);
    let (program, answers) = (copy(&daemon, "decisions.ts"), copy(&daemon, "decisions.answers.json"));
    let run = daemon.cli(&["program", "start", &program, "--answers", &answers]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stderr.matches("error: ").count(), 4, "{run:?}");
    assert!(run.stdout.contains("compare with yesterday's answers\n"), "{run:?}");
    let path = "[\"Does the service answer? yes\",\"Are its answers right? unknown\"]";
    assert!(run.stdout.contains(path), "{run:?}");
    daemon.stop();
}

#[test]
fn a_nightly_report_is_written_for_its_time() {
    let daemon = Daemon::start(User::AsStarted);
    let root = daemon.place.worktree().to_string_lossy().into_owned();
    let program = copy(&daemon, "nightly.ts");
    for (name, text) in [("a", "first\nsecond"), ("b", "other")] {
        daemon.place.write(&format!("notes/{name}.txt"), text);
    }
    succeeded(daemon.cli(&["program", "load", &program, "--name", "nightly"]));
    let schedule = ["program", "schedule", "add", "nightly", "--cron", "30 2 * * *", "--tz", "Europe/Berlin"];
    succeeded(daemon.cli(&[&schedule[..], &["--worktree-path", &root, "--", "notes"]].concat()));
    let run = succeeded(daemon.cli(&["-q", "program", "schedule", "run", "nightly"]));
    let run = ended(&mut daemon.client(), run.trim());
    let report: serde_json::Value = serde_json::from_str(result(&run)).expect("JSON");
    assert_eq!((&report["notes"], &report["written"]), (&serde_json::json!(2), &serde_json::json!(true)));
    let path = report["report"].as_str().expect("a path");
    let text = std::fs::read_to_string(Path::new(&root).join(path)).expect("written");
    let night = path.trim_start_matches("reports/").trim_end_matches(".md");
    assert!(text.starts_with(&format!("# {night}\n\n- ")), "{text}");
    assert!(text.contains("a.txt: first\n") && text.contains("b.txt: other\n"), "{text}");
    daemon.stop();
}

#[test]
fn a_thousand_files_are_summarised() {
    const FILES: usize = 1_000;
    let daemon = Daemon::start(User::AsStarted);
    let root = daemon.place.worktree();
    let program = copy(&daemon, "summarise.ts");
    let mut answers = Vec::new();
    for number in 0..FILES {
        daemon.place.write(&format!("notes/{number:04}.txt"), format!("text {number}"));
        answers.push(format!("sentence {number}"));
    }
    answers.push("all in all".to_owned());
    let file = root.join("answers.json");
    std::fs::write(&file, serde_json::to_string(&answers).expect("json")).expect("answers");
    let (file, folder) = (file.to_string_lossy(), root.to_string_lossy());
    let run = daemon.cli(&[
        "program",
        "start",
        &program,
        "--worktree-path",
        &folder,
        "--answers",
        &file,
        "--",
        "notes",
    ]);
    assert_eq!(
        succeeded(run),
        "250 of 1000\n500 of 1000\n750 of 1000\n1000 of 1000\n{\"files\":1000,\"overall\":\"all in all\",\"written\":true}\n"
    );
    let summary = std::fs::read_to_string(root.join("notes/SUMMARY.md")).expect("written");
    assert!(summary.starts_with("# Summary\n\nall in all\n\n- 0000.txt: sentence 0\n"), "{summary}");
    assert_eq!(summary.lines().count(), FILES + 4);
    daemon.stop();
}

#[test]
fn a_migration_is_rewound_to_a_wrong_decision() {
    let daemon = Daemon::start(User::AsStarted);
    let program = copy(&daemon, "migration.ts");
    succeeded(daemon.cli(&["program", "start", &program, "--name", "migration"]));
    let submit =
        |answer: &str| succeeded(daemon.cli(&["task", "submit", "migration", answer, "--output", "json"]));
    submit("{\"done\":true}");
    submit("{\"done\":false,\"note\":\"too slow\"}");
    let wrong = submit("skip");
    assert!(wrong.contains("compare both"), "{wrong}");
    let list = succeeded(daemon.cli(&["program", "checkpoints", "migration", "--output", "json"]));
    let list: serde_json::Value = serde_json::from_str(&list).expect("json");
    // The third task was whether to continue.
    let pauses = list.as_array().expect("a list").iter().filter(|point| point["cause"] == "pause");
    let third = pauses.map(|point| point["seq"].to_string()).nth(2).expect("three tasks");
    succeeded(daemon.cli(&["program", "rewind", "migration", &third]));
    let right = submit("stop");
    let right: serde_json::Value = serde_json::from_str(&right).expect("json");
    let done = ["copy the tables to the new cluster"];
    assert_eq!(right["result"]["json"], serde_json::json!({ "finished": false, "done": done }));
    daemon.stop();
}
