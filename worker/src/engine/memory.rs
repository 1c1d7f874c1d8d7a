//! Owns how memory outside of JavaScript's heap counts for the session's limit: the bytes of Rust code since the session began
//! (docs/decisions/028). Must not end anything: a native function that takes a size reserves its bytes here before it allocates, or throws.

use super::compiled::sys::compile_memory;
use super::sys;
use crate::allocator;
use rquickjs::{Ctx, Exception, Object, Result};
use std::cell::Cell;

/// The bytes that Rust code may hold beyond the limit before the process ends: for a source text that is parsed, and messages that
/// wait.
const NATIVE_SLACK_BYTES: usize = 64 * 1024 * 1024;

/// The engine's reserve for code that handles that memory is out (`quickjs/patches/3-out-of-memory.patch`), and what the text of such
/// an error takes (bytes). As much again is there once memory was refused here: the engine's own count of its heap may be far from
/// the limit then, and without a reserve neither the error nor the code that catches it would have any memory.
const RESERVE_BYTES: usize = 512 * 1024;

thread_local! {
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
    static BASE: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Memory was refused since the limit was set: the reserve may be used.
    static IS_REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Counts from now on: the bytes that Rust code holds at this moment belong to the zygote.
pub(super) fn begin() {
    BASE.set(allocator::native_bytes());
}

/// Sets the limit of the session (bytes).
pub(super) fn limit(bytes: usize) {
    LIMIT.set(bytes);
    IS_REFUSED.set(false);
    if BASE.get() != usize::MAX {
        allocator::end_beyond(BASE.get().saturating_add(bytes).saturating_add(NATIVE_SLACK_BYTES));
    }
}

/// Bytes of Rust code that count for the session.
fn native_bytes() -> usize {
    allocator::native_bytes().saturating_sub(BASE.get())
}

/// Bytes that count for the session's limit.
pub(super) fn held_bytes() -> usize {
    sys::heap_bytes() + native_bytes()
}

/// Whether JavaScript's heap may grow by `size` bytes, beside what Rust code holds.
pub(super) fn fits(size: usize) -> bool {
    let native = native_bytes();
    let reserve = if IS_REFUSED.get() { 2 * RESERVE_BYTES } else { RESERVE_BYTES };
    let needed = sys::heap_bytes() + native + size;
    let within = LIMIT.get().saturating_add(reserve);
    // The compiler may exceed the limit, which counts again at its end.
    let fits = native == 0 || needed <= within || needed <= within.saturating_add(compile_memory());
    if !fits {
        IS_REFUSED.set(true);
    }
    fits
}

/// Whether so much memory beneath the limit is free that both reserves can be given again (bytes); those given are over.
pub(super) fn takes_back_reserve(limit: usize) -> bool {
    let is_free = held_bytes() + 2 * RESERVE_BYTES <= limit;
    if is_free {
        IS_REFUSED.set(false);
    }
    is_free
}

/// Before a native function allocates so many bytes: throws if the limit does not permit them.
pub(super) fn reserve(ctx: &Ctx<'_>, bytes: u64) -> Result<()> {
    let held = held_bytes() as u64;
    if held.saturating_add(bytes) <= LIMIT.get() as u64 {
        return Ok(());
    }
    Err(Exception::throw_internal(ctx, "out of memory"))
}

/// As [`reserve`], for `times` as many bytes as the view has.
pub(super) fn reserve_for(ctx: &Ctx<'_>, view: &Object<'_>, times: u64) -> Result<()> {
    let size = sys::view_bytes(view, 0).map_or(0, |(_, size)| size);
    reserve(ctx, (size as u64).saturating_mul(times))
}

/// Bytes that Rust code may still allocate.
pub(super) fn left_bytes() -> usize {
    LIMIT.get().saturating_sub(sys::heap_bytes()).saturating_sub(native_bytes())
}
