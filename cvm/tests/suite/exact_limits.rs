//! Every limit ends a program at exactly one instruction or allocation, the program cannot observe it, and the kind of
//! limit is part of the ended state.

use vm_system_cvm::{
    CompileOptions, CompiledProgram, PauseAnswer, RunOutcome, RunPhase, StateConfig, VmLimitKind, VmLimits,
    VmState, compile, resume_pause, run,
};

fn program(source: &str) -> CompiledProgram {
    match compile(source, &CompileOptions::default()) {
        Ok(program) => program,
        Err(errors) => panic!("{source}\n{errors}"),
    }
}

/// Runs with these limits: outcome, console lines, state.
fn limited(program: &CompiledProgram, limits: VmLimits) -> (RunOutcome, Vec<String>, VmState) {
    let mut state = VmState::new(program, &StateConfig { limits, ..StateConfig::default() });
    let outcome = run(program, &mut state, u64::MAX);
    let lines = state.take_output().into_iter().map(|l| l.text).collect();
    (outcome, lines, state)
}

/// The smallest value of a limit, up to `most`, with which the program ends by itself.
fn threshold(program: &CompiledProgram, most: u64, with: impl Fn(u64) -> VmLimits) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        match limited(program, with(middle)).0 {
            RunOutcome::Done { .. } => high = middle,
            // A full stack is an exception.
            RunOutcome::Limit(_) | RunOutcome::Throw(_) => low = middle + 1,
            other => panic!("{other:?}"),
        }
    }
    low
}

#[test]
fn steps_are_exact_to_one_instruction() {
    for source in [
        "let n = 0; for (let i = 0; i < 50; i++) n += i;",
        "function* g() { yield* [1, 2, 3]; } [...g()].map((x) => x * 2).sort((a, b) => b - a);",
        "async function f() { await null; return [1, 2].map(String); } function main() { return f(); }",
        "const found = /(a+)+b/.exec('aaaaaaaaaaaac'); 'x'.replace(/x/, () => 'y');",
    ] {
        let program = program(source);
        let whole = limited(&program, VmLimits::default()).2.steps();
        let exact = threshold(&program, whole * 2, |steps| VmLimits { steps, ..VmLimits::default() });
        assert_eq!(exact, whole, "{source}");
        let (outcome, _, state) = limited(&program, VmLimits { steps: whole - 1, ..VmLimits::default() });
        assert_eq!((outcome, state.steps()), (RunOutcome::Limit(VmLimitKind::Steps), whole - 1), "{source}");
    }
}

#[test]
fn slices_of_fuel_change_neither_the_steps_nor_the_end_by_a_limit() {
    let program = program(
        "let n = 0; for (let i = 0; i < 4; i++) { n += /(x+x+)+y/.test('x'.repeat(7 + i)) ? 1 : 2; }",
    );
    let ends = |steps: u64, slice: u64| {
        let limits = VmLimits { steps, ..VmLimits::default() };
        let mut state = VmState::new(&program, &StateConfig { limits, ..StateConfig::default() });
        loop {
            match run(&program, &mut state, slice) {
                RunOutcome::OutOfFuel => {
                    let pages = state.pages_since(&program, 0).pages;
                    let pages = pages.iter().map(|p| (p.number, p.bytes.as_slice()));
                    state = VmState::restore(&program, limits, pages).expect("its own pages");
                }
                outcome => return (outcome, state.steps()),
            }
        }
    };
    let whole = ends(u64::MAX, u64::MAX);
    assert!(whole.1 > 500, "matching costs steps: {}", whole.1);
    for slice in [3, 10, 1000] {
        assert_eq!(ends(u64::MAX, slice), whole);
        assert_eq!(ends(whole.1 - 1, slice), ends(whole.1 - 1, u64::MAX));
    }
}

