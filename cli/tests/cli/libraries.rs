//! `libs install` with packages that depend on others, with an npm of our own in place of the real one.

use crate::environment::{Run, TestEnvironment};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha512};
use std::os::unix::fs::PermissionsExt as _;

/// Copies what the test put into the home: packages and their hashes by `NAME@VERSION`, and a lock file.
const NPM: &str = r#"#!/bin/sh
echo "$@" >>"$HOME/calls"
case "$1" in
pack)
    while [ "$1" != -- ]; do shift; done
    shift
    printf '['
    comma=
    for spec; do
        cp "$HOME/$spec.tgz" "$(echo "$spec" | tr -d @ | tr / -).tgz" || exit 1
        printf '%s{"name":"%s","version":"%s","filename":"%s.tgz"}' "$comma" "${spec%@*}" "${spec##*@}" "$spec"
        comma=,
    done
    printf ']' ;;
view) cat "$HOME/$5.integrity" ;;
install) cp "$HOME/lock.json" package-lock.json ;;
esac
"#;

/// A package in the format of npm.
pub(crate) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, format!("package/{path}"), content.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// As the registry has it.
pub(crate) fn integrity(bytes: &[u8]) -> String {
    format!("sha512-{}", base64(&Sha512::digest(bytes)))
}

/// RFC 4648; 64 bytes leave one behind the last group of three.
fn base64(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |bits: usize| [18, 12, 6, 0].map(|shift| char::from(letters[bits >> shift & 63]));
    let groups =
        bytes.chunks_exact(3).map(|group| group.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)));
    let mut text: String = groups.flat_map(digits).collect();
    let [last] = bytes.chunks_exact(3).remainder() else { panic!("{} bytes", bytes.len()) };
    text.extend(digits(usize::from(*last) << 16).iter().take(2));
    text + "=="
}

/// An environment whose npm has packages: `NAME@VERSION` with the files.
struct Registry {
    env: TestEnvironment,
    lock: serde_json::Map<String, serde_json::Value>,
}

