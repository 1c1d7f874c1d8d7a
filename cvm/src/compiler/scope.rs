//! The location of each variable: in a frame slot, in a scope cell that closures share, or on the global object.
//!
//! Owns: the stack of active scope cells, loads and stores of variables. Must not: compile expressions.

use super::Compiler;
use crate::ops::Opcode;
use crate::program::Binding;
use oxc_ast::ast::{BindingIdentifier, IdentifierReference};
use oxc_syntax::scope::ScopeId;
use oxc_syntax::symbol::{SymbolFlags, SymbolId};
use std::collections::HashMap;

/// A scope cell that is active in a part of the code.
pub(super) struct ActiveScope {
    /// Nesting depth of the function that creates it
    pub level: usize,
    /// The local of that function that holds the scope cell
    pub local: u16,
    pub symbols: HashMap<SymbolId, u16>,
    /// Private names, computed keys and similar
    pub names: HashMap<String, u16>,
    /// Scope of a derived constructor: `this` in slot 0, the constructor in slot 1
    pub derived: bool,
    pub slots: u16,
    /// The instruction that creates the scope; its slot count is set at the end
    made_at: usize,
}

/// A second binding of one symbol, in a named slot of a scope cell, valid while a part of the code is compiled.
pub(super) struct Alias {
    pub symbol: SymbolId,
    /// Named slot
    pub name: String,
    pub kind: AliasKind,
}

/// The reason of a second binding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AliasKind {
    /// A class's name inside of the class
    Class,
    /// A parameter that the body declares again
    Parameter,
    /// A member of the enum; the slot holds the enum's object
    Member,
}

/// The location of a variable.
#[derive(Clone, Copy)]
pub(super) enum VariableLocation {
    Local(u16),
    Scope(u16, u16),
    Env(u16, u16),
    Global,
}

impl Compiler<'_, '_> {
    /// Creates a scope cell and activates it.
    pub(super) fn push_scope_cell(&mut self) -> usize {
        let level = self.functions.len();
        let parent = self.active_scopes.last().filter(|r| r.level == level).map(|r| r.local);
        match parent {
            Some(local) => self.load_local(local),
            None => self.op(Opcode::PushEnv),
        }
        let made_at = self.f().code.len();
        self.op_c(Opcode::NewScope, 0);
        let local = self.f().local();
        self.store_local(local);
        self.active_scopes.push(ActiveScope {
            level,
            local,
            symbols: HashMap::new(),
            names: HashMap::new(),
            derived: false,
            slots: 0,
            made_at,
        });
        self.active_scopes.len() - 1
    }

    /// Deactivates the innermost scope cell.
    pub(super) fn pop_scope_cell(&mut self) {
        if let Some(active_scope) = self.active_scopes.pop() {
            self.f().code[active_scope.made_at].c = u32::from(active_scope.slots);
        }
    }

    pub(super) fn scope_cell_slot(&mut self) -> u16 {
        match self.active_scopes.last_mut() {
            Some(active_scope) => {
                active_scope.slots += 1;
                active_scope.slots - 1
            }
            None => 0,
        }
    }

    /// Pushes the innermost scope, for closures.
    pub(super) fn push_scope(&mut self) {
        let level = self.functions.len();
        match self.active_scopes.last().filter(|r| r.level == level).map(|r| r.local) {
            Some(local) => self.load_local(local),
            None => self.op(Opcode::PushEnv),
        }
    }

    /// Declares the captured symbols of a scope in a new scope cell, if it has any.
    pub(super) fn enter_scope(&mut self, scope: Option<ScopeId>) -> bool {
        let Some(scope) = scope else { return false };
        let Some(list) = self.facts.captured_in.get(&scope) else { return false };
        let list: Vec<SymbolId> = list.iter().copied().filter(|&s| !self.is_global_symbol(s)).collect();
        if list.is_empty() {
            return false;
        }
        self.push_scope_cell();
        for symbol in list {
            self.declare_in_scope_cell(symbol);
        }
        true
    }

