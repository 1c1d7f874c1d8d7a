//! Owns the allocator of QuickJS's heap: how many bytes a session has, and where the blocks of forked sessions are.

use rquickjs::{Ctx, qjs};
use std::cell::Cell;

/// Uses up the free blocks between the live ones, for good. A forked child would allocate its small blocks there, and
/// write to nearly every page that it shares with its siblings; now it allocates them from fresh pages.
pub(crate) fn plug_holes() {
    /// The allocator's blocks grow in steps of this size (bytes).
    const STEP: usize = 16;
    const LARGEST: usize = 4_096;
    // SAFETY: reads counters of the allocator, and the end of the heap.
    let top = unsafe { (libc::sbrk(0) as usize).saturating_sub(libc::mallinfo2().keepcost) };
    for size in (1..=LARGEST / STEP).rev().map(|steps| steps * STEP) {
        loop {
            // SAFETY: malloc has no preconditions; a block beyond the live ones is freed, the others are kept.
            unsafe {
                let block = libc::malloc(size);
                if block.is_null() || block as usize >= top {
                    libc::free(block);
                    break;
                }
            }
        }
    }
}

/// The same for QuickJS's own pools of small blocks, which share pages with live blocks: allocates one fresh pool of each size,
/// from which a forked child allocates its blocks. If the child created the pool, it would link it with the previous one, in a page
/// that its siblings share. The blocks that this uses up count against the session.
pub(in crate::engine) fn plug_pools(ctx: &Ctx<'_>) {
    /// Blocks of a pool have a header (bytes).
    const HEADER: usize = 8;
    let ctx = ctx.as_raw().as_ptr();
    // The sizes of pools (`arena_block_sizes` in quickjs.c).
    for block in (16..=128).step_by(8).chain((144..=256).step_by(16)).chain((288..=512).step_by(32)) {
        let before = heap_bytes();
        // SAFETY: the context is alive; the blocks are kept for good, the last one so that its new pool stays.
        while unsafe { !qjs::js_malloc(ctx, (block - HEADER) as _).is_null() } && heap_bytes() == before {}
    }
}

/// Counts the bytes that QuickJS allocates.
pub(in crate::engine) struct CountingAllocator;

thread_local! {
    static HEAP_BYTES: Cell<usize> = const { Cell::new(0) };
    static HEAP_PEAK: Cell<usize> = const { Cell::new(0) };
    static SHARED_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that QuickJS holds on this thread.
pub(in crate::engine) fn heap_bytes() -> usize {
    HEAP_BYTES.get()
}

/// Most bytes that QuickJS held on this thread since [`reset_heap_peak`].
pub(in crate::engine) fn heap_peak() -> usize {
    HEAP_PEAK.get().max(HEAP_BYTES.get())
}

/// Bytes of the heap that do not count for the session: compiled modules, which its zygote shares.
pub(in crate::engine) fn shared_bytes() -> usize {
    SHARED_BYTES.get()
}

/// Has this many bytes of the heap not count for the session.
pub(in crate::engine) fn share_bytes(bytes: usize) {
    SHARED_BYTES.set(bytes);
}

/// Bytes that count for the session.
pub(in crate::engine) fn own_heap_bytes() -> usize {
    heap_bytes().saturating_sub(shared_bytes())
}

/// The peak of the bytes that count for the session.
pub(in crate::engine) fn own_heap_peak() -> usize {
    heap_peak().saturating_sub(shared_bytes())
}

/// Starts a new peak.
pub(in crate::engine) fn reset_heap_peak() {
    HEAP_PEAK.set(HEAP_BYTES.get());
}

fn grew(by: usize) {
    let now = HEAP_BYTES.get().wrapping_add(by);
    HEAP_BYTES.set(now);
    if now > HEAP_PEAK.get() {
        HEAP_PEAK.set(now);
    }
}

fn shrank(by: usize) {
    HEAP_BYTES.set(HEAP_BYTES.get().wrapping_sub(by));
}

/// Usable bytes of a block of the C allocator.
fn usable(pointer: *mut u8) -> usize {
    // SAFETY: null is allowed; every other pointer here was returned by malloc, calloc or realloc and is not freed yet.
    unsafe { libc::malloc_usable_size(pointer.cast()) }
}

// SAFETY: all four functions call the C allocator, which aligns its blocks for any type.
unsafe impl rquickjs::allocator::Allocator for CountingAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        // SAFETY: malloc has no preconditions.
        let pointer = unsafe { libc::malloc(size) }.cast::<u8>();
        grew(usable(pointer));
        pointer
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: calloc has no preconditions; it checks the product.
        let pointer = unsafe { libc::calloc(count, size) }.cast::<u8>();
        grew(usable(pointer));
        pointer
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        shrank(usable(pointer));
        // SAFETY: the caller's pointer is one of ours (trait contract).
        unsafe { libc::free(pointer.cast()) }
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new_size: usize) -> *mut u8 {
        let before = usable(pointer);
        // SAFETY: the caller's pointer is one of ours (trait contract).
        let moved = unsafe { libc::realloc(pointer.cast(), new_size) }.cast::<u8>();
        if !moved.is_null() {
            shrank(before);
            grew(usable(moved));
        }
        moved
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        usable(pointer)
    }
}
