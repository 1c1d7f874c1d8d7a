//! The top level of a program of modules: one function that creates the shared scope cell, reads JSON files, creates namespace
//! objects and functions, and evaluates the modules one after the other.
//!
//! Everything before the first module's own code runs while the global objects are pristine. Must not: resolve names.

use super::super::emit::FunctionBuilder;
use super::super::parse::STRICT;
use super::super::unsupported::{self, RefusedUse};
use super::super::{CompileError, Compiler};
use super::exports::ImportTarget;
use super::record::Export;
use super::{Links, ModuleCode, ProgramModule};
use crate::builtins::generations::GlobalNames;
use crate::ops::Opcode;
use crate::program::{Binding, flag};
use oxc_ast::ast::{
    Declaration, ExportDefaultDeclaration, ExportDefaultDeclarationKind, Function, TSNamespaceDeclaration,
};
use oxc_span::GetSpan;
use oxc_syntax::symbol::{SymbolFlags, SymbolId};
use std::collections::HashMap;

/// Most variables that modules share, functions use, or that are functions: the number of a slot has 16 bits.
const MOST_SLOTS: usize = 60_000;

/// The module that is being compiled.
#[derive(Default)]
pub(in super::super) struct CurrentModule<'s> {
    /// For errors; none if the program has one file
    pub file: Option<&'s str>,
    /// Offset of its text in the unit's source
    pub origin: u32,
    /// Whether it is a module: its variables are not properties of the global object
    pub is_module: bool,
    /// The slot of the value of `export default`
    default_slot: Option<u16>,
}

/// The variables of a module at the top level.
#[derive(Default)]
struct ModuleVariables {
    /// Slots of the shared scope cell
    symbols: HashMap<SymbolId, u16>,
    /// Locals of the top level's function
    locals: HashMap<SymbolId, u16>,
}

/// The slots of the shared scope cell.
struct Slots {
    of: HashMap<ImportTarget, u16>,
    modules: Vec<ModuleVariables>,
}

