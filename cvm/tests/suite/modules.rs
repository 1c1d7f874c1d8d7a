//! Programs of several files: imports, exports, cycles, JSON, namespaces, errors with the file's name.

use std::fmt::Write as _;
use vm_system_cvm::{
    CompileOptions, CompiledProgram, PauseAnswer, RunOutcome, SourceFile, StateConfig, VmState,
    compile_files, frames, imports, resume_pause, run, set_variable,
};

/// Files written as one text: a line `== NAME` begins each.
fn files(text: &str) -> Vec<SourceFile> {
    let text = format!("\n{}", text.trim_start());
    let parts = text.split("\n== ").filter(|part| !part.is_empty());
    let file = |part: &str| {
        let (name, text) = part.split_once('\n').expect("a name");
        SourceFile { name: name.trim().to_owned(), text: text.to_owned() }
    };
    parts.map(file).collect()
}

fn compiled(text: &str) -> Result<CompiledProgram, String> {
    let mut files = files(text);
    let entry = files.remove(0);
    let typescript = entry.name.rsplit('.').next() == Some("ts");
    let options = CompileOptions { filename: entry.name, typescript, plain_script: false, items: false };
    let program = compile_files(&entry.text, &files, &options).map_err(|errors| errors.to_string())?;
    // The stored program is the one that runs.
    let stored = CompiledProgram::decode(&program.encode()).expect("stored bytes");
    assert_eq!(stored.encode(), program.encode());
    Ok(stored)
}

fn program(text: &str) -> CompiledProgram {
    compiled(text).unwrap_or_else(|why| panic!("{text}\n{why}"))
}

/// Output and result; tasks are answered with `ok`.
fn outcome(text: &str) -> String {
    let program = program(text);
    let mut state = VmState::new(&program, &StateConfig::default());
    let mut out = String::new();
    let mut outcome = run(&program, &mut state, u64::MAX);
    loop {
        for line in state.take_output() {
            writeln!(out, "{}", line.text).expect("a string");
        }
        match outcome {
            RunOutcome::Done { json, .. } => return format!("{out}= {json}"),
            RunOutcome::Pause { .. } => {
                resume_pause(&program, &mut state, &PauseAnswer::Text("ok".to_owned()));
                outcome = run(&program, &mut state, u64::MAX);
            }
            RunOutcome::Throw(message) => return format!("{out}! {message}"),
            other => panic!("{other:?}"),
        }
    }
}

fn errors(text: &str) -> String {
    compiled(text).map(|_| ()).expect_err("compiles")
}

#[test]
fn names_defaults_and_namespaces_are_imported() {
    let text = "
== main.js
import first, { two, three as drei, default as again } from './lib/all.js';
import * as all from './lib/all.js';
import './lib/effect.js';
export function main() {
  return [first(), two, drei(), again === first, Object.keys(all), all.two, typeof globalThis.main];
}
== lib/all.js
export default function () { return 'default ' + two; }
export const two = 2;
export function three() { return 'three'; }
== lib/effect.js
console.log('effect');
";
    assert_eq!(
        outcome(text),
        r#"effect
= ["default 2",2,"three",true,["default","three","two"],2,"undefined"]"#
    );
}

#[test]
fn imports_are_the_exported_variables() {
    let text = "
== main.js
import { count, add, Point, list as [] } from './count.js';
== count.js
";
    assert!(errors(text).contains("main.js:1:"), "a syntax error");
    let text = "
== main.js
import { count, add, Point, kind } from './count.js';
import * as all from './count.js';
add(); add();
const seen = [count, all.count, new Point().x, kind];
let refused = '';
try { count = 5 } catch (error) { refused += error.name + ': ' + error.message + '; ' }
try { count++ } catch (error) { refused += error.name + '; ' }
try { all.count = 5 } catch (error) { refused += error.name + '; ' }
try { all.other = 5 } catch (error) { refused += error.name + '; ' }
try { delete all.count } catch (error) { refused += error.name }
export const main = () => [seen, refused, Object.prototype.toString.call(all), Object.isFrozen(all), Object.getPrototypeOf(all), JSON.stringify(all)];
== count.js
export let count = 0;
export var kind = 'var';
export function add() { count += 1; }
export class Point { x = 7 }
";
    assert_eq!(
        outcome(text),
        r#"= [[2,2,7,"var"],"TypeError: Assignment to constant variable 'count'.; TypeError; TypeError; TypeError; TypeError","[object Module]",true,null,"{\"count\":2,\"kind\":\"var\"}"]"#
    );
}

