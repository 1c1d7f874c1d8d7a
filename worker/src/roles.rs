//! The hidden modes of a binary: decides the role of this process before anything else starts.
//!
//! A binary's `main` calls [`dispatch`] first. Tests dispatch the same modes with another [`WorkerBody`]: only the worker's main
//! loop differs from production.

use crate::engine::{LibraryEvaluationError, LibrarySource, ModuleText};
use crate::{examine, keeper, zygote};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use vm_system_protocol::hello::Hello;

/// The main loop of a worker. Created in the zygote, before the filter is installed; run in each forked worker.
pub trait WorkerBody {
    /// Serves the channel until it is closed; returns the exit code. The first message must be a hello
    /// ([`crate::link::send_hello`]).
    fn run(self: Box<Self>, channel: OwnedFd) -> i32;

    /// In a zygote: evaluates libraries, which every forked worker then has. Called once, with the complete set.
    fn load_libraries(&mut self, libraries: Vec<LibrarySource>) -> Result<(), LibraryEvaluationError> {
        let message = "this worker evaluates no libraries".to_owned();
        match libraries.into_iter().next() {
            Some(library) => Err(LibraryEvaluationError { name: library.name, message }),
            None => Ok(()),
        }
    }

    /// In a zygote: compiles modules, which forked workers then need not compile. Called at most once, after [`Self::load_libraries`].
    fn compile(&mut self, _modules: Vec<ModuleText>) {}

    /// In a zygote: builds the realm and prelude of durable programs, which every forked worker then shares.
    fn prepare_programs(&mut self) {}
}

/// The parts of a role that differ between binaries.
#[derive(Debug, Clone, Copy)]
pub struct Modes {
    /// Prepares the worker body in the zygote; all workers share its memory until they write to it.
    pub preload: fn() -> Result<Box<dyn WorkerBody>, String>,
    /// The hello that keepers send to later supervisors.
    pub hello: Hello,
}

impl Modes {
    /// The modes of the product: JavaScript sessions.
    pub const fn production() -> Self {
        Self { preload: crate::session::preload, hello: Hello::ours() }
    }
}

/// Runs the role that the arguments (program name included) name and never returns; returns if they name none.
pub fn dispatch(mut arguments: impl Iterator<Item = OsString>, modes: Modes) {
    let mode = arguments.nth(1);
    let rest: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    match mode.as_deref().and_then(std::ffi::OsStr::to_str) {
        Some(keeper::MODE) => keeper::outside::main(&rest),
        Some(keeper::MODE_INSIDE) => keeper::inside::main(&rest, modes),
        Some(examine::MODE) => examine::main(&rest),
        _ => {}
    }
}

/// Runs the body of a new worker and exits with its result; a panic must neither print nor unwind further.
pub(crate) fn run_body(body: Box<dyn WorkerBody>, channel: OwnedFd) -> ! {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body.run(channel)));
    vm_system_sandbox::process::exit_now(result.unwrap_or(zygote::EXIT_PANIC))
}
