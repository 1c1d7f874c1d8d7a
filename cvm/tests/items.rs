//! Random programs with items: the same transcript whether the state stays in memory, is stored and restored when the program waits, or
//! every few instructions; and the same as in Node with the same answers in the same order.
//!
//! 200 programs, each with a random order of its answers; 2 500, and longer ones stored after each instruction, with `VM_SYSTEM_TORTURE`
//! set (`.ci/long`).

#[path = "common/hosted.rs"]
mod hosted;
#[path = "common/item_programs.rs"]
mod item_programs;

use hosted::{Hosted, Storing, transcript};
use item_programs::{ItemProgram, item_program};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};
use vm_system_cvm::{CompileOptions, CompiledProgram, VmLimits, compile};
use vm_system_testkit::SeededRandom;

fn is_long() -> bool {
    std::env::var_os("VM_SYSTEM_TORTURE").is_some()
}

fn seeds() -> u64 {
    if is_long() { 2_500 } else { 200 }
}

/// Most instructions of a program that is stored after each of them. Each is a load: a thousand take half a second.
fn most_stored() -> u64 {
    if is_long() { 4_000 } else { 1_200 }
}

fn compiled(source: &str) -> CompiledProgram {
    let options = CompileOptions { items: true, ..CompileOptions::default() };
    match compile(source, &options) {
        Ok(program) => program,
        Err(errors) => panic!("{source}\n{errors}"),
    }
}

/// A random order of answers, which notes what it chose.
fn random_order(seed: u64, chosen: &mut Vec<usize>) -> impl FnMut(&[u64]) -> usize {
    let mut random = SeededRandom::new(seed ^ 0xA5A5);
    move |open| {
        let choice = random.index(open.len());
        chosen.push(choice);
        choice
    }
}

fn in_order(program: &CompiledProgram, storing: Storing, choices: &[usize]) -> Vec<String> {
    let mut choices = choices.iter();
    transcript(program, storing, &mut |_| *choices.next().expect("as many stops as before"))
}

fn assert_same(source: &str, what: &str, one: &[String], other: &[String]) {
    let at =
        one.iter().zip(other).position(|(one, other)| one != other).unwrap_or(one.len().min(other.len()));
    assert!(
        one == other,
        "{source}\n{what}, line {at}: {:?}, {:?}\n{}",
        one.get(at),
        other.get(at),
        one.join("\n")
    );
}

#[test]
fn random_programs_are_the_same_when_they_are_stored_and_restored() {
    let (mut items, mut stored) = (0, 0);
    for seed in 1..=seeds() {
        let ItemProgram { source, .. } = item_program(seed);
        let program = compiled(&source);
        let mut chosen = Vec::new();
        let host = Hosted::new(&program, VmLimits::default());
        let (warm, steps) = host.finish(Storing::Warm, &mut random_order(seed, &mut chosen));
        items += chosen.len();
        assert_same(
            &source,
            &format!("seed {seed}: at stops"),
            &warm,
            &in_order(&program, Storing::AtStops, &chosen),
        );
        assert_same(
            &source,
            &format!("seed {seed}: every 97"),
            &warm,
            &in_order(&program, Storing::Every(97), &chosen),
        );
        if steps <= most_stored() {
            stored += 1;
            assert_same(
                &source,
                &format!("seed {seed}: every 1"),
                &warm,
                &in_order(&program, Storing::Every(1), &chosen),
            );
        }
    }
    assert!(items as u64 > seeds() * 4, "only {items} answers");
    assert!(stored as u64 > seeds() / 8, "only {stored} programs were stored after each instruction");
}

/// A stack is not compared: Node's has other names of files.
fn without_stack(lines: &[String]) -> Vec<String> {
    let head = |line: &String| line.split("\n    ").next().unwrap_or_default().to_owned();
    lines.iter().filter(|line| !line.starts_with("+ ")).map(head).collect()
}

fn in_node(cases: &serde_json::Value) -> Option<Vec<Vec<String>>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/items_in_node.cjs");
    let mut node =
        Command::new("node").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut input = node.stdin.take().expect("it is piped");
    let text = cases.to_string();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = node.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads its input");
    assert!(output.status.success(), "node: {}", output.status);
    Some(serde_json::from_slice(&output.stdout).expect("transcripts"))
}

