//! The folder with the files of a session: opened once, everything beneath it through that handle, with the rights of this process
//! or by the files agent of a user.
//!
//! A path is checked twice: lexically ([`clean_relative`]), and by the kernel at the moment of opening (`openat2` with
//! `RESOLVE_BENEATH`), so that a link that is replaced after a check has no effect. Reads are capped, of regular files
//! only, and never wait for a peer (a FIFO is opened non-blocking and then refused). All of it blocks: callers use the
//! blocking pool, never the reactor. Knows nothing of JavaScript: a module's format depends on its name alone.

mod module_file;
mod open;
mod path;
mod roots;

#[cfg(test)]
mod tests;

pub use module_file::{ModuleFile, Wanted, first_existing};
pub(crate) use open::is_shortage;
pub use open::{Worktree, WorktreeError};
pub use path::clean_relative;
pub use roots::{OpenRoots, Root, RootSettings, Roots, WorktreeClient};
