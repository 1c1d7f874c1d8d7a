//! Owns every unsafe call into QuickJS for which rquickjs has no safe function, each wrapped in a safe one.
//! Must not decide anything: no policy, no formatting, no limits.

use super::compiled;
use super::host::Host;
use super::memory;
use rquickjs::{Context, Ctx, Error, Object, Result, Runtime, Value, qjs};
use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;

/// Holds the host of the running execution, for callbacks of QuickJS.
#[derive(Default)]
pub(super) struct HostSlot {
    current: Cell<Option<NonNull<dyn Host>>>,
}

impl HostSlot {
    /// Makes `host` available to [`HostSlot::lend`] while `run` runs.
    pub(super) fn scoped<R>(&self, host: &mut dyn Host, run: impl FnOnce() -> R) -> R {
        struct Reset<'a>(&'a HostSlot);
        impl Drop for Reset<'_> {
            fn drop(&mut self) {
                self.0.current.set(None);
            }
        }
        // SAFETY: only the lifetime is erased. The pointer is removed by `Reset` before this function returns or
        // unwinds, so it is never used after the borrow ends, and the borrow is exclusive for the whole time.
        let pointer =
            unsafe { std::mem::transmute::<NonNull<dyn Host + '_>, NonNull<dyn Host>>(host.into()) };
        self.current.set(Some(pointer));
        let _reset = Reset(self);
        run()
    }

    /// Lends the host; `None` if there is none, or if it is lent already.
    pub(super) fn lend<R>(&self, use_it: impl FnOnce(&mut dyn Host) -> R) -> Option<R> {
        struct ReturnHost<'a>(&'a HostSlot, NonNull<dyn Host>);
        impl Drop for ReturnHost<'_> {
            fn drop(&mut self) {
                self.0.current.set(Some(self.1));
            }
        }
        let pointer = self.current.take()?;
        let mut lent = ReturnHost(self, pointer);
        // SAFETY: `scoped` put the pointer here and its exclusive borrow is still alive (it clears the slot at its
        // end); taking the pointer out of the slot makes this the only reference until `ReturnHost` is dropped.
        Some(use_it(unsafe { lent.1.as_mut() }))
    }
}

/// An own property, read without running any code of the script.
pub(super) type Property<'js> = vm_system_inspect::Property<Value<'js>>;

/// An own property with its enumerability.
pub(super) type OwnKey<'js> = vm_system_inspect::OwnKey<Value<'js>>;

/// Selects own keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    /// Strings that are enumerable.
    EnumerableStrings,
    /// Strings and symbols that are enumerable.
    Enumerable,
    /// All of them.
    All,
}

/// Own keys of an object, which must not be a proxy: strings in order, then symbols. At most `most` keys, and the number of all.
pub(super) fn own_keys<'js>(
    object: &Object<'js>,
    which: Keys,
    most: usize,
) -> Result<(Vec<Value<'js>>, usize)> {
    let ctx = object.ctx();
    let flags = match which {
        Keys::EnumerableStrings => qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY,
        Keys::Enumerable => qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_SYMBOL_MASK | qjs::JS_GPN_ENUM_ONLY,
        Keys::All => qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_SYMBOL_MASK,
    };
    let mut table = std::ptr::null_mut();
    let mut count = 0_u32;
    // SAFETY: on success QuickJS gives a table of `count` entries, which is read within its length and freed once;
    // the values made of its atoms are owned by the wrappers.
    unsafe {
        let raw = ctx.as_raw().as_ptr();
        if qjs::JS_GetOwnPropertyNames(
            raw,
            &raw mut table,
            &raw mut count,
            object.as_raw(),
            flags.cast_signed(),
        ) < 0
        {
            return Err(Error::Exception);
        }
        let keys = (0..(count as usize).min(most))
            .map(|index| Value::from_raw(ctx.clone(), qjs::JS_AtomToValue(raw, (*table.add(index)).atom)))
            .collect();
        qjs::JS_FreePropertyEnum(raw, table, count);
        Ok((keys, count as usize))
    }
}

