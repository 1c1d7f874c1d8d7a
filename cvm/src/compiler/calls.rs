//! Calls, `new`, `super(…)`, tagged templates, and the prelude's intrinsic calls.
//!
//! Owns: the layout `f this args`. Must not: depend on how functions are compiled.

use super::Compiler;
use super::expr::OptionalChain;
use crate::ops::Opcode;
use crate::program::flag;
use oxc_ast::ast::{Argument, CallExpression, Expression, NewExpression, TaggedTemplateExpression};

/// Most arguments that are passed on the stack; longer lists are passed in an array.
const MAX_ARGS: usize = 250;

impl Compiler<'_, '_> {
    /// Pushes the callee and `this`.
    fn callee(&mut self, callee: &Expression<'_>, chain: Option<OptionalChain>) {
        match callee {
            Expression::StaticMemberExpression(m) => {
                let name = self.str_const(m.property.name.as_str());
                if let Expression::Super(_) = m.object {
                    self.load_this();
                    self.op(Opcode::Dup);
                    self.op_c(Opcode::Const, name);
                    self.op(Opcode::GetSuper);
                    self.op(Opcode::Swap);
                    return;
                }
                self.object_part(&m.object, chain, m.optional);
                self.f().position(m.property.span.start);
                self.op_c(Opcode::GetMethod, name);
            }
            Expression::ComputedMemberExpression(m) => {
                if let Expression::Super(_) = m.object {
                    self.load_this();
                    self.op(Opcode::Dup);
                    self.expr(&m.expression);
                    self.op(Opcode::GetSuper);
                    self.op(Opcode::Swap);
                    return;
                }
                self.object_part(&m.object, chain, m.optional);
                self.expr(&m.expression);
                self.f().position(m.span.start);
                self.op(Opcode::GetElemMethod);
            }
            Expression::PrivateFieldExpression(m) => {
                self.object_part(&m.object, chain, m.optional);
                self.op(Opcode::Dup);
                self.load_private(m.field.name.as_str());
                self.f().position(m.span.start);
                self.op(Opcode::GetPriv);
                self.op(Opcode::Swap);
            }
            Expression::ChainExpression(c) => {
                // `(a?.b)()` keeps `this`.
                self.parenthesised_chain(c);
            }
            Expression::TSNonNullExpression(n) => self.callee(&n.expression, chain),
            Expression::TSAsExpression(n) => self.callee(&n.expression, chain),
            Expression::CallExpression(c) => {
                self.call(c, chain);
                self.op(Opcode::Undef);
            }
            other => {
                self.expr(other);
                self.op(Opcode::Undef);
            }
        }
    }

    fn parenthesised_chain(&mut self, c: &oxc_ast::ast::ChainExpression<'_>) {
        use oxc_ast::ast::ChainElement;
        let chain = OptionalChain::new(self);
        let end = self.label();
        let depth = self.f().depth();
        match &c.expression {
            ChainElement::StaticMemberExpression(m) => {
                self.object_part(&m.object, Some(chain), m.optional);
                let name = self.str_const(m.property.name.as_str());
                self.op_c(Opcode::GetMethod, name);
            }
            ChainElement::ComputedMemberExpression(m) => {
                self.object_part(&m.object, Some(chain), m.optional);
                self.expr(&m.expression);
                self.op(Opcode::GetElemMethod);
            }
            _ => {
                self.chain(c, false);
                self.op(Opcode::Undef);
            }
        }
        self.jump(Opcode::Jump, end);
        self.f().set_depth(depth + 2);
        chain.land(self);
        self.op(Opcode::Undef);
        self.op(Opcode::Undef);
        self.bind(end);
    }

