//! Results of file calls in programs while the brokers are killed.

use super::ended;
use vm_system_protocol::control::ProgramStart;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::observe;
use vm_system_tests::place::User;
use vm_system_tests::programs::{NAME, id, result};
use vm_system_tests::watch::Watch;

/// Fewer exits than make the supervisor delay the next broker.
const KILLED: usize = 4;

#[test]
fn exit_of_a_broker_is_no_result_about_a_file() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(
        "function main() {
            for (let i = 0; fs.readFile('stop') === null; i++) {
                if (!fs.writeFile('deep/file', 'x' + i)) return 'not written: ' + i;
                if (fs.readFile('deep/file') !== 'x' + i) return 'not read: ' + i;
                if (fs.listFiles('deep').length !== 1) return 'not listed: ' + i;
            }
            return 'all well';
        }",
    );
    let folder = daemon.place.worktree();
    let new = ProgramStart {
        program: NAME.to_owned(),
        worktree_path: Some(folder.to_string_lossy().into_owned()),
        wait: false,
        ..ProgramStart::default()
    };
    let run = client.op(new).expect("started");
    let mut watch = Watch::begin();
    let mut killed = 0;
    while killed < KILLED {
        // Killed in the middle of a call: a broker runs only because a call started it.
        match observe::brokers(daemon.pid()).as_slice() {
            [broker] if broker.kill().is_ok() => {
                killed += 1;
                observe::all_end(std::slice::from_ref(broker));
            }
            _ => watch.pause(|| format!("no broker after {killed} kills: {}", daemon.log())),
        }
    }
    daemon.place.write("stop", "");
    let done = ended(&mut client, &id(&run));
    assert_eq!(result(&done), "\"all well\"");
    drop(client);
    daemon.stop();
}
