//! Loops: while, do, for, for-in, for-of, for-await.
//!
//! Owns: per-iteration bindings and iterator closing. Must not: know other statements.

use super::Compiler;
use super::control::ControlEntry;
use super::emit::Label;
use super::using::Resources;
use crate::ops::Opcode;
use oxc_ast::ast::VariableDeclarationKind;
use oxc_ast::ast::{
    ForInStatement, ForOfStatement, ForStatement, ForStatementInit, ForStatementLeft, Statement,
};
use oxc_span::GetSpan;
use oxc_syntax::scope::ScopeId;
use oxc_syntax::symbol::SymbolId;

/// The declaration in the head of a for-of loop.
fn left_resources(left: &ForStatementLeft<'_>) -> Resources {
    match left {
        ForStatementLeft::VariableDeclaration(d) => Resources::of_kind(d.kind),
        _ => Resources::None,
    }
}

impl Compiler<'_, '_> {
    pub(super) fn loop_statement(&mut self, s: &Statement<'_>, labels: Vec<String>) {
        match s {
            Statement::WhileStatement(w) => {
                let (head, cont, brk) = (self.label(), self.label(), self.label());
                self.jump(Opcode::Jump, cont);
                self.bind(head);
                self.body(&w.body, labels, brk, cont);
                self.bind(cont);
                self.f().position(w.test.span().start);
                self.expr(&w.test);
                self.jump(Opcode::JTrue, head);
                self.bind(brk);
            }
            Statement::DoWhileStatement(w) => {
                let (head, cont, brk) = (self.label(), self.label(), self.label());
                self.bind(head);
                self.body(&w.body, labels, brk, cont);
                self.bind(cont);
                self.expr(&w.test);
                self.jump(Opcode::JTrue, head);
                self.bind(brk);
            }
            Statement::ForStatement(f) => self.for_statement(f, labels),
            Statement::ForInStatement(f) => self.for_in(f, labels),
            Statement::ForOfStatement(f) => self.for_of(f, labels),
            _ => {}
        }
    }

    fn body(&mut self, body: &Statement<'_>, labels: Vec<String>, brk: Label, cont: Label) {
        let depth = self.f().depth();
        self.f().control.push(ControlEntry::Target { labels, brk, cont: Some(cont), anonymous: true, depth });
        self.sub_statement(body);
        self.f().control.pop();
    }

    fn for_statement(&mut self, f: &ForStatement<'_>, labels: Vec<String>) {
        self.in_scope(f.scope_id.get(), |c| {
            let resources = match &f.init {
                Some(ForStatementInit::VariableDeclaration(d)) => Resources::of_kind(d.kind),
                _ => Resources::None,
            };
            c.with_resources(resources, |c| c.for_parts(f, labels));
        });
    }

    /// A `for` statement, inside its scope.
    fn for_parts(&mut self, f: &ForStatement<'_>, labels: Vec<String>) {
        let c = self;
        let active_scope = match f.scope_id.get() {
            Some(scope) if c.facts.captured_in.contains_key(&scope) => {
                c.active_scopes.last().map(|r| r.local)
            }
            _ => None,
        };
        match &f.init {
            Some(ForStatementInit::VariableDeclaration(d)) => {
                if d.kind != VariableDeclarationKind::Var {
                    for v in &d.declarations {
                        super::facts::bound_names(&v.id, &mut |id| c.declare_lexical(id.symbol_id.get()));
                    }
                }
                c.variable_declaration(d);
            }
            Some(other) => c.expr_void(other.to_expression()),
            None => {}
        }
        let (head, cont, brk, check) = (c.label(), c.label(), c.label(), c.label());
        c.copy_scope_cell(active_scope);
        if f.test.is_some() {
            c.jump(Opcode::Jump, check);
        }
        c.bind(head);
        c.body(&f.body, labels, brk, cont);
        c.bind(cont);
        c.copy_scope_cell(active_scope);
        if let Some(update) = &f.update {
            c.f().position(update.span().start);
            c.expr_void(update);
        }
        c.bind(check);
        match &f.test {
            Some(test) => {
                c.f().position(test.span().start);
                c.expr(test);
                c.jump(Opcode::JTrue, head);
            }
            None => c.jump(Opcode::Jump, head),
        }
        c.bind(brk);
    }