/// The own property of `object`, which must not be a proxy (its traps would run). The key is a string, number or symbol.
pub(super) fn own_property<'js>(object: &Object<'js>, key: &Value<'js>) -> Result<Option<OwnKey<'js>>> {
    let ctx = object.ctx();
    let mut raw = qjs::JSPropertyDescriptor {
        flags: 0,
        value: qjs::JS_UNDEFINED,
        getter: qjs::JS_UNDEFINED,
        setter: qjs::JS_UNDEFINED,
    };
    // SAFETY: context, object and atom are alive and of one runtime; the atom is freed below exactly once; a result of
    // 1 means that the descriptor holds owned values, which are handed to owning wrappers.
    unsafe {
        let atom = qjs::JS_ValueToAtom(ctx.as_raw().as_ptr(), key.as_raw());
        if atom == 0 {
            return Err(Error::Exception);
        }
        let found = qjs::JS_GetOwnProperty(ctx.as_raw().as_ptr(), &raw mut raw, object.as_raw(), atom);
        qjs::JS_FreeAtom(ctx.as_raw().as_ptr(), atom);
        if found < 0 {
            return Err(Error::Exception);
        }
        if found == 0 {
            return Ok(None);
        }
        let value = Value::from_raw(ctx.clone(), raw.value);
        let getter = Value::from_raw(ctx.clone(), raw.getter);
        let setter = Value::from_raw(ctx.clone(), raw.setter);
        let flags = raw.flags.cast_unsigned();
        let property = if flags & qjs::JS_PROP_TMASK == qjs::JS_PROP_GETSET {
            Property::Accessor { get: !getter.is_undefined(), set: !setter.is_undefined() }
        } else {
            Property::Data(value)
        };
        Ok(Some(OwnKey { property, enumerable: flags & qjs::JS_PROP_ENUMERABLE != 0 }))
    }
}

/// QuickJS's internal class of an object.
pub(super) fn class_id(object: &Object<'_>) -> u32 {
    // SAFETY: reads a field of a live object.
    unsafe { qjs::JS_GetClassID(object.as_raw()) }
}

/// Whether the innermost call is of a script's function; `false` in built-in ones, and where nothing runs.
pub(super) fn is_in_script_code(ctx: &Ctx<'_>) -> bool {
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the context is alive; the name is a count of ours, which is returned.
    unsafe {
        let name = qjs::JS_GetScriptOrModuleName(raw, 0);
        qjs::JS_FreeAtom(raw, name);
        name != qjs::JS_ATOM_NULL
    }
}

/// The target of a proxy; `None` for a revoked one.
pub(super) fn proxy_target<'js>(proxy: &Object<'js>) -> Option<Value<'js>> {
    let ctx = proxy.ctx();
    // SAFETY: the object is a live proxy or QuickJS throws; the result is owned.
    let target = unsafe {
        Value::from_raw(ctx.clone(), qjs::JS_GetProxyTarget(ctx.as_raw().as_ptr(), proxy.as_raw()))
    };
    if target.is_exception() {
        let _ = ctx.catch();
        return None;
    }
    target.is_object().then_some(target)
}

/// The prototype of an object that is not a proxy.
pub(super) fn prototype<'js>(object: &Object<'js>) -> Option<Object<'js>> {
    let ctx = object.ctx();
    // SAFETY: the object is alive; the result is owned.
    let proto =
        unsafe { Value::from_raw(ctx.clone(), qjs::JS_GetPrototype(ctx.as_raw().as_ptr(), object.as_raw())) };
    if proto.is_exception() {
        let _ = ctx.catch();
        return None;
    }
    proto.into_object()
}

/// Length of a string primitive (UTF-16 code units).
pub(super) fn string_units(string: &rquickjs::String<'_>) -> usize {
    let ctx = string.ctx();
    let mut length = 0_i64;
    // SAFETY: a string primitive's `length` is an own data property, so no code of the script runs.
    let status = unsafe { qjs::JS_GetLength(ctx.as_raw().as_ptr(), string.as_raw(), &raw mut length) };
    if status < 0 {
        let _ = ctx.catch();
        return 0;
    }
    usize::try_from(length).unwrap_or(0)
}

/// The code units of a string primitive; `None` without memory for them, and no exception is pending.
pub(super) fn string_utf16(string: &rquickjs::String<'_>) -> Option<Vec<u16>> {
    let ctx = string.ctx();
    let mut length: qjs::size_t = 0;
    // SAFETY: QuickJS gives a pointer to `length` code units that stays valid until it is freed, which happens here
    // exactly once, after the copy.
    unsafe {
        let units = qjs::JS_ToCStringLenUTF16(ctx.as_raw().as_ptr(), &raw mut length, string.as_raw());
        if units.is_null() {
            let _ = ctx.catch();
            return None;
        }
        let copy = std::slice::from_raw_parts(units, usize::try_from(length).unwrap_or(0)).to_vec();
        qjs::JS_FreeCStringUTF16(ctx.as_raw().as_ptr(), units);
        Some(copy)
    }
}