    fn has_spread(args: &[Argument<'_>]) -> bool {
        args.len() > MAX_ARGS || args.iter().any(|a| matches!(a, Argument::SpreadElement(_)))
    }

    fn args_plain(&mut self, args: &[Argument<'_>]) -> u16 {
        for a in args {
            if let Some(e) = a.as_expression() {
                self.expr(e);
            }
        }
        args.len() as u16
    }

    fn args_array(&mut self, args: &[Argument<'_>]) {
        self.op_b(Opcode::NewArray, 0);
        for a in args {
            match a {
                Argument::SpreadElement(s) => {
                    self.expr(&s.argument);
                    self.f().position(s.span.start);
                    self.spread();
                }
                other => {
                    if let Some(e) = other.as_expression() {
                        self.expr(e);
                        self.op(Opcode::ArrPush);
                    }
                }
            }
        }
    }

    pub(super) fn call(&mut self, c: &CallExpression<'_>, chain: Option<OptionalChain>) {
        if let Expression::Super(_) = c.callee {
            self.super_call(&c.arguments, c.span.start);
            return;
        }
        if self.in_prelude && self.prelude_call(c) {
            return;
        }
        let is_main = self.note_main_call(c);
        self.callee(&c.callee, chain);
        if c.optional {
            self.optional_callee(chain);
        }
        if Self::has_spread(&c.arguments) {
            self.args_array(&c.arguments);
            self.f().position(c.span.start);
            self.op(Opcode::CallSpread);
        } else {
            let n = self.args_plain(&c.arguments);
            self.f().position(c.span.start);
            self.op_b(Opcode::Call, n);
        }
        if is_main {
            self.note_main_result();
        }
    }

    pub(super) fn new_expression(&mut self, n: &NewExpression<'_>) {
        self.expr(&n.callee);
        if Self::has_spread(&n.arguments) {
            self.args_array(&n.arguments);
            self.f().position(n.span.start);
            self.op(Opcode::NewSpread);
        } else {
            let count = self.args_plain(&n.arguments);
            self.f().position(n.span.start);
            self.op_b(Opcode::New, count);
        }
    }

    fn super_call(&mut self, args: &[Argument<'_>], at: u32) {
        let Some(active) = self.find_derived(1) else {
            self.refuse(at, "`super()` is only valid in the constructor of a derived class");
            self.op(Opcode::Undef);
            return;
        };
        let outer = self.functions.iter().rev().skip(1).find(|f| !f.is(flag::ARROW));
        let properties = outer.is_some_and(|f| !f.properties.is_empty());
        if properties && self.f().is(flag::ARROW) {
            self.refuse(at, "`super()` in an arrow function is not supported where the constructor has parameter properties");
        }
        self.load_at(active, false);
        if Self::has_spread(args) {
            self.args_array(args);
            self.f().position(at);
            self.op(Opcode::SuperSpread);
        } else {
            let n = self.args_plain(args);
            self.f().position(at);
            self.op_b(Opcode::SuperCall, n);
        }
        self.bind_this();
    }

    /// New `this` on the stack -> the same, bound, with fields initialised.
    pub(super) fn bind_this(&mut self) {
        let (Some(this), Some(active)) = (self.find_derived(0), self.find_derived(1)) else { return };
        self.load_at(this, false);
        self.op(Opcode::CheckUninit);
        self.op(Opcode::Dup);
        self.store_at(this, false);
        self.op(Opcode::Dup);
        self.load_at(active, false);
        self.op(Opcode::RunFields);
        self.op(Opcode::Pop);
        for (symbol, name) in self.f().properties.clone() {
            let at = self.find(symbol);
            self.load_at(at, false);
            let name = self.str_const(&name);
            self.op_c(Opcode::DefField, name);
        }
    }

    pub(super) fn tagged(&mut self, t: &TaggedTemplateExpression<'_>) {
        self.callee(&t.tag, None);
        let c = self.template_const(&t.quasi);
        self.op_c(Opcode::TemplateObj, c);
        for e in &t.quasi.expressions {
            self.expr(e);
        }
        self.f().position(t.span.start);
        self.op_b(Opcode::Call, t.quasi.expressions.len() as u16 + 1);
    }

    /// Calls that only the prelude may contain: `$call`, `$construct`, natives by `$name`, its own functions by name.
    fn prelude_call(&mut self, c: &CallExpression<'_>) -> bool {
        let Expression::Identifier(id) = &c.callee else { return false };
        let name = id.name.as_str();
        if self.own_names.contains_key(name)
            && id
                .reference_id
                .get()
                .and_then(|r| self.scoping.get_reference(r).symbol_id())
                .is_some_and(|s| self.is_prelude_function(s))
        {
            let n = self.args_plain(&c.arguments);
            self.f().position(c.span.start);
            self.call_pre(name, n);
            return true;
        }
        let Some(name) = name.strip_prefix('$') else { return false };
        let n = self.args_plain(&c.arguments);
        self.f().position(c.span.start);
        match name {
            "call" => self.op_b(Opcode::Call, n.saturating_sub(2)),
            "callArray" => self.op(Opcode::CallSpread),
            "construct" => self.op(Opcode::Construct),
            "toNumeric" => self.op(Opcode::ToNumeric),
            "toString" => self.op(Opcode::ToStr),
            "toKey" => self.op(Opcode::ToKey),
            "await" => self.op(Opcode::Await),
            "hole" => self.op(Opcode::Hole),
            "mergeSort" => self.merge_sort(),
            _ => match crate::builtins::natives::intrinsic(name) {
                Some(native) => self.f().emit(Opcode::CallNat, native, n),
                None => {
                    let message = format!("the prelude calls the unknown intrinsic ${name}");
                    self.refuse(id.span.start, &message);
                    self.op(Opcode::Undef);
                }
            },
        }
        true
    }
}

impl Compiler<'_, '_> {
    /// `$mergeSort(compare, list, scratch)`, both lists of the same length, at least two: pushes the one that is sorted.
    fn merge_sort(&mut self) {
        let mark = self.f().mark();
        let locals: Vec<u16> = (0..crate::vm::sort::LOCALS).map(|_| self.f().local()).collect();
        for &local in locals[..3].iter().rev() {
            self.store_local(local);
        }
        // Width, start, left, right, output: the first pair of runs is of one element each.
        for (&local, n) in locals[3..].iter().zip([1, 0, 0, 1, 0]) {
            self.op_c(Opcode::Int, n);
            self.store_local(local);
        }
        let (call, step) = (self.label(), self.label());
        let depth = self.f().depth();
        self.op(Opcode::Uninit);
        self.jump(Opcode::Jump, step);
        self.f().set_depth(depth + 4);
        self.bind(call);
        self.op_b(Opcode::Call, 2);
        self.bind(step);
        self.f().jump(Opcode::SortStep, call, locals[0]);
        for _ in 0..4 {
            self.op(Opcode::Pop);
        }
        self.load_local(locals[1]);
        self.f().release(mark);
    }
}

impl OptionalChain {
    pub(super) fn new(c: &mut Compiler<'_, '_>) -> OptionalChain {
        let (one, two) = (c.label(), c.label());
        OptionalChain::with_labels(one, two)
    }

    /// Binds the chain's labels to the current position and drops the operands that are on the stack there.
    pub(super) fn land(self, c: &mut Compiler<'_, '_>) {
        let (one, two) = self.labels();
        c.bind(two);
        c.op(Opcode::Pop);
        c.bind(one);
        c.op(Opcode::Pop);
    }
}
