//! Values that no code can read any more are not stored, whatever slot of a frame they are in; values that code will read are, and
//! variables that are visible keep theirs.

use std::collections::BTreeMap;
use vm_system_cvm::{
    CompileOptions, CompiledProgram, PauseAnswer, RunOutcome, StateConfig, VmLimitKind, VmLimits, VmState,
    compile, frames, resume_pause, run,
};

fn program(source: &str) -> CompiledProgram {
    compile(source, &CompileOptions::default()).unwrap_or_else(|errors| panic!("{source}\n{errors}"))
}

/// `make` returns some 300 KB.
const MAKE: &str = "let n = 0; function make() { const list = []; for (let i = 0; i < 3000; i++) list.push({ i, t: 'text ' + i }); \
    return list; }\n";

/// Bodies of `main`, by what keeps its value after the code is done with it.
const SHAPES: &[(&str, &str)] = &[
    ("nothing", "for (;;) CC('q' + n++);"),
    ("a temporary", "for (;;) { CC('q' + n++); make().length; }"),
    ("a const of a loop's block", "for (;;) { CC('q' + n++); const big = make(); big.length; }"),
    ("a let that is assigned", "for (;;) { CC('q' + n++); let big; big = make(); }"),
    ("a const of a block", "for (;;) { { const big = make(); big.length; } CC('q' + n++); }"),
    ("a block before the loop", "{ const big = make(); big.length; } for (;;) CC('q' + n++);"),
    ("a branch", "if (n === 0) { let big = make(); big.length; } for (;;) CC('q' + n++);"),
    (
        "a text",
        "for (;;) { CC('q' + n++); let s = ''; for (let i = 0; i < 9000; i++) s += 'part ' + i * 7919 + n; }",
    ),
    (
        "a text with a pause in the loop's head",
        "for (let s = 0; CC('q' + n++); s = 0) { s = JSON.stringify(make()); }",
    ),
    ("a loop's list", "for (;;) { CC('q' + n++); for (const x of make()) x.i; }"),
    (
        "a loop's list after a break",
        "for (;;) { CC('q' + n++); for (const x of make()) if (x.i > 5) break; }",
    ),
    (
        "the list of an outer loop that is left",
        "for (;;) { CC('q' + n++); outer: for (const x of make()) for (const y of make()) if (y.i > x.i) break outer; }",
    ),
    (
        "a list that is continued",
        "next: for (;;) { CC('q' + n++); for (const x of make()) if (x.i > 5) continue next; }",
    ),
    (
        "the iterator of a map",
        "for (;;) { CC('q' + n++); for (const x of new Map(make().entries())) if (x) break; }",
    ),
    ("an enumeration", "for (;;) { CC('q' + n++); for (const key in make()) if (key > '5') break; }"),
    ("a caught value", "for (;;) { CC('q' + n++); try { throw make(); } catch (e) { e.length; } }"),
    (
        "a caught pattern",
        "for (;;) { CC('q' + n++); try { throw make(); } catch ([first, ...rest]) { rest.length; } }",
    ),
    ("a value without a name", "for (;;) { CC('q' + n++); try { throw make(); } catch { n += 0; } }"),
    (
        "a value that passed a finally",
        "for (;;) { try { CC('q' + n++); try { throw make(); } finally { n += 0; } } catch { n += 0; } }",
    ),
    (
        "a return that was replaced",
        "for (;;) { for (;;) { CC('q' + n++); try { return make(); } finally { break; } } }",
    ),
    (
        "a return through a finally",
        "const f = () => { try { const big = make(); return big.length; } finally { n += 0; } }; for (;;) { CC('q' + n++); f(); }",
    ),
    (
        "a switch",
        "for (;;) { CC('q' + n++); switch (n % 2) { case 0: let big = make(); break; default: const other = make(); } }",
    ),
    (
        "the value of a switch",
        "for (;;) { CC('q' + n++); switch (make()) { case 0: break; default: n += 0; } }",
    ),
    (
        "a labelled block",
        "for (;;) { CC('q' + n++); done: { const big = make(); if (big.length) break done; n = 0; } }",
    ),
    (
        "patterns",
        "for (;;) { CC('q' + n++); { const [first, ...rest] = make(); const { length, ...more } = make(); rest.length; } }",
    ),
    (
        "assigned patterns",
        "let first, rest; const o = {}; for (;;) { CC('q' + n++); [first, ...rest] = make(); ({ length: first, ...rest } = make()); \
         [o.a, rest] = make(); first = rest = o.a = 0; }",
    ),
    (
        "a closure's variable",
        "for (;;) { CC('q' + n++); { const big = make(); const f = () => big.length; f(); } }",
    ),
    (
        "a closure's variable, on the only way",
        "{ const big = make(); const f = () => big.length; f(); } CC('a'); CC('b'); CC('c'); CC('d'); CC('e'); CC('f');",
    ),
    (
        "closures of turns",
        "for (;;) { CC('q' + n++); for (let i = 0, big = make(); i < 3; i++) { const f = () => big[i]; f(); } }",
    ),
    (
        "a resource",
        "for (;;) { CC('q' + n++); { using r = { list: make(), [Symbol.dispose]() {} }; r.list; } }",
    ),
    ("a class", "for (;;) { CC('q' + n++); { class A { static all = make(); } A.all; } }"),
    (
        "a variable of a caller",
        "function ask() { return CC('q' + n++); } for (;;) { ask(); { const big = make(); big.length; } ask(); }",
    ),
    (
        "a variable of the caller of a callback",
        "for (;;) { [1].forEach(() => CC('q' + n++)); make().map((x) => x.i).filter((x) => x > 5); }",
    ),
    (
        "a generator",
        "function* g() { for (;;) { yield 1; { const big = make(); big.length; } } } const it = g(); for (;;) { it.next(); CC('q' + n++); }",
    ),
    (
        "a generator's list",
        "function* g() { for (const x of make()) if (x.i > 2) break; for (;;) yield 1; } const it = g(); for (;;) { it.next(); CC('q' + n++); }",
    ),
    (
        "an async function that waits",
        "const never = new Promise(() => {}); async function f() { { const big = make(); big.length; } await never; } f(); \
         for (;;) CC('q' + n++);",
    ),
    (
        "an async program",
        "return (async () => { for (;;) { await null; await CC('q' + n++); const big = make(); await null; big.length; } })();",
    ),
    (
        "an async generator",
        "async function* g() { for (;;) { { const big = make(); big.length; } yield 1; } } \
         return (async () => { for await (const x of g()) CC('q' + n++); })();",
    ),
];

