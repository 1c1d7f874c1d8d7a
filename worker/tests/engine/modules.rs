//! `import` and `require` of files, host modules, and `fs`.

use crate::harness::{Engine, exception_of, json_of};
use vm_system_protocol::worker::{HostRequest, Outcome};

#[test]
fn require_returns_exports_caches_and_runs_once() {
    let mut engine = Engine::new()
        .file(
            "lib/math.js",
            "console.log('run'); exports.add = (a, b) => a + b; exports.where = [__filename, __dirname]",
        )
        .file("data.json", "{\"n\": [1, 2]}")
        .file("whole.js", "module.exports = class Whole {}");
    assert_eq!(engine.value("require('./lib/math').add(1, 2)"), "3");
    assert_eq!(engine.console(), ["run"]);
    assert_eq!(engine.value("require('./lib/math').where"), "[ 'lib/math.js', 'lib' ]");
    assert!(engine.console().is_empty());
    assert_eq!(engine.value("require('./data.json').n"), "[ 1, 2 ]");
    assert_eq!(engine.value("require('./whole')"), "[class Whole]");
    assert_eq!(engine.value("Object.keys(require.cache)"), "[ 'lib/math.js', 'data.json', 'whole.js' ]");
    assert_eq!(engine.value("delete require.cache['lib/math.js']; require('./lib/math').add(2, 2)"), "4");
    assert_eq!(engine.console(), ["run"]);
}

#[test]
fn require_is_relative_to_the_requiring_file() {
    let mut engine = Engine::new()
        .file("app/main.js", "module.exports = require('./part').name")
        .file("app/part.js", "exports.name = 'app/part'");
    assert_eq!(engine.value("require('./app/main')"), "'app/part'");
    let candidates = |request: &HostRequest| match request {
        HostRequest::LoadModule { candidates, .. } => candidates.first().cloned(),
        _ => None,
    };
    let first: Vec<String> = engine.memory.requests.iter().filter_map(candidates).collect();
    assert_eq!(first, ["app/main", "app/part"]);
    let done = engine.script("app/run.js", "[require('./part').name, require.main === module, __filename]");
    assert_eq!(json_of(&done), "[\"app/part\",true,\"app/run.js\"]");
}

#[test]
fn a_cycle_of_requires_sees_partial_exports() {
    let mut engine = Engine::new()
        .file("a.js", "exports.first = 1; exports.seen = require('./b').seen; exports.last = 2")
        .file("b.js", "exports.seen = Object.keys(require('./a'))");
    assert_eq!(engine.value("require('./a')"), "{ first: 1, seen: [ 'first' ], last: 2 }");
}

#[test]
fn failures_have_codes_and_a_module_that_threw_runs_again() {
    let mut engine = Engine::new()
        .file("bad.js", "globalThis.tries = (globalThis.tries ?? 0) + 1; throw new Error('bad ' + tries)");
    assert_eq!(engine.value("try { require('nothing') } catch (e) { e.code }"), "'MODULE_NOT_FOUND'");
    assert_eq!(
        engine.value("try { await import('nothing') } catch (e) { e.code }"),
        "'ERR_MODULE_NOT_FOUND'"
    );
    assert_eq!(engine.exception("require('./bad')").0, "Error: bad 1");
    let (message, stack) = engine.exception("require('./bad')");
    assert_eq!(message, "Error: bad 2");
    assert!(stack.contains("bad.js:1:"), "{stack}");
    engine.policy.modules.clear();
    assert_eq!(engine.value("try { require('fs') } catch (e) { e.code }"), "'MODULE_NOT_ALLOWED'");
    for load in ["require('database')", "await import('database')"] {
        assert_eq!(
            engine.exception(load).0,
            "Error: Invalid module 'database': it is not among the modules of this session's template."
        );
    }
    assert_eq!(engine.value("try { await import('node:fs') } catch (e) { e.code }"), "'MODULE_NOT_ALLOWED'");
}

