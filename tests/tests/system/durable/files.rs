//! Files of executions: exported from one daemon, imported into another.

use super::{SUM, cold, cold_daemon, console, prompt};
use sha2::{Digest as _, Sha256};
use vm_system_protocol::control::{ErrorCode, ProgramStart, RunFork, RunRewind};
use vm_system_protocol::model::ExecutionStatus;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::programs::{id, result};

#[test]
fn an_exported_execution_continues_in_another_daemon() {
    let first = cold_daemon();
    let mut client = first.client();
    let run = client.begin(SUM, "moved");
    assert_eq!(prompt(&client.submit("moved", "4").expect("taken")), "second?");
    let (state, file) =
        (first.place.worktree().join("moved.json"), first.place.worktree().join("program.json"));
    let (state, file) = (state.to_string_lossy(), file.to_string_lossy());
    first.cli(&["program", "export", "--execution", "moved", "--to", &state]).ok();
    first.cli(&["program", "export", "program", "--to", &file]).ok();
    let (moved, program) = (
        std::fs::read_to_string(&*state).expect("written"),
        std::fs::read_to_string(&*file).expect("written"),
    );
    let records: Vec<serde_json::Value> = serde_json::from_str(&moved).expect("one JSON document");
    assert_eq!(records[0]["header"]["kind"], "execution");
    // In the daemon that exported it, the waiting execution still has its name.
    assert!(first.cli(&["program", "import", &state]).fails(1).contains("CONFLICT"));
    drop(client);
    first.stop();

    let other = cold_daemon();
    let worktree = other.place.worktree();
    let (state, file) = (worktree.join("moved.json"), worktree.join("program.json"));
    std::fs::write(&state, moved).expect("a copy");
    std::fs::write(&file, program).expect("a copy");
    let (state, file) = (state.to_string_lossy(), file.to_string_lossy());
    let imported = other.cli(&["program", "import", &state, "--output", "json"]).ok();
    let imported: serde_json::Value = serde_json::from_str(&imported).expect("json");
    assert_eq!((&imported["status"], &imported["task"]["prompt"]), (&"waiting".into(), &"second?".into()));
    assert_ne!(imported["id"], run.execution.id.to_string());
    let mut client = other.client();
    let moved_id = imported["id"].as_str().expect("an id").to_owned();
    assert_eq!(console(&mut client, &moved_id), ["begin "]);
    let ended = client.submit("moved", "3").expect("taken");
    assert_eq!((id(&ended), result(&ended)), (moved_id.clone(), "{\"total\":34}"));
    assert_eq!(console(&mut client, &moved_id), ["begin ", "sum 34"]);
    // The checkpoints of the execution were imported with it.
    let seq = client.checkpoints(&moved_id).iter().find(|kept| kept.cause == "pause").expect("kept").seq;
    let op = RunFork { execution: moved_id, checkpoint: Some(seq), name: None };
    let fork = client.op(op).expect("branched off");
    assert_eq!(prompt(&fork), "first?");
    // The imported execution brought its program, so the program's name is in use.
    assert!(other.cli(&["program", "import", &file]).fails(1).contains("CONFLICT"));
    let out = other.cli(&["program", "import", &file, "--name", "again"]).ok();
    assert!(out.starts_with("Imported program: again with 1 version (ID: "), "{out}");
    let run = client.op(ProgramStart { program: "again".to_owned(), ..ProgramStart::default() });
    assert_eq!(prompt(&run.expect("started")), "first?");
    // An ended execution is exported with all its records.
    let ended = other.cli(&["program", "export", "--execution", "moved"]).ok();
    let mut http = other.http();
    let fields = [("content-type", "application/json")];
    let copy = http.request("POST", "/api/v1/imports/execution?name=copy", &fields, Some(&ended));
    assert_eq!(copy.status, 201, "{}", copy.text());
    assert_eq!((&copy.json()["status"], &copy.json()["result"]["json"]["total"]), (&"ok".into(), &34.into()));
    let again = http.get("/api/v1/executions/copy/export");
    assert_eq!((again.status, again.field("content-type")), (200, Some("application/json")));
    assert_eq!(again.json()[0]["header"]["kind"], "execution");
    let wrong = http.request("POST", "/api/v1/imports/program", &fields, Some(&ended));
    assert_eq!((wrong.status, wrong.code().as_str()), (400, "VALIDATION_ERROR"));
    drop((client, http));
    other.stop();
}

