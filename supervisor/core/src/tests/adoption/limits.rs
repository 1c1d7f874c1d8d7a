//! Limits of an execution that an adopted worker runs.

use super::*;

/// An adopted execution of which this is stored; its limits are 5 s of wall time and 4 s of CPU time.
fn adopted_after(used: Metrics, replies: bool) -> Bench {
    let mut bench = adopted(Some(EXECUTION));
    let policy = rights(|snapshot| {
        (snapshot.settings.limits.wall_ms, snapshot.settings.limits.cpu_ms) = (5_000, 4_000);
    });
    let started_at = Timestamp(bench.now.unix_ms - 20_000);
    let execution = running_execution(EXECUTION, used, started_at);
    let row =
        RunningExecutionRow { execution, events: 0, output_bytes: 0, last_event_at: started_at, task: None };
    let running = Some(AdoptedExecution { row, policy: Arc::clone(&policy) });
    let spec = spec(&policy, 0);
    bench.machine =
        SessionMachine::adopt(spec, (COMMITTED, NONCE), running, None, bench.now, &mut Vec::new());
    if replies {
        bench.reports(0, Some(EXECUTION), None);
    }
    bench
}

#[test]
fn what_an_adopted_execution_has_used_counts_for_its_limits() {
    // 3 s without the time in which it waited for the host; the adoption was 20 s after the start.
    let used = Metrics { duration_ms: 9_000, host_wait_ms: 6_000, ..Metrics::default() };
    let mut bench = adopted_after(used, true);
    bench.pass_ms(1_999);
    assert_eq!(bench.interrupts, 0);
    bench.pass_ms(1);
    assert_eq!(bench.interrupts, 1);
    bench.pass_ms(INTERRUPT_GRACE_MS);
    assert!(bench.killed);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!((bench.code(), bench.reason()), ("WALL_LIMIT".to_owned(), "limit(wall)".to_owned()));

    let used = Metrics { cpu_ms: 3_500, ..Metrics::default() };
    let mut bench = adopted_after(used, true);
    bench.now.cpu_us += 590_000;
    bench.pass_ms(700);
    assert_eq!(bench.interrupts, 0, "4.09 s, and the worker's own limit comes first");
    bench.now.cpu_us += 20_000;
    bench.pass_ms(100);
    assert_eq!(bench.interrupts, 1);
    bench.ends(Outcome::Ok);
    assert_eq!((bench.code().as_str(), bench.ended().metrics.cpu_ms), ("CPU_LIMIT", 4_110));
}

#[test]
fn an_adopted_worker_that_does_not_reply_has_the_remaining_wall_time() {
    let used = Metrics { duration_ms: 4_000, ..Metrics::default() };
    let mut bench = adopted_after(used, false);
    bench.pass_ms(1_000);
    assert!(!bench.killed);
    bench.pass_ms(INTERRUPT_GRACE_MS);
    assert!(bench.killed, "it ran, and polled nothing");
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!(bench.reason(), "limit(wall)");
    // Without an execution in the store it may run one that was not stored.
    let mut bench = adopted(None);
    let wall_ms = u64::from(bench.policy.wire.limits.wall_ms);
    bench.pass_ms(wall_ms);
    assert!(!bench.killed);
    bench.pass_ms(2 * INTERRUPT_GRACE_MS);
    assert!(bench.killed);
}

#[test]
fn a_running_execution_stores_each_second_what_it_has_used() {
    let mut bench = Bench::running();
    let stored = |bench: &Bench| {
        let progress = bench.writes.iter().filter_map(|write| match write {
            Write::RunProgress { metrics, .. } => {
                Some((metrics.duration_ms, metrics.host_wait_ms, metrics.cpu_ms))
            }
            _ => None,
        });
        progress.collect::<Vec<_>>()
    };
    bench.pass_ms(999);
    assert_eq!(stored(&bench), []);
    bench.now.cpu_us += 700_000;
    bench.pass_ms(1);
    assert_eq!(stored(&bench), [(1_000, 0, 700)]);
    // Nothing is used while it waits for the host.
    bench.calls(1);
    bench.pass_ms(5_000);
    assert_eq!(stored(&bench).len(), 1);
    bench.input(SessionInput::HostReplied { call: 1, reply: HostReply::Fs(FsReply::Bool(true)) });
    bench.pass_ms(1);
    assert_eq!(stored(&bench)[1], (6_001, 5_000, 700));
    bench.ends(Outcome::Ok);
    bench.pass_ms(10_000);
    assert_eq!(stored(&bench).len(), 2);
}