/// A JavaScript string of these code units (lone surrogates included).
pub(super) fn new_string_utf16<'js>(ctx: &Ctx<'js>, units: &[u16]) -> Result<Value<'js>> {
    // SAFETY: pointer and length describe a live slice, which QuickJS copies.
    let value = unsafe {
        Value::from_raw(
            ctx.clone(),
            qjs::JS_NewStringUTF16(ctx.as_raw().as_ptr(), units.as_ptr(), units.len() as _),
        )
    };
    if value.is_exception() { Err(Error::Exception) } else { Ok(value) }
}

/// QuickJS's number of the object's typed-array type; `None` if the object is not a typed array.
pub(super) fn typed_array_kind(object: &Object<'_>) -> Option<u32> {
    // SAFETY: reads the class of a live object.
    u32::try_from(unsafe { qjs::JS_GetTypedArrayType(object.as_raw()) }).ok()
}

/// The first `most` bytes of an `ArrayBuffer` or `SharedArrayBuffer`, and its length; `None` if detached.
pub(super) fn buffer_bytes(object: &Object<'_>, most: usize) -> Option<(Vec<u8>, usize)> {
    let ctx = object.ctx();
    let mut size: qjs::size_t = 0;
    // SAFETY: QuickJS gives a pointer to `size` live bytes or null; they are copied before anything else runs.
    unsafe {
        let bytes = qjs::JS_GetArrayBuffer(ctx.as_raw().as_ptr(), &raw mut size, object.as_raw());
        if bytes.is_null() {
            let _ = ctx.catch();
            return None;
        }
        let size = usize::try_from(size).ok()?;
        Some((std::slice::from_raw_parts(bytes, size.min(most)).to_vec(), size))
    }
}

/// The first `most` bytes of a typed array, and its length in bytes; `None` for any other object (a `DataView`, too), and if
/// the array's buffer is detached or became too short for it.
pub(super) fn view_bytes(object: &Object<'_>, most: usize) -> Option<(Vec<u8>, usize)> {
    let ctx = object.ctx();
    let (mut offset, mut length, mut per_element): (qjs::size_t, qjs::size_t, qjs::size_t) = (0, 0, 0);
    // SAFETY: the three pointers are valid for writes; QuickJS throws unless this is a typed array in bounds, and the result is
    // owned by the wrapper.
    let buffer = unsafe {
        Value::from_raw(
            ctx.clone(),
            qjs::JS_GetTypedArrayBuffer(
                ctx.as_raw().as_ptr(),
                object.as_raw(),
                &raw mut offset,
                &raw mut length,
                &raw mut per_element,
            ),
        )
    };
    let Some(buffer) = buffer.as_object() else {
        let _ = ctx.catch();
        return None;
    };
    let (offset, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
    let mut size: qjs::size_t = 0;
    // SAFETY: QuickJS gives a pointer to `size` live bytes or null; the array's range is checked against `size` and copied
    // before anything else runs.
    unsafe {
        let bytes = qjs::JS_GetArrayBuffer(ctx.as_raw().as_ptr(), &raw mut size, buffer.as_raw());
        if bytes.is_null() {
            let _ = ctx.catch();
            return (length == 0).then(|| (Vec::new(), 0));
        }
        let all = std::slice::from_raw_parts(bytes, usize::try_from(size).ok()?);
        let shown = all.get(offset..offset.checked_add(length)?)?;
        Some((shown[..length.min(most)].to_vec(), length))
    }
}

/// A new `Uint8Array` with a copy of these bytes.
pub(super) fn new_uint8_array<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>> {
    // SAFETY: pointer and length describe a live slice, which QuickJS copies.
    let value = unsafe {
        Value::from_raw(
            ctx.clone(),
            qjs::JS_NewUint8ArrayCopy(ctx.as_raw().as_ptr(), bytes.as_ptr(), bytes.len() as _),
        )
    };
    if value.is_exception() { Err(Error::Exception) } else { Ok(value) }
}

/// Throws an error that no `catch`, `finally` or promise handler of the script sees.
pub(super) fn throw_uncatchable(ctx: &Ctx<'_>) -> Error {
    // SAFETY: the format has no directives; the thrown error object is marked while it is the current exception, and
    // put back as such.
    unsafe {
        let raw = ctx.as_raw().as_ptr();
        qjs::JS_ThrowInternalError(raw, c"interrupted".as_ptr());
        let error = qjs::JS_GetException(raw);
        qjs::JS_SetUncatchableError(raw, error);
        qjs::JS_Throw(raw, error);
    }
    Error::Exception
}

pub(super) use vm_system_inspect::Settled;

/// State and result of an object that is a promise, whatever its prototype.
pub(super) fn promise_result<'js>(promise: &Value<'js>) -> Option<(Settled, Value<'js>)> {
    let ctx = promise.ctx();
    // SAFETY: reads internals of a live object; the result is owned by the wrapper.
    unsafe {
        let state = match qjs::JS_PromiseState(ctx.as_raw().as_ptr(), promise.as_raw()) {
            qjs::JSPromiseStateEnum_JS_PROMISE_PENDING => Settled::Pending,
            qjs::JSPromiseStateEnum_JS_PROMISE_FULFILLED => Settled::Fulfilled,
            qjs::JSPromiseStateEnum_JS_PROMISE_REJECTED => Settled::Rejected,
            _ => return None,
        };
        let result =
            Value::from_raw(ctx.clone(), qjs::JS_PromiseResult(ctx.as_raw().as_ptr(), promise.as_raw()));
        Some((state, result))
    }
}

