//! Classes: constructor, methods, accessors, fields, private names, static blocks.
//!
//! Owns: the order of a class definition's evaluation. Must not: know how frames work.

use super::Compiler;
use super::emit::{FunctionBuilder, ThisLocation};
use super::expr::prefixed;
use super::function::FunctionShape;
use super::scope::{Alias, AliasKind};
use crate::ops::Opcode;
use crate::program::flag;
use oxc_ast::ast::{
    BindingPattern, Class, ClassElement, Expression, FormalParameter, Function, MethodDefinition,
    MethodDefinitionKind, PropertyDefinition, PropertyKey,
};

/// The source of a field's key when its initialiser runs.
enum FieldKey {
    Name(String),
    Slot(String),
    Private(String),
}

fn method_kind(kind: MethodDefinitionKind) -> u16 {
    match kind {
        MethodDefinitionKind::Get => 1,
        MethodDefinitionKind::Set => 2,
        _ => 0,
    }
}

fn is_abstract(p: &PropertyDefinition<'_>) -> bool {
    p.declare || p.r#type == oxc_ast::ast::PropertyDefinitionType::TSAbstractPropertyDefinition
}

impl Compiler<'_, '_> {
    /// Pushes a class; `name` as for functions.
    pub(super) fn class(&mut self, c: &Class<'_>, name: Option<&str>) {
        self.class_with(c, name, false);
    }

    /// key -> key class, named after the key before its static parts run.
    pub(super) fn class_named_by_key(&mut self, c: &Class<'_>) {
        self.class_with(c, None, true);
    }

    fn class_with(&mut self, c: &Class<'_>, name: Option<&str>, by_key: bool) {
        if let Some(d) = c.decorators.first() {
            self.refuse(d.span.start, "decorators are not supported");
        }
        let key = by_key.then(|| {
            let local = self.f().local();
            self.op_c(Opcode::TeeLoc, u32::from(local));
            local
        });
        let mark = self.f().mark();
        self.push_scope_cell();
        self.class_names(c);
        if c.is_expression() {
            self.declare_lexical(c.id.as_ref().and_then(|id| id.symbol_id.get()));
        }
        let inner = self.inner_binding(c);
        match &c.heritage {
            Some(h) => self.expr(&h.expression),
            None => self.op(Opcode::Hole),
        }
        let has_fields = self.instance_parts(c);
        let shown = c.id.as_ref().map(|id| id.name.as_str()).or(name);
        let constructor = self.constructor(c, shown, has_fields);
        self.push_scope();
        self.f().position(c.span.start);
        self.f().emit(Opcode::NewClass, constructor, u16::from(c.heritage.is_some()));
        if let Some(local) = key {
            // class prototype -> named class
            self.op(Opcode::Swap);
            self.load_local(local);
            self.op(Opcode::Swap);
            self.op_b(Opcode::SetName, 0);
            self.op(Opcode::Swap);
            self.op(Opcode::Pop);
            self.op(Opcode::Swap);
        }
        self.methods(c);
        self.op(Opcode::Pop);
        if has_fields {
            self.instance_initialiser(c);
        }
        self.bind_class_name(c);
        self.static_parts(c);
        if inner {
            self.aliases.pop();
        }
        self.pop_scope_cell();
        self.f().release(mark);
    }

    /// For a class declaration that is assigned to somewhere: creates the inner binding that the class's own code uses. True if
    /// the caller must remove the binding at the end.
    fn inner_binding(&mut self, c: &Class<'_>) -> bool {
        let symbol = c.id.as_ref().and_then(|id| id.symbol_id.get());
        let Some(symbol) = symbol.filter(|s| self.facts.assigned_classes.contains(s)) else { return false };
        let name = format!("class {}", c.span.start);
        self.name_slot(&name);
        self.aliases.push(Alias { symbol, name, kind: AliasKind::Class });
        true
    }

    /// Allocates private names, and slots for computed keys, in the class's scope.
    fn class_names(&mut self, c: &Class<'_>) {
        if let Some(symbols) = c.scope_id.get().and_then(|s| self.facts.captured_in.get(&s)) {
            for symbol in symbols.clone() {
                self.declare_in_scope_cell(symbol);
            }
        }
        for element in &c.body.body {
            let key = match element {
                ClassElement::MethodDefinition(m) => &m.key,
                ClassElement::PropertyDefinition(p) if !is_abstract(p) => {
                    if self.computed_key(p).is_some() {
                        self.name_slot(&format!("[{}]", p.span.start));
                    }
                    &p.key
                }
                _ => continue,
            };
            if let PropertyKey::PrivateIdentifier(id) = key {
                let name = format!("#{}", id.name);
                if self.active_scopes.last().is_some_and(|r| r.names.contains_key(&name)) {
                    continue;
                }
                let constant = self.str_const(&name);
                self.op_c(Opcode::PrivName, constant);
                self.store_name(&name);
            }
        }
        for element in &c.body.body {
            if let ClassElement::MethodDefinition(m) = element
                && let PropertyKey::PrivateIdentifier(id) = &m.key
                && !m.r#static
            {
                self.name_slot(&method_slot(method_kind(m.kind), id.name.as_str()));
            }
        }
    }

