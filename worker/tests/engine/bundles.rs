//! Libraries of several files: the packages in them, and what they cannot reach.

use crate::harness::Engine;
use vm_system_protocol::worker::Outcome;
use vm_system_worker::engine::{LibraryBundle, LibraryEvaluationError, LibrarySource, preload};

fn bundle(id: &str, entry: &str, files: &[(&str, &str)]) -> LibrarySource {
    let path = |path: &str| format!("node_modules/{path}");
    let files = files.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect();
    let text = LibraryBundle { entry: path(entry), files }.to_text().expect("a bundle");
    single(id, &text)
}

fn single(id: &str, source: &str) -> LibrarySource {
    LibrarySource { name: format!("{id}-1.0.0"), id: id.to_owned(), global: None, source: source.to_owned() }
}

fn failure(libraries: Vec<LibrarySource>) -> LibraryEvaluationError {
    preload().expect("the engine starts").load_libraries(libraries).expect_err("it fails")
}

#[test]
fn a_nul_character_in_a_file_of_a_bundle_is_its_escape() {
    let files =
        [("a/index.js", "module.exports = require('./part')"), ("a/part.js", "module.exports = 'a\0b'")];
    let mut engine = Engine::with_libraries(vec![bundle("a", "a/index.js", &files)]);
    assert_eq!(engine.value("require('a').length"), "3");
}