/// The versions of the program are written in several batches.
#[test]
fn a_program_with_large_versions_is_imported_whole() {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    for version in 1..=3 {
        let text = "x".repeat(700 << 10);
        client.load(&format!("const text = '{text}'; function main() {{ return {version} + text.length; }}"));
    }
    let file = daemon.place.worktree().join("program.json");
    let file = file.to_string_lossy();
    daemon.cli(&["program", "export", "program", "--to", &file]).ok();
    let out = daemon.cli(&["program", "import", &file, "--name", "again"]).ok();
    assert!(out.starts_with("Imported program: again with 3 versions (ID: "), "{out}");
    let run = client.op(ProgramStart { program: "again".to_owned(), ..ProgramStart::default() });
    assert_eq!(result(&run.expect("started")), "716803", "of its newest version");
    drop(client);
    daemon.stop();
}

/// An exported execution, renamed, with bytes that no engine writes in the pages that `damaged` chooses by their checkpoint.
fn forged(file: &str, damaged: impl Fn(u64) -> bool) -> String {
    let mut chain = [0_u8; 32];
    let mut forged = String::from("[\n");
    for (records, line) in file.lines().filter(|line| line.starts_with('{')).enumerate() {
        let mut record: serde_json::Value =
            serde_json::from_str(line.trim_end_matches(',')).expect("a record");
        if record.get("page").is_some() && damaged(record["page"]["checkpoint"].as_u64().expect("a number")) {
            record["page"]["bytes"] = "Q1AAAAAAAAAAAAAA".into();
        }
        if record.get("end").is_some() {
            let hash = chain.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
            record = serde_json::json!({ "end": { "records": records, "sha256": hash } });
        } else if record.get("execution").is_some() {
            record["execution"]["name"] = "forged".into();
        }
        let line = record.to_string();
        chain = Sha256::new_with_prefix(chain).chain_update(&line).finalize().into();
        forged.push_str(&line);
        forged.push_str(",\n");
    }
    forged.trim_end_matches(",\n").to_owned() + "\n]\n"
}

#[test]
fn execution_with_any_state_that_no_worker_can_restore_is_not_imported() {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    client.begin(SUM, "whole");
    assert_eq!(prompt(&client.submit("whole", "1").expect("taken")), "second?");
    let file = daemon.cli(&["program", "export", "--execution", "whole"]).ok();
    let mut http = daemon.http();
    let fields = [("content-type", "application/json")];
    for damaged in
        [&(|_| true) as &dyn Fn(u64) -> bool, &|checkpoint| checkpoint == 1, &|checkpoint| checkpoint == 2]
    {
        let file = forged(&file, damaged);
        let response = http.request("POST", "/api/v1/imports/execution", &fields, Some(&file));
        let found = (response.status, response.code());
        assert_eq!((found.0, found.1.as_str()), (400, "VALIDATION_ERROR"), "{}", response.text());
        let first = if damaged(1) { 1 } else { 2 };
        let said = format!("the state of checkpoint {first} in the file");
        assert!(response.text().contains(&said), "{}", response.text());
        assert_ne!(http.get("/api/v1/executions/forged").status, 200, "rows of it are left");
    }
    let whole = forged(&file, |_| false);
    let response = http.request("POST", "/api/v1/imports/execution", &fields, Some(&whole));
    assert_eq!(response.status, 201, "{}", response.text());
    drop((client, http));
    daemon.stop();
}

