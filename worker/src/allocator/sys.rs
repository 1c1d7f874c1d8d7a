//! The implementation of `GlobalAlloc`. Decides nothing but the end of a process that has requested it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use vm_system_protocol::worker::EXIT_OUT_OF_MEMORY;
use vm_system_sandbox::process;

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

static ENDS_ON_FAILURE: AtomicBool = AtomicBool::new(false);

pub(super) fn end_on_failure() {
    ENDS_ON_FAILURE.store(true, Ordering::Relaxed);
}

#[inline]
fn checked(memory: *mut u8) -> *mut u8 {
    if memory.is_null() && ENDS_ON_FAILURE.load(Ordering::Relaxed) {
        process::exit_now(EXIT_OUT_OF_MEMORY)
    }
    memory
}

// SAFETY: the system's allocator does all of it, with the arguments as they are.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        checked(unsafe { System.realloc(memory, layout, size) })
    }
}
