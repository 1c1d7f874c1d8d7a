//! The guarantees of a jail, case by case.

use crate::body::MUTE;
use crate::jail::{LIMITS, OWNER, embedded, event, next, obey, order, session, start, started};
use crate::ready::{
    burst_takes_the_prestarted_worker_and_starts_the_others,
    prestarted_worker_of_an_exited_zygote_is_not_used, prestarted_worker_that_exited_is_not_used,
    prestarted_workers_are_bounded, prestarted_workers_end_with_their_jail,
    worker_is_started_before_it_is_needed,
};
use crate::zygotes::{
    a_zygote_of_programs_that_breaks_is_a_clear_error_and_harms_no_session,
    exited_reserve_zygote_is_replaced_before_it_is_needed, exited_zygote_harms_no_session,
    exited_zygote_is_replaced_by_its_reserve, workers_of_programs_share_a_zygote_that_the_first_one_starts,
};
use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use vm_system_protocol::worker::{EXIT_OUT_OF_MEMORY, FromWorker, ToWorker};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process::SELF;
use vm_system_sandbox::step::Layer;
use vm_system_sandbox::{inspect, landlock, namespaces, rlimit, socket};
use vm_system_spawn::{
    AdoptedWorker, SandboxMode, SpawnConfig, SpawnError, SpawnEvent, Spawner, WorkerChannelError,
    WorkerExitStatus, WorkerKind, kept_jails,
};
use vm_system_tests::skip;
use vm_system_tests::watch;

type Case = fn() -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! cases {
    ($($name:ident,)+) => {
        pub(crate) const CASES: &[(&str, Case)] = &[$((stringify!($name), || Box::pin($name()))),+];
    };
}

cases! {
    worker_starts_behind_all_walls,
    exit_is_reported_as_the_kernel_reported_it,
    a_forbidden_call_is_reported_by_name_and_never_returns,
    a_busy_worker_is_interrupted_and_continues,
    an_unordered_fork_is_refused_and_reported,
    a_flood_of_forks_ends_the_worker,
    memory_and_cpu_time_have_a_hard_stop,
    large_messages_travel_both_ways,
    a_worker_that_is_not_acknowledged_stops_producing,
    violations_on_the_channel_end_it,
    descriptors_cannot_be_sent,
    worker_that_never_sends_hello_is_killed,
    exited_zygote_harms_no_session,
    exited_zygote_is_replaced_by_its_reserve,
    exited_reserve_zygote_is_replaced_before_it_is_needed,
    workers_of_programs_share_a_zygote_that_the_first_one_starts,
    a_zygote_of_programs_that_breaks_is_a_clear_error_and_harms_no_session,
    worker_is_started_before_it_is_needed,
    prestarted_worker_that_exited_is_not_used,
    burst_takes_the_prestarted_worker_and_starts_the_others,
    prestarted_worker_of_an_exited_zygote_is_not_used,
    prestarted_workers_end_with_their_jail,
    prestarted_workers_are_bounded,
    exit_of_the_keeper_ends_all_its_processes,
    all_processes_exit_with_an_embedded_supervisor,
    a_new_supervisor_adopts_everything,
    a_keeper_that_refuses_the_token_is_ended,
    jail_without_a_supervisor_ends_after_the_grace,
    jail_without_a_supervisor_ends_when_its_lifeline_hangs_up,
    shutdown_leaves_no_process,
    a_hundred_workers_run_at_the_same_time,
    starts_and_exits_leave_no_descriptor_behind,
    sending_to_a_worker_that_does_not_read_times_out,
    a_program_that_is_no_keeper_is_an_error,
    a_host_without_user_namespaces_is_named_with_its_knob,
    without_namespaces_the_other_walls_are_in_force,
}