    pub(super) fn declare_in_scope_cell(&mut self, symbol: SymbolId) -> u16 {
        let slot = self.scope_cell_slot();
        let name = self.scoping.symbol_name(symbol).to_owned();
        if let Some(active_scope) = self.active_scopes.last_mut() {
            active_scope.symbols.insert(symbol, slot);
            let local = active_scope.local;
            let pc = self.f().pc();
            self.f().bindings.push(Binding { name, local, slot: Some(slot), range: (pc, u32::MAX) });
        }
        slot
    }

    /// Ends the visibility of bindings declared since `from`.
    pub(super) fn end_bindings(&mut self, from: usize) {
        let pc = self.f().pc();
        for b in &mut self.f().bindings[from..] {
            if b.range.1 == u32::MAX {
                b.range.1 = pc;
            }
        }
    }

    /// A top-level `var` or function of a script is a property of the global object.
    pub(super) fn is_global_symbol(&self, symbol: SymbolId) -> bool {
        if self.in_prelude
            || self.current.is_module
            || self.scoping.symbol_scope_id(symbol) != self.scoping.root_scope_id()
        {
            return false;
        }
        let flags = self.scoping.symbol_flags(symbol);
        flags.intersects(SymbolFlags::FunctionScopedVariable | SymbolFlags::Function)
            && !flags.intersects(SymbolFlags::BlockScopedVariable | SymbolFlags::Class)
    }

    /// Allocates the frame slot of a symbol that no closure uses.
    pub(super) fn declare_local(&mut self, symbol: SymbolId) -> u16 {
        if let Some(&slot) = self.f().locals.get(&symbol) {
            return slot;
        }
        let slot = self.f().local();
        self.bind_local(symbol, slot);
        slot
    }

    pub(super) fn bind_local(&mut self, symbol: SymbolId, slot: u16) {
        let name = self.scoping.symbol_name(symbol).to_owned();
        let pc = self.f().pc();
        self.f().locals.insert(symbol, slot);
        self.f().bindings.push(Binding { name, local: slot, slot: None, range: (pc, u32::MAX) });
    }

    pub(super) fn find(&mut self, symbol: SymbolId) -> VariableLocation {
        if let Some(&slot) = self.f().locals.get(&symbol) {
            return VariableLocation::Local(slot);
        }
        let level = self.functions.len();
        let mut depth = 0;
        for active_scope in self.active_scopes.iter().rev() {
            if let Some(&slot) = active_scope.symbols.get(&symbol) {
                return if active_scope.level == level {
                    VariableLocation::Scope(active_scope.local, slot)
                } else {
                    VariableLocation::Env(depth, slot)
                };
            }
            if active_scope.level != level {
                depth += 1;
            }
        }
        if self.is_global_symbol(symbol) {
            return VariableLocation::Global;
        }
        // Code generation has not reached the declaration: allocate the slot now.
        VariableLocation::Local(self.declare_local(symbol))
    }

    /// Finds a named slot of a scope cell: private names and the like.
    pub(super) fn find_name(&self, name: &str) -> Option<VariableLocation> {
        self.find_scope_cell(|active_scope| active_scope.names.get(name).copied())
    }

    /// Finds `this` (slot 0) or the constructor (slot 1) of the enclosing derived constructor.
    pub(super) fn find_derived(&self, slot: u16) -> Option<VariableLocation> {
        self.find_scope_cell(|active_scope| active_scope.derived.then_some(slot))
    }

    fn find_scope_cell(&self, pick: impl Fn(&ActiveScope) -> Option<u16>) -> Option<VariableLocation> {
        let level = self.functions.len();
        let mut depth = 0;
        for active_scope in self.active_scopes.iter().rev() {
            if let Some(slot) = pick(active_scope) {
                return Some(if active_scope.level == level {
                    VariableLocation::Scope(active_scope.local, slot)
                } else {
                    VariableLocation::Env(depth, slot)
                });
            }
            if active_scope.level != level {
                depth += 1;
            }
        }
        None
    }

