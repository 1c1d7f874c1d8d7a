//! Owns QuickJS's scripts that are compiled and not run.

use rquickjs::{Ctx, Error, FromJs as _, Function, Persistent, Result, Value, qjs};

/// A script that evaluates to a function, compiled; it may be evaluated any number of times.
pub(in crate::engine) struct CompiledScript(Persistent<Value<'static>>);

impl CompiledScript {
    /// Compiles a script; `None` if that fails. Nothing runs, and no exception is left behind.
    pub(in crate::engine) fn compile(ctx: &Ctx<'_>, text: &str, name: &str) -> Option<Self> {
        compiled(ctx, text, name, 0).map(|script| Self(Persistent::save(ctx, script)))
    }

    /// Evaluates it: a new function.
    pub(in crate::engine) fn evaluate<'js>(&self, ctx: &Ctx<'js>) -> Result<Function<'js>> {
        let script = self.0.clone().restore(ctx)?;
        // SAFETY: the value is a compiled script of this context, and QuickJS consumes a reference of its own; the result is owned by the
        // wrapper.
        let result = unsafe {
            let raw = ctx.as_raw().as_ptr();
            Value::from_raw(ctx.clone(), qjs::JS_EvalFunction(raw, qjs::JS_DupValue(raw, script.as_raw())))
        };
        if result.is_exception() { Err(Error::Exception) } else { Function::from_js(ctx, result) }
    }
}

/// A script's code, which QuickJS represents as a value that is no object.
pub(in crate::engine) fn compiled<'js>(
    ctx: &Ctx<'js>,
    text: &str,
    name: &str,
    flags: u32,
) -> Option<Value<'js>> {
    let (source, name) = (std::ffi::CString::new(text).ok()?, std::ffi::CString::new(name).ok()?);
    let flags = flags | qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY;
    // SAFETY: text and name are terminated and alive; the result is owned by the wrapper, which frees the function.
    let compiled = unsafe {
        Value::from_raw(
            ctx.clone(),
            qjs::JS_Eval(
                ctx.as_raw().as_ptr(),
                source.as_ptr(),
                text.len() as _,
                name.as_ptr(),
                flags.cast_signed(),
            ),
        )
    };
    if compiled.is_exception() {
        drop(ctx.catch());
        return None;
    }
    Some(compiled)
}

unsafe extern "C" {
    /// Bytes that QuickJS may hold beyond its limit while it compiles on this thread (`quickjs/patches/3-out-of-memory.patch`).
    #[link_name = "vm_compile_memory"]
    pub(in crate::engine) safe fn compile_memory() -> usize;
}
