//! A worker with the behaviour that its orders name: a correct small engine, natives that never poll, crashes, violations.
//! Runs under the production keeper, zygote and filter.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use vm_system_protocol::broker::FsRequest;
use vm_system_protocol::codec::encode;
use vm_system_protocol::durable::{Cause, FromDurable, Stop, ToDurable};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::WORKER_MESSAGE_BYTES;
use vm_system_protocol::model::{ConsoleLevel, EventPayload, JsType, ResultValue};
use vm_system_protocol::packet::pieces;
use vm_system_protocol::worker::{
    Done, Execute, FromWorker, HostReply, HostRequest, Outcome, ToWorker, Usage, WorkerEvent,
};
use vm_system_sandbox::{interrupt, process, socket};
use vm_system_worker::link::{Link, PacketBuffer};
use vm_system_worker::roles::{Modes, WorkerBody};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub(crate) const MODES: Modes = Modes { preload, ..Modes::production() };

/// Violations of `violation:0` … `violation:9`.
pub(crate) const VIOLATIONS: u32 = 10;

fn preload() -> Result<Box<dyn WorkerBody>, String> {
    interrupt::install(&INTERRUPTED).map_err(|error| error.to_string())?;
    Ok(Box::new(Player { memory: String::new() }))
}

struct Player {
    memory: String,
}

impl WorkerBody for Player {
    fn run(mut self: Box<Self>, channel: OwnedFd) -> i32 {
        let Ok(mut link) = Link::open(channel, &INTERRUPTED, PacketBuffer::new()) else { return 90 };
        loop {
            match link.next_order() {
                ToWorker::Start(_) => link.send(&FromWorker::Started { heap_bytes: 1 }),
                ToWorker::Execute(job) => {
                    link.begin(job.execution);
                    INTERRUPTED.store(false, Ordering::Relaxed);
                    let done = self.play(&job, &mut link);
                    link.finish(done);
                }
                ToWorker::Durable(order) => play_program(&order, &mut link),
                _ => return 91,
            }
        }
    }
}

/// A program that starts and then never stops.
fn play_program(order: &ToDurable, link: &mut Link) {
    if let ToDurable::Start { .. } = order {
        let stop = Stop { cause: Cause::Started, cpu_us: 0, heap_bytes: 1, applied: 0 };
        link.send(&FromWorker::Durable(Box::new(FromDurable::Checkpoint(Box::new(stop)))));
    }
}

impl Player {
    fn play(&mut self, job: &Execute, link: &mut Link) -> Done {
        let (order, rest) = job.source.trim().split_once(':').unwrap_or((job.source.trim(), ""));
        match order {
            "echo" => value(job, rest),
            "set" => {
                rest.clone_into(&mut self.memory);
                value(job, "set")
            }
            "get" => value(job, &self.memory),
            "print" => {
                for number in 0..rest.parse().unwrap_or(0_u64) {
                    link.emit(console(number, &format!("line {number}")));
                    link.poll();
                }
                value(job, "printed")
            }
            "throw" => ended(job, Outcome::Exception { message: rest.to_owned() }),
            "spin" => {
                link.emit(console(0, "spinning"));
                while !INTERRUPTED.load(Ordering::Relaxed) {
                    link.poll();
                }
                ended(job, Outcome::Interrupted)
            }
            "hang" => loop {
                std::hint::spin_loop();
            },
            "segv" => {
                let depth = overflow(0);
                value(job, &depth.to_string())
            }
            "exit" => process::exit_now(rest.parse().unwrap_or(0)),
            "forbidden" => value(job, &format!("{:?}", std::fs::read("/etc/passwd").is_ok())),
            "exists" => called(job, link, HostRequest::Fs(FsRequest::Exists { path: rest.to_owned() })),
            "require" => {
                let request = HostRequest::LoadModule {
                    candidates: vec![rest.to_owned()],
                    import: false,
                    package: false,
                };
                called(job, link, request)
            }
            "violation" => {
                violate(job, rest.parse().unwrap_or(0), link);
                loop {
                    std::hint::spin_loop();
                }
            }
            other => ended(job, Outcome::SyntaxError { message: format!("unknown order {other}") }),
        }
    }
}

