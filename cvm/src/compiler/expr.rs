//! Expressions, except calls, assignment, functions and classes.
//!
//! Owns: evaluation order within an expression. Must not: decide where variables are stored.

use super::emit::{Label, ThisLocation};
use super::{CompileErrorKind, Compiler};
use crate::ops::Opcode;
use crate::program::{Const, flag};
use oxc_ast::ast::{
    ArrayExpression, ArrayExpressionElement, BinaryExpression, Expression, ObjectExpression,
    ObjectPropertyKind, PropertyKey, PropertyKind, RegExpFlags, StringLiteral, TemplateLiteral,
    UnaryExpression,
};
use oxc_span::GetSpan;
use oxc_syntax::operator::{BinaryOperator, LogicalOperator, UnaryOperator};

/// Labels of an optional chain: the targets for one and for two operands on the stack.
#[derive(Clone, Copy)]
pub(super) struct OptionalChain {
    pub(super) one: Label,
    pub(super) two: Label,
}

impl OptionalChain {
    pub(super) fn with_labels(one: Label, two: Label) -> OptionalChain {
        OptionalChain { one, two }
    }

    pub(super) fn labels(self) -> (Label, Label) {
        (self.one, self.two)
    }
}

impl Compiler<'_, '_> {
    /// Evaluates for the effect only.
    pub(super) fn expr_void(&mut self, e: &Expression<'_>) {
        match e {
            Expression::AssignmentExpression(a) => self.assignment(a, false),
            Expression::UpdateExpression(u) => self.update(u, false),
            Expression::SequenceExpression(s) => s.expressions.iter().for_each(|e| self.expr_void(e)),
            _ => {
                self.expr(e);
                self.op(Opcode::Pop);
            }
        }
    }

    /// Pushes the value; an anonymous function or class has the name `name`.
    pub(super) fn expr_named(&mut self, e: &Expression<'_>, name: &str) {
        match e {
            Expression::FunctionExpression(f) if f.id.is_none() => self.function(f, Some(name), 0),
            Expression::ArrowFunctionExpression(a) => self.arrow(a, Some(name)),
            Expression::ClassExpression(c) if c.id.is_none() => self.class(c, Some(name)),
            _ => self.expr(e),
        }
    }

    /// Pushes the value.
    pub(super) fn expr(&mut self, e: &Expression<'_>) {
        match e {
            Expression::NumericLiteral(n) => self.number(n.value),
            Expression::StringLiteral(s) => self.string(s),
            Expression::BooleanLiteral(b) => self.op(if b.value { Opcode::True } else { Opcode::False }),
            Expression::NullLiteral(_) => self.op(Opcode::Null),
            Expression::BigIntLiteral(b) => {
                let c = self.big_const(b.value.as_str());
                self.op_c(Opcode::Const, c);
            }
            Expression::RegExpLiteral(r) => {
                self.check_regexp(r);
                let pattern = self.str_const(r.regex.pattern.text.as_str());
                self.f().emit(Opcode::RegExp, pattern, flag_bits(r.regex.flags));
            }
            Expression::TemplateLiteral(t) => self.template(t),
            Expression::Identifier(id) => {
                self.f().position(id.span.start);
                self.load_ident(id, false);
            }
            Expression::ThisExpression(_) => self.load_this(),
            Expression::ArrayExpression(a) => self.array(a),
            Expression::ObjectExpression(o) => self.object(o),
            Expression::FunctionExpression(f) => self.function(f, Some(""), 0),
            Expression::ArrowFunctionExpression(a) => self.arrow(a, Some("")),
            Expression::ClassExpression(c) => self.class(c, Some("")),
            Expression::AssignmentExpression(a) => self.assignment(a, true),
            Expression::UpdateExpression(u) => self.update(u, true),
            Expression::UnaryExpression(u) => self.unary(u),
            Expression::BinaryExpression(b) => self.binary(b),
            Expression::LogicalExpression(l) => {
                let end = self.label();
                self.expr(&l.left);
                let op = match l.operator {
                    LogicalOperator::Or => Opcode::JTrueKeep,
                    LogicalOperator::And => Opcode::JFalseKeep,
                    LogicalOperator::Coalesce => Opcode::JNotNullishKeep,
                };
                self.jump(op, end);
                self.op(Opcode::Pop);
                self.expr(&l.right);
                self.bind(end);
            }
            Expression::ConditionalExpression(c) => {
                let (otherwise, end) = (self.label(), self.label());
                let depth = self.f().depth();
                self.condition(&c.test, otherwise);
                self.expr(&c.consequent);
                self.jump(Opcode::Jump, end);
                // No jump leads there if the test is `true`.
                self.f().set_depth(depth);
                self.bind(otherwise);
                self.expr(&c.alternate);
                self.bind(end);
            }
            Expression::SequenceExpression(s) => {
                if let Some((last, first)) = s.expressions.split_last() {
                    for e in first {
                        self.expr_void(e);
                    }
                    self.expr(last);
                }
            }
            Expression::ParenthesizedExpression(p) => self.expr(&p.expression),
            Expression::CallExpression(c) => self.call(c, None),
            Expression::NewExpression(n) => self.new_expression(n),
            Expression::TaggedTemplateExpression(t) => self.tagged(t),
            Expression::ComputedMemberExpression(_)
            | Expression::StaticMemberExpression(_)
            | Expression::PrivateFieldExpression(_) => self.member(e, None),
            Expression::ChainExpression(c) => self.chain(c, false),
            Expression::NewTarget(_) => self.op(Opcode::NewTarget),
            Expression::YieldExpression(y) => self.yield_expression(y),
            Expression::AwaitExpression(a) => {
                self.expr(&a.argument);
                self.f().position(a.span.start);
                self.await_value();
            }
            Expression::PrivateInExpression(p) => {
                self.expr(&p.right);
                self.load_private(p.left.name.as_str());
                self.f().position(p.span.start);
                self.op(Opcode::HasPriv);
            }
            Expression::TSAsExpression(e) => self.expr(&e.expression),
            Expression::TSSatisfiesExpression(e) => self.expr(&e.expression),
            Expression::TSTypeAssertion(e) => self.expr(&e.expression),
            Expression::TSNonNullExpression(e) => self.expr(&e.expression),
            Expression::TSInstantiationExpression(e) => self.expr(&e.expression),
            other => self.refuse_expression(other),
        }
    }

