//! Figures of the main path: creating sessions, their idle memory, the round trip of a recorded execution, and executions per
//! second; for comparison the lower bounds of the machine. Starts the real binary (build it in the same profile first); never
//! asserts.
//!
//! `cargo run --release -p vm-system-benches --bin spine [-- [--awake] PART…]`: only these parts (`--help` lists them).
//! `--awake` keeps the processors from sleeping during the measurement; with `kernel.sched_autogroup_enabled` its threads compete
//! with the measured ones (`benches/src/awake.rs`), and a notice is printed. State is stored in the folder for temporary files;
//! figures with "memory disk" have it in `/dev/shm`, so that they show the software alone. The processor time per execution
//! depends least on other load of the machine.

use anyhow::Context as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use vm_system_benches::awake::Awake;
use vm_system_benches::cost::Cost;
use vm_system_benches::figure::{Figure, micros};
use vm_system_benches::{floor, peer};
use vm_system_protocol::control::{HealthGet, SessionAddCheckpoint, SessionRollback};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::model::{OnCrash, Session, Settings};
use vm_system_spawn::{SpawnConfig, Spawner, WorkerKind, WorkerLimits};
use vm_system_tests::client::Client;
use vm_system_tests::command;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::program;

const CREATES: usize = 300;
const FORKS: usize = 200;
/// Heaps of sessions that are forked (MiB).
const HEAPS: [usize; 2] = [1, 100];
const LIVE: usize = 200;
const EVALS: usize = 2_000;
const BLOCK: usize = 100;
const CLIENTS: usize = 8;
const COMMANDS: usize = 50;
const FLOORS: usize = 1_000;
const PEER_STARTS: usize = 20;
const MEMORY_DISK: &str = "/dev/shm";

const PARTS: [&str; 7] = ["create", "fork", "rollback", "memory", "eval", "throughput", "cli"];
const HELP: &str = "\
usage: spine [--awake] [PART…]

Figures of the main path, from the vm-system program in the same folder. Without a PART: all parts, and the peers that are
installed.

parts:
  create      creating and closing sessions, and the start of a worker in it
  fork        forking sessions with a small and a large heap
  rollback    an execution with `on_crash: rollback` and without, and a rollback, with a small and a large heap
  memory      idle sessions
  eval        the round trip of a recorded execution
  throughput  executions of eight clients
  cli         starts of the command

options:
  --awake     keep the processors from sleeping during the measurement (best with kernel.sched_autogroup_enabled=0)
  --help      this text";

