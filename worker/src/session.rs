//! The main loop of a session's worker: one `Start`, then executions one after the other until the channel is closed. Between two
//! executions the worker may be ordered to fork: the child gets a `Start` too, and keeps the global state of its parent's scripts. Before that it may
//! be ordered to fork: a checkpoint of a session is a child that never gets a `Start`.

use crate::durable;
use crate::engine::{
    self, Host, INTERRUPT, JsSession, LibraryEvaluationError, LibrarySource, ModuleText, Preloaded,
};
use crate::link::{Link, PacketBuffer};
use crate::roles::WorkerBody;
use std::os::fd::OwnedFd;
use std::time::Duration;
use vm_system_protocol::worker::{FromWorker, HostReply, HostRequest, Start, ToWorker, WorkerEvent};
use vm_system_sandbox::interrupt;

/// Exit code of a worker that could not send its hello.
const EXIT_CHANNEL: i32 = 70;
/// Exit code of a worker that got an order out of sequence.
const EXIT_ORDER: i32 = 74;

/// Prepares JavaScript sessions; called once, in the first zygote, before its filter.
pub(crate) fn preload() -> Result<Box<dyn WorkerBody>, String> {
    interrupt::install(&INTERRUPT).map_err(|error| error.to_string())?;
    let buffer = PacketBuffer::new();
    // Reads the seeds of hash tables here, once for all workers of all zygotes.
    drop(std::collections::HashMap::<u8, u8>::new());
    let preloaded = engine::preload().map_err(|error| error.to_string())?;
    Ok(Box::new(PreparedWorker { preloaded, buffer }))
}

struct PreparedWorker {
    preloaded: Preloaded,
    buffer: PacketBuffer,
}

impl WorkerBody for PreparedWorker {
    fn load_libraries(&mut self, libraries: Vec<LibrarySource>) -> Result<(), LibraryEvaluationError> {
        self.preloaded.load_libraries(libraries)
    }

    fn compile(&mut self, modules: Vec<ModuleText>) {
        self.preloaded.compile(modules);
    }

    fn prepare_programs(&mut self) {
        durable::warm_up();
    }

    fn run(self: Box<Self>, channel: OwnedFd) -> i32 {
        let Ok(mut link) = Link::open(channel, &INTERRUPT, self.buffer) else { return EXIT_CHANNEL };
        // The first order decides the engine of this worker.
        let start = match link.next_order() {
            ToWorker::Start(start) => start,
            ToWorker::Durable(order) => {
                return durable::run(&mut link, *order);
            }
            _ => return EXIT_ORDER,
        };
        let mut session = JsSession::start(self.preloaded, &start);
        link.send(&FromWorker::Started { heap_bytes: session.heap_bytes() });
        loop {
            match link.next_order() {
                ToWorker::Execute(job) => {
                    link.begin(job.execution);
                    let done = session.execute(&job, &mut link);
                    link.finish(done);
                }
                ToWorker::Fork { order } => {
                    if link.fork(order) {
                        let Some(start) = start_of_copy(&mut link) else { return EXIT_ORDER };
                        session.go_on_as(&start);
                        link.send(&FromWorker::Started { heap_bytes: session.heap_bytes() });
                    }
                }
                _ => return EXIT_ORDER,
            }
        }
    }
}

/// The first order of a copy that is not for a fork: until then it is a checkpoint of its parent's session. Its forks begin here, too.
fn start_of_copy(link: &mut Link) -> Option<Box<Start>> {
    loop {
        match link.next_order() {
            ToWorker::Start(start) => return Some(start),
            ToWorker::Fork { order } => {
                link.fork(order);
            }
            _ => return None,
        }
    }
}

impl Host for Link {
    fn emit(&mut self, event: WorkerEvent) {
        Link::emit(self, event);
    }

    fn call(&mut self, request: HostRequest) -> HostReply {
        Link::call(self, request)
    }

    fn poll(&mut self) {
        Link::poll(self);
    }

    fn sleep(&mut self, at_most: Duration) {
        Link::sleep(self, at_most);
    }
}
