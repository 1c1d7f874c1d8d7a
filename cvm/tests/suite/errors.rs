//! Messages of compile errors and of uncaught exceptions: the complete texts, as snapshots.

use std::fmt::Write as _;
use vm_system_cvm::{
    CompileOptions, PauseAnswer, RunOutcome, StateConfig, VmLimits, VmState, compile, resume_pause, run,
};

/// Each source with its errors.
fn refusals(sources: &[&str], typescript: bool) -> String {
    let mut shown = String::new();
    let filename = if typescript { "program.ts" } else { "program.js" }.to_owned();
    let options = CompileOptions { filename, typescript, plain_script: false, items: false };
    for source in sources {
        let message = match compile(source, &options) {
            Ok(_) => "compiles".to_owned(),
            Err(errors) => errors.to_string(),
        };
        let _ = writeln!(shown, "=== {source}\n{message}\n");
    }
    shown
}

/// Each program with its console lines and its end; pauses are answered.
fn ends(sources: &[&str]) -> String {
    let mut shown = String::new();
    for source in sources {
        let _ = writeln!(shown, "=== {source}");
        let options = CompileOptions { plain_script: true, ..CompileOptions::default() };
        let program = compile(source, &options).expect("these programs compile");
        let limits = VmLimits { steps: 100_000, stack_depth: 200, ..VmLimits::default() };
        let mut state = VmState::new(&program, &StateConfig { limits, ..StateConfig::default() });
        let end = loop {
            match run(&program, &mut state, u64::MAX) {
                RunOutcome::Pause { prompt, .. } => {
                    let answer = PauseAnswer::Error(format!("no answer to {prompt}"));
                    assert!(resume_pause(&program, &mut state, &answer));
                }
                RunOutcome::Throw(text) => break text,
                other => break format!("{other:?}"),
            }
        };
        for line in state.take_output() {
            let _ = writeln!(shown, "{}", line.text);
        }
        let _ = writeln!(shown, "{end}\n");
    }
    shown
}

#[test]
fn parse_errors() {
    insta::assert_snapshot!(refusals(
        &[
            "let a = ;",
            "function f( {\n  return 1;\n}",
            "const list = [1, 2\n\n",
            "if (true) {\n\tlet größe = '😀' +* 2;\n}",
            "'never closed",
            "`never ${1 + 1",
            "/(/",
            "/a/gg",
            "/[b-a]/u",
            "const x;",
            "for (const a of 1, 2) {}",
            "class { }",
            "a => { } => b",
            "#!/usr/bin/env cvm\nlet = 1;",
            "}",
            "x = {a: 1, b 2}",
            "1.toString()",
            "let s = \"\\u{110000}\";",
        ],
        false
    ));
}

#[test]
fn early_errors() {
    insta::assert_snapshot!(refusals(
        &[
            "let x = 1;\nlet x = 2;",
            "const a = 1; { var a; }",
            "break;",
            "outer: while (true) { continue inner; }",
            "return 1;",
            "function f(a, a) {}",
            "class A { constructor() {} constructor() {} }",
            "class A { #x; #x; }",
            "class A { m() { this.#y; } }",
            "class A { constructor() { super(); } }",
            "new.target",
            "delete x;",
            "010",
            "'\\08'",
            "arguments = 1;",
            "eval = 1;",
            "a?.b = 1;",
            "function f() { await 1; }",
            "await 1;",
            "for await (const x of []) {}",
            "function* g() { function yield() {} }",
            "({ a = 1 });",
            "let let = 1;",
            "label: label: ;",
            "if (1) function f() {}",
            "try {} catch (e) { let e; }",
            "switch (1) { case 1: let a; case 2: let a; }",
            "({ __proto__: null, __proto__: null });",
            "async function f() { function g(x = await 1) {} }",
        ],
        false
    ));
}

