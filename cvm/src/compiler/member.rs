//! Member access and optional chains.
//!
//! Owns: where a chain ends early. Must not: know calls beyond their place in a chain.

use super::Compiler;
use super::expr::Chain;
use crate::ops::Op;
use oxc_ast::ast::{ChainElement, ChainExpression, Expression};

impl Compiler<'_, '_> {
    /// Pushes a property's value.
    pub(super) fn member(&mut self, e: &Expression<'_>, chain: Option<Chain>) {
        match e {
            Expression::StaticMemberExpression(m) => {
                let name = self.str_const(m.property.name.as_str());
                if let Expression::Super(_) = m.object {
                    self.load_this();
                    self.op_c(Op::Const, name);
                    self.f().position(m.span.start);
                    self.op(Op::GetSuper);
                    return;
                }
                self.object_part(&m.object, chain, m.optional);
                self.f().position(m.property.span.start);
                self.op_c(Op::GetProp, name);
            }
            Expression::ComputedMemberExpression(m) => {
                if let Expression::Super(_) = m.object {
                    self.load_this();
                    self.expr(&m.expression);
                    self.f().position(m.span.start);
                    self.op(Op::GetSuper);
                    return;
                }
                self.object_part(&m.object, chain, m.optional);
                self.expr(&m.expression);
                self.f().position(m.span.start);
                self.op(Op::GetElem);
            }
            Expression::PrivateFieldExpression(m) => {
                self.object_part(&m.object, chain, m.optional);
                self.load_private(m.field.name.as_str());
                self.f().position(m.span.start);
                self.op(Op::GetPriv);
            }
            _ => self.expr(e),
        }
    }

    /// Pushes the object of a member access inside an optional chain.
    pub(super) fn object_part(&mut self, e: &Expression<'_>, chain: Option<Chain>, optional: bool) {
        self.chain_part(e, chain);
        if let (true, Some(chain)) = (optional, chain) {
            self.op(Op::Dup);
            self.jump(Op::JNullish, chain.one);
        }
    }

    pub(super) fn chain_part(&mut self, e: &Expression<'_>, chain: Option<Chain>) {
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
    pub(super) fn optional_callee(&mut self, chain: Option<Chain>) {
        if let Some(chain) = chain {
            self.op(Op::Swap);
            self.op(Op::Dup2);
            self.op(Op::Swap);
            self.op(Op::Pop);
            self.jump(Op::JNullish, chain.two);
            self.op(Op::Swap);
        }
    }

    pub(super) fn chain(&mut self, c: &ChainExpression<'_>, delete: bool) {
        let chain = Chain { one: self.label(), two: self.label() };
        let end = self.label();
        let depth = self.f().depth();
        self.chain_element(&c.expression, chain, delete);
        self.jump(Op::Jump, end);
        self.f().set_depth(depth + 2);
        self.bind(chain.two);
        self.op(Op::Pop);
        self.bind(chain.one);
        self.op(Op::Pop);
        self.op(if delete { Op::True } else { Op::Undef });
        self.bind(end);
    }

    pub(super) fn chain_element(&mut self, e: &ChainElement<'_>, chain: Chain, delete: bool) {
        match e {
            ChainElement::CallExpression(c) => {
                self.call(c, Some(chain));
                if delete {
                    self.op(Op::Pop);
                    self.op(Op::True);
                }
            }
            ChainElement::TSNonNullExpression(n) => self.chain_part(&n.expression, Some(chain)),
            ChainElement::ComputedMemberExpression(m) => {
                self.object_part(&m.object, Some(chain), m.optional);
                self.expr(&m.expression);
                self.f().position(m.span.start);
                self.op(if delete { Op::DelElem } else { Op::GetElem });
            }
            ChainElement::StaticMemberExpression(m) => {
                self.object_part(&m.object, Some(chain), m.optional);
                let name = self.str_const(m.property.name.as_str());
                self.f().position(m.property.span.start);
                if delete {
                    self.op_c(Op::Const, name);
                    self.op(Op::DelElem);
                } else {
                    self.op_c(Op::GetProp, name);
                }
            }
            ChainElement::PrivateFieldExpression(m) => {
                self.object_part(&m.object, Some(chain), m.optional);
                self.load_private(m.field.name.as_str());
                self.f().position(m.span.start);
                self.op(Op::GetPriv);
            }
        }
    }
}
