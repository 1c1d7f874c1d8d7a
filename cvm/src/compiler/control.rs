//! Leaving code early: break, continue and return through finally blocks and open iterators.
//!
//! Owns: the control stack. A `finally` block is emitted once: each exit that passes it stores a number in a local, and the
//! code after the block branches on that number. Must not: compile statements.

use super::Compiler;
use super::emit::Label;
use crate::ops::Opcode;
use crate::program::flag;

/// A way to leave the current statement early.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// To the end of the control entry with this number
    Break(usize),
    /// To the next iteration of that entry
    Continue(usize),
    /// Out of the function; the value is on the stack
    Return,
}

/// An entry of the control stack.
pub(super) enum ControlEntry {
    /// A loop, switch or labelled statement
    Target { labels: Vec<String>, brk: Label, cont: Option<Label>, anonymous: bool, depth: u16 },
    /// The block and catch clause of a try statement with a finally clause
    Finally { label: Label, kind: u16, value: u16, exits: Vec<Exit>, depth: u16 },
    /// The block of a try statement with a catch clause
    Catch { region: usize },
    /// An open iterator in two locals from `local` on
    Iter { local: u16, region: usize, is_async: bool, done: Option<u16> },
}

impl Compiler<'_, '_> {
    /// Leaves by `exit`; for a return the value is on the stack.
    pub(super) fn leave(&mut self, exit: Exit) {
        let depth_now = self.f().depth();
        let mut closed = Vec::new();
        let mut i = self.f().control.len();
        let mut done = false;
        while i > 0 && !done {
            i -= 1;
            if exit == Exit::Break(i) || exit == Exit::Continue(i) {
                self.jump_to_target(i, exit);
                done = true;
                continue;
            }
            match &mut self.f().control[i] {
                ControlEntry::Target { .. } => {}
                ControlEntry::Catch { region } => {
                    let region = *region;
                    self.f().close_region(region);
                    closed.push(region);
                }
                ControlEntry::Iter { local, region, is_async, done } => {
                    let (local, region, is_async, done) = (*local, *region, *is_async, *done);
                    self.f().close_region(region);
                    closed.push(region);
                    match done {
                        Some(done) => self.close_unless_done(local, done),
                        None => self.close_iterator(local, is_async),
                    }
                }
                ControlEntry::Finally { label, kind, value, exits, depth } => {
                    let at = exits.iter().position(|e| *e == exit).unwrap_or_else(|| {
                        exits.push(exit);
                        exits.len() - 1
                    });
                    let (label, kind, value, depth) = (*label, *kind, *value, *depth);
                    if exit == Exit::Return {
                        self.store_local(value);
                    }
                    self.pop_to(depth);
                    self.op_c(Opcode::Int, at as u32 + 1);
                    if exit != Exit::Return {
                        self.op_c(Opcode::TeeLoc, u32::from(value));
                    }
                    self.store_local(kind);
                    self.jump(Opcode::Jump, label);
                    done = true;
                }
            }
        }
        if !done {
            self.emit_return();
        }
        for region in closed {
            self.f().reopen_region(region);
        }
        let depth = if exit == Exit::Return { depth_now.saturating_sub(1) } else { depth_now };
        self.f().set_depth(depth);
    }

    fn jump_to_target(&mut self, i: usize, exit: Exit) {
        let ControlEntry::Target { brk, cont, depth, .. } = &self.f().control[i] else { return };
        let (brk, cont, depth) = (*brk, *cont, *depth);
        self.pop_to(depth);
        let label = if matches!(exit, Exit::Continue(_)) { cont.unwrap_or(brk) } else { brk };
        self.jump(Opcode::Jump, label);
    }

    fn pop_to(&mut self, depth: u16) {
        while self.f().depth() > depth {
            self.op(Opcode::Pop);
        }
    }