    fn copy_scope_cell(&mut self, active_scope: Option<u16>) {
        if let Some(local) = active_scope {
            self.load_local(local);
            self.op(Opcode::CopyScope);
            self.store_local(local);
        }
    }

    /// Binds the value on the stack to the head of a for-in or for-of loop.
    fn bind_left(&mut self, left: &ForStatementLeft<'_>) {
        match left {
            ForStatementLeft::VariableDeclaration(d) => {
                if Resources::of_kind(d.kind) != Resources::None {
                    self.note_resource(d.kind);
                }
                for v in &d.declarations {
                    if d.kind != VariableDeclarationKind::Var {
                        super::facts::bound_names(&v.id, &mut |id| self.declare_lexical(id.symbol_id.get()));
                    }
                    self.bind_pattern(&v.id);
                }
            }
            other => self.assign_target(other.to_assignment_target()),
        }
    }

    /// The right side of a for-in or for-of head: its bindings exist already, not initialised.
    fn right_side(
        &mut self,
        scope: Option<ScopeId>,
        left: &ForStatementLeft<'_>,
        right: &oxc_ast::ast::Expression<'_>,
    ) {
        self.in_scope(scope, |c| {
            if let ForStatementLeft::VariableDeclaration(d) = left
                && d.kind != VariableDeclarationKind::Var
            {
                for v in &d.declarations {
                    super::facts::bound_names(&v.id, &mut |id| c.declare_head(id.symbol_id.get()));
                }
            }
            c.expr(right);
        });
        // These slots are for the head only; each iteration allocates new ones.
        if let ForStatementLeft::VariableDeclaration(d) = left
            && d.kind != VariableDeclarationKind::Var
        {
            for v in &d.declarations {
                super::facts::bound_names(&v.id, &mut |id| {
                    if let Some(symbol) = id.symbol_id.get() {
                        self.f().locals.remove(&symbol);
                    }
                });
            }
        }
    }

    /// Declares a variable of a head for the right side, where it has no value yet. If a use of it is refused, it has a slot that says so;
    /// otherwise the slot has a value of other code, and is not shown.
    fn declare_head(&mut self, symbol: Option<SymbolId>) {
        let shown = self.f().bindings.len();
        self.declare_lexical(symbol);
        if symbol.is_some_and(|symbol| !self.facts.checked.contains(&symbol)) {
            self.f().bindings.truncate(shown);
        }
    }

    fn for_in(&mut self, f: &ForInStatement<'_>, labels: Vec<String>) {
        let mark = self.f().mark();
        // A var initialiser in the head is an early error in strict code.
        self.right_side(f.scope_id.get(), &f.left, &f.right);
        let local = self.f().local();
        self.f().local();
        self.f().local();
        let (head, brk, done) = (self.label(), self.label(), self.label());
        self.op(Opcode::Dup);
        self.store_local(local);
        self.call_pre("ForInKeys", 1);
        self.store_local(local + 1);
        self.op_c(Opcode::Int, 0);
        self.store_local(local + 2);
        self.bind(head);
        self.f().jump(Opcode::ForInNext, done, local);
        self.in_scope(f.scope_id.get(), |c| {
            c.bind_left(&f.left);
            c.body(&f.body, labels, brk, head);
        });
        self.jump(Opcode::Jump, head);
        self.bind(done);
        self.op(Opcode::Pop);
        self.bind(brk);
        self.f().release(mark);
    }

    /// Opens an iterator on the value on the stack: `iterator, next` into two new locals.
    pub(super) fn open_iterator(&mut self) -> u16 {
        let local = self.f().local();
        self.f().local();
        let fast = self.label();
        self.jump(Opcode::IterFast, fast);
        self.op(Opcode::Pop);
        self.op(Opcode::GetIterMethod);
        self.op_b(Opcode::Call, 0);
        self.op(Opcode::IterCheck);
        self.op(Opcode::Dup);
        let next = self.str_const("next");
        self.op_c(Opcode::GetProp, next);
        self.bind(fast);
        self.store_local(local + 1);
        self.store_local(local);
        local
    }