    pub(super) fn name_slot(&mut self, name: &str) -> u16 {
        if let Some(&slot) = self.active_scopes.last().and_then(|r| r.names.get(name)) {
            return slot;
        }
        let slot = self.scope_cell_slot();
        if let Some(active_scope) = self.active_scopes.last_mut() {
            active_scope.names.insert(name.to_owned(), slot);
        }
        slot
    }

    /// Pops into a named slot of the class's scope.
    pub(super) fn store_name(&mut self, name: &str) {
        let slot = self.name_slot(name);
        let local = self.active_scopes.last().map_or(0, |r| r.local);
        self.f().emit(Opcode::StoreScope, u32::from(slot), local);
    }

    pub(super) fn load_private(&mut self, name: &str) {
        match self.find_name(&format!("#{name}")) {
            Some(at) => self.load_at(at, false),
            None => {
                self.refuse(0, &format!("the private name #{name} is not declared"));
                self.op(Opcode::Undef);
            }
        }
    }

    fn computed_key<'t, 'a>(&self, p: &'t PropertyDefinition<'a>) -> Option<&'t Expression<'a>> {
        let _ = self;
        if p.computed {
            p.key.as_expression().filter(|_| p.key.static_name().is_none() || p.computed)
        } else {
            None
        }
    }

    /// Whether the class defines anything on its instances.
    fn instance_parts(&self, c: &Class<'_>) -> bool {
        let _ = self;
        c.body.body.iter().any(|e| match e {
            ClassElement::PropertyDefinition(p) => !p.r#static && !is_abstract(p),
            ClassElement::MethodDefinition(m) => {
                !m.r#static && matches!(m.key, PropertyKey::PrivateIdentifier(_))
            }
            _ => false,
        })
    }

    fn constructor(&mut self, c: &Class<'_>, name: Option<&str>, has_fields: bool) -> u32 {
        let found = c.body.body.iter().find_map(|e| match e {
            ClassElement::MethodDefinition(m)
                if m.kind == MethodDefinitionKind::Constructor && m.value.body.is_some() =>
            {
                Some(&m.value)
            }
            _ => None,
        });
        let mut flags = flag::CLASS;
        if c.heritage.is_some() {
            flags |= flag::DERIVED;
        }
        let number = match found {
            Some(f) => self.function_template(f, name, flags, has_fields, c.span.start),
            None => self.default_constructor(c, flags, has_fields),
        };
        let shown = name.map_or(u32::MAX, |n| self.str_const(n));
        let first = self.first_template;
        let template = &mut self.unit.templates[(number - first) as usize];
        template.name = shown;
        let shift = super::parse::STRICT.len() as u32;
        template.span = (c.span.start.saturating_sub(shift), c.span.end.saturating_sub(shift));
        number
    }

    fn default_constructor(&mut self, c: &Class<'_>, flags: u16, has_fields: bool) -> u32 {
        let template = self.reserve_template();
        let mut flags = flags;
        let derived = flags & flag::DERIVED != 0;
        if derived {
            flags |= flag::ALL_ARGS;
        }
        let mut builder = FunctionBuilder::new(template, flags, u32::MAX, (c.span.start, c.span.end));
        builder.has_fields = has_fields;
        if derived {
            builder.this_at = ThisLocation::Scope;
        }
        let active_scopes = self.active_scopes.len();
        self.begin_function(builder);
        self.f().position(c.span.start);
        self.prologue(&FunctionShape { scope: None, params: None, own_name: None });
        if let (true, Some(active), Some(all)) = (derived, self.find_derived(1), self.f().all_args) {
            self.load_at(active, false);
            self.load_local(all);
            self.op(Opcode::SuperSpread);
            self.bind_this();
            self.op(Opcode::Pop);
        }
        self.epilogue(active_scopes);
        self.end_function()
    }

