//! Arithmetic on anything but two numbers: strings, bigints, conversions.
//!
//! Owns: `+` and the other numeric operators off the fast path. Must not: push frames.

use super::{Raise, Res, Vm};
use crate::ops::Opcode;
use crate::pure::number::{to_int32, to_uint32};
use crate::state::VmLimitKind;
use crate::value::Value;
use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive};
use std::cmp::Ordering;

/// Bits a bigint may have.
const MAX_BIG_BITS: u64 = 1 << 24;

impl Vm<'_> {
    pub(crate) fn op_add(&mut self) -> Res<()> {
        let sum = self.add_slots(self.st.sp - 2, self.st.sp - 1)?;
        self.replace_top(2, sum);
        Ok(())
    }

    fn add_slots(&mut self, x: usize, y: usize) -> Res<Value> {
        for at in [x, y] {
            if self.slot(at).is_object() {
                return Err(Raise::Prim(at, 0));
            }
        }
        let (a, b) = (self.slot(x), self.slot(y));
        if let (Value::Str(p), Value::Str(q)) = (a, b) {
            return self.concat(p, q);
        }
        if matches!(a, Value::Str(_)) || matches!(b, Value::Str(_)) {
            let (p, q) = (self.prim_str(a)?, self.prim_str(b)?);
            return self.concat(p, q);
        }
        self.numeric(Opcode::Add, x, y)
    }

    /// `a + b` of strings within the limit.
    pub(crate) fn concat(&mut self, a: crate::value::Id, b: crate::value::Id) -> Res<Value> {
        if self.st.heap.concat_len(a, b) > self.st.limits.string_units as usize {
            return Err(Raise::Limit(VmLimitKind::Text));
        }
        Ok(Value::Str(self.st.heap.concat(a, b)))
    }

    pub(crate) fn op_add_local(&mut self, local: usize) -> Res<()> {
        if self.slot(local).is_object() || self.peek(0).is_object() {
            // The variable keeps its value until the sum is known.
            let b = self.pop();
            self.push(self.slot(local));
            self.push(b);
            let template = self.pre("AddValues");
            return self.call_pre(template, 2, crate::state::Back::Store(local as u32));
        }
        let sum = self.add_slots(local, self.st.sp - 1)?;
        self.set_slot(local, sum);
        self.drop_n(1);
        Ok(())
    }

    pub(crate) fn op_add_int(&mut self, n: i32) -> Res<()> {
        let at = self.st.sp - 1;
        if self.slot(at).is_object() {
            return Err(Raise::Prim(at, 0));
        }
        self.push(Value::Int(n));
        self.op_add()
    }

    pub(crate) fn op_step_local(&mut self, local: usize, up: bool) -> Res<()> {
        let value = self.slot_numeric(local)?;
        let next = self.step(value, up);
        self.set_slot(local, next);
        Ok(())
    }

    fn step(&mut self, value: Value, up: bool) -> Value {
        match value {
            Value::Big(id) => {
                let n = self.st.heap.big(id);
                let next = if up { n + 1 } else { n - 1 };
                self.st.heap.new_big(next)
            }
            other => Value::num(other.as_num().unwrap_or(f64::NAN) + if up { 1.0 } else { -1.0 }),
        }
    }

    pub(crate) fn op_unary(&mut self, op: Opcode) -> Res<()> {
        let value = self.slot_numeric(self.st.sp - 1)?;
        let result = match (op, value) {
            (Opcode::Inc | Opcode::Dec, v) => self.step(v, op == Opcode::Inc),
            (Opcode::Neg, Value::Big(id)) => {
                let n = -self.st.heap.big(id);
                self.st.heap.new_big(n)
            }
            (Opcode::BitNot, Value::Big(id)) => {
                let n = !self.st.heap.big(id);
                self.st.heap.new_big(n)
            }
            (Opcode::Neg, v) => Value::num(-v.as_num().unwrap_or(f64::NAN)),
            (_, v) => Value::Int(!to_int32(v.as_num().unwrap_or(f64::NAN))),
        };
        self.replace_top(1, result);
        Ok(())
    }

    pub(crate) fn op_binary(&mut self, op: Opcode) -> Res<()> {
        let result = self.numeric(op, self.st.sp - 2, self.st.sp - 1)?;
        self.replace_top(2, result);
        Ok(())
    }

    fn numeric(&mut self, op: Opcode, x: usize, y: usize) -> Res<Value> {
        let a = self.slot_numeric(x)?;
        self.set_slot(x, a);
        let b = self.slot_numeric(y)?;
        match (a, b) {
            (Value::Big(p), Value::Big(q)) => {
                let (p, q) = (self.st.heap.big(p), self.st.heap.big(q));
                self.big_op(op, &p, &q)
            }
            (Value::Big(_), _) | (_, Value::Big(_)) => {
                Err(self.type_error("Cannot mix BigInt and other types, use explicit conversions"))
            }
            _ => {
                let (p, q) = (a.as_num().unwrap_or(f64::NAN), b.as_num().unwrap_or(f64::NAN));
                Ok(number_op(op, p, q))
            }
        }
    }

    fn big_op(&mut self, op: Opcode, a: &BigInt, b: &BigInt) -> Res<Value> {
        let result = match op {
            Opcode::Add => a + b,
            Opcode::Sub => a - b,
            Opcode::Mul => {
                self.big_size(a.bits() + b.bits())?;
                a * b
            }
            Opcode::Div | Opcode::Mod => {
                if b.sign() == Sign::NoSign {
                    return Err(self.range_error("Division by zero"));
                }
                if op == Opcode::Div { a / b } else { a % b }
            }
            Opcode::Exp => {
                if b.is_negative() {
                    return Err(self.range_error("Exponent must be non-negative"));
                }
                let n = if a.bits() <= 1 {
                    b.to_u32().unwrap_or(2 + u32::from(b.bit(0)))
                } else {
                    b.to_u32().unwrap_or(u32::MAX)
                };
                if a.bits() > 1 {
                    self.big_size(a.bits().saturating_mul(u64::from(n)))?;
                }
                num_traits::pow::Pow::pow(a, n)
            }
            Opcode::BitAnd => a & b,
            Opcode::BitOr => a | b,
            Opcode::BitXor => a ^ b,
            Opcode::Shl | Opcode::Shr => {
                let left = (op == Opcode::Shl) != b.is_negative();
                let n = b.abs().to_u64().unwrap_or(u64::MAX);
                if left {
                    if a.sign() != Sign::NoSign {
                        self.big_size(a.bits().saturating_add(n))?;
                    }
                    if a.sign() == Sign::NoSign { a.clone() } else { a << n }
                } else if n > a.bits() {
                    if a.is_negative() { BigInt::from(-1) } else { BigInt::default() }
                } else {
                    a >> n
                }
            }
            _ => return Err(self.type_error("BigInts have no unsigned right shift, use >> instead")),
        };
        Ok(self.st.heap.new_big(result))
    }

    fn big_size(&mut self, bits: u64) -> Res<()> {
        if bits > MAX_BIG_BITS {
            return Err(self.range_error("Maximum BigInt size exceeded"));
        }
        Ok(())
    }

    /// `x < y` of values that are not operands: objects go through the prelude.
    pub(crate) fn op_less(&mut self, x: Value, y: Value) -> Res<()> {
        self.push(x);
        self.push(y);
        if x.is_object() || y.is_object() {
            let template = self.pre("LessValues");
            return self.call_pre(template, 2, crate::state::Back::Push);
        }
        let r = self.op_order(Opcode::Lt)?;
        self.replace_top(2, Value::Bool(r));
        Ok(())
    }

    pub(crate) fn op_order(&mut self, op: Opcode) -> Res<bool> {
        let order = self.order(self.st.sp - 2, self.st.sp - 1)?;
        Ok(match op {
            Opcode::Lt => order == Some(Ordering::Less),
            Opcode::Gt => order == Some(Ordering::Greater),
            Opcode::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        })
    }
}

fn number_op(op: Opcode, a: f64, b: f64) -> Value {
    match op {
        Opcode::Add => Value::num(a + b),
        Opcode::Sub => Value::num(a - b),
        Opcode::Mul => Value::num(a * b),
        Opcode::Div => Value::num(a / b),
        Opcode::Mod => Value::num(a % b),
        Opcode::Exp => Value::num(crate::pure::math::pow(a, b)),
        Opcode::BitAnd => Value::Int(to_int32(a) & to_int32(b)),
        Opcode::BitOr => Value::Int(to_int32(a) | to_int32(b)),
        Opcode::BitXor => Value::Int(to_int32(a) ^ to_int32(b)),
        Opcode::Shl => Value::Int(to_int32(a).wrapping_shl(to_uint32(b) & 31)),
        Opcode::Shr => Value::Int(to_int32(a) >> (to_uint32(b) & 31)),
        _ => Value::num(f64::from(to_uint32(a) >> (to_uint32(b) & 31))),
    }
}
