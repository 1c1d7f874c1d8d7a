//! Statements, except loops and switch.
//!
//! Owns: blocks with their hoisting, declarations, try, labels. Must not: depend on how expressions are compiled.

use super::Compiler;
use super::control::{ControlEntry, Exit};
use super::facts::bound_names;
use super::using::Resources;
use crate::ops::Opcode;
use crate::program::flag;
use oxc_ast::ast::{
    BindingPattern, Class, Declaration, ExportDefaultDeclarationKind, Expression, Function, Statement,
    TSEnumDeclaration, TryStatement, VariableDeclaration, VariableDeclarationKind,
};
use oxc_span::GetSpan;
use oxc_syntax::scope::ScopeId;
use oxc_syntax::symbol::SymbolId;

impl Compiler<'_, '_> {
    /// The symbols of a scope in order of declaration.
    pub(super) fn symbols_in(&self, scope: ScopeId) -> Vec<SymbolId> {
        let mut list: Vec<SymbolId> = self.scoping.get_bindings(scope).values().copied().collect();
        list.sort_unstable();
        list.dedup();
        list
    }

    /// A list of statements in the active scope: hoists its declarations first.
    pub(super) fn statements(&mut self, list: &[Statement<'_>]) {
        self.hoist(list);
        self.hoisted_statements(list);
    }

    /// The statements, after the hoisting.
    pub(super) fn hoisted_statements(&mut self, list: &[Statement<'_>]) {
        self.with_resources(Resources::declared_in(list), |c| {
            for s in list {
                c.statement(s);
            }
        });
    }

    pub(super) fn hoist(&mut self, list: &[Statement<'_>]) {
        self.hoist_lexical(list);
        self.hoist_functions(list);
    }

    /// Allocates slots for lexical declarations. Exported ones have slots of the cell that modules share.
    pub(super) fn hoist_lexical(&mut self, list: &[Statement<'_>]) {
        for s in list {
            match s {
                Statement::VariableDeclaration(d) => self.hoist_variables(d),
                Statement::ClassDeclaration(c) => self.hoist_class(c),
                Statement::TSEnumDeclaration(e) => self.hoist_enum(e),
                Statement::ExportDeclaration(d) => match &d.declaration {
                    Declaration::VariableDeclaration(d) => self.hoist_variables(d),
                    Declaration::ClassDeclaration(c) => self.hoist_class(c),
                    Declaration::TSEnumDeclaration(e) => self.hoist_enum(e),
                    _ => {}
                },
                Statement::ExportDefaultDeclaration(d) => {
                    if let ExportDefaultDeclarationKind::ClassDeclaration(c) = &d.declaration {
                        self.hoist_class(c);
                    }
                }
                _ => {}
            }
        }
    }

    fn hoist_variables(&mut self, d: &VariableDeclaration<'_>) {
        if d.kind != VariableDeclarationKind::Var && !d.declare {
            for v in &d.declarations {
                bound_names(&v.id, &mut |id| self.declare_lexical(id.symbol_id.get()));
            }
        }
    }

    fn hoist_class(&mut self, c: &Class<'_>) {
        if !c.declare {
            self.declare_lexical(c.id.as_ref().and_then(|id| id.symbol_id.get()));
        }
    }

    fn hoist_enum(&mut self, e: &TSEnumDeclaration<'_>) {
        if !e.declare {
            self.declare_lexical(e.id.symbol_id.get());
        }
    }

    /// Creates the declared functions.
    pub(super) fn hoist_functions(&mut self, list: &[Statement<'_>]) {
        for s in list {
            let mut inner = s;
            while let Statement::LabeledStatement(l) = inner {
                inner = &l.body;
            }
            match inner {
                Statement::FunctionDeclaration(f) => self.hoist_function(f),
                Statement::ExportDeclaration(d) => {
                    if let Declaration::FunctionDeclaration(f) = &d.declaration {
                        self.hoist_function(f);
                    }
                }
                Statement::ExportDefaultDeclaration(d) => match &d.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(f) if f.id.is_some() => {
                        self.hoist_function(f);
                    }
                    ExportDefaultDeclarationKind::FunctionDeclaration(f) if f.body.is_some() => {
                        self.default_function(f);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }

    fn hoist_function(&mut self, f: &Function<'_>) {
        let Some(id) = f.id.as_ref().filter(|_| f.body.is_some()) else { return };
        let Some(symbol) = id.symbol_id.get() else { return };
        if self.is_global_symbol(symbol) {
            self.function(f, None, 0);
            let name = self.str_const(id.name.as_str());
            self.op_c(Opcode::DeclFunc, name);
        } else {
            if !self.facts.captured.contains(&symbol) {
                self.declare_local(symbol);
            }
            self.function(f, None, 0);
            self.init_symbol(symbol);
        }
    }

    pub(super) fn declare_lexical(&mut self, symbol: Option<SymbolId>) {
        let Some(symbol) = symbol else { return };
        if self.facts.captured.contains(&symbol) {
            return;
        }
        let slot = self.declare_local(symbol);
        if self.facts.checked.contains(&symbol) {
            self.op(Opcode::Uninit);
            self.store_local(slot);
        }
    }

    /// Runs `body` with the scope active; releases the block's locals afterwards.
    pub(super) fn in_scope(&mut self, scope: Option<ScopeId>, body: impl FnOnce(&mut Self)) {
        let mark = self.f().mark();
        let bindings = self.f().bindings.len();
        let active_scope = self.enter_scope(scope);
        body(self);
        if active_scope {
            self.pop_scope_cell();
        }
        self.end_bindings(bindings);
        self.f().release(mark);
    }

    pub(super) fn statement(&mut self, s: &Statement<'_>) {
        self.f().position(s.span().start);
        match s {
            Statement::ExpressionStatement(e) => {
                if !self.started_call(&e.expression) {
                    self.expr_void(&e.expression);
                }
            }
            Statement::VariableDeclaration(d) => self.variable_declaration(d),
            Statement::ReturnStatement(r) => {
                match &r.argument {
                    Some(e) => self.expr(e),
                    None => self.op(Opcode::Undef),
                }
                if self.f().is(flag::GENERATOR) && self.in_async() {
                    self.await_value();
                }
                self.leave(Exit::Return);
            }
            Statement::IfStatement(i) => {
                let (otherwise, end) = (self.label(), self.label());
                self.condition(&i.test, otherwise);
                self.sub_statement(&i.consequent);
                if let Some(alternate) = &i.alternate {
                    self.jump(Opcode::Jump, end);
                    self.bind(otherwise);
                    self.sub_statement(alternate);
                    self.bind(end);
                } else {
                    self.bind(otherwise);
                }
            }
            Statement::BlockStatement(b) => self.in_scope(b.scope_id.get(), |c| c.statements(&b.body)),
            Statement::ThrowStatement(t) => {
                self.expr(&t.argument);
                self.f().position(t.span.start);
                self.op(Opcode::Throw);
            }
            Statement::TryStatement(t) => self.try_statement(t),
            Statement::BreakStatement(b) => {
                let label = b.label.as_ref().map(|l| l.name.as_str());
                self.break_or_continue(label, false);
            }
            Statement::ContinueStatement(b) => {
                let label = b.label.as_ref().map(|l| l.name.as_str());
                self.break_or_continue(label, true);
            }
            Statement::LabeledStatement(_) => self.labelled(s, Vec::new()),
            Statement::ForStatement(_)
            | Statement::ForInStatement(_)
            | Statement::ForOfStatement(_)
            | Statement::WhileStatement(_)
            | Statement::DoWhileStatement(_) => self.loop_statement(s, Vec::new()),
            Statement::SwitchStatement(w) => self.switch(w),
            Statement::ClassDeclaration(c) => self.class_declaration(c),
            Statement::FunctionDeclaration(_)
            | Statement::EmptyStatement(_)
            | Statement::DebuggerStatement(_) => {}
            // Resolved before code generation.
            Statement::ImportDeclaration(_)
            | Statement::ExportNamedDeclaration(_)
            | Statement::ExportFromDeclaration(_)
            | Statement::ExportAllDeclaration(_) => {}
            Statement::ExportDeclaration(d) => self.exported_declaration(&d.declaration),
            Statement::ExportDefaultDeclaration(d) => self.export_default(d),
            Statement::TSTypeAliasDeclaration(_) | Statement::TSInterfaceDeclaration(_) => {}
            Statement::TSEnumDeclaration(e) => self.ts_enum(e),
            Statement::WithStatement(w) => {
                self.refuse_unsupported(w.span.start, "`with` is not supported: programs are strict");
            }
            other => self.refuse_statement(other),
        }
    }

    pub(super) fn class_declaration(&mut self, c: &Class<'_>) {
        if c.declare {
            return;
        }
        self.class(c, None);
        match &c.id {
            Some(id) => self.init_binding(id),
            None => self.op(Opcode::Pop),
        }
    }

    fn refuse_statement(&mut self, s: &Statement<'_>) {
        match s {
            Statement::TSNamespaceDeclaration(n) => self.refuse_namespace(n),
            Statement::TSGlobalDeclaration(_) | Statement::TSExternalModuleDeclaration(_) => {}
            _ => self.refuse(s.span().start, "this TypeScript declaration is not supported"),
        }
    }

    /// The body of an `if` or a label, which is not a block; a function declaration in it has its own block.
    pub(super) fn sub_statement(&mut self, s: &Statement<'_>) {
        if matches!(s, Statement::FunctionDeclaration(_)) {
            self.hoist(std::slice::from_ref(s));
        }
        self.statement(s);
    }

    fn break_or_continue(&mut self, label: Option<&str>, is_continue: bool) {
        let found = self.f().control.iter().rposition(|c| match c {
            // An entry with two equal labels is a target of `continue` only: see for-of.
            ControlEntry::Target { brk, cont, .. } if !is_continue && *cont == Some(*brk) => false,
            ControlEntry::Target { labels, cont, anonymous, .. } => match label {
                Some(l) => labels.iter().any(|x| x == l) && (!is_continue || cont.is_some()),
                None if is_continue => cont.is_some(),
                None => *anonymous,
            },
            _ => false,
        });
        if let Some(i) = found {
            self.leave(if is_continue { Exit::Continue(i) } else { Exit::Break(i) });
        }
    }

    fn labelled(&mut self, s: &Statement<'_>, mut labels: Vec<String>) {
        let Statement::LabeledStatement(l) = s else { return };
        labels.push(l.label.name.as_str().to_owned());
        match &l.body {
            inner @ Statement::LabeledStatement(_) => self.labelled(inner, labels),
            inner @ (Statement::ForStatement(_)
            | Statement::ForInStatement(_)
            | Statement::ForOfStatement(_)
            | Statement::WhileStatement(_)
            | Statement::DoWhileStatement(_)) => {
                self.f().position(inner.span().start);
                self.loop_statement(inner, labels);
            }
            inner => {
                let brk = self.label();
                let depth = self.f().depth();
                self.f().control.push(ControlEntry::Target {
                    labels,
                    brk,
                    cont: None,
                    anonymous: false,
                    depth,
                });
                self.statement(inner);
                self.f().control.pop();
                self.bind(brk);
            }
        }
    }

    pub(super) fn variable_declaration(&mut self, d: &VariableDeclaration<'_>) {
        if d.declare {
            return;
        }
        if matches!(d.kind, VariableDeclarationKind::Using | VariableDeclarationKind::AwaitUsing) {
            self.using_declaration(d);
            return;
        }
        for v in &d.declarations {
            match (&v.init, &v.id) {
                (Some(init), BindingPattern::BindingIdentifier(id)) => {
                    self.expr_named(init, id.name.as_str());
                    self.init_binding(id);
                }
                (Some(init), pattern) => {
                    self.expr(init);
                    self.bind_pattern(pattern);
                }
                (None, BindingPattern::BindingIdentifier(id)) if d.kind != VariableDeclarationKind::Var => {
                    self.op(Opcode::Undef);
                    self.init_binding(id);
                }
                _ => {}
            }
        }
    }

    fn try_statement(&mut self, t: &TryStatement<'_>) {
        match &t.finalizer {
            Some(finalizer) => self.with_finally(
                |c| c.try_catch(t),
                |c, _| c.in_scope(finalizer.scope_id.get(), |c| c.statements(&finalizer.body)),
            ),
            None => self.try_catch(t),
        }
    }

    fn try_catch(&mut self, t: &TryStatement<'_>) {
        let Some(clause) = &t.handler else {
            self.in_scope(t.block.scope_id.get(), |c| c.statements(&t.block.body));
            return;
        };
        let (handler, end) = (self.label(), self.label());
        let region = self.f().open_region(handler);
        self.f().control.push(ControlEntry::Catch { region });
        self.in_scope(t.block.scope_id.get(), |c| c.statements(&t.block.body));
        self.f().control.pop();
        self.f().close_region(region);
        self.jump(Opcode::Jump, end);
        self.f().begin_handler(handler);
        // The parser declares the parameter either in the clause's scope or in the body's.
        self.in_scope(clause.scope_id.get(), |c| {
            let mark = c.f().mark();
            let from = c.f().bindings.len();
            let active_scope = c.enter_scope(clause.body.scope_id.get());
            match &clause.param {
                Some(p) => c.bind_pattern(&p.pattern),
                None => c.op(Opcode::Pop),
            }
            c.statements(&clause.body.body);
            if active_scope {
                c.pop_scope_cell();
            }
            c.end_bindings(from);
            c.f().release(mark);
        });
        self.bind(end);
    }

    /// Jumps to `otherwise` unless the test holds.
    pub(super) fn condition(&mut self, test: &Expression<'_>, otherwise: super::emit::Label) {
        use oxc_syntax::operator::{BinaryOperator, LogicalOperator, UnaryOperator};
        match test {
            Expression::BinaryExpression(b) => {
                let op = match b.operator {
                    BinaryOperator::LessThan => Opcode::JNotLt,
                    BinaryOperator::LessEqualThan => Opcode::JNotLe,
                    BinaryOperator::GreaterThan => Opcode::JNotGt,
                    BinaryOperator::GreaterEqualThan => Opcode::JNotGe,
                    BinaryOperator::StrictEquality => Opcode::JNotSeq,
                    BinaryOperator::StrictInequality => Opcode::JSeq,
                    _ => {
                        self.expr(test);
                        self.jump(Opcode::JFalse, otherwise);
                        return;
                    }
                };
                self.expr(&b.left);
                self.expr(&b.right);
                self.f().position(b.span.start);
                self.jump(op, otherwise);
            }
            Expression::LogicalExpression(l) if l.operator == LogicalOperator::And => {
                self.condition(&l.left, otherwise);
                self.condition(&l.right, otherwise);
            }
            Expression::UnaryExpression(u) if u.operator == UnaryOperator::LogicalNot => {
                self.expr(&u.argument);
                self.jump(Opcode::JTrue, otherwise);
            }
            Expression::BooleanLiteral(b) if b.value => {}
            _ => {
                self.expr(test);
                self.jump(Opcode::JFalse, otherwise);
            }
        }
    }
}
