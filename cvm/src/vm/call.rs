//! Calls: from `callee this args` on the stack to a frame, a native's result or another call.
//!
//! Owns: pushing and popping frames. Must not: depend on opcodes.

use super::{NativeCall, Raise, Res, Ret, Vm};
use crate::builtins::ids;
use crate::heap::object::{Array, Code, ObjectKind};
use crate::program::{USER_TEMPLATES, flag};
use crate::state::{Back, Frame, VmLimitKind};
use crate::value::{Id, Value};

/// Most values on the stack.
pub(crate) const MAX_STACK: usize = 1 << 20;
/// Frames of the prelude beyond [`stack_depth`](crate::VmLimits::stack_depth).
const PRELUDE_FRAMES: usize = 64;

/// Most tail calls of natives in a row within one instruction.
const MAX_HOPS: usize = 10_000;

impl Vm<'_> {
    /// Calls `callee this args`; the result replaces them, at once or when the new frame ends.
    pub(crate) fn call(&mut self, argc: usize, back: Back) -> Res<()> {
        self.invoke(argc, Value::Undefined, back)
    }

    /// As [`Vm::call`]; with a `new_target` it constructs and the `this` operand is ignored.
    pub(crate) fn invoke(&mut self, mut argc: usize, mut new_target: Value, back: Back) -> Res<()> {
        for _ in 0..MAX_HOPS {
            let at = self.st.sp.wrapping_sub(argc);
            let Some(callee) = self.slot(at.wrapping_sub(2)).as_obj() else {
                return Err(self.not_callable(self.slot(at.wrapping_sub(2)), "is not a function"));
            };
            let (code, env, this, extra) = match &self.st.heap.obj(callee).kind {
                ObjectKind::Function(f) => (f.code, f.env, f.this, f.extra),
                ObjectKind::Bound(b) => {
                    let (target, this, bound) = (b.0, b.1, b.2.clone());
                    self.insert_args(at, argc, &bound)?;
                    argc += bound.len();
                    self.set_slot(at - 2, target);
                    self.set_slot(at - 1, this);
                    if new_target == Value::Obj(callee) {
                        new_target = target;
                    }
                    continue;
                }
                ObjectKind::Proxy(_) => {
                    argc = self.proxy_call(at, argc, new_target)?;
                    new_target = Value::Undefined;
                    continue;
                }
                _ => return Err(self.not_callable(Value::Obj(callee), "is not a function")),
            };
            match code {
                Code::Template(number) => {
                    return self.enter_function(number, argc, env, this, extra, new_target, back);
                }
                Code::Native(number) => {
                    let call = NativeCall { at, argc, bare: false, new_target };
                    let ret = match self.native(number, call) {
                        Err(Raise::Prim(slot, hint)) if slot + 1 >= at && slot < at + argc => {
                            return self.retry_native(at, argc, (slot, hint), new_target, back);
                        }
                        Err(raise @ Raise::Wait(_)) => {
                            self.st.wait_back = back;
                            return Err(raise);
                        }
                        other => other?,
                    };
                    match ret {
                        Ret::Value(value) => {
                            self.st.sp = at - 2;
                            self.deliver(value, back);
                            return Ok(());
                        }
                        Ret::Tail(n) => {
                            argc = n;
                            new_target = Value::Undefined;
                        }
                        Ret::TailNew(n, target) => {
                            argc = n;
                            new_target = target;
                        }
                        Ret::Enter(n, target) => return self.enter_with_this(n, target, back),
                        Ret::Slow => {
                            let slow =
                                crate::builtins::natives::table().get(number as usize).map_or("", |n| n.slow);
                            let template = self.pre(slow);
                            return self.push_frame(template, argc, Value::Undefined, new_target, back);
                        }
                        Ret::Resume(id, mode, value) => {
                            self.st.sp = at - 2;
                            return self.resume(id, mode, value, back);
                        }
                    }
                }
            }
        }
        Err(Raise::Limit(VmLimitKind::Steps))
    }

    /// A native needs a primitive: the prelude converts that operand and calls the native again. The instruction itself cannot
    /// run again, because spreading, binding and tail calls have rearranged its operands.
    fn retry_native(
        &mut self,
        at: usize,
        argc: usize,
        (slot, hint): (usize, u8),
        new_target: Value,
        back: Back,
    ) -> Res<()> {
        let (callee, this) = (self.slot(at - 2), self.slot(at - 1));
        let args = self.st.stack[at..at + argc].to_vec();
        let array = self.new_array(args);
        let index = slot as i64 - at as i64;
        self.st.sp = at - 2;
        self.push(callee);
        self.push(if new_target == Value::Undefined { this } else { new_target });
        self.push(array);
        self.push(Value::Int(index as i32));
        self.push(Self::hint_name(hint));
        let name = if new_target == Value::Undefined { "RetryCall" } else { "RetryConstruct" };
        let template = self.pre(name);
        self.call_pre(template, 5, back)
    }

    fn native(&mut self, number: u32, call: NativeCall) -> Res<Ret> {
        match crate::builtins::natives::table().get(number as usize) {
            Some(native) => (native.run)(self, call),
            None => Err(Raise::Fault("unknown native")),
        }
    }

    /// `$name(args)` of the prelude: the result replaces the arguments.
    pub(crate) fn call_intrinsic(&mut self, number: u32, argc: usize) -> Res<()> {
        let at = self.st.sp.wrapping_sub(argc);
        let call = NativeCall { at, argc, bare: true, new_target: Value::Undefined };
        match self.native(number, call)? {
            Ret::Value(value) => {
                self.st.sp = at;
                self.push(value);
                Ok(())
            }
            Ret::Resume(id, mode, value) => {
                self.st.sp = at;
                self.resume(id, mode, value, Back::Push)
            }
            Ret::Tail(n) => self.call(n, Back::Push),
            Ret::TailNew(n, target) => self.invoke(n, target, Back::Push),
            Ret::Enter(n, target) => self.enter_with_this(n, target, Back::Push),
            Ret::Slow => Err(Raise::Fault("intrinsic without a slow form")),
        }
    }

    /// Calls a function of the prelude with the topmost `argc` operands as arguments.
    pub(crate) fn call_pre(&mut self, template: u32, argc: usize, back: Back) -> Res<()> {
        let at = self.st.sp.wrapping_sub(argc);
        self.insert_args(at, argc, &[Value::Undefined, Value::Undefined])?;
        self.push_frame(template, argc, Value::Undefined, Value::Undefined, back)
    }

    /// Opens a gap at `at` in front of the topmost `argc` operands.
    fn insert_args(&mut self, at: usize, argc: usize, values: &[Value]) -> Res<()> {
        let n = values.len();
        let end = at + argc + n;
        if end > MAX_STACK {
            return Err(Raise::Limit(VmLimitKind::Stack));
        }
        if self.st.stack.len() < end {
            self.st.stack.resize(end + 64, Value::Undefined);
        }
        self.st.stack.copy_within(at..at + argc, at + n);
        self.st.stack[at..at + n].copy_from_slice(values);
        self.st.sp = end;
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the callee's slots, read once")]
    fn enter_function(
        &mut self,
        number: u32,
        argc: usize,
        env: Value,
        this: Value,
        extra: Value,
        new_target: Value,
        back: Back,
    ) -> Res<()> {
        let template = self.p.template(number);
        let this_slot = self.st.sp - argc - 1;
        let mut new_target = new_target;
        let mut back = back;
        if template.is(flag::ARROW) {
            self.set_slot(this_slot, this);
            new_target = extra;
        } else if new_target != Value::Undefined {
            if template.is(flag::DERIVED) {
                self.set_slot(this_slot, Value::Uninit);
            } else if template.is(flag::BUILTIN) {
                self.set_slot(this_slot, Value::Undefined);
            } else {
                match self.proto_of_constructor(new_target, ids::OBJECT_PROTO) {
                    Some(proto) => {
                        let object = self.st.heap.new_object(proto, ObjectKind::Plain);
                        self.set_slot(this_slot, Value::Obj(object));
                    }
                    None => return self.construct_slow(argc, new_target, back),
                }
                if back == Back::Push {
                    back = Back::Construct;
                }
            }
        } else if template.is(flag::CLASS) {
            let name = self.function_name(self.slot(this_slot - 1));
            return Err(self.type_error(&format!("Class constructor {name} cannot be invoked without 'new'")));
        }
        self.push_frame(number, argc, env, new_target, back)
    }

    /// The prototype from `new.target`, if its `prototype` is a plain property.
    pub(crate) fn proto_of_constructor(&mut self, new_target: Value, default: Id) -> Option<Id> {
        let Some(id) = new_target.as_obj() else { return Some(default) };
        match self.get(id, ids::key(ids::PROTOTYPE)) {
            super::props::PropertyRead::Value(Value::Obj(proto)) => Some(proto),
            super::props::PropertyRead::Value(_) => Some(default),
            _ => None,
        }
    }

    /// `prototype` of the new target is an accessor or behind a proxy: the prelude reads it and creates `this`.
    fn construct_slow(&mut self, argc: usize, new_target: Value, back: Back) -> Res<()> {
        let args: Vec<Value> = (0..argc).map(|i| self.slot(self.st.sp - argc + i)).collect();
        let callee = self.slot(self.st.sp - argc - 2);
        let array = self.new_array(args);
        self.drop_n(argc + 2);
        self.push(callee);
        self.push(new_target);
        self.push(array);
        let template = self.pre("ConstructSlow");
        self.call_pre(template, 3, back)
    }

    /// Calls a base constructor with an existing `this`: `callee this args` on the stack.
    pub(crate) fn enter_with_this(&mut self, argc: usize, new_target: Value, back: Back) -> Res<()> {
        let callee = self.slot(self.st.sp - argc - 2);
        if let Some(id) = callee.as_obj()
            && let ObjectKind::Function(f) = &self.st.heap.obj(id).kind
            && let Code::Template(number) = f.code
        {
            let env = f.env;
            let back = if back == Back::Push { Back::Construct } else { back };
            return self.push_frame(number, argc, env, new_target, back);
        }
        Err(Raise::Fault("construct of no function"))
    }

    /// Pushes the frame of compiled code; `callee this args` are its first slots.
    pub(crate) fn push_frame(
        &mut self,
        number: u32,
        argc: usize,
        env: Value,
        new_target: Value,
        back: Back,
    ) -> Res<()> {
        // The prelude has some frames more, so that a full stack rejects a promise or closes an iterator as any exception does.
        let more = if number < USER_TEMPLATES { PRELUDE_FRAMES } else { 0 };
        if self.st.frames.len() >= self.st.limits.stack_depth as usize + more {
            return Err(Raise::Limit(VmLimitKind::Stack));
        }
        let template = self.p.template(number);
        let base = self.st.sp - argc - 2;
        let params = template.params as usize;
        let end = base + template.slots as usize + template.depth as usize + 2;
        if end > MAX_STACK {
            return Err(Raise::Limit(VmLimitKind::Stack));
        }
        if self.st.stack.len() < end.max(self.st.sp) {
            self.st.stack.resize(end.max(self.st.sp) + 256, Value::Undefined);
        }
        if template.is(flag::ALL_ARGS) {
            let args = self.st.stack[base + 2..base + 2 + argc].to_vec();
            let array = self.new_array(args);
            self.fill(base + 2 + argc.min(params), base + template.slots as usize);
            self.set_slot(base + 2 + params, array);
        } else {
            self.fill(base + 2 + argc.min(params), base + template.slots as usize);
        }
        self.st.sp = base + template.slots as usize;
        self.st.frames.push(Frame {
            template: number,
            pc: template.start,
            base: base as u32,
            env,
            new_target,
            coroutine: Id::NONE,
            back,
        });
        Ok(())
    }

    #[inline]
    fn fill(&mut self, from: usize, to: usize) {
        if from < to
            && let Some(part) = self.st.stack.get_mut(from..to)
        {
            part.fill(Value::Undefined);
        }
    }

    /// An array of these elements.
    pub(crate) fn new_array(&mut self, dense: Vec<Value>) -> Value {
        let len = dense.len() as u32;
        let kind = ObjectKind::Array(Array { dense, len, len_writable: true });
        Value::Obj(self.st.heap.new_object(ids::ARRAY_PROTO, kind))
    }

    /// Ends the topmost frame with a value.
    pub(crate) fn leave_frame(&mut self, value: Value) -> Res<()> {
        let Some(frame) = self.st.frames.pop() else { return Err(Raise::Fault("return without a frame")) };
        let base = frame.base as usize;
        let value = if frame.coroutine == Id::NONE {
            match frame.back {
                Back::Construct if !value.is_object() => self.slot(base + 1),
                _ => value,
            }
        } else {
            self.st.sp = base;
            return self.coroutine_returned(frame, value);
        };
        self.st.sp = base;
        self.deliver(value, frame.back);
        Ok(())
    }

    /// Delivers a call's result to its destination.
    pub(crate) fn deliver(&mut self, value: Value, back: Back) {
        match back {
            Back::Push | Back::Construct => self.push(value),
            Back::Store(slot) => self.set_slot(slot as usize, value),
            Back::Discard => {}
            Back::Result => self.st.result = value,
        }
    }

    /// Whether this value is callable.
    pub(crate) fn is_callable(&self, value: Value) -> bool {
        match value {
            Value::Obj(id) => match &self.st.heap.obj(id).kind {
                ObjectKind::Function(_) | ObjectKind::Bound(_) => true,
                ObjectKind::Proxy(p) => p.2,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether this value has `[[Construct]]`.
    pub(crate) fn is_constructor(&self, value: Value) -> bool {
        let mut value = value;
        for _ in 0..MAX_HOPS {
            let Value::Obj(id) = value else { return false };
            match &self.st.heap.obj(id).kind {
                ObjectKind::Function(f) => {
                    return match f.code {
                        Code::Template(n) => {
                            let t = self.p.template(n);
                            !t.is(flag::ARROW | flag::METHOD | flag::GENERATOR | flag::ASYNC)
                        }
                        Code::Native(n) => {
                            crate::builtins::natives::table().get(n as usize).is_some_and(|n| n.constructs)
                        }
                    };
                }
                ObjectKind::Bound(b) => value = b.0,
                ObjectKind::Proxy(p) => return p.3,
                _ => return false,
            }
        }
        false
    }

    /// A call of a proxy becomes `ProxyCall(proxy, this, argsArray, newTarget)`; returns the new argument count.
    fn proxy_call(&mut self, at: usize, argc: usize, new_target: Value) -> Res<usize> {
        let (proxy, this) = (self.slot(at - 2), self.slot(at - 1));
        if !self.is_callable(proxy) {
            return Err(self.not_callable(proxy, "is not a function"));
        }
        let args: Vec<Value> = (0..argc).map(|i| self.slot(at + i)).collect();
        let array = self.new_array(args);
        let name = if new_target == Value::Undefined { "ProxyCall" } else { "ProxyConstruct" };
        let function = self.prelude_function(name);
        self.st.sp = at - 2;
        for v in [function, Value::Undefined, proxy, this, array, new_target] {
            self.push(v);
        }
        Ok(4)
    }

    /// A fresh function object for a function of the prelude.
    pub(crate) fn prelude_function(&mut self, name: &str) -> Value {
        let template = self.pre(name);
        self.new_function(Code::Template(template), Value::Undefined, ids::FUNCTION_PROTO)
    }
}
