//! The rows that are kept of an execution that has ended.

use super::{ended, prompt};
use vm_system_protocol::control::{ErrorCode, ExecCancel, ListPage, RunDelete, RunFork, RunList, RunRewind};
use vm_system_protocol::model::Run;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::User;
use vm_system_tests::programs::{code, id, result};
use vm_system_tests::watch;

#[test]
fn an_ended_execution_keeps_the_states_of_its_pauses_and_no_other() {
    let config = "[durable]\ncheckpoint_steps = 1000\n".to_owned();
    let options = DaemonOptions { config, ..DaemonOptions::default() };
    let daemon = Daemon::start_with(vm_system_tests::place::TestDir::new(User::AsStarted), &options);
    let mut client = daemon.client();
    let seen = |client: &mut Client, run: &str| -> Vec<String> {
        client.checkpoints(run).into_iter().map(|checkpoint| checkpoint.cause).collect()
    };
    // Steps behind the last pause are no way back.
    let work = "const list = []; const work = () => { for (let i = 0; i < 2000; i++) list.push(i); };";
    let run = client.begin(
        &format!("{work} work(); const a = CC('how?'); work(); function main() {{ return a; }}"),
        "way",
    );
    let paused = seen(&mut client, "way");
    assert!(paused.len() > 10 && paused.ends_with(&["pause".to_owned()]), "{paused:?}");
    assert_eq!(result(&client.submit("way", "one").expect("taken")), "\"one\"");
    assert_eq!(seen(&mut client, &id(&run)), paused, "what led to the pause stays, what led to the end goes");
    let state = client.state("way");
    assert!(
        state.frames.iter().any(|frame| frame.source_line.contains("CC('how?')")),
        "where it paused last"
    );
    let fork = RunFork { execution: id(&run), checkpoint: None, name: Some("other".to_owned()) };
    assert_eq!(prompt(&client.op(fork).expect("from its last pause")), "how?");
    assert_eq!(result(&client.submit("other", "two").expect("taken")), "\"two\"");
    let checkpoint = paused.len() as u64;
    let rewound = client.op(RunRewind { execution: id(&run), checkpoint }).expect("an ended one");
    assert_eq!((prompt(&rewound), rewound.name.as_deref()), ("how?", Some("way")));
    // One that never paused keeps its result, whether states of it were stored meanwhile or not.
    for source in [
        "function main() { return 7; }".to_owned(),
        format!("{work} work(); function main() {{ return 7; }}"),
    ] {
        let run = client.begin(&source, "straight");
        let run = ended(&mut client, &id(&run));
        assert_eq!(result(&run), "7");
        assert_eq!(seen(&mut client, &id(&run)), [""; 0]);
        let fork = RunFork { execution: id(&run), checkpoint: None, name: None };
        assert_eq!(code(client.op(fork)), ErrorCode::NotFound);
    }
    daemon.stop();
}

#[test]
fn a_copy_of_a_large_state_ends_when_what_it_makes_is_deleted_or_cancelled() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let source = "const kept = []; for (let i = 0; i < 5000; i++) kept.push(String(i).padEnd(10000, 'x'));
        CC('how?'); function main() { return kept.length; }";
    let from = id(&client.begin(source, "large"));
    for end in ["delete", "cancel"] {
        let mut other = daemon.client();
        let fork = RunFork { execution: from.clone(), checkpoint: None, name: Some(end.to_owned()) };
        let copying = std::thread::spawn(move || other.op(fork));
        let mut found = None;
        watch::wait_until(
            || {
                found = runs(&mut client).into_iter().find(|run| id(run) != from).map(|run| id(&run));
                found.is_some()
            },
            || "no execution is seen that is being made".to_owned(),
        );
        let made = found.expect("seen");
        let seen = client.get_run(&made).execution;
        assert_eq!(seen.error.map(|error| error.code).as_deref(), Some("INCOMPLETE"));
        if end == "delete" {
            client.op(RunDelete { execution: made.clone() }).expect("deleted");
        } else {
            client.op(ExecCancel { execution: made.clone() }).expect("cancelled");
        }
        assert_eq!(code(copying.join().expect("it replies")), ErrorCode::ExecutionNotFound, "{end}");
        assert_eq!(runs(&mut client).len(), 1, "nothing is left of it");
    }
    assert_eq!(result(&client.submit("large", "so").expect("taken")), "5000");
    daemon.stop();
}

fn runs(client: &mut Client) -> Vec<Run> {
    match client.op(RunList { page: ListPage::first(10), ..RunList::default() }) {
        Ok(runs) => runs,
        other => panic!("{other:?}"),
    }
}
