//! Buffers and typed arrays of programs: as in Node, what a checkpoint stores of them, their memory and their work.

use crate::compared::{compare, lines, texts};
use vm_system_cvm::{
    CompileOptions, CompiledProgram, PauseAnswer, RunOutcome, StateConfig, VmLimitKind, VmLimits, VmState,
    compile, resume_pause, run,
};

/// Cases between lines of `=====`: the script, a line of `-----`, what Node wrote.
const CASES: &str = include_str!("../common/bytes.txt");

fn program(source: &str) -> CompiledProgram {
    match compile(source, &CompileOptions::default()) {
        Ok(program) => program,
        Err(errors) => panic!("{source}\n{errors}"),
    }
}

fn with_heap(program: &CompiledProgram, heap_bytes: u64) -> VmState {
    let limits = VmLimits { heap_bytes, ..VmLimits::default() };
    VmState::new(program, &StateConfig { limits, ..StateConfig::default() })
}

fn answer(program: &CompiledProgram, state: &mut VmState) {
    assert!(resume_pause(program, state, &PauseAnswer::Text("x".to_owned())));
}

#[test]
fn they_behave_as_in_node() {
    let compared = compare(&[CASES], &[]);
    assert!(compared > 25, "only {compared} cases were compared");
}

#[test]
fn a_checkpoint_stores_the_changed_bytes_of_a_large_buffer() {
    let program = program(
        "const a = new Uint8Array(16 << 20); CC('1'); a[5000000] = 7; CC('2'); new DataView(a.buffer).setInt32(8, 1); CC('3'); \
         a.fill(1, 100, 10100); CC('4'); const w = new Uint16Array(a.buffer); CC('5'); console.log(a[5000000], a[11], a[10099], a[10100]);",
    );
    let mut state = with_heap(&program, 64 << 20);
    let mut written = Vec::new();
    let mut pages = std::collections::BTreeMap::new();
    let mut checkpoint = 0;
    while let RunOutcome::Pause { .. } = run(&program, &mut state, u64::MAX) {
        let stored = state.pages_since(&program, checkpoint);
        checkpoint = stored.number;
        written.push(stored.pages.iter().map(|page| page.bytes.len()).sum::<usize>());
        pages.extend(stored.pages.into_iter().map(|page| (page.number, page.bytes)));
        answer(&program, &mut state);
    }
    assert!(written[0] > 16 << 20, "{written:?}");
    for (n, bytes) in written.iter().enumerate().skip(1) {
        let most = if n == 3 { 40_000 } else { 20_000 };
        assert!(*bytes < most, "checkpoint {n}: {written:?}");
    }
    assert_eq!(state.take_output()[0].text, "7 1 1 0");
    let limits = VmLimits { heap_bytes: 64 << 20, ..VmLimits::default() };
    let stored = pages.iter().map(|(number, bytes)| (*number, bytes.as_slice()));
    let mut restored = VmState::restore(&program, limits, stored).expect("its own pages");
    answer(&program, &mut restored);
    assert!(matches!(run(&program, &mut restored, u64::MAX), RunOutcome::Done { .. }));
    assert_eq!(restored.take_output()[0].text, "7 1 1 0");
}

#[test]
fn bytes_are_accounted_and_those_without_references_are_collected() {
    let dropped = program(
        "let n = 0; for (let i = 0; i < 100; i++) n += new Uint8Array(1 << 20).length; console.log(n);",
    );
    let mut state = with_heap(&dropped, 8 << 20);
    assert!(matches!(run(&dropped, &mut state, u64::MAX), RunOutcome::Done { .. }));
    assert_eq!(state.take_output()[0].text, "104857600");
    for kept in [
        "const all = []; try { while (true) all.push(new ArrayBuffer(1 << 20)); } catch (e) { console.log('caught'); }",
        "const b = new ArrayBuffer(0, { maxByteLength: 8 << 20 }); b.resize(7 << 20); const c = b.slice(0, 3 << 20); console.log('kept');",
        "const t = 'x'.repeat(1 << 20); const all = []; while (true) all.push(new TextEncoder().encode(t));",
    ] {
        let program = program(kept);
        let mut state = with_heap(&program, 8 << 20);
        assert_eq!(run(&program, &mut state, u64::MAX), RunOutcome::Limit(VmLimitKind::Heap), "{kept}");
        assert!(state.take_output().is_empty(), "{kept}");
    }
    let refused = lines("try { new ArrayBuffer(2 ** 40) } catch (e) { console.log(e.name) }", &[]);
    assert_eq!(refused.0[0].1, "RangeError");
}

