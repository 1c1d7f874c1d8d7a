//! The transitions of the phase that cases and simulated histories take.

use super::*;
use crate::{phase, simulation};

/// A row of the table that nothing takes is an error of the table, or a missing test.
#[test]
fn every_transition_of_the_table_is_taken() {
    simulation::take_all_transitions();
    let mut bench = Bench::new(rights(|_| {}), 0);
    bench.input(SessionInput::Create { token: Token::new(1) });
    bench.input(SessionInput::Spawned);
    bench.crashes();
    assert_eq!(bench.machine.record().status, SessionStatus::Crashed, "it exited while it was set up");
    let mut bench = Bench::restarting();
    bench.crashes();
    bench.respawned(Vec::new());
    bench.crashes();
    assert!(bench.machine.is_restarting(), "so did the next worker");
    bench.next_supervisor(OnCrash::Restart);
    assert!(bench.machine.is_restarting(), "an earlier supervisor had begun that");
    assert_eq!(phase::taken::missing(), []);
}
