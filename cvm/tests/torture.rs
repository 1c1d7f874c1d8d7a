//! Every language test plainly and under torture: the state is stored as pages, verified and restored every few instructions,
//! and the output must be the same.

#![allow(clippy::format_push_string, reason = "the record of a run grows line by line")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vm_system_cvm::{
    CompileOptions, CompiledProgram, HostResult, PauseAnswer, RunOutcome, StateConfig, VmLimits, VmState,
    compile, resume_host, resume_pause, run,
};

/// The record of a run: console lines, pauses, and its end.
fn record(program: &CompiledProgram, step: Option<u64>) -> String {
    let mut state = VmState::new(program, &StateConfig::default());
    let mut pages: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut checkpoint = 0;
    let mut shown = String::new();
    loop {
        let outcome = run(program, &mut state, step.unwrap_or(u64::MAX));
        for line in state.take_output() {
            shown.push_str(&line.text);
            shown.push('\n');
        }
        let mut ended = false;
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
            RunOutcome::Done { text, .. } => {
                shown.push_str(&format!("=> {text}\n"));
                ended = true;
            }
            RunOutcome::Throw(text) => {
                shown.push_str(&format!("uncaught {text}\n"));
                ended = true;
            }
            other => {
                shown.push_str(&format!("{other:?}\n"));
                ended = true;
            }
        }
        if ended {
            return shown;
        }
        if step.is_some() {
            let written = state.pages_since(program, checkpoint);
            checkpoint = written.number;
            for page in written.pages {
                if page.bytes.is_empty() {
                    pages.remove(&page.number);
                } else {
                    pages.insert(page.number, page.bytes);
                }
            }
            let all = pages.iter().map(|(n, b)| (*n, b.as_slice()));
            match VmState::restore(program, VmLimits::default(), all) {
                Ok(restored) => {
                    // The accounted bytes are part of the state: the collector runs at the same moments.
                    assert_eq!(restored.heap_bytes(), state.heap_bytes(), "accounted bytes\n{shown}");
                    state = restored;
                }
                Err(error) => return format!("{shown}restore: {error}\n"),
            }
        }
    }
}

fn files(under: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(under);
    let mut list: Vec<PathBuf> = std::fs::read_dir(dir)
        .map(|entries| entries.flatten().map(|e| e.path()).collect())
        .unwrap_or_default();
    list.retain(|p| p.extension().is_some_and(|e| e == "js" || e == "ts"));
    list.sort();
    list
}

fn program_of(path: &Path) -> CompiledProgram {
    let source = std::fs::read_to_string(path).expect("a test file that was just listed");
    let typescript = path.extension().is_some_and(|e| e == "ts");
    match compile(
        &source,
        &CompileOptions { filename: "test.js".to_owned(), typescript, plain_script: false },
    ) {
        Ok(program) => program,
        Err(errors) => panic!("{}: {errors}", path.display()),
    }
}

#[test]
fn language_tests_have_their_expected_output() {
    for path in files("lang") {
        let shown = record(&program_of(&path), None);
        if std::env::var_os("CVM_BLESS").is_some() {
            std::fs::write(path.with_extension("out"), &shown).expect("the test directory is writable");
        }
        let expected = std::fs::read_to_string(path.with_extension("out")).unwrap_or_default();
        assert_eq!(shown, expected, "{}", path.display());
    }
}

/// Most loads of one run; longer programs are saved and loaded every 7 and 100 instructions only, and the test prints that. With
/// `VM_SYSTEM_TORTURE` set (`.ci/long`) no interval is left out.
const MOST_LOADS: u64 = 15_000;

/// Instructions of a whole run; pauses are answered.
fn steps_of(program: &CompiledProgram) -> u64 {
    let mut state = VmState::new(program, &StateConfig::default());
    loop {
        match run(program, &mut state, u64::MAX) {
            RunOutcome::Pause { prompt, .. } => {
                resume_pause(program, &mut state, &PauseAnswer::Text(format!("answer to {prompt}")));
            }
            RunOutcome::Host { .. } => {
                resume_host(program, &mut state, &HostResult::Json("\"file text\"".to_owned()));
            }
            _ => return state.steps(),
        }
    }
}

#[test]
fn language_tests_are_the_same_when_the_state_is_saved_and_loaded_every_few_instructions() {
    let most = if std::env::var_os("VM_SYSTEM_TORTURE").is_some() { u64::MAX } else { MOST_LOADS };
    for path in files("lang") {
        let program = program_of(&path);
        let plain = record(&program, None);
        for step in [1, 7, 100] {
            let loads = steps_of(&program) / step;
            if loads > most {
                vm_system_testkit::skip(
                    "torture",
                    &format!("{} every {step}: {loads} loads", path.display()),
                );
                continue;
            }
            assert_eq!(record(&program, Some(step)), plain, "{} every {step}", path.display());
        }
    }
}

#[test]
fn programs_are_unchanged_by_encoding_and_decoding() {
    for path in files("lang") {
        let program = program_of(&path);
        program.verify().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let bytes = program.encode();
        let again = CompiledProgram::decode(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(again.encode(), bytes, "{}", path.display());
        // The test above has the shorter intervals: only the program differs here.
        assert_eq!(record(&again, Some(100)), record(&program, None), "{}", path.display());
    }
}
