//! The top level of programs: `main` that the program calls by itself, `await`, and names that do not exist.

use vm_system_cvm::{
    CompileOptions, PauseAnswer, RunOutcome, StateConfig, VmState, compile, resume_pause, run,
};

/// Console lines and the end of a program; pauses are answered.
fn end(source: &str) -> String {
    let program = compile(source, &CompileOptions::default()).unwrap_or_else(|why| panic!("{source}: {why}"));
    let mut state = VmState::new(&program, &StateConfig::default());
    let end = loop {
        match run(&program, &mut state, u64::MAX) {
            RunOutcome::Pause { prompt, .. } => {
                assert!(resume_pause(&program, &mut state, &PauseAnswer::Text(format!("<{prompt}>"))));
            }
            RunOutcome::Done { json, .. } => break json,
            RunOutcome::Throw(text) => break format!("threw {}", text.lines().next().unwrap_or_default()),
            other => break format!("{other:?}"),
        }
    };
    let mut shown: Vec<String> = state.take_output().into_iter().map(|line| line.text).collect();
    shown.push(end);
    shown.join(" ")
}

fn refused(source: &str) -> String {
    match compile(source, &CompileOptions::default()) {
        Ok(_) => "compiles".to_owned(),
        Err(errors) => {
            let shown = errors.0.iter().map(|e| format!("{}:{} {}", e.line, e.column, e.message));
            shown.collect::<Vec<_>>().join(", ")
        }
    }
}

const MAIN: &str = "function main(n = 0) { console.log('run', n); return CC('q') + n; }\n";
const ASYNC: &str = "async function main(n = 0) { console.log('run', n); await null; return CC('q') + n; }\n";

#[test]
fn main_that_the_program_calls_is_not_called_again_and_its_result_is_the_programs() {
    for (calls, expected) in [
        ("", "run 0 \"<q>0\""),
        ("main();", "run 0 \"<q>0\""),
        ("const r = main(7); console.log(r);", "run 7 <q>7 \"<q>7\""),
        ("if (args.length) main(1);", "run 0 \"<q>0\""),
        ("if (!args.length) main(1);", "run 1 \"<q>1\""),
        ("(() => { main(2); })();", "run 2 \"<q>2\""),
        ("function start() { return main(3); }\nstart();", "run 3 \"<q>3\""),
        ("main(1); main(2);", "run 1 run 2 \"<q>2\""),
        ("function unused() { main(9); }", "run 0 \"<q>0\""),
        ("{ let main = () => 5; main(); }", "run 0 \"<q>0\""),
    ] {
        assert_eq!(end(&format!("{MAIN}{calls}")), expected, "{calls}");
        assert_eq!(end(&format!("{calls}\n{MAIN}")), expected, "{calls} first");
    }
}

#[test]
fn an_async_main_that_the_program_calls_gives_its_result() {
    for (calls, expected) in [
        ("main();", "run 0 \"<q>0\""),
        ("await main();", "run 0 \"<q>0\""),
        ("console.log(await main(4));", "run 4 <q>4 \"<q>4\""),
        ("await (main(4));", "run 4 \"<q>4\""),
        ("main().then((r) => console.log('then', r));", "run 0 then <q>0 \"<q>0\""),
        ("main().catch((e) => console.error(e));", "run 0 \"<q>0\""),
        ("(async () => { await main(5); })();", "run 5 \"<q>5\""),
        ("(async () => { await null; await null; await main(5); })();", "run 5 \"<q>5\""),
        (
            "async function run() { await null; await main(6); }\nrun().catch(console.error);",
            "run 6 \"<q>6\"",
        ),
        ("Promise.resolve(8).then((n) => main(n));", "run 8 \"<q>8\""),
        ("await 1;", "run 0 \"<q>0\""),
    ] {
        assert_eq!(end(&format!("{ASYNC}{calls}")), expected, "{calls}");
    }
    let arrow = "const main = async () => { await null; return CC('q'); };\nmain();";
    assert_eq!(end(arrow), "\"<q>\"");
}

#[test]
fn failures_of_main_end_the_program_unless_it_handles_them() {
    let fails = "function main() { console.log('run'); throw new Error('no'); }\n";
    assert_eq!(end(&format!("{fails}main();")), "run threw Error: no");
    assert_eq!(
        end(&format!("{fails}try {{ main(); }} catch (e) {{ console.log(e.message); }}")),
        "run no null"
    );
    let rejects = "async function main() { await null; console.log('run'); throw new Error('no'); }\n";
    for call in ["main();", "await main();", "(async () => { await main(); })();", "main().then(() => 1);"] {
        assert_eq!(end(&format!("{rejects}{call}")), "run threw Error: no", "{call}");
    }
    for call in [
        "main().catch((e) => console.log(e.message));",
        "try { await main(); } catch (e) { console.log(e.message); }",
        "(async () => { try { await main(); } catch (e) { console.log(e.message); } })();",
    ] {
        assert_eq!(end(&format!("{rejects}{call}")), "run no null", "{call}");
    }
}