#[test]
fn exports_of_other_modules_are_passed_on() {
    let text = "
== main.js
import { a, b, c, ns, fn, d } from './index.js';
import * as index from './index';
export default function main() { return [a, b, c, ns.default, ns.a, fn(), d, Object.keys(index)]; }
== index.js
export * from './a.js';
export { b as c, b, default as d } from './b.js';
export * as ns from './a.js';
import { fn } from './b.js';
export { fn };
== a.js
export const a = 'a';
export default 'default of a';
== b.js
import { a } from './a.js';
export const b = 'b' + a;
export const fn = function () { return fn.name };
export default class { static me = this.name }
";
    assert_eq!(
        outcome(text).replace("class default", "class"),
        r#"= ["a","ba","ba","default of a","a","fn",null,["a","b","c","d","fn","ns"]]"#
    );
}

#[test]
fn modules_run_once_in_the_order_of_imports_and_cycles_see_functions() {
    let text = "
== main.js
import './one.js';
import { isOdd } from './odd.js';
import { late } from './one.js';
console.log('main', isOdd(7), late());
== one.js
import './two.js';
console.log('one');
export const late = () => value;
let value = 'late';
== two.js
import { early, late } from './one.js';
console.log('two', typeof late === 'never');
== odd.js
import { isEven } from './even.js';
export function isOdd(n) { return n > 0 && isEven(n - 1); }
== even.js
import { isOdd } from './odd.js';
console.log('even', isOdd(0));
export function isEven(n) { return n === 0 || isOdd(n - 1); }
";
    assert!(errors(text).contains("`./one.js` has no export `early`"));
    let text = text.replace("early, ", "");
    let shown = outcome(&text);
    assert!(shown.starts_with("! ReferenceError: Cannot access 'late' before initialization"), "{shown}");
    assert!(shown.contains("at two.js:2:27"), "{shown}");
    assert_eq!(
        outcome(&text.replace(", typeof late === 'never'", "")),
        "two\none\neven false\nmain true late\n= null"
    );
}

