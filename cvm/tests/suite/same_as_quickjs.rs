//! Random programs from a grammar print the same here and in `QuickJS`.

use std::cell::RefCell;
use std::rc::Rc;
use vm_system_cvm::{
    CompileOptions, PauseAnswer, RunOutcome, StateConfig, UNHANDLED_REJECTION, VmLimits, VmState, compile,
    resume_pause, run,
};

/// A program's output, and whether it ended with an exception.
#[derive(Debug, PartialEq)]
struct Printed {
    lines: Vec<String>,
    threw: bool,
}

/// Most instructions of a program; those of the grammar need far fewer, except for a few that run too long.
const STEPS: u64 = 5_000_000;

fn in_cvm(source: &str) -> Option<Printed> {
    let program = match compile(source, &CompileOptions::default()) {
        Ok(program) => program,
        Err(errors) => panic!("{source}\ndoes not compile: {errors}"),
    };
    if let Err(error) = program.verify() {
        panic!("{source}\nis compiled to what its own verifier refuses: {error}");
    }
    let limits = VmLimits { steps: STEPS, ..VmLimits::default() };
    let mut state = VmState::new(&program, &StateConfig { limits, ..StateConfig::default() });
    let mut lines = Vec::new();
    loop {
        let outcome = run(&program, &mut state, u64::MAX);
        lines.extend(state.take_output().into_iter().map(|line| line.text));
        match outcome {
            RunOutcome::Pause { prompt, .. } => {
                // Continues with a restored state.
                let stored = state.pages_since(&program, 0).pages;
                let pages = stored.iter().map(|page| (page.number, page.bytes.as_slice()));
                state = match VmState::restore(&program, limits, pages) {
                    Ok(state) => state,
                    Err(error) => panic!("{source}\nis stored but not restored: {error}"),
                };
                assert!(resume_pause(
                    &program,
                    &mut state,
                    &PauseAnswer::Text(format!("answer to {prompt}"))
                ));
            }
            RunOutcome::Done { .. } => return Some(Printed { lines, threw: false }),
            // `QuickJS` does not report unhandled rejections.
            RunOutcome::Throw(text) if text.ends_with(UNHANDLED_REJECTION) => {
                return Some(Printed { lines, threw: false });
            }
            RunOutcome::Throw(_) => return Some(Printed { lines, threw: true }),
            RunOutcome::Limit(_) => return None,
            other => panic!("{other:?}\n{source}"),
        }
    }
}

fn in_quickjs(source: &str) -> Option<Printed> {
    let runtime = rquickjs::Runtime::new().ok()?;
    runtime.set_memory_limit(256 << 20);
    let context = rquickjs::Context::full(&runtime).ok()?;
    let lines = Rc::new(RefCell::new(Vec::new()));
    let threw = context.with(|context| {
        let sink = Rc::clone(&lines);
        let print =
            rquickjs::Function::new(context.clone(), move |text: String| sink.borrow_mut().push(text))
                .ok()?;
        context.globals().set("print", print).ok()?;
        let script = format!("'use strict';\nconst console = {{ log: print }}, CC = (prompt) => 'answer to ' + prompt;\n{source}");
        Some(context.eval::<(), _>(script).is_err())
    })?;
    // An exception of the script ends the program before its jobs; an exception of a job does not.
    while !threw && runtime.is_job_pending() {
        drop(runtime.execute_pending_job());
    }
    let lines = lines.take();
    Some(Printed { lines, threw })
}

#[test]
fn random_programs_print_the_same_as_in_quickjs() {
    let mut compared = 0;
    for seed in 1..=400 {
        let source = crate::programs::program(seed);
        let Some(ours) = in_cvm(&source) else { continue };
        let Some(theirs) = in_quickjs(&source) else { continue };
        let different = ours.lines.iter().zip(&theirs.lines).position(|(ours, theirs)| ours != theirs);
        let at = different.unwrap_or(ours.lines.len().min(theirs.lines.len()));
        assert!(
            ours == theirs,
            "{source}\nseed {seed}, line {at}: here {:?}, there {:?}; thrown here {}, there {}",
            ours.lines.get(at),
            theirs.lines.get(at),
            ours.threw,
            theirs.threw
        );
        compared += 1;
    }
    assert!(compared > 300, "only {compared} programs were compared");
}
