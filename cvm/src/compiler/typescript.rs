//! TypeScript that has a meaning at run time: enums.
//!
//! Owns: enum objects with reverse mapping. Must not: look at types.

use super::Compiler;
use crate::ops::Op;
use oxc_ast::ast::{Expression, TSEnumDeclaration};

impl Compiler<'_, '_> {
    pub(super) fn ts_enum(&mut self, e: &TSEnumDeclaration<'_>) {
        if e.declare {
            return;
        }
        let mark = self.f().mark();
        let object = self.f().local();
        let last = self.f().local();
        self.op(Op::NewObject);
        self.store_local(object);
        self.op_c(Op::Int, u32::MAX);
        self.store_local(last);
        let mut members: Vec<String> = Vec::new();
        for member in &e.body.members {
            let name = member.id.static_name().to_string();
            let text = matches!(
                member.initializer,
                Some(Expression::StringLiteral(_) | Expression::TemplateLiteral(_))
            );
            match &member.initializer {
                Some(Expression::Identifier(id)) if members.iter().any(|m| m == id.name.as_str()) => {
                    self.load_local(object);
                    let other = self.str_const(id.name.as_str());
                    self.op_c(Op::GetProp, other);
                }
                Some(init) => self.expr(init),
                None => {
                    self.load_local(last);
                    self.op_c(Op::AddInt, 1);
                }
            }
            self.op_c(Op::TeeLoc, u32::from(last));
            self.load_local(object);
            self.op(Op::Swap);
            let constant = self.str_const(&name);
            self.op_c(Op::DefField, constant);
            if !text {
                self.load_local(last);
                self.op_c(Op::Const, constant);
                self.op(Op::DefElem);
            }
            self.op(Op::Pop);
            members.push(name);
        }
        self.load_local(object);
        self.init_binding(&e.id);
        self.f().release(mark);
    }
}
