//! Member access and optional chains.
//!
//! Owns: the early end of a chain. Must not: compile calls, except as links of a chain.

use super::Compiler;
use super::expr::OptionalChain;
use crate::ops::Opcode;
use oxc_ast::ast::{ChainElement, ChainExpression, Expression};

impl Compiler<'_, '_> {
    /// Pushes a property's value.
    pub(super) fn member(&mut self, e: &Expression<'_>, chain: Option<OptionalChain>) {
        match e {
            Expression::StaticMemberExpression(m) => {
                let name = self.str_const(m.property.name.as_str());
                if let Expression::Super(_) = m.object {
                    self.load_this();
                    self.op_c(Opcode::Const, name);
                    self.f().position(m.span.start);
                    self.op(Opcode::GetSuper);
                    return;
                }
                self.object_part(&m.object, chain, m.optional);
                self.f().position(m.property.span.start);
                self.op_c(Opcode::GetProp, name);
            }
            Expression::ComputedMemberExpression(m) => {
                if let Expression::Super(_) = m.object {
                    self.load_this();
                    self.expr(&m.expression);
                    self.f().position(m.span.start);
                    self.op(Opcode::GetSuper);
                    return;
                }
                self.object_part(&m.object, chain, m.optional);
                self.expr(&m.expression);
                self.f().position(m.span.start);
                self.op(Opcode::GetElem);
            }
            Expression::PrivateFieldExpression(m) => {
                self.object_part(&m.object, chain, m.optional);
                self.load_private(m.field.name.as_str());
                self.f().position(m.span.start);
                self.op(Opcode::GetPriv);
            }
            _ => self.expr(e),
        }
    }

    /// Pushes the object of a member access inside an optional chain.
    pub(super) fn object_part(&mut self, e: &Expression<'_>, chain: Option<OptionalChain>, optional: bool) {
        self.chain_part(e, chain);
        if let (true, Some(chain)) = (optional, chain) {
            self.op(Opcode::Dup);
            self.jump(Opcode::JNullish, chain.one);
        }
    }

    pub(super) fn chain_part(&mut self, e: &Expression<'_>, chain: Option<OptionalChain>) {
        match e {
            Expression::CallExpression(c) => self.call(c, chain),
            Expression::ComputedMemberExpression(_)
            | Expression::StaticMemberExpression(_)
            | Expression::PrivateFieldExpression(_) => self.member(e, chain),
            Expression::TSNonNullExpression(n) => self.chain_part(&n.expression, chain),
            _ => self.expr(e),
        }
    }

    /// The check of `f?.()` with `f this` on the stack.
    pub(super) fn optional_callee(&mut self, chain: Option<OptionalChain>) {
        if let Some(chain) = chain {
            self.op(Opcode::Swap);
            self.op(Opcode::Dup2);
            self.op(Opcode::Swap);
            self.op(Opcode::Pop);
            self.jump(Opcode::JNullish, chain.two);
            self.op(Opcode::Swap);
        }
    }

    pub(super) fn chain(&mut self, c: &ChainExpression<'_>, delete: bool) {
        let chain = OptionalChain { one: self.label(), two: self.label() };
        let end = self.label();
        let depth = self.f().depth();
        self.chain_element(&c.expression, chain, delete);
        self.jump(Opcode::Jump, end);
        self.f().set_depth(depth + 2);
        self.bind(chain.two);
        self.op(Opcode::Pop);
        self.bind(chain.one);
        self.op(Opcode::Pop);
        self.op(if delete { Opcode::True } else { Opcode::Undef });
        self.bind(end);
    }

    pub(super) fn chain_element(&mut self, e: &ChainElement<'_>, chain: OptionalChain, delete: bool) {
        match e {
            ChainElement::CallExpression(c) => {
                self.call(c, Some(chain));
                if delete {
                    self.op(Opcode::Pop);
                    self.op(Opcode::True);
                }
            }
            ChainElement::TSNonNullExpression(n) => self.chain_part(&n.expression, Some(chain)),
            ChainElement::ComputedMemberExpression(m) => {
                self.object_part(&m.object, Some(chain), m.optional);
                self.expr(&m.expression);
                self.f().position(m.span.start);
                self.op(if delete { Opcode::DelElem } else { Opcode::GetElem });
            }
            ChainElement::StaticMemberExpression(m) => {
                self.object_part(&m.object, Some(chain), m.optional);
                let name = self.str_const(m.property.name.as_str());
                self.f().position(m.property.span.start);
                if delete {
                    self.op_c(Opcode::Const, name);
                    self.op(Opcode::DelElem);
                } else {
                    self.op_c(Opcode::GetProp, name);
                }
            }
            ChainElement::PrivateFieldExpression(m) => {
                self.object_part(&m.object, Some(chain), m.optional);
                self.load_private(m.field.name.as_str());
                self.f().position(m.span.start);
                self.op(Opcode::GetPriv);
            }
        }
    }
}
