//! The official clients against the real binary: Python's, TypeScript's, and the inspector's command line. They are installed
//! from the registries that this machine's pip and npm are configured for. This needs the network, so the test runs only with
//! `VM_SYSTEM_NPM` (`.ci/long`), or with a folder of installed clients in `VM_SYSTEM_MCP_CLIENTS` (`py`: a virtual environment,
//! `js`: packages).

mod fixtures;

use std::path::{Path, PathBuf};
use std::process::Command;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::program;
use vm_system_tests::skip;

fn run(command: &mut Command) -> String {
    let what = format!("{command:?}");
    let output = command.output().unwrap_or_else(|error| panic!("{what}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

fn installed(place: &TestDir) -> PathBuf {
    if let Some(folder) = std::env::var_os("VM_SYSTEM_MCP_CLIENTS") {
        return folder.into();
    }
    let folder = place.path("clients");
    let js = folder.join("js");
    std::fs::create_dir_all(&js).expect("folder");
    run(Command::new("python3").args(["-m", "venv"]).arg(folder.join("py")));
    run(Command::new(folder.join("py/bin/pip")).args(["--quiet", "install", "mcp"]));
    run(Command::new("npm").args(["init", "--yes"]).current_dir(&js));
    let install = [
        "install",
        "--no-audit",
        "--no-fund",
        "@modelcontextprotocol/sdk",
        "@modelcontextprotocol/inspector",
    ];
    run(Command::new("npm").args(install).current_dir(&js));
    folder
}

#[test]
fn the_official_clients_drive_programs_over_both_transports() {
    if std::env::var_os("VM_SYSTEM_NPM").is_none() {
        skip("npm", "the official clients need PyPI, a npm registry and VM_SYSTEM_NPM=1");
        return;
    }
    let listen = DaemonOptions {
        arguments: vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()],
        ..DaemonOptions::default()
    };
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &listen);
    let clients = installed(&daemon.place);
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
    let url = format!("http://{}/mcp", daemon.addresses()[0]);
    let binary = program::path(program::PRODUCT, User::AsStarted);
    let socket = daemon.place.socket();
    let driven = |client: &mut Command| {
        run(client.arg(&url).arg(&binary).arg("mcp").arg("--no-start").arg("--socket").arg(&socket))
    };
    let printed = driven(Command::new(clients.join("py/bin/python")).arg(scripts.join("drive.py")));
    assert!(printed.contains("2025-11-25") && printed.contains("2026-07-28"), "{printed}");
    // Node resolves packages beside the script.
    let js = clients.join("js");
    std::fs::copy(scripts.join("drive.mjs"), js.join("drive.mjs")).expect("copy of the script");
    assert_eq!(driven(Command::new("node").arg("drive.mjs").current_dir(&js)).trim(), "driven");
    let inspector = |arguments: &[&str]| {
        let mut inspect = Command::new(js.join("node_modules/.bin/mcp-inspector"));
        inspect.arg("--cli").arg(&binary).args(["mcp", "--no-start", "--toolsets", "all"]);
        inspect.env("VM_SYSTEM_SOCKET", &socket).current_dir(&js);
        run(inspect.args(arguments))
    };
    assert!(inspector(&["--method", "tools/list"]).contains("submitTask"));
    let called = inspector(&["--method", "tools/call", "--tool-name", "server_info"]);
    assert!(called.contains("vm-system"), "{called}");
}

/// The version of the conformance suite whose failures are listed.
const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
/// The suite needs functions of Node 22.
const NODE: &str = "node@22";

/// Runs the requirements of both generations of the protocol; the failures must be those of `clients/LIST-REVISION.yml`.
fn conforms(place: &TestDir, url: &str, list: &str) {
    let js = place.path("conformance");
    std::fs::create_dir_all(&js).expect("folder");
    run(Command::new("npm").args(["init", "--yes"]).current_dir(&js));
    run(Command::new("npm").args(["install", "--no-audit", "--no-fund", NODE, SUITE]).current_dir(&js));
    let programs = js.join("node_modules/.bin");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut suite = Command::new(programs.join("conformance"));
        suite.env("PATH", &path).current_dir(&js);
        suite.args(["server", "--url", url, "--requirements", revision, "--expected-failures"]);
        let printed = run(suite.arg(lists.join(format!("{list}-{revision}.yml"))));
        assert!(printed.contains("server-initialize") || printed.contains("server-stateless"), "{printed}");
    }
}

#[test]
fn the_conformance_suite_has_the_expected_failures_only() {
    if std::env::var_os("VM_SYSTEM_NPM").is_none() {
        skip("npm", "the conformance suite needs a npm registry and VM_SYSTEM_NPM=1");
        return;
    }
    let listen = DaemonOptions {
        arguments: vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()],
        ..DaemonOptions::default()
    };
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &listen);
    conforms(&daemon.place, &format!("http://{}/mcp", daemon.addresses()[0]), "conformance");
    daemon.stop();
}

#[test]
fn scenarios_that_need_tools_of_the_suite_pass_behind_the_http_endpoint() {
    if std::env::var_os("VM_SYSTEM_NPM").is_none() {
        skip("npm", "the conformance suite needs a npm registry and VM_SYSTEM_NPM=1");
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let address = runtime.block_on(fixtures::serve());
    conforms(&TestDir::new(User::AsStarted), &format!("http://{address}/mcp"), "fixtures");
}
