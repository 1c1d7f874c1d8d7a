//! cvm compared with quickjs-ng: the speed of programs, and the cost of their state.
//!
//! `cargo run --release -p vm-system-benches --bin cvm`: a line per figure; the ratio is to quickjs-ng in the same run, with
//! rounds of both in turn.

// The peer: without it, the C code of `rquickjs-sys` would be linked, which is compiled without optimisation.
use vm_system_quickjs as _;

use anyhow::{Context as _, Result, bail};
use std::time::Instant;
use vm_system_benches::figure::{Figure, micros};
use vm_system_cvm::{
    CheckpointPages, CompileOptions, CompiledProgram, ItemAnswer, PauseAnswer, RunOutcome, StateConfig,
    VmLimits, VmState, compile, resume_item, run,
};

/// Rounds of each program and engine.
const ROUNDS: usize = 15;

/// The programs: name, source. Each stores its result in `result`.
const PROGRAMS: &[(&str, &str)] = &[
    ("fib(27)", "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); } var result = fib(27);"),
    ("10 000 000 additions", "let sum = 0; for (let i = 0; i < 10000000; i++) sum += i; var result = sum;"),
    (
        "3 000 000 property reads and writes",
        "const o = { a: 1, b: 2, c: 3 }; for (let i = 0; i < 1000000; i++) { o.a = o.b + o.c; } var result = o.a;",
    ),
    (
        "1 000 000 method calls",
        "class P { constructor(x) { this.x = x; } add(n) { this.x += n; return this; } } const p = new P(0); \
         for (let i = 0; i < 1000000; i++) p.add(i); var result = p.x;",
    ),
    (
        "text of 300 000 pieces",
        "let text = ''; for (let i = 0; i < 300000; i++) text += 'piece ' + i; var result = text.length;",
    ),
    (
        "sort 50 000 with a comparator",
        "let seed = 1; const list = []; for (let i = 0; i < 50000; i++) { seed = (seed * 16807) % 2147483647; list.push(seed); } \
         list.sort((a, b) => a - b); var result = list[100];",
    ),
    (
        "JSON 1 MB parse and stringify",
        "const items = []; for (let i = 0; i < 12000; i++) items.push({ id: i, name: 'item ' + i, tags: ['a', 'b'], nested: { x: i / 3 } }); \
         const text = JSON.stringify(items); var result = JSON.stringify(JSON.parse(text)).length;",
    ),
];

fn main() -> Result<()> {
    // Only the programs whose names contain the argument, if there is one.
    let only = std::env::args().nth(1).unwrap_or_default();
    for (name, source) in PROGRAMS.iter().filter(|(name, _)| name.contains(&only)) {
        speed(name, source)?;
    }
    if !only.is_empty() {
        return Ok(());
    }
    tiny_state()?;
    large_state()?;
    PENDING.into_iter().try_for_each(pending_set)
}

fn limits() -> VmLimits {
    VmLimits { heap_bytes: 1 << 30, ..VmLimits::default() }
}

fn start(source: &str) -> Result<(CompiledProgram, VmState)> {
    let program = compile(source, &CompileOptions::default())?;
    let state = VmState::new(&program, &StateConfig { limits: limits(), ..StateConfig::default() });
    Ok((program, state))
}

/// Runs to the end or to the next pause.
fn drive(program: &CompiledProgram, state: &mut VmState) -> Result<()> {
    match run(program, state, u64::MAX) {
        RunOutcome::Done { .. } | RunOutcome::Pause { .. } => Ok(()),
        other => bail!("the program ended with {other:?}"),
    }
}

fn speed(name: &str, source: &str) -> Result<()> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (program, mut state) = start(source)?;
        let begin = Instant::now();
        drive(&program, &mut state)?;
        ours.push(micros(begin.elapsed()));

        let runtime = rquickjs::Runtime::new()?;
        let context = rquickjs::Context::full(&runtime)?;
        let time = context.with(|context| -> rquickjs::Result<f64> {
            let begin = Instant::now();
            context.eval::<(), _>(format!("'use strict'; {source}"))?;
            Ok(micros(begin.elapsed()))
        });
        theirs.push(time.context("quickjs-ng could not run the program")?);
    }
    let peer = Figure::new("quickjs-ng", "us", theirs);
    Figure::new(format!("cvm {name}"), "us", ours).print(Some(&peer));
    Ok(())
}

/// Bytes of all pages.
fn bytes(checkpoint: &CheckpointPages) -> usize {
    checkpoint.pages.iter().map(|page| page.bytes.len()).sum()
}

fn restored(program: &CompiledProgram, checkpoint: &CheckpointPages) -> Result<VmState> {
    let pages = checkpoint.pages.iter().map(|page| (page.number, page.bytes.as_slice()));
    Ok(VmState::restore(program, limits(), pages)?)
}

