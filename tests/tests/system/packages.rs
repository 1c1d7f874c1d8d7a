//! Packages of npm, and scripts as people and models write them, run by `node` and by `vm-system run`: both print the same, but for
//! the files that `tests/packages/differences.txt` lists with a reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fs, thread};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::program;
use vm_system_tests::skip;

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/packages");

/// The files of a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    files
}

/// The reasons of known differences, by file.
fn differences() -> BTreeMap<String, String> {
    let text = fs::read_to_string(Path::new(FILES).join("differences.txt")).expect("the list");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (file, reason) = line.split_once(": ").expect("a file and a reason");
            (file.to_owned(), reason.to_owned())
        })
        .collect()
}

fn output(command: &mut Command, folder: &Path) -> Output {
    // The settings that change how programs write: the zone, the language, colours.
    command.env("TZ", "UTC").env("LC_ALL", "en_US.UTF-8");
    for name in ["DEBUG", "FORCE_COLOR", "NO_COLOR", "NODE_OPTIONS"] {
        command.env_remove(name);
    }
    command.current_dir(folder).stdin(Stdio::null()).output().expect("it starts")
}

/// Where the two outputs differ first; none: they are the same.
fn compare(folder: &Path, name: &str) -> Option<String> {
    let node = output(Command::new("node").arg(name), folder);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(node.status.success(), "node {name}: {}", text(&node.stderr));
    assert!(!node.stdout.is_empty(), "{name} prints nothing");
    let mut product = Command::new(program::path(program::PRODUCT, User::AsStarted));
    product.args(["run", "--allow-write", "--timeout", "120s", "--memory", "512"]);
    // The compiler of TypeScript is one file of 9 MB.
    let ours = output(product.args(["--max-source-kb", "16383", name]), folder);
    if ours.stdout == node.stdout {
        return None;
    }
    let (expected, found) = (text(&node.stdout), text(&ours.stdout));
    let mut found = found.lines();
    for (number, expected) in (1..).zip(expected.lines()) {
        let found = found.next().unwrap_or("(end)");
        if found != expected {
            return Some(format!(
                "line {number}\n  node: {expected}\n  ours: {found}\n  {}",
                text(&ours.stderr)
            ));
        }
    }
    Some("more lines than in node".to_owned())
}

/// Runs each file in the folder that `place` makes for it; at least `least` of them print the same as in node, and those that do not
/// are exactly those that are listed.
fn compare_all(kind: &str, least: usize, place: impl Fn(&Path) -> PathBuf + Sync) {
    let listed = differences();
    let files = files(&Path::new(FILES).join(kind));
    let half = files.len().div_ceil(2);
    let place = &place;
    let results: Vec<(String, Option<String>)> = thread::scope(|scope| {
        let threads: Vec<_> = files
            .chunks(half)
            .map(|files| {
                scope.spawn(move || {
                    let run = |file: &PathBuf| {
                        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
                        let folder = place(file);
                        fs::copy(file, folder.join(name)).expect("a copy");
                        (name.to_owned(), compare(&folder, name))
                    };
                    files.iter().map(run).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let same = results.iter().filter(|(_, difference)| difference.is_none()).count();
    println!("{kind}: {same} of {} print what node prints", results.len());
    let mut wrong = Vec::new();
    for (name, difference) in &results {
        match (difference, listed.contains_key(&format!("{kind}/{name}"))) {
            (Some(difference), false) => wrong.push(format!("{name} differs: {difference}")),
            (None, true) => wrong.push(format!("{name} is listed as different, and is the same")),
            (Some(_), true) | (None, false) => {}
        }
    }
    assert!(wrong.is_empty(), "{} files:\n{}", wrong.len(), wrong.join("\n"));
    assert!(same >= least, "{same} of {} are the same", results.len());
}

fn has_node() -> bool {
    let has = Command::new("node").arg("--version").output().is_ok();
    if !has {
        skip("node", "the comparison needs node");
    }
    has
}

#[test]
fn each_difference_has_a_reason_and_a_file() {
    for (file, reason) in differences() {
        assert!(Path::new(FILES).join(&file).is_file(), "{file}");
        assert!(reason.len() > 20, "{file}: {reason}");
    }
}

#[test]
fn scripts_print_what_node_prints() {
    if !has_node() {
        return;
    }
    let place = TestDir::new(User::AsStarted);
    compare_all("scripts", 55, |file| {
        let folder = place.path(&format!("run-{}", file.file_name().expect("a name").display()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    });
}

/// The folder with all packages, installed by npm as the lock file says; kept until that changes.
fn installed() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let lock = fs::read(Path::new(FILES).join("package-lock.json")).expect("the lock file");
    let done = folder.join("installed.json");
    if fs::read(&done).is_ok_and(|installed| installed == lock) {
        return folder;
    }
    fs::create_dir_all(&folder).expect("a folder");
    for name in ["package.json", "package-lock.json"] {
        fs::copy(Path::new(FILES).join(name), folder.join(name)).expect("a copy");
    }
    let npm = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    let output = Command::new("npm").args(npm).current_dir(&folder).output().expect("npm");
    assert!(output.status.success(), "npm: {}", String::from_utf8_lossy(&output.stderr));
    fs::write(done, lock).expect("a mark");
    folder
}

#[test]
fn packages_print_what_node_prints() {
    if std::env::var_os("VM_SYSTEM_NPM").is_none() {
        skip("npm", "installing 100 packages needs a npm registry and VM_SYSTEM_NPM=1");
        return;
    }
    if !has_node() {
        return;
    }
    let folder = installed();
    compare_all("uses", 95, |_| folder.clone());
}
