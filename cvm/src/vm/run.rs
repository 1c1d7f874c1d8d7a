//! The hot loop: what runs most is here, everything else goes through [`Vm::slow`].
//!
//! Owns: fetch, fuel, the fast cases of common opcodes. Registers (`pc`, `sp`, `base`, `fuel`) live in locals and are
//! written back before anything outside the loop runs. Must not: allocate.

use super::{Raise, Res, Vm};
use crate::heap::Cell;
use crate::heap::object::{Kind, attr};
use crate::ops::Op;
use crate::state::LimitKind;
use crate::value::{Id, Key, Value};

/// Why the loop came back.
pub(crate) enum Stop {
    /// No frames are left
    Empty,
    /// The fuel is used up
    Fuel,
}

/// Integer or float arithmetic with the slow path for the rest.
macro_rules! arith {
    ($self:ident, $sp:ident, $slow:lifetime, $next:lifetime, $int:ident, $op:tt) => {{
        let (a, b) = ($self.st.stack[$sp - 2], $self.st.stack[$sp - 1]);
        let r = match (a, b) {
            (Value::Int(x), Value::Int(y)) => match x.$int(y) {
                Some(r) => Value::Int(r),
                None => Value::Num(f64::from(x) $op f64::from(y)),
            },
            (Value::Num(x), Value::Num(y)) => Value::Num(x $op y),
            (Value::Int(x), Value::Num(y)) => Value::Num(f64::from(x) $op y),
            (Value::Num(x), Value::Int(y)) => Value::Num(x $op f64::from(y)),
            _ => break $slow,
        };
        $sp -= 1;
        $self.st.stack[$sp - 1] = r;
        continue $next;
    }};
}

/// Comparison of numbers with the slow path for the rest.
macro_rules! compare {
    ($self:ident, $sp:ident, $slow:lifetime, $op:tt) => {{
        let (a, b) = ($self.st.stack[$sp - 2], $self.st.stack[$sp - 1]);
        match (a, b) {
            (Value::Int(x), Value::Int(y)) => x $op y,
            (Value::Num(x), Value::Num(y)) => x $op y,
            (Value::Int(x), Value::Num(y)) => f64::from(x) $op y,
            (Value::Num(x), Value::Int(y)) => x $op f64::from(y),
            _ => break $slow,
        }
    }};
}

