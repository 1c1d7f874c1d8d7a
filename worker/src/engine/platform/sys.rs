//! Owns the engine's reports about promises, for which rquickjs has no function that may be called while a script runs. Must not decide
//! anything: what a report means is the callback's.

use rquickjs::{Ctx, Function, Persistent, Value, qjs};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::rc::Rc;

type ReportSlot = RefCell<Option<Persistent<Function<'static>>>>;

/// Calls a function of JavaScript with each report of the engine about a promise.
#[derive(Default)]
pub(in crate::engine) struct PromiseReports {
    callback: Rc<ReportSlot>,
    started: Cell<bool>,
}

impl PromiseReports {
    /// From now on `callback(kind, promise)` is called with each report of this context's runtime; its result is ignored.
    pub(in crate::engine) fn start<'js>(&self, ctx: &Ctx<'js>, callback: Function<'js>) {
        *self.callback.borrow_mut() = Some(Persistent::save(ctx, callback));
        if self.started.replace(true) {
            return;
        }
        // The runtime gets a count of the slot and never returns it: the pointer is valid for as long as the process lives.
        let slot = Rc::into_raw(self.callback.clone());
        // SAFETY: the runtime is alive; `report` takes exactly this kind of pointer, which stays valid.
        unsafe {
            let runtime = qjs::JS_GetRuntime(ctx.as_raw().as_ptr());
            qjs::JS_SetPromiseHook(runtime, Some(report), slot.cast_mut().cast());
        }
    }

    pub(in crate::engine) fn is_started(&self) -> bool {
        self.started.get()
    }

    /// Drops the callback; required before the runtime is dropped.
    pub(in crate::engine) fn clear(&self) {
        self.callback.borrow_mut().take();
    }
}

/// # Safety
/// QuickJS calls it with its own live context and values; `slot` is the pointer of [`PromiseReports::start`].
unsafe extern "C" fn report(
    raw: *mut qjs::JSContext,
    kind: qjs::JSPromiseHookType,
    promise: qjs::JSValue,
    _parent: qjs::JSValue,
    slot: *mut c_void,
) {
    let Some(context) = NonNull::new(raw) else { return };
    // SAFETY: see above; the value is borrowed, so it gets a count of its own.
    let (slot, ctx, promise) = unsafe {
        let ctx = Ctx::from_raw(context);
        let promise = Value::from_raw(ctx.clone(), qjs::JS_DupValue(raw, promise));
        (&*slot.cast::<ReportSlot>().cast_const(), ctx, promise)
    };
    let callback = slot.borrow().clone();
    let Some(Ok(callback)) = callback.map(|callback| callback.restore(&ctx)) else { return };
    if callback.call::<_, Value>((kind, promise)).is_err() {
        // Out of memory, or the execution was stopped, which its budget remembers.
        drop(ctx.catch());
    }
}