/// Bytes of the whole state, and bytes that were written, at each pause.
fn stored(source: &str, pauses: usize) -> Vec<(usize, usize)> {
    let program = program(source);
    let mut state = VmState::new(&program, &StateConfig::default());
    let mut pages: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut checkpoint = 0;
    let mut list = Vec::new();
    for _ in 0..pauses {
        let outcome = run(&program, &mut state, u64::MAX);
        assert!(matches!(outcome, RunOutcome::Pause { .. }), "{source}: {outcome:?}");
        let whole = state.clone().pages_since(&program, 0).pages.iter().map(|page| page.bytes.len()).sum();
        let written = state.pages_since(&program, checkpoint);
        checkpoint = written.number;
        list.push((whole, written.pages.iter().map(|page| page.bytes.len()).sum()));
        for page in written.pages {
            if page.bytes.is_empty() {
                pages.remove(&page.number);
            } else {
                pages.insert(page.number, page.bytes);
            }
        }
        let all = pages.iter().map(|(number, bytes)| (*number, bytes.as_slice()));
        state = VmState::restore(&program, VmLimits::default(), all).expect("its own pages");
        assert!(resume_pause(&program, &mut state, &PauseAnswer::Text("x".to_owned())));
    }
    list
}

#[test]
fn a_checkpoint_has_no_values_that_nothing_reads() {
    let mut wrong = Vec::new();
    for (name, body) in SHAPES {
        let list = stored(&format!("{MAKE}function main() {{ {body} }}"), 6);
        if list.iter().skip(1).any(|&(whole, written)| whole > 4_000 || written > 4_000) {
            wrong.push(format!("{name}: {list:?}"));
        }
    }
    assert!(wrong.is_empty(), "bytes of the state and of each checkpoint:\n{}", wrong.join("\n"));
}