    pub(super) fn load_at(&mut self, at: VariableLocation, checked: bool) {
        match at {
            VariableLocation::Local(slot) => {
                self.op_c(if checked { Opcode::LoadLocChk } else { Opcode::LoadLoc }, u32::from(slot));
            }
            VariableLocation::Scope(local, slot) => {
                self.f().emit(
                    if checked { Opcode::LoadScopeChk } else { Opcode::LoadScope },
                    u32::from(slot),
                    local,
                );
            }
            VariableLocation::Env(depth, slot) => {
                self.f().emit(
                    if checked { Opcode::LoadEnvChk } else { Opcode::LoadEnv },
                    u32::from(slot),
                    depth,
                );
            }
            VariableLocation::Global => {}
        }
    }

    pub(super) fn store_at(&mut self, at: VariableLocation, checked: bool) {
        match at {
            VariableLocation::Local(slot) => {
                self.op_c(if checked { Opcode::StoreLocChk } else { Opcode::StoreLoc }, u32::from(slot));
            }
            VariableLocation::Scope(local, slot) => {
                self.f().emit(
                    if checked { Opcode::StoreScopeChk } else { Opcode::StoreScope },
                    u32::from(slot),
                    local,
                );
            }
            VariableLocation::Env(depth, slot) => {
                self.f().emit(
                    if checked { Opcode::StoreEnvChk } else { Opcode::StoreEnv },
                    u32::from(slot),
                    depth,
                );
            }
            VariableLocation::Global => {}
        }
    }

    fn symbol_of(&self, id: &IdentifierReference<'_>) -> Option<SymbolId> {
        id.reference_id.get().and_then(|r| self.scoping.get_reference(r).symbol_id())
    }

    /// The local of a variable that is a plain frame slot without checks.
    pub(super) fn plain_local(&mut self, id: &IdentifierReference<'_>) -> Option<u16> {
        let symbol = self.symbol_of(id)?;
        if self.facts.checked.contains(&symbol) || self.is_read_only(symbol) {
            return None;
        }
        self.f().locals.get(&symbol).copied()
    }

    fn is_read_only(&self, symbol: SymbolId) -> bool {
        let flags = self.scoping.symbol_flags(symbol);
        flags.intersects(SymbolFlags::ConstVariable | SymbolFlags::FunctionExpression | SymbolFlags::Import)
            || (flags.intersects(SymbolFlags::Class)
                && self.facts.class_scopes.contains(&self.scoping.symbol_scope_id(symbol)))
    }

    /// Pushes a variable.
    pub(super) fn load_ident(&mut self, id: &IdentifierReference<'_>, soft: bool) {
        let name = id.name.as_str();
        if let Some(symbol) = self.symbol_of(id) {
            if let Some((at, kind)) = self.alias(symbol) {
                self.f().position(id.span.start);
                self.load_at(at, true);
                if kind == AliasKind::Member {
                    let name = self.str_const(name);
                    self.op_c(Opcode::GetProp, name);
                }
                return;
            }
            let at = self.find(symbol);
            if !matches!(at, VariableLocation::Global) {
                if self.in_prelude
                    && self.own_names.contains_key(name)
                    && matches!(at, VariableLocation::Local(_))
                    && self.is_prelude_function(symbol)
                {
                    self.prelude_closure(name);
                    return;
                }
                let checked = self.facts.checked.contains(&symbol);
                if checked {
                    // The error message has the variable's name, read from the source at this position.
                    self.f().position(id.span.start);
                }
                self.load_at(at, checked);
                return;
            }
        } else if name == "arguments" {
            if let Some(local) = self.f().arguments {
                self.load_local(local);
                return;
            }
            if let Some(at) = self.find_name("arguments") {
                self.load_at(at, false);
                return;
            }
        } else if name == "undefined" {
            self.op(Opcode::Undef);
            return;
        }
        if self.in_prelude {
            self.prelude_ident(id);
            return;
        }
        let name = self.str_const(name);
        self.op_c(if soft { Opcode::GetGlobalSoft } else { Opcode::GetGlobal }, name);
    }

    pub(super) fn is_prelude_function(&self, symbol: SymbolId) -> bool {
        self.scoping.symbol_scope_id(symbol) == self.scoping.root_scope_id()
            && self.scoping.symbol_flags(symbol).intersects(SymbolFlags::Function)
    }

