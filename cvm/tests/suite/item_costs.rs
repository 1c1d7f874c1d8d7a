//! The cost of an answer does not depend on how many items are pending.

use crate::hosted::Hosted;
use vm_system_cvm::{CompileOptions, RunOutcome, VmLimits, compile};

/// Bytes that a checkpoint writes for each of the first answers to a pending set of this size; every 16th of its items is answered.
fn bytes_of_answers(source: &str, pending: u64) -> Vec<usize> {
    let options = CompileOptions { items: true, ..CompileOptions::default() };
    let program = compile(&source.replace("COUNT", &pending.to_string()), &options).expect("it compiles");
    let limits = VmLimits { heap_bytes: 1 << 30, pending_items: u32::MAX, ..VmLimits::default() };
    let mut host = Hosted::new(&program, limits);
    assert!(matches!(host.slice(u64::MAX), RunOutcome::Wait { .. }));
    host.store();
    let answers = (pending - 1).min(60);
    let each = (1..=answers).map(|n| {
        host.settle(1 + n * (pending / (answers + 1)));
        assert!(matches!(host.slice(u64::MAX), RunOutcome::Wait { .. }));
        host.store()
    });
    each.collect()
}

const PROGRAMS: &[(&str, &str)] = &[
    (
        "all",
        "async function main() { await Promise.all(Array.from({ length: COUNT }, (_, i) => CC.async('question ' + i))); }",
    ),
    (
        "functions",
        "const got = []; async function one(i) { got.push(await sleep(i)); } \
                   async function main() { const all = []; for (let i = 0; i < COUNT; i++) all.push(one(i)); await all[0]; }",
    ),
    (
        "race",
        "async function main() { const list = []; for (let i = 0; i < COUNT; i++) list.push(waitFor('e' + i)); for (const p of list) p.then(() => 1); await list[0]; }",
    ),
];

#[test]
fn bytes_of_an_answer_do_not_grow_with_the_pending_set() {
    for (name, source) in PROGRAMS {
        let mean = |pending| {
            let bytes = bytes_of_answers(source, pending);
            let mean = bytes.iter().sum::<usize>() / bytes.len();
            println!(
                "{name}: {pending} pending: {mean} bytes for an answer, at most {:?}",
                bytes.iter().max()
            );
            mean
        };
        let [few, many, most] = [10, 1_000, 10_000].map(mean);
        assert!(many < 16 << 10 && most < many + many / 5, "{name}: {few} {many} {most}");
    }
}