impl<'s> Compiler<'_, 's> {
    /// A compiler that begins with the first module.
    pub(super) fn of_modules<'p>(
        modules: &'s [ProgramModule<'_>],
        entry: &'s ModuleCode<'_>,
        prelude: &'p HashMap<String, u32>,
    ) -> Compiler<'p, 's> {
        let (parsed, source) = (&entry.parsed, modules[0].source);
        let mut compiler = Compiler::new(source, &parsed.scoping, &parsed.facts, prelude, false);
        compiler.unit.source = modules.iter().map(|module| module.source).collect();
        compiler
    }

    pub(super) fn refuse_uses(&mut self, modules: &'s [ProgramModule<'_>], names: Option<&GlobalNames>) {
        let code = modules.iter().enumerate().filter_map(|(n, module)| Some((n, module.code.as_ref()?)));
        let texts = code.map(|(n, code)| (n, code.parsed.program, &code.parsed.scoping));
        for (module, RefusedUse { at, kind, message }) in unsupported::find_in_modules(texts, names) {
            self.select(modules, module);
            self.refuse_as(kind, at, &message);
        }
    }

    pub(super) fn modules(&mut self, modules: &'s [ProgramModule<'_>], links: &Links) {
        let all: Vec<(usize, &'s ModuleCode<'_>)> =
            links.order.iter().filter_map(|&n| Some((n, modules[n].code.as_ref()?))).collect();
        let awaits = all.iter().any(|(_, code)| code.parsed.facts.top_level_await);
        self.select(modules, 0);
        let end = (self.unit.source.len() + STRICT.len()) as u32;
        self.top_level(end, awaits, |c| {
            // `this` of a module
            c.op(Opcode::Undef);
            c.store_local(THIS);
            c.push_scope_cell();
            let mut slots = c.slots(modules, links);
            c.json_values(modules, &slots);
            c.namespaces(links, &slots);
            c.begin_main_calls();
            for &(n, code) in &all {
                c.enter_module(modules, n, &mut slots);
                c.instantiate(code);
                c.swap_variables(n, &mut slots);
            }
            for &(n, code) in &all {
                c.enter_module(modules, n, &mut slots);
                if n == 0 {
                    // The last one: its `main` is called after it.
                    c.find_started_calls(code.parsed.program);
                    c.evaluate(code);
                } else {
                    let (mark, from) = (c.f().mark(), c.f().bindings.len());
                    c.evaluate(code);
                    c.end_bindings(from);
                    c.f().release(mark);
                    c.swap_variables(n, &mut slots);
                }
            }
            c.current.origin = 0;
            c.f().origin = 0;
        });
    }

    /// Makes a module's text, scopes and name those of the code that is compiled.
    fn select(&mut self, modules: &'s [ProgramModule<'_>], number: usize) {
        let module = &modules[number];
        let Some(code) = &module.code else { return };
        (self.source, self.scoping, self.facts) = (module.source, &code.parsed.scoping, &code.parsed.facts);
        self.current = CurrentModule {
            file: (modules.len() > 1).then_some(module.name),
            origin: module.start,
            is_module: true,
            default_slot: None,
        };
    }

    fn enter_module(&mut self, modules: &'s [ProgramModule<'_>], number: usize, slots: &mut Slots) {
        self.select(modules, number);
        self.current.default_slot = slots.of.get(&ImportTarget::Default(number)).copied();
        self.f().origin = self.current.origin;
        self.swap_variables(number, slots);
    }

    /// Makes a module's variables those that the code finds, and the other way round.
    fn swap_variables(&mut self, number: usize, slots: &mut Slots) {
        let variables = &mut slots.modules[number];
        std::mem::swap(&mut self.f().locals, &mut variables.locals);
        if let Some(cell) = self.active_scopes.first_mut() {
            std::mem::swap(&mut cell.symbols, &mut variables.symbols);
        }
    }

    /// Gives a slot to everything that is shared; the imports of a module are the slots of their targets.
    fn slots(&mut self, modules: &'s [ProgramModule<'_>], links: &Links) -> Slots {
        let mut of = HashMap::new();
        let mut list: Vec<(ImportTarget, String)> = Vec::new();
        for (n, module) in modules.iter().enumerate() {
            let prefix = if n == 0 { String::new() } else { format!("{}:", module.name) };
            let Some(code) = &module.code else {
                list.push((ImportTarget::Default(n), format!("{prefix}default")));
                continue;
            };
            let scoping = &code.parsed.scoping;
            let mut captured: Vec<SymbolId> =
                scoping.get_bindings(scoping.root_scope_id()).values().copied().collect();
            captured.retain(|symbol| code.parsed.facts.captured.contains(symbol));
            captured.retain(|symbol| !scoping.symbol_flags(*symbol).intersects(SymbolFlags::Import));
            captured.sort_unstable();
            captured.dedup();
            let named = |symbol| format!("{prefix}{}", scoping.symbol_name(symbol));
            list.extend(
                captured.into_iter().map(|symbol| (ImportTarget::Variable(n, symbol), named(symbol))),
            );
            if matches!(code.record.exports.get(super::record::DEFAULT), Some(Export::Default)) {
                list.push((ImportTarget::Default(n), format!("{prefix}default")));
            }
        }
        list.extend(links.namespaces.iter().map(|(n, _)| (ImportTarget::Namespace(*n), String::new())));
        if list.len() > MOST_SLOTS {
            self.errors.push(CompileError::new(
                "",
                0,
                "the program's files have too many variables and functions",
            ));
            list.truncate(MOST_SLOTS);
        }
        let pc = self.f().pc();
        let local = self.active_scopes.first().map_or(0, |cell| cell.local);
        for (target, name) in list {
            let slot = self.scope_cell_slot();
            of.insert(target, slot);
            if !name.is_empty() {
                self.f().bindings.push(Binding { name, local, slot: Some(slot), range: (pc, u32::MAX) });
            }
        }
        let mut variables = Vec::new();
        for ((n, module), targets) in modules.iter().enumerate().zip(&links.imports) {
            let mut symbols = HashMap::new();
            if let Some(code) = &module.code {
                let scoping = &code.parsed.scoping;
                for &symbol in scoping.get_bindings(scoping.root_scope_id()).values() {
                    symbols.extend(of.get(&ImportTarget::Variable(n, symbol)).map(|slot| (symbol, *slot)));
                }
                for (import, target) in code.record.imports.iter().zip(targets) {
                    let slot = target.as_ref().and_then(|target| of.get(target));
                    symbols.extend(slot.map(|slot| (import.symbol, *slot)));
                }
            }
            variables.push(ModuleVariables { symbols, locals: HashMap::new() });
        }
        Slots { of, modules: variables }
    }

    /// Pops a value into a slot of the shared cell; only at the top level.
    fn store_shared(&mut self, slot: u16) {
        let local = self.active_scopes.first().map_or(0, |cell| cell.local);
        self.f().emit(Opcode::StoreScope, u32::from(slot), local);
    }

    fn load_shared(&mut self, slot: u16) {
        let local = self.active_scopes.first().map_or(0, |cell| cell.local);
        self.f().emit(Opcode::LoadScope, u32::from(slot), local);
    }

    /// Pushes a method of a global object and the object.
    fn global_method(&mut self, object: &str, method: &str) {
        let (object, method) = (self.str_const(object), self.str_const(method));
        self.op_c(Opcode::GetGlobal, object);
        self.op_c(Opcode::GetMethod, method);
    }

    /// The values of the JSON files.
    fn json_values(&mut self, modules: &'s [ProgramModule<'_>], slots: &Slots) {
        for (n, module) in modules.iter().enumerate().filter(|(_, module)| module.code.is_none()) {
            let Some(&slot) = slots.of.get(&ImportTarget::Default(n)) else { continue };
            self.global_method("JSON", "parse");
            let text = self.str_const(super::json_text(module.source));
            self.op_c(Opcode::Const, text);
            self.op_b(Opcode::Call, 1);
            self.store_shared(slot);
        }
    }

    /// Creates the namespace objects: frozen, without a prototype, with a getter for each name.
    fn namespaces(&mut self, links: &Links, slots: &Slots) {
        for (module, names) in &links.namespaces {
            let Some(&slot) = slots.of.get(&ImportTarget::Namespace(*module)) else { continue };
            self.op(Opcode::NewObject);
            self.op(Opcode::Null);
            self.op(Opcode::SetProtoLit);
            for (name, target) in names {
                let Some(&from) = slots.of.get(target) else { continue };
                let key = self.str_const(name);
                self.op_c(Opcode::Const, key);
                self.getter(name, from);
                self.op_b(Opcode::DefMethod, ENUMERABLE_GETTER);
            }
            self.store_shared(slot);
            self.global_method("Object", "defineProperty");
            self.load_shared(slot);
            let (symbol, tag) = (self.str_const("Symbol"), self.str_const("toStringTag"));
            self.op_c(Opcode::GetGlobal, symbol);
            self.op_c(Opcode::GetProp, tag);
            self.op(Opcode::NewObject);
            let (module, value) = (self.str_const("Module"), self.str_const("value"));
            self.op_c(Opcode::Const, module);
            self.op_c(Opcode::DefField, value);
            self.op_b(Opcode::Call, 3);
            self.op(Opcode::Pop);
            self.global_method("Object", "freeze");
            self.load_shared(slot);
            self.op_b(Opcode::Call, 1);
            self.op(Opcode::Pop);
        }
    }

    /// Pushes the function that reads a slot of the shared cell. `vm::values` shows its value without calling it.
    fn getter(&mut self, name: &str, slot: u16) {
        let template = self.reserve_template();
        let name = self.str_const(name);
        self.begin_function(FunctionBuilder::new(template, flag::METHOD, name, (0, 0)));
        self.f().emit(Opcode::LoadEnvChk, u32::from(slot), 0);
        self.op(Opcode::Ret);
        self.end_function();
        self.push_scope();
        self.op_c(Opcode::Closure, template);
    }

    /// Creates the functions of a module, and its variables of `var`.
    fn instantiate(&mut self, code: &ModuleCode<'_>) {
        for symbol in self.symbols_in(self.scoping.root_scope_id()) {
            if self.is_var(symbol) && self.facts.captured.contains(&symbol) {
                self.op(Opcode::Undef);
                self.init_symbol(symbol);
            }
        }
        self.hoist_functions(&code.parsed.program.body);
    }

    fn evaluate(&mut self, code: &ModuleCode<'_>) {
        for symbol in self.symbols_in(self.scoping.root_scope_id()) {
            if self.is_var(symbol) && !self.facts.captured.contains(&symbol) {
                let slot = self.declare_local(symbol);
                self.op(Opcode::Undef);
                self.store_local(slot);
            }
        }
        self.hoist_lexical(&code.parsed.program.body);
        self.hoisted_statements(&code.parsed.program.body);
    }

    fn is_var(&self, symbol: SymbolId) -> bool {
        let flags = self.scoping.symbol_flags(symbol);
        flags.intersects(SymbolFlags::FunctionScopedVariable) && !flags.intersects(SymbolFlags::Function)
    }

    /// `export` of a declaration
    pub(in super::super) fn exported_declaration(&mut self, declaration: &Declaration<'_>) {
        match declaration {
            Declaration::VariableDeclaration(d) => self.variable_declaration(d),
            Declaration::ClassDeclaration(c) => self.class_declaration(c),
            Declaration::TSEnumDeclaration(e) => self.ts_enum(e),
            Declaration::TSNamespaceDeclaration(n) => self.refuse_namespace(n),
            Declaration::FunctionDeclaration(_)
            | Declaration::TSTypeAliasDeclaration(_)
            | Declaration::TSInterfaceDeclaration(_)
            | Declaration::TSGlobalDeclaration(_)
            | Declaration::TSExternalModuleDeclaration(_) => {}
            Declaration::TSImportEqualsDeclaration(d) => {
                self.refuse(d.span.start, "this TypeScript declaration is not supported");
            }
        }
    }

    pub(in super::super) fn refuse_namespace(&mut self, n: &TSNamespaceDeclaration<'_>) {
        if !n.declare {
            let name = n.id.name.as_str();
            let why = "use an object, or functions at the top level";
            self.refuse_unsupported(n.span.start, &format!("`namespace {name}` is not supported: {why}"));
        }
    }

    /// `export default`; a function was created before.
    pub(in super::super) fn export_default(&mut self, d: &ExportDefaultDeclaration<'_>) {
        match &d.declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(_)
            | ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => return,
            ExportDefaultDeclarationKind::ClassDeclaration(c) if c.id.is_some() => {
                self.class_declaration(c);
                return;
            }
            ExportDefaultDeclarationKind::ClassDeclaration(c) => self.class(c, Some("default")),
            other => {
                let Some(value) = other.as_expression() else { return };
                self.f().position(value.span().start);
                self.expr_named(value, "default");
            }
        }
        self.store_default();
    }

    /// `export default function () {}`
    pub(in super::super) fn default_function(&mut self, f: &Function<'_>) {
        self.function(f, Some("default"), 0);
        self.store_default();
    }

    fn store_default(&mut self) {
        match self.current.default_slot {
            Some(slot) => self.store_shared(slot),
            None => self.op(Opcode::Pop),
        }
    }
}

/// The slot of `this` in a frame.
const THIS: u16 = 1;
/// Operand of `DefMethod`.
const ENUMERABLE_GETTER: u16 = 5;
