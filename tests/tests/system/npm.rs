//! The original catalog, from the registry that this machine's npm is configured for. This needs the network, so the test runs
//! only with `VM_SYSTEM_NPM` (`.ci/long`).

use std::process::Command;
use vm_system_protocol::control::TemplateAddLibrary;
use vm_system_protocol::model::{Event, EventPayload, Resolver, RuntimeSettings, Settings, TypeCheck};
use vm_system_tests::client::value;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::program;
use vm_system_tests::skip;

/// Library, an expression with its global variable, the value.
const USES: &[(&str, &str, &str)] = &[
    ("lodash", "_.chunk([1, 2, 3, 4], 2).length + _.VERSION", "'24.17.21'"),
    ("moment", "moment.utc(0).format('YYYY-MM-DD') + ' ' + moment(1e12).utc().year()", "'1970-01-01 2001'"),
    (
        "axios",
        "typeof axios.get + ' ' + axios.VERSION + ' ' + axios.isAxiosError(new axios.AxiosError('x'))",
        "'function 1.6.0 true'",
    ),
    ("ramda", "R.pipe(R.map(R.multiply(2)), R.sum)([1, 2, 3])", "12"),
    ("dayjs", "dayjs('2020-02-29').add(1, 'year').format('YYYY-MM-DD')", "'2021-02-28'"),
    (
        "zustand",
        "(() => { const store = zustand.createStore(() => ({ n: 1 })); store.setState({ n: 2 }); \
         return store.getState().n })()",
        "2",
    ),
];

