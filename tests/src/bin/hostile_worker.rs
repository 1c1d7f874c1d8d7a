//! The product with another worker body: one that breaks the protocol in the way that the source text of its execution or its
//! program names. Everything else (keeper, zygote, walls, handshake) is the production code.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use vm_system_protocol::broker::{DatabaseRequest, ExecRequest, FsRequest, WriteMode};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::durable::{
    Cause, End as ProgramEnd, FromDurable, HostCall, StatePage, Stop, ToDurable,
};
use vm_system_protocol::egress::{HttpCall, HttpRequest};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::{HOST_MESSAGE_BYTES, PACKET_BYTES, WORKER_MESSAGE_BYTES};
use vm_system_protocol::model::{ConsoleLevel, EventPayload, ResultValue};
use vm_system_protocol::packet::{Reassembler, packets};
use vm_system_protocol::worker::{
    Done, FromWorker, HostReply, HostRequest, Outcome, ToWorker, Usage, WorkerEvent,
};
use vm_system_sandbox::interrupt;
use vm_system_sandbox::process::{self, Fork};
use vm_system_sandbox::socket::{self, Wait};
use vm_system_worker::link::send_hello;
use vm_system_worker::roles::{self, Modes, WorkerBody};

fn main() -> ExitCode {
    vm_system_cli::main_with(|| {
        vm_system_tests::escape::dispatch(std::env::args_os());
        let arguments: Vec<OsString> = std::env::args_os().collect();
        roles::dispatch(arguments.into_iter(), Modes { preload, ..Modes::production() });
        vm_system_broker::dispatch(std::env::args_os())
            .or_else(|| vm_system_spawn::helper::dispatch(std::env::args_os(), |_| Vec::new()))
    })
}

/// Set by an interrupt, as in the real worker, and ignored.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

fn preload() -> Result<Box<dyn WorkerBody>, String> {
    interrupt::install(&INTERRUPTED).map_err(|error| error.to_string())?;
    Ok(Box::new(HostileWorker))
}

struct HostileWorker;

impl WorkerBody for HostileWorker {
    fn run(self: Box<Self>, channel: OwnedFd) -> i32 {
        let mut worker = Worker::new(channel);
        worker.serve().unwrap_or(0)
    }
}

/// The behaviour of the child of a fork.
#[derive(Clone, Copy)]
enum Child {
    Honest,
    /// Sends no hello.
    Hidden,
    /// Sends its hello and nothing more.
    Introduced,
    /// Exits after its hello.
    Exits,
    /// Sends its hello twice.
    RepeatsHello,
}

/// Blocks for ever without using the processor.
fn sleep() -> ! {
    let here = std::sync::Mutex::new(());
    let guard = here.lock();
    let never = std::sync::Condvar::new();
    let _ = guard.map(|guard| never.wait_while(guard, |()| true));
    process::exit_now(0)
}

/// The end of the channel; the exit code, if there is one.
type End = Option<i32>;

struct Worker {
    channel: OwnedFd,
    incoming: Reassembler,
    buffer: Vec<u8>,
    seq: u64,
    /// Received with the last packet.
    descriptor: Option<OwnedFd>,
    /// How it misbehaves at the next order to fork.
    fork: String,
    /// The same, of its children.
    fork_of_copy: String,
    /// As a program's worker: its behaviour, and the number of its runs.
    program: (String, u64),
    /// The arguments of its program.
    args: Vec<String>,
}

impl Worker {
    fn new(channel: OwnedFd) -> Self {
        let mut incoming = Reassembler::new(HOST_MESSAGE_BYTES);
        incoming.accept_any();
        Self {
            channel,
            incoming,
            buffer: vec![0; PACKET_BYTES],
            seq: 0,
            descriptor: None,
            fork: String::new(),
            fork_of_copy: String::new(),
            program: Default::default(),
            args: Vec::new(),
        }
    }

