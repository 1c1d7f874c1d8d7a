//! States of released generations load, continue and end as before; their stored form stays the same.
//!
//! `golden/README.md` describes the files and when they may be rewritten.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Once;
use vm_system_cvm::{
    CompileOptions, CompiledProgram, HostResult, ItemAnswer, ItemKind, PauseAnswer, RunOutcome, StateConfig,
    VmLimits, VmPage, VmState, compile, resume_host, resume_item, resume_pause, run,
};

/// Set to `write` to rewrite the files of the newest generation, to `packs` to write those of [`PACKS`] that are missing.
const WRITE: &str = "CVM_GOLDEN";

/// States in the form that they have since there are packs, of the generations that were released before.
const PACKS: &str = "packs";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Files of a folder with this extension, sorted.
fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("the golden files are there").flatten();
    let mut list: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
    list.sort();
    list
}

/// The folders of all generations.
fn generations() -> Vec<PathBuf> {
    static WRITTEN: Once = Once::new();
    WRITTEN.call_once(|| {
        if std::env::var(WRITE).is_ok_and(|word| word == "write") {
            for source in files(&folder(), "js") {
                write(&source);
            }
        }
    });
    let entries = std::fs::read_dir(folder()).expect("the golden files are there").flatten();
    let mut list: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    list.sort();
    list
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Pages in one file: number, length, bytes.
fn joined(pages: &[VmPage]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for page in pages.iter().filter(|p| !p.bytes.is_empty()) {
        bytes.extend_from_slice(&page.number.to_le_bytes());
        bytes.extend_from_slice(&(page.bytes.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&page.bytes);
    }
    bytes
}

fn split(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut pages = Vec::new();
    while let Some((header, rest)) = bytes.split_at_checked(12) {
        let number = u64::from_le_bytes(header[..8].try_into().expect("eight bytes"));
        let length = u32::from_le_bytes(header[8..].try_into().expect("four bytes")) as usize;
        pages.push((number, &rest[..length]));
        bytes = &rest[length..];
    }
    pages
}

/// The output of a run.
#[derive(Default)]
struct Shown {
    lines: Vec<String>,
    /// Items that were made since the last stop: slices end anywhere between them and the console's lines
    made: Vec<String>,
}

impl Shown {
    fn note(&mut self, state: &mut VmState) {
        self.lines.extend(state.take_output().into_iter().map(|line| line.text));
        let items = state.take_new_items().into_iter();
        self.made.extend(items.map(|item| format!("+ {} {:?}", item.number, item.request)));
    }
}

/// Resumes a waiting state. `Some` if the program has ended: its end as text.
fn answer(
    program: &CompiledProgram,
    state: &mut VmState,
    outcome: RunOutcome,
    shown: &mut Shown,
) -> Option<String> {
    shown.note(state);
    let Shown { lines: shown, made } = shown;
    shown.append(made);
    match outcome {
        RunOutcome::Pause { prompt, options } => {
            shown.push(format!("? {prompt} {}", options.unwrap_or_default()));
            assert!(resume_pause(program, state, &PauseAnswer::Text(format!("<{prompt}>"))));
            None
        }
        RunOutcome::Host { name, args } => {
            shown.push(format!("! {name} {args}"));
            assert!(resume_host(program, state, &HostResult::Json("\"of the host\"".to_owned())));
            None
        }
        RunOutcome::Wait { rejections } => {
            shown.extend(rejections);
            // The newest: the state has no requests, so the answers follow from the numbers.
            let item = *state.open_items().last().expect("an item is pending");
            shown.push(format!("= {item:?}"));
            let settled = match item.kind {
                ItemKind::Question => ItemAnswer::Answer(PauseAnswer::Text(format!("<{}>", item.number))),
                ItemKind::Timer => ItemAnswer::Elapsed,
                ItemKind::Event => ItemAnswer::Answer(PauseAnswer::Json(format!("[{}]", item.number))),
            };
            assert!(resume_item(program, state, item.number, &settled));
            None
        }
        RunOutcome::Done { json, .. } => {
            let open = state.open_items();
            let abandoned = if open.is_empty() { String::new() } else { format!(" {open:?}") };
            Some(format!("=> {json}{abandoned}"))
        }
        other => Some(format!("{other:?}")),
    }
}

/// All output of a state until it ends.
fn drive(program: &CompiledProgram, state: &mut VmState) -> String {
    let mut shown = Shown::default();
    loop {
        let outcome = run(program, state, u64::MAX);
        if let Some(end) = answer(program, state, outcome, &mut shown) {
            shown.lines.push(end);
            return shown.lines.join("\n") + "\n";
        }
    }
}

/// The same with a checkpoint every few instructions: what it writes is added to the stored pages, and the state is loaded again.
fn drive_stored(program: &CompiledProgram, stored: &[u8]) -> String {
    let mut pages: BTreeMap<u64, Vec<u8>> =
        split(stored).into_iter().map(|(number, bytes)| (number, bytes.to_vec())).collect();
    let mut shown = Shown::default();
    loop {
        let all = pages.iter().map(|(number, bytes)| (*number, bytes.as_slice()));
        let mut state = VmState::restore(program, VmLimits::default(), all).expect("its own pages");
        let outcome = run(program, &mut state, 150);
        if outcome == RunOutcome::OutOfFuel {
            shown.note(&mut state);
        } else if let Some(end) = answer(program, &mut state, outcome, &mut shown) {
            shown.lines.push(end);
            return shown.lines.join("\n") + "\n";
        }
        let last = state.checkpoint_number();
        for page in state.pages_since(program, last).pages {
            if page.bytes.is_empty() {
                assert!(pages.remove(&page.number).is_some(), "page {:#x} is not there", page.number);
            } else {
                pages.insert(page.number, page.bytes);
            }
        }
    }
}

/// Runs a program to the stored pause: the third for most programs, so that earlier answers are in the state.
fn at_its_pause(name: &str, program: &CompiledProgram) -> VmState {
    let config = StateConfig {
        seed: 7,
        args: vec!["one".to_owned(), "zwei ü".to_owned()],
        env: vec![("HOME".to_owned(), "/nowhere".to_owned())],
        ..StateConfig::default()
    };
    let mut state = VmState::new(program, &config);
    state.set_time(1_700_000_000_000.0);
    let pauses = match name {
        "values" | "pages" | "host" => 1,
        "failed" | "done" => u32::MAX,
        _ => 3,
    };
    for pause in 1.. {
        let outcome = run(program, &mut state, u64::MAX);
        if pause == pauses || answer(program, &mut state, outcome, &mut Shown::default()).is_some() {
            break;
        }
    }
    state
}

/// Writes the files of the newest generation with items and of the newest one without; `items.js` needs them.
fn write(source: &Path) {
    let name = source.file_stem().and_then(|n| n.to_str()).expect("a name");
    for items in [false, true].into_iter().filter(|items| *items || name != "items") {
        write_for(source, name, items);
    }
}

fn write_for(source: &Path, name: &str, items: bool) {
    let text = String::from_utf8(read(source)).expect("UTF-8");
    let options = CompileOptions { filename: format!("{name}.js"), items, ..CompileOptions::default() };
    let program = compile(&text, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
    let dir = folder().join(program.generation().to_string());
    std::fs::create_dir_all(&dir).expect("the test folder is writable");
    let mut state = at_its_pause(name, &program);
    let state_bytes = joined(&state.pages_since(&program, 0).pages);
    let shown = drive(&program, &mut state);
    for (extension, bytes) in
        [("program", program.encode()), ("state", state_bytes), ("out", shown.into_bytes())]
    {
        std::fs::write(dir.join(name).with_extension(extension), bytes).expect("the test folder is writable");
    }
}

#[test]
fn stored_states_of_every_generation_continue_and_end_as_before() {
    let mut compared = 0;
    for dir in generations() {
        for path in files(&dir, "program") {
            let what = path.display();
            let program = CompiledProgram::decode(&read(&path)).unwrap_or_else(|e| panic!("{what}: {e}"));
            let expected = String::from_utf8(read(&path.with_extension("out"))).expect("UTF-8");
            for form in ["state", PACKS].map(|extension| path.with_extension(extension)) {
                if !form.exists() {
                    continue;
                }
                let stored = read(&form);
                let mut state = VmState::restore(&program, VmLimits::default(), split(&stored))
                    .unwrap_or_else(|e| panic!("{}: {e}", form.display()));
                assert_eq!(drive(&program, &mut state), expected, "{}", form.display());
                assert_eq!(drive_stored(&program, &stored), expected, "{}", form.display());
            }
            compared += 1;
        }
    }
    assert!(
        compared >= files(&folder(), "js").len(),
        "only {compared} states: {WRITE}=write makes those of a new generation"
    );
}

#[test]
fn stored_bytes_are_written_again_unchanged() {
    for dir in generations() {
        for path in files(&dir, "program") {
            let what = path.display();
            let bytes = read(&path);
            let program = CompiledProgram::decode(&bytes).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(program.encode() == bytes, "{what}");
            let stored = read(&path.with_extension("state"));
            let mut state = VmState::restore(&program, VmLimits::default(), split(&stored))
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            let again = joined(&state.pages_since(&program, 0).pages);
            // The oldest generations have states of single pages, which are written as packs.
            let packs = path.with_extension(PACKS);
            if std::env::var(WRITE).is_ok_and(|word| word == PACKS) && !packs.exists() {
                std::fs::write(&packs, &again).expect("the test folder is writable");
            }
            let stored = if packs.exists() { read(&packs) } else { stored };
            let (old, new) = (split(&stored), split(&again));
            let numbers = |pages: &[(u64, &[u8])]| pages.iter().map(|p| p.0).collect::<Vec<_>>();
            assert_eq!(numbers(&old), numbers(&new), "{what}");
            for (old, new) in old.iter().zip(&new) {
                if old.0 == 0 {
                    // The number of the checkpoint may differ, and so may the checksum.
                    let differ = old.1[11..].iter().zip(&new.1[11..]).filter(|(a, b)| a != b).count();
                    assert!(old.1.len() == new.1.len() && differ <= 1, "{what}");
                } else {
                    assert!(old.1 == new.1, "{what}: page {:#x}", old.0);
                }
            }
        }
    }
}

#[test]
fn a_state_of_another_program_is_refused() {
    let dir = generations().pop().expect("a generation");
    let (one, other) = (dir.join("done.program"), dir.join("failed.state"));
    let program = CompiledProgram::decode(&read(&one)).expect("a stored program");
    let stored = read(&other);
    let refused =
        VmState::restore(&program, VmLimits::default(), split(&stored)).expect_err("another program's state");
    assert_eq!(refused.to_string(), "the state belongs to another program");
}

#[test]
fn a_program_of_a_later_release_is_refused_by_name() {
    let dir = generations().pop().expect("a generation");
    let mut bytes = read(&dir.join("done.program"));
    // The generation is the first number after the header.
    bytes[11] = 99;
    seal(&mut bytes);
    let refused = CompiledProgram::decode(&bytes).expect_err("no such generation");
    assert!(refused.to_string().contains("generation 99"), "{refused}");
}

/// Corrects the header of a changed program.
fn seal(bytes: &mut [u8]) {
    hostile::seal(0, bytes);
}

#[allow(dead_code, reason = "the other checks are those of hostile_bytes")]
#[path = "common/hostile.rs"]
mod hostile;