    fn refuse_expression(&mut self, e: &Expression<'_>) {
        let (kind, what) = match e {
            Expression::ImportExpression(_) => (
                CompileErrorKind::Unsupported,
                "`import()` is not supported: a program's files are known when it is loaded; use `import … from`",
            ),
            Expression::ImportMeta(_) => (
                CompileErrorKind::Unsupported,
                "`import.meta` is not supported: a program's files have no addresses",
            ),
            Expression::JSXElement(_) | Expression::JSXFragment(_) => {
                (CompileErrorKind::Invalid, "JSX is not supported")
            }
            Expression::Super(_) => (CompileErrorKind::Invalid, "`super` is not allowed here"),
            _ => (CompileErrorKind::Invalid, "this expression is not supported"),
        };
        self.refuse_as(kind, e.span().start, what);
        self.op(Opcode::Undef);
    }

    pub(super) fn number(&mut self, n: f64) {
        let i = n as i32;
        if f64::from(i) == n && (i != 0 || n.is_sign_positive()) {
            self.op_c(Opcode::Int, i as u32);
        } else {
            let c = self.number_const(n);
            self.op_c(Opcode::Const, c);
        }
    }

    fn string(&mut self, s: &StringLiteral<'_>) {
        let units = units_of(s.value.as_str(), s.lone_surrogates);
        let c = self.units_const(units);
        self.op_c(Opcode::Const, c);
    }

    fn template(&mut self, t: &TemplateLiteral<'_>) {
        let mut first = true;
        for (i, q) in t.quasis.iter().enumerate() {
            let cooked = q.value.cooked.as_ref().map_or("", |c| c.as_str());
            let units = units_of(cooked, q.lone_surrogates);
            if !units.is_empty() || first {
                let c = self.units_const(units);
                self.op_c(Opcode::Const, c);
                if !first {
                    self.op(Opcode::Add);
                }
                first = false;
            }
            if let Some(e) = t.expressions.get(i) {
                self.expr(e);
                self.f().position(e.span().start);
                self.op(Opcode::ToStr);
                self.op(Opcode::Add);
            }
        }
    }

    /// Adds the strings of a tagged template to the constants.
    pub(super) fn template_const(&mut self, t: &TemplateLiteral<'_>) -> u32 {
        let strings = t
            .quasis
            .iter()
            .map(|q| {
                let cooked = q.value.cooked.as_ref().map(|c| units_of(c.as_str(), q.lone_surrogates));
                (cooked, units_of(q.value.raw.as_str(), false))
            })
            .collect();
        self.unit.consts.push(Const::Template(strings));
        self.unit.consts.len() as u32 - 1
    }