/// A daemon with the execution `questions`, which waits for its third answer, and the numbers of the checkpoints of its three pauses: a
/// slow machine stores its beginning as one of its own. The state of the pause `damaged`, from 1, is not what was stored.
fn with_damaged_state(damaged: usize) -> (Daemon, Vec<u64>) {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    // Each question is text that only the state and the task have, not the code.
    let source = "function main() { const of = (n) => ['Question', 'number', n].join('-'); return [CC(of(1)), CC(of(2)), CC(of(3))]; }";
    let run = client.begin(source, "questions");
    assert_eq!(prompt(&run), "Question-number-1");
    client.submit("questions", "1").expect("taken");
    assert_eq!(prompt(&client.submit("questions", "2").expect("taken")), "Question-number-3");
    let checkpoints = client.checkpoints("questions").into_iter();
    let mut pauses: Vec<u64> = checkpoints
        .filter(|checkpoint| checkpoint.cause == "pause")
        .map(|checkpoint| checkpoint.seq)
        .collect();
    pauses.sort_unstable();
    assert_eq!(pauses.len(), 3);
    drop(client);
    let place = daemon.stop();
    let path = place.path("state/vm-system.db");
    let mut content = std::fs::read(&path).expect("readable");
    let text = format!("Question-number-{damaged}").into_bytes();
    let found: Vec<_> = content.windows(text.len()).enumerate().filter(|(_, part)| *part == text).collect();
    let places: Vec<_> = found.into_iter().map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "the state has the question");
    for at in places {
        content[at] ^= 1;
    }
    std::fs::write(&path, content).expect("ours");
    (Daemon::start_with(place, &cold()), pauses)
}

#[test]
fn an_answer_to_a_damaged_state_is_not_taken_and_the_execution_is_not_exported() {
    let (daemon, pauses) = with_damaged_state(3);
    let file = daemon.place.worktree().join("damaged.json");
    let export = ["program", "export", "--execution", "questions", "--to", &file.to_string_lossy()];
    let refused = daemon.cli(&export).fails(1);
    assert!(
        refused.contains(&format!("the stored state of checkpoint {} is damaged", pauses[2])),
        "{refused}"
    );
    assert!(!file.exists(), "a file that cannot be imported");
    let mut client = daemon.client();
    let run = client.submit("questions", "3").expect("its end");
    assert_eq!(run.execution.status, ExecutionStatus::Error);
    assert_eq!(run.execution.error.expect("an error").code, "STATE_DAMAGED");
    drop(client);
    let mut http = daemon.http();
    let tasks = http.get("/api/v1/tasks?status=answered").text();
    assert!(tasks.contains("Question-number-2"), "{tasks}");
    // The damage is in the copy that the task has, too.
    let unanswered = http.get("/api/v1/tasks?status=withdrawn").text();
    assert!(
        unanswered.contains("uestion-number-") && !unanswered.contains("Question-number-2"),
        "{unanswered}"
    );
    drop(http);
    daemon.stop();
}

#[test]
fn branch_or_rewinding_to_a_damaged_checkpoint_is_refused_and_leaves_the_execution() {
    let (daemon, pauses) = with_damaged_state(2);
    let (first, damaged) = (pauses[0], pauses[1]);
    let refused = daemon.cli(&["program", "export", "--execution", "questions"]).fails(1);
    assert!(refused.contains(&format!("the stored state of checkpoint {damaged} is damaged")), "{refused}");
    let mut client = daemon.client();
    let fork = |checkpoint| RunFork {
        execution: "questions".to_owned(),
        checkpoint: Some(checkpoint),
        name: Some(format!("branch-{checkpoint}")),
    };
    let rewind = |checkpoint| RunRewind { execution: "questions".to_owned(), checkpoint };
    for error in [client.op(fork(damaged)), client.op(rewind(damaged))] {
        let error = error.expect_err("the checkpoint is damaged");
        assert_eq!(error.code, ErrorCode::ValidationError, "{error:?}");
        assert!(error.message.contains(&format!("checkpoint {damaged} is damaged")), "{error:?}");
    }
    let missing = client.submit(&format!("branch-{damaged}"), "1").expect_err("there is none");
    assert_eq!(missing.code, ErrorCode::ExecutionNotFound, "{missing:?}");
    assert_eq!(prompt(&client.op(fork(first)).expect("sound")), "Question-number-1");
    let run = client.get_run("questions");
    let left = (run.execution.status, run.name.as_deref(), prompt(&run));
    assert_eq!(left, (ExecutionStatus::Waiting, Some("questions"), "Question-number-3"));
    assert_eq!(prompt(&client.op(rewind(first)).expect("sound")), "Question-number-1");
    drop(client);
    daemon.stop();
}