#[test]
fn the_heap_is_exact_to_one_allocation() {
    let program = program(
        "const kept = []; for (let i = 0; i < 40; i++) { kept.push('x'.repeat(4000 + i)); console.log(i); }",
    );
    let with = |heap_bytes| VmLimits { heap_bytes, ..VmLimits::default() };
    let exact = threshold(&program, 64 << 20, with);
    assert_eq!(limited(&program, with(exact)).1.len(), 40);
    let (outcome, lines, _) = limited(&program, with(exact - 1));
    assert_eq!(outcome, RunOutcome::Limit(VmLimitKind::Heap));
    assert_eq!(lines.len(), 39, "the last allocation exceeds the limit");
    // An element costs its text, its cell and its slot: with a limit that is lower by this amount, one element less fits.
    let element = 4039 + 32 + 16;
    let (outcome, lines, _) = limited(&program, with(exact - element));
    assert_eq!((outcome, lines.len()), (RunOutcome::Limit(VmLimitKind::Heap), 39));
    let (outcome, lines, _) = limited(&program, with(exact - element - 1));
    assert_eq!((outcome, lines.len()), (RunOutcome::Limit(VmLimitKind::Heap), 38));
}

#[test]
fn the_stack_is_exact_to_one_frame() {
    let program = program("function f(n) { console.log(n); if (n < 50) f(n + 1); } f(1);");
    let with = |stack_depth: u64| VmLimits { stack_depth: stack_depth as u32, ..VmLimits::default() };
    assert_eq!(threshold(&program, 1000, with), 51, "the top level and fifty calls");
    let (outcome, lines, _) = limited(&program, with(50));
    let thrown = matches!(&outcome, RunOutcome::Throw(text) if text.starts_with("RangeError: Maximum call stack size exceeded\n"));
    assert!(thrown && lines.len() == 49, "{outcome:?}, {lines:?}");
}

#[test]
fn the_length_of_text_is_exact_to_one_unit_wherever_text_is_created() {
    let limits = VmLimits { string_units: 1000, ..VmLimits::default() };
    for make in [
        "'x'.repeat(N)",
        "'x'.repeat(N - 1) + 'y'",
        "`${'x'.repeat(N - 2)}yz`",
        "'x'.repeat(500).concat('y'.repeat(N - 500))",
        "'x'.padStart(N)",
        "'x'.padEnd(N, 'abc')",
        "['x'.repeat(500), 'y'.repeat(N - 501)].join()",
        "'ab'.replace('b', 'x'.repeat(N - 1))",
        "'ab'.replace(/b/, 'x'.repeat(N - 1))",
        "'ab'.replaceAll('b', () => 'x'.repeat(N - 1))",
        "String.raw({ raw: ['x'.repeat(500), 'y'.repeat(N - 501)] }, '-')",
        "JSON.stringify('x'.repeat(N - 2))",
        "JSON.stringify({ a: 'x'.repeat(N - 8) })",
        "JSON.stringify(['x'.repeat(N - 6)], (key, value) => value, 0) + 'yy'",
        "JSON.parse('\"' + 'x'.repeat(N - 2) + '\"') + 'yy'",
        "encodeURIComponent('x'.repeat(N - 3) + ' ')",
        "'ß'.repeat(N / 2 | 0).toUpperCase() + (N % 2 ? 'x' : '')",
        "'x'.repeat(N - 1).split('').concat('é').join('')",
        "(2n ** BigInt(N - 1)).toString(2)",
        "String.fromCharCode(...new Array(N).fill(300))",
        "'ab'.repeat(N / 2).slice(0, N - 1) + 'c'",
    ] {
        let fits = program(&format!("const N = 1000; console.log(({make}).length);"));
        let (outcome, lines, _) = limited(&fits, limits);
        assert_eq!((outcome, lines), (done(), vec!["1000".to_owned()]), "{make}");
        let not = program(&format!(
            "const N = 1001; try {{ ({make}).length; }} catch (e) {{ console.log(String(e)); }}"
        ));
        let (outcome, lines, _) = limited(&not, limits);
        assert_eq!((outcome, lines), (RunOutcome::Limit(VmLimitKind::Text), Vec::new()), "{make}");
    }
}

fn done() -> RunOutcome {
    RunOutcome::Done { json: "null".to_owned(), text: "undefined".to_owned() }
}