#[test]
fn random_programs_are_the_same_in_node() {
    let (mut ours, mut cases) = (Vec::new(), Vec::new());
    for seed in 1..=seeds() {
        let ItemProgram { source, awaits } = item_program(seed);
        let mut chosen = Vec::new();
        let lines = transcript(&compiled(&source), Storing::Warm, &mut random_order(seed, &mut chosen));
        cases.push(serde_json::json!({ "source": source, "awaits": awaits, "choices": chosen }));
        ours.push(without_stack(&lines));
    }
    let Some(theirs) = in_node(&serde_json::Value::Array(cases.clone())) else {
        return vm_system_testkit::skip("node", "no node on this machine");
    };
    assert_eq!(theirs.len(), ours.len());
    for (seed, ((ours, theirs), case)) in (1..).zip(ours.iter().zip(&theirs).zip(&cases)) {
        let source = case["source"].as_str().expect("a text");
        assert_same(source, &format!("seed {seed}: here, in node"), ours, theirs);
    }
}

/// Programs with few items, for all orders of their answers, and how many different results these give.
const RACES: &[(&str, usize)] = &[
    ("const main = async () => Promise.race([CC.async('a'), CC.async('b'), waitFor('c')]);", 3),
    (
        "async function main() { const a = CC.async('a'), b = sleep(5), c = CC.async('c'); \
         return [await Promise.race([a, b]), await Promise.race([b.then(() => 'slept'), c]), await a]; }",
        4,
    ),
    (
        "async function main() { const list = ['a', 'fail', 'c'].map((name) => CC.async(name).catch((error) => error.message)); \
         const order = []; await Promise.all(list.map((promise) => promise.then((value) => order.push(value)))); return order; }",
        6,
    ),
    (
        "async function main() { try { return await Promise.any([CC.async('fail1'), CC.async('fail2'), CC.async('c')]); } \
         catch (error) { return error.errors.map(String); } }",
        1,
    ),
    (
        "async function main() { const order = []; const step = async (name) => { await sleep(1); order.push(name); await sleep(1); order.push(name); }; \
         await Promise.all([step('x'), step('y')]); return order; }",
        6,
    ),
    (
        "const first = await Promise.race([sleep(1).then(() => 'timer'), CC.async('a')]); \
         const all = await Promise.allSettled([CC.async('fail'), waitFor('e')]); function main() { return [first, all.map((one) => one.status)]; }",
        2,
    ),
];

/// Calls `each` with all sequences of choices: each run says how many items were open at each stop.
fn for_all_orders(mut each: impl FnMut(&mut dyn FnMut(&[u64]) -> usize)) -> usize {
    let mut choices: Vec<usize> = Vec::new();
    let mut orders = 0;
    loop {
        let (mut at, mut widths) = (0, Vec::new());
        each(&mut |open| {
            widths.push(open.len());
            at += 1;
            choices.get(at - 1).copied().unwrap_or(0)
        });
        orders += 1;
        choices.resize(widths.len(), 0);
        // The next sequence, as if the choices were the digits of a number.
        loop {
            let Some(last) = choices.len().checked_sub(1) else { return orders };
            if choices[last] + 1 < widths[last] {
                choices[last] += 1;
                break;
            }
            choices.pop();
        }
    }
}

#[test]
fn each_order_of_answers_has_its_own_winner_whether_stored_or_not() {
    for &(source, results) in RACES {
        let program = compiled(source);
        let mut ends = BTreeSet::new();
        let mut by_order: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        let orders = for_all_orders(|choose| {
            let mut chosen = Vec::new();
            let warm = transcript(&program, Storing::Warm, &mut |open| {
                chosen.push(choose(open));
                chosen[chosen.len() - 1]
            });
            for storing in [Storing::AtStops, Storing::Every(1)] {
                assert_same(source, &format!("{storing:?}"), &warm, &in_order(&program, storing, &chosen));
            }
            let answered = warm.iter().filter(|line| line.starts_with("= ")).cloned().collect();
            assert!(by_order.insert(answered, warm.clone()).is_none(), "{source}: an order comes twice");
            ends.insert(warm.iter().filter(|line| line.starts_with("=> ")).cloned().collect::<String>());
        });
        assert!(orders >= ends.len() && ends.len() == results, "{source}: {orders} {ends:?}");
    }
}

#[test]
fn the_first_answer_wins_a_race() {
    let program = compiled(RACES[0].0);
    for_all_orders(|choose| {
        let mut first = None;
        let lines = transcript(&program, Storing::AtStops, &mut |open| {
            let choice = choose(open);
            first.get_or_insert(open[choice]);
            choice
        });
        let winner = ["<a>", "<b>", "<c>"][first.expect("a stop") as usize - 1];
        assert!(lines.contains(&format!("=> \"{winner}\"")), "{lines:?}");
        let losers: Vec<String> =
            (1..=3).filter(|item| Some(*item) != first).map(|item: u64| item.to_string()).collect();
        assert_eq!(lines.last(), Some(&format!("abandoned {}", losers.join(","))));
    });
}