/// A program that waits for its first answer.
fn tiny_state() -> Result<()> {
    let source = "function main() { const name = CC('your name?'); return 'hello ' + name; }";
    let (program, mut state) = start(source)?;
    drive(&program, &mut state)?;
    let checkpoint = state.pages_since(&program, 0);
    Figure::new("tiny paused state", "B ", vec![bytes(&checkpoint) as f64]).print(None);
    Figure::of_times("tiny state to pages", 1000, |_| drop(state.pages_since(&program, 0))).print(None);
    restored(&program, &checkpoint)?;
    Figure::of_times("tiny state from pages, verified", 1000, |_| drop(restored(&program, &checkpoint)))
        .print(None);
    Figure::of_times("compile the tiny program", 1000, |_| drop(compile(source, &CompileOptions::default())))
        .print(None);
    Ok(())
}

/// About 50 MB of objects and text; then ten objects change before each pause.
const LARGE: &str = "const list = []; for (let i = 0; i < 200000; i++) list.push({ id: i, name: 'object number ' + i, next: null }); \
    function main() { for (let round = 1;; round++) { CC('next'); for (let i = 0; i < 10; i++) list[i * 20000].id = -round; } }";

/// Rounds of storing and loading the large state, and of changing a little of it.
const LARGE_ROUNDS: usize = 5;
const CHANGES: usize = 200;

fn large_state() -> Result<()> {
    let (program, mut state) = start(LARGE)?;
    drive(&program, &mut state)?;
    let megabytes = state.heap_bytes() as f64 / 1e6;
    let mut all = state.pages_since(&program, 0);
    let stored = bytes(&all) as f64 / 1e6;
    Figure::new("large state, heap", "MB", vec![megabytes]).print(None);
    Figure::new("large state, all pages", "MB", vec![stored]).print(None);
    let (mut to_pages, mut from_pages) = (Vec::new(), Vec::new());
    for _ in 0..LARGE_ROUNDS {
        let begin = Instant::now();
        let pages = state.pages_since(&program, 0);
        to_pages.push(megabytes / begin.elapsed().as_secs_f64());
        all = pages;
        let begin = Instant::now();
        let second = restored(&program, &all)?;
        from_pages.push(megabytes / begin.elapsed().as_secs_f64());
        drop(second);
    }
    Figure::new("large state to pages", "MB of heap a second", to_pages).print(None);
    Figure::new("large state from pages, verified", "MB of heap a second", from_pages).print(None);
    few_changes(&program, state, &all)
}

/// Sizes of pending sets.
const PENDING: [usize; 3] = [10, 1_000, 10_000];
/// Answers that are measured: the first ones to the set.
const ANSWERS: usize = 1_000;

/// The cost of an answer to one of many pending items, with the jobs that follow and the checkpoint; the others stay pending.
fn pending_set(count: usize) -> Result<()> {
    let source = format!(
        "async function main() {{ await Promise.all(Array.from({{ length: {count} }}, (_, i) => CC.async('question ' + i))); }}"
    );
    let program = compile(&source, &CompileOptions { items: true, ..CompileOptions::default() })?;
    let mut state = VmState::new(&program, &StateConfig { limits: limits(), ..StateConfig::default() });
    let wait = |state: &mut VmState| match run(&program, state, u64::MAX) {
        RunOutcome::Wait { .. } => Ok(()),
        other => bail!("the program does not wait: {other:?}"),
    };
    wait(&mut state)?;
    let mut last = state.pages_since(&program, 0).number;
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    for item in state.open_items().iter().take((count - 1).min(ANSWERS)) {
        let answer = ItemAnswer::Answer(PauseAnswer::Text("answer".to_owned()));
        let begin = Instant::now();
        if !resume_item(&program, &mut state, item.number, &answer) {
            bail!("item {} is not pending", item.number);
        }
        wait(&mut state)?;
        let changed = state.pages_since(&program, last);
        times.push(micros(begin.elapsed()));
        last = changed.number;
        sizes.push(bytes(&changed) as f64);
    }
    Figure::new(format!("answer with {count} pending, time"), "us", times).print(None);
    Figure::new(format!("answer with {count} pending, bytes"), "B ", sizes).print(None);
    Ok(())
}

/// The cost of a checkpoint after changes of ten of 200 000 objects. The state is freshly loaded, and nothing as large is freed
/// during the measurement: the allocator's work for that would be counted too.
fn few_changes(program: &CompiledProgram, first: VmState, all: &CheckpointPages) -> Result<()> {
    let mut state = restored(program, all)?;
    let mut last = all.number;
    let (mut times, mut pages, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..CHANGES {
        let answer = PauseAnswer::Text(String::new());
        if !vm_system_cvm::resume_pause(program, &mut state, &answer) {
            bail!("the large program does not wait");
        }
        drive(program, &mut state)?;
        let begin = Instant::now();
        let changed = state.pages_since(program, last);
        times.push(micros(begin.elapsed()));
        last = changed.number;
        pages.push(changed.pages.len() as f64);
        sizes.push(bytes(&changed) as f64);
    }
    Figure::new("10 of 200 000 objects touched, time", "us", times).print(None);
    Figure::new("10 of 200 000 objects touched, pages", "  ", pages).print(None);
    Figure::new("10 of 200 000 objects touched, bytes", "B ", sizes).print(None);
    drop(first);
    Ok(())
}