#[test]
fn an_answer_that_is_too_long_ends_the_program_even_when_the_state_is_stored_in_between() {
    let program =
        program("try { CC('?'); } catch (e) { console.log('caught'); } finally { console.log('finally'); }");
    let limits = VmLimits { string_units: 100, ..VmLimits::default() };
    let (_, _, mut state) = limited(&program, limits);
    assert!(resume_pause(&program, &mut state, &PauseAnswer::Text("x".repeat(101))));
    let pages = state.pages_since(&program, 0).pages;
    let pages = pages.iter().map(|p| (p.number, p.bytes.as_slice()));
    let mut state = VmState::restore(&program, limits, pages).expect("its own pages");
    assert_eq!(run(&program, &mut state, u64::MAX), RunOutcome::Limit(VmLimitKind::Text));
    assert!(state.take_output().is_empty());
}

#[test]
fn console_text_beyond_the_limit_is_dropped_and_counted_until_it_is_taken() {
    let program = program(
        "console.log('x'.repeat(99)); console.log('y'.repeat(49)); console.log(''); CC('?'); console.log('z'.repeat(99));",
    );
    let with = |output_bytes| VmLimits { output_bytes, ..VmLimits::default() };
    // A line needs one byte more than its text. Short lines behind a dropped one are dropped, too.
    for (most, kept, dropped) in
        [(151, 3, (0, 0)), (150, 2, (1, 1)), (149, 1, (2, 51)), (100, 1, (2, 51)), (99, 0, (3, 151))]
    {
        let (outcome, lines, mut state) = limited(&program, with(most));
        assert!(matches!(outcome, RunOutcome::Pause { .. }), "{outcome:?}");
        let found = state.take_dropped();
        assert_eq!((lines.len(), (found.lines, found.bytes)), (kept, dropped), "{most}");
        resume_pause(&program, &mut state, &PauseAnswer::Text(String::new()));
        assert_eq!(run(&program, &mut state, u64::MAX), done());
        assert_eq!(
            (state.take_output().len(), state.take_dropped().lines),
            (usize::from(most > 99), u64::from(most == 99))
        );
    }
}

/// Ways to observe an exception; `WORK` is replaced by code that reaches a limit. None may print.
const OBSERVERS: &[&str] = &[
    "try { WORK } catch (e) { console.log('caught'); } finally { console.log('finally'); }",
    "function f() { try { WORK } finally { console.log('finally'); return 1; } } console.log(f());",
    "new Promise(() => { WORK }).catch(() => console.log('caught')).finally(() => console.log('finally'));",
    "async function f() { try { await null; WORK } catch { console.log('caught'); } finally { console.log('finally'); } } f();",
    "Promise.resolve().then(() => { WORK }).then(() => console.log('then'), () => console.log('caught'));",
    "function* g() { try { yield 1; } finally { WORK } } try { for (const x of g()) break; console.log('after'); } catch { console.log('caught'); }",
    "function* g() { try { WORK yield 1; } finally { console.log('finally'); } } try { g().next(); } catch { console.log('caught'); }",
    "const o = { [Symbol.iterator]() { return { next: () => ({ done: false, value: 1 }), return() { console.log('return'); return {}; } }; } }; \
     try { for (const x of o) { WORK } } catch { console.log('caught'); }",
    "const o = { get x() { WORK return 1; }, toString() { WORK return ''; } }; try { o.x; } catch { console.log('caught'); }",
    "try { [1, 2].map(() => { WORK }); } catch { console.log('caught'); }",
    "try { [2, 1].sort(() => { WORK return 1; }); } catch { console.log('caught'); }",
    "try { 'a'.replace(/a/, () => { WORK return ''; }); } catch { console.log('caught'); }",
    "try { JSON.stringify({ toJSON() { WORK } }); } catch { console.log('caught'); }",
    "try { new Proxy({}, { get() { WORK } }).x; } catch { console.log('caught'); }",
    "class A { static { try { WORK } catch { console.log('caught'); } } }",
];

