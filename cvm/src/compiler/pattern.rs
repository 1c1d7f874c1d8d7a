//! Binding patterns and assignment patterns.
//!
//! Owns: destructuring with defaults, rest and iterator closing. Must not: decide where variables are stored.

use super::Compiler;
use super::control::ControlEntry;
use super::emit::Label;
use crate::ops::Opcode;
use oxc_ast::ast::{
    ArrayAssignmentTarget, ArrayPattern, AssignmentTarget, AssignmentTargetMaybeDefault,
    AssignmentTargetProperty, BindingPattern, Expression, ObjectAssignmentTarget, ObjectPattern, PropertyKey,
};

impl Compiler<'_, '_> {
    /// Pops a value into a binding pattern.
    pub(super) fn bind_pattern(&mut self, pattern: &BindingPattern<'_>) {
        match pattern {
            BindingPattern::BindingIdentifier(id) => self.init_binding(id),
            BindingPattern::AssignmentPattern(p) => {
                let name = match &p.left {
                    BindingPattern::BindingIdentifier(id) => Some(id.name.as_str()),
                    _ => None,
                };
                self.default_value(&p.right, name);
                self.bind_pattern(&p.left);
            }
            BindingPattern::ObjectPattern(p) => self.bind_object(p),
            BindingPattern::ArrayPattern(p) => self.bind_array(p),
        }
    }

    /// Replaces undefined on the stack by the default.
    pub(super) fn default_value(&mut self, default: &Expression<'_>, name: Option<&str>) {
        let given = self.label();
        self.jump(Opcode::JNotUndefKeep, given);
        self.op(Opcode::Pop);
        match name {
            Some(name) => self.expr_named(default, name),
            None => self.expr(default),
        }
        self.bind(given);
    }

    /// Stack: source -> source value; with `keep` also collects the key: source … key under them is left to the caller.
    fn pattern_key(&mut self, key: &PropertyKey<'_>, computed: bool, keep: Option<u16>) {
        self.op(Opcode::Dup);
        match (computed, key.static_name()) {
            (false, Some(name)) => {
                let name = self.str_const(&name);
                if let Some(local) = keep {
                    self.op_c(Opcode::Const, name);
                    self.store_local(local);
                }
                self.op_c(Opcode::GetProp, name);
            }
            _ => {
                self.property_key(key);
                self.op(Opcode::ToKey);
                if let Some(local) = keep {
                    self.op_c(Opcode::TeeLoc, u32::from(local));
                }
                self.op(Opcode::GetElem);
            }
        }
    }

    fn bind_object(&mut self, p: &ObjectPattern<'_>) {
        let mark = self.f().mark();
        self.op(Opcode::CheckObjCoercible);
        let mut keys = Vec::new();
        for prop in &p.properties {
            let keep = p.rest.is_some().then(|| self.f().local());
            keys.extend(keep);
            self.pattern_key(&prop.key, prop.computed, keep);
            self.bind_pattern(&prop.value);
        }
        if let Some(rest) = &p.rest {
            self.op(Opcode::Dup);
            self.rest_object(&keys);
            self.bind_pattern(&rest.argument);
        }
        self.op(Opcode::Pop);
        let _ = mark; // bindings of the pattern keep their slots
    }

    fn rest_object(&mut self, keys: &[u16]) {
        for &k in keys {
            self.load_local(k);
        }
        self.op_b(Opcode::NewArray, keys.len() as u16);
        self.call_pre("ObjectRest", 2);
    }

    fn bind_array(&mut self, p: &ArrayPattern<'_>) {
        self.array_pattern(|c, it| {
            for element in &p.elements {
                c.step_element(it);
                match element {
                    Some(pattern) => c.bind_pattern(pattern),
                    None => c.op(Opcode::Pop),
                }
            }
            if let Some(rest) = &p.rest {
                c.rest_elements(it);
                c.bind_pattern(&rest.argument);
            }
        });
    }

    /// Pops an iterable and runs `elements` with its iterator open: `(iterator local, done local)`.
    fn array_pattern(&mut self, elements: impl FnOnce(&mut Self, (u16, u16))) {
        let local = self.open_iterator();
        let done = self.f().local();
        self.op(Opcode::False);
        self.store_local(done);
        let (handler, end) = (self.label(), self.label());
        let region = self.f().open_region(handler);
        self.f().control.push(ControlEntry::Iter { local, region, is_async: false, done: Some(done) });
        elements(self, (local, done));
        self.f().control.pop();
        self.f().close_region(region);
        self.close_unless_done(local, done);
        self.jump(Opcode::Jump, end);
        self.f().begin_handler(handler);
        let rethrow = self.label();
        self.load_local(done);
        self.jump(Opcode::JTrue, rethrow);
        self.load_local(local);
        self.load_local(local + 1);
        self.call_pre("IteratorCloseSilently", 2);
        self.op(Opcode::Pop);
        self.bind(rethrow);
        self.op(Opcode::Throw);
        let depth = self.f().depth();
        self.f().set_depth(depth);
        self.bind(end);
    }

