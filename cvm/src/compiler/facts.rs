//! The analysis of an AST that code generation needs beforehand.
//!
//! Owns: [`ScopeFacts`]: captured variables, uses before the initialisation, `await` and calls of `main` at the top level. Must
//! not: emit code.

use oxc_ast::ast::{
    ArrowFunctionExpression, AwaitExpression, BindingIdentifier, BindingPattern, CallExpression, Class,
    Expression, ForInStatement, ForOfStatement, ForStatementLeft, FormalParameter, FormalParameters,
    Function, Program, StaticBlock, SwitchStatement, VariableDeclaration, VariableDeclarationKind,
    VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Scoping;
use oxc_span::GetSpan;
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use oxc_syntax::symbol::{SymbolFlags, SymbolId};
use std::collections::{HashMap, HashSet};

/// Results of the analysis before code generation.
#[derive(Default)]
pub(super) struct ScopeFacts {
    /// Scopes of classes; their direct contents may be compiled to separate functions
    pub class_scopes: HashSet<ScopeId>,
    /// Symbols with a binding in a scope cell, because a closure uses it
    pub captured: HashSet<SymbolId>,
    /// Captured symbols by scope, in order of declaration
    pub captured_in: HashMap<ScopeId, Vec<SymbolId>>,
    /// Source offset from which a lexical binding is initialised
    ready_after: HashMap<SymbolId, u32>,
    /// Lexical symbols with at least one use that may precede the initialisation
    pub checked: HashSet<SymbolId>,
    /// Names of class declarations that are assigned to somewhere: inside, the class has a separate constant binding
    pub assigned_classes: HashSet<SymbolId>,
    declared_classes: HashSet<SymbolId>,
    /// For parameter lists with expressions: source offset from which each parameter is initialised
    pub late_params: HashMap<SymbolId, u32>,
    /// Late parameters that the body declares again: the parameters' code uses another variable than the body
    pub twins: HashSet<SymbolId>,
    /// Functions that use `arguments`
    pub uses_arguments: HashSet<ScopeId>,
    /// The top level contains `await`
    pub top_level_await: bool,
    /// Calls of the top level's `main` outside of `main` itself
    pub main_calls: MainCalls,
    arrows: HashSet<ScopeId>,
    functions: HashSet<ScopeId>,
    switch_scopes: HashSet<ScopeId>,
}

/// The program's own calls of `main`, by the source offset of the callee.
#[derive(Default)]
pub(super) struct MainCalls {
    pub at: HashSet<u32>,
    /// Some are in functions
    pub in_functions: bool,
}

impl<'a> Visit<'a> for ScopeFacts {
    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if let Some(id) = it.scope_id.get() {
            self.functions.insert(id);
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        if let Some(id) = it.scope_id.get() {
            self.functions.insert(id);
            self.arrows.insert(id);
        }
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if let Some(id) = it.scope_id.get() {
            self.class_scopes.insert(id);
        }
        if let Some(symbol) = it.id.as_ref().and_then(|id| id.symbol_id.get()) {
            self.ready_after.insert(symbol, it.span.end);
            if it.is_declaration() {
                self.declared_classes.insert(symbol);
            }
        }
        walk::walk_class(self, it);
    }

    fn visit_formal_parameters(&mut self, it: &FormalParameters<'a>) {
        let plain = |p: &FormalParameter<'a>| {
            p.initializer.is_none() && matches!(p.pattern, BindingPattern::BindingIdentifier(_))
        };
        let plain_rest =
            it.rest.as_ref().is_none_or(|r| matches!(r.rest.argument, BindingPattern::BindingIdentifier(_)));
        if !plain_rest || !it.items.iter().all(plain) {
            let rest = it.rest.iter().map(|r| (&r.rest.argument, r.span.end));
            for (pattern, end) in it.items.iter().map(|p| (&p.pattern, p.span.end)).chain(rest) {
                bound_names(pattern, &mut |id| {
                    if let Some(symbol) = id.symbol_id.get() {
                        self.late_params.insert(symbol, end);
                    }
                });
            }
        }
        walk::walk_formal_parameters(self, it);
    }

    fn visit_static_block(&mut self, it: &StaticBlock<'a>) {
        if let Some(id) = it.scope_id.get() {
            self.functions.insert(id);
        }
        walk::walk_static_block(self, it);
    }

    fn visit_switch_statement(&mut self, it: &SwitchStatement<'a>) {
        if let Some(id) = it.scope_id.get() {
            self.switch_scopes.insert(id);
        }
        walk::walk_switch_statement(self, it);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        if it.kind != VariableDeclarationKind::Var {
            for d in &it.declarations {
                let end = d.span.end;
                bound_names(&d.id, &mut |id| {
                    if let Some(symbol) = id.symbol_id.get() {
                        self.ready_after.insert(symbol, end);
                    }
                });
            }
        }
        walk::walk_variable_declaration(self, it);
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        walk::walk_for_of_statement(self, it);
        self.loop_head(&it.left, it.right.span().end);
    }

    fn visit_for_in_statement(&mut self, it: &ForInStatement<'a>) {
        walk::walk_for_in_statement(self, it);
        self.loop_head(&it.left, it.right.span().end);
    }
}