async fn worker_starts_behind_all_walls() {
    let (spawner, _events) = embedded().await;
    for layer in Layer::ALL {
        let report = spawner.layers().iter().find(|report| report.name == layer.name()).expect("reported");
        let optional = layer == Layer::CgroupNamespace
            || (matches!(layer, Layer::Landlock | Layer::LandlockScopes) && landlock::abi() < 6);
        if optional && !report.in_force {
            skip(&format!("layer-{}", report.name), &report.detail);
        } else {
            assert!(report.in_force, "{report:?}");
        }
    }
    let mut worker = started(&spawner, 1).await;
    let pid = worker.process.pid();
    let status = inspect::verify(pid, inspect::Expected { namespaces: true }).expect("walls");
    assert_eq!((status.ppid, status.filters, status.ns_pids.len()), (spawner.keeper_pid(), 1, 2));
    assert!(inspect::verify_namespaces(pid).expect("namespaces"), "the links can be read from outside");
    assert_ne!(status.uid, 0, "no worker is root on the host");
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("limits");
    assert!(
        limits.lines().any(|line| line.starts_with("Max core file size") && line.contains(" 0 ")),
        "{limits}"
    );
    assert_eq!(std::fs::read_dir(format!("/proc/{pid}/root/")).map(Iterator::count).ok(), Some(0));
    worker.sender.send(&start(1)).await.expect("start");
    let started = next(&mut worker).await.expect("answer");
    assert_eq!((started.seq, started.message), (1, FromWorker::Started { heap_bytes: 1 }));
    assert_eq!(obey(&mut worker, "echo:42").await.expect("done"), "42");
    assert!(worker.process.memory().expect("memory").uss > 0);
    worker.process.cpu_time().expect("cpu time");
}

async fn exit_is_reported_as_the_kernel_reported_it() {
    let (spawner, _events) = embedded().await;
    let cases = [
        ("exit:3", WorkerExitStatus::Exited(3)),
        ("overflow", WorkerExitStatus::Signaled(libc::SIGSEGV)),
        ("panic", WorkerExitStatus::Exited(73)),
    ];
    for (number, (source, exit)) in (1..).zip(cases) {
        let mut worker = started(&spawner, number).await;
        worker.sender.send(&order(source)).await.expect("order");
        assert!(matches!(next(&mut worker).await, Err(WorkerChannelError::Closed)), "{source}");
        assert_eq!(worker.process.exited().await, exit, "{source}");
        assert!(worker.process.interrupt().is_err());
        worker.process.kill().expect("killing an exited process is no error");
        worker.process.forget();
    }
    let worker = started(&spawner, 99).await;
    worker.process.kill().expect("kill");
    assert_eq!(worker.process.exited().await, WorkerExitStatus::Signaled(libc::SIGKILL));
    let stopped = started(&spawner, 98).await;
    stopped.process.signal(libc::SIGSTOP).expect("stop");
    stopped.process.kill().expect("kill");
    assert_eq!(stopped.process.exited().await, WorkerExitStatus::Signaled(libc::SIGKILL));
}

