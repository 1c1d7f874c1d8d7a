//! Packages of `node_modules`: which file a specifier means, ES modules and CommonJS together, and how many host calls it takes.

use crate::harness::Engine;
use vm_system_protocol::worker::{HostRequest, Outcome};

fn lookups(engine: &Engine) -> usize {
    engine.memory.requests.iter().filter(|request| matches!(request, HostRequest::LoadModule { .. })).count()
}

fn packages() -> Engine {
    Engine::new()
        .file("node_modules/plain/package.json", r#"{"name": "plain", "version": "1.2.3", "main": "lib/main"}"#)
        .file("node_modules/plain/lib/main.js", "exports.name = 'plain'; exports.part = require('./part')")
        .file("node_modules/plain/lib/part.js", "module.exports = require('dep')")
        .file("node_modules/plain/node_modules/dep/index.js", "module.exports = 'inner dep'")
        .file("node_modules/dep/index.js", "module.exports = 'outer dep'")
        .file("node_modules/@scope/pkg/package.json", r#"{"main": "./nothing.js"}"#)
        .file("node_modules/@scope/pkg/index.js", "module.exports = 'scoped'")
        .file("node_modules/@scope/pkg/sub/package.json", r#"{"main": "s.js"}"#)
        .file("node_modules/@scope/pkg/sub/s.js", "module.exports = 'sub'")
        .file("node_modules/single.js", "module.exports = 'single'")
        .file(
            "node_modules/dual/package.json",
            r##"{"name": "dual", "type": "module", "imports": {"#own": "./own.cjs", "#path": "node:path"},
                "exports": {".": {"import": "./index.js", "require": "./index.cjs"}, "./x/*": "./src/*.js", "./x/no": null,
                            "./package.json": "./package.json"}}"##,
        )
        .file(
            "node_modules/dual/index.js",
            "import own from '#own'; import { join } from '#path'; export default 'esm ' + own + join('/a', 'b');
             export const self = (await import('dual/x/y')).default",
        )
        .file("node_modules/dual/index.cjs", "module.exports = 'cjs ' + require('#own') + require('dual')")
        .file("node_modules/dual/own.cjs", "module.exports = 'own'")
        .file("node_modules/dual/src/y.js", "export default 'y'")
        .file("app/deep/x.js", "exports.all = [require('plain').part, require('dep')]")
}

#[test]
fn packages_are_found_upwards_and_by_their_main() {
    let mut engine = packages();
    assert_eq!(engine.value("require('plain')"), "{ name: 'plain', part: 'inner dep' }");
    assert_eq!(engine.value("require('./app/deep/x').all"), "[ 'inner dep', 'outer dep' ]");
    assert_eq!(engine.value("require('@scope/pkg') + require('@scope/pkg/sub')"), "'scopedsub'");
    assert_eq!(engine.value("require('single') + require('plain/package.json').version"), "'single1.2.3'");
    assert_eq!(engine.value("require.resolve('plain')"), "'node_modules/plain/lib/main.js'");
    assert_eq!(
        engine.value("require.resolve.paths('x').concat(module_paths = require('module')._nodeModulePaths('/app/deep'))"),
        "[\n  'node_modules',\n  'app/deep/node_modules',\n  'app/node_modules',\n  'node_modules'\n]"
    );
}

#[test]
fn exports_and_imports_of_a_package_decide() {
    let mut engine = packages();
    let done = engine.module(
        "main.mjs",
        "import dual, { self } from 'dual'; console.log(dual, self, import.meta.resolve('dual/x/y'))",
    );
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    assert_eq!(engine.console(), ["esm own/a/b y file:///node_modules/dual/src/y.js"]);
    for (specifier, expected) in [
        (
            "dual/x/no",
            "ERR_PACKAGE_PATH_NOT_EXPORTED: Package subpath './x/no' is not defined by \"exports\" in node_modules/dual/package.json",
        ),
        (
            "dual/own.cjs",
            "ERR_PACKAGE_PATH_NOT_EXPORTED: Package subpath './own.cjs' is not defined by \"exports\" in node_modules/dual/package.json",
        ),
        (
            "dual/x/none",
            "MODULE_NOT_FOUND: Cannot find module 'node_modules/dual/src/none.js'\nInvalid module 'node_modules/dual/src/none.js': the worktree has no such file",
        ),
        (
            "nothing",
            "MODULE_NOT_FOUND: Cannot find module 'nothing'\nInvalid module 'nothing': no host module, library or package in node_modules has this name",
        ),
        (
            "#own",
            "ERR_PACKAGE_IMPORT_NOT_DEFINED: Package import specifier \"#own\" is not defined imported from repl",
        ),
        ("node:nothing", "ERR_UNKNOWN_BUILTIN_MODULE: No such built-in module: node:nothing"),
    ] {
        let code = format!(
            "try {{ require('{specifier}') }} catch (e) {{ console.log(e.code + ': ' + e.message) }}"
        );
        assert_eq!(engine.logs(&code), [expected]);
    }
    assert_eq!(engine.value("require('dual/package.json').type"), "'module'");
}

#[test]
fn imports_do_not_name_each_other() {
    let mut engine = Engine::new()
        .file(
            "package.json",
            r##"{"name": "self", "imports": {"#a": "#b", "#b": "#a", "#c": "self"}, "exports": "./x.js"}"##,
        )
        .file("x.js", "module.exports = 'itself'");
    assert_eq!(engine.value("try { require('#a') } catch (e) { e.code }"), "'MODULE_NOT_FOUND'");
    assert_eq!(engine.value("try { await import('#a') } catch (e) { e.code }"), "'ERR_MODULE_NOT_FOUND'");
    assert_eq!(engine.value("require('#c') + require('self')"), "'itselfitself'");
}

#[test]
fn a_missing_module_names_the_files_that_required_it() {
    let mut engine = Engine::new().file("a.js", "require('./lib/b')").file("lib/b.js", "require('nothing')");
    let shown = engine.logs("try { require('./a') } catch (e) { console.log(e.message, e.requireStack) }");
    assert_eq!(
        shown,
        [
            "Cannot find module 'nothing'\nRequire stack:\n- lib/b.js\n- a.js\nInvalid module 'nothing': no host module, library or package in node_modules has this name [ 'lib/b.js', 'a.js' ]"
        ]
    );
    let done = engine.module(
        "m.mjs",
        "try { await import('nothing') } catch (e) { console.log(e.code, e.message) }
        try { await import('./none.mjs') } catch (e) { console.log(e.message) }
        try { await import('https://a/b.js') } catch (e) { console.log(e.code) }",
    );
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    assert_eq!(
        engine.console(),
        [
            "ERR_MODULE_NOT_FOUND Cannot find package 'nothing' imported from m.mjs\nInvalid module 'nothing': no host module, library or package in node_modules has this name",
            "Cannot find module 'none.mjs' imported from m.mjs\nInvalid module './none.mjs': the worktree has no such file",
            "ERR_UNSUPPORTED_ESM_URL_SCHEME",
        ]
    );
}

#[test]
fn a_missing_module_names_the_neighbour_that_was_meant() {
    let mut engine = Engine::new()
        .file("x.ts", "export const a: number = 1")
        .file("data.json", "{}")
        .file("lib/index.ts", "export const a = 1")
        .file("sub/y.mts", "export const a = 1");
    for (specifier, meant) in [
        ("./x", "./x.ts"),
        ("./x.js", "./x.ts"),
        ("./data", "./data.json"),
        ("./lib", "./lib/index.ts"),
        ("./lib/", "./lib/index.ts"),
        ("./sub/y.mjs", "./sub/y.mts"),
    ] {
        let import =
            format!("try {{ await import('{specifier}') }} catch (e) {{ e.message.split('\\n')[1] }}");
        assert_eq!(engine.value(&import), format!("'Did you mean to import \"{meant}\"?'"), "{specifier}");
    }
    for (specifier, meant) in [("./x", "./x.ts"), ("./lib", "./lib/index.ts")] {
        let require =
            format!("try {{ require('{specifier}') }} catch (e) {{ e.message.split('\\n').at(-2) }}");
        assert_eq!(engine.value(&require), format!("'Did you mean to require \"{meant}\"?'"), "{specifier}");
    }
    let none = "try { await import('./none') } catch (e) { console.log(e.message) }";
    assert_eq!(
        engine.logs(none),
        [
            "Cannot find module 'none' imported from repl\nInvalid module './none': the worktree has no such file"
        ]
    );
}

#[test]
fn relative_paths_of_input_are_those_of_the_worktree_first_and_then_beneath_the_roots() {
    let mut engine = Engine::new()
        .file("lib/a.js", "module.exports = 'lib/a'")
        .file("lib/lib/a.js", "module.exports = 'lib/lib/a'")
        .file("lib/b.js", "module.exports = 'lib/b'");
    engine.policy.resolver.roots = vec!["lib".to_owned()];
    assert_eq!(engine.value("[require('./lib/a'), require('./b')]"), "[ 'lib/a', 'lib/b' ]");
    assert_eq!(engine.value("require('lib/a')"), "'lib/lib/a'", "other specifiers begin at the roots");
}

#[test]
fn es_modules_can_be_required_unless_they_await() {
    let mut engine = Engine::new()
        .file("plain.mjs", "export const a = 1; export let b = 2; globalThis.ran = (globalThis.ran ?? 0) + 1")
        .file("with_default.mjs", "export default function hi() {} export const c = 3")
        .file(
            "whole.mjs",
            "export default 1; export { f as 'module.exports' }; function f() { return 'whole' }",
        )
        .file("late.mjs", "await 0; export const x = 1")
        .file("throws.mjs", "throw new RangeError('no')")
        .file("detected.js", "export const d = 4")
        .file("package.json", r#"{"type": "commonjs"}"#);
    assert_eq!(engine.value("const { a, b } = require('./plain.mjs'); [a, b]"), "[ 1, 2 ]");
    assert_eq!(
        engine.value(
            "[require('./plain.mjs') === require('./plain.mjs'), (await import('./plain.mjs')).a, ran]"
        ),
        "[ true, 1, 1 ]"
    );
    assert_eq!(
        engine.value("const w = require('./with_default.mjs'); [w.__esModule, w.default.name, w.c]"),
        "[ true, 'hi', 3 ]"
    );
    assert_eq!(engine.value("require('./whole.mjs')()"), "'whole'");
    assert_eq!(engine.value("require('./detected').d"), "4");
    assert_eq!(
        engine.value("try { require('./late.mjs') } catch (e) { e.code }"),
        "'ERR_REQUIRE_ASYNC_MODULE'"
    );
    assert_eq!(engine.value("try { require('./throws.mjs') } catch (e) { String(e) }"), "'RangeError: no'");
    assert_eq!(engine.value("1 + 1"), "2");
}

#[test]
fn cycles_between_both_kinds_of_modules_end() {
    let mut engine = Engine::new()
        .file("a.mjs", "import b from './b.cjs'; export const name = 'a'; export { b }")
        .file("b.cjs", "try { require('./a.mjs') } catch (e) { exports.code = e.code }")
        .file("c.mjs", "import d from './d.cjs'; export const c = 1; export { d }")
        .file("d.cjs", "try { require('./e.mjs') } catch (e) { exports.code = e.code }")
        .file("e.mjs", "import { c } from './c.mjs'; export const e = c")
        .file("f.cjs", "exports.f = 1; const { g } = require('./g.mjs'); exports.g = g")
        .file("g.mjs", "import f from './f.cjs'; export const g = Object.keys(f).join()");
    for main in ["./a.mjs", "./c.mjs"] {
        let expected = "'ERR_REQUIRE_CYCLE_MODULE'";
        let code = format!("const all = await import('{main}'); (all.b ?? all.d).code");
        assert_eq!(engine.value(&code), expected, "{main}");
    }
    assert_eq!(engine.value("require('./f.cjs')"), "{ f: 1, g: 'f' }");
}

#[test]
fn the_type_of_a_package_decides_about_its_js_files() {
    let mut engine = Engine::new()
        .file("esm/package.json", r#"{"type": "module"}"#)
        .file("esm/strict.js", "globalThis.strict = (function () { return this })() === undefined")
        .file("esm/old.cjs", "module.exports = typeof require")
        .file("esm/sub/package.json", "{}")
        .file("esm/sub/sloppy.js", "module.exports = (function () { return this })() === undefined")
        .file("bad/package.json", "{")
        .file("bad/x.js", "");
    assert_eq!(engine.value("await import('./esm/strict.js'); strict"), "true");
    assert_eq!(
        engine.value("[require('./esm/old.cjs'), require('./esm/sub/sloppy.js')]"),
        "[ 'function', false ]"
    );
    assert_eq!(
        engine.value("try { require('./bad/x.js') } catch (e) { e.message }"),
        "'Invalid package config bad/package.json.'"
    );
}

#[test]
fn a_package_takes_two_host_calls_and_no_path_is_requested_twice() {
    let mut engine = packages();
    engine.value("require('dep')");
    // The root's package.json, for packages that import themselves; the package; its index came with it.
    assert_eq!(lookups(&engine), 2);
    engine.memory.requests.clear();
    let code = "let codes = []; for (let i = 0; i < 50; i++) try { require('none') } catch (e) { codes.push(e.code) } codes.length";
    assert_eq!(engine.value(code), "50");
    assert_eq!(lookups(&engine), 2, "a missing module is looked up once");
    engine.memory.requests.clear();
    let code = "try { require('./made') } catch {} require('fs').writeFileSync('made.js', 'module.exports = 7'); require('./made')";
    assert_eq!(engine.value(code), "7", "a file that the execution writes is found");
}

#[test]
fn modules_know_their_place() {
    let mut engine = Engine::new()
        .file("lib/a.js", "module.exports = [module.id, module.path, module.filename, module.paths, require.main.id, module.parent.id]")
        .file("lib/c.mjs", "import { createRequire } from 'module'; const require = createRequire(import.meta.url);
            export default [require('./d.json').n, require.resolve('./d.json')]")
        .file("lib/d.json", "{\"n\": 1}");
    let done = engine.script(
        "main.js",
        "console.log(require('./lib/a'), module.children.length, require.main === module, require('module').builtinModules.includes('path'))",
    );
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    assert_eq!(
        engine.console().join("\n"),
        "[\n  'lib/a.js',\n  'lib',\n  'lib/a.js',\n  [ 'lib/node_modules', 'node_modules' ],\n  '.',\n  '.'\n] 1 true true"
    );
    assert_eq!(engine.value("(await import('./lib/c.mjs')).default"), "[ 1, 'lib/d.json' ]");
    assert_eq!(engine.value("(await import('file:///lib/d.json')).default.n"), "1");
}

#[test]
fn modules_of_node_that_sessions_do_not_have_are_refused_by_name() {
    let mut engine = Engine::new();
    for (code, expected) in [
        (
            "require('child_process').execSync('ls')",
            "child_process.execSync is not available in sessions: a session starts no processes",
        ),
        (
            "new (require('worker_threads').Worker)('x')",
            "worker_threads.Worker is not available in sessions: a session is one thread",
        ),
        (
            "require('node:vm').runInNewContext('1')",
            "vm.runInNewContext is not available in sessions: a session has one set of globals",
        ),
        (
            "require('http2')",
            "Invalid module 'http2': it is not available in sessions: sessions have no sockets",
        ),
        (
            "require('http').createServer()",
            "http.createServer is not available in sessions: sessions have no servers",
        ),
        (
            "new (require('https').Server)()",
            "https.Server is not available in sessions: sessions have no servers",
        ),
        ("require('crypto').createSign()", "crypto.createSign is not available in sessions"),
        (
            "require('async_hooks').createHook({})",
            "createHook is not available in sessions: the engine does not report asynchronous resources",
        ),
        ("require('zlib').brotliCompressSync('')", "zlib.brotliCompressSync is not available in sessions"),
    ] {
        let (message, _) = engine.exception(code);
        assert!(message.contains(expected), "{code}: {message}");
    }
    assert_eq!(engine.value("try { require('test') } catch (e) { e.code }"), "'MODULE_NOT_FOUND'");
}

#[test]
fn modules_of_node_need_no_right_and_do_not_use_what_a_script_replaced() {
    let mut engine = Engine::new();
    engine.policy.modules.clear();
    assert_eq!(engine.value("require('node:path').join('a', '..', 'b')"), "'b'");
    assert_eq!(
        engine.value("(await import('util')).default === require('util') && (await import('node:util')).format('%s', 1)"),
        "'1'"
    );
    engine.repl("globalThis.Map = globalThis.Object = globalThis.Error = globalThis.Promise = undefined");
    assert_eq!(
        engine.value("require('events').once.name + require('url').parse('http://a/b').pathname"),
        "'once/b'"
    );
    assert_eq!(
        engine.value("try { require('assert').strictEqual(1, 2) } catch (e) { e.code }"),
        "'ERR_ASSERTION'"
    );
    let mut engine = Engine::new();
    let all = "let failed = []; for (const name of require('module').builtinModules) {
        try { require(name) } catch (e) { failed.push(name + e.message) }
    } failed.filter((name) => !/^(database|exec)/.test(name))";
    assert_eq!(engine.value(all), "[]");
}
