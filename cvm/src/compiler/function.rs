//! Functions: parameters, prologue, body; arrows; the prelude's functions.
//!
//! Owns: the order of a function's prologue. Must not: handle classes, except for constructors.

use super::Compiler;
use super::emit::{FunctionBuilder, ThisLocation};
use super::expr::prefixed;
use super::scope::{Alias, AliasKind};
use super::{PreludeNames, facts, parse};
use crate::ops::Opcode;
use crate::program::flag;
use oxc_ast::ast::{
    ArrowFunctionBody, ArrowFunctionExpression, BindingPattern, Expression, FormalParameters, Function,
    ObjectPropertyKind, Program, PropertyKind, Statement,
};
use oxc_span::GetSpan;
use oxc_syntax::scope::ScopeId;
use oxc_syntax::symbol::{SymbolFlags, SymbolId};

/// The facts about a function that its prologue depends on.
pub(super) struct FunctionShape<'f, 'a> {
    pub scope: Option<ScopeId>,
    pub params: Option<&'f FormalParameters<'a>>,
    pub own_name: Option<&'f oxc_ast::ast::BindingIdentifier<'a>>,
}

impl Compiler<'_, '_> {
    /// Pushes a function object. `name` is the name of an anonymous function; none means: named at run time.
    pub(super) fn function(&mut self, f: &Function<'_>, name: Option<&str>, extra: u16) {
        if f.body.is_none() {
            self.op(Opcode::Undef);
            return;
        }
        let number = self.function_template(f, name, extra, false, f.span.start);
        self.push_scope();
        self.op_c(Opcode::Closure, number);
    }

    /// Compiles a function; `start` is the offset of its source text.
    pub(super) fn function_template(
        &mut self,
        f: &Function<'_>,
        name: Option<&str>,
        extra: u16,
        has_fields: bool,
        start: u32,
    ) -> u32 {
        let template = self.reserve_template();
        self.function_template_at(template, f, name, extra, has_fields, start)
    }

