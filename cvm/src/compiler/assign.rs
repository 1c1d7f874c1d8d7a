//! Assignment, compound assignment, update, delete.
//!
//! Owns: references, that is, the operands that a target needs before its value. Must not: compile patterns.

use super::Compiler;
use crate::ops::Opcode;
use oxc_ast::ast::{
    AssignmentExpression, AssignmentTarget, Expression, SimpleAssignmentTarget, UnaryExpression,
    UpdateExpression,
};
use oxc_syntax::operator::{AssignmentOperator, UpdateOperator};

/// The binary operation of a compound assignment.
fn binary_op(operator: AssignmentOperator) -> Option<Opcode> {
    Some(match operator {
        AssignmentOperator::Addition => Opcode::Add,
        AssignmentOperator::Subtraction => Opcode::Sub,
        AssignmentOperator::Multiplication => Opcode::Mul,
        AssignmentOperator::Division => Opcode::Div,
        AssignmentOperator::Remainder => Opcode::Mod,
        AssignmentOperator::Exponential => Opcode::Exp,
        AssignmentOperator::ShiftLeft => Opcode::Shl,
        AssignmentOperator::ShiftRight => Opcode::Shr,
        AssignmentOperator::ShiftRightZeroFill => Opcode::Ushr,
        AssignmentOperator::BitwiseOR => Opcode::BitOr,
        AssignmentOperator::BitwiseXOR => Opcode::BitXor,
        AssignmentOperator::BitwiseAnd => Opcode::BitAnd,
        _ => return None,
    })
}

/// Strips TypeScript's type-only wrappers of a target.
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
    /// Pushes the operands that a target needs before its value; returns their number (0, 1 or 2).
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
                self.op_c(Opcode::Const, name);
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
            self.op(Opcode::Pop);
        }
    }

    /// operands value -> value
    fn store_member(&mut self, target: &Target<'_, '_>) {
        match target {
            Target::Prop(_, name) => {
                let name = self.str_const(name);
                self.op_c(Opcode::SetProp, name);
            }
            Target::Elem(..) => self.op(Opcode::SetElem),
            Target::Super(_) | Target::SuperElem(_) => self.op(Opcode::SetSuper),
            Target::Private(_, name) => {
                let _ = name;
                self.op(Opcode::SetPriv);
            }
            Target::Ident(_) | Target::Invalid => {}
        }
    }

    /// operands -> operands value
    fn load_member(&mut self, target: &Target<'_, '_>) {
        match target {
            Target::Prop(_, name) => {
                self.op(Opcode::Dup);
                let name = self.str_const(name);
                self.op_c(Opcode::GetProp, name);
            }
            Target::Elem(..) => {
                self.op(Opcode::ToKeyOf);
                self.op(Opcode::Dup2);
                self.op(Opcode::GetElem);
            }
            Target::Super(_) | Target::SuperElem(_) => {
                self.op(Opcode::ToKey);
                self.op(Opcode::Dup2);
                self.op(Opcode::GetSuper);
            }
            Target::Private(..) => {
                self.op(Opcode::Dup2);
                self.op(Opcode::GetPriv);
            }
            Target::Ident(id) => self.load_ident(id, false),
            Target::Invalid => self.op(Opcode::Undef),
        }
    }

    pub(super) fn assignment(&mut self, a: &AssignmentExpression<'_>, wanted: bool) {
        let Some(simple) = a.left.as_simple_assignment_target() else {
            self.expr(&a.right);
            if wanted {
                self.op(Opcode::Dup);
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
                        self.f().emit(Opcode::AddLocLoc, u32::from(local), right);
                        return;
                    }
                    self.expr(&a.right);
                    self.f().position(a.span.start);
                    self.op_c(Opcode::AddLoc, u32::from(local));
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
                self.op(Opcode::Dup);
            }
            self.store_ident(id);
        } else {
            self.store_member(target);
            if !wanted {
                self.op(Opcode::Pop);
            }
        }
    }

    fn logical_assignment(&mut self, a: &AssignmentExpression<'_>, target: &Target<'_, '_>, wanted: bool) {
        let (short, end) = (self.label(), self.label());
        let operands = self.prepare(target);
        self.load_member(target);
        let op = match a.operator {
            AssignmentOperator::LogicalAnd => Opcode::JFalseKeep,
            AssignmentOperator::LogicalOr => Opcode::JTrueKeep,
            _ => Opcode::JNotNullishKeep,
        };
        self.jump(op, short);
        self.op(Opcode::Pop);
        match target {
            Target::Ident(id) => self.expr_named(&a.right, id.name.as_str()),
            _ => self.expr(&a.right),
        }
        self.finish_store(target, true);
        self.jump(Opcode::Jump, end);
        self.bind(short);
        for _ in 0..operands {
            self.op(Opcode::Swap);
            self.op(Opcode::Pop);
        }
        self.bind(end);
        if !wanted {
            self.op(Opcode::Pop);
        }
    }

    pub(super) fn update(&mut self, u: &UpdateExpression<'_>, wanted: bool) {
        let target = bare(&u.argument);
        let op = if u.operator == UpdateOperator::Increment { Opcode::Inc } else { Opcode::Dec };
        if let (false, Target::Ident(id)) = (wanted, &target)
            && let Some(local) = self.plain_local(id)
        {
            self.op_c(if op == Opcode::Inc { Opcode::IncLoc } else { Opcode::DecLoc }, u32::from(local));
            return;
        }
        let operands = self.prepare(&target);
        self.load_member(&target);
        self.op(Opcode::ToNumeric);
        if wanted && !u.prefix {
            // Moves the old value beneath the operands.
            self.op(Opcode::Dup);
            match operands {
                0 => {}
                1 => self.op(Opcode::Rot3),
                _ => self.op(Opcode::Rot4),
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
                self.op(Opcode::Pop);
                self.expr(&m.expression);
                self.op(Opcode::Pop);
                self.delete_super();
            }
            Expression::StaticMemberExpression(m) if matches!(m.object, Expression::Super(_)) => {
                self.load_this();
                self.op(Opcode::Pop);
                self.delete_super();
            }
            Expression::ComputedMemberExpression(m) => {
                self.expr(&m.object);
                self.expr(&m.expression);
                self.op(Opcode::DelElem);
            }
            Expression::StaticMemberExpression(m) => {
                self.expr(&m.object);
                let name = self.str_const(m.property.name.as_str());
                self.op_c(Opcode::Const, name);
                self.op(Opcode::DelElem);
            }
            Expression::ChainExpression(c) => self.chain(c, true),
            other => {
                self.expr_void(other);
                self.op(Opcode::True);
            }
        }
    }

    fn delete_super(&mut self) {
        let message = self.str_const("Unsupported reference to 'super'");
        self.f().emit(Opcode::ThrowErr, message, 1);
        let depth = self.f().depth();
        self.f().set_depth(depth + 1);
        let after = self.label();
        self.bind(after);
    }
}

/// Whether evaluating this may change the variable on the left (`x += yield`, `x += f()` where f assigns x).
fn may_suspend(e: &Expression<'_>) -> bool {
    match e {
        Expression::Identifier(_) | Expression::NumericLiteral(_) | Expression::StringLiteral(_) => false,
        Expression::StaticMemberExpression(m) => !matches!(m.object, Expression::Identifier(_)),
        _ => true,
    }
}
