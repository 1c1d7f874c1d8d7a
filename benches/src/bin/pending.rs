//! Figures of programs that wait for many things at once: an answer to one of 10, 100 and 1 000 pending tasks, committed under FULL; many
//! programs that sleep until the same moment, and when the last of them has woken; the start of the daemon with many that sleep on.
//! Starts the real binary (build it in the same profile first); never asserts.
//!
//! `cargo run --release -p vm-system-benches --bin pending [-- PART…]`: only these parts (`answers`, `sleepers`, `start`).
//! `PENDING_SLEEPERS` is the number of programs of `sleepers` (10000), `PENDING_START` that of `start` (100000).

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use vm_system_benches::cost::Cost;
use vm_system_benches::figure::{Figure, micros};
use vm_system_benches::floor;
use vm_system_protocol::control::{GivenAnswer, ListPage, ProgramStart, RunList, TaskList, TaskSubmit};
use vm_system_protocol::ids::TaskId;
use vm_system_protocol::model::ExecutionStatus;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::observe;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::programs::id;
use vm_system_tests::watch::Watch;

const CLIENTS: usize = 8;
/// Answers of each figure.
const ANSWERS: usize = 300;
/// Starts of the daemon for each figure.
const STARTS: usize = 7;

const ALL: &str = "
    async function main() { await Promise.all(Array.from({ length: Number(args[0]) }, (_, i) => CC.async(`${i}`))); }
";
const SLEEPER: &str = "async function main() { await sleep(Number(args[0]) - Date.now()); }";

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    if wants("answers") {
        answers();
    }
    if wants("sleepers") {
        sleepers(number("PENDING_SLEEPERS", 10_000));
    }
    if wants("start") {
        start(number("PENDING_START", 100_000));
    }
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn daemon(place: TestDir) -> Daemon {
    let options = DaemonOptions {
        program: "vm-system",
        arguments: vec!["--durability".to_owned(), "full".to_owned()],
        ..DaemonOptions::default()
    };
    Daemon::start_with(place, &options)
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

/// The tasks of an execution, in the order in which it created them.
fn tasks(client: &mut Client, execution: &str) -> Vec<TaskId> {
    let filter =
        TaskList { execution: Some(execution.to_owned()), ..TaskList::pending(ListPage::first(10_000)) };
    client.op(filter).expect("a list").into_iter().map(|listed| listed.task.id).collect()
}

/// Answers to one of several pending tasks, each with the checkpoint that has it.
fn answers() {
    let daemon = daemon(TestDir::new(User::AsStarted));
    let mut client = daemon.client();
    client.load(ALL);
    let floor = floor::flush(&daemon.place.path("state"), ANSWERS).expect("the disk of the state");
    floor.print(None);
    for pending in [10, 100, 1_000] {
        let mut times = Vec::new();
        let mut cost = Cost::default();
        while times.len() < ANSWERS {
            let new = ProgramStart { args: vec![pending.to_string()], ..ProgramStart::default() };
            let run = client.start_program(new).expect("started");
            let execution = id(&run);
            // Not the last ones: those would be answers to one of few.
            let most = (ANSWERS - times.len()).min(pending * 4 / 5);
            let tasks = tasks(&mut client, &execution);
            let before = Cost::of_process(daemon.pid());
            for task in tasks.into_iter().take(most) {
                let begin = Instant::now();
                let (task, result) = (Some(task.to_string()), GivenAnswer::Typed("yes".to_owned()));
                client
                    .op(TaskSubmit { execution: execution.clone(), task, result, wait: true })
                    .expect("taken");
                times.push(micros(begin.elapsed()));
            }
            cost = cost.plus(before, Cost::of_process(daemon.pid()));
        }
        let (cpu_us, sleeps) = cost.each(times.len());
        let name = format!("durable answer to one of {pending}, FULL");
        Figure::new(name, "us", times).print(Some(&floor));
        println!("  of the supervisor, each: {cpu_us:.0} us on a processor, {sleeps:.1} sleeps");
    }
    daemon.stop();
}

/// Starts programs with one argument, shared out to several clients.
fn start_all(daemon: &Daemon, count: usize, argument: &str) -> Duration {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for worker in 0..CLIENTS {
            let mut client = daemon.client();
            scope.spawn(move || {
                for _ in (worker..count).step_by(CLIENTS) {
                    let args = vec![argument.to_owned()];
                    let new = ProgramStart { args, wait: false, ..ProgramStart::default() };
                    client.start_program(new).expect("started");
                }
            });
        }
    });
    until_none(daemon, ExecutionStatus::Running, "does not wait");
    begin.elapsed()
}

/// Waits until no execution has this status.
fn until_none(daemon: &Daemon, status: ExecutionStatus, what: &str) {
    let mut client = daemon.client();
    let mut watch = Watch::begin();
    loop {
        let filter = RunList { status: Some(status), page: ListPage::first(1), ..RunList::default() };
        if client.op(filter).expect("a list").is_empty() {
            return;
        }
        watch.pause(|| format!("a program {what}"));
    }
}

/// Programs that wake at the same moment.
fn sleepers(count: usize) {
    let daemon = daemon(TestDir::new(User::AsStarted));
    daemon.client().load(SLEEPER);
    let before = observe::anonymous_kib(daemon.pid());
    // Enough to start them all; said again below if not.
    let moment = now_ms() + 20_000 + 8 * count as u128;
    let took = start_all(&daemon, count, &moment.to_string());
    println!("durable sleepers: {count} started and asleep after {:.1} s", took.as_secs_f64());
    let left = moment.saturating_sub(now_ms());
    if left < 5_000 {
        println!("  too late: only {left} ms before the moment");
    }
    std::thread::sleep(Duration::from_millis(u64::try_from(left / 2).unwrap_or(0)));
    let memory = observe::anonymous_kib(daemon.pid()).saturating_sub(before);
    println!(
        "  asleep: {} processes of the daemon, {memory} KiB more in the supervisor",
        daemon.family().len()
    );
    let left = moment.saturating_sub(now_ms());
    std::thread::sleep(Duration::from_millis(u64::try_from(left).unwrap_or(0)));
    let begin = Instant::now();
    until_none(&daemon, ExecutionStatus::Waiting, "is not woken");
    until_none(&daemon, ExecutionStatus::Running, "does not end");
    println!("  all have woken and ended {:.2} s after their moment", begin.elapsed().as_secs_f64());
    daemon.stop();
}

/// The start of the daemon beside programs of which none is due.
fn start(count: usize) {
    let starts = |mut place: TestDir, name: String, peer: Option<&Figure>| {
        let mut times = Vec::new();
        for _ in 0..STARTS {
            let begin = Instant::now();
            let started = daemon(place);
            times.push(micros(begin.elapsed()));
            place = started.stop();
        }
        let figure = Figure::new(name, "us", times);
        figure.print(peer);
        (place, figure)
    };
    let (place, without) =
        starts(TestDir::new(User::AsStarted), "start of the daemon, nothing stored".to_owned(), None);
    let filled = daemon(place);
    filled.client().load(SLEEPER);
    let month = now_ms() + 30 * 24 * 3_600_000;
    start_all(&filled, count, &month.to_string());
    starts(filled.stop(), format!("start of the daemon, {count} asleep"), Some(&without));
}