fn main() -> ExitCode {
    let (options, parts): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    if options.iter().any(|option| option == "--help" || option == "-h") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let unknown = options.iter().find(|option| *option != "--awake");
    if let Some(unknown) = unknown.or(parts.iter().find(|part| !PARTS.contains(&part.as_str()))) {
        eprintln!("spine: {unknown} is neither a part nor an option\n\n{HELP}");
        return ExitCode::from(2);
    }
    match measure(!options.is_empty(), &parts) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("spine: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(awake: bool, parts: &[String]) -> anyhow::Result<()> {
    let _awake = awake.then(Awake::start);
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let peers = if parts.is_empty() { peer::measure(PEER_STARTS, EVALS) } else { Vec::new() };
    let peer = peers.first();
    let scene = Scene::start()?;
    if wants("create") {
        creates(&scene, peer.map(|peer| &peer.create))?;
    }
    if wants("fork") {
        for side in scene.sides() {
            forks(side);
        }
    }
    if wants("rollback") {
        for side in scene.sides() {
            rollbacks(side);
        }
    }
    if wants("memory") {
        memory(&scene.full, peer.map(|peer| &peer.uss));
    }
    if wants("eval") {
        round_trips(&scene, peer.map(|peer| &peer.eval));
    }
    if wants("throughput") {
        for side in scene.sides() {
            throughput(side);
        }
    }
    if wants("cli") {
        commands(&scene.full);
    }
    for peer in &peers {
        peer.create.print(None);
        peer.uss.print(None);
        peer.eval.print(None);
    }
    scene.stop();
    Ok(())
}

/// A daemon and the name of its figures.
struct Side {
    daemon: Daemon,
    name: &'static str,
}

/// Three daemons with different costs of a commit.
struct Scene {
    normal: Side,
    full: Side,
    /// FULL on a memory disk.
    memory: Side,
    floors: Floors,
}

struct Floors {
    flush: Figure,
    stream: Figure,
}

impl Scene {
    fn start() -> anyhow::Result<Self> {
        let normal = daemon(TestDir::new(User::AsStarted), "normal", "NORMAL");
        let full = daemon(TestDir::new(User::AsStarted), "full", "FULL");
        let memory = TestDir::new_in(Path::new(MEMORY_DISK), User::AsStarted);
        let memory = daemon(memory, "full", "FULL, memory disk");
        let state = full.daemon.place.path("state");
        let floors = Floors {
            flush: floor::flush(&state, FLOORS).context("floor of the disk")?,
            stream: floor::stream(FLOORS).context("floor of a stream")?,
        };
        floors.flush.print(None);
        floors.stream.print(None);
        floor::packets(FLOORS).context("floor of packets")?.print(Some(&floors.stream));
        Ok(Self { normal, full, memory, floors })
    }

    fn sides(&self) -> [&Side; 3] {
        [&self.normal, &self.full, &self.memory]
    }

    fn stop(self) {
        for side in [self.normal, self.full, self.memory] {
            side.daemon.stop();
        }
    }
}

fn daemon(place: TestDir, durability: &str, name: &'static str) -> Side {
    let options = DaemonOptions {
        program: "vm-system",
        arguments: vec!["--durability".to_owned(), durability.to_owned()],
        // The memory disk is another mount than `/`.
        config: format!("worktree_roots = [\"{}\"]\n", place.worktree().display()),
        ..DaemonOptions::default()
    };
    Side { daemon: Daemon::start_with(place, &options), name }
}

fn session(client: &mut Client, daemon: &Daemon, template: &str) -> Session {
    client.session(template, &daemon.place.worktree()).expect("session")
}

/// The creation of sessions, and the stage in it that starts the worker.
fn creates(scene: &Scene, peer: Option<&Figure>) -> anyhow::Result<()> {
    let worker_spawns = worker_spawns()?;
    worker_spawns.print(None);
    let rounds = CREATES + CREATES / 10;
    for side in scene.sides() {
        let mut client = side.daemon.client();
        let template = client.template(Settings::default(), &[]);
        let (mut creates, mut closes) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
        let before = Cost::of_process(side.daemon.pid());
        for _ in 0..rounds {
            let begin = Instant::now();
            let created = session(&mut client, &side.daemon, &template);
            creates.push(micros(begin.elapsed()));
            let begin = Instant::now();
            client.close(&created);
            closes.push(micros(begin.elapsed()));
        }
        let (cpu_us, sleeps) = Cost::default().plus(before, Cost::of_process(side.daemon.pid())).each(rounds);
        let figure = |what: &str, mut samples: Vec<f64>| {
            Figure::new(format!("{what} ({})", side.name), "us", samples.split_off(CREATES / 10))
        };
        let create = figure("session create, row committed", creates);
        create.print(Some(if std::ptr::eq(side, &raw const scene.full) {
            &scene.floors.flush
        } else {
            &worker_spawns
        }));
        figure("session close, row committed", closes).print(None);
        println!("  supervisor: {cpu_us:.0} us of processor time and {sleeps:.1} sleeps for both");
        if let Some(peer) = peer {
            create.print(Some(peer));
        }
    }
    Ok(())
}

/// From the order to a worker with limits that is verified from outside and kept by the keeper: without an API and the store.
fn worker_spawns() -> anyhow::Result<Figure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let program = program::path("vm-system", User::AsStarted);
        let (spawner, _events) = Spawner::start(SpawnConfig { program, ..SpawnConfig::embedded() }).await?;
        let limits = WorkerLimits { memory_bytes: 64 << 20, cpu: None };
        let mut samples = Vec::with_capacity(CREATES);
        for number in 0..CREATES + CREATES / 10 {
            let session = SessionId::from_uuid(uuid::Uuid::now_v7());
            let begin = Instant::now();
            let worker = spawner.spawn_worker(session, "bench", &limits, &WorkerKind::plain()).await?;
            if number >= CREATES / 10 {
                samples.push(micros(begin.elapsed()));
            }
            worker.process.kill()?;
            worker.process.exited().await;
            worker.process.forget();
        }
        spawner.shutdown(std::time::Duration::from_secs(5)).await;
        Ok(Figure::new("  of that: a worker, spawned and kept", "us", samples))
    })
}

