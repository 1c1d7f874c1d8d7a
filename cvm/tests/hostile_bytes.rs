//! A bounded, seeded run of the fuzz targets' checks, on the stable toolchain.

#[path = "common/hostile.rs"]
mod hostile;
#[path = "common/programs.rs"]
mod programs;

use hostile::{
    Checked, HEADER, PAUSING, Pages, check_pages, check_program, check_source, edit, paused, seal,
    waiting_states,
};
use std::collections::BTreeMap;
use vm_system_cvm::CompiledProgram;
use vm_system_testkit::SeededRandom;

/// Changes a few bytes in one of the ways that fuzzers use.
fn mutate(random: &mut SeededRandom, bytes: &mut Vec<u8>, from: usize) {
    for _ in 0..=random.index(4) {
        let odd = [0, 1, 0x7F, 0x80, 0xFF];
        let with = if random.index(2) == 0 { odd[random.index(odd.len())] } else { random.bits() as u8 };
        edit(bytes, from, [random.bits() as u8, random.bits() as u8, random.bits() as u8, with]);
    }
}

#[test]
fn mutated_sources_compile_or_are_refused() {
    let mut random = SeededRandom::new(11);
    for seed in 1..=40 {
        let source = programs::program(seed).into_bytes();
        for _ in 0..6 {
            let mut changed = source.clone();
            for _ in 0..=random.index(6) {
                mutate(&mut random, &mut changed, 0);
            }
            check_source(&String::from_utf8_lossy(&changed));
        }
    }
}