    fn array(&mut self, a: &ArrayExpression<'_>) {
        let simple = a.elements.iter().take_while(|e| e.as_expression().is_some()).count().min(1000);
        for e in a.elements.iter().take(simple) {
            if let Some(e) = e.as_expression() {
                self.expr(e);
            }
        }
        self.op_b(Opcode::NewArray, simple as u16);
        for e in a.elements.iter().skip(simple) {
            match e {
                ArrayExpressionElement::SpreadElement(s) => {
                    self.expr(&s.argument);
                    self.f().position(s.span.start);
                    self.spread();
                }
                ArrayExpressionElement::Elision(_) => self.op(Opcode::ArrHole),
                other => {
                    if let Some(e) = other.as_expression() {
                        self.expr(e);
                        self.op(Opcode::ArrPush);
                    }
                }
            }
        }
    }

    /// array iterable -> array
    pub(super) fn spread(&mut self) {
        let mark = self.f().mark();
        let local = self.open_iterator();
        let (head, done) = (self.label(), self.label());
        self.bind(head);
        self.step_iterator(local, done);
        self.op(Opcode::ArrPush);
        self.jump(Opcode::Jump, head);
        self.bind(done);
        self.f().release(mark);
    }

    fn object(&mut self, o: &ObjectExpression<'_>) {
        self.op(Opcode::NewObject);
        for p in &o.properties {
            match p {
                ObjectPropertyKind::SpreadProperty(s) => {
                    self.expr(&s.argument);
                    self.f().position(s.span.start);
                    self.call_pre("CopyDataProperties", 2);
                }
                ObjectPropertyKind::ObjectProperty(p) => self.object_property(p),
            }
        }
    }

    fn object_property(&mut self, p: &oxc_ast::ast::ObjectProperty<'_>) {
        let name = if p.computed { None } else { p.key.static_name() };
        let kind = match p.kind {
            PropertyKind::Init => 0,
            PropertyKind::Get => 1,
            PropertyKind::Set => 2,
        };
        if p.method || kind != 0 {
            match &name {
                Some(n) => {
                    let c = self.str_const(n);
                    self.op_c(Opcode::Const, c);
                }
                None => {
                    self.property_key(&p.key);
                    self.op(Opcode::ToKey);
                }
            }
            if let Expression::FunctionExpression(f) = &p.value {
                let name = name.as_deref().map(|n| prefixed(kind, n));
                self.function(f, name.as_deref(), flag::METHOD);
            }
            self.op_b(Opcode::DefMethod, kind + 4);
            return;
        }
        match name {
            Some(n) if n == "__proto__" && !p.shorthand => {
                self.expr(&p.value);
                self.op(Opcode::SetProtoLit);
            }
            Some(n) => {
                self.expr_named(&p.value, &n);
                let c = self.str_const(&n);
                self.op_c(Opcode::DefField, c);
            }
            None => {
                self.property_key(&p.key);
                self.op(Opcode::ToKey);
                self.expr_named_by_key(&p.value);
                self.op(Opcode::DefElem);
            }
        }
    }

    /// key -> key value; an anonymous function is named after the key.
    pub(super) fn expr_named_by_key(&mut self, e: &Expression<'_>) {
        match e {
            Expression::FunctionExpression(f) if f.id.is_none() => self.function(f, None, 0),
            Expression::ArrowFunctionExpression(a) => self.arrow(a, None),
            Expression::ClassExpression(c) if c.id.is_none() => {
                self.class_named_by_key(c);
                return;
            }
            _ => {
                self.expr(e);
                return;
            }
        }
        self.op_b(Opcode::SetName, 0);
    }

    /// Pushes a property key's value, before its conversion.
    pub(super) fn property_key(&mut self, key: &PropertyKey<'_>) {
        match key {
            PropertyKey::StaticIdentifier(id) => {
                let c = self.str_const(id.name.as_str());
                self.op_c(Opcode::Const, c);
            }
            PropertyKey::PrivateIdentifier(id) => self.load_private(id.name.as_str()),
            other => match other.as_expression() {
                Some(e) => self.expr(e),
                None => self.op(Opcode::Undef),
            },
        }
    }

    pub(super) fn load_this(&mut self) {
        if self.f().this_at == ThisLocation::Frame {
            self.op(Opcode::LoadThis);
            return;
        }
        match self.find_derived(0) {
            Some(at) => self.load_at(at, false),
            None => self.op(Opcode::Undef),
        }
        self.op(Opcode::CheckThis);
    }

    fn unary(&mut self, u: &UnaryExpression<'_>) {
        let op = match u.operator {
            UnaryOperator::UnaryNegation => {
                if let Expression::NumericLiteral(n) = &u.argument {
                    self.number(-n.value);
                    return;
                }
                Opcode::Neg
            }
            UnaryOperator::UnaryPlus => Opcode::Plus,
            UnaryOperator::LogicalNot => Opcode::Not,
            UnaryOperator::BitwiseNot => Opcode::BitNot,
            UnaryOperator::Typeof => {
                match &u.argument {
                    Expression::Identifier(id) => self.load_ident(id, true),
                    other => self.expr(other),
                }
                self.op(Opcode::Typeof);
                return;
            }
            UnaryOperator::Void => {
                self.expr_void(&u.argument);
                self.op(Opcode::Undef);
                return;
            }
            UnaryOperator::Delete => {
                self.f().position(u.span.start);
                self.delete(u);
                return;
            }
        };
        self.expr(&u.argument);
        self.f().position(u.span.start);
        self.op(op);
    }