/// Executions in sessions that make a copy before each, beside those that do not, and the way back to a checkpoint.
fn rollbacks(side: &Side) {
    let mut client = side.daemon.client();
    for mib in HEAPS {
        let mut sessions = [OnCrash::Close, OnCrash::Rollback].map(|on_crash| {
            let mut settings = Settings::default();
            settings.limits.mem_mb = 512;
            settings.runtime.on_crash = on_crash;
            let template = client.template(settings, &[]);
            let session = session(&mut client, &side.daemon, &template);
            client.eval(&session, &fill(mib)).expect("eval");
            (session, on_crash, Vec::new())
        });
        // In turns, so that both have the same noise.
        for number in 0..FORKS + FORKS / 10 {
            for (session, _, samples) in &mut sessions {
                let begin = Instant::now();
                client.eval(session, "1+2").expect("eval");
                if number >= FORKS / 10 {
                    samples.push(micros(begin.elapsed()));
                }
            }
        }
        for (session, on_crash, samples) in sessions {
            let name = format!("execution, on_crash {on_crash}, {mib} MiB of heap ({})", side.name);
            Figure::new(name, "us", samples).print(None);
            if on_crash == OnCrash::Close {
                way_back(side, &mut client, &session, mib);
            }
            client.close(&session);
        }
    }
}

fn way_back(side: &Side, client: &mut Client, session: &Session, mib: usize) {
    let id = session.id.to_string();
    client.op(SessionAddCheckpoint { session: id.clone(), name: None }).expect("a checkpoint");
    let samples = (0..FORKS / 4).map(|_| {
        let begin = Instant::now();
        client.op(SessionRollback { session: id.clone(), checkpoint: None }).expect("rolled back");
        micros(begin.elapsed())
    });
    let samples = samples.collect();
    Figure::new(format!("session rollback, {mib} MiB of heap ({})", side.name), "us", samples).print(None);
}

/// Code that fills the heap. About 1 KiB each: an object with a number and a separate text.
fn fill(mib: usize) -> String {
    format!(
        "var all = []; for (let i = 0; i < {mib} * 1024; i++) all.push({{ i, text: String(i).padEnd(900, 'x') }}); 1"
    )
}

/// Forks of sessions with a small and a large heap; each fork is closed before the next one is created.
fn forks(side: &Side) {
    let mut client = side.daemon.client();
    let mut settings = Settings::default();
    settings.limits.mem_mb = 512;
    let template = client.template(settings, &[]);
    for mib in HEAPS {
        let parent = session(&mut client, &side.daemon, &template);
        client.eval(&parent, &fill(mib)).expect("eval");
        let heap = client.inspect(&parent).ok().and_then(|seen| seen.uss_kib).unwrap_or_default() / 1024;
        let mut samples = Vec::with_capacity(FORKS);
        for number in 0..FORKS + FORKS / 10 {
            let begin = Instant::now();
            let created = client.fork(&parent, 1).expect("forked");
            if number >= FORKS / 10 {
                samples.push(micros(begin.elapsed()));
            }
            for fork in &created {
                client.close(fork);
            }
        }
        Figure::new(format!("session fork, {mib} MiB of heap ({})", side.name), "us", samples).print(None);
        println!("  the parent's own memory: {heap} MiB");
        client.close(&parent);
    }
}

fn memory(side: &Side, peer: Option<&Figure>) {
    let mut client = side.daemon.client();
    let template = client.template(Settings::default(), &[]);
    let live: Vec<Session> = (0..LIVE).map(|_| session(&mut client, &side.daemon, &template)).collect();
    sizes(&mut client, &live, "idle session, ready", None);
    for session in &live {
        client.eval(session, "1+2").expect("eval");
    }
    sizes(&mut client, &live, "idle session, after one eval", peer);
    for session in &live {
        client.eval(session, "console.log({ a: [1, 2], b: 'x' }); [1, 2, 3].map(x => x * 2)").expect("eval");
    }
    sizes(&mut client, &live, "idle session, after a second eval", peer);
    for session in &live {
        client.close(session);
    }
}

fn sizes(client: &mut Client, live: &[Session], what: &str, peer: Option<&Figure>) {
    let seen: Vec<_> = live.iter().map(|session| client.inspect(session).expect("live")).collect();
    let kib = |values: Vec<Option<u64>>| values.into_iter().flatten().map(|kib| kib as f64).collect();
    let uss = kib(seen.iter().map(|session| session.uss_kib).collect());
    let pss = kib(seen.iter().map(|session| session.pss_kib).collect());
    Figure::new(format!("{what}, {LIVE} live: USS"), "KiB", uss).print(peer);
    Figure::new(format!("{what}, {LIVE} live: PSS"), "KiB", pss).print(None);
}

