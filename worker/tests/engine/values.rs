//! Results: type names, previews, and JSON only if it represents the value completely.

use crate::harness::{Engine, json_of, value_of};
use vm_system_protocol::model::{ExecutionKind, JsType};
use vm_system_protocol::worker::SourceFormat;

#[test]
fn every_type_has_its_name() {
    let mut engine = Engine::new();
    for (source, kind) in [
        ("1", JsType::Number),
        ("'a'", JsType::String),
        ("true", JsType::Boolean),
        ("({})", JsType::Object),
        ("[]", JsType::Array),
        ("() => 1", JsType::Function),
        ("(class {})", JsType::Function),
        ("undefined", JsType::Undefined),
        ("null", JsType::Null),
        ("1n", JsType::Bigint),
        ("Symbol()", JsType::Symbol),
        ("new Date(0)", JsType::Date),
        ("new Map()", JsType::Map),
        ("new Set()", JsType::Set),
        ("Promise.resolve()", JsType::Promise),
        ("new TypeError('x')", JsType::Error),
        ("/x/", JsType::Object),
        ("new Proxy([], {})", JsType::Object),
        ("new Proxy(() => 1, {})", JsType::Function),
    ] {
        let done = engine.repl(source);
        assert_eq!(value_of(&done).expect("a value").0, kind, "{source}");
    }
}

#[test]
fn json_is_complete_or_absent() {
    let mut engine = Engine::new();
    for (source, json) in [
        ("1.5", Some("1.5")),
        ("1e21", Some("1e+21")),
        ("'a\"b\\n'", Some("\"a\\\"b\\n\"")),
        ("[1, [2, null], true]", Some("[1,[2,null],true]")),
        ("({ a: { b: [] }, c: 'x' })", Some("{\"a\":{\"b\":[]},\"c\":\"x\"}")),
        ("Object.create(null)", Some("{}")),
        ("undefined", None),
        ("[undefined]", None),
        ("[, 1]", None),
        ("NaN", None),
        ("-0", None),
        ("1n", None),
        ("({ f() {} })", None),
        ("({ get a() { return 1 } })", None),
        ("({ [Symbol.iterator]: 1 })", None),
        ("new Date(0)", None),
        ("new (class Point { x = 1 })()", None),
        ("({ toJSON() { return 1 } })", None),
        ("const c = {}; c.c = c; c", None),
        ("Object.assign([1], { extra: 1 })", None),
        ("Object.defineProperty({}, 'hidden', { value: 1 })", None),
        ("'\\ud83d'", None),
        ("let deep = 1; for (let i = 0; i < 100; i++) deep = [deep]; deep", None),
        ("const same = { s: 1 }; [same, same]", Some("[{\"s\":1},{\"s\":1}]")),
    ] {
        let done = engine.repl(source);
        assert_eq!(value_of(&done).expect("a value").2.as_deref(), json, "{source}");
    }
}

#[test]
fn a_file_ends_with_a_value_event_too() {
    let mut engine = Engine::new();
    assert_eq!(json_of(&engine.script("a.js", "({ total: 3 })")), "{\"total\":3}");
    let done = engine.run(ExecutionKind::RunFile, "a.json", SourceFormat::Json, "{\"n\": 1}");
    assert_eq!(json_of(&done), "{\"n\":1}");
    let done = engine.run(ExecutionKind::RunFile, "a.mjs", SourceFormat::Module, "1");
    assert_eq!(value_of(&done).map(|value| (value.0, value.2)), Some((JsType::Undefined, None)));
    assert!(value_of(&engine.script("a.js", "process.exitCode = 3; 1")).is_none());
}

