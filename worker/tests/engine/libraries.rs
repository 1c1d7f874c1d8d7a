//! Libraries: their evaluation, their values in sessions, and errors.

use crate::harness::{Engine, exception_of, value_of};
use vm_system_protocol::model::Limits;
use vm_system_protocol::worker::Outcome;
use vm_system_worker::engine::{LibraryEvaluationError, LibrarySource, preload};

fn library(id: &str, global: Option<&str>, source: &str) -> LibrarySource {
    let global = global.map(str::to_owned);
    LibrarySource { name: format!("{id}-1.0.0"), id: id.to_owned(), global, source: source.to_owned() }
}

fn failure(libraries: Vec<LibrarySource>) -> LibraryEvaluationError {
    preload().expect("the engine starts").load_libraries(libraries).expect_err("it fails")
}

const UMD: &str = "(function (root, factory) {
    if (typeof exports === 'object' && typeof module !== 'undefined') module.exports = factory();
    else if (typeof define === 'function' && define.amd) define(factory);
    else root.umd = factory();
})(this, function () { function umd(x) { return 2 * x; } umd.half = (x) => x / 2; return umd; });";

#[test]
fn a_library_is_the_same_value_as_global_and_by_require_and_import() {
    let mut engine = Engine::with_libraries(vec![library("umd", Some("u"), UMD)]);
    assert_eq!(engine.value("u(21)"), "42");
    assert_eq!(engine.value("require('umd').half(4)"), "2");
    assert_eq!(engine.value("(await import('umd')).default === u && u === require('umd')"), "true");
    assert_eq!(engine.value("Object.keys(globalThis).includes('u')"), "false");
    assert!(engine.memory.requests.is_empty(), "{:?}", engine.memory.requests);
    let done =
        engine.module("main.mjs", "import twice, { half } from 'umd'; console.log(twice(2), half(2));");
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    assert_eq!(engine.console(), ["4 1"]);
    assert_eq!(engine.value("require.resolve('umd')"), "'umd'");
}

#[test]
fn every_form_of_a_single_file_library_has_a_value() {
    let shapes = [
        ("common", "exports.shape = 'common'", "common.shape"),
        ("replaced", "module.exports = { shape: 'replaced' }", "replaced.shape"),
        ("primitive", "module.exports = 'primitive'", "primitive"),
        ("iife", "(function () { globalThis.iife = { shape: 'iife' }; })()", "iife.shape"),
        ("declared", "var declared = { shape: 'declared' };", "declared.shape"),
        ("strict", "'use strict'; const strict = { shape: 'strict' }; // the end", "strict.shape"),
        ("shell", "#!/usr/bin/env node\nexports.shape = 'shell'", "shell.shape"),
        ("esm", "export default { shape: 'esm' }; export const named = 1;", "esm.shape"),
        ("named", "export const shape = await Promise.resolve('named');", "named.shape"),
        (
            "later",
            "exports.shape = ''; Promise.resolve().then(() => { exports.shape = 'later' });",
            "later.shape",
        ),
    ];
    let all = shapes.iter().map(|(id, source, _)| library(id, Some(id), source)).collect();
    let mut engine = Engine::with_libraries(all);
    for (id, _, global) in shapes {
        assert_eq!(engine.value(global), format!("'{id}'"), "{id}");
        let required = global.replace(id, &format!("require('{id}')"));
        assert_eq!(engine.value(&required), format!("'{id}'"), "{id}");
    }
    assert_eq!(engine.value("(await import('esm')).named"), "1");
    assert_eq!(engine.value("(await import('named')).shape"), "'named'");
    assert_eq!(engine.value("(await import('common')).shape"), "'common'");
}