/// Alternates between the daemons, so that all have the same noise.
fn round_trips(scene: &Scene, peer: Option<&Figure>) {
    struct Run<'a> {
        side: &'a Side,
        client: Client,
        session: Session,
        evals: Vec<f64>,
        nothings: Vec<f64>,
        supervisor: Cost,
        /// Processor time of each block, for one execution (microseconds).
        supervisor_us: Vec<f64>,
        worker: Cost,
        worker_pid: u32,
    }
    let mut runs: Vec<Run<'_>> = scene
        .sides()
        .into_iter()
        .map(|side| {
            let mut client = side.daemon.client();
            let template = client.template(Settings::default(), &[]);
            let session = session(&mut client, &side.daemon, &template);
            let worker_pid = client.inspect(&session).map_or(0, |seen| seen.pid);
            let (evals, nothings) = (Vec::with_capacity(EVALS), Vec::with_capacity(EVALS));
            let (supervisor, worker) = (Cost::default(), Cost::default());
            let supervisor_us = Vec::new();
            Run { side, client, session, evals, nothings, supervisor, supervisor_us, worker, worker_pid }
        })
        .collect();
    // In blocks, like the measurement of a peer: otherwise each execution would run with the caches that another daemon has filled.
    for block in 0..=EVALS / BLOCK {
        for run in &mut runs {
            let (supervisor, worker) =
                (Cost::of_process(run.side.daemon.pid()), Cost::of_process(run.worker_pid));
            for _ in 0..BLOCK {
                let begin = Instant::now();
                run.client.eval(&run.session, "1+2").expect("eval");
                run.evals.push(micros(begin.elapsed()));
            }
            let spent = Cost::default().plus(supervisor, Cost::of_process(run.side.daemon.pid()));
            run.supervisor_us.push(spent.each(BLOCK).0);
            run.supervisor = run.supervisor.plus(Cost::default(), spent);
            run.worker = run.worker.plus(worker, Cost::of_process(run.worker_pid));
            if block == 0 {
                // The warm-up.
                run.evals.clear();
                run.supervisor_us.clear();
                (run.supervisor, run.worker) = (Cost::default(), Cost::default());
            }
        }
    }
    for mut run in runs {
        let count = run.evals.len();
        let (_, sleeps) = run.supervisor.each(count);
        let (worker_us, worker_sleeps) = run.worker.each(count);
        for _ in 0..EVALS {
            let begin = Instant::now();
            run.client.op(HealthGet).expect("health");
            run.nothings.push(micros(begin.elapsed()));
        }
        let is_full = std::ptr::eq(run.side, &raw const scene.full);
        let evals = Figure::new(
            format!("eval 1+2, record and events committed ({})", run.side.name),
            "us",
            run.evals,
        );
        evals.print(Some(if is_full { &scene.floors.flush } else { &scene.floors.stream }));
        spent(run.side, run.supervisor_us);
        println!("  supervisor: {sleeps:.1} sleeps; worker: {worker_us:.0} us, {worker_sleeps:.1} sleeps");
        if let Some(peer) = peer {
            evals.print(Some(peer));
        }
        Figure::new(format!("  a request that does nothing ({})", run.side.name), "us", run.nothings)
            .print(Some(&scene.floors.stream));
        run.client.close(&run.session);
    }
}

/// Prints the processor time that one execution costs the supervisor.
fn spent(side: &Side, each_us: Vec<f64>) {
    Figure::new(format!("  supervisor's processor time for each ({})", side.name), "us", each_us).print(None);
}

fn throughput(side: &Side) {
    let daemon = &side.daemon;
    let template = daemon.client().template(Settings::default(), &[]);
    let before = Cost::of_process(daemon.pid());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = daemon.client();
                let session = session(&mut client, daemon, &template);
                for _ in 0..EVALS {
                    client.eval(&session, "1+2").expect("eval");
                }
                client.close(&session);
            });
        }
    });
    let rate = (CLIENTS * EVALS) as f64 / begin.elapsed().as_secs_f64();
    Figure::new(format!("executions with {CLIENTS} sessions ({})", side.name), "per s", vec![rate])
        .print(None);
    let (cpu_us, sleeps) = Cost::default().plus(before, Cost::of_process(daemon.pid())).each(CLIENTS * EVALS);
    spent(side, vec![cpu_us]);
    println!("  supervisor: {sleeps:.1} sleeps for each");
}

fn commands(side: &Side) {
    let place = &side.daemon.place;
    let of = |name: &str, arguments: &[&str]| {
        let run = |_| {
            command::run(command::command(place, "vm-system").args(arguments), "");
        };
        Figure::of_times(name, COMMANDS, run).print(None);
    };
    of("command: --version", &["--version"]);
    of("command: ops health", &["ops", "health"]);
    of("command: run -e '1+2', embedded supervisor", &["run", "-e", "1+2"]);
}
