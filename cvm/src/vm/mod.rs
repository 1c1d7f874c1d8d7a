//! The interpreter.
//!
//! Reading order: this file (the machine, and how an instruction ends), `driver` (a whole run), `run` (the hot loop), `slow`
//! and the `ops_*` files (everything else an opcode does), `call` (frames), `unwind` (exceptions), `props` (the
//! property model), `convert` (conversions), `coroutine`, `items` (promises that the host settles).
//!
//! The protocol of suspension: an instruction or native reads its operands in place on the stack and drops them
//! only after its last step that can fail. If user code must convert an operand, the instruction returns
//! [`Raise::Prim`]; the machine calls the prelude's `ToPrimitive` in a frame that stores its result in the operand's
//! slot, and then the same instruction runs again. So conversions suspend, serialise and throw like any call, and no
//! Rust frame is ever held.

#[macro_use]
mod fast;
pub(crate) mod call;
pub(crate) mod convert;
pub(crate) mod coroutine;
pub(crate) mod define;
pub(crate) mod driver;
pub(crate) mod elements;
pub(crate) mod errors;
mod hints;
pub(crate) mod inspect;
pub(crate) mod items;
mod namespaces;
pub(crate) mod ops_class;
pub(crate) mod ops_iter;
mod ops_literal;
pub(crate) mod ops_math;
pub(crate) mod ops_object;
mod ops_private;
pub(crate) mod props;
pub(crate) mod run;
pub(crate) mod slow;
pub(crate) mod sort;
mod suspended;
pub(crate) mod unwind;
mod values;

use crate::outcome::PendingRequest;
use crate::program::CompiledProgram;
use crate::state::{VmLimitKind, VmState};
use crate::value::{Id, Value};

/// Why an instruction did not complete.
#[derive(Debug)]
pub(crate) enum Raise {
    /// A JavaScript exception
    Throw(Value),
    /// The object in this stack slot must become a primitive first; hint 0 default, 1 number, 2 string
    Prim(usize, u8),
    /// The program waits for the host; the result will be pushed
    Wait(Box<PendingRequest>),
    /// A limit
    Limit(VmLimitKind),
    /// The state is invalid
    Fault(&'static str),
}

/// Result of an instruction, native or helper.
pub(crate) type Res<T> = Result<T, Raise>;

/// How a native ends.
pub(crate) enum Ret {
    /// The call returned a value
    Value(Value),
    /// `callee this args` were rearranged on the stack: call the new callee, with this number of arguments
    Tail(usize),
    /// Like `Tail`, as a construction with this `new.target`
    TailNew(usize, Value),
    /// Enter compiled code as a constructor with an existing `this`: `callee this args` are arranged
    Enter(usize, Value),
    /// Call the prelude's version of this native
    Slow,
    /// Resume a coroutine: mode 0 next, 1 throw, 2 return
    Resume(Id, u8, Value),
}

impl From<Value> for Ret {
    fn from(value: Value) -> Ret {
        Ret::Value(value)
    }
}

/// The operands of a native call: they stay on the stack until the call ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeCall {
    /// Stack slot of the first argument
    pub at: usize,
    /// Number of arguments
    pub argc: usize,
    /// Called by the prelude as `$name(…)`: there is no callee and no `this`
    pub bare: bool,
    /// `new.target`, undefined for plain calls
    pub new_target: Value,
}

/// A Rust function that JavaScript can call.
pub(crate) type NativeFn = fn(&mut Vm<'_>, NativeCall) -> Res<Ret>;

/// Program and state while they run.
pub(crate) struct Vm<'p> {
    pub p: &'p CompiledProgram,
    pub st: &'p mut VmState,
}

impl Vm<'_> {
    #[inline]
    pub(crate) fn peek(&self, depth: usize) -> Value {
        self.st.stack.get(self.st.sp.wrapping_sub(depth + 1)).copied().unwrap_or(Value::Undefined)
    }

    #[inline]
    pub(crate) fn slot(&self, at: usize) -> Value {
        self.st.stack.get(at).copied().unwrap_or(Value::Undefined)
    }

    #[inline]
    pub(crate) fn set_slot(&mut self, at: usize, value: Value) {
        if let Some(slot) = self.st.stack.get_mut(at) {
            *slot = value;
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: Value) {
        if self.st.sp == self.st.stack.len() {
            self.st.stack.push(value);
        } else {
            self.st.stack[self.st.sp] = value;
        }
        self.st.sp += 1;
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Value {
        self.st.sp = self.st.sp.saturating_sub(1);
        self.slot(self.st.sp)
    }

    /// Drops `n` operands.
    #[inline]
    pub(crate) fn drop_n(&mut self, n: usize) {
        self.st.sp = self.st.sp.saturating_sub(n);
    }

    /// Replaces the topmost `n` operands by a value.
    #[inline]
    pub(crate) fn replace_top(&mut self, n: usize, value: Value) {
        self.drop_n(n);
        self.push(value);
    }

    /// The argument, undefined when missing.
    #[inline]
    pub(crate) fn arg(&self, call: &NativeCall, i: usize) -> Value {
        if i < call.argc { self.slot(call.at + i) } else { Value::Undefined }
    }

    /// `this` of a native.
    #[inline]
    pub(crate) fn this(&self, call: &NativeCall) -> Value {
        if call.bare { Value::Undefined } else { self.slot(call.at - 1) }
    }

    /// Template number of a function of the prelude.
    pub(crate) fn pre(&self, name: &str) -> u32 {
        self.p.prelude.functions.get(name).copied().unwrap_or(0)
    }
}
