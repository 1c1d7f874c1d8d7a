//! Figures of durable programs: a step (answer → run → next pause, committed under FULL) with small and large states, warm
//! and cold; memory and storage of a paused program; pausing many programs and resuming all of them after every process was
//! killed; the bytes written by a program that appends to a list; steps beside one and beside twelve programs that fill their
//! state, with a timeline; for comparison a step of the durable engines that are installed ([`durable_peer`]). Starts the real binary (build it in the same profile first); never asserts.
//!
//! `cargo run --release -p vm-system-benches --bin durable [-- PART…]`: only these parts (`step`, or one half of it, `warm`
//! or `cold`; `many`, `growth`, `beside`, `written`). `--awake` keeps the processors from sleeping during the measurement.
//! `DURABLE_MANY` is the number of programs of `many` (10000), `DURABLE_KIB` the largest state of a step (102400).

use std::path::Path;
use std::time::{Duration, Instant};
use vm_system_benches::awake::Awake;
use vm_system_benches::cost::Cost;
use vm_system_benches::durable_peer;
use vm_system_benches::figure::{Figure, micros};
use vm_system_benches::floor;
use vm_system_benches::written;
use vm_system_protocol::control::{ExecCancel, ProgramStart, TemplateCreate};
use vm_system_protocol::model::{Engine, ExecutionStatus, Run, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::observe;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::programs::NAME;

/// Steps of one figure with a small state; fewer with large ones.
const STEPS: usize = 300;
/// The largest state of a step (KiB).
const LARGEST_KIB: u32 = 100 << 10;
const CLIENTS: usize = 8;
const APPENDS: u32 = 1_000;

/// Holds text in pieces of 1 KiB, and changes one piece in each step.
const HOLDER: &str = "
    const kept = [];
    for (let i = 0; i < Number(args[0]); i++) kept.push('x'.repeat(1016) + String(10000000 + i));
    for (let i = 0; ; i++) kept[i % kept.length] = CC('next');
";

const TINY: &str = "const answer = CC('what?'); function main() { return answer; }";

const APPENDER: &str = "
    const list = [];
    while (list.length < 1000) list.push(CC('more').repeat(64));
";

/// After its answer it fills its state and ends.
const FILLER: &str = "
    function main() { CC('fill?'); const a = []; for (;;) a.push('x'.repeat(1000) + a.length) }
";

/// How long steps are measured beside programs that grow.
const BESIDE: Duration = Duration::from_secs(20);
/// An interval of the timeline.
const INTERVAL: Duration = Duration::from_millis(500);

fn main() {
    let mut parts: Vec<String> = std::env::args().skip(1).collect();
    let _awake = parts.extract_if(.., |part| part == "--awake").next().map(|_| Awake::start());
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let mut ours = None;
    for (config, how) in [("", "warm"), ("[durable]\nwarm_ms = 0\n", "cold")] {
        if wants("step") || wants(how) {
            ours = ours.or(steps(config, how));
        }
    }
    if wants("step") {
        for peer in durable_peer::steps(STEPS) {
            peer.print(ours.as_ref());
        }
    }
    if wants("many") {
        many();
    }
    if wants("growth") {
        growth();
    }
    if wants("beside") {
        measure_beside(1);
        measure_beside(12);
    }
    if wants("written") {
        for program in written::REBUILDERS {
            let daemon = daemon(TestDir::new(User::AsStarted), "");
            let mut client = daemon.client();
            let template = roomy(&mut client);
            written::measure(&daemon, &mut client, &template, program);
            daemon.stop();
        }
    }
}

fn daemon(place: TestDir, config: &str) -> Daemon {
    let options = DaemonOptions {
        program: "vm-system",
        arguments: vec!["--durability".to_owned(), "full".to_owned()],
        config: config.to_owned(),
        ..DaemonOptions::default()
    };
    Daemon::start_with(place, &options)
}

/// A template of the durable engine for large states.
fn roomy(client: &mut Client) -> String {
    let mut settings = Settings::default();
    (settings.limits.max_state_mb, settings.limits.cpu_ms) = (512, 60_000);
    settings.limits.wall_ms = 60_000;
    let op = TemplateCreate { name: "roomy".to_owned(), engine: Engine::Cvm, settings, modules: Vec::new() };
    client.op(op).expect("template").id.to_string()
}

/// The figure of the small state.
fn steps(config: &str, how: &str) -> Option<Figure> {
    let most = std::env::var("DURABLE_KIB").ok().and_then(|kib| kib.parse().ok()).unwrap_or(LARGEST_KIB);
    let daemon = daemon(TestDir::new(User::AsStarted), config);
    let mut client = daemon.client();
    let template = roomy(&mut client);
    client.load(HOLDER);
    let floor = floor::flush(&daemon.place.path("state"), STEPS).expect("the disk of the state");
    floor.print(None);
    let mut small = None;
    let states = [(1, "1 KB", 1), (1 << 10, "1 MB", 2), (LARGEST_KIB, "100 MB", 15)];
    for (kib, name, share) in states.into_iter().filter(|(kib, ..)| *kib <= most) {
        let count = if how == "warm" { STEPS } else { STEPS / share };
        let new = ProgramStart {
            args: vec![kib.to_string()],
            template: Some(template.clone()),
            ..ProgramStart::default()
        };
        let begin = Instant::now();
        let run = client.start_program(new).expect("started");
        assert_eq!(run.execution.status, ExecutionStatus::Waiting, "{:?}", run.execution.error);
        println!("durable start, state {name}: {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
        let id = run.execution.id.to_string();
        let answer = "y".repeat(1_024);
        let before = Cost::of_process(daemon.pid());
        let figure = Figure::of_times(format!("durable step {how}, state {name}, FULL"), count, |_| {
            client.submit(&id, &answer).expect("accepted");
        });
        // The steps of the warm-up are included.
        let steps = count + count / 10;
        let (cpu_us, sleeps) = Cost::default().plus(before, Cost::of_process(daemon.pid())).each(steps);
        figure.print(Some(small.as_ref().unwrap_or(&floor)));
        println!("  of the supervisor, each: {cpu_us:.0} us on a processor, {sleeps:.1} sleeps");
        small.get_or_insert(figure);
        client.op(ExecCancel { execution: id }).expect("ended");
    }
    daemon.stop();
    small
}

fn bytes_beneath(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter_map(|file| file.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|data| data.len())
        .sum()
}

/// Each client does its share of `count` items; returns the time of each item, and of all.
fn share_out(
    daemon: &Daemon,
    count: usize,
    work: impl Fn(&mut Client, usize) + Sync,
) -> (Vec<f64>, Duration) {
    let begin = Instant::now();
    let times = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|first| {
                let work = &work;
                scope.spawn(move || {
                    let mut client = daemon.client();
                    let mine = (first..count).step_by(CLIENTS);
                    let time = |number| {
                        let begin = Instant::now();
                        work(&mut client, number);
                        micros(begin.elapsed())
                    };
                    mine.map(time).collect::<Vec<f64>>()
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    });
    (times, begin.elapsed())
}

fn many() {
    let count = std::env::var("DURABLE_MANY").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let config = "[durable]\nwarm_ms = 0\n";
    let first = daemon(TestDir::new(User::AsStarted), config);
    first.client().load(TINY);
    let state = first.place.path("state");
    let before = (bytes_beneath(&state), observe::anonymous_kib(first.pid()));
    let half = count / 2;
    let start = |client: &mut Client, number: usize| {
        let new = ProgramStart {
            program: NAME.to_owned(),
            name: Some(number.to_string()),
            ..ProgramStart::default()
        };
        let run = client.op(new).expect("started");
        assert_eq!(run.execution.status, ExecutionStatus::Waiting);
    };
    let cost = Cost::of_process(first.pid());
    let (mut times, first_took) = share_out(&first, half, start);
    let half_way = observe::anonymous_kib(first.pid());
    let (more, second_took) = share_out(&first, count - half, |client, number| start(client, half + number));
    let took = first_took + second_took;
    times.extend(more);
    let (cpu_us, sleeps) = Cost::default().plus(cost, Cost::of_process(first.pid())).each(count);
    Figure::new("durable start to first pause, 8 clients, FULL", "us", times).print(None);
    println!("durable pause {count}: {:.2} s", took.as_secs_f64());
    println!("  of the supervisor, each: {cpu_us:.0} us on a processor, {sleeps:.1} sleeps");
    let now = observe::anonymous_kib(first.pid());
    // Caches of the database fill up to their bounds; the growth by the second half is that of the programs.
    println!(
        "durable memory of the supervisor for {count} paused: {} KiB, of it for the second half: {} KiB",
        now.saturating_sub(before.1),
        now.saturating_sub(half_way)
    );
    // A stop merges the write-ahead log into the file.
    let place = first.stop();
    let bytes = bytes_beneath(&state).saturating_sub(before.0);
    println!("durable rows of a paused program: {} B each", bytes / count as u64);
    let (place, family) = daemon(place, config).kill();
    for process in &family {
        // The process may have exited already.
        let _ = process.kill();
    }
    observe::all_end(&family);
    let begin = Instant::now();
    let second = daemon(place, config);
    println!(
        "durable ready again after kill -9 of everything: {:.1} ms",
        begin.elapsed().as_secs_f64() * 1e3
    );
    let cost = Cost::of_process(second.pid());
    let (times, took) = share_out(&second, count, |client, number| {
        let run: Run = client.submit(&number.to_string(), "yes").expect("accepted");
        assert_eq!(run.execution.status, ExecutionStatus::Ok, "{:?}", run.execution.error);
    });
    Figure::new("durable answer to end, cold, 8 clients, FULL", "us", times).print(None);
    println!("durable resume {count} after kill -9: {:.2} s, none lost", took.as_secs_f64());
    let (cpu_us, sleeps) = Cost::default().plus(cost, Cost::of_process(second.pid())).each(count);
    println!("  of the supervisor, each: {cpu_us:.0} us on a processor, {sleeps:.1} sleeps");
    second.stop();
}

fn growth() {
    let daemon = daemon(TestDir::new(User::AsStarted), "[durable]\nhistory = 0\n");
    let mut client = daemon.client();
    let template = roomy(&mut client);
    client.load(APPENDER);
    let run = client
        .start_program(ProgramStart { template: Some(template), ..ProgramStart::default() })
        .expect("started");
    let id = run.execution.id.to_string();
    let answer = "0123456789abcdef";
    let mut times = Vec::new();
    for _ in 0..APPENDS {
        let begin = Instant::now();
        client.submit(&id, answer).expect("accepted");
        times.push(micros(begin.elapsed()));
    }
    let last = times.split_off(times.len() - times.len() / 10);
    times.truncate(last.len());
    let first = Figure::new("durable append 1 KB, first 100, FULL", "us", times);
    first.print(None);
    Figure::new("durable append 1 KB, last 100, FULL", "us", last).print(Some(&first));
    let written: Vec<u64> = client.checkpoints(&id).iter().map(|checkpoint| checkpoint.bytes).collect();
    let total: u64 = written.iter().sum();
    println!(
        "durable bytes written by {APPENDS} appends of 1 KB: {total} ({} each)",
        total / u64::from(APPENDS)
    );
    daemon.stop();
}

/// Steps of a small program while others of the same owner fill their states.
fn measure_beside(others: usize) {
    let daemon = daemon(TestDir::new(User::AsStarted), "[durable]\ncheckpoint_ms = 500\n");
    let mut client = daemon.client();
    client.load(FILLER);
    let fillers: Vec<String> = (0..others)
        .map(|_| client.start_program(ProgramStart::default()).expect("started").execution.id.to_string())
        .collect();
    client.load(HOLDER);
    let small = ProgramStart { args: vec!["1".to_owned()], ..ProgramStart::default() };
    let small = client.start_program(small).expect("started").execution.id.to_string();
    let alone = Figure::of_times("durable step alone, FULL", STEPS, |_| {
        client.submit(&small, "y").expect("accepted");
    });
    alone.print(None);
    let (begin, state) = (Instant::now(), daemon.place.path("state"));
    let mut steps = Vec::new();
    std::thread::scope(|scope| {
        for filler in &fillers {
            let mut client = daemon.client();
            scope.spawn(move || client.submit(filler, "y").expect("accepted"));
        }
        while begin.elapsed() < BESIDE {
            let at = begin.elapsed();
            client.submit(&small, "y").expect("accepted");
            let mebibytes =
                |name: &str| std::fs::metadata(state.join(name)).map_or(0, |file| file.len() >> 20);
            let files = (mebibytes("vm-system.db"), mebibytes("vm-system.db-wal"));
            steps.push((at, begin.elapsed().saturating_sub(at), files));
        }
    });
    println!("   from ms  steps    p50 ms    max ms  database MiB  log MiB");
    let interval = |at: &Duration| at.as_millis() / INTERVAL.as_millis();
    for part in steps.chunk_by(|(one, ..), (other, ..)| interval(one) == interval(other)) {
        let times = part.iter().map(|(_, took, _)| took.as_secs_f64() * 1e3).collect();
        let figure = Figure::new("", "ms", times);
        let Some((at, _, (database, log))) = part.last() else { continue };
        let (from, count) = (interval(at) * INTERVAL.as_millis(), part.len());
        let (median, most) = (figure.quantile(0.5), figure.quantile(1.0));
        println!("{from:>10}  {count:>5}  {median:>8.1}  {most:>8.1}  {database:>12}  {log:>7}");
    }
    let times = steps.iter().map(|(_, took, _)| micros(*took)).collect();
    let figure = Figure::new(format!("durable step beside {others} that grow, FULL"), "us", times);
    figure.print(Some(&alone));
    println!("  the longest: {:.1} ms", figure.quantile(1.0) / 1e3);
    daemon.stop();
}