/// Output of each program when it is stored, collected and loaded at each pause. `make` before a pause makes it worth collecting.
const LIVE: &[(&str, &str)] = &[
    ("const big = make(); CC('a'); make(); CC('b'); console.log(big.length);", "3000"),
    ("let f; { const big = make(); f = () => big.length; } make(); CC('a'); console.log(f());", "3000"),
    (
        "const all = []; for (let i = 0; i < 3; i++) { const k = [i]; all.push(() => k[0] + i); make(); CC('a'); } \
         console.log(all.map((f) => f()).join());",
        "0,2,4",
    ),
    (
        "for (const x of [[1], [2]]) { for (const y of [[3], [4]]) { make(); CC('a'); console.log(x[0], y[0]); } }",
        "1 3;1 4;2 3;2 4",
    ),
    ("for (const key in { a: 1, b: 2 }) { make(); CC('a'); console.log(key); }", "a;b"),
    ("try { throw [7]; } catch (e) { make(); CC('a'); console.log(e[0]); }", "7"),
    (
        "const f = () => { try { return [1, 2]; } finally { make(); CC('a'); } }; console.log(f().length);",
        "2",
    ),
    ("try { try { throw [5]; } finally { make(); CC('a'); } } catch (e) { console.log(e[0]); }", "5"),
    (
        "const keep = ['kept']; try { make(); CC('a'); throw 1; } catch { make(); CC('b'); console.log(keep[0]); }",
        "kept",
    ),
    (
        "let late = ['before']; try { late = ['after']; make(); CC('fail'); late = ['wrong']; } catch { console.log(late[0]); }",
        "after",
    ),
    (
        "const [a, b = make() && CC('a'), ...c] = [[1], undefined, [3]]; console.log(a[0], b, c[0][0]);",
        "1 x 3",
    ),
    ("let a, c; [a, ...c] = [[1], (make(), CC('a')), [3]]; console.log(a[0], c.length);", "1 2"),
    ("switch (make().length) { case CC('a'): case 3000: console.log('found'); }", "found"),
    ("console.log([[1], make() && CC('a'), [2]].flat().join());", "1,x,2"),
    (
        "function* g() { const mine = ['m']; for (const x of [[1], [2]]) { const got = yield x; console.log(mine[0], x[0], got[0]); } } \
         const it = g(); it.next(); make(); CC('a'); it.next(['p']); make(); CC('b'); it.next(['q']);",
        "m 1 p;m 2 q",
    ),
    (
        "function* g() { const mine = ['m']; try { yield 1; } finally { console.log(mine[0]); } } \
         const it = g(); it.next(); make(); CC('a'); it.return(5);",
        "m",
    ),
    (
        "let go; const gate = new Promise((r) => { go = r; }); async function f(x) { const mine = [x]; const got = await gate; \
         console.log(mine[0], got); } f('p'); make(); CC('a'); go('open');",
        "p open",
    ),
    (
        "return (async () => { const mine = ['m']; try { make(); await CC('a'); await Promise.reject([8]); } \
         catch (e) { make(); await CC('b'); console.log(mine[0], e[0]); } })();",
        "m 8",
    ),
    ("{ using r = { v: ['r'], [Symbol.dispose]() { console.log(this.v[0]); } }; make(); CC('a'); }", "r"),
    (
        "class A { constructor(x) { this.x = x; } } class B extends A { constructor(x) { const y = [x]; make(); CC('a'); super(y); \
         make(); CC('b'); } } console.log(new B(4).x[0]);",
        "4",
    ),
    ("function f() { make(); CC('a'); return arguments[1][0]; } console.log(f(0, ['second']));", "second"),
    ("function f(a, ...rest) { make(); CC('a'); return rest[0][0]; } console.log(f(0, ['rest']));", "rest"),
    (
        "const list = [[3], [1], [2]]; list.sort((a, b) => { make(); CC('a'); return a[0] - b[0]; }); console.log(list.join());",
        "1,2,3",
    ),
    (
        "const o = { valueOf() { make(); CC('a'); return 4; } }; let t = 'x'; t += o; console.log(t, [1] + o, o < 5);",
        "x4 14 true",
    ),
];