    /// Pushes the next element, undefined at the end. While the iterator's own code runs, the iterator counts as done.
    fn step_element(&mut self, (local, done): (u16, u16)) {
        let (end, over) = (self.label(), self.label());
        self.load_local(done);
        self.jump(Opcode::JTrue, over);
        self.op(Opcode::True);
        self.store_local(done);
        self.step_iterator(local, over);
        self.op(Opcode::False);
        self.store_local(done);
        self.jump(Opcode::Jump, end);
        self.bind(over);
        self.op(Opcode::Undef);
        self.bind(end);
    }

    /// Pushes an array of the remaining elements.
    fn rest_elements(&mut self, (local, done): (u16, u16)) {
        let (head, over): (Label, Label) = (self.label(), self.label());
        self.op_b(Opcode::NewArray, 0);
        self.load_local(done);
        self.jump(Opcode::JTrue, over);
        self.op(Opcode::True);
        self.store_local(done);
        self.bind(head);
        self.step_iterator(local, over);
        self.op(Opcode::ArrPush);
        self.jump(Opcode::Jump, head);
        self.bind(over);
    }

    /// Pops a value into an assignment target of any form.
    pub(super) fn assign_target(&mut self, target: &AssignmentTarget<'_>) {
        match target {
            AssignmentTarget::ObjectAssignmentTarget(p) => self.assign_object(p),
            AssignmentTarget::ArrayAssignmentTarget(p) => self.assign_array(p),
            simple => {
                let Some(simple) = simple.as_simple_assignment_target() else { return };
                // The value is on the stack already; the target is evaluated after it.
                let depth = self.prepare_target(simple);
                match depth {
                    0 => {}
                    1 => self.op(Opcode::Swap),
                    2 => {
                        // v o k -> o k v
                        self.op(Opcode::Rot3);
                        self.op(Opcode::Rot3);
                    }
                    _ => {}
                }
                self.store_target(simple);
            }
        }
    }

    /// Assigns the value that `produce` pushes; the target's parts are evaluated before it.
    fn assign_element(&mut self, target: &AssignmentTargetMaybeDefault<'_>, produce: impl FnOnce(&mut Self)) {
        let (target, default) = match target {
            AssignmentTargetMaybeDefault::AssignmentTargetWithDefault(d) => (&d.binding, Some(&d.init)),
            other => match other.as_assignment_target() {
                Some(t) => (t, None),
                None => return,
            },
        };
        let simple = target.as_simple_assignment_target();
        if let Some(simple) = simple {
            self.prepare_target(simple);
        }
        produce(self);
        if let Some(default) = default {
            let name = match target {
                AssignmentTarget::AssignmentTargetIdentifier(id) => Some(id.name.as_str()),
                _ => None,
            };
            self.default_value(default, name);
        }
        match simple {
            Some(simple) => self.store_target(simple),
            None => self.assign_target(target),
        }
    }

    fn assign_array(&mut self, p: &ArrayAssignmentTarget<'_>) {
        self.array_pattern(|c, it| {
            for element in &p.elements {
                match element {
                    Some(target) => c.assign_element(target, |c| c.step_element(it)),
                    None => {
                        c.step_element(it);
                        c.op(Opcode::Pop);
                    }
                }
            }
            if let Some(rest) = &p.rest {
                match rest.target.as_simple_assignment_target() {
                    Some(simple) => {
                        c.prepare_target(simple);
                        c.rest_elements(it);
                        c.store_target(simple);
                    }
                    None => {
                        c.rest_elements(it);
                        c.assign_target(&rest.target);
                    }
                }
            }
        });
    }

    fn assign_object(&mut self, p: &ObjectAssignmentTarget<'_>) {
        self.op(Opcode::CheckObjCoercible);
        let source = self.f().local();
        self.store_local(source);
        let mut keys = Vec::new();
        for prop in &p.properties {
            let keep = p.rest.is_some().then(|| self.f().local());
            keys.extend(keep);
            match prop {
                AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(i) => {
                    let name = i.binding.name.as_str();
                    let constant = self.str_const(name);
                    if let Some(local) = keep {
                        self.op_c(Opcode::Const, constant);
                        self.store_local(local);
                    }
                    self.load_local(source);
                    self.op_c(Opcode::GetProp, constant);
                    if let Some(init) = &i.init {
                        self.default_value(init, Some(name));
                    }
                    self.store_ident(&i.binding);
                }
                AssignmentTargetProperty::AssignmentTargetPropertyProperty(q) => {
                    let key = self.f().local();
                    match (q.computed, q.name.static_name()) {
                        (false, Some(name)) => {
                            let name = self.str_const(&name);
                            self.op_c(Opcode::Const, name);
                        }
                        _ => {
                            self.property_key(&q.name);
                            self.op(Opcode::ToKey);
                        }
                    }
                    self.store_local(key);
                    if let Some(local) = keep {
                        self.load_local(key);
                        self.store_local(local);
                    }
                    self.assign_element(&q.binding, |c| {
                        c.load_local(source);
                        c.load_local(key);
                        c.op(Opcode::GetElem);
                    });
                }
            }
        }
        if let Some(rest) = &p.rest {
            let simple = rest.target.as_simple_assignment_target();
            if let Some(simple) = simple {
                self.prepare_target(simple);
            }
            self.load_local(source);
            self.rest_object(&keys);
            match simple {
                Some(simple) => self.store_target(simple),
                None => self.assign_target(&rest.target),
            }
        }
    }
}
