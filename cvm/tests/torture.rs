//! Every language test plainly and under torture: the state is stored as pages, verified and restored every few instructions,
//! and the output must be the same.

#![allow(clippy::format_push_string, reason = "the record of a run grows line by line")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vm_system_cvm::{
    CompileOptions, CompiledProgram, HostResult, PauseAnswer, RunOutcome, StateConfig, VmLimits, VmState,
    compile, resume_host, resume_item, resume_pause, run,
};

#[allow(dead_code, reason = "only the answers to items are those of the random programs")]
#[path = "common/hosted.rs"]
mod hosted;

/// The record of a run: console lines, pauses, and its end.
fn record(program: &CompiledProgram, step: Option<u64>) -> String {
    record_and_steps(program, step).0
}

/// The same with the number of instructions.
fn record_and_steps(program: &CompiledProgram, step: Option<u64>) -> (String, u64) {
    let mut state = VmState::new(program, &StateConfig::default());
    let mut pages: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut checkpoint = 0;
    let mut shown = String::new();
    // Items that were made since the last stop: slices end anywhere between them and the console's lines.
    let (mut items, mut made) = (BTreeMap::new(), String::new());
    loop {
        let outcome = run(program, &mut state, step.unwrap_or(u64::MAX));
        for line in state.take_output() {
            shown.push_str(&line.text);
            shown.push('\n');
        }
        for item in state.take_new_items() {
            made.push_str(&format!("+ {} {:?}\n", item.number, item.request));
            items.insert(item.number, item.request);
        }
        if outcome != RunOutcome::OutOfFuel {
            shown.push_str(&std::mem::take(&mut made));
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
            RunOutcome::Wait { rejections } => {
                for text in rejections {
                    shown.push_str(&format!("rejected {text}\n"));
                }
                let open: Vec<u64> = state.open_items().iter().map(|item| item.number).collect();
                // The newest and the oldest in turn.
                let number = if open.len().is_multiple_of(2) { open[open.len() - 1] } else { open[0] };
                shown.push_str(&format!("wait {open:?} = {number}\n"));
                let request = items.remove(&number).expect("its request was returned");
                assert!(resume_item(program, &mut state, number, &hosted::settlement(&request)));
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
            let open = state.open_items();
            if !open.is_empty() {
                shown.push_str(&format!("abandoned {open:?}\n"));
            }
            return (shown, state.steps());
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
                Err(error) => return (format!("{shown}restore: {error}\n"), state.steps()),
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

/// The program of a file, as those that can have items.
fn program_of(path: &Path) -> CompiledProgram {
    compiled(path, true)
}

fn compiled(path: &Path, items: bool) -> CompiledProgram {
    let source = std::fs::read_to_string(path).expect("a test file that was just listed");
    let typescript = path.extension().is_some_and(|e| e == "ts");
    let filename = "test.js".to_owned();
    match compile(&source, &CompileOptions { filename, typescript, plain_script: false, items }) {
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
        let needs_items = path.file_stem().is_some_and(|name| name.to_string_lossy().starts_with("items"));
        if !needs_items {
            assert_eq!(record(&compiled(&path, false), None), expected, "{} without items", path.display());
        }
    }
}

/// Most loads of one run; longer programs are saved and loaded every 7 and 100 instructions only, and the test prints that. With
/// `VM_SYSTEM_TORTURE` set (`.ci/long`) no interval is left out.
const MOST_LOADS: u64 = 15_000;

#[test]
fn language_tests_are_the_same_when_the_state_is_saved_and_loaded_every_few_instructions() {
    let most = if std::env::var_os("VM_SYSTEM_TORTURE").is_some() { u64::MAX } else { MOST_LOADS };
    for path in files("lang") {
        let program = program_of(&path);
        let (plain, steps) = record_and_steps(&program, None);
        for step in [1, 7, 100] {
            let loads = steps / step;
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
