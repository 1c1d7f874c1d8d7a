//! Programs of several files through the real binary: what the command line, HTTP and agents load, what is refused, and that a
//! program goes on with its files after its daemon was killed.

use serde_json::{Value, json};
use std::path::Path;
use vm_system_tests::as_both;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::mcp::{Agent, OnDemand};
use vm_system_tests::place::{TestDir, User};

as_both!(a_program_of_files_goes_on_after_its_daemon_was_killed, files_outside_of_the_folder_are_not_read,);

const MAIN: &str = r#"
import { approve, type Decision } from "./lib/approve";
import limits from "./lib/limits.json";

export function main(): unknown {
  const first: Decision = approve(`one of ${limits.most}`);
  const second = approve("two");
  return { first, second, most: limits.most };
}
"#;

const APPROVE: &str = r#"
export type Decision = string;
let count = 0;
export function approve(what: string): Decision {
  count += 1;
  const answer = CC(what);
  if (answer === "fail") throw new Error("refused");
  return `${count} ${answer}`;
}
"#;

fn with_files(place: &TestDir) {
    place.write("app/main.ts", MAIN);
    place.write("app/lib/approve.ts", APPROVE);
    place.write("app/lib/limits.json", r#"{"most": 3}"#);
}

fn file(place: &TestDir, name: &str) -> String {
    place.worktree().join(name).to_string_lossy().into_owned()
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

mod cases {
    use super::*;

    pub(super) fn a_program_of_files_goes_on_after_its_daemon_was_killed(user: User) {
        let daemon = Daemon::start(user);
        with_files(&daemon.place);
        let main = file(&daemon.place, "app/main.ts");
        let started = daemon.cli(&["program", "start", &main, "--name", "p"]).ok();
        assert!(
            started.contains("Program: main version 1\n") && started.contains("Prompt: one of 3\n"),
            "{started}"
        );
        let state = daemon.cli(&["program", "state", "p"]).ok();
        assert!(
            state.starts_with("#0 approve at lib/approve.ts:6:18\n    const answer = CC(what);\n"),
            "{state}"
        );
        assert!(state.contains("#1 main at main.ts:6:27\n"), "{state}");
        assert!(state.contains("  lib/approve.ts:count = 1\n"), "{state}");

        let (place, _) = daemon.kill();
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        assert!(daemon.cli(&["task", "submit", "p", "yes"]).ok().contains("Prompt: two\n"));
        let set = daemon.cli(&["program", "set", "p", "lib/approve.ts:count", "7", "--frame", "2"]);
        assert_eq!(set.code, Some(0), "{set:?}");
        let ended = daemon.cli(&["task", "submit", "p", "no"]).ok();
        assert!(ended.contains(r#"Result: {"first":"1 yes","second":"7 no","most":3}"#), "{ended}");
        let failed = daemon.cli(&["program", "start", "main", "--name", "f"]).ok();
        assert!(failed.contains("Prompt: one of 3"), "{failed}");
        let failed = daemon.cli(&["task", "submit", "f", "fail"]);
        let stack = "at approve (lib/approve.ts:7:32)\n    at main (main.ts:6:27)";
        assert!(failed.code == Some(1) && failed.stdout.contains(stack), "{failed:?}");

        // The version is that of all files.
        let version = |daemon: &Daemon| {
            let loaded = daemon.cli(&["program", "load", &main, "--output", "json"]).ok();
            json_of(&loaded)["version"].clone()
        };
        assert_eq!(version(&daemon), 1);
        daemon.place.write("app/lib/limits.json", r#"{"most": 4}"#);
        assert_eq!(version(&daemon), 2);
        // An export has all files, and so has the source that HTTP returns.
        let archive = file(&daemon.place, "archive.json");
        daemon.cli(&["program", "export", "main", "--to", &archive]).ok();
        daemon.cli(&["program", "import", &archive, "--name", "imported"]).ok();
        assert!(daemon.cli(&["program", "start", "imported"]).ok().contains("Prompt: one of 4\n"));
        let program = json_of(&daemon.cli(&["program", "get", "main", "--output", "json"]).ok());
        let source = program["source"].as_str().expect("a source");
        assert!(source.contains("\n//@file 11 lib/limits.json\n{\"most\": 4}\n"), "{source}");
        let again = daemon.http().post("/api/v1/programs", &json!({ "name": "again", "source": source }));
        assert_eq!(again.status, 201, "{}", again.text());
        assert_eq!(again.json()["source_hash"], program["source_hash"]);
        daemon.stop();
    }

    pub(super) fn files_outside_of_the_folder_are_not_read(user: User) {
        let daemon = Daemon::start(user);
        let place = &daemon.place;
        place.write("secret.json", r#"{"key": "hidden"}"#);
        place.write("app/up.js", "import secret from '../secret.json';\nexport const main = () => secret;");
        place.write("app/link.js", "import secret from './link.json';\nexport const main = () => secret;");
        place.write("app/pipe.js", "import './pipe.mjs';");
        std::os::unix::fs::symlink("../secret.json", place.worktree().join("app/link.json")).expect("a link");
        let pipe = place.worktree().join("app/pipe.mjs");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        place.give(&pipe);
        for name in ["up", "link"] {
            let denied = daemon.cli(&["program", "load", &file(place, &format!("app/{name}.js"))]);
            assert_eq!(denied.code, Some(77), "{denied:?}");
            let place =
                format!("{name}.js imports it in line 1\nhint: a program imports files of its own folder");
            assert!(denied.stderr.contains(&place), "{denied:?}");
            assert!(!denied.stderr.contains("hidden"), "{denied:?}");
        }
        let unfit = daemon.cli(&["program", "load", &file(place, "app/pipe.js")]).fails(1);
        assert!(unfit.contains("not a regular file; pipe.js imports it in line 1"), "{unfit}");
        assert!(daemon.cli(&["program", "list", "--output", "json"]).ok().starts_with("[]"));
        let (up, root) = (file(place, "app/up.js"), place.worktree().to_string_lossy().into_owned());
        let allowed = daemon.cli(&["program", "start", &up, "--import-root", &root]).ok();
        assert!(allowed.contains(r#"Result: {"key":"hidden"}"#), "{allowed}");

        place.write(
            "app/self.mjs",
            "import * as own from './self.mjs'; export const main = () => Object.keys(own);",
        );
        let own = daemon.cli(&["program", "start", &file(place, "app/self.mjs")]).ok();
        assert!(own.contains(r#"Result: ["main"]"#), "{own}");
        place.write("app/missing.js", "\nimport { a } from './nowhere.js';");
        let missing = daemon.cli(&["program", "load", &file(place, "app/missing.js")]).fails(1);
        assert!(
            missing.contains("missing:2:19: there is no file for `import` of `./nowhere.js` (COMPILE_ERROR)"),
            "{missing}"
        );
        place.write("app/wrong.js", "import { a } from './lib/wrong.js';\nexport const main = () => a;");
        place.write("app/lib/wrong.js", "export let a = 1;\nlet b = ;");
        let wrong = daemon.cli(&["program", "load", &file(place, "app/wrong.js")]).fails(1);
        assert!(wrong.contains("lib/wrong.js:2:9: Unexpected token (COMPILE_ERROR)\n"), "{wrong}");
        place.write("app/large.js", "import data from './large.json'; export const main = () => data;");
        for (mib, part) in [(9, "at most 8388608 are allowed"), (20, "bytes; large.js imports it in line 1")]
        {
            place.write("app/large.json", format!("\"{}\"", "x".repeat(mib << 20)));
            let large = daemon.cli(&["program", "load", &file(place, "app/large.js")]).fails(1);
            assert!(large.contains(part), "{large}");
        }
        daemon.stop();
    }
}

#[test]
fn http_takes_the_texts_of_the_files() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let mut load = |body: &Value| http.post("/api/v1/programs", body);
    let files = json!({ "lib/approve.ts": APPROVE, "./lib/limits.json": "{\"most\": 9}", "unused.js": "" });
    let loaded = load(&json!({ "name": "p", "source": MAIN, "files": files }));
    assert_eq!(loaded.status, 201, "{}", loaded.text());
    let source = "import { b } from './b.js'; export const a = 'a'; export const main = () => b();";
    let files = json!({ "b.js": "import { a } from './entry.js'; export const b = () => a + 'b';" });
    let cycle = load(&json!({ "name": "cycle", "source": source, "file": "entry.js", "files": files }));
    assert_eq!(cycle.status, 201, "{}", cycle.text());
    for (files, part) in [
        (json!({ "/etc/x.js": "" }), "is no name of a program's file"),
        (json!({ "a.js": "", "./a.js": "" }), "is there twice"),
        (json!({ "q": "" }), "is there twice"),
    ] {
        let refused = load(&json!({ "name": "q", "source": "", "files": files }));
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (400, "VALIDATION_ERROR"),
            "{}",
            refused.text()
        );
        assert!(refused.text().contains(part), "{}", refused.text());
    }
    let plan = load(&json!({ "name": "q", "plan": {}, "files": { "a.js": "" } }));
    assert_eq!(plan.status, 400, "{}", plan.text());
    let damaged = load(&json!({ "name": "q", "source": "//@vm-system-program 1\n//@file 9 a.js\nx\n" }));
    assert_eq!((damaged.status, damaged.code().as_str()), (422, "COMPILE_ERROR"), "{}", damaged.text());
    let source = "import './lib/a.js';";
    let wrong = load(&json!({ "name": "q", "source": source, "files": { "lib/a.js": "\n nope();" } }));
    let details = &wrong.json()["error"]["details"];
    let place = (&details["line"], &details["column"], &details["diagnostics"][0]["file"]);
    assert_eq!(place, (&json!(2), &json!(2), &json!("lib/a.js")), "{details}");
    let started = http.post("/api/v1/executions/program", &json!({ "name": "cycle", "execution_id": "c" }));
    assert_eq!(
        (started.status, &started.json()["result"]["json"]),
        (201, &json!("ab")),
        "{}",
        started.text()
    );
    let started = http.post("/api/v1/executions/program", &json!({ "name": "p", "execution_id": "p" }));
    assert_eq!(started.status, 201, "{}", started.text());
    let state = http.get("/api/v1/executions/p/state").json();
    let frames = [&state["frames"][0]["file"], &state["frames"][1]["file"]];
    assert_eq!(frames, [&json!("lib/approve.ts"), &json!("p")], "{state}");
    daemon.stop();
}

#[test]
fn agents_pass_files_or_name_one_of_their_folders() {
    let home = OnDemand::new(TestDir::new(User::AsStarted));
    with_files(&home.place);
    home.place.write("app/out.ts", "import passwords from '../../passwords.json';\nvoid passwords;");
    std::fs::write(home.place.path("passwords.json"), "{}").expect("a file");
    let mut agent = Agent::start(&home.place, &[]);
    let path = Path::new("app/main.ts").to_string_lossy().into_owned();
    agent.text("loadFile", json!({ "programId": "read", "filePath": path }));
    agent.text("start", json!({ "programId": "read", "executionId": "r" }));
    let state = agent.data("get_state", json!({ "executionId": "r" }));
    assert_eq!(state["frames"][0]["file"], "lib/approve.ts", "{state}");
    let files = json!({ "lib/approve.ts": APPROVE, "lib/limits.json": "{\"most\": 5}" });
    agent.text("load", json!({ "programId": "passed", "source": MAIN, "files": files }));
    let refused = agent.fails("load", json!({ "programId": "out", "filePath": "app/out.ts" }));
    assert!(
        refused.contains("outside of the readable folders") && refused.contains("out.ts imports it"),
        "{refused}"
    );
    let both = agent.fails("load", json!({ "programId": "out", "filePath": "app/main.ts", "files": files }));
    assert!(both.contains("`files` belongs to `source`"), "{both}");
    agent.close();
}
