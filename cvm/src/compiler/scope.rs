//! Where a variable lives: a frame slot, a scope cell that closures share, or the global object.
//!
//! Owns: ribs (the scope cells in force), loads and stores of variables. Must not: compile expressions.

use super::Compiler;
use crate::ops::Op;
use crate::program::Binding;
use oxc_ast::ast::{BindingIdentifier, IdentifierReference};
use oxc_syntax::scope::ScopeId;
use oxc_syntax::symbol::{SymbolFlags, SymbolId};
use std::collections::HashMap;

/// A scope cell in force at some point of the code.
pub(super) struct Rib {
    /// Depth of the function that made it
    pub level: usize,
    /// Local of that function that holds it
    pub local: u16,
    pub symbols: HashMap<SymbolId, u16>,
    /// Private names, computed keys and similar
    pub names: HashMap<String, u16>,
    /// Scope of a derived constructor: `this` in slot 0, the constructor in slot 1
    pub derived: bool,
    pub slots: u16,
    /// Instruction that makes the scope; its slot count is filled in at the end
    made_at: usize,
}

/// A second binding of one symbol, in a named slot of a rib: it holds while part of the code is compiled.
pub(super) struct Alias {
    pub symbol: SymbolId,
    /// Named slot
    pub name: String,
    pub kind: AliasKind,
}

/// What a second binding is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AliasKind {
    /// A class's own name inside of it
    Class,
    /// A parameter that the body declares again
    Parameter,
    /// A member of the enum whose object the slot holds
    Member,
}

/// Where a variable is.
#[derive(Clone, Copy)]
pub(super) enum Where {
    Local(u16),
    Scope(u16, u16),
    Env(u16, u16),
    Global,
}

impl Compiler<'_, '_> {
    /// Makes a scope cell and puts it in force.
    pub(super) fn push_rib(&mut self) -> usize {
        let level = self.functions.len();
        let parent = self.ribs.last().filter(|r| r.level == level).map(|r| r.local);
        match parent {
            Some(local) => self.load_local(local),
            None => self.op(Op::PushEnv),
        }
        let made_at = self.f().code.len();
        self.op_c(Op::NewScope, 0);
        let local = self.f().local();
        self.store_local(local);
        self.ribs.push(Rib {
            level,
            local,
            symbols: HashMap::new(),
            names: HashMap::new(),
            derived: false,
            slots: 0,
            made_at,
        });
        self.ribs.len() - 1
    }

    /// Takes the innermost scope cell out of force.
    pub(super) fn pop_rib(&mut self) {
        if let Some(rib) = self.ribs.pop() {
            self.f().code[rib.made_at].c = u32::from(rib.slots);
        }
    }

    pub(super) fn rib_slot(&mut self) -> u16 {
        match self.ribs.last_mut() {
            Some(rib) => {
                rib.slots += 1;
                rib.slots - 1
            }
            None => 0,
        }
    }

    /// Pushes the innermost scope, for closures.
    pub(super) fn push_scope(&mut self) {
        let level = self.functions.len();
        match self.ribs.last().filter(|r| r.level == level).map(|r| r.local) {
            Some(local) => self.load_local(local),
            None => self.op(Op::PushEnv),
        }
    }

    /// Declares the captured symbols of a scope in a new rib, if it has any.
    pub(super) fn enter_scope(&mut self, scope: Option<ScopeId>) -> bool {
        let Some(scope) = scope else { return false };
        let Some(list) = self.facts.captured_in.get(&scope) else { return false };
        let list: Vec<SymbolId> = list.iter().copied().filter(|&s| !self.is_global_symbol(s)).collect();
        if list.is_empty() {
            return false;
        }
        self.push_rib();
        for symbol in list {
            self.declare_in_rib(symbol);
        }
        true
    }