    fn function_template_at(
        &mut self,
        template: u32,
        f: &Function<'_>,
        name: Option<&str>,
        extra: u16,
        has_fields: bool,
        start: u32,
    ) -> u32 {
        let name = f.id.as_ref().map(|id| id.name.as_str()).or(name);
        let name = name.map_or(u32::MAX, |n| self.str_const(n));
        let mut flags = extra;
        if f.generator {
            flags |= flag::GENERATOR;
        }
        if f.r#async {
            flags |= flag::ASYNC;
        }
        let mut builder = FunctionBuilder::new(template, flags, name, (start, f.span.end));
        builder.has_fields = has_fields;
        if flags & flag::DERIVED != 0 {
            builder.this_at = ThisLocation::Scope;
        }
        let own_name = if f.is_expression() { f.id.as_ref() } else { None };
        let shape = FunctionShape { scope: f.scope_id.get(), params: Some(&f.params), own_name };
        let active_scopes = self.active_scopes.len();
        self.begin_function(builder);
        self.prologue(&shape);
        if let Some(body) = &f.body {
            self.statements(&body.statements);
        }
        self.epilogue(active_scopes);
        self.end_function()
    }

    /// Ends a function's body with an implicit return.
    pub(super) fn epilogue(&mut self, active_scopes: usize) {
        self.op(Opcode::Undef);
        self.emit_return();
        while self.active_scopes.len() > active_scopes {
            self.pop_scope_cell();
        }
        self.end_bindings(0);
    }

    pub(super) fn arrow(&mut self, a: &ArrowFunctionExpression<'_>, name: Option<&str>) {
        let template = self.reserve_template();
        let name = name.map_or(u32::MAX, |n| self.str_const(n));
        let mut flags = flag::ARROW;
        if a.r#async {
            flags |= flag::ASYNC;
        }
        let mut builder = FunctionBuilder::new(template, flags, name, (a.span.start, a.span.end));
        builder.this_at = self.f().this_at;
        let shape = FunctionShape { scope: a.scope_id.get(), params: Some(&a.params), own_name: None };
        let active_scopes = self.active_scopes.len();
        self.begin_function(builder);
        self.prologue(&shape);
        match &a.body {
            ArrowFunctionBody::FunctionBody(body) => self.statements(&body.statements),
            other => {
                if let Some(e) = other.as_expression() {
                    self.f().position(e.span().start);
                    self.expr(e);
                    self.op(Opcode::Ret);
                }
            }
        }
        self.epilogue(active_scopes);
        let number = self.end_function();
        self.push_scope();
        self.op_c(Opcode::Closure, number);
    }

    /// Parameters, scope cells, special bindings, hoisted variables.
    pub(super) fn prologue(&mut self, shape: &FunctionShape<'_, '_>) {
        let uses_arguments =
            shape.scope.is_some_and(|s| self.facts.uses_arguments.contains(&s)) && !self.f().is(flag::ARROW);
        let rest = shape.params.and_then(|p| p.rest.as_ref());
        let items = shape.params.map_or(&[][..], |p| &p.items[..]);
        self.parameter_slots(items);
        if uses_arguments || rest.is_some() || self.f().is(flag::ALL_ARGS) {
            let local = self.f().local();
            self.f().all_args = Some(local);
            self.f().flags |= flag::ALL_ARGS;
        }
        let is_async_function = self.f().is(flag::ASYNC) && !self.f().is(flag::GENERATOR);
        if is_async_function {
            self.op(Opcode::AsyncStart);
        }
        if self.f().is(flag::DERIVED) {
            self.push_scope_cell();
            let slots = (self.scope_cell_slot(), self.scope_cell_slot());
            if let Some(active_scope) = self.active_scopes.last_mut() {
                active_scope.derived = true;
            }
            self.op(Opcode::LoadCallee);
            let local = self.active_scopes.last().map_or(0, |r| r.local);
            self.f().emit(Opcode::StoreScope, u32::from(slots.1), local);
        }
        self.enter_scope(shape.scope);
        if uses_arguments {
            self.arguments_binding();
        }
        self.own_name(shape);
        self.vars(shape);
        let twins = self.begin_twins(items, rest);
        if self.f().has_fields && !self.f().is(flag::DERIVED) {
            self.op(Opcode::LoadThis);
            self.op(Opcode::LoadCallee);
            self.op(Opcode::RunFields);
            self.op(Opcode::Pop);
        }
        self.bind_parameters(shape.scope, items);
        if let (Some(rest), Some(all)) = (rest, self.f().all_args) {
            self.f().emit(Opcode::RestArgs, items.len() as u32, all);
            self.bind_pattern(&rest.rest.argument);
        }
        self.end_twins(&twins);
        if self.f().is(flag::GENERATOR) {
            self.op(Opcode::InitialYield);
        }
        self.parameter_properties(items);
    }

    /// Creates separate bindings for parameters that the body declares again, while the parameters' code is compiled.
    fn begin_twins(
        &mut self,
        items: &[oxc_ast::ast::FormalParameter<'_>],
        rest: Option<&oxc_allocator::Box<'_, oxc_ast::ast::FormalParameterRest<'_>>>,
    ) -> Vec<SymbolId> {
        let mut twins = Vec::new();
        let patterns = items.iter().map(|p| &p.pattern).chain(rest.map(|r| &r.rest.argument));
        for pattern in patterns {
            facts::bound_names(pattern, &mut |id| {
                twins.extend(id.symbol_id.get().filter(|s| self.facts.twins.contains(s)));
            });
        }
        if !twins.is_empty() {
            self.push_scope_cell();
        }
        for &symbol in &twins {
            let name = format!("parameter {}", self.scoping.symbol_name(symbol));
            self.name_slot(&name);
            self.aliases.push(Alias { symbol, name, kind: AliasKind::Parameter });
        }
        twins
    }

    /// The body's variables begin with the parameters' values.
    fn end_twins(&mut self, twins: &[SymbolId]) {
        for &symbol in twins.iter().rev() {
            let Some(alias) = self.aliases.pop() else { return };
            if let Some(at) = self.find_name(&alias.name) {
                self.load_at(at, false);
                self.init_symbol(symbol);
            }
        }
    }

    fn parameter_slots(&mut self, items: &[oxc_ast::ast::FormalParameter<'_>]) {
        let mut length = 0;
        let mut counting = true;
        for p in items {
            self.f().local();
            counting &= p.initializer.is_none() && !matches!(p.pattern, BindingPattern::AssignmentPattern(_));
            length += u16::from(counting);
        }
        self.f().params = items.len() as u16;
        self.f().length = length;
    }

    fn arguments_binding(&mut self) {
        let all = self.f().all_args.unwrap_or(0);
        self.op_b(Opcode::Arguments, all);
        let local = self.f().local();
        self.f().arguments = Some(local);
        self.op_c(Opcode::TeeLoc, u32::from(local));
        // Arrow functions inside access it through a scope cell.
        self.push_scope_cell();
        let slot = self.scope_cell_slot();
        if let Some(active_scope) = self.active_scopes.last_mut() {
            active_scope.names.insert("arguments".to_owned(), slot);
        }
        let active_scope = self.active_scopes.last().map_or(0, |r| r.local);
        self.f().emit(Opcode::StoreScope, u32::from(slot), active_scope);
    }

    fn own_name(&mut self, shape: &FunctionShape<'_, '_>) {
        let Some(symbol) = shape.own_name.and_then(|id| id.symbol_id.get()) else { return };
        if Some(self.scoping.symbol_scope_id(symbol)) != shape.scope {
            return;
        }
        self.op(Opcode::LoadCallee);
        self.init_symbol(symbol);
    }

    /// Allocates slots for `var`s and inner functions; captured ones begin as undefined.
    fn vars(&mut self, shape: &FunctionShape<'_, '_>) {
        let Some(scope) = shape.scope else { return };
        let own = shape.own_name.and_then(|id| id.symbol_id.get());
        for symbol in self.symbols_in(scope) {
            let flags = self.scoping.symbol_flags(symbol);
            if Some(symbol) == own
                || !flags.intersects(SymbolFlags::FunctionScopedVariable | SymbolFlags::Function)
            {
                continue;
            }
            if self.facts.captured.contains(&symbol) && !self.is_checked_param(symbol) {
                self.op(Opcode::Undef);
                self.init_symbol(symbol);
            }
        }
    }

    /// Whether this is a parameter that the expression of another parameter may read before its initialisation.
    fn is_checked_param(&self, symbol: SymbolId) -> bool {
        self.facts.late_params.contains_key(&symbol) && self.facts.checked.contains(&symbol)
    }

    fn bind_parameters(&mut self, scope: Option<ScopeId>, items: &[oxc_ast::ast::FormalParameter<'_>]) {
        for (i, p) in items.iter().enumerate() {
            if let BindingPattern::BindingIdentifier(id) = &p.pattern
                && let Some(symbol) = id.symbol_id.get()
                && !self.facts.captured.contains(&symbol)
                && !self.is_checked_param(symbol)
                && !self.facts.twins.contains(&symbol)
            {
                self.bind_local(symbol, i as u16 + 2);
            }
        }
        // Variables of the whole function must not share a slot with a block's.
        for symbol in scope.map(|s| self.symbols_in(s)).unwrap_or_default() {
            let flags = self.scoping.symbol_flags(symbol);
            if flags.intersects(SymbolFlags::FunctionScopedVariable | SymbolFlags::Function)
                && !self.facts.captured.contains(&symbol)
                && !self.is_global_symbol(symbol)
            {
                let slot = self.declare_local(symbol);
                if self.is_checked_param(symbol) {
                    self.op(Opcode::Uninit);
                    self.store_local(slot);
                }
            }
        }
        for (i, p) in items.iter().enumerate() {
            let slot = i as u16 + 2;
            match (&p.pattern, &p.initializer) {
                (BindingPattern::BindingIdentifier(id), None) => {
                    if let Some(symbol) = id.symbol_id.get()
                        && self.f().locals.get(&symbol) != Some(&slot)
                    {
                        self.load_local(slot);
                        self.init_symbol(symbol);
                    }
                }
                (BindingPattern::BindingIdentifier(id), Some(init)) => {
                    self.load_local(slot);
                    self.default_value(init, Some(id.name.as_str()));
                    self.init_binding(id);
                }
                (pattern, init) => {
                    self.load_local(slot);
                    if let Some(init) = init {
                        self.default_value(init, None);
                    }
                    self.bind_pattern(pattern);
                }
            }
        }
    }

    /// The prelude: functions become templates that are called by number, object literals list methods.
    pub(super) fn prelude(&mut self, program: &Program<'_>) -> PreludeNames {
        let mut names = PreludeNames::default();
        self.reserve_template();
        for s in &program.body {
            if let Statement::FunctionDeclaration(f) = s
                && let Some(id) = &f.id
            {
                let n = self.reserve_template();
                self.own_names.insert(id.name.as_str().to_owned(), n);
            }
        }
        names.functions.clone_from(&self.own_names);
        self.begin_function(FunctionBuilder::new(0, 0, u32::MAX, (0, 0)));
        for s in &program.body {
            match s {
                Statement::FunctionDeclaration(f) => self.prelude_function(f),
                Statement::VariableDeclaration(d) => {
                    for v in &d.declarations {
                        if let (
                            BindingPattern::BindingIdentifier(id),
                            Some(Expression::ObjectExpression(o)),
                        ) = (&v.id, &v.init)
                        {
                            let list = self.prelude_methods(o);
                            names.methods.insert(id.name.as_str().to_owned(), list);
                        }
                    }
                }
                other => self.refuse(other.span().start, "the prelude has only functions and method lists"),
            }
        }
        self.op(Opcode::Undef);
        self.op(Opcode::Ret);
        self.end_function();
        names
    }

    fn prelude_function(&mut self, f: &Function<'_>) {
        let Some(id) = &f.id else { return };
        let number = self.own_names.get(id.name.as_str()).copied().unwrap_or(0);
        // Constructors are written with a capital and a trailing `_`; they see `new.target`.
        let name = id.name.as_str();
        let (shown, extra) = match name.strip_suffix('_') {
            Some(base) => (base, flag::BUILTIN),
            None => (name, flag::METHOD),
        };
        self.function_template_at(number, f, None, extra, false, f.span.start);
        let shown = self.str_const(shown);
        self.unit.templates[number as usize].name = shown;
    }

    fn prelude_methods(&mut self, o: &oxc_ast::ast::ObjectExpression<'_>) -> Vec<(String, u8, u32)> {
        let mut list = Vec::new();
        for p in &o.properties {
            let ObjectPropertyKind::ObjectProperty(p) = p else { continue };
            let Expression::FunctionExpression(f) = &p.value else {
                self.refuse(p.span.start, "a method list of the prelude has only methods");
                continue;
            };
            let kind = match p.kind {
                PropertyKind::Init => 0u8,
                PropertyKind::Get => 1,
                PropertyKind::Set => 2,
            };
            // A computed key `[$$NAME]` is a well-known symbol.
            let (key, shown) = match (p.computed, p.key.static_name()) {
                (false, Some(name)) => (name.to_string(), name.to_string()),
                _ => {
                    let key = self.source_text(p.key.span()).to_owned();
                    let shown = crate::builtins::ids::symbol_shown(&key);
                    (key, shown)
                }
            };
            let name = prefixed(u16::from(kind), &shown);
            let number = self.function_template(f, Some(&name), flag::METHOD, false, p.span.start);
            list.push((key, kind, number));
        }
        list
    }

    fn source_text(&self, span: oxc_span::Span) -> &str {
        let shift = parse::STRICT.len();
        self.source.get(span.start as usize - shift..span.end as usize - shift).unwrap_or("")
    }
}
