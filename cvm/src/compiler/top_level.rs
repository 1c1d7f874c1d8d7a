//! The top level of a program, and which value is its result.
//!
//! `main` is called after the top level, unless the program has called it by itself by then: its result is then that of the
//! program's last call. The top level is async if it contains `await`, or if functions of the program call `main`: it then waits for
//! the promises that its own calls returned before it decides.
//!
//! Owns: the order of the top level's code. Must not: know how statements are compiled.

use super::Compiler;
use super::emit::FunctionBuilder;
use crate::ops::Opcode;
use crate::program::flag;
use oxc_ast::ast::{CallExpression, Expression, Program, Statement};
use oxc_span::GetSpan;
use oxc_syntax::symbol::{SymbolFlags, SymbolId};

/// Slots of a scope cell of the top level.
const CALLED: &str = "main was called";
const RESULT: &str = "result of main";

/// Function of the prelude that makes the result of a top level that awaits a promise, in generations whose programs can wait for
/// items.
const AWAITED_RESULT: &str = "TopLevelResult";

impl Compiler<'_, '_> {
    /// The top level of a program that is a script.
    pub(super) fn script(&mut self, program: &Program<'_>) {
        self.top_level(program.span.end, self.facts.top_level_await, |c| {
            let root = c.scoping.root_scope_id();
            c.enter_scope(Some(root));
            c.begin_main_calls();
            for symbol in c.symbols_in(root) {
                if c.is_global_symbol(symbol) {
                    let name = c.scoping.symbol_name(symbol).to_owned();
                    let name = c.str_const(&name);
                    if !c.scoping.symbol_flags(symbol).intersects(SymbolFlags::Function) {
                        c.op_c(Opcode::DeclVar, name);
                    }
                }
            }
            c.find_started_calls(program);
            c.statements(&program.body);
        });
    }

    /// The function of the top level, around its code; `end` is the source offset of its end, and `awaits` whether its code has `await`.
    pub(super) fn top_level(&mut self, end: u32, awaits: bool, body: impl FnOnce(&mut Self)) {
        let is_async = awaits || self.facts.main_calls.in_functions;
        let template = self.reserve_template();
        let flags = if is_async { flag::ASYNC } else { 0 };
        let mut builder = FunctionBuilder::new(template, flags, u32::MAX, (0, end));
        builder.local();
        self.begin_function(builder);
        if is_async {
            self.op(Opcode::AsyncStart);
        }
        body(self);
        if is_async {
            self.await_started_calls();
        }
        self.result();
        if awaits && self.prelude_names.contains_key(AWAITED_RESULT) {
            self.call_pre(AWAITED_RESULT, 1);
        }
        if is_async {
            self.op(Opcode::SetResult);
            self.op(Opcode::Undef);
        }
        self.op(Opcode::Ret);
        while self.active_scopes.last().is_some() {
            self.pop_scope_cell();
        }
        self.end_bindings(0);
        self.end_function();
    }

    /// Slots for the program's own calls of `main`.
    pub(super) fn begin_main_calls(&mut self) {
        if self.facts.main_calls.at.is_empty() {
            return;
        }
        self.push_scope_cell();
        self.op(Opcode::False);
        self.store_name(CALLED);
        self.op(Opcode::Undef);
        self.store_name(RESULT);
    }

    /// Before a call of `main`: one that throws has been made, too.
    pub(super) fn note_main_call(&mut self, c: &CallExpression<'_>) -> bool {
        let is_main = matches!(&c.callee, Expression::Identifier(id) if self.facts.main_calls.at.contains(&id.span.start));
        if is_main && let Some(at) = self.find_name(CALLED) {
            self.op(Opcode::True);
            self.store_at(at, false);
        }
        is_main
    }

    /// After a call of `main`.
    pub(super) fn note_main_result(&mut self) {
        if let Some(at) = self.find_name(RESULT) {
            self.op(Opcode::Dup);
            self.store_at(at, false);
        }
    }

    /// Locals for the calls that the top level makes as statements, if functions call `main`: they may do it later.
    pub(super) fn find_started_calls(&mut self, program: &Program<'_>) {
        if !self.facts.main_calls.in_functions {
            return;
        }
        for statement in &program.body {
            if let Statement::ExpressionStatement(e) = statement
                && matches!(e.expression, Expression::CallExpression(_))
            {
                let local = self.f().local();
                self.started_calls.push((e.expression.span().start, local));
            }
        }
    }

    /// Compiles such a call, if it is one.
    pub(super) fn started_call(&mut self, e: &Expression<'_>) -> bool {
        let found = self.started_calls.iter().find(|(at, _)| *at == e.span().start);
        let Some(&(_, local)) = found.filter(|_| self.functions.len() == 1) else { return false };
        self.expr(e);
        self.store_local(local);
        true
    }

    /// Waits at least once: from then on nobody expects the top level's promise.
    fn await_started_calls(&mut self) {
        for (_, local) in std::mem::take(&mut self.started_calls) {
            self.load_local(local);
            self.await_value();
            self.op(Opcode::Pop);
        }
        self.op(Opcode::Undef);
        self.await_value();
        self.op(Opcode::Pop);
    }

    /// Pushes the program's result.
    fn result(&mut self) {
        let end = self.label();
        if let (Some(called), Some(result)) = (self.find_name(CALLED), self.find_name(RESULT)) {
            let not = self.label();
            self.load_at(called, false);
            self.jump(Opcode::JFalse, not);
            self.load_at(result, false);
            self.jump(Opcode::Jump, end);
            self.bind(not);
        }
        let root = self.scoping.root_scope_id();
        match self.scoping.get_binding(root, "main".into()) {
            Some(main) => self.call_main(main),
            None => self.op(Opcode::Undef),
        }
        self.bind(end);
    }

    fn call_main(&mut self, main: SymbolId) {
        let (skip, end) = (self.label(), self.label());
        let name = self.str_const("main");
        match self.find(main) {
            super::scope::VariableLocation::Global => self.op_c(Opcode::GetGlobal, name),
            at => self.load_at(at, false),
        }
        self.op(Opcode::Dup);
        self.op(Opcode::Typeof);
        let function = self.str_const("function");
        self.op_c(Opcode::Const, function);
        self.jump(Opcode::JNotSeq, skip);
        self.op(Opcode::Undef);
        self.op_b(Opcode::Call, 0);
        self.jump(Opcode::Jump, end);
        self.bind(skip);
        self.op(Opcode::Pop);
        self.op(Opcode::Undef);
        self.bind(end);
    }
}
