//! An allocator that counts the allocated bytes per thread. Contains no tests.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Adds to the thread's count, which is negative on a thread that frees memory of another one.
fn grew(by: usize) {
    let live = LIVE.get() + by as isize;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

fn shrank(by: usize) {
    LIVE.set(LIVE.get() - by as isize);
}

// SAFETY: every call is the system allocator's with the same arguments; the counters are plain thread-local cells
// without destructors, so that they allocate nothing and are usable at any time of a thread's life.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrank(layout.size());
        // SAFETY: as above, for `pointer` too.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        shrank(layout.size());
        grew(size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Runs `work`; returns its result and the thread's peak of allocated memory, less the memory allocated before (bytes).
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before) as usize)
}
