//! The hot loop: the most frequent opcodes. [`Vm::slow`] executes the others.
//!
//! Owns: fetch, fuel, the fast cases of common opcodes. Registers (`pc`, `sp`, `base`, `fuel`) are kept in locals and
//! written back before anything outside the loop runs. Must not: allocate.

use super::hints::add_fast;
use super::{Raise, Res, Vm};
use crate::heap::Cell;
use crate::heap::object::ObjectKind;
use crate::ops::Opcode;
use crate::value::{Id, Key, Value};

/// Why the loop returned.
pub(crate) enum LoopExit {
    /// No frames are left
    Empty,
    /// The fuel is used up
    Fuel,
}

impl Vm<'_> {
    /// Runs until no frame is left, the fuel is used up, or an instruction raises.
    pub(crate) fn run_loop(&mut self, fuel: &mut u64) -> Res<LoopExit> {
        loop {
            match self.run_hot(fuel) {
                Ok(stop) => return Ok(stop),
                Err(raise) => self.handle(raise)?,
            }
            // An instruction that throws allocates too.
            if self.st.heap.attention {
                self.attend(fuel)?;
            }
            if self.st.frames.is_empty() {
                return Ok(LoopExit::Empty);
            }
        }
    }

    #[allow(clippy::cognitive_complexity, reason = "one match over the opcodes is the point")]
    fn run_hot(&mut self, fuel_left: &mut u64) -> Res<LoopExit> {
        let code = self.p.code.clone();
        let code: &[crate::ops::Instruction] = &code;
        let Some(frame) = self.st.frames.last() else { return Ok(LoopExit::Empty) };
        let mut pc = frame.pc as usize;
        let mut base = frame.base as usize;
        let mut sp = self.st.sp;
        let mut fuel = *fuel_left;
        // The stack is moved out of the state while the loop runs, and back before any other code reads it.
        let mut stack = std::mem::take(&mut self.st.stack);
        'next: loop {
            if fuel == 0 {
                self.st.stack = stack;
                self.sync(pc, sp);
                *fuel_left = 0;
                return Ok(LoopExit::Fuel);
            }
            fuel -= 1;
            let Some(&ins) = code.get(pc) else {
                self.st.stack = stack;
                *fuel_left = fuel;
                return Err(Raise::Fault("ran out of the code"));
            };
            pc += 1;
            'slow: {
                match ins.op {
                    Opcode::LoadLoc => {
                        stack[sp] = stack[base + ins.c as usize];
                        sp += 1;
                        continue 'next;
                    }
                    Opcode::StoreLoc => {
                        sp -= 1;
                        stack[base + ins.c as usize] = stack[sp];
                        continue 'next;
                    }
                    Opcode::TeeLoc => {
                        stack[base + ins.c as usize] = stack[sp - 1];
                        continue 'next;
                    }
                    Opcode::LoadLocChk => {
                        let v = stack[base + ins.c as usize];
                        if v == Value::Uninit {
                            break 'slow;
                        }
                        stack[sp] = v;
                        sp += 1;
                        continue 'next;
                    }
                    Opcode::Int => {
                        stack[sp] = Value::Int(ins.c as i32);
                        sp += 1;
                        continue 'next;
                    }
                    Opcode::Const => {
                        let Some(&v) = self.p.consts.get(ins.c as usize) else { break 'slow };
                        stack[sp] = v;
                        sp += 1;
                        continue 'next;
                    }
                    Opcode::Undef | Opcode::Null | Opcode::True | Opcode::False => {
                        stack[sp] = match ins.op {
                            Opcode::Undef => Value::Undefined,
                            Opcode::Null => Value::Null,
                            op => Value::Bool(op == Opcode::True),
                        };
                        sp += 1;
                        continue 'next;
                    }
                    Opcode::Pop => {
                        sp -= 1;
                        continue 'next;
                    }
                    Opcode::Dup => {
                        stack[sp] = stack[sp - 1];
                        sp += 1;
                        continue 'next;
                    }
                    Opcode::Dup2 => {
                        stack[sp] = stack[sp - 2];
                        stack[sp + 1] = stack[sp - 1];
                        sp += 2;
                        continue 'next;
                    }
                    Opcode::Swap => {
                        stack.swap(sp - 1, sp - 2);
                        continue 'next;
                    }
                    Opcode::LoadThis => {
                        stack[sp] = stack[base + 1];
                        sp += 1;
                        continue 'next;
                    }
                    Opcode::Add => arith!(stack, sp, 'slow, 'next, checked_add, +),
                    Opcode::Sub => arith!(stack, sp, 'slow, 'next, checked_sub, -),
                    Opcode::Mul => {
                        let r = match (stack[sp - 2], stack[sp - 1]) {
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
                        stack[sp - 1] = r;
                        continue 'next;
                    }
                    Opcode::Div => {
                        let (Some(x), Some(y)) = (stack[sp - 2].as_num(), stack[sp - 1].as_num()) else {
                            break 'slow;
                        };
                        sp -= 1;
                        stack[sp - 1] = Value::num(x / y);
                        continue 'next;
                    }
                    Opcode::Mod => match (stack[sp - 2], stack[sp - 1]) {
                        (Value::Int(x), Value::Int(y)) if x >= 0 && y > 0 => {
                            sp -= 1;
                            stack[sp - 1] = Value::Int(x % y);
                            continue 'next;
                        }
                        _ => break 'slow,
                    },
                    Opcode::BitAnd | Opcode::BitOr | Opcode::BitXor | Opcode::Shl | Opcode::Shr => {
                        let (Value::Int(x), Value::Int(y)) = (stack[sp - 2], stack[sp - 1]) else {
                            break 'slow;
                        };
                        sp -= 1;
                        stack[sp - 1] = Value::Int(match ins.op {
                            Opcode::BitAnd => x & y,
                            Opcode::BitOr => x | y,
                            Opcode::BitXor => x ^ y,
                            Opcode::Shl => x.wrapping_shl(y as u32 & 31),
                            _ => x >> (y as u32 & 31),
                        });
                        continue 'next;
                    }
                    Opcode::AddInt | Opcode::SubInt => {
                        let n = if ins.op == Opcode::AddInt {
                            ins.c as i32
                        } else {
                            (ins.c as i32).wrapping_neg()
                        };
                        stack[sp - 1] = match stack[sp - 1] {
                            Value::Int(x) => match x.checked_add(n) {
                                Some(r) => Value::Int(r),
                                None => Value::Num(f64::from(x) + f64::from(n)),
                            },
                            // Not x + n: -0 - 0 is -0, but -0 + 0 is 0.
                            Value::Num(x) if ins.op == Opcode::SubInt => {
                                Value::Num(x - f64::from(ins.c as i32))
                            }
                            Value::Num(x) => Value::Num(x + f64::from(n)),
                            _ => break 'slow,
                        };
                        continue 'next;
                    }
                    Opcode::IncLoc | Opcode::DecLoc => {
                        let slot = &mut stack[base + ins.c as usize];
                        let n = if ins.op == Opcode::IncLoc { 1 } else { -1 };
                        if let Value::Int(x) = *slot
                            && let Some(r) = x.checked_add(n)
                        {
                            *slot = Value::Int(r);
                            continue 'next;
                        }
                        if let Value::Num(x) = *slot {
                            *slot = Value::Num(x + f64::from(n));
                            continue 'next;
                        }
                        break 'slow;
                    }
                    Opcode::AddLoc => {
                        let b = stack[sp - 1];
                        let slot = &mut stack[base + ins.c as usize];
                        let Some(r) = add_fast(*slot, b) else { break 'slow };
                        *slot = r;
                        sp -= 1;
                        continue 'next;
                    }
                    Opcode::Inc | Opcode::Dec => {
                        let n = if ins.op == Opcode::Inc { 1 } else { -1 };
                        if let Value::Int(x) = stack[sp - 1]
                            && let Some(r) = x.checked_add(n)
                        {
                            stack[sp - 1] = Value::Int(r);
                            continue 'next;
                        }
                        break 'slow;
                    }
                    Opcode::ToNumeric | Opcode::Plus => {
                        if matches!(stack[sp - 1], Value::Int(_) | Value::Num(_)) {
                            continue 'next;
                        }
                        break 'slow;
                    }
                    Opcode::ToKeyOf => match (stack[sp - 2], stack[sp - 1]) {
                        (Value::Obj(_), Value::Int(0..) | Value::Str(_)) => continue 'next,
                        _ => break 'slow,
                    },
                    Opcode::Lt => compare_push!(stack, sp, 'slow, 'next, <),
                    Opcode::Gt => compare_push!(stack, sp, 'slow, 'next, >),
                    Opcode::Le => compare_push!(stack, sp, 'slow, 'next, <=),
                    Opcode::Ge => compare_push!(stack, sp, 'slow, 'next, >=),
                    Opcode::JNotLt => compare_jump!(stack, sp, pc, ins, 'slow, 'next, <),
                    Opcode::JNotLe => compare_jump!(stack, sp, pc, ins, 'slow, 'next, <=),
                    Opcode::JNotGt => compare_jump!(stack, sp, pc, ins, 'slow, 'next, >),
                    Opcode::JNotGe => compare_jump!(stack, sp, pc, ins, 'slow, 'next, >=),
                    Opcode::JNotSeq | Opcode::JSeq => {
                        let equal = self.strict_equal(stack[sp - 2], stack[sp - 1]);
                        sp -= 2;
                        if equal == (ins.op == Opcode::JSeq) {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Opcode::StrictEq | Opcode::StrictNe => {
                        let equal = self.strict_equal(stack[sp - 2], stack[sp - 1]);
                        sp -= 1;
                        stack[sp - 1] = Value::Bool(equal == (ins.op == Opcode::StrictEq));
                        continue 'next;
                    }
                    Opcode::Not => {
                        let v = self.truthy(stack[sp - 1]);
                        stack[sp - 1] = Value::Bool(!v);
                        continue 'next;
                    }
                    Opcode::Jump => {
                        pc = ins.c as usize;
                        continue 'next;
                    }
                    Opcode::JTrue | Opcode::JFalse => {
                        sp -= 1;
                        let v = self.truthy(stack[sp]);
                        if v == (ins.op == Opcode::JTrue) {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Opcode::JTrueKeep | Opcode::JFalseKeep => {
                        let v = self.truthy(stack[sp - 1]);
                        if v == (ins.op == Opcode::JTrueKeep) {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Opcode::JNotNullishKeep => {
                        if !stack[sp - 1].is_nullish() {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Opcode::JNotUndefKeep => {
                        if stack[sp - 1] != Value::Undefined {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Opcode::JNullish => {
                        sp -= 1;
                        if stack[sp].is_nullish() {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Opcode::JUndef => {
                        sp -= 1;
                        if stack[sp] == Value::Undefined {
                            pc = ins.c as usize;
                        }
                        continue 'next;
                    }
                    Opcode::LoadScope | Opcode::LoadScopeChk => {
                        let scope = stack[base + ins.b as usize];
                        match self.st.heap.scope_slot(scope, ins.c as usize) {
                            Some(v) if v != Value::Uninit || ins.op == Opcode::LoadScope => {
                                stack[sp] = v;
                                sp += 1;
                                continue 'next;
                            }
                            _ => break 'slow,
                        }
                    }
                    Opcode::LoadEnv | Opcode::LoadEnvChk => {
                        let mut scope = self.st.frames.last().map_or(Value::Undefined, |f| f.env);
                        for _ in 0..ins.b {
                            scope = self.st.heap.scope_parent(scope);
                        }
                        match self.st.heap.scope_slot(scope, ins.c as usize) {
                            Some(v) if v != Value::Uninit || ins.op == Opcode::LoadEnv => {
                                stack[sp] = v;
                                sp += 1;
                                continue 'next;
                            }
                            _ => break 'slow,
                        }
                    }
                    Opcode::GetGlobal => {
                        let hint = self.st.hints[pc - 1] as usize;
                        if let Some(v) = self.hinted(crate::builtins::ids::GLOBAL, Key(ins.c), hint) {
                            stack[sp] = v;
                            sp += 1;
                            continue 'next;
                        }
                        break 'slow;
                    }
                    Opcode::GetProp => {
                        if let Value::Obj(id) = stack[sp - 1] {
                            let key = Key(ins.c);
                            let hint = self.st.hints[pc - 1] as usize;
                            if let Some(v) = self.hinted(id, key, hint) {
                                stack[sp - 1] = v;
                                continue 'next;
                            }
                            if key == super::props::LENGTH
                                && let Some(Cell::Obj(o)) = self.st.heap.cells.get(id.index())
                                && let ObjectKind::Array(a) = &o.kind
                            {
                                stack[sp - 1] = Value::count(a.len as usize);
                                continue 'next;
                            }
                        }
                        break 'slow;
                    }
                    Opcode::GetMethod => {
                        if let Value::Obj(id) = stack[sp - 1] {
                            let key = Key(ins.c);
                            let hint = self.st.hints[pc - 1] as usize;
                            if let Some(v) = self.hinted_method(id, key, hint) {
                                stack[sp - 1] = v;
                                stack[sp] = Value::Obj(id);
                                sp += 1;
                                continue 'next;
                            }
                        }
                        break 'slow;
                    }
                    Opcode::SetProp => {
                        if let Value::Obj(id) = stack[sp - 2] {
                            let value = stack[sp - 1];
                            let hint = self.st.hints[pc - 1] as usize;
                            if self.set_hinted(id, Key(ins.c), hint, value) {
                                sp -= 1;
                                stack[sp - 1] = value;
                                continue 'next;
                            }
                        }
                        break 'slow;
                    }
                    Opcode::GetElem => {
                        if let (Value::Obj(id), Value::Int(i)) = (stack[sp - 2], stack[sp - 1])
                            && let Some(Cell::Obj(o)) = self.st.heap.cells.get(id.index())
                            && let ObjectKind::Array(a) = &o.kind
                            && let Some(&v) = a.dense.get(i as usize)
                            && v != Value::Hole
                        {
                            sp -= 1;
                            stack[sp - 1] = v;
                            continue 'next;
                        }
                        if let (array @ Value::Obj(_), Value::Int(i)) = (stack[sp - 2], stack[sp - 1])
                            && let Some(v) = self.number_element(array, i)
                        {
                            sp -= 1;
                            stack[sp - 1] = v;
                            continue 'next;
                        }
                        break 'slow;
                    }
                    Opcode::SetElem => {
                        if let (Value::Obj(id), Value::Int(i)) = (stack[sp - 3], stack[sp - 2]) {
                            let value = stack[sp - 1];
                            if self.set_dense(id, i as usize, value) || self.set_number_element(id, i, value)
                            {
                                sp -= 2;
                                stack[sp - 1] = value;
                                continue 'next;
                            }
                        }
                        break 'slow;
                    }
                    Opcode::AddLocLoc => {
                        let (x, y) = (stack[base + ins.c as usize], stack[base + ins.b as usize]);
                        let Some(r) = add_fast(x, y) else { break 'slow };
                        stack[base + ins.c as usize] = r;
                        continue 'next;
                    }
                    Opcode::SortStep => {
                        let at = base + ins.b as usize;
                        let Some((below, operands)) = stack.split_at_mut_checked(sp - 1) else { break 'slow };
                        let (Some(locals), Some(operands)) =
                            (below.get_mut(at..at + super::sort::LOCALS), operands.get_mut(..4))
                        else {
                            break 'slow;
                        };
                        let Some(more) = self.sort_step(locals, operands) else { break 'slow };
                        if more {
                            pc = ins.c as usize;
                        }
                        sp += 3;
                        continue 'next;
                    }
                    Opcode::LtLocInt => {
                        let r = match stack[base + ins.b as usize] {
                            Value::Int(x) => x < ins.c as i32,
                            Value::Num(x) => x < f64::from(ins.c as i32),
                            _ => break 'slow,
                        };
                        stack[sp] = Value::Bool(r);
                        sp += 1;
                        continue 'next;
                    }
                    Opcode::LtLocLoc => {
                        let r = match (stack[base + ins.c as usize], stack[base + ins.b as usize]) {
                            (Value::Int(x), Value::Int(y)) => x < y,
                            (Value::Num(x), Value::Num(y)) => x < y,
                            (Value::Int(x), Value::Num(y)) => f64::from(x) < y,
                            (Value::Num(x), Value::Int(y)) => x < f64::from(y),
                            _ => break 'slow,
                        };
                        stack[sp] = Value::Bool(r);
                        sp += 1;
                        continue 'next;
                    }
                    Opcode::Call => {
                        let argc = ins.b as usize;
                        let at = sp - argc;
                        if let Some((number, env, this, new_target)) = self.plain_callee(stack[at - 2])
                            && self.st.frames.len() < self.st.limits.stack_depth as usize
                            && at < super::call::MAX_STACK / 2
                        {
                            let t = self.p.template(number);
                            let new_base = at - 2;
                            let end = new_base + t.slots as usize + t.depth as usize + 2;
                            if stack.len() < end {
                                stack.resize(end + 256, Value::Undefined);
                            }
                            if let Some(this) = this {
                                stack[at - 1] = this;
                            }
                            let from = at + argc.min(t.params as usize);
                            let to = new_base + t.slots as usize;
                            for slot in stack.get_mut(from..to).unwrap_or(&mut []) {
                                *slot = Value::Undefined;
                            }
                            if let Some(frame) = self.st.frames.last_mut() {
                                frame.pc = pc as u32;
                            }
                            self.st.frames.push(crate::state::Frame {
                                template: number,
                                pc: t.start,
                                base: new_base as u32,
                                env,
                                new_target,
                                coroutine: Id::NONE,
                                back: crate::state::Back::Push,
                            });
                            pc = t.start as usize;
                            base = new_base;
                            sp = to;
                            continue 'next;
                        }
                        self.st.stack = stack;
                        self.sync(pc, sp);
                        *fuel_left = fuel;
                        self.call(argc, crate::state::Back::Push)?;
                        fuel = *fuel_left;
                    }
                    Opcode::Ret => {
                        if let [.., caller, frame] = &self.st.frames[..]
                            && frame.coroutine == Id::NONE
                            && frame.back == crate::state::Back::Push
                        {
                            let value = stack[sp - 1];
                            sp = frame.base as usize;
                            stack[sp] = value;
                            sp += 1;
                            pc = caller.pc as usize;
                            base = caller.base as usize;
                            self.st.frames.pop();
                            continue 'next;
                        }
                        self.st.stack = stack;
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
                    self.attend(&mut fuel)?;
                    *fuel_left = fuel;
                }
                let Some(frame) = self.st.frames.last() else {
                    *fuel_left = fuel;
                    return Ok(LoopExit::Empty);
                };
                pc = frame.pc as usize;
                base = frame.base as usize;
                sp = self.st.sp;
                stack = std::mem::take(&mut self.st.stack);
                continue 'next;
            }
            self.st.stack = stack;
            self.sync(pc, sp);
            *fuel_left = fuel;
            self.slow(ins, base)?;
            fuel = *fuel_left;
            if self.st.heap.attention {
                self.attend(&mut fuel)?;
                *fuel_left = fuel;
            }
            let Some(frame) = self.st.frames.last() else { return Ok(LoopExit::Empty) };
            pc = frame.pc as usize;
            base = frame.base as usize;
            sp = self.st.sp;
            stack = std::mem::take(&mut self.st.stack);
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
}