    /// `local < local` and `local < integer` as one instruction.
    fn less_of_locals(&mut self, b: &BinaryExpression<'_>) -> bool {
        let (BinaryOperator::LessThan, Expression::Identifier(left)) = (b.operator, &b.left) else {
            return false;
        };
        let Some(left) = self.plain_local(left) else { return false };
        match &b.right {
            Expression::NumericLiteral(n) if f64::from(n.value as i32) == n.value => {
                self.f().position(b.span.start);
                self.f().emit(Opcode::LtLocInt, n.value as i32 as u32, left);
                true
            }
            Expression::Identifier(right) => match self.plain_local(right) {
                Some(right) => {
                    self.f().position(b.span.start);
                    self.f().emit(Opcode::LtLocLoc, u32::from(left), right);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    fn binary(&mut self, b: &BinaryExpression<'_>) {
        if self.less_of_locals(b) {
            return;
        }
        self.expr(&b.left);
        if let (BinaryOperator::Addition | BinaryOperator::Subtraction, Expression::NumericLiteral(n)) =
            (b.operator, &b.right)
            && f64::from(n.value as i32) == n.value
            && n.value >= 0.0
        {
            self.f().position(b.span.start);
            let op = if b.operator == BinaryOperator::Addition { Opcode::AddInt } else { Opcode::SubInt };
            self.op_c(op, n.value as u32);
            return;
        }
        self.expr(&b.right);
        self.f().position(b.span.start);
        self.op(match b.operator {
            BinaryOperator::Equality => Opcode::Eq,
            BinaryOperator::Inequality => Opcode::Ne,
            BinaryOperator::StrictEquality => Opcode::StrictEq,
            BinaryOperator::StrictInequality => Opcode::StrictNe,
            BinaryOperator::LessThan => Opcode::Lt,
            BinaryOperator::LessEqualThan => Opcode::Le,
            BinaryOperator::GreaterThan => Opcode::Gt,
            BinaryOperator::GreaterEqualThan => Opcode::Ge,
            BinaryOperator::Addition => Opcode::Add,
            BinaryOperator::Subtraction => Opcode::Sub,
            BinaryOperator::Multiplication => Opcode::Mul,
            BinaryOperator::Division => Opcode::Div,
            BinaryOperator::Remainder => Opcode::Mod,
            BinaryOperator::Exponential => Opcode::Exp,
            BinaryOperator::ShiftLeft => Opcode::Shl,
            BinaryOperator::ShiftRight => Opcode::Shr,
            BinaryOperator::ShiftRightZeroFill => Opcode::Ushr,
            BinaryOperator::BitwiseOR => Opcode::BitOr,
            BinaryOperator::BitwiseXOR => Opcode::BitXor,
            BinaryOperator::BitwiseAnd => Opcode::BitAnd,
            BinaryOperator::In => Opcode::In,
            BinaryOperator::Instanceof => Opcode::InstanceOf,
        });
    }
}

/// Flag bits of a regular expression literal in the order `dgimsuvy`.
fn flag_bits(flags: RegExpFlags) -> u16 {
    let order = [
        RegExpFlags::D,
        RegExpFlags::G,
        RegExpFlags::I,
        RegExpFlags::M,
        RegExpFlags::S,
        RegExpFlags::U,
        RegExpFlags::V,
        RegExpFlags::Y,
    ];
    order.iter().enumerate().map(|(i, f)| u16::from(flags.contains(*f)) << i).sum()
}

pub(super) fn prefixed(kind: u16, name: &str) -> String {
    match kind {
        1 => format!("get {name}"),
        2 => format!("set {name}"),
        _ => name.to_owned(),
    }
}

/// UTF-16 units of literal text; the parser writes a lone surrogate as U+FFFD and four hexadecimal digits.
pub(super) fn units_of(text: &str, lone_surrogates: bool) -> Vec<u16> {
    if !lone_surrogates {
        return text.encode_utf16().collect();
    }
    let mut units = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '\u{FFFD}'
            && let Some(hex) = rest.get(..4)
            && let Ok(unit) = u16::from_str_radix(hex, 16)
        {
            units.push(unit);
            rest = &rest[4..];
        } else {
            units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
        }
    }
    units
}