#[test]
fn a_required_library_is_evaluated_first_and_cycles_see_partial_exports() {
    let mut engine = Engine::with_libraries(vec![
        library("a", Some("A"), "exports.early = 1; exports.b = require('z').seen; exports.late = 2;"),
        library("m", None, "import z from 'z'; export default z.name;"),
        library("z", Some("Z"), "exports.name = 'z'; exports.seen = require('a').early;"),
    ]);
    assert_eq!(engine.value("[A.b, A.late, Z.name, require('m')]"), "[ 1, 2, 'z', 'z' ]");
    assert_eq!(engine.value("typeof m"), "'undefined'");
}

#[test]
fn sessions_of_other_templates_do_not_have_the_library() {
    let mut engine = Engine::new();
    assert_eq!(engine.value("typeof u"), "'undefined'");
    let (message, _) = engine.exception("require('umd')");
    assert!(message.contains("Cannot find"), "{message}");
}

#[test]
fn a_failed_library_is_named_with_its_exception_and_position() {
    for (source, expected) in [
        ("\n\n  throw new TypeError('broken')", "TypeError: broken (at bad-1.0.0:3:"),
        ("throw 7", "Uncaught 7"),
        ("exports.x = (", "SyntaxError"),
        ("export const x = (", "SyntaxError"),
        ("null.x", "TypeError"),
        ("exports.x = 1; Promise.reject(new Error('later'))", "Error: later"),
        ("export default await new Promise(() => {})", "never settled"),
        ("require('react')", "Invalid module 'react'"),
        ("require('./part.js')", "Invalid module './part.js'"),
        ("require('fs')", "not among the modules"),
        ("process.exit(3)", "process.exit(3)"),
        ("const hoard = []; for (;;) hoard.push(new Array(100000).fill(1.5));", "256 MiB"),
        ("void 0", "neither exports anything nor sets the global variable bad"),
    ] {
        let failed =
            failure(vec![library("good", None, "exports.x = 1"), library("bad", Some("bad"), source)]);
        assert_eq!(failed.name, "bad-1.0.0", "{source}");
        assert!(failed.message.contains(expected), "{source}: {}", failed.message);
    }
    let huge = failure(vec![library("bad", None, "throw new Error('x'.repeat(1e6))")]);
    assert!(huge.message.len() < 3_000);
}

#[test]
fn a_library_that_does_not_end_hits_its_limit() {
    let failed = failure(vec![library("bad", None, "for (;;) {}")]);
    assert!(failed.message.contains("it reached its "), "{}", failed.message);
}

#[test]
fn a_library_cannot_replace_an_existing_global() {
    for global in ["console", "Object", "require", "globalThis"] {
        let failed = failure(vec![library("bad", Some(global), "module.exports = 1")]);
        assert!(failed.message.contains(global), "{global}: {}", failed.message);
    }
    let twice =
        vec![library("a", Some("same"), "exports.x = 1"), library("b", Some("same"), "exports.x = 2")];
    assert_eq!(failure(twice).name, "b-1.0.0");
}

#[test]
fn output_and_timers_of_a_library_are_discarded() {
    let source = "console.log('hello'); setTimeout(() => { globalThis.ticked = true }, 1); exports.x = 1";
    let mut engine = Engine::with_libraries(vec![library("loud", None, source)]);
    let done = engine.repl("globalThis.ticked");
    assert_eq!(value_of(&done).expect("a value").1, "true");
    assert!(engine.console().is_empty());
}

#[test]
fn limits_of_the_session_do_not_count_the_evaluation_of_libraries() {
    let limits = Limits { cpu_ms: 60_000, wall_ms: 60_000, mem_mb: 32, ..Limits::default() };
    let mut engine = Engine::with_limits_and_libraries(limits, vec![library("umd", Some("u"), UMD)]);
    let done = engine.repl("const hoard = []; for (;;) hoard.push(new Array(100000).fill(1.5))");
    assert!(exception_of(&done).is_some_and(|(message, _)| message.contains("out of memory")), "{done:?}");
    assert_eq!(engine.value("u(1)"), "2");
}
