//! Installed JavaScript engines as plain processes: peers without a sandbox. A missing engine is skipped with a notice.

use crate::figure::{Figure, micros};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// A loop that evaluates lines, like the peer's REPL without its prompt.
const NODE_LOOP: &str = "require('readline').createInterface({ input: process.stdin })\
    .on('line', line => process.stdout.write(String((0, eval)(line)) + '\\n'))";
const DENO_LOOP: &str = "import readline from 'node:readline'; import process from 'node:process'; \
    readline.createInterface({ input: process.stdin })\
    .on('line', line => process.stdout.write(String((0, eval)(line)) + '\\n'))";
const QJS_LOOP: &str = "let line; while ((line = std.in.getline()) !== null) { \
    std.out.puts(String((0, eval)(line)) + '\\n'); std.out.flush() }";

const PEERS: &[(&str, &[&str])] =
    &[("node", &["-e", NODE_LOOP]), ("deno", &["eval", DENO_LOOP]), ("qjs", &["--std", "-e", QJS_LOOP])];

/// A running peer that evaluates lines.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(program: &str, arguments: &[&str]) -> Option<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let (input, output) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Self { child, input, output })
    }

    fn eval(&mut self, line: &str) -> Option<String> {
        self.input.write_all(format!("{line}\n").as_bytes()).ok()?;
        let mut response = String::new();
        self.output.read_line(&mut response).ok()?;
        (!response.is_empty()).then_some(response)
    }

    fn uss_kib(&self) -> Option<f64> {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id())).ok()?;
        let private = rollup.lines().filter(|line| line.starts_with("Private_"));
        Some(private.filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse::<f64>().ok()).sum())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Best effort: the child may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Figures of one peer.
#[derive(Debug)]
pub struct PeerFigures {
    /// From the start of a process to its first response.
    pub create: Figure,
    /// Private memory after one response.
    pub uss: Figure,
    /// The round trip of one line.
    pub eval: Figure,
}

/// Measures the peers that are installed.
pub fn measure(starts: usize, evals: usize) -> Vec<PeerFigures> {
    PEERS.iter().filter_map(|(name, arguments)| measure_one(name, arguments, starts, evals)).collect()
}

fn measure_one(name: &str, arguments: &[&str], starts: usize, evals: usize) -> Option<PeerFigures> {
    let (mut create, mut uss) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        let begin = Instant::now();
        let started = Peer::start(name, arguments).and_then(|mut peer| peer.eval("1+2").map(|_| peer));
        let Some(peer) = started else {
            println!("SKIPPED: {name} is not on this machine");
            return None;
        };
        create.push(micros(begin.elapsed()));
        uss.extend(peer.uss_kib());
    }
    let mut peer = Peer::start(name, arguments)?;
    let eval = Figure::of_times(format!("{name} process: eval 1+2 over a pipe"), evals, |_| {
        peer.eval("1+2");
    });
    Some(PeerFigures {
        create: Figure::new(format!("{name} process: start to first response"), "us", create),
        uss: Figure::new(format!("{name} process: USS"), "KiB", uss),
        eval,
    })
}