fn called(job: &Execute, link: &mut Link, request: HostRequest) -> Done {
    match link.call(request) {
        HostReply::Failed(error) => ended(job, Outcome::Exception { message: error.code }),
        HostReply::Module { path, source, .. } => value(job, &format!("{path}={source}")),
        HostReply::Fs(reply) => value(job, &format!("{reply:?}")),
        reply @ (HostReply::Compiled { .. }
        | HostReply::Database(_)
        | HostReply::Exec(_)
        | HostReply::Http(_)
        | HostReply::Answer(_)
        | HostReply::Stdin(_)) => value(job, &format!("{reply:?}")),
    }
}

fn console(at_us: u64, text: &str) -> WorkerEvent {
    WorkerEvent { at_us, payload: EventPayload::console(ConsoleLevel::Log, text.to_owned()) }
}

fn value(job: &Execute, text: &str) -> Done {
    let json = JsonText::from_untrusted(format!("{text:?}"));
    let payload = EventPayload::Value(ResultValue {
        kind: JsType::String,
        preview: text.to_owned(),
        json: Some(json),
        truncated: false,
        full_bytes: None,
    });
    let mut done = ended(job, Outcome::Ok);
    done.events.push(WorkerEvent { at_us: 1, payload });
    done
}

fn ended(job: &Execute, outcome: Outcome) -> Done {
    Done { execution: job.execution, events: Vec::new(), outcome, usage: Usage::default() }
}

/// Overflows the stack.
fn overflow(depth: u64) -> u64 {
    let block = std::hint::black_box([depth; 1024]);
    if depth == u64::MAX { 0 } else { overflow(depth + 1) + block[0] }
}

/// Sends a message that no honest worker sends, as the second message of the channel.
fn violate(job: &Execute, number: u32, link: &Link) {
    let unknown = ExecutionId::from_bytes([0xee; 16]);
    let execution = job.execution;
    let of_the_system = WorkerEvent { at_us: 0, payload: EventPayload::Stdout { text: "x".to_owned() } };
    let broken = JsonText::from_untrusted("{".to_owned());
    let exists = HostRequest::Fs(FsRequest::Exists { path: "a".to_owned() });
    let call = FromWorker::HostCall { execution, call: 1, request: exists.clone() };
    let messages = match number {
        0 => vec![FromWorker::Started { heap_bytes: 0 }],
        1 => vec![FromWorker::Events { execution: unknown, events: vec![console(0, "x")] }],
        2 => vec![FromWorker::Events { execution, events: Vec::new() }],
        3 => vec![FromWorker::Events { execution, events: vec![of_the_system] }],
        4 => {
            let payload = EventPayload::Value(ResultValue::of_json(broken));
            let events = vec![WorkerEvent { at_us: 0, payload }];
            vec![FromWorker::Done(Box::new(Done { events, ..ended(job, Outcome::Ok) }))]
        }
        5 => vec![call.clone(), call],
        6 => vec![FromWorker::HostCall { execution, call: 7, request: exists }],
        7 => vec![FromWorker::Adopted {
            nonce: 0,
            acknowledged: 0,
            last_sent: 0,
            running: None,
            finished: None,
        }],
        8 => return transmit(link, 9, &FromWorker::Events { execution, events: vec![console(0, "x")] }),
        _ => {
            let _ = socket::send(link.socket(), &[&[0xff; 100]], &[], socket::Wait::Yes);
            return;
        }
    };
    for (seq, message) in (2..).zip(&messages) {
        transmit(link, seq, message);
    }
}

fn transmit(link: &Link, seq: u64, message: &FromWorker) {
    let Ok(bytes) = encode(message, WORKER_MESSAGE_BYTES) else { return };
    for (header, piece) in pieces(seq, &bytes) {
        let _ = socket::send(link.socket(), &[&header, piece], &[], socket::Wait::Yes);
    }
}