#[test]
fn json_files_have_a_default_export() {
    let text = r#"
== main.ts
import config from './config.json' with { type: 'json' };
import same from './config';
export const main = () => [config, config === same, Object.getPrototypeOf(config) === Object.prototype];
== config.json
{"name": "x", "__proto__": [1, 2], "deep": {"a": null}}
"#;
    assert_eq!(outcome(text), r#"= [{"name":"x","__proto__":[1,2],"deep":{"a":null}},true,true]"#);
    let marked = text.replace("{\"name\"", "\u{feff}{\"name\"");
    assert_eq!(outcome(&marked), outcome(text), "a byte order mark");
    let wrong = errors(&text.replace("null}", "nul}"));
    assert!(wrong.starts_with("config.json:1:53: Unexpected token"), "{wrong}");
    let named = errors(&text.replace("import same", "import { name as same }"));
    assert!(named.contains("has no export `name`; a JSON file has a default export only"), "{named}");
    let attribute =
        errors("== main.js\nimport { a } from './a.js' with { type: 'json' };\n== a.js\nexport const a = 1;");
    assert!(attribute.contains("`a.js` is not JSON"), "{attribute}");
    let kind = errors("== main.js\nimport a from './a.json' with { type: 'text' };\n== a.json\n1");
    assert!(kind.contains("`with { type: 'text' }` is not supported"), "{kind}");
}

#[test]
fn types_do_not_exist_at_run_time() {
    let text = "
== main.ts
import type { Only } from './nowhere';
import { Shape, area, type Other } from './shapes.js';
import { Kind } from './kinds';
export { Shape } from './shapes.js';
const square: Shape = { side: 3 };
function main(): number[] { const o: Other = 1; return [area(square), Kind.B, o]; }
== shapes.ts
export interface Shape { side: number }
export type Other = number;
export const area = (shape: Shape): number => shape.side ** 2;
== kinds.ts
export enum Kind { A, B }
";
    assert_eq!(outcome(text), "= [9,1,1]");
    let value = errors(&text.replace("Kind.B", "Shape"));
    assert!(value.contains("`Shape` is a type, and used as a value"), "{value}");
}

#[test]
fn namespaces_are_shown_with_their_values() {
    let text = "
== main.js
import * as all from './all.js';
import * as empty from './empty.js';
console.log(all, empty, [all.n]);
({ tag: console.log({ get n() { return 1; } }) });
export const main = () => ({ all });
== all.js
import * as self from './all.js';
console.log(self);
export let n = 1;
export const text = 'x';
export function f() { n += 1; }
f();
== empty.js
";
    assert_eq!(
        outcome(text),
        "[Module: null prototype] {
  f: [Function: f],
  n: <uninitialized>,
  text: <uninitialized>
}
[Module: null prototype] { f: [Function: f], n: 2, text: 'x' } [Module: null prototype] {} [ 2 ]
{ n: [Getter] }
= {\"all\":{\"n\":2,\"text\":\"x\"}}"
    );
}

#[test]
fn a_pause_in_a_module_keeps_its_variables() {
    let text = "
== main.js
import { approve, log } from './lib/approve.js';
const first = approve('one');
function main() { return [first, approve('two'), log]; }
== lib/approve.js
export const log = [];
let count = 0;
export function approve(what) {
  count += 1;
  const answer = CC(what);
  log.push(`${count} ${what}`);
  return answer;
}
";
    assert_eq!(outcome(text), r#"= ["ok","ok",["1 one","2 two"]]"#);
    let program = program(text);
    let mut state = VmState::new(&program, &StateConfig::default());
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
    let (list, _) = frames(&program, &mut state, 10);
    let shown: Vec<String> = list
        .iter()
        .map(|frame| {
            let variables: Vec<String> = frame.variables.iter().map(|(n, v)| format!("{n}={v}")).collect();
            let (file, line) = (frame.file.as_deref().unwrap_or("-"), frame.line);
            format!("{} {file}:{line} {} | {}", frame.function, frame.source_line.trim(), variables.join(" "))
        })
        .collect();
    assert_eq!(shown[0], "approve lib/approve.js:5 const answer = CC(what); | what='one'");
    assert!(shown[1].starts_with(" main.js:2 const first = approve('one');"), "{}", shown[1]);
    assert!(shown[1].contains("lib/approve.js:count=1 "), "{}", shown[1]);
    assert!(set_variable(&program, &mut state, 1, "lib/approve.js:count", "41"));
    resume_pause(&program, &mut state, &PauseAnswer::Text("yes".to_owned()));
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
    resume_pause(&program, &mut state, &PauseAnswer::Text("no".to_owned()));
    let RunOutcome::Done { json, .. } = run(&program, &mut state, u64::MAX) else { panic!("not done") };
    assert_eq!(json, r#"["yes","no",["41 one","42 two"]]"#);
}

#[test]
fn the_top_level_of_modules_may_await_and_call_main() {
    let text = "
== main.js
import { value } from './slow.js';
async function main() { return await value; }
await main();
== slow.js
export const value = await Promise.resolve('awaited');
function main() { throw new Error('not this one'); }
void main;
";
    assert_eq!(outcome(text), r#"= "awaited""#);
    let text = "
== main.js
export { main } from './other.js';
import { main } from './other.js';
== other.js
let calls = 0;
export function main() { calls += 1; return calls; }
";
    assert_eq!(outcome(text), "= 1");
}

#[test]
fn modules_have_variables_of_their_own() {
    let text = "
== main.js
import { get } from './other.js';
var shared = 'main';
let local = 1;
for (let i = 0; i < 3; i++) { local += i; }
function helper() { return 'helper of main'; }
export function main() {
  return [shared, local, helper(), get(), typeof globalThis.shared, this === undefined, (() => this)() === undefined];
}
console.log(this);
== other.js
var shared = 'other';
let local = 10;
var unset;
for (let i = 0; i < 3; i++) { local += i; }
function helper() { return 'helper of other'; }
console.log(this, unset);
export const get = () => [shared, helper(), unset];
";
    assert_eq!(
        outcome(text),
        r#"undefined undefined
undefined
= ["main",4,"helper of main",["other","helper of other",null],"undefined",true,true]"#
    );
}

#[test]
fn errors_name_the_file() {
    for (text, expected) in [
        ("== main.js\nimport './a.js';\n== a.js\nlet x = ;", "a.js:1:9: Unexpected token"),
        ("== main.js\nimport './a.js';\n== a.js\n\nnope();", "a.js:2:1: `nope` is not defined"),
        ("== main.js\nimport './b.js';\n== a.js\n", "main.js:1:8: there is no file for `import` of `./b.js`"),
        (
            "== main.js\nimport 'lodash';\n== a.js\n",
            "main.js:1:8: `import` of `lodash` is not supported: programs import files (`./lib.js`), not packages",
        ),
        (
            "== main.js\nimport { tax } from './a.js';\n== a.js\nexport const Tax = 1;",
            "main.js:1:10: `./a.js` has no export `tax`; did you mean `Tax`?",
        ),
        (
            "== main.js\nimport './a.cjs';\n== a.cjs\nmodule.exports = 1;",
            "main.js:1:8: `a.cjs` is a CommonJS file",
        ),
        (
            "== main.js\nexport * from './a.js'; export * from './b.js'; import { x } from './main.js';\n== a.js\nexport const x = 1;\n== b.js\nexport const x = 2;",
            "main.js:1:58: `x` is ambiguous",
        ),
        ("== main.js\nexport { nope };\n== a.js\n", "nope"),
        (
            "== main.js\nimport './a.js'; const x = import('./a.js');\n== a.js\n",
            "main.js:1:28: `import()` is not supported",
        ),
        ("== main.js\nimport './a.js'; import.meta.url;\n== a.js\n", "`import.meta` is not supported"),
        ("== main.js\nimport x from './a.js';\nlet y = x +;\n== a.js\n", "main.js:2:12: Unexpected token"),
        ("== main.js\nawait 1; let y = ;\n== a.js\n", "main.js:1:18: Unexpected token"),
        (
            "== main.js\nexport * from './a.js';\nimport { y } from './main.js';\n== a.js\nexport * from './main.js';",
            "has no export `y`",
        ),
    ] {
        let found = errors(text);
        assert!(found.contains(expected), "{text}\n{found}");
    }
    let thrown = outcome(
        "== main.js\nimport { f } from './lib/a.js';\nf();\n== lib/a.js\nexport function f() {\n  throw new Error('x');\n}",
    );
    assert!(thrown.contains("at f (lib/a.js:2:9)\n    at main.js:2:1"), "{thrown}");
    // A test in one file allows the name in all.
    let text = "== main.js\nimport './a.js';\nglobalThis.later = 1;\n== a.js\nexport const f = () => later;";
    assert_eq!(outcome(text), "= null");
}

#[test]
fn the_imports_of_a_file_are_listed() {
    let list = |name: &str, text: &str| {
        let file = SourceFile { name: name.to_owned(), text: text.to_owned() };
        imports(&file).into_iter().map(|one| format!("{}:{}", one.specifier, one.line)).collect::<Vec<_>>()
    };
    assert_eq!(
        list("a.js", "import './x';\nexport * from './y.js';\nexport { z } from 'z';"),
        ["./x:1", "./y.js:2", "z:3"]
    );
    assert_eq!(
        list("a.ts", "import type { T } from './t'; import { U } from './u'; let u: U;"),
        Vec::<String>::new()
    );
    assert_eq!(list("stdin", "import { U } from './u'; let u: U = U;"), ["./u:1"]);
    assert_eq!(list("a.json", "{}"), Vec::<String>::new());
    assert_eq!(list("a.js", "import './x'; let = = 1"), Vec::<String>::new());
}

/// Cost grows with the files, not with their square.
#[test]
fn many_files_and_long_chains_compile() {
    let mut text = String::from("== main.js\nimport { v0 } from './m0.js';\nexport const main = () => v0;\n");
    for n in 0..1000 {
        writeln!(text, "== m{n}.js\nimport {{ v{next} }} from './m{next}.js';\nexport * from './m{next}.js';\nexport const v{n} = v{next} + 1;", next = n + 1).expect("a string");
    }
    text.push_str("== m1000.js\nexport const v1000 = 0;\n");
    assert_eq!(outcome(&text), "= 1000");
    // Each import of a script is an error of the parser, which is tried first.
    let mut text = String::from("== main.js\n");
    for n in 0..30_000 {
        write!(text, "import * as n{n} from './a.js';").expect("a string");
    }
    text.push_str("export const main = () => n29999.x;\n== a.js\nexport const x = 1;\n");
    assert_eq!(outcome(&text), "= 1");
}
