//! Limits end a program at once and cannot be caught, but for the depth of the stack; fuel is exact; source that would exhaust the parser is refused.

use vm_system_cvm::{
    CompileOptions, CompiledProgram, PauseAnswer, RunOutcome, RunPhase, StateConfig, VmLimitKind, VmLimits,
    VmState, compile, frames, globals, resume_pause, run, set_variable,
};

fn program(source: &str) -> CompiledProgram {
    match compile(source, &CompileOptions::default()) {
        Ok(program) => program,
        Err(errors) => panic!("{errors}"),
    }
}

fn limited(source: &str, limits: VmLimits) -> (RunOutcome, Vec<String>) {
    let program = program(source);
    let mut state = VmState::new(&program, &StateConfig { limits, ..StateConfig::default() });
    let outcome = run(&program, &mut state, u64::MAX);
    (outcome, state.take_output().into_iter().map(|l| l.text).collect())
}

#[test]
fn steps_end_an_endless_loop_whose_catch_and_finally_do_not_run() {
    let source =
        "try { while (true) {} } catch (e) { console.log('caught'); } finally { console.log('finally'); }";
    let (outcome, output) = limited(source, VmLimits { steps: 10_000, ..VmLimits::default() });
    assert_eq!(outcome, RunOutcome::Limit(VmLimitKind::Steps));
    assert_eq!(output, Vec::<String>::new());
}

#[test]
fn retained_memory_ends_the_program_and_garbage_does_not() {
    let limits = VmLimits { heap_bytes: 8 << 20, ..VmLimits::default() };
    let keep = "const all = []; try { while (true) all.push({ a: [1, 2, 3] }); } catch (e) { console.log('caught'); }";
    assert_eq!(limited(keep, limits), (RunOutcome::Limit(VmLimitKind::Heap), Vec::new()));
    let drop = "let s = 0; for (let i = 0; i < 200000; i++) { s += [i, i, i].length; } console.log(s);";
    assert_eq!(limited(drop, limits).1, ["600000"]);
}

#[test]
fn endless_recursion_is_an_exception_wherever_it_happens() {
    const WAYS: &[&str] = &[
        "function f() { return f() + 1; } f();",
        "const f = (...all) => Math.max(...all, f(1, 2)); f();",
        "const o = { get me() { return this.me; } }; o.me;",
        "const o = { toString() { return `${this}`; } }; String(o);",
        "const o = { valueOf() { return +this; } }; o + 1;",
        "const o = { toJSON() { return JSON.stringify(this); } }; JSON.stringify(o);",
        "const f = () => [1].map(f); f();",
        "const f = () => [2, 1].sort(f); f();",
        "const f = () => 'a'.replace(/a/, f); f();",
        "const f = () => Reflect.apply(f, null, []); f();",
        "const p = new Proxy({}, { get: (_, key) => p[key] }); p.x;",
        "const p = new Proxy(function () {}, { apply: () => p() }); p();",
        "class A { constructor() { new A(); } } new A();",
        "class A { constructor() { this.a = Reflect.construct(A, []); } } new A();",
        "function* g() { yield* g(); } [...g()];",
        "const o = { [Symbol.iterator]() { return [...this]; } }; [...o];",
        "let v = []; for (let i = 0; i < 100000; i++) v = [v]; structuredClone(v);",
    ];
    for way in WAYS {
        let source = format!(
            "for (let i = 0; i < 3; i++) {{ try {{ {way} }} catch (e) {{ console.log(e instanceof RangeError, e.message); }} }} \
             console.log([3, 1, 2].sort().map(String).join(), JSON.stringify({{ a: [1] }}), structuredClone([1]).length);"
        );
        let (outcome, mut lines) = limited(&source, VmLimits::default());
        assert!(matches!(outcome, RunOutcome::Done { .. }), "{way}: {outcome:?}");
        assert_eq!(lines.pop().as_deref(), Some("1,2,3 {\"a\":[1]} 1"), "{way}");
        assert!(lines.iter().all(|line| line == "true Maximum call stack size exceeded"), "{way}: {lines:?}");
        assert_eq!(lines.len(), 3, "{way}");
    }
}

#[test]
fn full_stack_in_an_async_function_rejects_its_promise() {
    let source = "async function f() { return await f(); } \
         async function main() { for (let i = 0; i < 3; i++) { try { await f(); } catch (e) { console.log(e.message); } } return 'on'; }";
    let (outcome, lines) = limited(source, VmLimits { stack_depth: 300, ..VmLimits::default() });
    assert!(matches!(&outcome, RunOutcome::Done { json, .. } if json == "\"on\""), "{outcome:?}");
    assert_eq!(lines, ["Maximum call stack size exceeded"; 3]);
}