    /// Closes the iterator in `local`: calls its `return` method.
    pub(super) fn close_iterator(&mut self, local: u16, is_async: bool) {
        self.load_local(local);
        self.load_local(local + 1);
        if is_async {
            self.call_pre("AsyncIteratorClose", 2);
            self.op(Opcode::Await);
            self.call_pre("AsyncIteratorCloseCheck", 1);
            self.op(Opcode::Pop);
        } else {
            self.call_pre("IteratorClose", 2);
            self.op(Opcode::Pop);
        }
    }

    /// Closes the iterator in `local` unless the flag in local `done` is set.
    pub(super) fn close_unless_done(&mut self, local: u16, done: u16) {
        let skip = self.label();
        self.load_local(done);
        self.jump(Opcode::JTrue, skip);
        self.close_iterator(local, false);
        self.bind(skip);
    }

    /// Handler code of an open iterator: closes it silently and rethrows. The thrown value is on the stack.
    pub(super) fn close_and_rethrow(&mut self, local: u16, is_async: bool) {
        self.load_local(local);
        if is_async {
            self.call_pre("AsyncIteratorCloseSilently", 1);
            let (label, nothing, after) = (self.label(), self.label(), self.label());
            self.op(Opcode::Dup);
            self.jump(Opcode::JUndef, nothing);
            let region = self.f().open_region(label);
            self.op(Opcode::Await);
            self.f().close_region(region);
            self.bind(nothing);
            self.op(Opcode::Pop);
            self.jump(Opcode::Jump, after);
            let depth = self.f().depth();
            self.f().set_depth(depth + 2);
            self.f().begin_handler(label);
            self.op(Opcode::Pop);
            self.op(Opcode::Pop);
            self.bind(after);
        } else {
            self.load_local(local + 1);
            self.call_pre("IteratorCloseSilently", 2);
            self.op(Opcode::Pop);
        }
        self.op(Opcode::Throw);
    }

    /// Returns the value on the stack from this function, without closing anything.
    pub(super) fn emit_return(&mut self) {
        if self.f().is(flag::DERIVED) {
            if let Some(at) = self.find_derived(0) {
                self.load_at(at, false);
            } else {
                self.op(Opcode::Undef);
            }
            self.op(Opcode::RetDerived);
        } else {
            self.op(Opcode::Ret);
        }
    }

    /// Compiles `try` code inside a finally: `body`, then the block `last`; then the code continues as `body` ended. `last` gets
    /// the locals with the kind of that end (0: an exception) and its value.
    pub(super) fn with_finally(
        &mut self,
        body: impl FnOnce(&mut Self),
        last: impl FnOnce(&mut Self, (u16, u16)),
    ) {
        let mark = self.f().mark();
        let (kind, value) = (self.f().local(), self.f().local());
        let (label, handler, normal) = (self.label(), self.label(), self.label());
        let depth = self.f().depth();
        let region = self.f().open_region(handler);
        self.f().control.push(ControlEntry::Finally { label, kind, value, exits: Vec::new(), depth });
        body(self);
        self.f().close_region(region);
        let popped = self.f().control.pop();
        self.f().set_depth(depth);
        self.op_c(Opcode::Int, u32::MAX);
        // Every way to `last` writes the value: that of an earlier end is dead.
        self.op_c(Opcode::TeeLoc, u32::from(value));
        self.store_local(kind);
        self.jump(Opcode::Jump, label);
        self.f().begin_handler(handler);
        self.store_local(value);
        self.op_c(Opcode::Int, 0);
        self.store_local(kind);
        self.bind(label);
        last(self, (kind, value));
        let Some(ControlEntry::Finally { exits, .. }) = popped else { return };
        self.load_local(kind);
        self.op_c(Opcode::Int, u32::MAX);
        self.jump(Opcode::JSeq, normal);
        for (i, exit) in exits.into_iter().enumerate() {
            let next = self.label();
            self.load_local(kind);
            self.op_c(Opcode::Int, i as u32 + 1);
            self.jump(Opcode::JNotSeq, next);
            if exit == Exit::Return {
                self.load_local(value);
            }
            self.leave(exit);
            self.bind(next);
        }
        self.load_local(value);
        self.op(Opcode::Throw);
        self.f().set_depth(depth);
        self.bind(normal);
        self.f().release(mark);
    }
}