#[test]
fn await_works_at_the_top_level() {
    assert_eq!(end("const x = await Promise.resolve(2); console.log(x);"), "2 null");
    assert_eq!(end("for await (const x of [1, Promise.resolve(2)]) console.log(x);"), "1 2 null");
    assert_eq!(end("await [1]; await (async () => console.log('in'))();"), "in null");
    assert_eq!(end("await Promise.reject(new Error('no'));"), "threw Error: no");
    assert_eq!(end("if (false) await 1; function main() { return CC('q'); }"), "\"<q>\"");
    let stuck = end("await new Promise(() => {});");
    assert!(stuck.contains("waits for a promise that nothing can settle"), "{stuck}");
    assert_eq!(
        refused("await 1;\nimport x from 'x';"),
        "2:15 `import` of `x` is not supported: programs import files (`./lib.js`), not packages or modules of Node"
    );
    assert!(refused("function f() { await 1; }").contains("`await` is only allowed"));
}

#[test]
fn names_that_are_declared_nowhere_are_refused_at_load_with_their_line() {
    assert_eq!(
        refused("function main() {\n  const u = new Temporal();\n  sleep(1);\n}"),
        "2:17 `Temporal` is not supported: use `Date`, 3:3 `sleep` is not defined"
    );
    assert_eq!(refused("cc('q');"), "1:1 `cc` is not defined; did you mean `CC`?");
    assert_eq!(refused("let a = 1;\n  a = b;"), "2:7 `b` is not defined");
    assert_eq!(refused("x = 1;"), "1:1 `x` is not defined");
    assert_eq!(
        refused("console.print([]);"),
        "1:9 `console.print` is not supported: `console` has assert, clear, count, countReset, debug, dir, dirxml, error, group, groupCollapsed, groupEnd, \
         info, log, profile, profileEnd, table, time, timeEnd, timeLog, timeStamp, trace, warn"
    );
    assert_eq!(
        refused("const t = fs.readFileSync('a');"),
        "1:14 `fs.readFileSync` is not supported: `fs` has listFiles, readFile, writeFile"
    );
}

#[test]
fn calls_of_members_that_built_in_objects_lack_are_refused_at_load_with_their_line() {
    for (source, expected) in [
        ("function main() {\n  return Math.nosuch(1);\n}", "2:15 `Math.nosuch` is not defined"),
        ("JSON.nosuch();", "1:6 `JSON.nosuch` is not defined"),
        ("Object.nosuch({});", "1:8 `Object.nosuch` is not defined"),
        ("new Array.nosuch();", "1:11 `Array.nosuch` is not defined"),
        ("Array.isarray([]);", "1:7 `Array.isarray` is not defined; did you mean `Array.isArray`?"),
        ("Array(3); new Map() instanceof Map; Map.nosuch();", "1:41 `Map.nosuch` is not defined"),
        ("Math['floor'](1); JSON.parse('1'); JSON.load('x')", "1:41 `JSON.load` is not defined"),
    ] {
        assert_eq!(refused(source), expected, "{source}");
    }
    for source in [
        "Math.floor(1); JSON.stringify({}); Object.keys({}); Array.from([]); Uint8Array.from([]); Promise.all([]);",
        "Array.call(null, 1); Object.hasOwnProperty('x'); Math.toString(); Array.length; Date.now();",
        "if (Math.clamp) Math.clamp(1); Math.half?.(1);",
        "if (typeof Object.every === 'function') Object.every({});",
        "Math.half = (x) => x / 2; Math.half(1);",
        "Object.assign(Math, { half: (x) => x / 2 }); Math.half(1);",
        "Object.defineProperty(Array, 'first', { value: (a) => a[0] }); Array.first([1]);",
        "const name = 'half'; Math[name] = () => 1; Math.half();",
        "Function.prototype.twice = function () {}; Array.twice();",
        "const Math = { nosuch() {} }; Math.nosuch();",
        "function f(JSON) { return JSON.nosuch(); }",
        "class Point { static nosuch() {} } Point.nosuch(); class List extends Array {} List.nosuch;",
        "Math.nosuch;",
    ] {
        assert_eq!(refused(source), "compiles", "{source}");
    }
}