#[test]
fn a_program_cannot_observe_a_limit() {
    let works: &[(VmLimitKind, &str)] = &[
        (VmLimitKind::Steps, "while (true) {}"),
        (VmLimitKind::Heap, "const l = []; while (true) l.push([1, 2, 3]);"),
        (VmLimitKind::Heap, "const l = []; while (true) { try { null.x; } catch (e) { l.push(e); } }"),
        (VmLimitKind::Text, "'x'.repeat(100000);"),
        (VmLimitKind::Text, "let s = 'ab'; while (true) s += s;"),
    ];
    let limits = VmLimits {
        heap_bytes: 4 << 20,
        stack_depth: 200,
        string_units: 50_000,
        steps: 3_000_000,
        output_bytes: 20_000,
        pending_items: 0,
    };
    for notice in OBSERVERS {
        for (kind, work) in works {
            let source = notice.replace("WORK", work);
            let program = program(&source);
            let (outcome, lines, mut state) = limited(&program, limits);
            assert_eq!(outcome, RunOutcome::Limit(*kind), "{source}");
            assert!(lines.iter().all(|l| l.starts_with("xxx")), "{source}: {lines:?}");
            // The ended state has the same limit kind, stored or not.
            assert_eq!(state.phase(), RunPhase::Limited(*kind));
            let pages = state.pages_since(&program, 0).pages;
            let pages = pages.iter().map(|p| (p.number, p.bytes.as_slice()));
            let mut again = VmState::restore(&program, limits, pages).expect("its own pages");
            assert_eq!(run(&program, &mut again, u64::MAX), RunOutcome::Limit(*kind), "{source}");
        }
    }
}

#[test]
fn garbage_of_exceptions_alone_is_collected() {
    let program = program("for (let i = 0; i < 20000; i++) { try { null.x; } catch {} }");
    let (outcome, _, state) = limited(&program, VmLimits { heap_bytes: 3 << 20, ..VmLimits::default() });
    assert_eq!(outcome, done());
    assert!(state.heap_bytes() < 4 << 20, "{}", state.heap_bytes());
}

#[test]
fn many_registered_symbols_are_found_without_a_search() {
    let program = program(
        "for (let i = 0; i < 60000; i++) Symbol.for('symbol ' + i); const s = Symbol.for('symbol 7'); \
         CC('?'); console.log(s === Symbol.for('symbol 7'), Symbol.keyFor(s), s === Symbol.for('other'), Symbol.keyFor(Symbol('symbol 7')), \
         Symbol.for(5) === Symbol.for('5'), Symbol.keyFor(Symbol.for(5)));",
    );
    let (_, _, mut state) = limited(&program, VmLimits::default());
    let pages = state.pages_since(&program, 0).pages;
    let pages = pages.iter().map(|p| (p.number, p.bytes.as_slice()));
    let mut state = VmState::restore(&program, VmLimits::default(), pages).expect("its own pages");
    resume_pause(&program, &mut state, &PauseAnswer::Text(String::new()));
    assert_eq!(run(&program, &mut state, u64::MAX), done());
    assert_eq!(state.take_output()[0].text, "true symbol 7 false undefined true 5");
}

#[test]
fn bound_arguments_cannot_outgrow_the_stack() {
    let program = program(
        "let f = Math.max; const many = new Array(30000).fill(1); for (let i = 0; i < 60; i++) f = f.bind(null, ...many); \
         try { f(); } catch { console.log('caught'); }",
    );
    let (outcome, lines, _) = limited(&program, VmLimits::default());
    assert_eq!((outcome, lines), (done(), vec!["caught".to_owned()]));
}

#[test]
fn text_that_is_added_to_itself_doubles() {
    let program = program(
        "let s = 'a'.repeat(40); s += 'b'; const one = s; s += s; let w = 'é€'.repeat(30); w += 'x'; const two = w; w += w; \
         console.log(s === one + one, s.length, w === two + two, w.length);",
    );
    assert_eq!(limited(&program, VmLimits::default()).1, ["true 82 true 122"]);
}