#[test]
fn a_module_that_cannot_be_read_in_time_is_not_called_invalid() {
    let mut engine = Engine::new();
    for load in ["require('./hangs.js')", "await import('./hangs.js')"] {
        let (message, _) = engine.exception(load);
        assert_eq!(message, "Error: Cannot load module './hangs.js': the file system did not respond");
    }
    assert_eq!(engine.value("try { require('./hangs.js') } catch (e) { e.code }"), "'ETIMEDOUT'");
}

#[test]
fn a_module_withdrawn_later_is_not_usable_through_an_old_reference() {
    let mut engine = Engine::new().file("a.txt", "text");
    assert_eq!(engine.value("const fs = require('fs'); fs.readFileSync('a.txt', 'utf8')"), "'text'");
    engine.policy.modules.clear();
    // The host checks every call and records a denial; the engine passes the reply on.
    engine.memory.refuses = true;
    let caught = "try { fs.readFileSync('a.txt', 'utf8') } catch (error) { error.code }";
    assert_eq!(engine.value(caught), "'MODULE_NOT_ALLOWED'");
    assert_eq!(engine.value("try { require('fs') } catch (error) { error.code }"), "'MODULE_NOT_ALLOWED'");
}

#[test]
fn modules_import_each_other_with_live_bindings_and_cycles() {
    let mut engine = Engine::new()
        .file("counter.mjs", "export let count = 0; export function up() { count++ } export default 'def'")
        .file(
            "odd.mjs",
            "import { even } from './even.mjs'; export const odd = (n) => n !== 0 && even(n - 1)",
        )
        .file(
            "even.mjs",
            "import { odd } from './odd.mjs'; export const even = (n) => n === 0 || odd(n - 1)",
        );
    let done = engine.module(
        "main.mjs",
        "import def, { count, up } from './counter.mjs'; import { even } from './even.mjs'; import * as all from './counter.mjs';
         up(); console.log(def, count, even(10), Object.keys(all), import.meta.url, import.meta.filename);
         console.log((await import('./counter.mjs')).count)",
    );
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    assert_eq!(engine.console(), ["def 1 true [ 'count', 'default', 'up' ] file:///main.mjs main.mjs", "1"]);
}

#[test]
fn a_module_file_runs_again_and_again() {
    let mut engine = Engine::new();
    for _ in 0..3 {
        assert_eq!(engine.module("m.mjs", "export const a = 1; console.log('ran')").outcome, Outcome::Ok);
        assert_eq!(engine.console(), ["ran"]);
    }
}

#[test]
fn module_errors_name_their_file() {
    let mut engine = Engine::new().file("broken.mjs", "export const = 1").file("throws.mjs", "\nnull.x");
    let done = engine.module("main.mjs", "import './broken.mjs'");
    assert!(matches!(done.outcome, Outcome::SyntaxError { .. }), "{:?}", done.outcome);
    assert!(exception_of(&done).expect("an exception").1.contains("broken.mjs:1:"), "{:?}", done.events);
    let done = engine.module("second.mjs", "import './throws.mjs'");
    assert!(exception_of(&done).expect("an exception").1.contains("throws.mjs:2:"), "{:?}", done.events);
    let done = engine.module("third.mjs", "import { nope } from './throws2.mjs'");
    assert!(matches!(done.outcome, Outcome::Exception { .. }), "{:?}", done.outcome);
    let done = engine.module("fourth.mjs", "await 0;\nthrow new Error('late')");
    let (message, stack) = exception_of(&done).expect("an exception");
    assert_eq!(message, "Error: late");
    assert!(stack.contains("fourth.mjs:2:"), "{stack}");
}