#[test]
fn the_original_catalog_is_downloaded_checked_and_used() {
    if std::env::var_os("VM_SYSTEM_NPM").is_none() {
        skip("npm", "downloading libraries needs a npm registry and VM_SYSTEM_NPM=1");
        return;
    }
    let daemon = Daemon::start(User::AsStarted);
    // The environment is that of the user who runs the tests, for the configuration of npm.
    let libs = |arguments: &[&str]| {
        let mut command = Command::new(program::path(program::PRODUCT, User::AsStarted));
        command.arg("--socket").arg(daemon.place.socket()).arg("libs").args(arguments);
        let output = command.output().expect("vm-system");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "libs {arguments:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let downloaded = libs(&["download"]);
    assert_eq!(
        downloaded.lines().filter(|line| line.starts_with("Installed library: ")).count(),
        6,
        "{downloaded}"
    );
    assert!(libs(&["download"]).lines().all(|line| line.starts_with("Already installed: ")));
    libs(&["verify"]);
    for package in ["is-odd@3.0.1", "string-width@5.1.2", "debug@4.3.4"] {
        libs(&["install", package]);
    }
    let mut client = daemon.client();
    let template = client.template(Settings::default(), &[]);
    for (id, ..) in USES {
        let add = TemplateAddLibrary { template: template.clone(), name: (*id).to_owned() };
        client.op(add).expect("in the catalog");
    }
    let session = client.session(&template, &daemon.place.worktree()).expect("all of them load");
    for (id, code, expected) in USES {
        let ran = client.eval(&session, code).expect("it runs");
        assert_eq!(ran.events.as_deref().and_then(value), Some(*expected), "{id}: {ran:?}");
        let both = format!("typeof require({id:?}) + typeof (await import({id:?})).default");
        let ran = client.eval(&session, &both).expect("it runs");
        assert_eq!(ran.error, None, "{id}");
    }
    // A package comes with those that it depends on; without them, the error names the missing one.
    for (id, code, expected) in [
        ("is-odd", "require('is-odd')(3)", "true"),
        ("string-width", "require('string-width')('日本')", "4"),
        ("debug", "typeof require('debug')('x').extend", "'function'"),
    ] {
        let template = client.template(Settings::default(), &[]);
        let add = TemplateAddLibrary { template: template.clone(), name: id.to_owned() };
        client.op(add).expect("installed");
        let session = client.session(&template, &daemon.place.worktree()).expect("it loads");
        let ran = client.eval(&session, code).expect("it runs");
        assert_eq!(ran.events.as_deref().and_then(value), Some(expected), "{id}: {ran:?}");
    }
    libs(&["install", "is-odd@3.0.1", "--unchecked"]);
    let incomplete = client.template(Settings::default(), &[]);
    client
        .op(TemplateAddLibrary { template: incomplete.clone(), name: "is-odd".to_owned() })
        .expect("installed");
    let error = client.session(&incomplete, &daemon.place.worktree()).expect_err("is-number is missing");
    assert!(error.message.contains("is-number"), "{}", error.message);
    daemon.stop();
}

/// File, its text, what `check` prints of it.
const CHECKED: &[(&str, &str, &str)] = &[
    (
        "a.ts",
        "import { run } from 'exec';\nimport * as db from 'database';\nimport path from 'node:path';\n\
         const n: number = 'x';\n[1].mapp();\nnew URL('http://x').hosst;\n\
         const ok: number = CC('?', { schema: { type: 'number' } });\nconst text: number = CC('?');\n\
         console.log(run('wc', ['-l']).stdout.trim(), db.query('SELECT 1')[0].x, path.join('a'), n, ok, text);\n\
         await fetch('http://x').then((response) => response.json());\nsetTimeout(() => process.exit(), 1);\n",
        "a.ts:4:7: error TS2322: Type 'string' is not assignable to type 'number'.\n\
         a.ts:5:5: error TS2551: Property 'mapp' does not exist on type 'number[]'. Did you mean 'map'?\n\
         a.ts:6:21: error TS2551: Property 'hosst' does not exist on type 'URL'. Did you mean 'host'?\n\
         a.ts:8:7: error TS2322: Type 'string' is not assignable to type 'number'.\n",
    ),
    (
        "b.js",
        "const x = [1];\nx.nope();\n",
        "b.js:2:3: error TS2339: Property 'nope' does not exist on type 'number[]'.\n",
    ),
    (
        "c.ts",
        "import { x } from './d';\nconst y: string = x;\n",
        "c.ts:2:7: error TS2322: Type 'number' is not assignable to type 'string'.\n",
    ),
];

#[test]
fn types_are_checked_by_typescripts_own_compiler() {
    if std::env::var_os("VM_SYSTEM_NPM").is_none() {
        skip("npm", "the compiler of TypeScript needs a npm registry and VM_SYSTEM_NPM=1");
        return;
    }
    let place = TestDir::new(User::AsStarted);
    let folder = &place.worktree();
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "typescript@5.9.3"]);
    let npm = npm.current_dir(folder).output().expect("npm");
    assert!(npm.status.success(), "{}", String::from_utf8_lossy(&npm.stderr));
    let check = |args: &[&str]| {
        let mut command = Command::new(program::path(program::PRODUCT, User::AsStarted));
        let output = command.arg("check").args(args).current_dir(folder).output().expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    place.write("d.ts", "export const x = 1;");
    for (file, text, expected) in CHECKED {
        place.write(file, text);
        let (code, stdout, stderr) = check(&[file]);
        assert_eq!((code, stdout.as_str()), (Some(1), *expected), "{file}: {stderr}");
    }
    place.write("d.ts", "export const x = 'text';");
    assert_eq!(check(&["c.ts"]).0, Some(0));
    // Programs have other names.
    place.write("program.ts", "function main() {\n  return fs.readFile(args[0]).length + require('x');\n}\n");
    let (_, stdout, stderr) = check(&["--program", "program.ts"]);
    assert!(stdout.contains("program.ts:2:10: error TS2531:"), "{stdout}{stderr}");
    assert!(
        stdout.contains("program.ts:2:40: error TS2591: Cannot find name 'require'."),
        "{stdout}{stderr}"
    );
    place.write(
        "program.ts",
        "function main() {\n  return (fs.readFile(args[0]) ?? '').length + CC('how many?');\n}\n",
    );
    assert_eq!(check(&["--program", "program.ts"]).0, Some(0));
    // A tsconfig.json applies.
    place.write("loose.ts", "function f(x) { return x }\nf(1);\n");
    assert!(check(&["loose.ts"]).1.contains("loose.ts:1:12: error TS7006:"));
    place.write("tsconfig.json", r#"{"compilerOptions": {"strict": false, "target": "es5", "outDir": "x"}}"#);
    assert_eq!(check(&["loose.ts"]).0, Some(0));
    place.write("tsconfig.json", r#"{"compilerOptions": {"strict": "maybe"}}"#);
    assert!(check(&["loose.ts"]).1.contains("TS5024"), "{:?}", check(&["loose.ts"]));
    std::fs::remove_file(folder.join("tsconfig.json")).expect("removed");
    typecheck_of_templates(place);
}

/// The same compiler for a template that wants it: the second check has the compiler, and what it has read of its declarations.
fn typecheck_of_templates(place: TestDir) {
    place.give(&place.worktree());
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    let runtime = RuntimeSettings { typecheck: TypeCheck::Error, ..RuntimeSettings::default() };
    let resolver = Resolver { extensions: vec![".ts".to_owned()], ..Resolver::default() };
    let template = client.template(Settings { runtime, resolver, ..Settings::default() }, &[]);
    let session = client.session(&template, &daemon.place.worktree()).expect("a session");
    for _ in 0..2 {
        daemon.place.write("d.ts", "export const x = 1;");
        let refused = client.run_file(&session, "c.ts").expect("an execution").error.expect("errors");
        let expected = "c.ts:2:7: error TS2322: Type 'number' is not assignable to type 'string'.";
        assert_eq!((refused.code.as_str(), refused.message.as_str()), ("TYPE_ERRORS", expected));
        daemon.place.write("d.ts", "export const x = 'text';");
        let ran = client.run_file(&session, "c.ts").expect("an execution");
        assert_eq!(ran.error, None);
    }
    let (_, text, expected) = CHECKED[0];
    daemon.place.write("a.ts", text);
    let refused = client.run_file(&session, "a.ts").expect("an execution");
    let events = refused.events.unwrap_or_default();
    let [.., Event { payload: EventPayload::System { message, .. }, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(format!("{message}\n"), expected);
    daemon.stop();
}