#[test]
fn arguments_and_environment_belong_to_one_run() {
    let mut engine = Engine::new();
    engine.args = "{\"n\":3}".to_owned();
    engine.env = vec![("HOME".to_owned(), "/w".to_owned())];
    let done = engine.script(
        "a.js",
        "[args.n, __ARGS__ === args, process.env.HOME, process.argv, process.env.OWN = 5, process.env.OWN, delete process.env.OWN]",
    );
    assert_eq!(json_of(&done), "[3,true,\"/w\",[\"vm-system\",\"a.js\"],5,\"5\",true]");
    engine.args = "{}".to_owned();
    engine.env.clear();
    assert_eq!(
        engine.value("[typeof args, typeof __ARGS__, process.env.HOME]"),
        "[ 'undefined', 'undefined', undefined ]"
    );
    engine.repl("process.env.LEFT = 'x'");
    assert_eq!(engine.value("process.env"), "{}");
    assert_eq!(engine.value("var args = 5; args"), "5");
    engine.args = "{\"n\":4}".to_owned();
    assert_eq!(json_of(&engine.script("b.js", "args.n")), "4");
    engine.args = "{}".to_owned();
    assert_eq!(engine.value("args"), "5");
}

#[test]
fn arguments_of_an_input_do_not_depend_on_earlier_inputs() {
    let mut engine = Engine::new();
    let usual = "[ 'vm-system', 'repl' ]";
    assert_eq!(engine.value("process.argv"), usual);
    engine.repl("process.argv.push('left'); process.argv = [1]");
    assert_eq!(engine.value("process.argv"), usual);
    engine.repl("var kept = process.argv");
    engine.repl("kept.push('later')");
    assert_eq!(engine.value("process.argv"), usual);
    engine.argv = vec!["given".to_owned()];
    assert_eq!(engine.value("process.argv"), "[ 'vm-system', 'repl', 'given' ]");
    engine.argv.clear();
    assert_eq!(engine.value("process.argv"), usual);
    engine.script("a.js", "1");
    assert_eq!(engine.value("process.argv"), usual);
    engine.args = "{\"n\":5}".to_owned();
    assert_eq!(engine.value("args.n"), "5");
}

#[test]
fn random_numbers_differ_between_sessions_and_repeat_for_a_seed() {
    let numbers = |seed| {
        Engine::start(crate::harness::limits(|_| {}), [seed; 32], true)
            .value("[Math.random(), Math.random()]")
    };
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
}

#[test]
fn platform_globals_work() {
    let mut engine = Engine::new();
    for (source, shown) in [
        ("new TextDecoder().decode(new TextEncoder().encode('hé€😀'))", "'hé€😀'"),
        ("Buffer.from('hé').toString('hex') + Buffer.from('aGk=', 'base64')", "'68c3a9hi'"),
        ("Buffer.concat([Buffer.from('a'), Buffer.from('b')]).toString()", "'ab'"),
        ("[atob('aGk='), btoa('hi')]", "[ 'hi', 'aGk=' ]"),
        ("structuredClone(new Map([[1, { d: new Date(5), e: [1n] }]])).get(1).e", "[ 1n ]"),
        (
            "const loop = { l: [] }; loop.l.push(loop); const copy = structuredClone(loop); copy.l[0] === copy && copy !== loop",
            "true",
        ),
        ("typeof performance.now() + typeof process.hrtime.bigint()", "'numberbigint'"),
        ("Buffer.from([1, 2, 3, 4]).readUInt16BE(1)", "515"),
        ("Buffer.from('abcabc').indexOf('ca')", "2"),
        ("process.platform", "'linux'"),
    ] {
        assert_eq!(engine.value(source), shown, "{source}");
    }
}

#[test]
fn a_new_session_has_no_globals_of_the_warm_up() {
    let mut engine = Engine::new();
    assert_eq!(
        engine.value("[typeof warm, typeof Warm, typeof native, typeof captured]"),
        "[ 'undefined', 'undefined', 'undefined', 'undefined' ]"
    );
    assert_eq!(engine.value("Object.keys(globalThis)"), "[]");
    assert_eq!(engine.value("Object.keys(require.cache)"), "[]");
}

#[test]
fn the_text_of_a_date_names_the_zone_as_intl_does() {
    let mut engine = Engine::new();
    let name = "new Intl.DateTimeFormat('en-US', { timeZoneName: 'long' }).formatToParts(time).find((part) => part.type === 'timeZoneName').value";
    let code = format!(
        "[0, 1e12, 1720000000000].every((time) => {{ const date = new Date(time), name = ` (${{{name}}})`;
             return String(date).endsWith(name) && date.toTimeString().endsWith(name) && /GMT[+-]\\d{{4}} \\(.+\\)$/.test(`${{date}}`)
                 && +new Date(String(date)) === time && !date.toDateString().includes('('); }}) && `${{new Date(NaN)}}` === 'Invalid Date'"
    );
    assert_eq!(engine.value(&code), "true");
}

