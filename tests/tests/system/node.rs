//! Files that use modules of Node, run by `node` and by `vm-system run`: both print the same.

use std::path::Path;
use std::process::{Command, Output};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::program;
use vm_system_tests::skip;

/// The files, beside which there is nothing else.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/node");

fn output(command: &mut Command, folder: &Path) -> Output {
    command.current_dir(folder).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn modules_of_node_write_what_node_writes() {
    if Command::new("node").arg("--version").output().is_err() {
        skip("node", "the comparison needs node");
        return;
    }
    let place = TestDir::new(User::AsStarted);
    let mut names: Vec<_> =
        std::fs::read_dir(FILES).expect("the files").map(|file| file.expect("a file").file_name()).collect();
    names.sort();
    assert!(names.len() >= 12, "{names:?}");
    let mut wrong = Vec::new();
    for name in names {
        let name = name.into_string().expect("a name");
        let folder = place.path(&format!("run-{name}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::copy(Path::new(FILES).join(&name), folder.join(&name)).expect("a copy");
        let node = output(Command::new("node").arg(&name), &folder);
        assert!(node.status.success(), "{name}: {}", text(&node.stderr));
        let product = program::path(program::PRODUCT, User::AsStarted);
        let ours =
            output(Command::new(product).args(["run", "--allow-write", "--timeout", "60s", &name]), &folder);
        if ours.stdout != node.stdout {
            let (expected, found) = (text(&node.stdout), text(&ours.stdout));
            let differs = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
            wrong.push(format!("{name}: {differs:?} {}", text(&ours.stderr)));
        }
    }
    assert!(wrong.is_empty(), "{} files differ:\n{}", wrong.len(), wrong.join("\n"));
}
