//! Generators and async functions: frames that are taken off the stack and restored.
//!
//! Owns: saving and restoring a frame, the effect of `yield`, `await`, return and throw on it, settling promises.
//! A suspended frame is a `Coroutine` object; its next value is delivered to its resumer through [`Back`].

use super::props::PropertyRead;
use super::{Raise, Res, Vm};
use crate::builtins::ids;
use crate::heap::object::{Coroutine, ObjectKind, Promise};
use crate::ops::Opcode;
use crate::program::flag;
use crate::state::{Back, Frame, PendingJob, VmLimitKind};
use crate::value::{Id, Value};

/// States of a [`Coroutine`].
pub(crate) mod state {
    pub(crate) const START: u8 = 0;
    pub(crate) const SUSPENDED: u8 = 1;
    pub(crate) const RUNNING: u8 = 2;
    pub(crate) const DONE: u8 = 3;
}

impl Vm<'_> {
    pub(crate) fn coroutine_mut(&mut self, id: Id) -> Option<&mut Coroutine> {
        match &mut self.st.heap.obj_mut(id).kind {
            ObjectKind::Coroutine(c) => Some(c),
            _ => None,
        }
    }

    pub(crate) fn coroutine(&self, id: Id) -> Option<&Coroutine> {
        match &self.st.heap.obj(id).kind {
            ObjectKind::Coroutine(c) => Some(c),
            _ => None,
        }
    }

    /// Takes the topmost frame off the stack.
    fn save_frame(&mut self) -> Res<(Frame, Vec<Value>)> {
        let Some(frame) = self.st.frames.pop() else { return Err(Raise::Fault("suspend without a frame")) };
        let base = frame.base as usize;
        let slots = self.st.stack.get(base..self.st.sp).unwrap_or(&[]).to_vec();
        self.st.heap.charge(slots.len() * 16);
        self.st.sp = base;
        Ok((frame, slots))
    }

    pub(crate) fn op_initial_yield(&mut self) -> Res<()> {
        let template = self.st.frames.last().map_or(0, |f| f.template);
        let callee = self.slot(self.st.frames.last().map_or(0, |f| f.base as usize));
        let is_async = self.p.template(template).is(flag::ASYNC);
        let default = if is_async { ids::ASYNC_GENERATOR_PROTO } else { ids::GENERATOR_PROTO };
        let proto = match callee {
            Value::Obj(id) => match self.get(id, ids::key(ids::PROTOTYPE)) {
                PropertyRead::Value(Value::Obj(proto)) => proto,
                _ => default,
            },
            _ => default,
        };
        let (frame, slots) = self.save_frame()?;
        let start = self.p.template(template).start;
        let coroutine = Coroutine {
            state: state::START,
            template,
            pc: frame.pc - start,
            slots,
            env: frame.env,
            new_target: frame.new_target,
            link: if is_async { self.new_array(Vec::new()) } else { Value::Undefined },
        };
        let id = self.st.heap.new_object(proto, ObjectKind::Coroutine(Box::new(coroutine)));
        self.deliver(Value::Obj(id), frame.back);
        Ok(())
    }

    /// Moves the topmost frame into its coroutine.
    fn suspend(&mut self) -> Res<Frame> {
        let (frame, slots) = self.save_frame()?;
        let start = self.p.template(frame.template).start;
        match self.coroutine_mut(frame.coroutine) {
            Some(c) => {
                c.state = state::SUSPENDED;
                c.pc = frame.pc - start;
                c.slots = slots;
                Ok(frame)
            }
            None => Err(Raise::Fault("suspend of no coroutine")),
        }
    }

    pub(crate) fn op_yield(&mut self, raw: bool) -> Res<()> {
        let value = self.pop();
        let frame = self.suspend()?;
        if self.p.template(frame.template).is(flag::ASYNC) {
            self.push(Value::Obj(frame.coroutine));
            self.push(value);
            let template = self.pre("AsyncGeneratorYielded");
            return self.call_pre(template, 2, frame.back);
        }
        let result = if raw { value } else { self.iter_result(value, false) };
        self.deliver(result, frame.back);
        Ok(())
    }

    /// `{ value, done }`
    pub(crate) fn iter_result(&mut self, value: Value, done: bool) -> Value {
        let id = self.st.heap.new_object(ids::OBJECT_PROTO, ObjectKind::Plain);
        self.create(id, ids::key(ids::VALUE), value);
        self.create(id, ids::key(ids::DONE), Value::Bool(done));
        Value::Obj(id)
    }

    /// Resumes a suspended coroutine: mode 0 next, 1 throw, 2 return.
    pub(crate) fn resume(&mut self, id: Id, mode: u8, value: Value, back: Back) -> Res<()> {
        if self.st.frames.len() >= self.st.limits.stack_depth as usize {
            return Err(Raise::Limit(VmLimitKind::Stack));
        }
        let Some(c) = self.coroutine_mut(id) else { return Err(Raise::Fault("resume of no coroutine")) };
        let was = c.state;
        if was == state::START && mode != 0 {
            c.state = state::DONE;
            c.slots = Vec::new();
            return self.finish_unstarted(id, mode, value, back);
        }
        if was != state::START && was != state::SUSPENDED {
            return Err(Raise::Fault("resume of a running coroutine"));
        }
        c.state = state::RUNNING;
        let slots = std::mem::take(&mut c.slots);
        let (template, pc, env, new_target) = (c.template, c.pc, c.env, c.new_target);
        let t = self.p.template(template);
        let base = self.st.sp;
        let end = base + slots.len() + t.depth as usize + 4;
        if self.st.stack.len() < end {
            self.st.stack.resize(end + 64, Value::Undefined);
        }
        self.st.stack[base..base + slots.len()].copy_from_slice(&slots);
        self.st.sp = base + slots.len();
        let pc = t.start + pc;
        self.st.frames.push(Frame { template, pc, base: base as u32, env, new_target, coroutine: id, back });
        if was == state::START {
            return Ok(());
        }
        match (self.p.code.get(pc as usize - 1).map(|i| i.op), mode) {
            (Some(Opcode::YieldStar), _) => {
                self.push(value);
                self.push(Value::Int(i32::from(mode)));
                Ok(())
            }
            (_, 1) => Err(Raise::Throw(value)),
            (Some(Opcode::Yield), _) => {
                self.push(value);
                self.push(Value::Bool(mode == 2));
                Ok(())
            }
            _ => {
                self.push(value);
                Ok(())
            }
        }
    }

    /// `return` or `throw` before the first `next`.
    fn finish_unstarted(&mut self, id: Id, mode: u8, value: Value, back: Back) -> Res<()> {
        let template = self.coroutine(id).map_or(0, |c| c.template);
        if self.p.template(template).is(flag::ASYNC) {
            self.push(Value::Obj(id));
            self.push(value);
            let name = if mode == 1 { "AsyncGeneratorThrew" } else { "AsyncGeneratorReturned" };
            let template = self.pre(name);
            return self.call_pre(template, 2, back);
        }
        if mode == 1 {
            return Err(Raise::Throw(value));
        }
        let result = self.iter_result(value, true);
        self.deliver(result, back);
        Ok(())
    }

    fn end_coroutine(&mut self, id: Id) -> Value {
        match self.coroutine_mut(id) {
            Some(c) => {
                c.state = state::DONE;
                c.slots = Vec::new();
                c.link
            }
            None => Value::Undefined,
        }
    }

    /// A coroutine's frame returned and is off the stack.
    pub(crate) fn coroutine_returned(&mut self, frame: Frame, value: Value) -> Res<()> {
        let flags = self.p.template(frame.template).flags;
        let link = self.end_coroutine(frame.coroutine);
        match (flags & flag::GENERATOR != 0, flags & flag::ASYNC != 0) {
            (true, false) => {
                let result = self.iter_result(value, true);
                self.deliver(result, frame.back);
                Ok(())
            }
            (true, true) => {
                self.push(Value::Obj(frame.coroutine));
                self.push(value);
                let template = self.pre("AsyncGeneratorReturned");
                self.call_pre(template, 2, frame.back)
            }
            _ => {
                self.push(link);
                self.push(value);
                let template = self.pre("AsyncReturned");
                self.call_pre(template, 2, frame.back)
            }
        }
    }

    /// An exception left a coroutine's frame, which is off the stack. `Ok` if it rejects a promise.
    pub(crate) fn coroutine_threw(&mut self, frame: Frame, value: Value) -> Res<()> {
        let flags = self.p.template(frame.template).flags;
        let link = self.end_coroutine(frame.coroutine);
        match (flags & flag::GENERATOR != 0, flags & flag::ASYNC != 0) {
            (true, false) => Err(Raise::Throw(value)),
            (true, true) => {
                self.push(Value::Obj(frame.coroutine));
                self.push(value);
                let template = self.pre("AsyncGeneratorThrew");
                self.call_pre(template, 2, frame.back)
            }
            _ => {
                if let Value::Obj(promise) = link {
                    self.settle(promise, 2, value);
                }
                self.deliver(link, frame.back);
                Ok(())
            }
        }
    }

    pub(crate) fn op_async_start(&mut self) {
        let promise = self.new_promise(ids::PROMISE_PROTO);
        let Some(frame) = self.st.frames.last().copied() else { return };
        let coroutine = Coroutine {
            state: state::RUNNING,
            template: frame.template,
            pc: 0,
            slots: Vec::new(),
            env: frame.env,
            new_target: frame.new_target,
            link: promise,
        };
        let id = self.st.heap.new_object(Id::NONE, ObjectKind::Coroutine(Box::new(coroutine)));
        if let Some(frame) = self.st.frames.last_mut() {
            frame.coroutine = id;
        }
    }

    /// promise -> value, when it is settled. Compiled code awaits promises only; any other value counts as the result of one.
    pub(crate) fn op_await(&mut self) -> Res<()> {
        let promise = match self.pop() {
            Value::Obj(id) if matches!(self.st.heap.obj(id).kind, ObjectKind::Promise(_)) => id,
            value => {
                let Value::Obj(id) = self.new_promise(ids::PROMISE_PROTO) else { return Ok(()) };
                self.settle(id, 1, value);
                id
            }
        };
        let frame = self.suspend()?;
        self.react(promise, Value::Obj(frame.coroutine), Value::Uninit, Value::Uninit);
        if frame.back == Back::Discard {
            return Ok(());
        }
        let template = self.p.template(frame.template);
        let value = if template.is(flag::GENERATOR) {
            Value::Undefined
        } else {
            self.coroutine(frame.coroutine).map_or(Value::Undefined, |c| c.link)
        };
        self.deliver(value, frame.back);
        Ok(())
    }

    /// A pending promise.
    pub(crate) fn new_promise(&mut self, proto: Id) -> Value {
        let promise =
            Promise { state: 0, handled: false, result: Value::Undefined, reactions: Vec::new(), item: None };
        Value::Obj(self.st.heap.new_object(proto, ObjectKind::Promise(Box::new(promise))))
    }

    /// Adds a reaction: a capability with its handlers, or a coroutine with markers.
    pub(crate) fn react(&mut self, promise: Id, who: Value, fulfilled: Value, rejected: Value) {
        let ObjectKind::Promise(p) = &mut self.st.heap.obj_mut(promise).kind else { return };
        let late = p.state == 2 && !p.handled;
        p.handled = true;
        let (state, result) = (p.state, p.result);
        if late {
            self.table_delete(ids::REJECTIONS, Value::Obj(promise));
        }
        let ObjectKind::Promise(p) = &mut self.st.heap.obj_mut(promise).kind else { return };
        if state == 0 {
            p.reactions.push((who, fulfilled, rejected));
            self.st.heap.charge(48);
        } else {
            self.enqueue_reaction(who, fulfilled, rejected, state, result);
        }
    }

    fn enqueue_reaction(&mut self, who: Value, fulfilled: Value, rejected: Value, state: u8, result: Value) {
        let job = match (who, fulfilled) {
            (Value::Obj(id), Value::Uninit) => PendingJob::Resume(id, u8::from(state == 2), result),
            _ => {
                let handler = if state == 1 { fulfilled } else { rejected };
                let template = self.pre("PromiseReactionJob");
                PendingJob::Call(template, vec![who, handler, result, Value::Bool(state == 2)])
            }
        };
        self.st.enqueue(job);
    }

    /// Fulfils (1) or rejects (2) a pending promise.
    pub(crate) fn settle(&mut self, promise: Id, state: u8, value: Value) {
        let ObjectKind::Promise(p) = &mut self.st.heap.obj_mut(promise).kind else { return };
        if p.state != 0 {
            return;
        }
        p.state = state;
        p.result = value;
        let unhandled = state == 2 && !p.handled;
        let reactions = std::mem::take(&mut p.reactions);
        if let Some(item) = p.item.take() {
            self.st.items.remove(&item.number);
        }
        if unhandled {
            self.table_set(ids::REJECTIONS, Value::Obj(promise), Value::Undefined);
        }
        for (who, fulfilled, rejected) in reactions {
            self.enqueue_reaction(who, fulfilled, rejected, state, value);
        }
    }
}