#[test]
fn names_that_the_program_tests_or_defines_are_allowed() {
    for source in [
        "if (typeof sleep !== 'undefined') sleep(1);",
        "globalThis.sleep = () => 1; sleep(1);",
        "globalThis['sleep'] = () => 1; sleep(1);",
        "this.sleep = () => 1; sleep(1);",
        "Object.assign(globalThis, { sleep() {} }); sleep(1);",
        "if (console.print) console.print([]);",
        "console.print?.([]);",
        "console.print = () => {}; console.print([]);",
        "function f() { return arguments.length; } f();",
        "const console = { print() {} }; console.print();",
        "console.toString(); undefined; NaN; Infinity; args; env; globalThis.x;",
    ] {
        assert_eq!(refused(source), "compiles", "{source}");
    }
    let typescript = CompileOptions { typescript: true, ..CompileOptions::default() };
    let types = compile("let u: URL | Sleep | undefined; declare const sleep: any; u; sleep;", &typescript);
    assert!(types.is_ok(), "{types:?}");
    let plain = CompileOptions { plain_script: true, ..CompileOptions::default() };
    assert!(compile("sleep(1);", &plain).is_ok());
    assert!(compile("await 1;", &plain).is_err());
}

#[test]
fn arguments_of_wrong_types_are_type_errors() {
    for (call, message) in [
        ("CC([{ a: 1 }][0])", "The first argument of CC must be a string, not an object"),
        ("CC([[1]][0])", "The first argument of CC must be a string, not an array"),
        ("CC([5n][0])", "The first argument of CC must be a string, not a bigint"),
        ("CC([null][0])", "The first argument of CC must be a string, not null"),
        ("CC([() => 1][0])", "The first argument of CC must be a string, not a function"),
        ("CC('q', [5][0])", "The second argument of CC must be an object, not a number"),
        ("fs.readFile(5)", "The path of readFile must be a string, not a number"),
        ("fs.readFile()", "The path of readFile must be a string, not undefined"),
        ("fs.writeFile('p', { a: 1 })", "The text of writeFile must be a string, not an object"),
        ("fs.writeFile('p')", "The text of writeFile must be a string, not undefined"),
        ("fs.listFiles({ recursive: true })", "The path of listFiles must be a string, not an object"),
        ("fs.listFiles(5)", "The path of listFiles must be a string, not a number"),
        ("fs.listFiles('.', true)", "The second argument of listFiles must be an object, not a boolean"),
        ("fs.listFiles('.', { filter: 5 })", "The option filter of listFiles must be a string, not a number"),
        (
            "fs.listFiles('.', { recursive: 'yes' })",
            "The option recursive of listFiles must be a boolean, not a string",
        ),
    ] {
        let caught =
            format!("try {{ {call}; }} catch (e) {{ console.log(e instanceof TypeError, e.message); }}");
        assert_eq!(end(&caught), format!("true {message} null"), "{call}");
    }
    assert_eq!(end("function main() { return [CC(5), CC(true)]; }"), "[\"<5>\",\"<true>\"]");
    // JSON would make them null, and the question would have no limit.
    for (option, shown) in [
        ("timeout_ms: 0 / 0", "NaN"),
        ("retries: Object(NaN)", "NaN"),
        ("timeout_ms: Object(1 / 0)", "Infinity"),
        ("retries: 1 / 0", "Infinity"),
        ("default: -1 / 0", "-Infinity"),
    ] {
        let caught = format!(
            "try {{ CC('q', {{ {option} }}); }} catch (e) {{ console.log(e instanceof RangeError, e.message); }}"
        );
        let name = option.split(':').next().unwrap_or_default();
        let message = format!("true The option {name} of CC must be a finite number, not {shown} null");
        assert_eq!(end(&caught), message, "{option}");
    }
}