async fn a_forbidden_call_is_reported_by_name_and_never_returns() {
    let (spawner, mut events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    let pid = worker.process.pid();
    worker.sender.send(&order("open")).await.expect("order");
    assert_eq!(event(&mut events).await, SpawnEvent::ForbiddenCall { pid, call: "openat".to_owned() });
    // A signal interrupts the waiting call; it is restarted, still not made, and reported again.
    worker.process.interrupt().expect("alive");
    assert_eq!(event(&mut events).await, SpawnEvent::ForbiddenCall { pid, call: "openat".to_owned() });
    // The test does not kill the worker; the spawner does, after a grace.
    assert!(matches!(next(&mut worker).await, Err(WorkerChannelError::Closed)));
    assert_eq!(worker.process.exited().await, WorkerExitStatus::Signaled(libc::SIGKILL));
}

async fn a_busy_worker_is_interrupted_and_continues() {
    let (spawner, _events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    for _ in 0..3 {
        worker.sender.send(&order("spin")).await.expect("order");
        // It has started once its CPU clock advances.
        let before = worker.process.cpu_time().expect("cpu time");
        let spins = || worker.process.cpu_time().expect("cpu time") >= before + Duration::from_millis(1);
        watch::until_async(spins, "it does not spin").await;
        worker.process.interrupt().expect("interrupt");
        let received = next(&mut worker).await.expect("done");
        assert!(matches!(received.message, FromWorker::Done(_)));
    }
    assert_eq!(obey(&mut worker, "echo:alive").await.expect("done"), "alive");
}

async fn an_unordered_fork_is_refused_and_reported() {
    let (spawner, mut events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    assert_eq!(obey(&mut worker, "fork:1").await.expect("it continues"), "1");
    assert_eq!(event(&mut events).await, SpawnEvent::UnorderedFork { pid: worker.process.pid() });
    started(&spawner, 2).await;
}

async fn a_flood_of_forks_ends_the_worker() {
    let (spawner, _events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    assert!(matches!(obey(&mut worker, "fork:100000").await, Err(WorkerChannelError::Closed)));
    assert_eq!(worker.process.exited().await, WorkerExitStatus::Signaled(libc::SIGKILL));
    started(&spawner, 2).await;
}

async fn memory_and_cpu_time_have_a_hard_stop() {
    let (spawner, _events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    assert!(matches!(obey(&mut worker, "memory").await, Err(WorkerChannelError::Closed)));
    assert_eq!(worker.process.exited().await, WorkerExitStatus::Exited(EXIT_OUT_OF_MEMORY));
    let most = worker.process.usage().expect("its keeper reported").peak_memory_kib >> 10;
    // The peak has the pages that it shares with the zygote, too.
    let shared = 64 << 20;
    let limit = (LIMITS.memory_bytes + rlimit::MEMORY_MARGIN_BYTES + shared) >> 20;
    assert!((64..=limit).contains(&most), "{most} MiB at a limit of 64 MiB and its margin");
    let mut busy = started(&spawner, 2).await;
    busy.process.allow_cpu(Duration::ZERO).expect("limit");
    busy.sender.send(&order("hang")).await.expect("order");
    assert!(matches!(next(&mut busy).await, Err(WorkerChannelError::Closed)));
    assert_eq!(busy.process.exited().await, WorkerExitStatus::Signaled(libc::SIGXCPU));
}

async fn large_messages_travel_both_ways() {
    let (spawner, _events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    for size in [0, 65_000, 66_000, 1 << 20, 5 << 20] {
        let text = "y".repeat(size);
        assert_eq!(obey(&mut worker, format!("echo:{text}")).await.expect("done"), text);
    }
}

async fn a_worker_that_is_not_acknowledged_stops_producing() {
    let (spawner, _events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    worker.sender.send(&order("flood:20000000")).await.expect("order");
    let mut last = 0;
    while let Ok(received) = timeout(Duration::from_millis(500), worker.receiver.recv()).await {
        last = received.expect("events").seq;
    }
    assert!((100..400).contains(&last), "stopped after {last} messages of 16 KiB");
    let mut done = false;
    while !done {
        worker.sender.send(&ToWorker::Ack { seq: last }).await.expect("ack");
        let received = next(&mut worker).await.expect("continues");
        assert_eq!(received.seq, last + 1);
        last = received.seq;
        done = matches!(received.message, FromWorker::Done(_));
    }
}

async fn violations_on_the_channel_end_it() {
    let (spawner, _events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    let ended = obey(&mut worker, "garbage").await;
    assert!(matches!(ended, Err(WorkerChannelError::Violation(_))), "{ended:?}");
}

async fn descriptors_cannot_be_sent() {
    let (spawner, _events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    match obey(&mut worker, "descriptors").await {
        Ok(refused) => assert_eq!(refused, format!("{:?}", Err::<(), _>(Some(libc::EPERM)))),
        Err(error) => assert!(matches!(error, WorkerChannelError::Violation(_)), "kernel < 6.16: {error}"),
    }
}

async fn worker_that_never_sends_hello_is_killed() {
    let (_directory, spawner) = called(MUTE).await;
    let silent =
        spawner.spawn_worker(session(1), OWNER, &LIMITS, &WorkerKind::plain()).await.expect_err("no hello");
    assert!(matches!(silent, SpawnError::WorkerSilent(_)), "{silent}");
}

/// A jail of this program under another name.
pub(crate) async fn called(name: &str) -> (tempfile::TempDir, Spawner) {
    let directory = tempfile::tempdir().expect("dir");
    let program = directory.path().join(name);
    std::fs::copy("/proc/self/exe", &program).expect("copy");
    readable_by_all(directory.path());
    let config = SpawnConfig { program, ..SpawnConfig::embedded() };
    let (spawner, _events) = Spawner::start(config).await.expect("a jail");
    (directory, spawner)
}

fn readable_by_all(directory: &std::path::Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory, mode).expect("chmod");
}

pub(crate) async fn wait_until(holds: impl FnMut() -> bool) {
    watch::until_async(holds, "the condition does not hold").await;
}

/// A jail that can be adopted; the directory is deleted with the guard.
pub(crate) async fn adoptable(grace: Duration) -> (tempfile::TempDir, SpawnConfig, Spawner) {
    let directory = tempfile::tempdir().expect("dir");
    let keepers = Some(directory.path().to_owned());
    let config = SpawnConfig { keepers, reserve_zygote: true, grace, ..SpawnConfig::embedded() };
    let (spawner, _events) = Spawner::start(config.clone()).await.expect("a jail");
    (directory, config, spawner)
}

async fn exit_of_the_keeper_ends_all_its_processes() {
    let (spawner, mut events) = embedded().await;
    let workers = [started(&spawner, 1).await, started(&spawner, 2).await];
    PidFd::open(spawner.keeper_pid()).and_then(|keeper| keeper.kill()).expect("kill");
    let mut reported = event(&mut events).await;
    if reported == SpawnEvent::ZygotesLost {
        // Keeper and zygotes exit; the kernel decides which exit is reported first.
        reported = event(&mut events).await;
    }
    assert_eq!(reported, SpawnEvent::KeeperLost);
    for worker in workers {
        assert_eq!(worker.process.exited().await, WorkerExitStatus::KeeperLost);
    }
    let lost =
        spawner.spawn_worker(session(3), OWNER, &LIMITS, &WorkerKind::plain()).await.expect_err("no keeper");
    assert!(matches!(lost, SpawnError::KeeperLost), "{lost}");
}

async fn all_processes_exit_with_an_embedded_supervisor() {
    let (spawner, events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    worker.sender.send(&order("hang")).await.expect("order");
    let pids = [worker.process.pid(), spawner.keeper_pid(), spawner.zygote_pids()[0]];
    let pidfds = pids.map(|pid| PidFd::open(pid).expect("alive"));
    drop((worker, spawner, events));
    for pidfd in pidfds {
        wait_until(|| !pidfd.is_alive()).await;
    }
}

async fn a_new_supervisor_adopts_everything() {
    let (directory, config, spawner) = adoptable(Duration::from_mins(1)).await;
    let connect = || async { kept_jails(directory.path(), config.sandbox).await.expect("a folder").jails };
    let mut worker = started(&spawner, 1).await;
    let (exited, unknown) = (started(&spawner, 2).await, started(&spawner, 3).await);
    worker.sender.send(&start(1)).await.expect("start");
    next(&mut worker).await.expect("started");
    let zygote = PidFd::open(spawner.zygote_pids()[0]).expect("zygote");
    // While a supervisor is connected, another one gets nothing, and harms nothing.
    assert!(connect().await.is_empty(), "the keeper has a supervisor");
    exited.process.kill().expect("kill");
    exited.process.exited().await;
    let strange = PidFd::open(unknown.process.pid()).expect("worker");
    spawner.leave();
    drop((worker, exited, unknown, spawner));

    let mut kept = connect().await;
    let kept = kept.pop().expect("the keeper waits");
    let owner_of = |name| [1, 2].map(session).contains(&name).then(|| OWNER.to_owned());
    let adopted = kept.adopt(&config, &owner_of).await.expect("adopted");
    wait_until(|| !zygote.is_alive() && !strange.is_alive()).await;
    let mut workers: HashMap<_, _> = adopted.workers.into_iter().collect();
    assert_eq!(workers.len(), 2);
    let AdoptedWorker::Exited(WorkerExitStatus::Signaled(libc::SIGKILL)) =
        workers.remove(&session(2)).expect("kept")
    else {
        panic!("it was killed meanwhile")
    };
    let AdoptedWorker::Running(mut worker) = workers.remove(&session(1)).expect("kept") else {
        panic!("it runs")
    };
    worker.sender.send(&ToWorker::Adopt { last_committed: 0, nonce: 7 }).await.expect("adopt");
    let reply =
        FromWorker::Adopted { nonce: 7, acknowledged: 0, last_sent: 1, running: None, finished: None };
    // The worker's unacknowledged message, which may also be in the queue still, is sent again.
    while next(&mut worker).await.expect("a reply").message != reply {}
    let again = next(&mut worker).await.expect("the message again");
    assert_eq!((again.seq, again.message), (1, FromWorker::Started { heap_bytes: 1 }));
    assert_eq!(obey(&mut worker, "echo:on").await.expect("done"), "on");
    // The jail ends with its supervisor's last handle, and leaves no file.
    let keeper = PidFd::open(adopted.spawner.keeper_pid()).expect("keeper");
    drop((worker, adopted.spawner, adopted.events));
    wait_until(|| !keeper.is_alive()).await;
    assert_eq!(addresses(directory.path()), Vec::<PathBuf>::new());
}

/// The files of keepers in a folder, without the spare ones, which stay for the next address.
fn addresses(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("readable").path());
    files.filter(|path| path.extension().is_none_or(|end| end != "spare")).collect()
}

/// The keeper's file with this extension.
fn address(folder: &Path, extension: &str) -> PathBuf {
    let files = std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("readable").path());
    let mut files = files.filter(|path| path.extension().is_some_and(|end| end == extension));
    files.next().expect("an address")
}

async fn a_keeper_that_refuses_the_token_is_ended() {
    let (directory, config, spawner) = adoptable(Duration::from_mins(1)).await;
    let keeper = PidFd::open(spawner.keeper_pid()).expect("keeper");
    spawner.leave();
    drop(spawner);
    std::fs::write(address(directory.path(), "token"), [7; 32]).expect("write");
    assert!(kept_jails(directory.path(), config.sandbox).await.expect("a folder").jails.is_empty());
    wait_until(|| !keeper.is_alive()).await;
    assert_eq!(addresses(directory.path()), Vec::<PathBuf>::new());
}

async fn jail_without_a_supervisor_ends_after_the_grace() {
    let (directory, _config, spawner) = adoptable(Duration::from_millis(200)).await;
    let keeper = PidFd::open(spawner.keeper_pid()).expect("keeper");
    let worker = started(&spawner, 1).await;
    let pidfd = PidFd::open(worker.process.pid()).expect("worker");
    spawner.leave();
    drop((worker, spawner));
    // A connection without the token does not extend the grace.
    let unauthorized = socket::connect_to(&address(directory.path(), "sock")).expect("connect");
    let _ = socket::send(&unauthorized, &[b"nonsense"], &[], socket::Wait::Yes);
    wait_until(|| !keeper.is_alive() && !pidfd.is_alive()).await;
}

async fn jail_without_a_supervisor_ends_when_its_lifeline_hangs_up() {
    let (reading, writing) = nix::unistd::pipe().expect("a pipe");
    let (_directory, config, spawner) = adoptable(Duration::from_mins(1)).await;
    drop(spawner);
    let config = SpawnConfig { lifeline: Some(Arc::new(reading)), ..config };
    let (spawner, _events) = Spawner::start(config).await.expect("start");
    let keeper = PidFd::open(spawner.keeper_pid()).expect("keeper");
    let mut worker = started(&spawner, 1).await;
    let pidfd = PidFd::open(worker.process.pid()).expect("worker");
    // It has a supervisor, which decides.
    drop(writing);
    assert_eq!(obey(&mut worker, "echo:on").await.expect("done"), "on");
    assert!(keeper.is_alive() && pidfd.is_alive());
    spawner.leave();
    drop((worker, spawner));
    wait_until(|| !keeper.is_alive() && !pidfd.is_alive()).await;
}

async fn shutdown_leaves_no_process() {
    let (_directory, _config, spawner) = adoptable(Duration::from_mins(1)).await;
    let mut busy = started(&spawner, 1).await;
    busy.sender.send(&order("hang")).await.expect("order");
    let idle = started(&spawner, 2).await;
    let pids: Vec<u32> =
        spawner.zygote_pids().into_iter().chain([busy.process.pid(), idle.process.pid()]).collect();
    let pidfds: Vec<PidFd> = pids.into_iter().map(|pid| PidFd::open(pid).expect("alive")).collect();
    spawner.shutdown(Duration::from_secs(5)).await;
    assert!(pidfds.iter().all(|pidfd| !pidfd.is_alive()), "the kernel ended all before it ended the keeper");
    assert_eq!(busy.process.exited().await, WorkerExitStatus::KeeperLost);
}

async fn a_hundred_workers_run_at_the_same_time() {
    let (spawner, _events) = embedded().await;
    let (mut workers, mut took) = (Vec::new(), Vec::new());
    for number in 0..100 {
        let begun = Instant::now();
        workers.push(started(&spawner, number).await);
        took.push(begun.elapsed().as_micros());
    }
    for (number, worker) in workers.iter_mut().enumerate() {
        assert_eq!(obey(worker, format!("echo:{number}")).await.expect("done"), number.to_string());
    }
    took.sort_unstable();
    let memory = workers[50].process.memory().expect("memory");
    println!(
        "spawn p50 {} p99 {} µs; uss {} pss {} KiB",
        took[50],
        took[98],
        memory.uss >> 10,
        memory.pss >> 10
    );
}

pub(crate) fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).expect("a list of descriptors").count()
}

async fn starts_and_exits_leave_no_descriptor_behind() {
    let (spawner, _events) = embedded().await;
    let (mut ours, mut keepers) = (0, 0);
    for round in 0..20 {
        for number in 0..10 {
            let worker = started(&spawner, number).await;
            worker.process.kill().expect("kill");
            assert_eq!(worker.process.exited().await, WorkerExitStatus::Signaled(libc::SIGKILL));
            worker.process.forget();
        }
        // The keeper handles orders in sequence: after this start, workers that were forgotten before it are gone.
        let last = started(&spawner, 99).await;
        let now = || (descriptors(std::process::id()), descriptors(spawner.keeper_pid()));
        if round == 0 {
            (ours, keepers) = now();
        }
        // Tasks of this process close their ends a little later.
        let is_closed = || now().0 <= ours && now().1 <= keepers;
        watch::until_async(is_closed, &format!("round {round}: more descriptors than {ours} and {keepers}"))
            .await;
        last.process.kill().expect("kill");
        last.process.exited().await;
        last.process.forget();
    }
}

async fn sending_to_a_worker_that_does_not_read_times_out() {
    let (spawner, _events) = embedded().await;
    let mut worker = started(&spawner, 1).await;
    worker.process.signal(libc::SIGSTOP).expect("stop");
    let large = order("x".repeat(4 << 20));
    assert!(matches!(worker.sender.send(&large).await, Err(WorkerChannelError::WriteTimeout)));
}

async fn a_program_that_is_no_keeper_is_an_error() {
    let start = |program: &str| SpawnConfig { program: PathBuf::from(program), ..SpawnConfig::embedded() };
    let missing = Spawner::start(start("/nowhere/at-all")).await.expect_err("missing");
    assert!(matches!(missing, SpawnError::Exec { .. }), "{missing}");
    let other = Spawner::start(start("/bin/true")).await.expect_err("no keeper");
    assert!(matches!(other, SpawnError::WrongHello { .. }), "{other}");
}

/// First argument with which this binary runs [`host_without_user_namespaces`].
pub(crate) const NO_USER_NAMESPACES: &str = "host-without-user-namespaces";

/// Forbids user namespaces within new namespaces of this process and starts a jail there; the exit code is 0 if the error names
/// the sysctl. The machine's own limit is not changed: that would break everything else on it.
pub(crate) fn host_without_user_namespaces() -> i32 {
    let entered = namespaces::enter(namespaces::Ids { uid: 65534, gid: 65534 }, None).is_ok();
    if !entered || std::fs::write("/proc/sys/user/max_user_namespaces", "0").is_err() {
        skip("namespaces", "cannot make a host without user namespaces here");
        return 0;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let refused = runtime.block_on(Spawner::start(SpawnConfig::embedded()));
    let text = refused.err().map_or("started".to_owned(), |error| error.to_string());
    println!("{text}");
    i32::from(!(text.contains("user namespace") && text.contains("max_user_namespaces")))
}

async fn a_host_without_user_namespaces_is_named_with_its_knob() {
    // In a separate process: this one has threads.
    let status =
        std::process::Command::new(SELF).arg(NO_USER_NAMESPACES).status().expect("this program again");
    assert!(status.success(), "{status}");
}

async fn without_namespaces_the_other_walls_are_in_force() {
    let config = SpawnConfig { sandbox: SandboxMode::NoUserns, ..SpawnConfig::embedded() };
    let (spawner, events) = match Spawner::start(config).await {
        Ok(started) => started,
        Err(error @ SpawnError::Rlimit { .. }) if namespaces::is_root() => {
            assert!(!error.is_temporary() && error.hint().contains("CAP_SYS_RESOURCE"), "{error}");
            skip("cap-sys-resource", "without namespaces: this root has no CAP_SYS_RESOURCE");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let walls =
        |layer: Layer| spawner.layers().iter().any(|report| report.name == layer.name() && report.in_force);
    assert!(walls(Layer::Seccomp) && walls(Layer::NoPrivileges) && !walls(Layer::Namespaces));
    let mut worker = started(&spawner, 1).await;
    assert_eq!(obey(&mut worker, "echo:alive").await.expect("done"), "alive");
    worker.sender.send(&order("open")).await.expect("order");
    assert!(next(&mut worker).await.is_err());
    assert_eq!(worker.process.exited().await, WorkerExitStatus::Signaled(libc::SIGKILL));
    let mut busy =
        spawner.spawn_worker(session(2), OWNER, &LIMITS, &WorkerKind::plain()).await.expect("a worker");
    busy.sender.send(&order("hang")).await.expect("order");
    let pids = [busy.process.pid(), spawner.keeper_pid(), spawner.zygote_pids()[0]];
    let pidfds = pids.map(|pid| PidFd::open(pid).expect("alive"));
    drop((busy, worker, spawner, events));
    for pidfd in pidfds {
        wait_until(|| !pidfd.is_alive()).await;
    }
}
