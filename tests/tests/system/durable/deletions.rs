//! Reads of an execution while it is being deleted: each is complete or `EXECUTION_NOT_FOUND`.

use std::sync::mpsc;
use std::thread;
use vm_system_protocol::control::{ArchiveExport, ArchiveKind, ErrorCode, OpError, RunDelete, StateGet};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::place::User;
use vm_system_tests::programs::id;

/// A program whose state is stored and deleted in many pieces.
const LARGE: &str = "
    const rows = [];
    for (let i = 0; i < 16000; i++) rows.push('x'.repeat(1000) + i);
    CC('go on?');
";
const ROUNDS: usize = 3;

fn state(client: &mut Client, execution: &str) -> Result<(), OpError> {
    let op = StateGet { execution: execution.to_owned(), checkpoint: None };
    client.op(op).map(drop)
}

fn export(client: &mut Client, execution: &str) -> Result<(), OpError> {
    let mut after = None;
    loop {
        let op = ArchiveExport { kind: ArchiveKind::Execution, reference: execution.to_owned(), after };
        let part = client.op(op)?;
        let Some(next) = part.next else { return Ok(()) };
        after = Some(next);
    }
}

#[test]
fn a_read_during_a_deletion_is_complete_or_finds_nothing() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    for round in 0..ROUNDS {
        let execution = id(&client.begin(LARGE, &format!("large {round}")));
        thread::scope(|scope| {
            let (read_once, has_read) = mpsc::channel();
            let readers = [state, export].map(|read| {
                let (mut client, execution, read_once) = (daemon.client(), &execution, read_once.clone());
                scope.spawn(move || {
                    loop {
                        match read(&mut client, execution) {
                            // The main thread waits for the first one only.
                            Ok(()) => drop(read_once.send(())),
                            Err(error) => return error,
                        }
                    }
                })
            });
            for _ in &readers {
                has_read.recv().expect("the execution exists");
            }
            client.op(RunDelete { execution: execution.clone() }).expect("deleted");
            for reader in readers {
                let error = reader.join().expect("no reader panics");
                assert_eq!(error.code, ErrorCode::ExecutionNotFound, "{error:?}");
            }
        });
    }
    daemon.stop();
}
