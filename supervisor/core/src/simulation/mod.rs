//! Seeded histories: the machine that ships against a worker, a store, clients and a clock that are made up.
//!
//! Each seed is one history of one session: what happens next is drawn from a small generator, and after each step the
//! [`checks`] look at every action. A failure names its seed and plays it again with a transcript. Nothing
//! here knows the machine's insides: it sees what the owner task sees.

mod checks;
mod database;
mod worker;
mod world;

use world::{Faults, World};

/// Histories of each kind: enough to meet every pair of events, few enough for every test run.
const HISTORIES: u64 = 4_000;

fn play(kind: &str, faults: Faults) {
    let mut crashed = 0_u64;
    let mut executions = 0_u64;
    for seed in 0..HISTORIES {
        let mut world = World::new(seed, faults, false);
        world.play();
        if let Err(broken) = world.verdict() {
            let mut again = World::new(seed, faults, true);
            again.play();
            panic!("{kind} history {seed}: {broken}\n{}", again.transcript());
        }
        crashed += u64::from(world.crashed());
        executions += world.executions();
    }
    // A simulation that never gets anywhere would pass every check.
    assert!(executions > HISTORIES / 5, "{kind}: only {executions} executions");
    assert_eq!(crashed > 0, faults.any(), "{kind}: {crashed} sessions crashed");
}

#[test]
fn honest_worker_and_healthy_store_never_end_a_session_unasked() {
    play("honest", Faults::NONE);
}

#[test]
fn every_invariant_holds_with_a_hostile_worker() {
    play("hostile", Faults { hostile: true, ..Faults::NONE });
}

#[test]
fn every_invariant_holds_when_workers_die_at_any_moment() {
    play("deaths", Faults { deaths: true, ..Faults::NONE });
}

#[test]
fn every_invariant_holds_when_the_store_fails() {
    play("store", Faults { store: true, deaths: true, ..Faults::NONE });
}

#[test]
fn every_invariant_holds_when_supervisors_die_and_adopt() {
    play("adoption", Faults { adoption: true, deaths: true, ..Faults::NONE });
}

#[test]
fn every_invariant_holds_with_all_faults_at_once() {
    play("all", Faults { hostile: true, deaths: true, store: true, adoption: false });
}
