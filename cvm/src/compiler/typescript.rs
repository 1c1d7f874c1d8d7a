//! TypeScript with a meaning at run time: enums.
//!
//! Owns: enum objects with reverse mapping, and members by their bare names in later initialisers. Must not: check types.

use super::Compiler;
use super::scope::{Alias, AliasKind};
use crate::ops::Opcode;
use oxc_ast::ast::{Expression, TSEnumDeclaration};

impl Compiler<'_, '_> {
    pub(super) fn ts_enum(&mut self, e: &TSEnumDeclaration<'_>) {
        if e.declare {
            return;
        }
        if e.id.symbol_id.get().is_some_and(|s| !self.scoping.symbol_redeclarations(s).is_empty()) {
            self.refuse(e.span.start, "enums in several declarations are not supported: write one");
        }
        let mark = self.f().mark();
        self.push_scope_cell();
        let slot = format!("enum {}", e.span.start);
        self.op(Opcode::NewObject);
        self.op(Opcode::Dup);
        self.store_name(&slot);
        self.init_binding(&e.id);
        let last = self.f().local();
        self.op_c(Opcode::Int, u32::MAX);
        self.store_local(last);
        let members = e.body.scope_id.get().map(|s| self.symbols_in(s)).unwrap_or_default();
        let aliases = self.aliases.len();
        for symbol in members {
            self.aliases.push(Alias { symbol, name: slot.clone(), kind: AliasKind::Member });
        }
        for member in &e.body.members {
            self.f().position(member.span.start);
            self.enum_member(member, &slot, last);
        }
        self.aliases.truncate(aliases);
        self.pop_scope_cell();
        self.f().release(mark);
    }

    fn enum_member(&mut self, member: &oxc_ast::ast::TSEnumMember<'_>, slot: &str, last: u16) {
        let Some(object) = self.find_name(slot) else { return };
        let name = self.str_const(&member.id.static_name());
        self.load_at(object, false);
        match &member.initializer {
            Some(init) => self.expr(init),
            None => {
                self.load_local(last);
                self.op_c(Opcode::AddInt, 1);
            }
        }
        self.op_c(Opcode::TeeLoc, u32::from(last));
        self.op_c(Opcode::DefField, name);
        // Numeric members have a reverse mapping, string members do not.
        let text = self.label();
        if !matches!(member.initializer, None | Some(Expression::NumericLiteral(_))) {
            self.load_local(last);
            self.op(Opcode::Typeof);
            let string = self.str_const("string");
            self.op_c(Opcode::Const, string);
            self.jump(Opcode::JSeq, text);
        }
        self.load_local(last);
        self.op_c(Opcode::Const, name);
        self.op(Opcode::DefElem);
        self.bind(text);
        self.op(Opcode::Pop);
    }
}