    pub(super) fn prelude_closure(&mut self, name: &str) {
        let n = self.pre(name);
        self.op(Opcode::PushEnv);
        self.op_c(Opcode::Closure, n);
    }

    fn prelude_ident(&mut self, id: &IdentifierReference<'_>) {
        let name = id.name.as_str();
        match name.strip_prefix("$$").and_then(crate::builtins::ids::realm_id) {
            Some(cell) => self.op_c(Opcode::Realm, cell.0),
            None => {
                self.refuse(id.span.start, &format!("unknown name {name} in the prelude"));
                self.op(Opcode::Undef);
            }
        }
    }

    /// Pops a value into a variable by assignment.
    pub(super) fn store_ident(&mut self, id: &IdentifierReference<'_>) {
        if let Some(symbol) = self.symbol_of(id) {
            if let Some((at, kind)) = self.alias(symbol) {
                match kind {
                    AliasKind::Parameter => self.store_at(at, true),
                    AliasKind::Class | AliasKind::Member => self.refuse_store(id, at, true),
                }
                return;
            }
            let at = self.find(symbol);
            let checked = self.facts.checked.contains(&symbol);
            if self.is_read_only(symbol) {
                self.refuse_store(id, at, checked);
                return;
            }
            if !matches!(at, VariableLocation::Global) {
                self.store_at(at, checked);
                return;
            }
        }
        let name = self.str_const(id.name.as_str());
        self.op_c(Opcode::SetGlobal, name);
    }

    /// The location of a variable in the code being compiled, if it differs from that in the code around it.
    fn alias(&self, symbol: SymbolId) -> Option<(VariableLocation, AliasKind)> {
        let alias = self.aliases.iter().rev().find(|alias| alias.symbol == symbol)?;
        Some((self.find_name(&alias.name)?, alias.kind))
    }

    /// Pops the value for a constant and throws.
    fn refuse_store(&mut self, id: &IdentifierReference<'_>, at: VariableLocation, checked: bool) {
        if checked {
            self.load_at(at, true);
            self.op(Opcode::Pop);
        }
        self.op(Opcode::Pop);
        let message = self.str_const(&format!("Assignment to constant variable '{}'.", id.name));
        let depth = self.f().depth();
        self.f().emit(Opcode::ThrowErr, message, 0);
        // The code after the throw is unreachable, but its depth is that after a store.
        let after = self.f().label();
        self.f().set_depth(depth);
        self.f().bind(after);
    }

    /// Pops a value into a binding and initialises it.
    pub(super) fn init_binding(&mut self, id: &BindingIdentifier<'_>) {
        match id.symbol_id.get() {
            Some(symbol) => self.init_symbol(symbol),
            None => self.op(Opcode::Pop),
        }
    }

    pub(super) fn init_symbol(&mut self, symbol: SymbolId) {
        if let Some((at, AliasKind::Parameter)) = self.alias(symbol) {
            self.store_at(at, false);
            return;
        }
        match self.find(symbol) {
            VariableLocation::Global => {
                let name = self.scoping.symbol_name(symbol).to_owned();
                let name = self.str_const(&name);
                self.op_c(Opcode::SetGlobal, name);
            }
            at => {
                self.store_at(at, false);
                if let VariableLocation::Local(slot) = at
                    && self.facts.is_lexical(symbol)
                    && !self.facts.checked.contains(&symbol)
                {
                    self.begin_binding(symbol, slot);
                }
            }
        }
    }

    /// A lexical variable whose slot is not cleared when its scope begins is visible from here on: before, the slot has the value of
    /// the previous turn of a loop.
    fn begin_binding(&mut self, symbol: SymbolId, slot: u16) {
        let name = self.scoping.symbol_name(symbol).to_owned();
        let pc = self.f().pc();
        let open =
            |b: &&mut Binding| b.range.1 == u32::MAX && b.slot.is_none() && b.local == slot && b.name == name;
        if let Some(binding) = self.f().bindings.iter_mut().rev().find(open) {
            binding.range.0 = pc;
        }
    }
}
