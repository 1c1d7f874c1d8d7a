//! Checks of hostile bytes: the same three for the fuzz targets and for the bounded tests. Each must return
//! without a panic and within its limits, whatever the bytes are.

use vm_system_cvm::{
    CompileOptions, CompiledProgram, HostResult, ItemAnswer, PauseAnswer, RunOutcome, SourceFile,
    StateConfig, VmLimits, VmState, candidates, compile, compile_files, imports,
};

/// Bytes of the header before the body: magic, version, length, checksum.
pub(crate) const HEADER: usize = 11;

/// Limits of a hostile program.
fn limits() -> VmLimits {
    VmLimits {
        heap_bytes: 8 << 20,
        stack_depth: 1000,
        string_units: 1 << 20,
        steps: 200_000,
        output_bytes: 1 << 20,
        pending_items: 50,
    }
}

/// The checksum of a page or program, so that changed bytes pass the check.
fn checksum(number: u64, body: &[u8]) -> u32 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325 ^ number;
    for chunk in body.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }
    hash = (hash ^ body.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash ^ (hash >> 32)) as u32
}

/// Corrects length and checksum of the header.
pub(crate) fn seal(number: u64, bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let length = (bytes.len() - HEADER) as u32;
    let sum = checksum(number, &bytes[HEADER..]);
    bytes[3..7].copy_from_slice(&length.to_le_bytes());
    bytes[7..11].copy_from_slice(&sum.to_le_bytes());
}

/// Changes bytes after the first `from` in one of the ways that fuzzers use: operation, position (two bytes), new value.
pub(crate) fn edit(bytes: &mut Vec<u8>, from: usize, [what, low, high, with]: [u8; 4]) {
    if bytes.len() <= from {
        return;
    }
    let at = from + usize::from(u16::from_le_bytes([low, high])) % (bytes.len() - from);
    match what % 6 {
        0 => bytes[at] = with,
        1 => bytes[at] = bytes[at].wrapping_add(with),
        2 => bytes[at] ^= 1 << (with % 8),
        3 => bytes.insert(at, with),
        4 => drop(bytes.drain(at..(at + 1 + usize::from(with % 8)).min(bytes.len()))),
        _ => {
            let part = bytes[at..(at + 1 + usize::from(with % 16)).min(bytes.len())].to_vec();
            bytes.splice(at..at, part);
        }
    }
}

/// Names of the files that a text may have after its first one, each behind a form feed.
const FILES: [&str; 3] = ["a.ts", "b.js", "c.json"];

/// Compiles text as JavaScript and as TypeScript. A compiled program must be unchanged by storing it, and run within its limits.
pub(crate) fn check_source(text: &str) {
    let mut ran = false;
    let mut parts = text.split('\u{c}');
    let text = parts.next().unwrap_or_default();
    let file = |(name, text): (&str, &str)| SourceFile { name: name.to_owned(), text: text.to_owned() };
    let others: Vec<SourceFile> = FILES.into_iter().zip(parts).map(file).collect();
    let paths: Vec<String> =
        imports(&file(("program.js", text))).into_iter().map(|one| one.specifier).collect();
    for path in paths {
        assert!(candidates("program.js", &path).map_or(true, |names| !names.is_empty()), "{path}");
    }
    for typescript in [false, true] {
        let options = CompileOptions { typescript, items: !typescript, ..CompileOptions::default() };
        match compile_files(text, &others, &options) {
            Ok(program) => {
                let again = CompiledProgram::decode(&program.encode());
                assert!(again.is_ok(), "a compiled program must decode: {:?}\n{text}", again.err());
                if !std::mem::replace(&mut ran, true) {
                    run_from_start(&program);
                }
            }
            Err(errors) => assert!(!errors.0.is_empty(), "a refusal has a reason"),
        }
    }
}

fn run_from_start(program: &CompiledProgram) {
    let state = VmState::new(program, &StateConfig { limits: limits(), ..StateConfig::default() });
    drive(program, state, 0);
}

/// Decodes a program; an accepted program must run within its limits.
pub(crate) fn check_program(bytes: &[u8]) {
    if let Ok(program) = CompiledProgram::decode(bytes) {
        run_from_start(&program);
    }
}

/// A sort keeps its progress as numbers in the locals of its frame. Only its own steps say which numbers belong together, so they check
/// them each time, and the verifier does not.
const SORT: &str = "the state of a sort";

