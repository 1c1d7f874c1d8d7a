//! Steps of the installed durable engines, as peers of a durable program's steps. An engine that is not installed is skipped
//! with a notice.

use crate::figure::Figure;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names a folder that holds the peers: `python3 -m venv FOLDER`, `FOLDER/bin/pip install dbos`,
/// `npm install --prefix FOLDER @restatedev/restate-server @restatedev/restate-sdk`.
pub const PEERS: &str = "VM_SYSTEM_PEERS";

/// The times from question to question, for each peer; the first tenth of the steps is the warm-up.
pub fn steps(count: usize) -> Vec<Figure> {
    let Some(folder) = std::env::var_os(PEERS).map(PathBuf::from) else {
        println!("SKIPPED: Restate and DBOS as peers: {PEERS} names no folder (benches/src/durable_peer.rs)");
        return Vec::new();
    };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let dbos = (folder.join("bin/python"), scripts.join("dbos_steps.py"));
    let restate = (PathBuf::from("node"), scripts.join("restate_steps.mjs"));
    [("Restate", restate), ("DBOS on SQLite", dbos)]
        .into_iter()
        .filter_map(|(name, (program, script))| {
            let figure = measure(name, &program, &script, &folder, count);
            if figure.is_none() {
                println!("SKIPPED: {name}: {} does not run in {}", script.display(), folder.display());
            }
            figure
        })
        .collect()
}

fn measure(name: &str, program: &Path, script: &Path, folder: &Path, count: usize) -> Option<Figure> {
    let state = tempfile::tempdir().ok()?;
    let warm_up = count / 10;
    let output = Command::new(program)
        .arg(script)
        .arg((count + warm_up).to_string())
        .arg(state.path())
        .arg(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let times: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).skip(warm_up).collect();
    (times.len() == count).then(|| Figure::new(format!("{name}: question to question"), "us", times))
}