#[test]
fn packages_of_a_bundle_find_each_other_as_in_node() {
    let mut engine = Engine::with_libraries(vec![bundle(
        "a",
        "a/lib/index.js",
        &[
            ("a/package.json", r#"{"name": "a", "exports": {".": "./lib/index.js", "./self": "./lib/self.js"}}"#),
            (
                "a/lib/index.js",
                "exports.list = [require('./part'), require('b'), require('@s/c').version, require('a/self')];
                 exports.later = () => require('./later'); exports.dynamic = () => import('esm');",
            ),
            ("a/lib/part.js", "module.exports = require('./data').x"),
            ("a/lib/data.json", r#"{"x": "json"}"#),
            ("a/lib/self.js", "module.exports = 'self'"),
            ("a/lib/later.js", "module.exports = 'later ' + require('b')"),
            ("a/node_modules/b/package.json", r#"{"exports": {"import": "./no.mjs", "require": "./yes.cjs"}}"#),
            ("a/node_modules/b/yes.cjs", "module.exports = 'inner b'"),
            ("b/package.json", "{}"),
            ("b/index.js", "module.exports = 'outer b'"),
            ("@s/c/package.json", r#"{"version": "3.2.1", "main": "main"}"#),
            ("@s/c/main.js", "exports.version = require('./package.json').version + require('b')"),
            ("esm/package.json", r#"{"type": "module", "main": "./m.js"}"#),
            ("esm/m.js", "import b from 'b'; import { x } from './x.js'; export default b + x"),
            ("esm/x.js", "export const x = '!'"),
        ],
    )]);
    assert_eq!(engine.value("require('a').list"), "[ 'json', 'inner b', '3.2.1outer b', 'self' ]");
    assert_eq!(engine.value("(await import('a')).default.list.length"), "4");
    // Files that no code has loaded before the session began.
    assert_eq!(engine.value("require('a').later()"), "'later inner b'");
    assert_eq!(engine.value("(await require('a').dynamic()).default"), "'outer b!'");
    assert!(engine.memory.requests.is_empty(), "{:?}", engine.memory.requests);
}

#[test]
fn a_bundle_whose_entry_is_an_es_module_has_its_exports() {
    let files: &[(&str, &str)] = &[
        ("a/package.json", r#"{"type": "module"}"#),
        (
            "a/index.js",
            "import { two } from 'b'; export default two * 2; export const named = await Promise.resolve(two);",
        ),
        ("b/package.json", r#"{"module": "m.js"}"#),
        ("b/index.js", "exports.two = 2"),
    ];
    let mut engine = Engine::with_libraries(vec![bundle("a", "a/index.js", files)]);
    let done = engine.module("main.mjs", "import a, { named } from 'a'; console.log(a, named);");
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    assert_eq!(engine.console(), ["4 2"]);
    assert_eq!(engine.value("require('a')"), "4");
}

#[test]
fn packages_of_a_bundle_come_before_other_libraries() {
    let files: &[(&str, &str)] = &[
        ("a/index.js", "exports.found = [require('b'), require('other')]; exports.b = () => import('b')"),
        ("b/index.js", "module.exports = 'of the bundle'"),
    ];
    let mut engine = Engine::with_libraries(vec![
        single("b", "module.exports = 'of the template'"),
        bundle("a", "a/index.js", files),
        single("other", "module.exports = 'another library'"),
    ]);
    assert_eq!(engine.value("require('a').found"), "[ 'of the bundle', 'another library' ]");
    assert_eq!(engine.value("(await require('a').b()).default"), "'of the bundle'");
    assert_eq!(engine.value("require('b')"), "'of the template'");
}

#[test]
fn a_bundle_reaches_no_file_of_the_worktree_and_no_other_bundle() {
    const OUTSIDE: &str = "'MODULE_OUTSIDE_WORKTREE'";
    let files: &[(&str, &str)] = &[(
        "a/index.js",
        "exports.load = (name) => { try { return require(name) } catch (error) { return error.code } };
         exports.import = (name) => import(name).then((all) => all.default, (error) => error.code);",
    )];
    let other: &[(&str, &str)] = &[("z/index.js", "module.exports = 'z'"), ("z/secret.js", "")];
    let mut engine =
        Engine::with_libraries(vec![bundle("a", "a/index.js", files), bundle("z", "z/index.js", other)]);
    engine.memory.files.insert("secret.js".to_owned(), "module.exports = 'secret'".to_owned());
    engine
        .memory
        .files
        .insert("node_modules/p/index.js".to_owned(), "module.exports = 'p of the worktree'".to_owned());
    for name in
        ["../../../secret.js", "../../../../secret", "/secret.js", "p", "secret.js", "file:///secret.js"]
    {
        let code = engine.value(&format!("require('a').load('{name}')"));
        assert!(
            ["'MODULE_NOT_FOUND'", "'MODULE_NOT_ALLOWED'", OUTSIDE].contains(&code.as_str()),
            "{name}: {code}"
        );
        let code = engine.value(&format!("await require('a').import('{name}')"));
        assert!(
            ["'ERR_MODULE_NOT_FOUND'", "'MODULE_NOT_ALLOWED'", OUTSIDE].contains(&code.as_str()),
            "{name}: {code}"
        );
    }
    let inside = "require('a').load('../../../bundle:z-1.0.0/node_modules/z/secret.js')";
    assert_eq!(engine.value(inside), "'MODULE_NOT_FOUND'");
    assert!(engine.memory.requests.is_empty(), "{:?}", engine.memory.requests);
    // A module that a bundle did not find is not missing for the session.
    assert_eq!(
        engine.value("[require('a').load('p'), require('p')]"),
        "[ 'MODULE_NOT_FOUND', 'p of the worktree' ]"
    );
}

#[test]
fn a_failed_bundle_names_what_is_missing() {
    let manifest = ("a/package.json", "{}");
    for (files, expected) in [
        (&[manifest, ("a/index.js", "require('b')")][..], "Cannot find module 'b'"),
        (&[manifest, ("a/index.js", "\nthrow new Error('no')")], "a/index.js:2:"),
        (&[manifest, ("a/index.mjs", "")], "the bundle has no file node_modules/a/index.js"),
        (&[manifest, ("a/index.js", "require('fs')")], "not among the modules"),
        (&[("a/package.json", "["), ("a/index.js", "")], "Invalid package config"),
    ] {
        let failed = failure(vec![bundle("a", "a/index.js", files)]);
        assert!(failed.message.contains(expected), "{expected}: {}", failed.message);
    }
    let broken = failure(vec![single("a", "vm-system library bundle 1\n{")]);
    assert!(broken.message.contains("the bundle cannot be read"), "{}", broken.message);
}
