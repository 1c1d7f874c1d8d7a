//! Modules that the zygote has compiled: to a session they are as those that it compiles itself.

use crate::harness::{Engine, json_of};
use vm_system_protocol::model::Limits;
use vm_system_protocol::worker::{Done, Outcome};

fn limits(mem_mb: u32) -> Limits {
    Limits { cpu_ms: 60_000, wall_ms: 60_000, mem_mb, ..Limits::default() }
}

const FILES: &[(&str, &str)] = &[
    ("plain.js", "exports.add = (a, b) => a + b;\nexports.where = [__filename, __dirname, this === exports]"),
    ("node_modules/p/index.js", "module.exports = function named() { return require('./part') }"),
    ("node_modules/p/part.js", "let count = 0; exports.next = () => ++count"),
    ("shell.js", "#!/usr/bin/env node\nmodule.exports = 'shell'"),
    ("nul.js", "module.exports = '\0'.length"),
    ("throws.js", "\n\n   throw new TypeError('third line')"),
    ("nothing.js", "\nmodule.exports = missing.field"),
    ("invalid.js", "exports.a = ;"),
    ("module.js", "export const answer = 42; export default 7"),
    ("cycle.js", "exports.first = 1; exports.seen = Object.keys(require('./cycle')); exports.last = 2"),
];

const INPUTS: &[&str] = &[
    "require('./plain').add(1, 2) + require('./plain').where",
    "const f = require('p'); [f.name, String(f), f().next(), f().next(), require('p') === f]",
    "require('./shell')",
    "require('./nul')",
    "try { require('./throws') } catch (error) { error.stack }",
    "try { require('./nothing') } catch (error) { error.stack }",
    "try { require('./invalid') } catch (error) { error.stack }",
    "[require('./module').answer, require('./module').default]",
    "require('./cycle')",
    "(await import('./plain.js')).default.add(2, 2)",
    "delete require.cache['plain.js']; require('./plain').add(1, 1)",
    "Object.keys(require.cache)",
    "process.memoryUsage().heapUsed > 0",
];

#[test]
fn they_are_as_modules_that_the_session_compiles() {
    let mut compiled = Engine::with_compiled(limits(64), FILES);
    let mut plain = Engine::with_limits(limits(64));
    plain.memory.files = compiled.memory.files.clone();
    for input in INPUTS {
        let [expected, found] = [&mut plain, &mut compiled].map(|engine| engine.repl(input));
        let payloads =
            |done: &Done| done.events.iter().map(|event| event.payload.clone()).collect::<Vec<_>>();
        assert_eq!(payloads(&found), payloads(&expected), "{input}");
        assert_eq!(found.outcome, expected.outcome, "{input}");
        assert_eq!(found.outcome, Outcome::Ok, "{input}: {:?}", found.events);
    }
}

#[test]
fn they_are_not_compiled_again() {
    // A script that takes long to compile: the session's heap shows whether it was.
    let source = format!("exports.n = 1; const unused = [{}];", "() => 1, ".repeat(20_000));
    let files: &[(&str, &str)] = &[("large.js", &source)];
    let heap_after = |engine: &mut Engine| {
        let before = engine.repl("0").usage.heap_bytes;
        let done = engine.script("run.js", "require('./large').n");
        assert_eq!(json_of(&done), "1");
        done.usage.heap_peak_bytes - before
    };
    let mut plain = Engine::with_limits(limits(64));
    plain.memory.files.insert("large.js".to_owned(), source.clone());
    let (plain, compiled) =
        (heap_after(&mut plain), heap_after(&mut Engine::with_compiled(limits(64), files)));
    assert!(compiled < plain / 2, "{compiled} of {plain} bytes");
}

#[test]
fn a_file_that_has_changed_is_compiled_as_it_is() {
    let mut engine = Engine::with_compiled(limits(64), FILES).file("plain.js", "exports.add = () => 'new'");
    assert_eq!(engine.value("require('./plain').add()"), "'new'");
    // The compiled text is not used even if the host does send the text.
    engine.memory.compiled.clear();
    assert_eq!(engine.value("require('./shell')"), "'shell'");
}

#[test]
fn they_take_nothing_of_the_memory_of_a_session_that_does_not_load_them() {
    let source = format!("exports.n = 1; const unused = [{}];", "() => 1, ".repeat(40_000));
    let fill =
        "{ let n = 0; const all = []; try { for (;;) { all.push('x'.repeat(100_000)); n++ } } catch {} n }";
    // The heap is counted for each thread.
    let measure = |modules: Vec<(&'static str, String)>| {
        let measured = std::thread::spawn(move || {
            let modules: Vec<_> = modules.iter().map(|(path, source)| (*path, source.as_str())).collect();
            let mut engine = match modules.as_slice() {
                [] => Engine::with_limits(limits(16)),
                modules => Engine::with_compiled(limits(16), modules),
            };
            let used = engine.repl("0").usage.heap_bytes;
            (used, engine.value(fill).parse::<i32>().expect("a number"))
        });
        measured.join().expect("it runs")
    };
    let (plain, compiled) = (measure(Vec::new()), measure(vec![("large.js", source)]));
    assert!(compiled.0 < plain.0 + 64 * 1024, "{compiled:?}, {plain:?} bytes");
    assert!(plain.1 > 100 && (plain.1 - compiled.1).abs() <= 2, "{compiled:?}, {plain:?}");
}

#[test]
fn what_exceeds_the_memory_of_a_set_is_compiled_by_the_session() {
    let source = format!("exports.n = 5; const unused = [{}];", "() => 1, ".repeat(300_000));
    let mut engine = Engine::with_compiled(limits(512), &[("a.js", &source), ("b.js", "exports.n = 6")]);
    assert_eq!(engine.value("[require('./a').n, require('./b').n]"), "[ 5, 6 ]");
}

#[test]
fn a_reply_about_a_module_that_was_not_compiled_is_an_error() {
    let mut engine = Engine::with_limits(limits(64)).file("a.js", "exports.n = 1");
    engine.memory.compiled.insert("a.js".to_owned(), "exports.n = 1".to_owned());
    assert_eq!(
        engine.value("try { require('./a') } catch (error) { error.code + ': ' + error.message }"),
        "\"EIO: the host's reply names a module that was not compiled\""
    );
}
