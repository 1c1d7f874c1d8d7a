//! A worker with the behaviour that its orders name: correct, forbidden, or in violation of the protocol. Runs under the
//! production keeper, zygote and filter.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use vm_system_protocol::model::ConsoleLevel;
use vm_system_protocol::model::EventPayload;
use vm_system_protocol::worker::{Done, Execute, FromWorker, Outcome, ToWorker, Usage, WorkerEvent};
use vm_system_sandbox::process::{self, Fork};
use vm_system_sandbox::{interrupt, socket};
use vm_system_worker::link::{Link, PacketBuffer};
use vm_system_worker::roles::{Modes, WorkerBody};

/// Workers of a program with this name never send a hello.
pub(crate) const MUTE: &str = "mute-worker";
/// The zygote of programs of a program with this name panics while it is prepared.
pub(crate) const BREAKS: &str = "breaks-when-prepared";

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static IS_SILENT: AtomicBool = AtomicBool::new(false);
static IS_BREAKING: AtomicBool = AtomicBool::new(false);
static IS_PREPARED: AtomicBool = AtomicBool::new(false);

/// Called before anything else, while `/proc` is still mounted.
pub(crate) fn look_at_own_name() {
    let program = std::env::current_exe().ok();
    let is_called = |name| program.as_deref().and_then(Path::file_name).is_some_and(|own| own == name);
    IS_SILENT.store(is_called(MUTE), Ordering::Relaxed);
    IS_BREAKING.store(is_called(BREAKS), Ordering::Relaxed);
}

pub(crate) const MODES: Modes = Modes { preload, ..Modes::production() };

fn preload() -> Result<Box<dyn WorkerBody>, String> {
    interrupt::install(&INTERRUPTED).map_err(|error| error.to_string())?;
    Ok(Box::new(Obedient))
}

struct Obedient;

impl WorkerBody for Obedient {
    fn prepare_programs(&mut self) {
        assert!(!IS_BREAKING.load(Ordering::Relaxed), "breaks when prepared");
        IS_PREPARED.store(true, Ordering::Relaxed);
    }

    fn run(self: Box<Self>, channel: OwnedFd) -> i32 {
        if IS_SILENT.load(Ordering::Relaxed) {
            let _ = socket::receive(&channel, &mut [0; 64], socket::Wait::Yes);
            return 0;
        }
        let Ok(mut link) = Link::open(channel, &INTERRUPTED, PacketBuffer::new()) else { return 90 };
        loop {
            match link.next_order() {
                ToWorker::Start(_) => link.send(&FromWorker::Started { heap_bytes: 1 }),
                ToWorker::Execute(job) => {
                    link.begin(job.execution);
                    INTERRUPTED.store(false, Ordering::Relaxed);
                    let message = obey(&job, &mut link);
                    link.finish(done(&job, message));
                }
                _ => return 91,
            }
        }
    }
}

fn done(job: &Execute, message: String) -> Done {
    let outcome = Outcome::Exception { message };
    Done { execution: job.execution, events: Vec::new(), outcome, usage: Usage::default() }
}

fn obey(job: &Execute, link: &mut Link) -> String {
    let (order, rest) = job.source.split_once(':').unwrap_or((&job.source, ""));
    match order {
        "echo" => rest.to_owned(),
        "prepared" => IS_PREPARED.load(Ordering::Relaxed).to_string(),
        "spin" => {
            while !INTERRUPTED.load(Ordering::Relaxed) {
                link.poll();
            }
            "interrupted".to_owned()
        }
        "hang" => loop {
            std::hint::spin_loop();
        },
        "exit" => process::exit_now(rest.parse().unwrap_or(0)),
        "panic" => panic!("as ordered"),
        "open" => format!("{:?}", std::fs::read("/etc/passwd").is_ok()),
        "overflow" => overflow(0).to_string(),
        "memory" => {
            let mut blocks: VecDeque<Vec<u8>> = VecDeque::new();
            loop {
                blocks.push_back(vec![1; 1 << 20]);
            }
        }
        "fork" => {
            let tries: u32 = rest.parse().unwrap_or(1);
            let refused = (0..tries)
                .filter(|_| match process::fork_sibling() {
                    Ok(Fork::Child) => process::exit_now(55),
                    Ok(Fork::Parent(_)) => false,
                    Err(_) => true,
                })
                .count();
            refused.to_string()
        }
        "flood" => {
            let bytes: usize = rest.parse().unwrap_or(0);
            let text = "x".repeat(1000);
            for at_us in 0..(bytes / 1000) as u64 {
                let payload = EventPayload::console(ConsoleLevel::Log, text.clone());
                link.emit(WorkerEvent { at_us, payload });
            }
            "flooded".to_owned()
        }
        "garbage" => {
            let _ = socket::send(link.socket(), &[&[0xff; 100]], &[], socket::Wait::Yes);
            "lied".to_owned()
        }
        "descriptors" => {
            let own = std::os::fd::AsFd::as_fd(link.socket());
            let sent = socket::send(link.socket(), &[b"x"], &[own], socket::Wait::Yes);
            format!("{:?}", sent.map_err(|error| error.raw_os_error()))
        }
        other => format!("unknown order {other}"),
    }
}

/// Overflows the stack.
fn overflow(depth: u64) -> u64 {
    let block = std::hint::black_box([depth; 2000]);
    if depth == u64::MAX { 0 } else { overflow(depth + 1) + block[0] }
}