#[test]
fn the_length_of_strings_is_bounded() {
    let limits = VmLimits { string_units: 1000, ..VmLimits::default() };
    let source = "let s = 'x'; try { while (true) { s += s; console.log(s.length); } } catch (e) { console.log(e.name); }";
    let (outcome, output) = limited(source, limits);
    assert_eq!(outcome, RunOutcome::Limit(VmLimitKind::Text));
    assert_eq!(output.last().map(String::as_str), Some("512"));
}

#[test]
fn fuel_is_exact_to_one_instruction() {
    let program = program("let n = 0; for (let i = 0; i < 50; i++) n += i; console.log(n);");
    let mut whole = VmState::new(&program, &StateConfig::default());
    assert!(matches!(run(&program, &mut whole, u64::MAX), RunOutcome::Done { .. }));
    let steps = whole.steps();
    let mut short = VmState::new(&program, &StateConfig::default());
    assert_eq!(run(&program, &mut short, steps - 1), RunOutcome::OutOfFuel);
    assert_eq!(short.steps(), steps - 1);
    assert!(matches!(run(&program, &mut short, 1), RunOutcome::Done { .. }));
}

#[test]
fn source_that_would_exhaust_the_parser_is_refused_with_a_position() {
    let deep = [
        "(".repeat(50_000),
        "!".repeat(50_000) + "1",
        "a=>".repeat(20_000) + "1",
        "new ".repeat(20_000) + "X",
        "1 + ".repeat(20_000) + "1",
        "a".to_owned() + &".b".repeat(20_000),
        "if (x) {} else ".repeat(20_000) + ";",
    ];
    for source in deep {
        let errors = compile(&source, &CompileOptions::default()).expect_err("nested too deeply");
        assert_eq!(errors.0[0].line, 1);
    }
}

#[test]
fn compile_errors_show_the_line_and_a_caret() {
    let errors = compile("let a = 1;\nlet b = ;\n", &CompileOptions::default()).expect_err("a syntax error");
    let error = &errors.0[0];
    assert_eq!((error.line, error.column), (2, 9));
    assert_eq!(error.caret(), "let b = ;\n        ^");
    for (source, what) in [
        ("import x from 'y';", "import"),
        ("with (a) {}", "with"),
        ("eval('1')", "eval"),
        ("using x = null;", "using"),
    ] {
        let errors = compile(source, &CompileOptions::default()).expect_err(what);
        assert!(errors.to_string().contains(what), "{errors}");
    }
}

const PAUSED: &str = "let total = 40;\nfunction step(by) {\n  const before = total;\n  total += by;\n  \
                      const answer = CC('what next?');\n  return answer + total + before;\n}\nfunction main() { return step(2); }";

#[test]
fn types_are_not_variables() {
    let source = "type T = { n: number }; interface I {} class C { n = 1 }\n\
                  function f(a: T, b: I, c: C): T { const d: typeof a = CC('?'); return d; }\n\
                  function main() { return f({ n: 1 }, {}, new C()); }";
    let options = CompileOptions { typescript: true, ..CompileOptions::default() };
    let program = compile(source, &options).expect("it compiles");
    let mut state = VmState::new(&program, &StateConfig::default());
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
    let (seen, more) = frames(&program, &mut state, 10);
    assert_eq!(more, 0);
    let names: Vec<&str> = seen.iter().flat_map(|f| &f.variables).map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "C"], "{seen:?}");
}

#[test]
fn a_tiny_paused_program_is_small_and_can_be_inspected_and_edited() {
    let program = program(PAUSED);
    let mut state = VmState::new(&program, &StateConfig::default());
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
    assert_eq!(state.phase(), RunPhase::Paused);
    let checkpoint = state.pages_since(&program, 0);
    let bytes: usize = checkpoint.pages.iter().map(|p| p.bytes.len()).sum();
    assert!(bytes <= 700, "{bytes} bytes in {} pages", checkpoint.pages.len());
    let pages = checkpoint.pages.iter().map(|p| (p.number, p.bytes.as_slice()));
    let mut state = VmState::restore(&program, VmLimits::default(), pages).expect("its own pages");
    let (seen, more) = frames(&program, &mut state, 10);
    assert_eq!(more, 0);
    assert_eq!((seen[0].function.as_str(), seen[0].line), ("step", 5));
    assert!(seen[0].variables.contains(&("before".to_owned(), "40".to_owned())), "{seen:?}");
    assert!(globals(&program, &mut state).iter().any(|(n, _)| n == "main"));
    assert!(set_variable(&program, &mut state, 0, "before", "1"));
    assert!(!set_variable(&program, &mut state, 0, "nowhere", "1"));
    assert!(resume_pause(&program, &mut state, &PauseAnswer::Json("100".to_owned())));
    let outcome = run(&program, &mut state, u64::MAX);
    assert_eq!(outcome, RunOutcome::Done { json: "143".to_owned(), text: "143".to_owned() });
}

