//! The hidden modes of a binary: which role a process plays is decided here, before anything else of it starts.
//!
//! A binary's `main` calls [`dispatch`] first. Tests dispatch the same modes with another [`Body`]: everything but what
//! a worker does with its channel stays the production code.

use crate::engine::{Library, LibraryFailure};
use crate::{examine, keeper, zygote};
use std::ffi::OsString;
use std::os::fd::OwnedFd;

/// What a worker does once it is born. Made in the zygote, before the filter; used in each newborn.
pub trait Body {
    /// Talks on the channel until the end; gives the exit code. The first thing it sends must be a hello
    /// ([`crate::link::say_hello`]).
    fn run(self: Box<Self>, channel: OwnedFd) -> i32;

    /// In a zygote: evaluates libraries, so that every newborn has them. Once, with a whole set.
    fn teach(&mut self, libraries: Vec<Library>) -> Result<(), LibraryFailure> {
        let message = "this worker evaluates no libraries".to_owned();
        match libraries.into_iter().next() {
            Some(library) => Err(LibraryFailure { name: library.name, message }),
            None => Ok(()),
        }
    }

    /// In a zygote: builds what all durable programs share, so that every newborn has it. Without it each builds its own.
    fn prepare_programs(&mut self) {}
}

/// The parts of a role that differ between binaries.
#[derive(Debug, Clone, Copy)]
pub struct Modes {
    /// Prepares a worker's body in the zygote; its memory is shared by every worker.
    pub preload: fn() -> Result<Box<dyn Body>, String>,
}

impl Modes {
    /// The product's own: JavaScript sessions.
    pub const fn production() -> Self {
        Self { preload: crate::session::preload }
    }
}

/// Plays the role that the arguments (program name included) ask for and never returns; returns if they ask for none.
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

/// Runs a newborn's body and ends the process with its result; a panic must neither print nor unwind further.
pub(crate) fn live(body: Box<dyn Body>, channel: OwnedFd) -> ! {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body.run(channel)));
    vm_system_sandbox::process::exit_now(result.unwrap_or(zygote::EXIT_PANIC))
}