#[test]
fn a_value_that_code_will_read_survives() {
    for (body, expected) in LIVE {
        let program = program(&format!("{MAKE}function main() {{ {body} }}"));
        let mut state = VmState::new(&program, &StateConfig::default());
        let mut lines = Vec::new();
        let mut pauses = 0;
        loop {
            let outcome = run(&program, &mut state, u64::MAX);
            lines.extend(state.take_output().into_iter().map(|line| line.text));
            let answer = match outcome {
                RunOutcome::Pause { prompt, .. } if prompt == "fail" => PauseAnswer::Error("no".to_owned()),
                RunOutcome::Pause { .. } => PauseAnswer::Text("x".to_owned()),
                RunOutcome::Done { .. } => break,
                other => panic!("{body}: {other:?}"),
            };
            let pages = state.pages_since(&program, 0).pages;
            let all = pages.iter().map(|page| (page.number, page.bytes.as_slice()));
            state = VmState::restore(&program, VmLimits::default(), all)
                .unwrap_or_else(|error| panic!("{body}: {error}"));
            assert!(resume_pause(&program, &mut state, &answer));
            pauses += 1;
        }
        assert_eq!(lines.join(";"), *expected, "{body}");
        assert!(pauses > 0, "{body}");
    }
}

#[test]
fn a_visible_variable_is_shown_although_nothing_reads_it_any_more() {
    let source = format!(
        "{MAKE}function main() {{ const shown = ['a']; {{ const hidden = ['b']; make(); CC('in'); }} make(); CC('out'); }}"
    );
    let program = program(&source);
    let mut state = VmState::new(&program, &StateConfig::default());
    for expected in ["shown=[ 'a' ] hidden=[ 'b' ]", "shown=[ 'a' ]"] {
        assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
        let (views, _) = frames(&program, &mut state, 1);
        let variables: Vec<String> =
            views[0].variables.iter().map(|(name, text)| format!("{name}={text}")).collect();
        assert_eq!(variables.join(" "), expected);
        assert!(resume_pause(&program, &mut state, &PauseAnswer::Text("x".to_owned())));
    }
}

#[test]
fn dead_values_do_not_count_for_the_memory_limit() {
    let limits = VmLimits { heap_bytes: 1 << 20, ..VmLimits::default() };
    for (body, ends) in [
        ("for (let i = 0; i < 20; i++) { const big = make(); big.length; }", true),
        ("for (let i = 0; i < 20; i++) { for (const x of make()) break; }", true),
        ("for (let i = 0; i < 20; i++) { try { throw make(); } catch (e) { e.length; } }", true),
        ("const all = []; for (let i = 0; i < 20; i++) { all.push(make()); }", false),
    ] {
        let source = format!("{}function main() {{ {body} }}", MAKE.replace("3000", "5000"));
        let program = program(&source);
        let mut state = VmState::new(&program, &StateConfig { limits, ..StateConfig::default() });
        let outcome = run(&program, &mut state, u64::MAX);
        if ends {
            assert!(matches!(outcome, RunOutcome::Done { .. }), "{body}: {outcome:?}");
        } else {
            assert_eq!(outcome, RunOutcome::Limit(VmLimitKind::Heap), "{body}");
        }
    }
}