impl Vm<'_> {
    /// Runs until nothing is left, the fuel ends, or something stops it.
    pub(crate) fn run_loop(&mut self, fuel: &mut u64) -> Res<Stop> {
        loop {
            match self.run_hot(fuel) {
                Ok(stop) => return Ok(stop),
                Err(raise) => self.handle(raise)?,
            }
            if self.st.frames.is_empty() {
                return Ok(Stop::Empty);
            }
        }
    }

    #[allow(clippy::cognitive_complexity, reason = "one match over the opcodes is the point")]
    fn run_hot(&mut self, fuel_left: &mut u64) -> Res<Stop> {
        let code = self.p.code.clone();
        let code: &[crate::ops::Ins] = &code;
        let Some(frame) = self.st.frames.last() else { return Ok(Stop::Empty) };
        let mut pc = frame.pc as usize;
        let mut base = frame.base as usize;
        let mut sp = self.st.sp;
        let mut fuel = *fuel_left;
        'next: loop {
            if fuel == 0 {
                self.sync(pc, sp);
                *fuel_left = 0;
                return Ok(Stop::Fuel);
            }
            fuel -= 1;
            let Some(&ins) = code.get(pc) else {
                *fuel_left = fuel;
                return Err(Raise::Fault("ran out of the code"));
            };
            pc += 1;
            'slow: {
                match ins.op {
                    Op::LoadLoc => {
                        self.st.stack[sp] = self.st.stack[base + ins.c as usize];
                        sp += 1;
                        continue 'next;
                    }
                    Op::StoreLoc => {
                        sp -= 1;
                        self.st.stack[base + ins.c as usize] = self.st.stack[sp];
                        continue 'next;
                    }
                    Op::TeeLoc => {
                        self.st.stack[base + ins.c as usize] = self.st.stack[sp - 1];
                        continue 'next;
                    }
                    Op::LoadLocChk => {
                        let v = self.st.stack[base + ins.c as usize];
                        if v == Value::Uninit {
                            break 'slow;
                        }
                        self.st.stack[sp] = v;
                        sp += 1;
                        continue 'next;
                    }
                    Op::Int => {
                        self.st.stack[sp] = Value::Int(ins.c as i32);
                        sp += 1;
                        continue 'next;
                    }
                    Op::Const => {
                        let Some(&v) = self.p.consts.get(ins.c as usize) else { break 'slow };
                        self.st.stack[sp] = v;
                        sp += 1;
                        continue 'next;
                    }
                    Op::Undef => {
                        self.st.stack[sp] = Value::Undefined;
                        sp += 1;
                        continue 'next;
                    }
                    Op::Null => {
                        self.st.stack[sp] = Value::Null;
                        sp += 1;
                        continue 'next;
                    }
                    Op::True | Op::False => {
                        self.st.stack[sp] = Value::Bool(ins.op == Op::True);
                        sp += 1;
                        continue 'next;
                    }
                    Op::Pop => {
                        sp -= 1;
                        continue 'next;
                    }
                    Op::Dup => {
                        self.st.stack[sp] = self.st.stack[sp - 1];
                        sp += 1;
                        continue 'next;
                    }
                    Op::Dup2 => {
                        self.st.stack[sp] = self.st.stack[sp - 2];
                        self.st.stack[sp + 1] = self.st.stack[sp - 1];
                        sp += 2;
                        continue 'next;
                    }
                    Op::Swap => {
                        self.st.stack.swap(sp - 1, sp - 2);
                        continue 'next;
                    }
                    Op::LoadThis => {
                        self.st.stack[sp] = self.st.stack[base + 1];
                        sp += 1;
                        continue 'next;
                    }
                    Op::Add => arith!(self, sp, 'slow, 'next, checked_add, +),
                    Op::Sub => arith!(self, sp, 'slow, 'next, checked_sub, -),
                    Op::Mul => {
                        let r = match (self.st.stack[sp - 2], self.st.stack[sp - 1]) {
                            (Value::Int(x), Value::Int(y)) => match x.checked_mul(y) {
                                Some(r) if r != 0 => Value::Int(r),
                                _ => Value::num(f64::from(x) * f64::from(y)),
                            },
                            (Value::Num(x), Value::Num(y)) => Value::Num(x * y),
                            (Value::Int(x), Value::Num(y)) => Value::Num(f64::from(x) * y),
                            (Value::Num(x), Value::Int(y)) => Value::Num(x * f64::from(y)),
                            _ => break 'slow,
                        };
                        sp -= 1;
                        self.st.stack[sp - 1] = r;
                        continue 'next;
                    }
                    Op::Div => {
                        let (Some(x), Some(y)) = (self.st.stack[sp - 2].as_num(), self.st.stack[sp - 1].as_num()) else {
                            break 'slow;
                        };
                        sp -= 1;
                        self.st.stack[sp - 1] = Value::num(x / y);
                        continue 'next;
                    }
                    Op::Mod => match (self.st.stack[sp - 2], self.st.stack[sp - 1]) {
                        (Value::Int(x), Value::Int(y)) if x >= 0 && y > 0 => {
                            sp -= 1;
                            self.st.stack[sp - 1] = Value::Int(x % y);
                            continue 'next;
                        }
                        _ => break 'slow,
                    },
                    Op::BitAnd | Op::BitOr | Op::BitXor | Op::Shl | Op::Shr => {
                        let (Value::Int(x), Value::Int(y)) = (self.st.stack[sp - 2], self.st.stack[sp - 1]) else {
                            break 'slow;
                        };
                        sp -= 1;
                        self.st.stack[sp - 1] = Value::Int(match ins.op {
                            Op::BitAnd => x & y,
                            Op::BitOr => x | y,
                            Op::BitXor => x ^ y,
                            Op::Shl => x.wrapping_shl(y as u32 & 31),
                            _ => x >> (y as u32 & 31),
                        });
                        continue 'next;
                    }
                    Op::AddInt | Op::SubInt => {
                        let n = if ins.op == Op::AddInt { ins.c as i32 } else { (ins.c as i32).wrapping_neg() };
                        self.st.stack[sp - 1] = match self.st.stack[sp - 1] {
                            Value::Int(x) => match x.checked_add(n) {
                                Some(r) => Value::Int(r),
                                None => Value::Num(f64::from(x) + f64::from(n)),
                            },
                            Value::Num(x) => Value::Num(x + f64::from(n)),
                            _ => break 'slow,
                        };
                        continue 'next;
                    }
                    Op::IncLoc | Op::DecLoc => {
                        let place = &mut self.st.stack[base + ins.c as usize];
                        let n = if ins.op == Op::IncLoc { 1 } else { -1 };
                        if let Value::Int(x) = *place
                            && let Some(r) = x.checked_add(n)
                        {
                            *place = Value::Int(r);
                            continue 'next;
                        }
                        if let Value::Num(x) = *place {
                            *place = Value::Num(x + f64::from(n));
                            continue 'next;
                        }
                        break 'slow;
                    }
                    Op::AddLoc => {
                        let b = self.st.stack[sp - 1];
                        let place = &mut self.st.stack[base + ins.c as usize];
                        let r = match (*place, b) {
                            (Value::Int(x), Value::Int(y)) => match x.checked_add(y) {
                                Some(r) => Value::Int(r),
                                None => Value::Num(f64::from(x) + f64::from(y)),
                            },
                            (Value::Num(x), Value::Num(y)) => Value::Num(x + y),
                            (Value::Int(x), Value::Num(y)) => Value::Num(f64::from(x) + y),
                            (Value::Num(x), Value::Int(y)) => Value::Num(x + f64::from(y)),
                            _ => break 'slow,
                        };
                        *place = r;
                        sp -= 1;
                        continue 'next;
                    }
                    Op::Inc | Op::Dec => {
                        let n = if ins.op == Op::Inc { 1 } else { -1 };
                        if let Value::Int(x) = self.st.stack[sp - 1]
                            && let Some(r) = x.checked_add(n)
                        {
                            self.st.stack[sp - 1] = Value::Int(r);
                            continue 'next;
                        }
                        break 'slow;
                    }
                    Op::ToNumeric => {
                        if matches!(self.st.stack[sp - 1], Value::Int(_) | Value::Num(_)) {
                            continue 'next;
                        }
                        break 'slow;
                    }
                    Op::Lt => {
                        let r = compare!(self, sp, 'slow, <);
                        sp -= 1;
                        self.st.stack[sp - 1] = Value::Bool(r);
                        continue 'next;
                    }
                    Op::Gt => {
                        let r = compare!(self, sp, 'slow, >);
                        sp -= 1;
                        self.st.stack[sp - 1] = Value::Bool(r);
                        continue 'next;
                    }
                    Op::Le => {
                        let r = compare!(self, sp, 'slow, <=);
                        sp -= 1;
                        self.st.stack[sp - 1] = Value::Bool(r);
                        continue 'next;
                    }
                    Op::Ge => {
                        let r = compare!(self, sp, 'slow, >=);
                        sp -= 1;
                        self.st.stack[sp - 1] = Value::Bool(r);
                        continue 'next;
                    }
                    Op::JNotLt => {
                        let r = compare!(self, sp, 'slow, <);
                        sp -= 2;
                        if !r {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::JNotLe => {
                        let r = compare!(self, sp, 'slow, <=);
                        sp -= 2;
                        if !r {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::JNotGt => {
                        let r = compare!(self, sp, 'slow, >);
                        sp -= 2;
                        if !r {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::JNotGe => {
                        let r = compare!(self, sp, 'slow, >=);
                        sp -= 2;
                        if !r {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::JNotSeq | Op::JSeq => {
                        let equal = self.strict_equal(self.st.stack[sp - 2], self.st.stack[sp - 1]);
                        sp -= 2;
                        if equal == (ins.op == Op::JSeq) {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::StrictEq | Op::StrictNe => {
                        let equal = self.strict_equal(self.st.stack[sp - 2], self.st.stack[sp - 1]);
                        sp -= 1;
                        self.st.stack[sp - 1] = Value::Bool(equal == (ins.op == Op::StrictEq));
                        continue 'next;
                    }
                    Op::Not => {
                        let v = self.truthy(self.st.stack[sp - 1]);
                        self.st.stack[sp - 1] = Value::Bool(!v);
                        continue 'next;
                    }
                    Op::Jump => {
                        pc = ins.c as usize;
                        continue 'next;
                    }
                    Op::JTrue | Op::JFalse => {
                        sp -= 1;
                        let v = self.truthy(self.st.stack[sp]);
                        if v == (ins.op == Op::JTrue) {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::JTrueKeep | Op::JFalseKeep => {
                        let v = self.truthy(self.st.stack[sp - 1]);
                        if v == (ins.op == Op::JTrueKeep) {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::JNotNullishKeep => {
                        if !self.st.stack[sp - 1].is_nullish() {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::JNotUndefKeep => {
                        if self.st.stack[sp - 1] != Value::Undefined {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::JNullish => {
                        sp -= 1;
                        if self.st.stack[sp].is_nullish() {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::JUndef => {
                        sp -= 1;
                        if self.st.stack[sp] == Value::Undefined {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Op::LoadScope | Op::LoadScopeChk => {
                        let scope = self.st.stack[base + ins.b as usize];
                        match self.st.heap.scope_slot(scope, ins.c as usize) {
                            Some(v) if v != Value::Uninit || ins.op == Op::LoadScope => {
                                self.st.stack[sp] = v;
                                sp += 1;
                                continue 'next;
                            }
                            _ => break 'slow,
                        }
                    }
                    Op::LoadEnv | Op::LoadEnvChk => {
                        let mut scope = self.st.frames.last().map_or(Value::Undefined, |f| f.env);
                        for _ in 0..ins.b {
                            scope = self.st.heap.scope_parent(scope);
                        }
                        match self.st.heap.scope_slot(scope, ins.c as usize) {
                            Some(v) if v != Value::Uninit || ins.op == Op::LoadEnv => {
                                self.st.stack[sp] = v;
                                sp += 1;
                                continue 'next;
                            }
                            _ => break 'slow,
                        }
                    }
                    Op::GetGlobal => {
                        let hint = self.st.hints[pc - 1] as usize;
                        if let Some(v) = self.hinted(crate::builtins::ids::GLOBAL, Key(ins.c), hint) {
                            self.st.stack[sp] = v;
                            sp += 1;
                            continue 'next;
                        }
                        break 'slow;
                    }
                    Op::GetProp => {
                        if let Value::Obj(id) = self.st.stack[sp - 1] {
                            let key = Key(ins.c);
                            let hint = self.st.hints[pc - 1] as usize;
                            if let Some(v) = self.hinted(id, key, hint) {
                                self.st.stack[sp - 1] = v;
                                continue 'next;
                            }
                            if key == super::props::LENGTH
                                && let Some(Cell::Obj(o)) = self.st.heap.cells.get(id.index())
                                && let Kind::Array(a) = &o.kind
                            {
                                self.st.stack[sp - 1] = Value::count(a.len as usize);
                                continue 'next;
                            }
                        }
                        break 'slow;
                    }
                    Op::GetMethod => {
                        if let Value::Obj(id) = self.st.stack[sp - 1] {
                            let key = Key(ins.c);
                            let hint = self.st.hints[pc - 1] as usize;
                            if let Some(v) = self.hinted_method(id, key, hint) {
                                self.st.stack[sp - 1] = v;
                                self.st.stack[sp] = Value::Obj(id);
                                sp += 1;
                                continue 'next;
                            }
                        }
                        break 'slow;
                    }
                    Op::SetProp => {
                        if let Value::Obj(id) = self.st.stack[sp - 2] {
                            let value = self.st.stack[sp - 1];
                            let hint = self.st.hints[pc - 1] as usize;
                            if self.set_hinted(id, Key(ins.c), hint, value) {
                                sp -= 1;
                                self.st.stack[sp - 1] = value;
                                continue 'next;
                            }
                        }
                        break 'slow;
                    }
                    Op::GetElem => {
                        if let (Value::Obj(id), Value::Int(i)) = (self.st.stack[sp - 2], self.st.stack[sp - 1])
                            && let Some(Cell::Obj(o)) = self.st.heap.cells.get(id.index())
                            && let Kind::Array(a) = &o.kind
                            && let Some(&v) = a.dense.get(i as usize)
                            && v != Value::Hole
                        {
                            sp -= 1;
                            self.st.stack[sp - 1] = v;
                            continue 'next;
                        }
                        break 'slow;
                    }
                    Op::SetElem => {
                        if let (Value::Obj(id), Value::Int(i)) = (self.st.stack[sp - 3], self.st.stack[sp - 2]) {
                            let value = self.st.stack[sp - 1];
                            if self.set_dense(id, i as usize, value) {
                                sp -= 2;
                                self.st.stack[sp - 1] = value;
                                continue 'next;
                            }
                        }
                        break 'slow;
                    }
                    Op::Call => {
                        self.sync(pc, sp);
                        *fuel_left = fuel;
                        self.call(ins.b as usize, crate::state::Back::Push)?;
                        fuel = *fuel_left;
                    }
                    Op::Ret => {
                        self.sync(pc, sp);
                        *fuel_left = fuel;
                        let value = self.pop();
                        self.leave_frame(value)?;
                        fuel = *fuel_left;
                    }
                    _ => break 'slow,
                }
                // A call or return: read the registers of the new frame.
                if self.st.heap.attention {
                    self.attend()?;
                }
                let Some(frame) = self.st.frames.last() else {
                    *fuel_left = fuel;
                    return Ok(Stop::Empty);
                };
                pc = frame.pc as usize;
                base = frame.base as usize;
                sp = self.st.sp;
                continue 'next;
            }
            self.sync(pc, sp);
            *fuel_left = fuel;
            self.slow(ins, base)?;
            fuel = *fuel_left;
            if self.st.heap.attention {
                self.attend()?;
            }
            let Some(frame) = self.st.frames.last() else { return Ok(Stop::Empty) };
            pc = frame.pc as usize;
            base = frame.base as usize;
            sp = self.st.sp;
        }
    }

    /// Writes the loop's registers back.
    #[inline]
    fn sync(&mut self, pc: usize, sp: usize) {
        self.st.sp = sp;
        if let Some(frame) = self.st.frames.last_mut() {
            frame.pc = pc as u32;
        }
    }

    /// Collects garbage, and ends the program when that does not help.
    #[inline(never)]
    pub(crate) fn attend(&mut self) -> Res<()> {
        let mut heap = std::mem::replace(&mut self.st.heap, crate::heap::Heap::new(0));
        heap.collect(self.st.roots());
        self.st.heap = heap;
        if self.st.heap.bytes > self.st.heap.limit {
            return Err(Raise::Limit(LimitKind::Heap));
        }
        Ok(())
    }

    /// An own data property at the slot where it was last time.
    #[inline]
    fn hinted(&self, id: Id, key: Key, hint: usize) -> Option<Value> {
        let p = self.st.heap.obj(id).props.at(hint)?;
        (p.key == key && p.flags & attr::ACCESSOR == 0).then_some(p.value)
    }

    /// A data property of the object or of its prototype, at the slot where it was last time.
    #[inline]
    fn hinted_method(&self, id: Id, key: Key, hint: usize) -> Option<Value> {
        let object = self.st.heap.obj(id);
        if let Some(p) = object.props.at(hint)
            && p.key == key
        {
            return (p.flags & attr::ACCESSOR == 0).then_some(p.value);
        }
        match object.kind {
            Kind::Plain => {}
            Kind::Array(_) if key != super::props::LENGTH => {}
            _ => return None,
        }
        if object.proto == Id::NONE || object.props.find(key).is_some() {
            return None;
        }
        let p = self.st.heap.obj(object.proto).props.at(hint)?;
        (p.key == key && p.flags & attr::ACCESSOR == 0).then_some(p.value)
    }

    #[inline]
    fn set_hinted(&mut self, id: Id, key: Key, hint: usize, value: Value) -> bool {
        let Some(p) = self.st.heap.obj(id).props.at(hint) else { return false };
        if p.key != key || p.flags & (attr::ACCESSOR | attr::W) != attr::W {
            return false;
        }
        if let Some(p) = self.st.heap.obj_mut(id).props.at_mut(hint) {
            p.value = value;
        }
        true
    }

    /// Overwrites a dense element.
    #[inline]
    fn set_dense(&mut self, id: Id, i: usize, value: Value) -> bool {
        match self.st.heap.cells.get(id.index()) {
            Some(Cell::Obj(o)) => match &o.kind {
                Kind::Array(a) if a.dense.get(i).is_some_and(|v| *v != Value::Hole) => {}
                _ => return false,
            },
            _ => return false,
        }
        if let Kind::Array(a) = &mut self.st.heap.obj_mut(id).kind {
            a.dense[i] = value;
        }
        true
    }
}
