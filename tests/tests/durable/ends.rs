//! What is kept of an execution that has ended.

use super::{ended, prompt};
use vm_system_protocol::control::{DurableOp, ErrorCode};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::User;
use vm_system_tests::programs::{code, id, result};

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
    let fork = DurableOp::Fork { execution: id(&run), checkpoint: None, name: Some("other".to_owned()) };
    assert_eq!(prompt(&client.run_op(fork).expect("from its last pause")), "how?");
    assert_eq!(result(&client.submit("other", "two").expect("taken")), "\"two\"");
    let checkpoint = paused.len() as u64;
    let rewound = client.run_op(DurableOp::Rewind { execution: id(&run), checkpoint }).expect("an ended one");
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
        let fork = DurableOp::Fork { execution: id(&run), checkpoint: None, name: None };
        assert_eq!(code(client.run_op(fork)), ErrorCode::NotFound);
    }
    daemon.stop();
}