/// Three files behind the first one, each behind a form feed.
const MODULES: &str = "import one, { two as zwei, f } from './a.ts'; import * as b from './b.js'; import c from './c.json';
export * from './b.js'; export { two } from './a.ts'; export * as all from './a.ts'; export default class {}
let own = 1; const answer = CC('x'); export function main() { return [one, zwei, f(), b.g(), c, own, answer]; }
\u{c}import { g, own } from './b.js'; export default 5; export let two = 2; export const f = () => g() + own;
export type T = number; export enum E { A } await null;
\u{c}export { two as three } from './a.ts'; export var own = 7; export function g() { return own++; } import * as me from './b.js';
\u{c}{\"a\": [1, 2, {\"b\": null}]}";

#[test]
fn mutated_files_compile_or_are_refused() {
    check_source(MODULES);
    let mut random = SeededRandom::new(12);
    for _ in 0..400 {
        let mut changed = MODULES.as_bytes().to_vec();
        for _ in 0..=random.index(3) {
            mutate(&mut random, &mut changed, 0);
        }
        check_source(&String::from_utf8_lossy(&changed));
    }
}

#[test]
fn endless_brackets_are_refused_without_a_stack_overflow() {
    for open in [
        "(",
        "[",
        "{",
        "{a:",
        "a=>(",
        "x=>{",
        "`${",
        "f(",
        "new (",
        "if(a){",
        "a.b[",
        "...[",
        "function f(){",
        "class A{x=[",
    ] {
        for count in [100, 5000, 50_000] {
            check_source(&open.repeat(count));
            check_source(&format!("let x = {}", open.repeat(count)));
        }
    }
    check_source(&format!("x = {}1{}", "(".repeat(20_000), ")".repeat(20_000)));
    check_source(&format!("{}{}", "{".repeat(20_000), "}".repeat(20_000)));
    check_source(&format!("{};", "a".repeat(1_000_000)));
    check_source(&format!("x = /{}/", "(".repeat(100_000)));
}

#[test]
fn mutated_programs_are_refused_or_run_within_limits() {
    let mut random = SeededRandom::new(12);
    for source in PAUSING {
        let Some((program, _)) = paused(source) else { panic!("it pauses: {source}") };
        let bytes = program.encode();
        for _ in 0..200 {
            let mut changed = bytes.clone();
            mutate(&mut random, &mut changed, HEADER);
            seal(0, &mut changed);
            check_program(&changed);
        }
        for end in (0..bytes.len()).step_by(97) {
            check_program(&bytes[..end]);
        }
    }
}

/// Pauses of each program whose states are changed.
const PAUSES: usize = 4;

/// Mutations of the states of each program; `.ci/long` makes more.
fn mutations() -> usize {
    std::env::var("VM_SYSTEM_MUTATIONS").map_or(500, |count| count.parse().expect("a number"))
}

/// A state that the verifier accepts is valid: the interpreter, which checks again, finds nothing.
#[test]
fn mutated_pages_are_refused_or_run_to_an_end_of_their_own() {
    let mut random = SeededRandom::new(13);
    let (mut accepted, mut found) = (0, BTreeMap::new());
    let mut check = |program: &CompiledProgram, changed: &Pages| match check_pages(program, changed) {
        Checked::Refused => {}
        Checked::Ran => accepted += 1,
        Checked::Invalid(what) => *found.entry(what).or_insert(0) += 1,
    };
    for source in PAUSING {
        let Some((program, states)) = waiting_states(source, PAUSES) else { panic!("it pauses: {source}") };
        for number in 0..mutations() {
            let mut changed = states[number % states.len()].clone();
            for _ in 0..=random.index(2) {
                let place = random.index(changed.len());
                let (number, bytes) = &mut changed[place];
                mutate(&mut random, bytes, HEADER);
                seal(*number, bytes);
            }
            check(&program, &changed);
        }
        for missing in 0..states[0].len() {
            let mut changed = states[0].clone();
            changed.remove(missing);
            check(&program, &changed);
        }
    }
    assert!(accepted > mutations() / 10, "too few states run: {accepted}");
    assert_eq!(found, BTreeMap::new(), "accepted, and found invalid while they ran; {accepted} ran");
}

/// The phase is the byte behind the program's fingerprint, which is a number of at most five bytes.
#[test]
fn phase_that_does_not_fit_what_waits_is_refused() {
    for source in PAUSING {
        let Some((program, states)) = waiting_states(source, PAUSES) else { panic!("it pauses: {source}") };
        for pages in states {
            let frames = pages.iter().position(|(number, _)| *number == 0).expect("page 0");
            let place = HEADER
                + pages[frames].1[HEADER..].iter().position(|byte| byte & 0x80 == 0).expect("a number")
                + 1;
            let phase = pages[frames].1[place];
            assert!([2, 3, 12].contains(&phase), "it waits: {phase}");
            // Nothing is left to run while a program waits for items: it may as well have ended, or have to find that out.
            let fits = |other: u8| phase == 12 && [1, 4, 5, 6, 7, 8, 9, 10].contains(&other);
            for other in (0..=u8::MAX).filter(|other| *other != phase && !fits(*other)) {
                let mut changed = pages.clone();
                changed[frames].1[place] = other;
                seal(0, &mut changed[frames].1);
                assert!(
                    matches!(check_pages(&program, &changed), Checked::Refused),
                    "{phase} -> {other}: {source}"
                );
            }
        }
    }
}

/// Tags of values, ids of cells and positions in code are single bytes there; one is changed at a time.
#[test]
fn frames_with_another_value_or_position_are_refused_or_end_the_program_by_themselves() {
    let mut found = BTreeMap::new();
    let source = PAUSING[2];
    let Some((program, states)) = waiting_states(source, 2) else { panic!("it pauses: {source}") };
    for pages in states {
        let frames = pages.iter().position(|(number, _)| *number == 0).expect("page 0");
        for place in HEADER..pages[frames].1.len() {
            let byte = pages[frames].1[place];
            for other in [0, 6, 8, 11, byte ^ 1, byte ^ 2, byte ^ 4, byte ^ 8] {
                let mut changed = pages.clone();
                changed[frames].1[place] = other;
                seal(0, &mut changed[frames].1);
                if let Checked::Invalid(what) = check_pages(&program, &changed) {
                    *found.entry(what).or_insert(0) += 1;
                }
            }
        }
    }
    assert_eq!(found, BTreeMap::new(), "accepted, and found invalid while they ran");
}