    fn serve(&mut self) -> End {
        send_hello(&self.channel).ok()?;
        loop {
            match self.receive()? {
                ToWorker::Start(_) => self.send(&FromWorker::Started { heap_bytes: 1 })?,
                ToWorker::Execute(execute) => self.misbehave(&execute.source, execute.execution)?,
                ToWorker::Durable(order) => self.disobey(*order)?,
                ToWorker::Fork { order } => self.fork(order)?,
                ToWorker::Shutdown => return None,
                _ => {}
            }
        }
    }

    fn receive(&mut self) -> Option<ToWorker> {
        loop {
            let mut got = socket::receive(&self.channel, &mut self.buffer, Wait::Yes).ok()?;
            self.descriptor = got.fds.pop();
            if got.len == 0 {
                return None;
            }
            if let Some(message) = self.incoming.push(&self.buffer[..got.len]).ok()? {
                return decode(&message.bytes).ok();
            }
        }
    }

    fn raw(&self, packet: &[u8]) -> Option<()> {
        socket::send(&self.channel, &[packet], &[], Wait::Yes).ok()
    }

    /// Sends any bytes in correct packets.
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.seq += 1;
        for packet in packets(self.seq, bytes) {
            self.raw(&packet)?;
        }
        Some(())
    }

    fn send(&mut self, message: &FromWorker) -> Option<()> {
        let bytes = encode(message, WORKER_MESSAGE_BYTES).ok()?;
        self.bytes(&bytes)
    }

    fn send_durable(&mut self, what: FromDurable) -> Option<()> {
        self.send(&FromWorker::Durable(Box::new(what)))
    }

    fn send_stop(&mut self, pages: Vec<StatePage>, cause: Cause) -> Option<()> {
        let stop = Box::new(Stop { cause, cpu_us: 1, heap_bytes: 1, applied: 0 });
        self.send_durable(FromDurable::SmallCheckpoint { pages, stop })
    }

    /// As a program's worker: compiles to the source itself, and misbehaves as the source names when it is run.
    fn disobey(&mut self, order: ToDurable) -> Option<()> {
        match order {
            ToDurable::Compile { source, .. } => {
                return self
                    .send_durable(FromDurable::Compiled { code: source.into_bytes(), typescript: false });
            }
            ToDurable::Load { code, .. } => {
                self.program = (String::from_utf8(code).ok()?, 0);
                return Some(());
            }
            ToDurable::Pages(_) => return Some(()),
            ToDurable::Restore => return self.send_durable(FromDurable::Restored),
            ToDurable::Start { args, .. } => {
                self.args = args;
                self.send_stop(vec![StatePage { number: 0, bytes: vec![0] }], Cause::Started)?;
            }
            _ => {}
        }
        self.program.1 += 1;
        let (how, turn) = (self.program.0.clone(), self.program.1);
        match how.as_str() {
            "writes new pages at every checkpoint" if turn <= 100 => {
                let page = |number| StatePage { number, bytes: vec![turn as u8; 4 << 10] };
                self.send_stop((turn * 256..(turn + 1) * 256).map(page).collect(), Cause::Steps)
            }
            "sends pages without an end, and writes a mark" => {
                let page = |number| StatePage { number, bytes: vec![1; 1 << 20] };
                for number in 1..6 {
                    self.send_durable(FromDurable::Pages(vec![page(number)]))?;
                }
                let args = JsonText::from_untrusted(format!(r#"["marked-{}", ""]"#, self.args.join("")));
                self.send_durable(FromDurable::Call(HostCall { name: "writeFile".to_owned(), args }))?;
                loop {
                    self.receive()?;
                }
            }
            "has a large state" if turn == 1 => {
                let page = |number| StatePage { number, bytes: vec![1; 1 << 20] };
                for number in 1..6 {
                    self.send_durable(FromDurable::Pages(vec![page(number)]))?;
                }
                self.send_stop(vec![page(6)], Cause::Steps)
            }
            "writes a page that no state has" => {
                self.send_stop(vec![StatePage { number: 1 << 40, bytes: vec![0] }], Cause::Steps)
            }
            "opens a file" => std::fs::read("/etc/passwd").ok().map(drop),
            _ => {
                let result = JsonText::from_untrusted("1".to_owned());
                self.send_stop(Vec::new(), Cause::Ended(ProgramEnd::Ok { result }))
            }
        }
    }

    fn done(&mut self, execution: ExecutionId) -> Option<()> {
        self.send(&done(execution, Vec::new()))
    }

    fn misbehave(&mut self, how: &str, execution: ExecutionId) -> Option<()> {
        let other = ExecutionId::from_bytes([9; 16]);
        match how {
            "events of an unknown execution" => {
                self.send(&FromWorker::Events { execution: other, events: vec![event("x")] })
            }
            "end of an unknown execution" => self.done(other),
            "no events" => self.send(&FromWorker::Events { execution, events: Vec::new() }),
            "an event that only the supervisor makes" => {
                let payload = EventPayload::InputEcho { text: "forged".to_owned() };
                self.send(&FromWorker::Events { execution, events: vec![WorkerEvent { at_us: 0, payload }] })
            }
            "output of a command" => {
                let payload = EventPayload::Stdout { text: "forged".to_owned() };
                self.send(&done(execution, vec![WorkerEvent { at_us: 0, payload }]))
            }
            "started twice" => self.send(&FromWorker::Started { heap_bytes: 1 }),
            "an unrequested adoption" => self.send(&FromWorker::Adopted {
                nonce: 0,
                acknowledged: 0,
                last_sent: 0,
                running: None,
                finished: None,
            }),
            "ends twice" => {
                self.done(execution)?;
                self.done(execution)
            }
            "a call number out of order" => {
                let request = HostRequest::LoadModule {
                    candidates: vec!["x".to_owned()],
                    import: false,
                    package: false,
                };
                self.send(&FromWorker::HostCall { execution, call: 7, request })
            }
            "a skipped sequence" => {
                self.seq += 1;
                self.done(execution)
            }
            "a repeated sequence" => {
                self.send(&FromWorker::Events { execution, events: vec![event("once")] })?;
                self.seq -= 1;
                self.send(&FromWorker::Events { execution, events: vec![event("twice")] })
            }
            "garbage" => self.bytes(&[250; 100]),
            "bytes behind the message" => {
                let mut bytes = encode(&done(execution, Vec::new()), WORKER_MESSAGE_BYTES).ok()?;
                bytes.push(0);
                self.bytes(&bytes)
            }
            "a message above the cap" => self.raw(&header(self.seq + 1, WORKER_MESSAGE_BYTES as u32 + 1, 0)),
            "a list of 2^60 entries" => {
                let mut bytes = vec![1];
                bytes.extend_from_slice(execution.as_bytes());
                bytes.push(0xfd);
                bytes.extend_from_slice(&(1_u64 << 60).to_le_bytes());
                self.bytes(&bytes)
            }
            "a piece out of order" => self.raw(&header(self.seq + 1, 200_000, 7)),
            "an empty piece" => self.raw(&[0; 16]),
            "a packet above the cap" => self.raw(&vec![0; PACKET_BYTES + 1]),
            "a result that is no JSON" => {
                let value = ResultValue::of_json(JsonText::from_untrusted("{not json".to_owned()));
                let payload = EventPayload::Value(value);
                self.send(&done(execution, vec![WorkerEvent { at_us: 0, payload }]))
            }
            "descriptors" => self.descriptors(execution),
            "more events than allowed" => loop {
                let events = vec![event("x"); 100];
                self.send(&FromWorker::Events { execution, events })?;
            },
            "more output than allowed" => loop {
                let events = vec![event(&"x".repeat(100_000))];
                self.send(&FromWorker::Events { execution, events })?;
            },
            "neither reads nor sends" => loop {
                std::hint::spin_loop();
            },
            "exits" => process::exit_now(0),
            "sends when idle" => {
                self.done(execution)?;
                self.send(&FromWorker::Events { execution, events: vec![event("late")] })
            }
            "calls what was not granted" => self.forge(execution),
            "reports a fork" => self.send(&FromWorker::Forked { order: 1 }),
            "reports a failed fork" => self.send(&FromWorker::ForkFailed { order: 1, errno: 11 }),
            "the beginning of a message" => {
                self.raw(&first_piece(self.seq + 1))?;
                sleep()
            }
            "the beginning of a message, and exits" => {
                self.raw(&first_piece(self.seq + 1))?;
                process::exit_now(0)
            }
            how if how.starts_with("when it forks: ") => {
                how["when it forks: ".len()..].clone_into(&mut self.fork);
                self.done(execution)
            }
            how if how.starts_with("when its copy forks: ") => {
                how["when its copy forks: ".len()..].clone_into(&mut self.fork_of_copy);
                self.done(execution)
            }
            // "honest", or a probe of the escape suite
            how => {
                let report = vm_system_tests::escape::obey(how);
                self.send(&done(execution, report.iter().map(|text| event(text)).collect()))
            }
        }
    }

    /// An order to fork, and every way to abuse it.
    fn fork(&mut self, order: u64) -> Option<()> {
        let way = self.descriptor.take()?;
        let how = std::mem::take(&mut self.fork);
        let forked = FromWorker::Forked { order };
        let failed = FromWorker::ForkFailed { order, errno: 11 };
        match how.as_str() {
            "introduces itself" => {
                send_hello(&way).ok()?;
                self.send(&forked)
            }
            "does not" => self.send(&forked),
            "closes the socket before it exits" => {
                drop(way);
                // As a process that is killed: its descriptors are closed some time before its exit is reported.
                let closed = std::time::Instant::now();
                while closed.elapsed() < std::time::Duration::from_millis(100) {
                    std::hint::spin_loop();
                }
                process::exit_now(0)
            }
            "sends nothing" => sleep(),
            "sends something else" => {
                self.child(&way, Child::Honest)?;
                self.send(&FromWorker::Started { heap_bytes: 1 })
            }
            "confirms another order" => {
                self.child(&way, Child::Honest)?;
                self.send(&FromWorker::Forked { order: order + 1 })
            }
            "exits" => {
                self.child(&way, Child::Honest)?;
                process::exit_now(0)
            }
            "twice" => {
                self.child(&way, Child::Honest)?;
                let _ = process::fork_sibling();
                self.send(&forked)
            }
            "denies its child" => {
                self.child(&way, Child::Honest)?;
                self.send(&failed)
            }
            "hides its child" => {
                self.child(&way, Child::Hidden)?;
                drop(way);
                self.send(&failed)
            }
            "hides it and sends nothing" => {
                self.child(&way, Child::Hidden)?;
                sleep()
            }
            "the child exits" => {
                self.child(&way, Child::Exits)?;
                self.send(&forked)
            }
            "the child repeats its hello" => {
                self.child(&way, Child::RepeatsHello)?;
                self.send(&forked)
            }
            "takes the channel" | "takes the channel and sends nothing" => {
                self.child(&way, Child::Introduced)?;
                let mut got = socket::receive(&way, &mut self.buffer, Wait::Yes).ok()?;
                let channel = got.fds.pop()?;
                if how == "takes the channel" {
                    send_hello(&channel).ok()?;
                }
                self.send(&forked)?;
                sleep()
            }
            "copies the channel" => {
                self.child(&way, Child::Honest)?;
                let mut part = [0_u8; 1];
                let mut parts = [std::io::IoSliceMut::new(&mut part)];
                let peek = nix::sys::socket::MsgFlags::MSG_PEEK;
                let _ = nix::sys::socket::recvmsg::<()>(way.as_raw_fd(), &mut parts, None, peek);
                self.send(&forked)
            }
            // "honestly"
            _ => {
                self.child(&way, Child::Honest)?;
                drop(way);
                self.send(&forked)
            }
        }
    }

    /// Forks; returns only in the parent.
    fn child(&mut self, way: &OwnedFd, how: Child) -> Option<()> {
        match process::fork_sibling().ok()? {
            Fork::Parent(_) => return Some(()),
            Fork::Child => {}
        }
        let _ = self.serve_as_child(way, how);
        process::exit_now(0)
    }

    fn serve_as_child(&mut self, way: &OwnedFd, how: Child) -> End {
        process::replace(&self.channel, way).ok()?;
        match how {
            Child::Hidden => sleep(),
            Child::Introduced => {
                send_hello(&self.channel).ok()?;
                sleep()
            }
            Child::Exits => return send_hello(&self.channel).ok().and(None),
            Child::RepeatsHello => send_hello(&self.channel).ok()?,
            Child::Honest => {}
        }
        send_hello(&self.channel).ok()?;
        let mut got = socket::receive(&self.channel, &mut self.buffer, Wait::Yes).ok()?;
        process::replace(&self.channel, &got.fds.pop()?).ok()?;
        let fork = std::mem::take(&mut self.fork_of_copy);
        self.incoming = Reassembler::new(HOST_MESSAGE_BYTES);
        self.incoming.accept_any();
        (self.seq, self.fork) = (0, fork);
        self.serve()
    }

    /// Host calls that an honest worker would not make, and the reply to each.
    fn forge(&mut self, execution: ExecutionId) -> Option<()> {
        let text = |text: &str| text.to_owned();
        let how = WriteMode { create: true, exclusive: false, truncate: true, append: false };
        let requests = [
            HostRequest::Fs(FsRequest::ReadFile { path: text("forged") }),
            HostRequest::Fs(FsRequest::Write { path: text("forged"), data: vec![1], how, mode: 0o666 }),
            HostRequest::Fs(FsRequest::Remove { path: text("."), recursive: true, force: true }),
            HostRequest::Database(DatabaseRequest::Configure { database: text("main") }),
            HostRequest::Exec(ExecRequest {
                command: text("sh"),
                arguments: Vec::new(),
                input: Vec::new(),
                folder: String::new(),
                environment: Vec::new(),
            }),
            HostRequest::Http(HttpCall::Open {
                exchange: 1,
                request: HttpRequest {
                    method: text("GET"),
                    url: text("http://127.0.0.1/"),
                    headers: Vec::new(),
                    data: Vec::new(),
                    end: true,
                },
            }),
            // Of other sessions there may be exchanges of these numbers.
            HostRequest::Http(HttpCall::Send { exchange: 1, data: vec![1], end: true }),
            HostRequest::Http(HttpCall::Wait { open: vec![1], pull: vec![1], timeout_ms: u32::MAX }),
            HostRequest::Http(HttpCall::Close { exchange: 1 }),
        ];
        let mut replies = Vec::new();
        for (number, request) in requests.into_iter().enumerate() {
            self.send(&FromWorker::HostCall { execution, call: number as u64 + 1, request })?;
            let reply = loop {
                if let ToWorker::HostReply { reply, .. } = self.receive()? {
                    break reply;
                }
            };
            replies.push(match reply {
                HostReply::Failed(error) => error.code,
                _ => text("let pass"),
            });
        }
        self.send(&done(execution, vec![event(&replies.join(" "))]))
    }

    /// Sends a descriptor; if the kernel refuses it at the sender, the worker reports that and continues.
    fn descriptors(&mut self, execution: ExecutionId) -> Option<()> {
        self.seq += 1;
        let bytes = encode(&done(execution, vec![event("with a descriptor")]), WORKER_MESSAGE_BYTES).ok()?;
        for packet in packets(self.seq, &bytes) {
            let fds = [self.channel.as_fd()];
            if socket::send(&self.channel, &[&packet], &fds, Wait::Yes).is_err() {
                self.seq -= 1;
                return self.send(&done(execution, vec![event("refused by the kernel")]));
            }
        }
        Some(())
    }
}

fn header(seq: u64, total: u32, offset: u32) -> Vec<u8> {
    [&seq.to_le_bytes()[..], &total.to_le_bytes(), &offset.to_le_bytes(), &[1]].concat()
}

/// The first piece of a message that has more.
fn first_piece(seq: u64) -> Vec<u8> {
    let mut packet = header(seq, 200_000, 0);
    packet.resize(PACKET_BYTES, 0);
    packet
}

fn event(text: &str) -> WorkerEvent {
    let payload = EventPayload::console(ConsoleLevel::Log, text.to_owned());
    WorkerEvent { at_us: 0, payload }
}

fn done(execution: ExecutionId, events: Vec<WorkerEvent>) -> FromWorker {
    FromWorker::Done(Box::new(Done { execution, events, outcome: Outcome::Ok, usage: Usage::default() }))
}