    /// class prototype -> class prototype
    fn methods(&mut self, c: &Class<'_>) {
        for element in &c.body.body {
            match element {
                ClassElement::MethodDefinition(m) if m.kind != MethodDefinitionKind::Constructor => {
                    self.method(m);
                }
                ClassElement::PropertyDefinition(p) if !is_abstract(p) => {
                    if let Some(d) = p.decorators.first() {
                        self.refuse(d.span.start, "decorators are not supported");
                    }
                    if let Some(key) = self.computed_key(p) {
                        self.expr(key);
                        self.op(Opcode::ToKey);
                        self.store_name(&format!("[{}]", p.span.start));
                    }
                }
                ClassElement::AccessorProperty(a) => {
                    self.refuse(a.span.start, "`accessor` fields are not supported");
                }
                _ => {}
            }
        }
    }

    fn method(&mut self, m: &MethodDefinition<'_>) {
        if let Some(d) = m.decorators.first() {
            self.refuse(d.span.start, "decorators are not supported");
        }
        if m.value.body.is_none() {
            return;
        }
        let kind = method_kind(m.kind);
        if let PropertyKey::PrivateIdentifier(id) = &m.key {
            self.private_method(m, kind, id.name.as_str());
            return;
        }
        if m.r#static {
            self.op(Opcode::Swap);
        }
        match if m.computed { None } else { m.key.static_name() } {
            Some(name) => {
                let constant = self.str_const(&name);
                self.op_c(Opcode::Const, constant);
                self.method_function(&m.value, Some(&prefixed(kind, &name)), m.span.start);
            }
            None => {
                self.property_key(&m.key);
                self.op(Opcode::ToKey);
                self.method_function(&m.value, None, m.span.start);
            }
        }
        self.op_b(Opcode::DefMethod, kind);
        if m.r#static {
            self.op(Opcode::Swap);
        }
    }

    fn method_function(&mut self, f: &Function<'_>, name: Option<&str>, start: u32) {
        let number = self.function_template(f, name, flag::METHOD, false, start);
        self.push_scope();
        self.op_c(Opcode::Closure, number);
    }

    /// Static methods and fields are defined on the class at once, the others are collected for the instances.
    fn private_method(&mut self, m: &MethodDefinition<'_>, kind: u16, name: &str) {
        let shown = prefixed(kind, &format!("#{name}"));
        if m.r#static {
            self.op(Opcode::Swap);
            self.load_private(name);
            self.method_function(&m.value, Some(&shown), m.span.start);
            self.op_b(Opcode::DefPriv, kind + 1);
            self.op(Opcode::Swap);
            return;
        }
        self.method_function(&m.value, Some(&shown), m.span.start);
        self.op(Opcode::SetHome);
        self.store_name(&method_slot(kind, name));
    }

    /// Static parts may already use the class by its name.
    fn bind_class_name(&mut self, c: &Class<'_>) {
        let Some(symbol) = c.id.as_ref().and_then(|id| id.symbol_id.get()) else { return };
        self.op(Opcode::Dup);
        match self.aliases.last() {
            Some(alias) if alias.kind == AliasKind::Class && alias.symbol == symbol => {
                let name = alias.name.clone();
                self.store_name(&name);
            }
            _ => self.init_symbol(symbol),
        }
    }

    fn begin_parts(&mut self, c: &Class<'_>, name: &str) -> (u32, usize) {
        let template = self.reserve_template();
        let name = self.str_const(name);
        let builder =
            FunctionBuilder::new(template, flag::METHOD | flag::FIELDS, name, (c.span.start, c.span.end));
        let active_scopes = self.active_scopes.len();
        self.begin_function(builder);
        (template, active_scopes)
    }

    /// class -> class, with the function that defines private methods and fields on an instance
    fn instance_initialiser(&mut self, c: &Class<'_>) {
        let (_, active_scopes) = self.begin_parts(c, "<instance_members_initializer>");
        for element in &c.body.body {
            if let ClassElement::MethodDefinition(m) = element
                && let PropertyKey::PrivateIdentifier(id) = &m.key
                && !m.r#static
                && m.value.body.is_some()
            {
                let kind = method_kind(m.kind);
                self.op(Opcode::LoadThis);
                self.load_private(id.name.as_str());
                match self.find_name(&method_slot(kind, id.name.as_str())) {
                    Some(at) => self.load_at(at, false),
                    None => self.op(Opcode::Undef),
                }
                self.op_b(Opcode::DefPriv, kind + 1);
                self.op(Opcode::Pop);
            }
        }
        for element in &c.body.body {
            if let ClassElement::PropertyDefinition(p) = element
                && !p.r#static
                && !is_abstract(p)
            {
                self.field(p);
            }
        }
        self.epilogue(active_scopes);
        let number = self.end_function();
        self.push_scope();
        self.op_c(Opcode::Closure, number);
        self.op(Opcode::SetFields);
    }

    /// class -> class, after static fields and blocks
    fn static_parts(&mut self, c: &Class<'_>) {
        let any = c.body.body.iter().any(|e| match e {
            ClassElement::StaticBlock(_) => true,
            ClassElement::PropertyDefinition(p) => p.r#static && !is_abstract(p),
            _ => false,
        });
        if !any {
            return;
        }
        let (_, active_scopes) = self.begin_parts(c, "<static_initializer>");
        for element in &c.body.body {
            match element {
                ClassElement::PropertyDefinition(p) if p.r#static && !is_abstract(p) => self.field(p),
                ClassElement::StaticBlock(b) => {
                    let inner = self.static_block(b);
                    self.push_scope();
                    self.op_c(Opcode::Closure, inner);
                    self.op(Opcode::LoadThis);
                    self.op(Opcode::Swap);
                    self.op(Opcode::SetHome);
                    self.op(Opcode::Swap);
                    self.op_b(Opcode::Call, 0);
                    self.op(Opcode::Pop);
                }
                _ => {}
            }
        }
        self.epilogue(active_scopes);
        let number = self.end_function();
        self.op(Opcode::Dup);
        self.push_scope();
        self.op_c(Opcode::Closure, number);
        self.op(Opcode::SetHome);
        self.op(Opcode::Swap);
        self.op_b(Opcode::Call, 0);
        self.op(Opcode::Pop);
    }

    fn static_block(&mut self, b: &oxc_ast::ast::StaticBlock<'_>) -> u32 {
        let template = self.reserve_template();
        let builder =
            FunctionBuilder::new(template, flag::METHOD | flag::FIELDS, u32::MAX, (b.span.start, b.span.end));
        let active_scopes = self.active_scopes.len();
        self.begin_function(builder);
        self.prologue(&FunctionShape { scope: b.scope_id.get(), params: None, own_name: None });
        self.statements(&b.body);
        self.epilogue(active_scopes);
        self.end_function()
    }

    fn field(&mut self, p: &PropertyDefinition<'_>) {
        self.f().position(p.span.start);
        self.op(Opcode::LoadThis);
        let key = match (&p.key, p.computed, p.key.static_name()) {
            (PropertyKey::PrivateIdentifier(id), ..) => FieldKey::Private(id.name.to_string()),
            (_, false, Some(name)) => FieldKey::Name(name.to_string()),
            _ => FieldKey::Slot(format!("[{}]", p.span.start)),
        };
        match &key {
            FieldKey::Name(_) => {}
            FieldKey::Slot(name) => match self.find_name(name) {
                Some(at) => self.load_at(at, false),
                None => self.op(Opcode::Undef),
            },
            FieldKey::Private(name) => self.load_private(name),
        }
        let named_at_run_time = matches!(key, FieldKey::Slot(_));
        match &p.value {
            Some(value) if named_at_run_time => self.expr_named_by_key(value),
            Some(value) => {
                let name = match &key {
                    FieldKey::Name(n) => n.clone(),
                    FieldKey::Private(n) => format!("#{n}"),
                    FieldKey::Slot(_) => String::new(),
                };
                self.expr_named(value, &name);
            }
            None => self.op(Opcode::Undef),
        }
        match key {
            FieldKey::Name(name) => {
                let constant = self.str_const(&name);
                self.op_c(Opcode::DefField, constant);
            }
            FieldKey::Slot(_) => self.op(Opcode::DefElem),
            FieldKey::Private(_) => self.op_b(Opcode::DefPriv, 0),
        }
        self.op(Opcode::Pop);
    }

    /// TypeScript parameter properties: `constructor(private x)` assigns `this.x`.
    pub(super) fn parameter_properties(&mut self, items: &[FormalParameter<'_>]) {
        for p in items {
            if p.accessibility.is_none() && !p.readonly && !p.r#override {
                continue;
            }
            if let BindingPattern::BindingIdentifier(id) = &p.pattern
                && let Some(symbol) = id.symbol_id.get()
            {
                if self.f().this_at == ThisLocation::Scope {
                    self.f().properties.push((symbol, id.name.to_string()));
                    continue;
                }
                self.op(Opcode::LoadThis);
                let at = self.find(symbol);
                self.load_at(at, false);
                let name = self.str_const(id.name.as_str());
                self.op_c(Opcode::DefField, name);
                self.op(Opcode::Pop);
            }
        }
    }
}

fn method_slot(kind: u16, name: &str) -> String {
    format!("#{name} {kind}")
}