#[test]
fn a_list_that_grows_over_many_pauses_writes_only_its_new_end() {
    let program = program(
        "const list = []; let text = ''; while (true) { list.push(CC('more')); text += 'some more text '; }",
    );
    let mut state = VmState::new(&program, &StateConfig::default());
    let mut last = 0;
    let mut sizes = Vec::new();
    for _ in 0..3000 {
        assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
        let written = state.pages_since(&program, last);
        last = written.number;
        sizes.push(written.pages.iter().map(|p| p.bytes.len()).sum::<usize>());
        assert!(resume_pause(
            &program,
            &mut state,
            &PauseAnswer::Text("an answer of some length".to_owned())
        ));
    }
    let early: usize = sizes[200..400].iter().sum();
    let late: usize = sizes[2800..].iter().sum();
    assert!(late < early * 2, "{early} bytes for 200 early checkpoints, {late} for late ones");
}

#[test]
fn equal_inputs_have_equal_bytes() {
    let program =
        program("const m = new Map(); for (let i = 0; i < 300; i++) m.set('k' + i, Math.random()); CC('x');");
    let bytes = |cut: u64| {
        let mut state = VmState::new(&program, &StateConfig { seed: 7, ..StateConfig::default() });
        while run(&program, &mut state, cut) == RunOutcome::OutOfFuel {}
        state.pages_since(&program, 0).pages
    };
    assert_eq!(bytes(u64::MAX), bytes(u64::MAX));
    assert_eq!(bytes(u64::MAX), bytes(13));
}

/// Bytes that a program writes at each of its pauses.
fn written(source: &str, pauses: usize, answer: &str) -> Vec<usize> {
    let program = program(source);
    let mut state = VmState::new(&program, &StateConfig::default());
    let mut last = 0;
    (0..pauses)
        .map(|_| {
            assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
            let checkpoint = state.pages_since(&program, last);
            last = checkpoint.number;
            assert!(resume_pause(&program, &mut state, &PauseAnswer::Text(answer.to_owned())));
            checkpoint.pages.iter().map(|p| p.bytes.len()).sum()
        })
        .collect()
}

#[test]
fn a_thousand_pauses_that_append_a_kilobyte_write_little_more_than_that() {
    let answer = "k".repeat(1024);
    for source in [
        "const list = []; while (true) list.push(CC('more'));",
        "const list = []; while (true) { list.push({ text: CC('more'), at: list.length }); let junk = []; for (let i = 0; i < 300; i++) junk.push([i]); }",
        "let text = ''; while (true) text += CC('more');",
        "const map = new Map(); while (true) map.set('key ' + map.size, CC('more'));",
    ] {
        let bytes = written(source, 1000, &answer);
        let total: usize = bytes.iter().sum();
        assert!(total < 12 * 1000 * 1024, "{total} bytes: {source}");
        let (early, late): (usize, usize) = (bytes[100..200].iter().sum(), bytes[900..].iter().sum());
        assert!(late < early * 2, "{early} early, {late} late: {source}");
    }
}

#[test]
fn variables_of_a_turn_are_shown_once_they_have_their_values() {
    let program = program(
        "for (let i = 0; i < 2; i++) { CC('before'); const { seen } = { seen: i + 10 }, later = CC('between'); CC('after'); }",
    );
    let mut state = VmState::new(&program, &StateConfig::default());
    for i in 0..2 {
        for (prompt, shown) in [
            ("before", vec![("i", i)]),
            ("between", vec![("i", i), ("seen", i + 10)]),
            ("after", vec![("i", i), ("seen", i + 10), ("later", 7)]),
        ] {
            let outcome = run(&program, &mut state, u64::MAX);
            assert!(
                matches!(&outcome, RunOutcome::Pause { prompt: found, .. } if found == prompt),
                "{outcome:?}"
            );
            let (seen, _) = frames(&program, &mut state, 1);
            let shown: Vec<_> =
                shown.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
            assert_eq!(seen[0].variables, shown, "{prompt} in turn {i}");
            assert!(resume_pause(&program, &mut state, &PauseAnswer::Json("7".to_owned())));
        }
    }
}