#[test]
fn unsupported_features() {
    insta::assert_snapshot!(refusals(
        &[
            "import fs from 'fs';",
            "import('x');",
            "import.meta.url;",
            "with (a) { b; }",
            "eval('1 + 1');",
            "(0, eval)('1');",
            "new Function('return 1');",
            "@decorated class A {}",
            "class A { @decorated m() {} }",
            "class A { accessor x = 1; }",
            "new SharedArrayBuffer(8);",
            "new Intl.DurationFormat('de');",
            "Temporal.Now.instant();",
            "setTimeout(() => {}, 1);",
            "require('fs');",
            "process.exit(1);",
            "const emoji = /^\\p{RGI_Emoji}$/v;",
            "function several() { eval('1'); with (a) {} }\nimport('y'); setTimeout(f);",
        ],
        false
    ));
}

#[test]
fn typescript_that_has_no_meaning_here() {
    insta::assert_snapshot!(refusals(
        &[
            "namespace A { export const x = 1; }",
            "module A { let x; }",
            "enum A { x } enum A { y = 2 }",
            "class B {}\nclass A extends B { constructor(private x: number) { (() => super())(); } }",
            "import x = require('x');",
            "export = 1;",
            "let x: = 1;",
            "type T = { a: number;",
            "abstract class A { abstract m(): void { } }",
            "function f(this: A) { return this; }\ndeclare namespace N { const y: number; }\ndeclare module 'x' { }",
        ],
        true
    ));
}

#[test]
fn sizes() {
    let deep = format!("{}1{}", "(".repeat(401), ")".repeat(401));
    let long = format!("let x = {}1;", "1 + ".repeat(1201));
    let large = " ".repeat((64 << 20) + 1);
    let mut shown = String::new();
    for (name, source) in [("deep", deep), ("long", long), ("large", large)] {
        let errors = compile(&source, &CompileOptions::default()).map(|_| ()).unwrap_err();
        for error in &errors.0 {
            let (line, column, length) = (error.line, error.column, error.snippet.chars().count());
            let _ = writeln!(shown, "{name}: {line}:{column}: {} (a line of {length} shown)", error.message);
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn stacks_of_exceptions() {
    insta::assert_snapshot!(ends(&[
        "function inner(x) {\n  return x.missing.deep;\n}\nfunction outer() {\n  return inner({});\n}\nouter();",
        "throw new RangeError('out of it');",
        "throw { code: 7 };",
        "throw 'text';",
        "[1, 2].map((x) => {\n  if (x === 2) throw new Error('in a callback');\n});",
        "class A {\n  get g() { throw new TypeError('in a getter'); }\n  static m(a) { return a.g; }\n}\nA.m(new A());",
        "class Base { constructor() { this.start(); } }\nclass Derived extends Base { start() { undefinedName; } }\nnew Derived();",
        "function* numbers() {\n  yield 1;\n  throw new Error('in a generator');\n}\nfor (const n of numbers()) console.log(n);",
        "const wait = async () => { await null; null.x; };\nasync function main() { await wait(); }",
        "Promise.reject(new Error('forgotten'));",
        "const ask = () => CC('a question');\nask();",
        "const a = b;\nlet b = 1;",
        "const k = 1;\nk = 2;",
        "undefined();",
        "const o = { m: 1 };\no.m();",
        "new (() => {})();",
        "const [a] = null;",
        "const { a } = undefined;",
        "1 + 1n;",
        "JSON.parse('{\"a\": [1, }');",
        "throw new Error('outer', { cause: new TypeError('inner') });",
        "throw new AggregateError([new Error('one'), 2], 'several');",
        "class MyError extends Error { name = 'MyError'; }\nthrow new MyError('own');",
        "try { null.x; } catch (e) { console.log(e.stack); }",
        "function f() { return f(); }\ntry { f(); } finally { console.log('reached'); }",
        "while (true);",
        "const text = 'ä😀'; text.nope.x;",
    ]));
}