/// The outcome of the check of a state.
pub(crate) enum Checked {
    /// It was not restored.
    Refused,
    /// It ran to an end, or as long as it was let.
    Ran,
    /// It was restored, and the interpreter found it invalid.
    Invalid(&'static str),
}

/// Restores a state; an accepted state must run within its limits with answers of each kind, and can be stored and restored again.
pub(crate) fn check_pages(program: &CompiledProgram, pages: &[(u64, Vec<u8>)]) -> Checked {
    let mut result = Checked::Refused;
    for kind in 0..ANSWERS {
        let pages = pages.iter().map(|(number, bytes)| (*number, bytes.as_slice()));
        let Ok(state) = VmState::restore(program, limits(), pages) else { return Checked::Refused };
        match drive(program, state, kind) {
            None | Some(SORT) => result = Checked::Ran,
            Some(what) => return Checked::Invalid(what),
        }
    }
    result
}

/// Kinds of answers.
const ANSWERS: usize = 3;

/// Answers the request for which a program waits; false if the program does not take the answer.
fn answer(program: &CompiledProgram, state: &mut VmState, outcome: &RunOutcome, kind: usize) -> bool {
    let text = || "z".to_owned();
    if matches!(outcome, RunOutcome::Wait { .. }) {
        let open = state.open_items();
        let Some(item) = open.get(kind % open.len().max(1)) else { return false };
        let settled = [
            ItemAnswer::Elapsed,
            ItemAnswer::Answer(PauseAnswer::Json("{\"then\":[1]}".to_owned())),
            ItemAnswer::Answer(PauseAnswer::Wrong(text())),
        ];
        // Of the first two one fits each kind.
        return settled
            .iter()
            .cycle()
            .skip(kind)
            .take(settled.len())
            .any(|settled| vm_system_cvm::resume_item(program, state, item.number, settled));
    }
    if matches!(outcome, RunOutcome::Pause { .. }) {
        let answer = match kind {
            0 => PauseAnswer::Json("[1]".to_owned()),
            1 => PauseAnswer::Text(text()),
            _ => PauseAnswer::Timeout(text()),
        };
        return vm_system_cvm::resume_pause(program, state, &answer);
    }
    let result = match kind {
        0 => HostResult::Json("{\"a\":[\"b\"]}".to_owned()),
        1 => HostResult::Error(text()),
        _ => HostResult::Failed { code: text(), message: text() },
    };
    vm_system_cvm::resume_host(program, state, &result)
}

/// Runs to the end, answering every pause and host call; then stores and restores the ended state. The result is what the interpreter
/// found invalid.
fn drive(program: &CompiledProgram, mut state: VmState, kind: usize) -> Option<&'static str> {
    for turn in 0..20 {
        let outcome = vm_system_cvm::run(program, &mut state, 20_000);
        // Of what is shown only its size is bounded: the state may have any content.
        drop(vm_system_cvm::frames(program, &mut state, 20));
        drop(state.take_new_items());
        match &outcome {
            RunOutcome::Pause { .. } | RunOutcome::Host { .. } | RunOutcome::Wait { .. } => {
                if !answer(program, &mut state, &outcome, kind + turn / 4) {
                    return Some("a request that takes no answer");
                }
            }
            RunOutcome::OutOfFuel => {}
            RunOutcome::Corrupt(what) => return Some(what),
            RunOutcome::Done { .. } | RunOutcome::Throw(_) | RunOutcome::Limit(_) => break,
        }
    }
    assert!(state.heap_bytes() < 64 << 20, "the heap is bounded");
    let checkpoint = state.pages_since(program, 0);
    let pages = checkpoint.pages.iter().map(|page| (page.number, page.bytes.as_slice()));
    // An invalid state may be refused now, but it must not panic.
    drop(VmState::restore(program, limits(), pages));
    None
}