impl ScopeFacts {
    /// Whether the symbol is a `let`, `const` or class.
    pub(super) fn is_lexical(&self, symbol: SymbolId) -> bool {
        self.ready_after.contains_key(&symbol)
    }

    fn loop_head(&mut self, left: &ForStatementLeft<'_>, end: u32) {
        if let ForStatementLeft::VariableDeclaration(decl) = left
            && decl.kind != VariableDeclarationKind::Var
        {
            for d in &decl.declarations {
                bound_names(&d.id, &mut |id| {
                    if let Some(symbol) = id.symbol_id.get() {
                        self.ready_after.insert(symbol, end);
                    }
                });
            }
        }
    }

    /// The innermost scope around `scope` that is the scope of a function, a class or the script.
    fn owner(&self, scoping: &Scoping, scope: ScopeId) -> ScopeId {
        for s in scoping.scope_ancestors(scope) {
            if self.functions.contains(&s) || self.class_scopes.contains(&s) {
                return s;
            }
        }
        scoping.root_scope_id()
    }

    pub(super) fn find_captures(&mut self, scoping: &Scoping, program: &Program<'_>) {
        for symbol in scoping.symbol_ids() {
            let scope = scoping.symbol_scope_id(symbol);
            let home = self.owner(scoping, scope);
            let ready = self.ready_after.get(&symbol).copied();
            let in_switch = self.switch_scopes.contains(&scope);
            let mut captured = false;
            for reference in scoping.get_resolved_references(symbol) {
                // Types do not exist at run time.
                if !reference.is_read() && !reference.is_write() {
                    continue;
                }
                let user = self.owner(scoping, reference.scope_id());
                captured |= user != home;
                if reference.is_write() && self.declared_classes.contains(&symbol) {
                    self.assigned_classes.insert(symbol);
                }
                if ready.is_some() && (user != home || in_switch) {
                    self.checked.insert(symbol);
                }
            }
            if captured {
                self.captured.insert(symbol);
                self.captured_in.entry(scope).or_default().push(symbol);
            }
        }
        for (&symbol, &end) in &self.late_params {
            if scoping.symbol_redeclarations(symbol).iter().any(|again| again.span.start >= end) {
                self.twins.insert(symbol);
            }
        }
        // Uses inside one function: the position decides.
        let mut early = EarlyUses { facts: self, scoping, found: Vec::new() };
        early.visit_program(program);
        let found = early.found;
        self.checked.extend(found);
        if let Some(ids) = scoping.root_unresolved_references().get("arguments") {
            for &id in ids {
                for s in scoping.scope_ancestors(scoping.get_reference(id).scope_id()) {
                    if self.functions.contains(&s) {
                        self.uses_arguments.insert(s);
                        if !self.arrows.contains(&s) {
                            break;
                        }
                    }
                }
            }
        }
    }
}

