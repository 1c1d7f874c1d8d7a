//! Owns the copy of an iterator of a `Map` or a `Set`, for which QuickJS has no function: its state is read, and written to a new
//! iterator, so that the original stays where it is. Must not decide anything.

use crate::engine::sys::class_id;
use rquickjs::{Ctx, Object, Value, qjs};
use std::ffi::{CStr, c_int, c_uint};

/// The version of QuickJS whose layout [`IteratorState`] has.
const VERSION: &CStr = c"0.16.2";

/// `JSMapIteratorData` in quickjs.c.
#[repr(C)]
struct IteratorState {
    /// The `Map` or `Set`; `undefined` at the end.
    collection: qjs::JSValue,
    /// `JSIteratorKindEnum`.
    kind: c_uint,
    /// The record that was returned last, or null. A record begins with the number of its users.
    current: *mut c_int,
}

/// `JS_ITERATOR_KIND_KEY_AND_VALUE`.
const ENTRIES: c_uint = 2;

/// Class of an iterator of a `Map` or a `Set`; no class of a script or of ours has these names.
fn is_iterator(ctx: &Ctx<'_>, class: u32) -> bool {
    // SAFETY: context and runtime are alive; the atom is freed by the conversion's counterpart below, and the value by its wrapper.
    let name = unsafe {
        let raw = ctx.as_raw().as_ptr();
        let atom = qjs::JS_GetClassName(qjs::JS_GetRuntime(raw), class);
        let name = Value::from_raw(ctx.clone(), qjs::JS_AtomToString(raw, atom));
        qjs::JS_FreeAtom(raw, atom);
        name
    };
    let name = name.as_string().and_then(|name| name.to_string().ok());
    matches!(name.as_deref(), Some("Map Iterator" | "Set Iterator"))
}

/// The state of an iterator; `None` for other objects, and if this QuickJS is not the one whose layout is known.
fn state(iterator: &Object<'_>) -> Option<*mut IteratorState> {
    // SAFETY: QuickJS returns a constant text.
    let version = unsafe { CStr::from_ptr(qjs::JS_GetVersion()) };
    let class = class_id(iterator);
    if version != VERSION || !is_iterator(iterator.ctx(), class) {
        return None;
    }
    // SAFETY: the object is alive and of this class.
    let state = unsafe { qjs::JS_GetOpaque(iterator.as_raw(), class) }.cast::<IteratorState>();
    (!state.is_null()).then_some(state)
}

/// The collection of an iterator, `undefined` if it has ended, and whether its items are entries.
pub(super) fn iterated<'js>(iterator: &Object<'js>) -> Option<(Value<'js>, bool)> {
    let state = state(iterator)?;
    // SAFETY: `state` belongs to a live iterator, which holds its collection; the wrapper gets a count of its own.
    unsafe {
        let raw = iterator.ctx().as_raw().as_ptr();
        let collection = qjs::JS_DupValue(raw, (*state).collection);
        Some((Value::from_raw(iterator.ctx().clone(), collection), (*state).kind == ENTRIES))
    }
}

/// Moves a new iterator to where `iterator` is; `false` if they do not iterate over the same collection, or if it is not new.
pub(super) fn continue_at(new: &Object<'_>, iterator: &Object<'_>) -> bool {
    let (Some(to), Some(from)) = (state(new), state(iterator)) else { return false };
    // SAFETY: both states belong to live iterators of one collection, which is compared. The record stays in the collection's
    // list for as long as it has users, and `new` becomes one of them, as if it had returned the record itself.
    unsafe {
        let (to, from) = (&mut *to, &*from);
        let same = qjs::JS_IsObject(to.collection)
            && qjs::JS_IsObject(from.collection)
            && qjs::JS_VALUE_GET_PTR(to.collection) == qjs::JS_VALUE_GET_PTR(from.collection);
        if !same || !to.current.is_null() {
            return false;
        }
        if !from.current.is_null() {
            *from.current += 1;
        }
        to.current = from.current;
        to.kind = from.kind;
    }
    true
}
