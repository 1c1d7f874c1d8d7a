//! Assignment, compound assignment, update, delete.
//!
//! Owns: references, that is the operands a target needs before its value. Must not: know patterns' insides.

use super::Compiler;
use crate::ops::Op;
use oxc_ast::ast::{
    AssignmentExpression, AssignmentTarget, Expression, SimpleAssignmentTarget, UnaryExpression,
    UpdateExpression,
};
use oxc_syntax::operator::{AssignmentOperator, UpdateOperator};

/// What a compound assignment does with its two values.
fn binary_op(operator: AssignmentOperator) -> Option<Op> {
    Some(match operator {
        AssignmentOperator::Addition => Op::Add,
        AssignmentOperator::Subtraction => Op::Sub,
        AssignmentOperator::Multiplication => Op::Mul,
        AssignmentOperator::Division => Op::Div,
        AssignmentOperator::Remainder => Op::Mod,
        AssignmentOperator::Exponential => Op::Exp,
        AssignmentOperator::ShiftLeft => Op::Shl,
        AssignmentOperator::ShiftRight => Op::Shr,
        AssignmentOperator::ShiftRightZeroFill => Op::Ushr,
        AssignmentOperator::BitwiseOR => Op::BitOr,
        AssignmentOperator::BitwiseXOR => Op::BitXor,
        AssignmentOperator::BitwiseAnd => Op::BitAnd,
        _ => return None,
    })
}

/// Looks through TypeScript's type-only wrappers of a target.
fn bare<'t, 'a>(target: &'t SimpleAssignmentTarget<'a>) -> Target<'t, 'a> {
    match target {
        SimpleAssignmentTarget::AssignmentTargetIdentifier(id) => Target::Ident(id),
        SimpleAssignmentTarget::TSAsExpression(e) => bare_expr(&e.expression),
        SimpleAssignmentTarget::TSSatisfiesExpression(e) => bare_expr(&e.expression),
        SimpleAssignmentTarget::TSNonNullExpression(e) => bare_expr(&e.expression),
        SimpleAssignmentTarget::TSTypeAssertion(e) => bare_expr(&e.expression),
        SimpleAssignmentTarget::ComputedMemberExpression(m) => match &m.object {
            Expression::Super(_) => Target::SuperElem(&m.expression),
            object => Target::Elem(object, &m.expression),
        },
        SimpleAssignmentTarget::StaticMemberExpression(m) => match &m.object {
            Expression::Super(_) => Target::Super(m.property.name.as_str()),
            object => Target::Prop(object, m.property.name.as_str()),
        },
        SimpleAssignmentTarget::PrivateFieldExpression(m) => {
            Target::Private(&m.object, m.field.name.as_str())
        }
    }
}

fn bare_expr<'t, 'a>(e: &'t Expression<'a>) -> Target<'t, 'a> {
    match e {
        Expression::Identifier(id) => Target::Ident(id),
        Expression::TSAsExpression(e) => bare_expr(&e.expression),
        Expression::TSSatisfiesExpression(e) => bare_expr(&e.expression),
        Expression::TSNonNullExpression(e) => bare_expr(&e.expression),
        Expression::TSTypeAssertion(e) => bare_expr(&e.expression),
        Expression::ComputedMemberExpression(m) => match &m.object {
            Expression::Super(_) => Target::SuperElem(&m.expression),
            object => Target::Elem(object, &m.expression),
        },
        Expression::StaticMemberExpression(m) => match &m.object {
            Expression::Super(_) => Target::Super(m.property.name.as_str()),
            object => Target::Prop(object, m.property.name.as_str()),
        },
        Expression::PrivateFieldExpression(m) => Target::Private(&m.object, m.field.name.as_str()),
        _ => Target::Invalid,
    }
}

