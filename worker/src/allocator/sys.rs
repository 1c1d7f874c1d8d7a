//! The implementation of `GlobalAlloc`. Decides nothing but the end of a process that has requested it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use vm_system_protocol::worker::EXIT_OUT_OF_MEMORY;
use vm_system_sandbox::process;

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

thread_local! {
    /// Bytes of Rust code that this thread allocated and did not free; a block that another thread frees makes it wrong by that. The
    /// processes that use it have one thread.
    static NATIVE_BYTES: Cell<usize> = const { Cell::new(0) };
    static MOST_NATIVE_BYTES: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Bytes that Rust code holds on this thread; a number close to the largest one is a negative one.
pub(crate) fn native_bytes() -> usize {
    let bytes = NATIVE_BYTES.get();
    if bytes > usize::MAX / 2 { 0 } else { bytes }
}

/// From now on, more bytes of Rust code than this are a failed allocation.
pub(crate) fn end_beyond(bytes: usize) {
    MOST_NATIVE_BYTES.set(bytes);
}

/// Ends a process that has a limit, as when there is no memory.
pub(crate) fn end() {
    if ENDS_ON_FAILURE.load(Ordering::Relaxed) {
        process::exit_now(EXIT_OUT_OF_MEMORY)
    }
}

/// Counts what is allocated; a process that has a limit ends beyond it, as when there is no memory.
#[inline]
fn grew(size: usize) {
    let now = NATIVE_BYTES.get().wrapping_add(size);
    NATIVE_BYTES.set(now);
    if now > MOST_NATIVE_BYTES.get() && now < usize::MAX / 2 {
        end();
    }
}

#[inline]
fn shrank(size: usize) {
    NATIVE_BYTES.set(NATIVE_BYTES.get().wrapping_sub(size));
}

static ENDS_ON_FAILURE: AtomicBool = AtomicBool::new(false);

pub(super) fn end_on_failure() {
    ENDS_ON_FAILURE.store(true, Ordering::Relaxed);
}

#[inline]
fn checked(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end();
    }
    memory
}

// SAFETY: the system's allocator does all of it, with the arguments as they are.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: the caller's promise.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        shrank(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: the caller's promise.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        shrank(layout.size());
        grew(size);
        // SAFETY: the caller's promise.
        checked(unsafe { System.realloc(memory, layout, size) })
    }
}
