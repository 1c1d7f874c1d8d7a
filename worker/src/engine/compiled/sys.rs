//! Owns QuickJS's scripts that are compiled and not run.

use super::super::own_scripts::OwnScript;
use rquickjs::{Ctx, Error, FromJs as _, Function, Persistent, Result, Value, qjs};

/// A script that evaluates to a function, compiled; it may be evaluated any number of times.
pub(in crate::engine) struct CompiledScript(Persistent<Value<'static>>);

impl CompiledScript {
    /// A script of ours; `None` without memory for it.
    pub(in crate::engine) fn of_ours(ctx: &Ctx<'_>, script: &OwnScript) -> Option<Self> {
        script.load(ctx).map(|script| Self(Persistent::save(ctx, script)))
    }

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

/// A script's code of `write_code`; `None` without memory for it. `code` must be of this build of the engine: it is not checked.
pub(in crate::engine) fn read_code<'js>(ctx: &Ctx<'js>, code: &'static [u8]) -> Option<Value<'js>> {
    // SAFETY: the code is alive while it is read, and is ours; the result is owned by the wrapper.
    let read = unsafe {
        let raw = ctx.as_raw().as_ptr();
        let flags = qjs::JS_READ_OBJ_BYTECODE.cast_signed();
        Value::from_raw(ctx.clone(), qjs::JS_ReadObject(raw, code.as_ptr(), code.len() as _, flags))
    };
    if read.is_exception() {
        drop(ctx.catch());
        return None;
    }
    Some(read)
}

/// The code of a compiled script.
#[cfg(test)]
pub(in crate::engine) fn write_code(ctx: &Ctx<'_>, script: &Value<'_>) -> Vec<u8> {
    let mut length = 0;
    // SAFETY: the value is a compiled script of this context. The bytes are copied before they are freed by the context's allocator.
    unsafe {
        let raw = ctx.as_raw().as_ptr();
        let flags = qjs::JS_WRITE_OBJ_BYTECODE.cast_signed();
        let bytes = qjs::JS_WriteObject(raw, &raw mut length, script.as_raw(), flags);
        assert!(!bytes.is_null(), "the script can be written");
        let code = std::slice::from_raw_parts(bytes, length as usize).to_vec();
        qjs::js_free(raw, bytes.cast());
        code
    }
}

unsafe extern "C" {
    /// Bytes that QuickJS may hold beyond its limit while it compiles on this thread (`quickjs/patches/3-out-of-memory.patch`).
    #[link_name = "vm_compile_memory"]
    pub(in crate::engine) safe fn compile_memory() -> usize;
}