/// A program with most kinds of cells and frames in its state at its first pause.
pub(crate) const RICH: &str = r"
const map = new Map([['a', 1], [{}, 2]]), set = new Set([1, 'x']), big = 12345678901234567890n, date = new Date(5);
const symbol = Symbol('s'), regexp = /a(b)+/giu, nested = { list: [1, , 'three', [4]], get x() { return this.list; } };
class Base { #p = 1; static s = 2; get p() { return this.#p; } } class Derived extends Base { constructor() { super(); this.q = () => this; } }
function* generate() { try { yield 1; yield CC('inside'); } finally { nested.done = true; } }
const running = generate(); running.next();
const promise = new Promise((resolve) => { nested.resolve = resolve; }).then((value) => { nested.value = value; });
let text = 'x'; for (let i = 0; i < 40; i++) text += 'piece' + i;
const bound = nested.resolve.bind(null, 7), proxy = new Proxy({}, { get: (target, key) => String(key) });
async function later() { const got = await promise; return [got, new Derived().p]; }
function main() {
  const local = [text, map, new Derived()];
  later();
  try { for (const item of [3, 1, 2].sort((a, b) => (CC('compare ' + a), a - b))) local.push(item); } catch (error) { local.push(error); }
  bound(); return [...running, proxy.key, local.length, String(date), JSON.stringify(nested.list)];
}";

/// A program that waits for items in several functions, and pauses while they are pending.
pub(crate) const ITEMS: &str = r"
const held = [CC.async('a'), sleep(5), waitFor('e', { timeout_ms: 3, default: null })];
async function* each() { for (const one of held) yield await one; }
const gone = Promise.reject(new Error('gone'));
async function race(list) { try { return await Promise.race(list.map(async (one, i) => [i, await one])); } finally { await sleep(1); } }
async function main() {
  const all = Promise.all([race(held), race([held[2]]), held[1].then((value) => CC('inside ' + value))]), list = [];
  for await (const one of each()) list.push(one);
  try { await gone; } catch (error) { list.push(String(error), await Promise.any([gone, all, CC.async('b')])); }
  return [list, await all];
}";

/// Programs that pause in complex states, the program above first.
pub(crate) const PAUSING: &[&str] = &[
    "const b = new ArrayBuffer(700, { maxByteLength: 4000 }), u = new Uint8Array(b), w = new Uint16Array(b, 4, 8), v = new DataView(b, 2), \
     g = new BigInt64Array([1n, -5n]), d = new TextDecoder(); d.decode(u.fill(226, 9), { stream: true }); CC('bytes'); b.resize(900); \
     u.set(w, 3); u.sort(); v.setFloat64(1, 2.5); for (const x of g) u[1] += Number(x); console.log(u, w, v, g, d.decode(w), u.slice(1, 5), \
     u.indexOf(7), structuredClone(w), u.toSorted((x, y) => y - x), w.join(), u.subarray(1).reverse(), b.transfer(5), new Float32Array(u));",
    RICH,
    "class Base { #p = 1; get v() { return this.#p } inc() { this.#p++; return this } } \
     class D extends Base { constructor(x) { super(); this.x = x } async am() { await null; return this.inc().v } \
     *[Symbol.iterator]() { yield this.x; yield CC('it') } } const d = new D({ a: [1, , 3], gen: (function* () { let i = 0; for (;;) yield i++ })() }); \
     d.x.gen.next(); let n = 0; const fns = [1, 2].map((i) => () => { n += i; return CC('f' + i) + n }); \
     async function* ag() { try { for (let i = 0; i < 3; i++) { await null; yield CC('ag' + i) } } finally { n++; await null } } \
     async function main() { const out = [fns[0]()]; for await (const x of ag()) out.push(x, d.x.gen.next().value); \
     out.push(...[...d].map(String), await d.am(), fns[1]()); return out }",
    ITEMS,
    include_str!("../golden/items.js"),
    include_str!("../golden/async.js"),
    include_str!("../golden/finally.js"),
    include_str!("../golden/generator.js"),
    include_str!("../golden/getter.js"),
    include_str!("../golden/host.js"),
    include_str!("../golden/map_callback.js"),
    include_str!("../golden/sort.js"),
    include_str!("../golden/values.js"),
];

/// Pages by number.
pub(crate) type Pages = Vec<(u64, Vec<u8>)>;

/// A program and the pages of its state at the first pause.
pub(crate) fn paused(source: &str) -> Option<(CompiledProgram, Pages)> {
    let (program, mut states) = waiting_states(source, 1)?;
    Some((program, states.pop()?))
}

/// A program and the pages of its states at its first `most` pauses, host calls and waits, of which there is at least one.
pub(crate) fn waiting_states(source: &str, most: usize) -> Option<(CompiledProgram, Vec<Pages>)> {
    // Programs that need no items have none: both forms of states are checked.
    let items = source.contains("sleep(");
    let program = compile(source, &CompileOptions { items, ..CompileOptions::default() }).ok()?;
    let mut state = VmState::new(&program, &StateConfig { limits: limits(), ..StateConfig::default() });
    let mut found = Vec::new();
    while found.len() < most {
        let outcome = vm_system_cvm::run(&program, &mut state, u64::MAX);
        let (RunOutcome::Pause { .. } | RunOutcome::Host { .. } | RunOutcome::Wait { .. }) = &outcome else {
            break;
        };
        let pages = state.pages_since(&program, 0).pages;
        found.push(pages.into_iter().map(|page| (page.number, page.bytes)).collect());
        answer(&program, &mut state, &outcome, 1);
    }
    (!found.is_empty()).then_some((program, found))
}
