//! Programs of every kind run the same when slots that are not live are overwritten all the time.

use super::DeadSlots;
use crate::heap::Cell;
use crate::heap::object::ObjectKind;
use crate::program::CompiledProgram;
use crate::value::Value;
use crate::{
    CompileOptions, HostResult, ItemAnswer, ItemKind, PauseAnswer, RunOutcome, StateConfig, VmState, compile,
    resume_host, resume_item, resume_pause, run,
};
use std::path::Path;

/// A value that no program makes: one that is read shows.
const POISON: Value = Value::Num(-666_666.5);
/// How often slots are overwritten in one run; in longer programs after more instructions.
const MOST_TIMES: u64 = 2_000;

/// Overwrites what the code does not read, also in slots of visible variables. Returns how many slots had a reference.
fn poison(dead_slots: &mut DeadSlots, program: &CompiledProgram, state: &mut VmState) -> usize {
    let mut count = 0;
    let mut overwrite = |template: u32, pc: u32, slots: &mut [Value]| {
        for (slot, value) in (0..program.template(template).slots).zip(slots) {
            if !dead_slots.may_read(program, template, pc, slot) {
                count += usize::from(value.cell_id().is_some());
                *value = POISON;
            }
        }
    };
    for frame in &state.frames {
        let pc = frame.pc - program.template(frame.template).start;
        overwrite(frame.template, pc, &mut state.stack[frame.base as usize..]);
    }
    for cell in &mut state.heap.cells {
        if let Cell::Obj(object) = cell
            && let ObjectKind::Coroutine(c) = &mut object.kind
            && !c.slots.is_empty()
        {
            overwrite(c.template, c.pc, &mut c.slots);
        }
    }
    count
}

/// Console lines, pauses, and the end of a run.
fn record(program: &CompiledProgram, fuel: u64, mut each: impl FnMut(&mut VmState)) -> String {
    let mut state = VmState::new(program, &StateConfig::default());
    let mut shown = String::new();
    loop {
        let outcome = run(program, &mut state, fuel);
        for line in state.take_output() {
            shown.push_str(&line.text);
            shown.push('\n');
        }
        each(&mut state);
        match outcome {
            RunOutcome::OutOfFuel => {}
            RunOutcome::Pause { prompt, .. } => {
                shown.push_str(&format!("? {prompt}\n"));
                assert!(resume_pause(program, &mut state, &PauseAnswer::Text(format!("answer to {prompt}"))));
            }
            RunOutcome::Host { name, args } => {
                shown.push_str(&format!("! {name} {args}\n"));
                assert!(resume_host(program, &mut state, &HostResult::Json("\"file text\"".to_owned())));
            }
            RunOutcome::Wait { rejections } => {
                let item = state.open_items()[0];
                shown.push_str(&format!("{rejections:?} {item:?}\n"));
                let settled = match item.kind {
                    ItemKind::Timer => ItemAnswer::Elapsed,
                    _ => ItemAnswer::Answer(PauseAnswer::Json("[1]".to_owned())),
                };
                assert!(resume_item(program, &mut state, item.number, &settled));
            }
            end => return format!("{shown}{} steps, {end:?}\n", state.steps()),
        }
    }
}

/// Runs with and without the values of dead slots; returns how many references were overwritten.
fn compare(source: &str, name: &str, typescript: bool) -> usize {
    let options =
        CompileOptions { filename: "test.js".to_owned(), typescript, plain_script: false, items: true };
    let program = compile(source, &options).unwrap_or_else(|errors| panic!("{name}: {errors}"));
    let mut steps = 0;
    let plain = record(&program, u64::MAX, |state| steps = state.steps());
    let mut dead_slots = DeadSlots::default();
    let mut count = 0;
    let poisoned = record(&program, steps / MOST_TIMES + 1, |state| {
        count += poison(&mut dead_slots, &program, state);
    });
    assert_eq!(poisoned, plain, "{name}");
    count
}

#[test]
fn language_tests_do_not_read_dead_slots() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lang");
    let mut count = 0;
    let mut files = 0;
    for entry in std::fs::read_dir(dir).expect("the folder is in the tree").flatten() {
        let path = entry.path();
        let kind = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        if kind == "js" || kind == "ts" {
            let source = std::fs::read_to_string(&path).expect("a file that was just listed");
            count += compare(&source, &path.display().to_string(), kind == "ts");
            files += 1;
        }
    }
    assert!(files > 20 && count > 1_000, "{count} references in {files} files");
}

#[path = "../../tests/common/programs.rs"]
mod programs;

#[test]
fn random_programs_do_not_read_dead_slots() {
    let mut count = 0;
    for seed in 1..=80 {
        count += compare(&programs::program(seed), &format!("program {seed}"), false);
    }
    assert!(count > 1_000, "{count} references");
}

#[test]
fn a_function_that_is_too_large_for_the_analysis_has_no_dead_slots() {
    let mut source = "function f() { ".to_owned();
    for n in 0..6_000 {
        source.push_str(&format!("if (CC) {{ let a{n} = {n}; f(a{n}); }} var b{n} = {{}}; "));
    }
    source.push_str("} f;");
    let program = compile(&source, &CompileOptions::default()).expect("it compiles");
    let template = crate::program::USER_TEMPLATES + 1;
    let mut dead_slots = DeadSlots::default();
    assert!(program.template(template).slots > 6_000);
    assert_eq!(dead_slots.dead_at(&program, template, 5).len(), 0);
    assert!(dead_slots.may_read(&program, template, 5, 3_000));
}
