//! `yield` and `yield*`.
//!
//! Owns: how a resumed generator handles its value, exception or return request. Must not: use frames.

use super::Compiler;
use super::control::Exit;
use super::emit::Label;
use crate::ops::Opcode;
use oxc_ast::ast::YieldExpression;

impl Compiler<'_, '_> {
    pub(super) fn yield_expression(&mut self, y: &YieldExpression<'_>) {
        match &y.argument {
            Some(e) => self.expr(e),
            None => self.op(Opcode::Undef),
        }
        self.f().position(y.span.start);
        if y.delegate {
            self.yield_star();
            return;
        }
        let is_async = self.in_async();
        if is_async {
            self.await_value();
        }
        self.op(Opcode::Yield);
        self.return_if_requested(is_async);
    }

    /// value isReturn -> value, or a return with the value.
    pub(super) fn return_if_requested(&mut self, is_async: bool) {
        let resumed = self.label();
        self.jump(Opcode::JFalse, resumed);
        if is_async {
            self.await_value();
        }
        self.leave(Exit::Return);
        let depth = self.f().depth();
        self.f().set_depth(depth + 1);
        self.bind(resumed);
    }

    /// An async generator awaits the value of a `return` request before the inner iterator gets it; a rejection is a `throw` request.
    fn await_return_request(&mut self, mode: u16, value: u16, head: Label) {
        let handler = self.label();
        self.load_local(mode);
        self.op_c(Opcode::Int, 2);
        self.jump(Opcode::JNotSeq, head);
        let region = self.f().open_region(handler);
        self.load_local(value);
        self.await_value();
        self.f().close_region(region);
        self.store_local(value);
        self.jump(Opcode::Jump, head);
        self.f().begin_handler(handler);
        self.store_local(value);
        self.op_c(Opcode::Int, 1);
        self.store_local(mode);
    }

    pub(super) fn yield_star(&mut self) {
        let is_async = self.in_async();
        let mark = self.f().mark();
        let local = if is_async {
            self.open_async_iterator()
        } else {
            let local = self.f().local();
            self.f().local();
            self.op(Opcode::GetIterMethod);
            self.op_b(Opcode::Call, 0);
            self.op(Opcode::IterCheck);
            self.op(Opcode::Dup);
            let next = self.str_const("next");
            self.op_c(Opcode::GetProp, next);
            self.store_local(local + 1);
            self.store_local(local);
            local
        };
        let (mode, value) = (self.f().local(), self.f().local());
        let (head, over, done, back) = (self.label(), self.label(), self.label(), self.label());
        self.op_c(Opcode::Int, 0);
        self.store_local(mode);
        self.op(Opcode::Undef);
        self.store_local(value);
        self.bind(head);
        self.load_local(local);
        self.load_local(local + 1);
        self.load_local(mode);
        self.load_local(value);
        // The inner result, or null when a return finds no method to call.
        self.call_pre(if is_async { "AsyncYieldStep" } else { "YieldStep" }, 4);
        if is_async {
            self.op(Opcode::Dup);
            let skip = self.label();
            self.jump(Opcode::JNullish, skip);
            self.await_value();
            self.bind(skip);
        }
        self.op(Opcode::Dup);
        self.jump(Opcode::JNullish, back);
        if is_async {
            let checked = self.label();
            self.load_local(mode);
            self.op_c(Opcode::Int, 3);
            self.jump(Opcode::JNotSeq, checked);
            let m = self.str_const("The iterator does not provide a 'throw' method");
            self.f().emit(Opcode::ThrowErr, m, 0);
            self.bind(checked);
        }
        self.op(Opcode::IterCheck);
        self.op(Opcode::Dup);
        let name = self.str_const("done");
        self.op_c(Opcode::GetProp, name);
        self.jump(Opcode::JTrue, over);
        if is_async {
            let name = self.str_const("value");
            self.op_c(Opcode::GetProp, name);
        }
        self.op(Opcode::YieldStar);
        self.store_local(mode);
        self.store_local(value);
        if is_async {
            self.await_return_request(mode, value, head);
        }
        self.jump(Opcode::Jump, head);
        self.bind(back);
        self.op(Opcode::Pop);
        self.load_local(value);
        if is_async {
            self.await_value();
        }
        self.leave(Exit::Return);
        let depth = self.f().depth();
        self.f().set_depth(depth + 1);
        self.bind(over);
        let name = self.str_const("value");
        self.op_c(Opcode::GetProp, name);
        self.load_local(mode);
        self.op_c(Opcode::Int, 2);
        self.jump(Opcode::JNotSeq, done);
        self.leave(Exit::Return);
        let depth = self.f().depth();
        self.f().set_depth(depth + 1);
        self.bind(done);
        self.f().release(mark);
    }
}
