//! The web platform against Node, from a committed corpus of scripts and what they write.

use crate::harness::Engine;

/// Cases between lines of `=====`: the script, a line of `-----`, what Node's console wrote.
const CORPUS: &str = include_str!("platform.txt");

#[test]
fn output_is_what_node_writes() {
    let mut wrong = Vec::new();
    for case in CORPUS.trim_end().split("\n=====\n") {
        let (script, expected) = case.split_once("\n-----\n").expect("a script and its output");
        let mut engine = Engine::new();
        let done = engine.script("case.js", script);
        let written = engine.console().join("\n");
        if written != expected {
            wrong.push(format!(
                "{script}\n--- node\n{expected}\n--- ours {:?} {:?}\n{written}\n",
                done.outcome, done.events
            ));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n======\n"));
}

#[test]
fn a_disabled_global_is_not_evaluated_and_comes_back() {
    let mut engine = Engine::new();
    engine.policy.disabled_globals = vec!["URL".to_owned(), "crypto".to_owned()];
    assert_eq!(
        engine.value("[typeof URL, typeof crypto, typeof URLSearchParams]"),
        "[ 'undefined', 'undefined', 'function' ]"
    );
    engine.policy.disabled_globals.clear();
    // Still an accessor: reading it evaluates it.
    assert_eq!(
        engine.value("typeof Object.getOwnPropertyDescriptor(globalThis, 'crypto').get"),
        "'function'"
    );
    assert_eq!(engine.value("new URL('http://a/b').pathname + typeof crypto.randomUUID()"), "'/bstring'");
}

#[test]
fn a_global_can_be_declared_and_assigned_by_a_script() {
    let mut engine = Engine::new();
    assert_eq!(engine.value("class URL { x = 1 }; new URL().x"), "1");
    assert_eq!(engine.value("Headers = 5; Headers"), "5");
    assert_eq!(engine.value("const crypto = 7; crypto"), "7");
    assert_eq!(engine.value("typeof new URLSearchParams('a=1').get"), "'function'");
}

#[test]
fn parts_do_not_use_what_a_script_replaced() {
    let mut engine = Engine::new();
    engine.repl(
        "globalThis.Map = globalThis.Promise = globalThis.Uint8Array = globalThis.TypeError = undefined",
    );
    assert_eq!(engine.value("new EventTarget().dispatchEvent(new Event('x'))"), "true");
    assert_eq!(engine.value("try { new URL('') } catch (error) { error.code }"), "'ERR_INVALID_URL'");
    assert_eq!(engine.value("(1234.5).toLocaleString('de')"), "'1.234,5'");
}

#[test]
fn lists_by_locale_are_the_texts_of_their_items() {
    let mut engine = Engine::new();
    let item = "{ toLocaleString: () => ({ toString: () => 'text', valueOf: () => 'value' }) }";
    assert_eq!(engine.value(&format!("[1234.5, {item}].toLocaleString('de')")), "'1.234,5,text'");
    assert_eq!(engine.value("new Float64Array([1234.5, 2]).toLocaleString('de')"), "'1.234,5,2'");
    let gone = "const gone = new Uint8Array(2); gone.buffer.transfer(); gone.toLocaleString()";
    assert!(engine.exception(gone).0.starts_with("TypeError"), "it has no buffer");
}

#[test]
fn a_global_that_does_not_exist_says_why() {
    let mut engine = Engine::new();
    let (message, _) = engine.exception("WebAssembly.compile()");
    assert_eq!(message, "ReferenceError: WebAssembly is not defined: sessions run JavaScript only");
    let (message, _) = engine.exception("new WebSocket('ws://a')");
    assert!(message.ends_with("sessions have no sockets; `fetch` makes requests"), "{message}");
    assert_eq!(engine.value("typeof WebAssembly + typeof WebSocket"), "'undefinedundefined'");
}

#[test]
fn what_cannot_be_cloned_is_refused() {
    let mut engine = Engine::new();
    for source in
        ["new URL('http://a')", "[new Blob([])]", "{ a: new Headers() }", "new AbortController().signal"]
    {
        let script = format!("try {{ structuredClone({source}) }} catch (error) {{ error.name }}");
        assert_eq!(engine.value(&script), "'DataCloneError'", "{source}");
    }
    assert_eq!(engine.value("structuredClone({ a: [1, { b: new Date(0) }] }).a[1].b.getTime()"), "0");
}

/// As in Node 22, but for the names in messages.
#[test]
fn clones_keep_what_they_can_and_refuse_the_rest() {
    let mut engine = Engine::new();
    for (source, what) in [
        ("(function* () {})()", "[object Generator]"),
        ("(async function* () {})()", "[object AsyncGenerator]"),
        ("[][Symbol.iterator]()", "#<Iterator>"),
        ("new Map().entries()", "#<Iterator>"),
        ("'a'.matchAll(/a/g)", "#<Iterator>"),
        ("(function () { return arguments; })(1)", "#<Object>"),
        ("new Intl.NumberFormat()", "#<NumberFormat>"),
        ("new FinalizationRegistry(() => {})", "#<FinalizationRegistry>"),
        ("new WeakRef({})", "#<WeakRef>"),
        ("new WeakMap()", "#<WeakMap>"),
        ("Promise.resolve()", "#<Promise>"),
        ("Object(Symbol())", "[object Symbol]"),
        ("new Proxy({ a: 1 }, {})", "#<Object>"),
        ("[new Proxy([], {})]", "#<Object>"),
        ("new MessageChannel().port1", "#<MessagePort>"),
        ("new BroadcastChannel('x')", "#<BroadcastChannel>"),
        ("crypto", "#<Crypto>"),
        ("crypto.subtle", "#<SubtleCrypto>"),
        ("globalThis", "#<Object>"),
    ] {
        let script = format!(
            "try {{ structuredClone({source}) }} catch (error) {{ error.name + ' ' + error.message }}"
        );
        assert_eq!(
            engine.value(&script),
            format!("'DataCloneError {what} could not be cloned.'"),
            "{source}"
        );
    }
    for (source, right) in [
        (
            "const bytes = new ArrayBuffer(2, { maxByteLength: 9 }); new Uint8Array(bytes)[1] = 7; const copy = structuredClone(bytes); [copy.resizable, copy.maxByteLength, copy !== bytes, new Uint8Array(copy)[1]].join()",
            "'true,9,true,7'",
        ),
        (
            "const grows = new Map([[1, { get a() { grows.set(2, 2); return 1; } }]]); structuredClone(grows).size",
            "1",
        ),
        ("const more = new Set([{ get a() { more.add(2); return 1; } }]); structuredClone(more).size", "1"),
        (
            "const failed = structuredClone(new DOMException('m', 'AbortError')); [failed instanceof DOMException, failed.name, failed.code, failed.message].join()",
            "'true,AbortError,20,m'",
        ),
        (
            "const odd = structuredClone(Object.assign(Object.create(Map.prototype), { a: 1 })); JSON.stringify(odd)",
            "'{\"a\":1}'",
        ),
        ("class Point { x = 1; #y = 2; } JSON.stringify(structuredClone(new Point()))", "'{\"x\":1}'"),
        ("process.env.CLONED = 1; structuredClone(process.env).CLONED", "'1'"),
        (
            "Object.keys(structuredClone(Math)).length + Object.keys(structuredClone(Object.create(null))).length",
            "0",
        ),
        (
            "[structuredClone(Object(5n)), structuredClone(Object('s')), structuredClone(Object(true))].join()",
            "'5,s,true'",
        ),
    ] {
        assert_eq!(engine.value(source), right, "{source}");
    }
}

#[test]
fn standard_output_takes_encodings_of_text() {
    let mut engine = Engine::new();
    let source = "process.stdout.write('c3a9', 'hex'); process.stdout.write('4pi6', 'base64'); process.stdout.write('\\u00e9', 'utf8'); \
                  process.stdout.write('!', () => {}); process.stdout.write('\\n', null)";
    assert_eq!(engine.logs(source).concat(), "\u{e9}\u{263a}\u{e9}!");
    assert!(engine.exception("process.stdout.write('x', 'klingon')").0.contains("Unknown encoding: klingon"));
}