/// Runs with slices of fuel: the most instructions of one slice, and the lines.
fn sliced(source: &str, slice: u64) -> (u64, Vec<String>) {
    let program = program(source);
    let mut state = with_heap(&program, 256 << 20);
    let (mut most, mut before) = (0, 0);
    loop {
        let outcome = run(&program, &mut state, slice);
        most = most.max(state.steps() - before);
        before = state.steps();
        match outcome {
            RunOutcome::OutOfFuel => {}
            RunOutcome::Done { .. } => {
                return (most, state.take_output().into_iter().map(|line| line.text).collect());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn work_on_many_elements_costs_steps_and_is_done_in_slices() {
    let long = "const a = new Uint32Array(60000); for (let i = 0; i < a.length; i += 3) a[i] = i * 7919; ";
    for (work, least) in [
        ("a.sort();", 60_000),
        ("a.fill(7);", 60_000 / 16),
        ("a.indexOf(5);", 60_000 / 16),
        ("a.includes(5);", 60_000 / 16),
        ("a.lastIndexOf(5);", 60_000 / 16),
        ("a.join();", 60_000 / 4),
        ("new Float64Array(a);", 60_000 / 16),
        ("new Uint8Array(8 << 20).set(a);", 60_000 / 16),
        ("a.reverse();", 60_000 / 16),
        ("new TextDecoder('latin1').decode(a);", 60_000 / 16),
        ("a.slice();", 60_000 * 4 / 256),
    ] {
        let steps = |source: &str| {
            let program = program(source);
            let mut state = with_heap(&program, 256 << 20);
            assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Done { .. }), "{source}");
            state.steps()
        };
        let cost = steps(&format!("{long}{work}")) - steps(long);
        assert!(cost >= least, "{work} costs {cost} steps");
        let endless = program(&format!("{long}while (true) {{ {work} }}"));
        let limits = VmLimits { steps: 2_000_000, heap_bytes: 256 << 20, ..VmLimits::default() };
        let mut state = VmState::new(&endless, &StateConfig { limits, ..StateConfig::default() });
        assert_eq!(run(&endless, &mut state, u64::MAX), RunOutcome::Limit(VmLimitKind::Steps), "{work}");
    }
    let source =
        format!("{long}a.sort(); console.log(a.every((x, i) => i === 0 || a[i - 1] <= x), a[0], a[59999]);");
    let whole = sliced(&source, u64::MAX);
    let (most, lines) = sliced(&source, 1000);
    assert_eq!(lines, whole.1);
    assert_eq!(lines[0].split(' ').next(), Some("true"));
    assert!(most <= 1000, "{most} instructions in a slice");
}

#[test]
fn a_long_sort_continues_from_a_checkpoint_in_its_middle() {
    let program = program(
        "const a = new Float64Array(60000); for (let i = 0; i < a.length; i++) a[i] = (i * 7919) % 60013; a.sort(); \
         console.log(a.every((x, i) => i === 0 || a[i - 1] < x), a.length);",
    );
    let mut state = with_heap(&program, 64 << 20);
    let mut restored = 0;
    loop {
        match run(&program, &mut state, 100_000) {
            RunOutcome::OutOfFuel => {
                let pages = state.pages_since(&program, 0).pages;
                let pages = pages.iter().map(|page| (page.number, page.bytes.as_slice()));
                let limits = VmLimits { heap_bytes: 64 << 20, ..VmLimits::default() };
                state = VmState::restore(&program, limits, pages).expect("its own pages");
                restored += 1;
            }
            RunOutcome::Done { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(state.take_output()[0].text, "true 60000");
    assert!(restored > 5, "{restored} checkpoints");
}

#[test]
fn a_result_has_the_elements_as_json_text_has_them() {
    for (source, json) in [
        ("function main() { return new Uint8Array([1, 2]); }", r#"{"0":1,"1":2}"#),
        (
            "function main() { return { a: new Float32Array([NaN]), b: new BigInt64Array([5n]) }; }",
            r#"{"a":{"0":null},"b":{"0":"5"}}"#,
        ),
        (
            "function main() { const a = new Int8Array(0); a.x = 1; return [a, new ArrayBuffer(2)]; }",
            r#"[{"x":1},{}]"#,
        ),
    ] {
        let program = program(source);
        let mut state = VmState::new(&program, &StateConfig::default());
        let RunOutcome::Done { json: result, .. } = run(&program, &mut state, u64::MAX) else {
            panic!("{source}")
        };
        assert_eq!(result, json, "{source}");
    }
}

#[test]
fn random_bytes_are_those_of_the_seed() {
    let source = "console.log(crypto.getRandomValues(new Uint8Array(9)).join())";
    assert_eq!(texts(source), texts(source));
    let other = program(source);
    let mut state = VmState::new(&other, &StateConfig { seed: 99, ..StateConfig::default() });
    run(&other, &mut state, u64::MAX);
    assert_ne!(state.take_output()[0].text, texts(source)[0]);
}

#[test]
fn shared_memory_is_refused_when_a_program_is_loaded() {
    for name in ["SharedArrayBuffer", "Atomics", "Buffer"] {
        let errors = compile(&format!("{name}.x"), &CompileOptions::default()).expect_err(name);
        assert!(errors.to_string().contains(&format!("`{name}` is not supported: ")), "{errors}");
    }
}
