//! The allocator of Rust code: the C library's. In a zygote and its workers a failed allocation ends the process with an exit code of its
//! own. The standard library would write a message, which is a forbidden call there, and then abort. Memory of JavaScript is not
//! allocated here: the engine turns its failures into errors.

mod sys;

pub(crate) use sys::{end, end_beyond, native_bytes};

/// From now on, also in forked processes, a failed allocation ends the process with
/// [`EXIT_OUT_OF_MEMORY`](vm_system_protocol::worker::EXIT_OUT_OF_MEMORY).
pub(crate) fn end_on_failure() {
    sys::end_on_failure();
}