#[test]
fn options_of_a_task_that_would_be_lost_are_errors() {
    for (call, message) in [
        (
            "CC('q', { timeout_ms: new Date(NaN) })",
            "The option timeout_ms of CC must be a number, not an object",
        ),
        ("CC('q', { retries: Symbol() })", "The option retries of CC must be a number, not a symbol"),
        (
            "CC('q', { timeout_ms: Object(Symbol()) })",
            "The option timeout_ms of CC must be a number, not a symbol",
        ),
        (
            "const f = () => 1; CC('q', { timeout_ms: f })",
            "The option timeout_ms of CC must be a number, not a function",
        ),
        (
            "const f = () => 1; CC('q', { default: f })",
            "The option default of CC must be a value that JSON can hold, not a function",
        ),
        ("CC('q', { schema: Symbol() })", "The option schema of CC must be an object, not a symbol"),
        (
            "const o = { get timeout_ms() { return 1; } }; CC('q', o)",
            "The option timeout_ms of CC is an accessor or not enumerable: it must be a plain property",
        ),
        (
            "CC('q', Object.defineProperty({}, 'retries', { value: 1 }))",
            "The option retries of CC is an accessor or not enumerable: it must be a plain property",
        ),
        (
            "CC('q', Object.create({ default: 1 }))",
            "The option default of CC is inherited: it must be the object's own property",
        ),
    ] {
        let caught =
            format!("try {{ {call}; }} catch (e) {{ console.log(e instanceof TypeError, e.message); }}");
        assert_eq!(end(&caught), format!("true {message} null"), "{call}");
    }
    for call in [
        "CC('q', Object.create(null))",
        "CC('q', new (class { timeout_ms = Object(5); default = null; retries = undefined; }))",
        "CC('q', { timeout_ms: undefined, default: [NaN] })",
    ] {
        assert_eq!(end(&format!("function main() {{ return {call}; }}")), "\"<q>\"", "{call}");
    }
}

#[test]
fn constant_options_of_a_task_are_checked_when_the_program_is_loaded() {
    for (options, why) in [
        (
            "{ timeout: 5 }",
            "CC(…, { timeout })` is not supported: the options of `CC` are schema, timeout_ms, default and retries",
        ),
        ("{ 'retry': 5, default: 1 }", "CC(…, { retry })` is not supported"),
        ("{ timeout_ms: '5' }", "it is a whole number of milliseconds"),
        ("{ timeout_ms: -5 }", "it is a whole number of milliseconds"),
        ("{ retries: 1.5 }", "it is a whole number"),
        ("{ schema: 'string' }", "a schema is an object"),
        ("{ timeout_ms: NaN }", "it is a whole number of milliseconds"),
        ("{ retries: -Infinity }", "it is a whole number"),
        ("{ timeout_ms: () => 1 }", "it is a whole number of milliseconds"),
        ("{ get timeout_ms() { return 1; } }", "an option is a plain property, no accessor"),
        ("{ default: NaN }", "it is a value that JSON can hold"),
        ("{ schema: { type: 'nope' } }", "a type is string, number, integer, boolean, object, array or null"),
        ("{ schema: { type: ['string', 'text'] } }", "a type is string, number"),
        ("{ schema: { properties: { a: { items: { type: 5 } } } } }", "a type is string, number"),
    ] {
        let source = format!("function main() {{\n  return CC('q', {options});\n}}");
        let errors = compile(&source, &CompileOptions::default()).expect_err(options);
        assert_eq!((errors.0.len(), errors.0[0].line), (1, 2), "{errors}");
        assert!(errors.0[0].message.contains(why), "{errors}");
    }
    for (call, why) in [
        ("CC()", "`CC()` is not supported: it needs a prompt"),
        ("CC(5n)", "the prompt is a string"),
        ("CC(null)", "the prompt is a string"),
        ("CC({ prompt: 'q' })", "the prompt is a string"),
        ("CC('a', 5)", "its options are an object"),
        ("CC('a', null)", "its options are an object"),
        ("CC('a', ['x'])", "its options are an object"),
    ] {
        let source = format!("function main() {{\n  return {call};\n}}");
        let errors = compile(&source, &CompileOptions::default()).expect_err(call);
        assert_eq!((errors.0.len(), errors.0[0].line), (1, 2), "{errors}");
        assert!(errors.0[0].message.contains(why), "{errors}");
    }
    for call in [
        "CC(5)",
        "CC(true, undefined)",
        "CC(`${args}`, args[0])",
        "CC('q', { timeout_ms: -0, schema: { type: ['null', 'integer'], properties: { type: { type: 'string' } } } })",
        "CC('q', { timeout_ms: 1e3, retries: 0, default: undefined, schema: null })",
        "CC('q', { timeout_ms: args.length, schema: { type: 'string' } })",
        "CC('q', { other: undefined, ...JSON.parse('{}') })",
        "CC('q', { [args[0]]: 1 })",
        "CC(...args, { other: 1 })",
        "((CC) => CC('q', { other: 1 }))(String)",
    ] {
        assert!(
            compile(&format!("function main() {{ {call}; }}"), &CompileOptions::default()).is_ok(),
            "{call}"
        );
    }
}