/// Marks the promise as handled in QuickJS.
pub(super) fn mark_handled(promise: &rquickjs::Promise<'_>) {
    // SAFETY: sets a flag of a live promise.
    unsafe { qjs::JS_PromiseMarkAsHandled(promise.ctx().as_raw().as_ptr(), promise.as_raw()) }
}

/// An identity of an object, valid until the object is freed; 0 for values that are not on the heap (a number, `undefined`).
pub(super) fn identity(object: &Value<'_>) -> usize {
    // SAFETY: only values with a count of references hold a pointer, which is only compared, never followed.
    unsafe {
        let raw = object.as_raw();
        if qjs::JS_VALUE_HAS_REF_COUNT(raw) { qjs::JS_VALUE_GET_PTR(raw) as usize } else { 0 }
    }
}

/// JavaScript's `Object.is`.
pub(super) fn is_same<'js>(left: &Value<'js>, right: &Value<'js>) -> bool {
    // SAFETY: both are alive and of one runtime; the comparison runs no code of the script.
    unsafe { qjs::JS_IsSameValue(left.ctx().as_raw().as_ptr(), left.as_raw(), right.as_raw()) }
}

/// Sets the current stack pointer as the start of the JavaScript stack.
pub(super) fn stack_starts_here(ctx: &Ctx<'_>) {
    // SAFETY: the runtime is used on this thread only; the call records the current stack pointer.
    unsafe { qjs::JS_UpdateStackTop(qjs::JS_GetRuntime(ctx.as_raw().as_ptr())) }
}

/// Runs every queued job with so little stack that no function of the script can start: each ends at once, and the
/// queue with it. At most `most` jobs.
pub(super) fn discard_jobs(ctx: &Ctx<'_>, stack_bytes: usize, most: usize) {
    // SAFETY: runtime and context are alive; a failing job leaves its exception in the context, which is dropped.
    unsafe {
        let runtime = qjs::JS_GetRuntime(ctx.as_raw().as_ptr());
        qjs::JS_SetMaxStackSize(runtime, 1);
        let mut left = most;
        while left > 0 && qjs::JS_IsJobPending(runtime) {
            let mut of = std::ptr::null_mut();
            if qjs::JS_ExecutePendingJob(runtime, &raw mut of) < 0 {
                drop(ctx.catch());
            }
            left -= 1;
        }
        qjs::JS_SetMaxStackSize(runtime, stack_bytes as _);
    }
}

/// Runs one queued job. `None`: there was none. `Some(false)`: it threw, the exception is in the context.
pub(super) fn run_job(ctx: &Ctx<'_>) -> Option<bool> {
    // SAFETY: runtime and context are alive; there is one context, so `of` is this one.
    unsafe {
        let runtime = qjs::JS_GetRuntime(ctx.as_raw().as_ptr());
        let mut of = std::ptr::null_mut();
        match qjs::JS_ExecutePendingJob(runtime, &raw mut of) {
            0 => None,
            status => Some(status > 0),
        }
    }
}