#[test]
fn a_weak_reference_keeps_its_target_to_the_end_of_the_job_and_no_longer() {
    let mut engine = Engine::new();
    let code = "let ref = null; (() => { ref = new WeakRef({ a: 1 }) })(); const now = ref.deref()?.a;
                let later; setTimeout(() => { later = ref.deref() }, 1); await new Promise((done) => setTimeout(done, 5)); [now, later]";
    assert_eq!(engine.value(code), "[ 1, undefined ]");
    let code = "class Own extends WeakRef {}; const target = {}; const own = new Own(target);
                [own instanceof WeakRef, own.deref() === target, new WeakRef(target).constructor === WeakRef, WeakRef.name, WeakRef.length,
                 (() => { try { WeakRef(target) } catch (e) { return e.message } })(), (() => { try { new WeakRef(1) } catch (e) { return e.name } })()].join()";
    assert_eq!(
        engine.value(code),
        "\"true,true,true,WeakRef,1,Constructor WeakRef requires 'new',TypeError\""
    );
}

#[test]
fn date_is_the_built_in_one_and_names_the_zone_when_it_is_called() {
    let mut engine = Engine::new();
    for (script, expected) in [
        ("/^\\w{3} \\w{3} \\d\\d \\d{4} \\d\\d:\\d\\d:\\d\\d GMT[+-]\\d{4} \\(.+\\)$/.test(Date())", "true"),
        ("Date(0) === new Date().toString() || Date(0) === new Date().toString()", "true"),
        (
            "typeof Date() + Date.name + Date.length + typeof Date.now() + Date.UTC(1970, 0) + Date.parse('1970')",
            "'stringDate7number00'",
        ),
        ("Object.getOwnPropertyNames(Date).sort().join()", "'UTC,length,name,now,parse,prototype'"),
        (
            "Object.entries({ ...Object.getOwnPropertyDescriptor(Date, 'prototype'), value: 0 }).join(';')",
            "'value,0;writable,false;enumerable,false;configurable,false'",
        ),
        (
            "Date.prototype.constructor === Date && new Date().constructor === Date && new Date() instanceof Date",
            "true",
        ),
        (
            "Function.prototype.toString.call(Date).replace(/\\s+/g, ' ')",
            "'function Date() { [native code] }'",
        ),
        (
            "new Date(2020, 1, 3).getMonth() + new Date(5).getTime() + new Date('1970-01-01T00:00:00.007Z').getTime()",
            "13",
        ),
        (
            "class D extends Date { x = 1 } [new D(0), new D(0) instanceof Date, new D(7).getTime(), D.now() > 1]",
            "[ D 1970-01-01T00:00:00.000Z { x: 1 }, true, 7, true ]",
        ),
        ("Reflect.construct(Date, [0], Array) instanceof Array", "true"),
        ("Date.prototype.toString = () => 'mine'; Date().length > 5", "true"),
        ("[Date, new Date(NaN)]", "[ [Function: Date], Invalid Date ]"),
        ("structuredClone(new Date(3)).getTime()", "3"),
    ] {
        assert_eq!(engine.value(script), expected, "{script}");
    }
}

#[test]
fn a_nul_character_in_a_text_is_its_escape() {
    let mut engine =
        Engine::new().file("m.js", "module.exports = 'a\0b' /* \0 */").file("m.mjs", "export default `a\0b`");
    assert_eq!(engine.value("'a\0b'.length + /a\0/.exec('a\0').index"), "3");
    assert_eq!(engine.value("require('./m.js').length"), "3");
    assert_eq!(engine.value("(await import('./m.mjs')).default.length"), "3");
    assert!(engine.exception("1 \0 2").0.starts_with("SyntaxError"));
}
