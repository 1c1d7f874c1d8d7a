//! The table of transitions, its drawings, and what the simulation takes of it.

use super::{Phase, PhaseChange};

/// Every phase. A new one does not compile without a place here.
fn all() -> Vec<Phase> {
    let mut phases = vec![Phase::New];
    while let Some(next) = match phases[phases.len() - 1] {
        Phase::New => Some(Phase::Spawning),
        Phase::Spawning => Some(Phase::SettingUp),
        Phase::SettingUp => Some(Phase::Starting),
        Phase::Starting => Some(Phase::Ready),
        Phase::Ready => Some(Phase::Restoring),
        Phase::Restoring => Some(Phase::Closing),
        Phase::Closing => Some(Phase::Killed),
        Phase::Killed => Some(Phase::Ended),
        Phase::Ended => Some(Phase::Released),
        Phase::Released => None,
    } {
        phases.push(next);
    }
    phases
}

/// The rows of the table: from, change, to.
pub(super) fn rows() -> Vec<(Phase, PhaseChange, Phase)> {
    let exits = |from: Phase| from.exits().iter().map(move |(change, to)| (from, *change, *to));
    all().into_iter().flat_map(exits).collect()
}

/// `not stored` for `NotStored`.
fn in_words(change: PhaseChange) -> String {
    let mut words = String::new();
    for (at, letter) in format!("{change:?}").chars().enumerate() {
        if letter.is_uppercase() && at > 0 {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[test]
fn module_document_draws_every_transition_and_no_other() {
    let mut from = String::new();
    let mut drawn = Vec::new();
    for line in include_str!("../phase.rs").lines().filter_map(|line| line.strip_prefix("//! ")) {
        let Some((left, right)) = line.split_once("▶ ") else { continue };
        let parts: Vec<&str> =
            left.split(['─', '┬', '├', '└']).map(str::trim).filter(|part| !part.is_empty()).collect();
        let change = match parts.as_slice() {
            [phase, change] => {
                (*phase).clone_into(&mut from);
                *change
            }
            [change] => *change,
            _ => panic!("a row of the drawing: {line}"),
        };
        let to = right.split_whitespace().next().unwrap_or_default();
        drawn.push((from.clone(), change.to_owned(), to.to_owned()));
    }
    let table: Vec<_> = rows()
        .into_iter()
        .map(|(from, change, to)| (format!("{from:?}"), in_words(change), format!("{to:?}")))
        .collect();
    assert_eq!(drawn, table);
}

#[test]
fn overview_of_the_crate_names_every_phase() {
    let overview = include_str!("../lib.rs");
    for phase in all() {
        assert!(overview.contains(&format!("{phase:?}")), "{phase:?} is not in the drawing of lib.rs");
    }
}

#[test]
fn every_phase_but_the_first_can_be_entered_and_every_one_but_the_last_can_be_left() {
    for phase in all() {
        let is_entered = rows().iter().any(|(_, _, to)| *to == phase);
        let is_left = !phase.exits().is_empty();
        assert_eq!((is_entered, is_left), (phase != Phase::New, phase != Phase::Released), "{phase:?}");
    }
}