    pub(super) fn declare_in_rib(&mut self, symbol: SymbolId) -> u16 {
        let slot = self.rib_slot();
        let name = self.scoping.symbol_name(symbol).to_owned();
        if let Some(rib) = self.ribs.last_mut() {
            rib.symbols.insert(symbol, slot);
            let local = rib.local;
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

    /// A top-level `var` or function lives on the global object.
    pub(super) fn is_global_symbol(&self, symbol: SymbolId) -> bool {
        if self.in_prelude || self.scoping.symbol_scope_id(symbol) != self.scoping.root_scope_id() {
            return false;
        }
        let flags = self.scoping.symbol_flags(symbol);
        flags.intersects(SymbolFlags::FunctionScopedVariable | SymbolFlags::Function)
            && !flags.intersects(SymbolFlags::BlockScopedVariable | SymbolFlags::Class)
    }

    /// Gives a symbol that no closure uses its frame slot.
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

    pub(super) fn find(&mut self, symbol: SymbolId) -> Where {
        if let Some(&slot) = self.f().locals.get(&symbol) {
            return Where::Local(slot);
        }
        let level = self.functions.len();
        let mut depth = 0;
        for rib in self.ribs.iter().rev() {
            if let Some(&slot) = rib.symbols.get(&symbol) {
                return if rib.level == level {
                    Where::Scope(rib.local, slot)
                } else {
                    Where::Env(depth, slot)
                };
            }
            if rib.level != level {
                depth += 1;
            }
        }
        if self.is_global_symbol(symbol) {
            return Where::Global;
        }
        // A declaration that code generation has not reached: give it its slot now.
        Where::Local(self.declare_local(symbol))
    }

    /// Finds a rib's named slot: private names and the like.
    pub(super) fn find_name(&self, name: &str) -> Option<Where> {
        self.find_rib(|rib| rib.names.get(name).copied())
    }

    /// Finds `this` (slot 0) or the constructor (slot 1) of the enclosing derived constructor.
    pub(super) fn find_derived(&self, slot: u16) -> Option<Where> {
        self.find_rib(|rib| rib.derived.then_some(slot))
    }

    fn find_rib(&self, pick: impl Fn(&Rib) -> Option<u16>) -> Option<Where> {
        let level = self.functions.len();
        let mut depth = 0;
        for rib in self.ribs.iter().rev() {
            if let Some(slot) = pick(rib) {
                return Some(if rib.level == level {
                    Where::Scope(rib.local, slot)
                } else {
                    Where::Env(depth, slot)
                });
            }
            if rib.level != level {
                depth += 1;
            }
        }
        None
    }

    pub(super) fn load_where(&mut self, at: Where, checked: bool) {
        match at {
            Where::Local(slot) => {
                self.op_c(if checked { Op::LoadLocChk } else { Op::LoadLoc }, u32::from(slot));
            }
            Where::Scope(local, slot) => {
                self.f().emit(if checked { Op::LoadScopeChk } else { Op::LoadScope }, u32::from(slot), local);
            }
            Where::Env(depth, slot) => {
                self.f().emit(if checked { Op::LoadEnvChk } else { Op::LoadEnv }, u32::from(slot), depth);
            }
            Where::Global => {}
        }
    }

    pub(super) fn store_where(&mut self, at: Where, checked: bool) {
        match at {
            Where::Local(slot) => {
                self.op_c(if checked { Op::StoreLocChk } else { Op::StoreLoc }, u32::from(slot));
            }
            Where::Scope(local, slot) => {
                self.f().emit(
                    if checked { Op::StoreScopeChk } else { Op::StoreScope },
                    u32::from(slot),
                    local,
                );
            }
            Where::Env(depth, slot) => {
                self.f().emit(if checked { Op::StoreEnvChk } else { Op::StoreEnv }, u32::from(slot), depth);
            }
            Where::Global => {}
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
        flags.intersects(SymbolFlags::ConstVariable | SymbolFlags::FunctionExpression)
            || (flags.intersects(SymbolFlags::Class)
                && self.facts.class_scopes.contains(&self.scoping.symbol_scope_id(symbol)))
    }

    /// Pushes a variable.
    pub(super) fn load_ident(&mut self, id: &IdentifierReference<'_>, soft: bool) {
        let name = id.name.as_str();
        if let Some(symbol) = self.symbol_of(id) {
            if let Some((at, kind)) = self.alias(symbol) {
                self.f().position(id.span.start);
                self.load_where(at, true);
                if kind == AliasKind::Member {
                    let name = self.str_const(name);
                    self.op_c(Op::GetProp, name);
                }
                return;
            }
            let at = self.find(symbol);
            if !matches!(at, Where::Global) {
                if self.in_prelude
                    && self.own_names.contains_key(name)
                    && matches!(at, Where::Local(_))
                    && self.is_prelude_function(symbol)
                {
                    self.prelude_closure(name);
                    return;
                }
                let checked = self.facts.checked.contains(&symbol);
                if checked {
                    // An error finds the name of the variable in the source.
                    self.f().position(id.span.start);
                }
                self.load_where(at, checked);
                return;
            }
        } else if name == "arguments" {
            if let Some(local) = self.f().arguments {
                self.load_local(local);
                return;
            }
            if let Some(at) = self.find_name("arguments") {
                self.load_where(at, false);
                return;
            }
        } else if name == "undefined" {
            self.op(Op::Undef);
            return;
        }
        if self.in_prelude {
            self.prelude_ident(id);
            return;
        }
        let name = self.str_const(name);
        self.op_c(if soft { Op::GetGlobalSoft } else { Op::GetGlobal }, name);
    }

    pub(super) fn is_prelude_function(&self, symbol: SymbolId) -> bool {
        self.scoping.symbol_scope_id(symbol) == self.scoping.root_scope_id()
            && self.scoping.symbol_flags(symbol).intersects(SymbolFlags::Function)
    }

    pub(super) fn prelude_closure(&mut self, name: &str) {
        let n = self.pre(name);
        self.op(Op::PushEnv);
        self.op_c(Op::Closure, n);
    }

    fn prelude_ident(&mut self, id: &IdentifierReference<'_>) {
        let name = id.name.as_str();
        match name.strip_prefix("$$").and_then(crate::builtins::ids::realm_id) {
            Some(cell) => self.op_c(Op::Realm, cell.0),
            None => {
                self.refuse(id.span.start, &format!("unknown name {name} in the prelude"));
                self.op(Op::Undef);
            }
        }
    }

    /// Pops a value into a variable by assignment.
    pub(super) fn store_ident(&mut self, id: &IdentifierReference<'_>) {
        if let Some(symbol) = self.symbol_of(id) {
            if let Some((at, kind)) = self.alias(symbol) {
                match kind {
                    AliasKind::Parameter => self.store_where(at, true),
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
            if !matches!(at, Where::Global) {
                self.store_where(at, checked);
                return;
            }
        }
        let name = self.str_const(id.name.as_str());
        self.op_c(Op::SetGlobal, name);
    }

    /// Where the code under way finds a variable, if that is another place than for the code around it.
    fn alias(&self, symbol: SymbolId) -> Option<(Where, AliasKind)> {
        let alias = self.aliases.iter().rev().find(|alias| alias.symbol == symbol)?;
        Some((self.find_name(&alias.name)?, alias.kind))
    }

    /// Pops the value for a constant and throws.
    fn refuse_store(&mut self, id: &IdentifierReference<'_>, at: Where, checked: bool) {
        if checked {
            self.load_where(at, true);
            self.op(Op::Pop);
        }
        self.op(Op::Pop);
        let message = self.str_const(&format!("Assignment to constant variable '{}'.", id.name));
        let depth = self.f().depth();
        self.f().emit(Op::ThrowErr, message, 0);
        // The code after it cannot run, but the depth goes on as after a store.
        let after = self.f().label();
        self.f().set_depth(depth);
        self.f().bind(after);
    }

    /// Pops a value into a binding that comes into being.
    pub(super) fn init_binding(&mut self, id: &BindingIdentifier<'_>) {
        match id.symbol_id.get() {
            Some(symbol) => self.init_symbol(symbol),
            None => self.op(Op::Pop),
        }
    }

    pub(super) fn init_symbol(&mut self, symbol: SymbolId) {
        if let Some((at, AliasKind::Parameter)) = self.alias(symbol) {
            self.store_where(at, false);
            return;
        }
        match self.find(symbol) {
            Where::Global => {
                let name = self.scoping.symbol_name(symbol).to_owned();
                let name = self.str_const(&name);
                self.op_c(Op::SetGlobal, name);
            }
            at => self.store_where(at, false),
        }
    }
}