#[test]
fn common_js_json_and_host_modules_can_be_imported() {
    let mut engine = Engine::new()
        .file("old.js", "exports.a = 1; exports['b-c'] = 2")
        .file("data.json", "{\"k\": 5}")
        .file("t.txt", "hello");
    let done = engine.module(
        "main.mjs",
        "import old, { a } from './old.js'; import data from './data.json' with { type: 'json' };
         import fs, { readFileSync } from 'fs'; import { readFile } from 'node:fs/promises';
         console.log(a, old['b-c'], data.k, readFileSync('t.txt', 'utf8'), await readFile('t.txt', 'utf8'), fs.existsSync('no'))",
    );
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    assert_eq!(engine.console(), ["1 2 5 hello hello false"]);
    assert_eq!(engine.value("const { a: fromRepl } = await import('./old.js'); fromRepl"), "1");
}

#[test]
fn fs_reads_files_folders_and_stats_as_node_does() {
    let mut engine = Engine::new().file("a.txt", "hé").file("b.txt", "2");
    for (source, shown) in [
        ("const fs = require('node:fs'); fs.readFileSync('a.txt')", "<Buffer 68 c3 a9>"),
        ("fs.readFileSync('a.txt', 'utf8')", "'hé'"),
        ("fs.readFileSync('a.txt', { encoding: 'hex' })", "'68c3a9'"),
        ("fs.readFileSync('a.txt').toString()", "'hé'"),
        ("await fs.promises.readFile('a.txt', 'utf8')", "'hé'"),
        (
            "await new Promise((done) => fs.readFile('a.txt', 'utf8', (e, text) => done([e, text])))",
            "[ null, 'hé' ]",
        ),
        ("fs.readdirSync('.')", "[ 'a.txt', 'b.txt' ]"),
        ("try { fs.readdirSync('endless', { recursive: true }).length } catch (e) { e.code }", "'EFBIG'"),
        (
            "fs.readdirSync('.', { withFileTypes: true }).map((e) => [e.name, e.isFile(), e.isDirectory()])",
            "[ [ 'a.txt', true, false ], [ 'b.txt', true, false ] ]",
        ),
        (
            "const s = fs.statSync('a.txt'); [s.size, s.isFile(), s.isDirectory(), s.mtime.getTime(), s.mtimeMs]",
            "[ 3, true, false, 1000, 1000 ]",
        ),
        ("[fs.existsSync('a.txt'), fs.existsSync('no')]", "[ true, false ]"),
        ("fs.accessSync('a.txt')", "undefined"),
        ("fs.statSync('no', { throwIfNoEntry: false })", "undefined"),
        (
            "try { fs.readFileSync('no') } catch (e) { [e.message, e.code, e.syscall, e.path, e.errno] }",
            "[\n  \"ENOENT: no such file or directory, open 'no'\",\n  'ENOENT',\n  'open',\n  'no',\n  -2\n]",
        ),
        ("await new Promise((done) => fs.stat('no', (e) => done(e.code)))", "'ENOENT'"),
        (
            "await fs.promises.access('no').catch((e) => e.message)",
            "\"ENOENT: no such file or directory, access 'no'\"",
        ),
        ("require('fs') === fs", "true"),
    ] {
        assert_eq!(engine.value(source), shown, "{source}");
    }
}

#[test]
fn modules_do_not_see_the_names_that_a_script_is_about_to_declare() {
    let mut engine = Engine::new()
        .file(
            "own.js",
            "const before = globalThis._; exports.before = typeof before; exports.name = typeof _",
        )
        .file("outer.js", "module.exports = require('./own')")
        .file("late.js", "exports.read = () => _");
    assert_eq!(
        engine.value("const _ = require('./outer'); [_.before, _.name]"),
        "[ 'undefined', 'undefined' ]"
    );
    assert_eq!(engine.value("class _ { static seen = require('./late').read }; _.seen() === _"), "true");
    assert_eq!(engine.value("const a = (await import('./outer.js')).default.name; a"), "'undefined'");
    let early = "ReferenceError: Cannot access 'b' before initialization";
    assert_eq!(engine.exception("require('./own'); globalThis.b; const b = 1").0, early);
}