    /// Pushes the next value of the iterator in `local`, or jumps to `done` with nothing pushed.
    pub(super) fn step_iterator(&mut self, local: u16, done: Label) {
        let (got, over) = (self.label(), self.label());
        self.f().jump(Opcode::IterDone, done, local);
        self.f().jump(Opcode::IterValue, got, local);
        self.op(Opcode::Pop);
        self.load_local(local + 1);
        self.load_local(local);
        self.op_b(Opcode::Call, 0);
        self.op(Opcode::IterCheck);
        self.finish_step(over);
        self.jump(Opcode::Jump, got);
        self.bind(over);
        self.op(Opcode::Pop);
        self.jump(Opcode::Jump, done);
        let depth = self.f().depth();
        self.f().set_depth(depth + 1);
        self.bind(got);
    }

    /// Result object -> value, or to `over` with the object still on the stack.
    fn finish_step(&mut self, over: Label) {
        self.op(Opcode::Dup);
        let name = self.str_const("done");
        self.op_c(Opcode::GetProp, name);
        self.jump(Opcode::JTrue, over);
        let name = self.str_const("value");
        self.op_c(Opcode::GetProp, name);
    }

    fn for_of(&mut self, f: &ForOfStatement<'_>, labels: Vec<String>) {
        let mark = self.f().mark();
        self.right_side(f.scope_id.get(), &f.left, &f.right);
        self.f().position(f.right.span().start);
        let local = if f.r#await { self.open_async_iterator() } else { self.open_iterator() };
        let (head, brk, done, handler) = (self.label(), self.label(), self.label(), self.label());
        self.bind(head);
        self.f().position(f.right.span().start);
        if f.r#await {
            self.load_local(local + 1);
            self.load_local(local);
            self.op_b(Opcode::Call, 0);
            self.await_value();
            self.op(Opcode::IterCheck);
            let over = self.label();
            self.finish_step(over);
            let got = self.label();
            self.jump(Opcode::Jump, got);
            self.bind(over);
            self.op(Opcode::Pop);
            self.jump(Opcode::Jump, done);
            let depth = self.f().depth();
            self.f().set_depth(depth + 1);
            self.bind(got);
        } else {
            self.step_iterator(local, done);
        }
        // The targets of break and continue are outside the iterator: break closes it, continue must not.
        let depth = self.f().depth() - 1;
        let next = self.label();
        self.f().set_depth(depth);
        let region = {
            let r = self.f().open_region(handler);
            self.f().set_depth(depth + 1);
            r
        };
        self.f().control.push(ControlEntry::Target {
            labels: labels.clone(),
            brk,
            cont: None,
            anonymous: true,
            depth,
        });
        self.f().control.push(ControlEntry::Iter { local, region, is_async: f.r#await, done: None });
        self.f().control.push(ControlEntry::Target {
            labels,
            brk: next,
            cont: Some(next),
            anonymous: false,
            depth,
        });
        self.in_scope(f.scope_id.get(), |c| {
            let resources = left_resources(&f.left);
            if resources == Resources::None {
                c.bind_left(&f.left);
                // A `break` must pass the iterator, so this entry is a target of `continue` only.
                c.sub_statement(&f.body);
                return;
            }
            let value = c.f().local();
            c.store_local(value);
            c.with_resources(resources, |c| {
                c.load_local(value);
                c.bind_left(&f.left);
                c.sub_statement(&f.body);
            });
        });
        self.f().control.pop();
        self.f().control.pop();
        self.f().control.pop();
        self.f().close_region(region);
        self.bind(next);
        self.jump(Opcode::Jump, head);
        self.f().begin_handler(handler);
        self.close_and_rethrow(local, f.r#await);
        self.f().set_depth(depth);
        self.bind(done);
        self.bind(brk);
        self.f().release(mark);
    }

    pub(super) fn open_async_iterator(&mut self) -> u16 {
        let local = self.f().local();
        self.f().local();
        self.call_pre("GetAsyncIterator", 1);
        self.op(Opcode::Dup);
        let next = self.str_const("next");
        self.op_c(Opcode::GetProp, next);
        self.store_local(local + 1);
        self.store_local(local);
        local
    }

    /// Awaits the value on the stack.
    pub(super) fn await_value(&mut self) {
        self.call_pre("PromiseResolveIntrinsic", 1);
        self.op(Opcode::Await);
    }
}