/// Whether a script's text compiles. Nothing runs, and no exception is left behind.
pub(super) fn compiles(ctx: &Ctx<'_>, text: &str, awaits: bool, strict: bool) -> bool {
    let mut flags = 0;
    if awaits {
        flags |= qjs::JS_EVAL_FLAG_ASYNC;
    }
    if strict {
        flags |= qjs::JS_EVAL_FLAG_STRICT;
    }
    compiled::sys::compiled(ctx, text, "check", flags).is_some()
}

/// Sets the heap size at which QuickJS collects cycles. QuickJS itself sets it to one and a half times the live heap, which
/// may exceed the memory limit: then garbage would look like a full heap.
#[derive(Default)]
pub(super) struct Collector {
    runtime: Rc<Cell<Option<NonNull<qjs::JSRuntime>>>>,
}

/// Keeps a runtime alive for as long as a [`Collector`] uses it.
pub(super) struct CollectorGuard {
    collector: Rc<Cell<Option<NonNull<qjs::JSRuntime>>>>,
    _runtime: Runtime,
}

impl Drop for CollectorGuard {
    fn drop(&mut self) {
        self.collector.set(None);
    }
}

impl Collector {
    /// Belongs to the context's runtime until the guard is dropped.
    pub(super) fn attach(&self, context: &Context) -> CollectorGuard {
        self.runtime.set(NonNull::new(context.get_runtime_ptr()));
        CollectorGuard { collector: self.runtime.clone(), _runtime: context.runtime().clone() }
    }

    /// Takes the engine's reserve back, and gives it again when memory is out the next time; the limit stays (bytes).
    pub(super) fn restore_reserve(&self, limit: usize) {
        let Some(runtime) = self.runtime.get() else { return };
        // SAFETY: the guard keeps the runtime alive, which stays on this thread; the call sets two fields.
        unsafe { qjs::JS_SetMemoryLimit(runtime.as_ptr(), limit as _) };
    }

    /// Makes the next collection happen before the heap reaches `limit` (bytes).
    pub(super) fn collect_before(&self, limit: usize) {
        let Some(runtime) = self.runtime.get() else { return };
        let available = limit.saturating_sub(heap_bytes());
        // SAFETY: the guard keeps the runtime alive, which stays on this thread; both calls access one field.
        unsafe {
            let threshold = usize::try_from(qjs::JS_GetGCThreshold(runtime.as_ptr())).unwrap_or(usize::MAX);
            // Close to the limit it is too late, and each further collection would cost more than it frees.
            if threshold > limit && available > limit / 16 {
                qjs::JS_SetGCThreshold(runtime.as_ptr(), (heap_bytes() + available / 2) as _);
            }
        }
    }
}

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
pub(super) fn plug_pools(ctx: &Ctx<'_>) {
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
pub(super) struct CountingAllocator;

thread_local! {
    static HEAP_BYTES: Cell<usize> = const { Cell::new(0) };
    static HEAP_PEAK: Cell<usize> = const { Cell::new(0) };
    static SHARED_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that QuickJS holds on this thread.
pub(super) fn heap_bytes() -> usize {
    HEAP_BYTES.get()
}

/// Most bytes that QuickJS held on this thread since [`reset_heap_peak`].
pub(super) fn heap_peak() -> usize {
    HEAP_PEAK.get().max(HEAP_BYTES.get())
}

/// Bytes of the heap that do not count for the session: compiled modules, which its zygote shares.
pub(super) fn shared_bytes() -> usize {
    SHARED_BYTES.get()
}

/// Has this many bytes of the heap not count for the session.
pub(super) fn share_bytes(bytes: usize) {
    SHARED_BYTES.set(bytes);
}

/// Bytes that count for the session.
pub(super) fn own_heap_bytes() -> usize {
    heap_bytes().saturating_sub(shared_bytes())
}

/// The peak of the bytes that count for the session.
pub(super) fn own_heap_peak() -> usize {
    heap_peak().saturating_sub(shared_bytes())
}

/// Starts a new peak.
pub(super) fn reset_heap_peak() {
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
        if !memory::fits(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: malloc has no preconditions.
        let pointer = unsafe { libc::malloc(size) }.cast::<u8>();
        grew(usable(pointer));
        pointer
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if !memory::fits(count.saturating_mul(size)) {
            return std::ptr::null_mut();
        }
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
        if new_size > before && !memory::fits(new_size - before) {
            return std::ptr::null_mut();
        }
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
