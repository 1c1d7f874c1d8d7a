//! Bytes that a step of a durable program writes, counted at each stage, for programs that rebuild a large value at every step.
//!
//! `own`: the pages of its checkpoint as the worker sent them. `log`: frames that the store appended to its write-ahead log. `file`:
//! everything else that the supervisor wrote to the disk, mostly pages that were copied back from the log. `all`: both.

use crate::figure::micros;
use std::path::{Path, PathBuf};
use std::time::Instant;
use vm_system_protocol::control::ProgramStart;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::Daemon;

/// Bytes of a frame of the log: a page and its header.
const FRAME_BYTES: u64 = 4_096 + 24;

/// A program that waits for answers of any text, and ends with `stop`.
pub struct Rebuilder {
    /// Name of the figure.
    pub name: &'static str,
    /// Source.
    pub source: &'static str,
    /// Steps; few with a text whose step takes long.
    pub steps: usize,
    /// Length of an answer.
    pub answer: usize,
}

/// A history of messages kept as JSON text, a text that moves, the same with 5 MB.
pub const REBUILDERS: &[Rebuilder] = &[
    Rebuilder {
        name: "history as JSON",
        source: "function main() { let js = '[]'; for (;;) { const l = JSON.parse(js); const a = CC('q' + l.length); \
                 if (a === 'stop') return l.length; l.push({ role: 'user', content: a }); js = JSON.stringify(l) } }",
        steps: 1_000,
        answer: 300,
    },
    Rebuilder {
        name: "text of 200 KB that moves",
        source: "function main() { let s = 'x'.repeat(2e5), n = 0; for (;;) { const a = CC('q' + n++); \
                 if (a === 'stop') return n; s = s.slice(1) + a } }",
        steps: 1_000,
        answer: 300,
    },
    Rebuilder {
        name: "text of 5 MB that moves",
        source: "function main() { let s = '', n = 0; for (let i = 0; s.length < 5e6; i++) s += 'line ' + i * 7919 % 10007 + ', '; \
                 for (;;) { const a = CC('q' + n++); if (a === 'stop') return n; s = s.slice(1) + a } }",
        steps: 100,
        answer: 300,
    },
];

/// Counters at one moment.
#[derive(Clone, Copy, Default)]
struct Counted {
    disk: u64,
    log_frames: u64,
}

/// Reads the counters of a supervisor and its store.
struct Counters {
    pid: u32,
    index: PathBuf,
    /// Salt and length of the log when it was read last, and the frames of the logs before
    log: (u64, u64),
    frames_before: u64,
}

impl Counters {
    fn new(pid: u32, database: &Path) -> Self {
        let mut index = database.as_os_str().to_owned();
        index.push("-shm");
        Self { pid, index: PathBuf::from(index), log: (0, 0), frames_before: 0 }
    }

    fn read(&mut self) -> Counted {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.pid)).unwrap_or_default();
        let disk = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok()).unwrap_or(0);
        // The header of the log's index (walformat.html): frames at 16, salt at 32.
        let header = std::fs::read(&self.index).unwrap_or_default();
        let word =
            |at: usize| header.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        let now = (u64::from(word(32)) << 32 | u64::from(word(36)), u64::from(word(16)));
        if now.0 != self.log.0 {
            self.frames_before += self.log.1;
        }
        self.log = now;
        Counted { disk, log_frames: self.frames_before + now.1 }
    }
}

/// Pseudo-random text of letters, so that no answer is like another one.
fn answer(step: usize, length: usize) -> String {
    let mut seed = step as u64 + 1;
    let letter = |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (seed >> 59) as u8 % 26)
    };
    (0..length).map(letter).collect()
}

/// Runs one program and prints the table of its steps.
pub fn measure(daemon: &Daemon, client: &mut Client, template: &str, what: &Rebuilder) {
    client.load(what.source);
    let new = ProgramStart { template: Some(template.to_owned()), ..ProgramStart::default() };
    let id = client.start_program(new).expect("started").execution.id.to_string();
    let mut counters = Counters::new(daemon.pid(), &daemon.place.path("state/vm-system.db"));
    println!("{} ({} steps, KiB of each step)", what.name, what.steps);
    println!("{:>11} {:>9} {:>8} {:>9} {:>9} {:>9}", "steps", "ms p50", "own", "log", "file", "all");
    let window = what.steps / 10;
    let mut before = counters.read();
    for first in (0..what.steps).step_by(window) {
        let mut times = Vec::new();
        for step in first..first + window {
            let text = answer(step, what.answer);
            let begin = Instant::now();
            if let Err(error) = client.submit(&id, &text) {
                panic!("step {step}: {error:?}: {:?}", client.execution_record(&id));
            }
            times.push(micros(begin.elapsed()) / 1e3);
            // The log may start over; what it held then is counted until the step before.
            counters.read();
        }
        times.sort_by(f64::total_cmp);
        let now = counters.read();
        let list = client.checkpoints(&id);
        let newest = &list[list.len().saturating_sub(window)..];
        let own: u64 = newest.iter().map(|checkpoint| checkpoint.bytes).sum();
        let each = |bytes: u64, count: usize| bytes as f64 / 1024.0 / count.max(1) as f64;
        let disk = now.disk.saturating_sub(before.disk);
        let log = (now.log_frames - before.log_frames) * FRAME_BYTES;
        println!(
            "{:>5}-{:<5} {:>9.2} {:>8.1} {:>9.1} {:>9.1} {:>9.1}",
            first,
            first + window,
            times[times.len() / 2],
            each(own, newest.len()),
            each(log, window),
            each(disk.saturating_sub(log), window),
            each(disk, window),
        );
        before = now;
    }
    client.submit(&id, "stop").expect("ended");
}
