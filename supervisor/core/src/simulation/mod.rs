//! Seeded histories: the production machine against a simulated worker, store, clients and clock.
//!
//! Each seed is one history of one session: what happens next is drawn from a small generator, and after each step the
//! [`checks`] inspect every action. A failure names its seed and replays it with a transcript. Knows nothing of the
//! machine's internals: it sees what the owner task sees.

mod checks;
mod database;
mod requests;
mod restarts;
mod worker;
mod world;

use world::World;

/// Histories of each kind: enough to meet every pair of events, few enough for every test run.
const HISTORIES: u64 = 5_400;

/// The faults that a history may have.
#[derive(Clone, Copy)]
struct SimulatedFaults {
    hostile: bool,
    exits: bool,
    store: bool,
    adoption: bool,
}

impl SimulatedFaults {
    const NONE: Self = Self { hostile: false, exits: false, store: false, adoption: false };

    /// Whether sessions may crash: one that is adopted continues.
    fn crash(self) -> bool {
        self.hostile || self.exits
    }
}

/// Executions that a worker had got and the store had not, rollbacks and restarts.
#[derive(Clone, Copy, Default)]
struct SimulatedCounts {
    running: u64,
    ended: u64,
    restored: u64,
    restarted: u64,
}

fn play(kind: &str, faults: SimulatedFaults) -> SimulatedCounts {
    let mut unrecorded = SimulatedCounts::default();
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
        unrecorded.running += world.unrecorded().running;
        unrecorded.ended += world.unrecorded().ended;
        unrecorded.restored += world.restored();
        unrecorded.restarted += world.restarted();
    }
    // A simulation that never gets anywhere would pass every check.
    assert!(executions > HISTORIES / 5, "{kind}: only {executions} executions");
    assert_eq!(crashed > 0, faults.crash(), "{kind}: {crashed} sessions crashed");
    unrecorded
}

/// Takes every transition of the machine's phases: fewer histories than the tests below, of all kinds.
pub(crate) fn take_all_transitions() {
    let adoption = SimulatedFaults { adoption: true, ..SimulatedFaults::NONE };
    let kinds = [
        SimulatedFaults { exits: true, store: true, ..SimulatedFaults::NONE },
        SimulatedFaults { exits: true, ..adoption },
        SimulatedFaults { store: true, ..adoption },
    ];
    for faults in kinds {
        for seed in 0..HISTORIES / 5 {
            World::new(seed, faults, false).play();
        }
    }
}

#[test]
fn honest_worker_and_healthy_store_never_end_a_session_without_a_request() {
    let restored = play("honest", SimulatedFaults::NONE).restored;
    assert!(restored > 50, "only {restored} rollbacks");
}

#[test]
fn every_invariant_holds_with_a_hostile_worker() {
    play("hostile", SimulatedFaults { hostile: true, ..SimulatedFaults::NONE });
}

#[test]
fn every_invariant_holds_when_workers_exit_at_any_moment() {
    let counts = play("exits", SimulatedFaults { exits: true, ..SimulatedFaults::NONE });
    let SimulatedCounts { restored, restarted, .. } = counts;
    assert!(restored > 50 && restarted > 50, "only {restored} rollbacks and {restarted} restarts");
}

#[test]
fn every_invariant_holds_when_the_store_fails() {
    play("store", SimulatedFaults { store: true, exits: true, ..SimulatedFaults::NONE });
}

#[test]
fn every_invariant_holds_when_supervisors_exit_and_adopt() {
    play("adoption and exits", SimulatedFaults { adoption: true, exits: true, ..SimulatedFaults::NONE });
}

#[test]
fn supervisors_that_exit_while_the_store_refuses_writes_never_end_a_session() {
    play("store and adoption", SimulatedFaults { store: true, adoption: true, ..SimulatedFaults::NONE });
}

#[test]
fn supervisors_that_exit_and_adopt_never_end_a_session() {
    let unrecorded = play("adoption", SimulatedFaults { adoption: true, ..SimulatedFaults::NONE });
    let SimulatedCounts { running, ended, .. } = unrecorded;
    assert!(running > 50 && ended > 50, "unrecorded executions: {running} running, {ended} ended");
}

#[test]
fn every_invariant_holds_when_hostile_workers_are_adopted() {
    play("hostile adoption", SimulatedFaults { adoption: true, hostile: true, ..SimulatedFaults::NONE });
}

#[test]
fn every_invariant_holds_with_all_faults_at_once() {
    play("all", SimulatedFaults { hostile: true, exits: true, store: true, adoption: false });
}