impl ScopeFacts {
    pub(super) fn find_awaits(&mut self, program: &Program<'_>) {
        let mut finder = TopLevelAwait { is_found: false };
        finder.visit_program(program);
        self.top_level_await = finder.is_found;
    }

    /// The functions at the top level of a module exist before any module runs.
    pub(super) fn share_functions(&mut self, scoping: &Scoping) {
        let root = scoping.get_bindings(scoping.root_scope_id()).values();
        let functions =
            root.filter(|symbol| scoping.symbol_flags(**symbol).intersects(SymbolFlags::Function));
        self.captured.extend(functions);
    }

    pub(super) fn find_main_calls(&mut self, scoping: &Scoping, program: &Program<'_>) {
        let root = scoping.root_scope_id();
        let Some(main) = scoping.get_binding(root, "main".into()) else { return };
        let mut calls = MainCallFinder { main, scoping, facts: self, found: MainCalls::default() };
        calls.visit_program(program);
        self.main_calls = calls.found;
    }
}

/// Finds `await` outside of functions.
struct TopLevelAwait {
    is_found: bool,
}

impl<'a> Visit<'a> for TopLevelAwait {
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_await_expression(&mut self, _: &AwaitExpression<'a>) {
        self.is_found = true;
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.is_found |= it.r#await;
        walk::walk_for_of_statement(self, it);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        self.is_found |= it.kind == VariableDeclarationKind::AwaitUsing;
        walk::walk_variable_declaration(self, it);
    }
}

/// Finds calls of `main`; skips its declarations.
struct MainCallFinder<'f> {
    main: SymbolId,
    scoping: &'f Scoping,
    facts: &'f ScopeFacts,
    found: MainCalls,
}

impl<'a> Visit<'a> for MainCallFinder<'_> {
    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if it.id.as_ref().and_then(|id| id.symbol_id.get()) != Some(self.main) {
            walk::walk_function(self, it, flags);
        }
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if !matches!(&it.id, BindingPattern::BindingIdentifier(id) if id.symbol_id.get() == Some(self.main)) {
            walk::walk_variable_declarator(self, it);
        }
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if let Expression::Identifier(id) = &it.callee
            && let Some(reference) = id.reference_id.get().map(|r| self.scoping.get_reference(r))
            && reference.symbol_id() == Some(self.main)
        {
            self.found.at.insert(id.span.start);
            let user = self.facts.owner(self.scoping, reference.scope_id());
            self.found.in_functions |= user != self.scoping.root_scope_id();
        }
        walk::walk_call_expression(self, it);
    }
}

/// Finds uses of lexical bindings before the end of their declaration.
struct EarlyUses<'f> {
    facts: &'f ScopeFacts,
    scoping: &'f Scoping,
    found: Vec<SymbolId>,
}

impl<'a> Visit<'a> for EarlyUses<'_> {
    fn visit_identifier_reference(&mut self, it: &oxc_ast::ast::IdentifierReference<'a>) {
        let symbol = it.reference_id.get().and_then(|r| self.scoping.get_reference(r).symbol_id());
        if let Some(symbol) = symbol
            && let facts = self.facts
            && let Some(&ready) = facts.ready_after.get(&symbol).or_else(|| facts.late_params.get(&symbol))
            && it.span.start < ready
        {
            self.found.push(symbol);
        }
    }
}

/// Calls `f` with every identifier a pattern binds.
pub(super) fn bound_names<'a>(pattern: &BindingPattern<'a>, f: &mut dyn FnMut(&BindingIdentifier<'a>)) {
    match pattern {
        BindingPattern::BindingIdentifier(id) => f(id),
        BindingPattern::ObjectPattern(p) => {
            for prop in &p.properties {
                bound_names(&prop.value, f);
            }
            if let Some(rest) = &p.rest {
                bound_names(&rest.argument, f);
            }
        }
        BindingPattern::ArrayPattern(p) => {
            for element in p.elements.iter().flatten() {
                bound_names(element, f);
            }
            if let Some(rest) = &p.rest {
                bound_names(&rest.argument, f);
            }
        }
        BindingPattern::AssignmentPattern(p) => bound_names(&p.left, f),
    }
}
