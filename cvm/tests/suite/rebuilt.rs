//! Bytes that checkpoints store of values that a program builds anew at every step: what differs, and not the whole value.

use std::collections::BTreeMap;
use vm_system_cvm::{
    CompileOptions, CompiledProgram, PauseAnswer, RunOutcome, StateConfig, VmLimits, VmState, compile,
    resume_pause, run,
};

/// A program, the pages of its state as a store has them, and what was written to them.
struct Stored {
    program: CompiledProgram,
    state: VmState,
    pages: BTreeMap<u64, Vec<u8>>,
    checkpoint: u64,
    /// Pages of the last step: rows of a store
    rows: usize,
}

fn limits() -> VmLimits {
    VmLimits { heap_bytes: 256 << 20, ..VmLimits::default() }
}

impl Stored {
    fn new(source: &str) -> Self {
        let program = compile(source, &CompileOptions::default()).unwrap_or_else(|e| panic!("{source}\n{e}"));
        let state = VmState::new(&program, &StateConfig { limits: limits(), ..StateConfig::default() });
        Self { program, state, pages: BTreeMap::new(), checkpoint: 0, rows: 0 }
    }

    /// Runs to the next pause and stores; returns the bytes of the pages that were written.
    fn step(&mut self, answer: Option<&str>) -> usize {
        if let Some(answer) = answer {
            assert!(resume_pause(&self.program, &mut self.state, &PauseAnswer::Text(answer.to_owned())));
        }
        let outcome = run(&self.program, &mut self.state, u64::MAX);
        assert!(matches!(outcome, RunOutcome::Pause { .. }), "{outcome:?}");
        let written = self.state.pages_since(&self.program, self.checkpoint);
        self.checkpoint = written.number;
        self.rows = written.pages.len();
        let mut bytes = 0;
        for page in written.pages {
            bytes += page.bytes.len();
            if page.bytes.is_empty() {
                assert!(self.pages.remove(&page.number).is_some(), "page {:#x} is not there", page.number);
            } else {
                self.pages.insert(page.number, page.bytes);
            }
        }
        bytes
    }

    fn stored_bytes(&self) -> usize {
        self.pages.values().map(Vec::len).sum()
    }

    fn restored(&self) -> VmState {
        let pages = self.pages.iter().map(|(number, bytes)| (*number, bytes.as_slice()));
        VmState::restore(&self.program, limits(), pages).expect("its own pages")
    }
}

/// Letters that no other step has.
fn letters(step: usize, count: usize) -> String {
    let mut seed = step as u64 + 1;
    let letter = |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (seed >> 59) as u8 % 26)
    };
    (0..count).map(letter).collect()
}

/// Bytes of each step.
fn written(source: &str, steps: usize, answer: usize) -> (Stored, Vec<usize>) {
    let mut stored = Stored::new(source);
    stored.step(None);
    let bytes = (0..steps).map(|step| stored.step(Some(&letters(step, answer)))).collect();
    (stored, bytes)
}

fn mean(bytes: &[usize]) -> usize {
    bytes.iter().sum::<usize>() / bytes.len()
}

const HISTORY: &str = "function main() { let js = '[]'; for (;;) { const l = JSON.parse(js); const a = CC('q' + l.length); \
    if (a === 'stop') return l.length; l.push({ role: 'user', content: a }); js = JSON.stringify(l) } }";

#[test]
fn a_history_that_is_kept_as_json_text_writes_less_than_its_text_grows() {
    let (stored, bytes) = written(HISTORY, 1_000, 300);
    let (early, late) = (mean(&bytes[..50]), mean(&bytes[950..]));
    assert!(stored.rows <= 12, "{} pages in the last step", stored.rows);
    // 330 bytes a message: the text has 330 KB at the end.
    assert!(late < early + 330_000 / 3, "{early} bytes each of the first steps, {late} of the last ones");
}

#[test]
fn a_text_that_moves_writes_its_two_ends() {
    let source = "function main() { let s = 'x'.repeat(2e5); for (;;) s = s.slice(1) + CC('q') }";
    let (stored, bytes) = written(source, 1_000, 300);
    assert!(stored.stored_bytes() < 1 << 20, "{} bytes", stored.stored_bytes());
    assert!(mean(&bytes[950..]) < 40_000, "{}", mean(&bytes[950..]));
}

#[test]
fn a_moving_text_of_five_megabytes_writes_a_hundredth_of_it() {
    let source = "function main() { let s = ''; for (let i = 0; s.length < 5e6; i++) s += 'line ' + i * 7919 % 10007 + ', '; \
        for (;;) s = s.slice(1) + CC('q') }";
    let (_, bytes) = written(source, 10, 300);
    assert!(bytes.iter().all(|&bytes| bytes < 100_000), "{bytes:?}");
}

#[test]
fn stored_pages_stay_in_proportion_to_what_they_hold_and_are_the_state() {
    for source in [
        HISTORY,
        "const m = new Map(); let n = 0; for (;;) { const a = CC('q'); m.set(n++ % 97, a); if (n % 5 === 0) m.delete(n % 89); }",
        "let t = ''; for (let n = 0;; n++) { t += CC('q'); if (n % 40 === 0) t = t.slice(5000) + '\u{20ac}'; if (n % 300 === 0) t = ''; }",
        "const list = []; for (let n = 0;; n++) { list[n * 31 % 500] = { a: CC('q'), n }; if (n % 50 === 0) list.length = 100; }",
    ] {
        let mut stored = Stored::new(source);
        stored.step(None);
        for step in 0..400 {
            stored.step(Some(&letters(step, 10 + step * 7 % 900)));
            let restored = stored.restored();
            let whole: usize = stored
                .state
                .clone()
                .pages_since(&stored.program, 0)
                .pages
                .iter()
                .map(|p| p.bytes.len())
                .sum();
            let most = whole * 2 + (200 << 10);
            assert!(stored.stored_bytes() <= most, "{} bytes for {whole}: {source}", stored.stored_bytes());
            // Every second state goes on as it was loaded.
            if step % 2 == 0 {
                let all = |state: &VmState| state.clone().pages_since(&stored.program, 0).pages;
                assert!(all(&restored) == all(&stored.state), "step {step}: {source}");
                stored.state = restored;
            }
        }
    }
}