impl Registry {
    fn new() -> Self {
        let env = TestEnvironment::new();
        let npm = env.path("home").join("npm");
        std::fs::write(&npm, NPM).unwrap();
        std::fs::set_permissions(&npm, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { env, lock: serde_json::Map::new() }
    }

    fn put(&mut self, name: &str, version: &str, folder: &str, files: &[(&str, &str)]) {
        let bytes = archive(files);
        let home = self.env.path("home");
        std::fs::write(home.join(format!("{name}@{version}.tgz")), &bytes).unwrap();
        let integrity = integrity(&bytes);
        std::fs::write(home.join(format!("{name}@{version}.integrity")), format!("{integrity:?}")).unwrap();
        let locked = serde_json::json!({ "version": version, "integrity": integrity });
        self.lock.insert(format!("node_modules/{folder}"), locked);
        let lock = serde_json::json!({ "lockfileVersion": 3, "packages": self.lock });
        std::fs::write(home.join("lock.json"), lock.to_string()).unwrap();
    }

    fn libs<const N: usize>(&self, args: [&str; N]) -> Run {
        let mut command = self.env.command(["libs"].iter().chain(&args));
        let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
        let path = format!("{}:{}", self.env.path("home").display(), path.to_string_lossy());
        Run::from_output(&command.env("PATH", path).output().unwrap())
    }

    fn calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.env.path("home").join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    fn value(&self, library: &str, code: &str) -> String {
        let template = format!("with-{library}");
        self.env.run(["template", "create", "--name", &template]).ok();
        self.env.run(["template", "add-library", &template, "--name", library]).ok();
        let place = ["--workspace-id", "w", "--base-commit", "c", "--worktree-path", "."];
        let create = ["--quiet", "session", "create", "--template-id", &template];
        let session = self.env.run(create.iter().chain(&place)).ok();
        self.env.run(["exec", "repl", session.trim(), code]).ok()
    }
}

const UPPER: &[(&str, &str)] = &[
    (
        "package.json",
        r#"{"name": "upper", "version": "1.2.0", "main": "lib", "dependencies": {"inner": "^2", "@s/data": "1"}}"#,
    ),
    ("lib/index.js", "const inner = require('inner'); exports.text = inner('a') + require('@s/data').x;"),
    ("lib/unused.js", "throw new Error('not loaded')"),
    ("README.md", "text"),
];

fn upper() -> Registry {
    let mut registry = Registry::new();
    registry.put("upper", "1.2.0", "upper", UPPER);
    let inner = r#"{"name": "inner", "version": "2.1.0", "exports": "./i.cjs"}"#;
    let files = [
        ("package.json", inner),
        ("i.cjs", "module.exports = (x) => x + require('./part.cjs')"),
        ("part.cjs", "module.exports = 'b'"),
    ];
    registry.put("inner", "2.1.0", "upper/node_modules/inner", &files);
    let data = r#"{"name": "@s/data", "version": "1.0.0", "main": "d.json"}"#;
    std::fs::create_dir(registry.env.path("home").join("@s")).unwrap();
    registry.put("@s/data", "1.0.0", "@s/data", &[("package.json", data), ("d.json", r#"{"x": "c"}"#)]);
    registry
}

#[test]
fn a_package_is_installed_with_those_that_it_depends_on() {
    let registry = upper();
    let _daemon = registry.env.serve();
    let shown = registry.libs(["install", "upper@1.2.0"]).ok();
    assert!(
        shown.contains("upper-1.2.0") && shown.contains("lib/index.js and 3 files of 3 packages"),
        "{shown}"
    );
    assert!(registry.value("upper", "require('upper').text").contains("'abc'"));
    // One call for all packages that it depends on.
    let calls = registry.calls();
    assert_eq!(calls.iter().filter(|call| call.starts_with("pack")).count(), 2, "{calls:?}");
    // A package that needs no other one costs no resolution, and is one file.
    let files =
        [("package.json", r#"{"name": "alone", "version": "1.0.0"}"#), ("index.js", "module.exports = 5")];
    let mut registry = registry;
    registry.put("alone", "1.0.0", "alone", &files);
    let shown = registry.libs(["install", "alone@1.0.0"]).ok();
    assert!(shown.contains("(18 bytes of index.js)"), "{shown}");
    assert!(registry.calls().iter().filter(|call| call.starts_with("install")).count() == 1);
}

#[test]
fn a_package_whose_dependency_cannot_be_had_is_refused_by_name() {
    let mut registry = upper();
    let _daemon = registry.env.serve();
    // Not what the registry's metadata says.
    let home = registry.env.path("home");
    let good = std::fs::read(home.join("inner@2.1.0.tgz")).unwrap();
    let evil = archive(&[("package.json", r#"{"name": "inner", "version": "2.1.0"}"#), ("index.js", "")]);
    std::fs::write(home.join("inner@2.1.0.tgz"), evil).unwrap();
    let error = registry.libs(["install", "upper@1.2.0"]).failed(1);
    assert!(error.contains("inner@2.1.0 does not match the registry: its sha512 differs"), "{error}");
    std::fs::write(home.join("inner@2.1.0.tgz"), good).unwrap();
    // Not in the lock file.
    registry.lock.remove("node_modules/upper/node_modules/inner");
    registry.put("upper", "1.2.0", "upper", UPPER);
    let error = registry.libs(["install", "upper@1.2.0"]).failed(1);
    assert!(error.contains("packages that it needs are missing: inner@^2 (for upper)"), "{error}");
    assert!(error.contains("--unchecked"), "{error}");
    // From a file, nothing is downloaded.
    let calls = registry.calls().len();
    let file = home.join("upper@1.2.0.tgz");
    let error = registry.libs(["install", "--file", file.to_str().unwrap()]).failed(1);
    assert!(error.contains("missing: @s/data@1 (for upper), inner@^2 (for upper)"), "{error}");
    assert!(error.contains("libs install upper@1.2.0"), "{error}");
    assert_eq!(registry.calls().len(), calls);
    assert!(!registry.libs(["list"]).ok().contains("upper"), "nothing was installed");
    // The packages may be libraries of the template instead.
    registry.libs(["install", "upper@1.2.0", "--unchecked"]).ok();
    registry.env.file("inner-2.0.0.js", "module.exports = (x) => x + 'B'");
    registry.env.file("data.js", "exports.x = 'C'");
    registry.libs(["install", "--file", "inner-2.0.0.js"]).ok();
    registry.libs(["install", "--file", "data.js", "@s/data@1.0.0"]).ok();
    registry.env.run(["template", "create", "--name", "with-upper"]).ok();
    for library in ["inner", "@s/data"] {
        registry.env.run(["template", "add-library", "with-upper", "--name", library]).ok();
    }
    registry.env.run(["template", "add-library", "with-upper", "--name", "upper"]).ok();
    let place = ["--workspace-id", "w", "--base-commit", "c", "--worktree-path", "."];
    let create = ["--quiet", "session", "create", "--template-id", "with-upper"];
    let session = registry.env.run(create.iter().chain(&place)).ok();
    let value = registry.env.run(["exec", "repl", session.trim(), "require('upper').text"]).ok();
    assert!(value.contains("'aBC'"), "{value}");
}

#[test]
fn a_build_for_browsers_that_does_not_load_gives_way_to_the_main_file() {
    let mut registry = Registry::new();
    let _daemon = registry.env.serve();
    let manifest = r#"{"name": "both", "version": "1.0.0", "main": "main.js", "unpkg": "cdn.js"}"#;
    let files = |cdn| [("package.json", manifest), ("main.js", "module.exports = 'main'"), ("cdn.js", cdn)];
    registry.put("both", "1.0.0", "both", &files("window.both = 'cdn'"));
    let run = registry.libs(["install", "both@1.0.0"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("window is not defined"), "{}", run.stderr);
    assert!(run.stderr.contains("trying node_modules/both/main.js instead"), "{}", run.stderr);
    assert!(run.stdout.contains("bytes of main.js"), "{}", run.stdout);
    registry.put("both", "1.0.0", "both", &files("module.exports = 'cdn'"));
    let run = registry.libs(["install", "both@1.0.0"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.contains("bytes of cdn.js"), "{}", run.stdout);
    // If no file loads, the last error is reported.
    let files =
        [("package.json", manifest), ("main.js", "throw new Error('no')"), ("cdn.js", "window.x = 1")];
    registry.put("both", "1.0.0", "both", &files);
    assert!(registry.libs(["install", "both@1.0.0"]).failed(1).contains("Error: no"));
}