enum Target<'t, 'a> {
    Ident(&'t oxc_ast::ast::IdentifierReference<'a>),
    Prop(&'t Expression<'a>, &'t str),
    Elem(&'t Expression<'a>, &'t Expression<'a>),
    Super(&'t str),
    SuperElem(&'t Expression<'a>),
    Private(&'t Expression<'a>, &'t str),
    Invalid,
}

impl Compiler<'_, '_> {
    /// Pushes what a target needs before its value; gives the number of operands (0, 1 or 2).
    pub(super) fn prepare_target(&mut self, target: &SimpleAssignmentTarget<'_>) -> u16 {
        self.prepare(&bare(target))
    }

    fn prepare(&mut self, target: &Target<'_, '_>) -> u16 {
        match target {
            Target::Ident(_) | Target::Invalid => 0,
            Target::Prop(object, _) => {
                self.expr(object);
                1
            }
            Target::Elem(object, key) => {
                self.expr(object);
                self.expr(key);
                2
            }
            Target::Super(name) => {
                self.load_this();
                let name = self.str_const(name);
                self.op_c(Op::Const, name);
                2
            }
            Target::SuperElem(key) => {
                self.load_this();
                self.expr(key);
                2
            }
            Target::Private(object, name) => {
                self.expr(object);
                self.load_private(name);
                2
            }
        }
    }

    /// Pops operands and value.
    pub(super) fn store_target(&mut self, target: &SimpleAssignmentTarget<'_>) {
        let target = bare(target);
        if let Target::Ident(id) = target {
            self.store_ident(id);
        } else {
            self.store_member(&target);
            self.op(Op::Pop);
        }
    }

    /// operands value -> value
    fn store_member(&mut self, target: &Target<'_, '_>) {
        match target {
            Target::Prop(_, name) => {
                let name = self.str_const(name);
                self.op_c(Op::SetProp, name);
            }
            Target::Elem(..) => self.op(Op::SetElem),
            Target::Super(_) | Target::SuperElem(_) => self.op(Op::SetSuper),
            Target::Private(_, name) => {
                let _ = name;
                self.op(Op::SetPriv);
            }
            Target::Ident(_) | Target::Invalid => {}
        }
    }

    /// operands -> operands value
    fn load_member(&mut self, target: &Target<'_, '_>) {
        match target {
            Target::Prop(_, name) => {
                self.op(Op::Dup);
                let name = self.str_const(name);
                self.op_c(Op::GetProp, name);
            }
            Target::Elem(..) => {
                self.op(Op::ToKeyOf);
                self.op(Op::Dup2);
                self.op(Op::GetElem);
            }
            Target::Super(_) | Target::SuperElem(_) => {
                self.op(Op::ToKey);
                self.op(Op::Dup2);
                self.op(Op::GetSuper);
            }
            Target::Private(..) => {
                self.op(Op::Dup2);
                self.op(Op::GetPriv);
            }
            Target::Ident(id) => self.load_ident(id, false),
            Target::Invalid => self.op(Op::Undef),
        }
    }

    pub(super) fn assignment(&mut self, a: &AssignmentExpression<'_>, wanted: bool) {
        let Some(simple) = a.left.as_simple_assignment_target() else {
            self.expr(&a.right);
            if wanted {
                self.op(Op::Dup);
            }
            let mark = self.f().mark();
            self.assign_target(&a.left);
            self.f().release(mark);
            return;
        };
        let target = bare(simple);
        if let Target::Invalid = target {
            self.refuse(a.span.start, "this cannot be assigned to");
            return;
        }
        match a.operator {
            AssignmentOperator::Assign => {
                self.prepare(&target);
                match target {
                    Target::Ident(id)
                        if matches!(a.left, AssignmentTarget::AssignmentTargetIdentifier(_)) =>
                    {
                        self.expr_named(&a.right, id.name.as_str());
                    }
                    _ => self.expr(&a.right),
                }
            }
            AssignmentOperator::LogicalAnd
            | AssignmentOperator::LogicalOr
            | AssignmentOperator::LogicalNullish => {
                self.logical_assignment(a, &target, wanted);
                return;
            }
            operator => {
                if let (AssignmentOperator::Addition, Target::Ident(id), false) = (operator, &target, wanted)
                    && let Some(local) = self.plain_local(id)
                    && !may_suspend(&a.right)
                {
                    if let Expression::Identifier(right) = &a.right
                        && let Some(right) = self.plain_local(right)
                    {
                        self.f().position(a.span.start);
                        self.f().emit(Op::AddLocLoc, u32::from(local), right);
                        return;
                    }
                    self.expr(&a.right);
                    self.f().position(a.span.start);
                    self.op_c(Op::AddLoc, u32::from(local));
                    return;
                }
                self.prepare(&target);
                self.load_member(&target);
                self.expr(&a.right);
                self.f().position(a.span.start);
                if let Some(op) = binary_op(operator) {
                    self.op(op);
                }
            }
        }
        self.f().position(a.span.start);
        self.finish_store(&target, wanted);
    }

    fn finish_store(&mut self, target: &Target<'_, '_>, wanted: bool) {
        if let Target::Ident(id) = target {
            if wanted {
                self.op(Op::Dup);
            }
            self.store_ident(id);
        } else {
            self.store_member(target);
            if !wanted {
                self.op(Op::Pop);
            }
        }
    }

    fn logical_assignment(&mut self, a: &AssignmentExpression<'_>, target: &Target<'_, '_>, wanted: bool) {
        let (short, end) = (self.label(), self.label());
        let operands = self.prepare(target);
        self.load_member(target);
        let op = match a.operator {
            AssignmentOperator::LogicalAnd => Op::JFalseKeep,
            AssignmentOperator::LogicalOr => Op::JTrueKeep,
            _ => Op::JNotNullishKeep,
        };
        self.jump(op, short);
        self.op(Op::Pop);
        match target {
            Target::Ident(id) => self.expr_named(&a.right, id.name.as_str()),
            _ => self.expr(&a.right),
        }
        self.finish_store(target, true);
        self.jump(Op::Jump, end);
        self.bind(short);
        for _ in 0..operands {
            self.op(Op::Swap);
            self.op(Op::Pop);
        }
        self.bind(end);
        if !wanted {
            self.op(Op::Pop);
        }
    }

    pub(super) fn update(&mut self, u: &UpdateExpression<'_>, wanted: bool) {
        let target = bare(&u.argument);
        let op = if u.operator == UpdateOperator::Increment { Op::Inc } else { Op::Dec };
        if let (false, Target::Ident(id)) = (wanted, &target)
            && let Some(local) = self.plain_local(id)
        {
            self.op_c(if op == Op::Inc { Op::IncLoc } else { Op::DecLoc }, u32::from(local));
            return;
        }
        let operands = self.prepare(&target);
        self.load_member(&target);
        self.op(Op::ToNumeric);
        if wanted && !u.prefix {
            // The old value goes beneath the operands.
            self.op(Op::Dup);
            match operands {
                0 => {}
                1 => self.op(Op::Rot3),
                _ => self.op(Op::Rot4),
            }
        }
        self.op(op);
        let keep_new = wanted && u.prefix;
        self.finish_store(&target, keep_new);
    }

    pub(super) fn delete(&mut self, u: &UnaryExpression<'_>) {
        match &u.argument {
            Expression::ComputedMemberExpression(m) if matches!(m.object, Expression::Super(_)) => {
                self.load_this();
                self.op(Op::Pop);
                self.expr(&m.expression);
                self.op(Op::Pop);
                self.delete_super();
            }
            Expression::StaticMemberExpression(m) if matches!(m.object, Expression::Super(_)) => {
                self.load_this();
                self.op(Op::Pop);
                self.delete_super();
            }
            Expression::ComputedMemberExpression(m) => {
                self.expr(&m.object);
                self.expr(&m.expression);
                self.op(Op::DelElem);
            }
            Expression::StaticMemberExpression(m) => {
                self.expr(&m.object);
                let name = self.str_const(m.property.name.as_str());
                self.op_c(Op::Const, name);
                self.op(Op::DelElem);
            }
            Expression::ChainExpression(c) => self.chain(c, true),
            other => {
                self.expr_void(other);
                self.op(Op::True);
            }
        }
    }

    fn delete_super(&mut self) {
        let message = self.str_const("Unsupported reference to 'super'");
        self.f().emit(Op::ThrowErr, message, 1);
        let depth = self.f().depth();
        self.f().set_depth(depth + 1);
        let after = self.label();
        self.bind(after);
    }
}

/// May evaluating this change the variable on the left? (`x += yield`, `x += f()` where f assigns x.)
fn may_suspend(e: &Expression<'_>) -> bool {
    match e {
        Expression::Identifier(_) | Expression::NumericLiteral(_) | Expression::StringLiteral(_) => false,
        Expression::StaticMemberExpression(m) => !matches!(m.object, Expression::Identifier(_)),
        _ => true,
    }
}
