//! Conversions and comparisons of primitives (ECMA-262 7.1, 7.2); objects raise `Prim`.
//!
//! Owns: `ToNumber` and its family on stack slots. Must not: run user code.

use super::{NativeCall, Raise, Res, Vm};
use crate::builtins::ids;
use crate::pure::number;
use crate::value::{Id, Key, Value};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

impl Vm<'_> {
    /// `ToBoolean`
    #[inline]
    pub(crate) fn truthy(&self, value: Value) -> bool {
        match value {
            Value::Bool(b) => b,
            Value::Undefined | Value::Null | Value::Hole | Value::Uninit => false,
            Value::Int(i) => i != 0,
            Value::Num(n) => n != 0.0 && !n.is_nan(),
            Value::Str(id) => !self.st.heap.str(id).is_empty(),
            Value::Big(id) => self.st.heap.big(id) != BigInt::default(),
            Value::Sym(_) | Value::Obj(_) | Value::Cell(_) => true,
        }
    }

    /// `ToNumber` of a primitive.
    pub(crate) fn prim_number(&mut self, value: Value) -> Res<f64> {
        Ok(match value {
            Value::Int(i) => f64::from(i),
            Value::Num(n) => n,
            Value::Undefined | Value::Hole | Value::Uninit | Value::Cell(_) | Value::Obj(_) => f64::NAN,
            Value::Null => 0.0,
            Value::Bool(b) => f64::from(u8::from(b)),
            Value::Str(id) => number::string_to_number(&self.st.heap.str(id)),
            Value::Sym(_) => return Err(self.type_error("Cannot convert a Symbol value to a number")),
            Value::Big(_) => return Err(self.type_error("Cannot convert a BigInt value to a number")),
        })
    }

    /// `ToNumber` of the value in a stack slot.
    pub(crate) fn slot_number(&mut self, at: usize) -> Res<f64> {
        match self.slot(at) {
            Value::Int(i) => Ok(f64::from(i)),
            Value::Num(n) => Ok(n),
            Value::Obj(_) => Err(Raise::Prim(at, 1)),
            other => self.prim_number(other),
        }
    }

    /// `ToNumeric`: the number, or the bigint.
    pub(crate) fn slot_numeric(&mut self, at: usize) -> Res<Value> {
        match self.slot(at) {
            v @ (Value::Int(_) | Value::Num(_) | Value::Big(_)) => Ok(v),
            Value::Obj(_) => Err(Raise::Prim(at, 1)),
            other => self.prim_number(other).map(Value::num),
        }
    }

    /// `ToString` of a primitive.
    pub(crate) fn prim_str(&mut self, value: Value) -> Res<Id> {
        Ok(match value {
            Value::Str(id) => id,
            Value::Undefined | Value::Hole | Value::Uninit | Value::Cell(_) => ids::UNDEFINED,
            Value::Null => ids::NULL,
            Value::Bool(true) => ids::TRUE,
            Value::Bool(false) => ids::FALSE,
            Value::Int(i) => {
                let mut buffer = itoa_i32(i);
                let text = buffer.text();
                self.st.heap.new_narrow(text)
            }
            Value::Sym(_) => return Err(self.type_error("Cannot convert a Symbol value to a string")),
            other => {
                let text = self.plain_text(other);
                self.st.heap.new_str(&text)
            }
        })
    }

    /// `ToString` of the value in a stack slot.
    pub(crate) fn slot_str(&mut self, at: usize) -> Res<Id> {
        match self.slot(at) {
            Value::Str(id) => Ok(id),
            Value::Obj(_) => Err(Raise::Prim(at, 2)),
            other => self.prim_str(other),
        }
    }

    /// `ToPropertyKey` of the value in a stack slot.
    #[inline]
    pub(crate) fn slot_key(&mut self, at: usize) -> Res<Key> {
        match self.slot(at) {
            Value::Int(i) if i >= 0 && i as u32 <= Key::MAX_INDEX => Ok(Key::index(i as u32)),
            Value::Str(id) => Ok(self.st.heap.key_of_str(id)),
            Value::Sym(id) => Ok(Key::cell(id)),
            Value::Obj(_) => Err(Raise::Prim(at, 2)),
            Value::Num(n) if n >= 0.0 && n == f64::from(n as u32) && n as u32 <= Key::MAX_INDEX => {
                Ok(Key::index(n as u32))
            }
            other => {
                let id = self.prim_str(other)?;
                Ok(self.st.heap.key_of_str(id))
            }
        }
    }

    /// `ToNumber` of an argument.
    pub(crate) fn arg_number(&mut self, call: &NativeCall, i: usize) -> Res<f64> {
        if i < call.argc { self.slot_number(call.at + i) } else { Ok(f64::NAN) }
    }

    /// `ToIntegerOrInfinity` of an argument.
    pub(crate) fn arg_int(&mut self, call: &NativeCall, i: usize) -> Res<f64> {
        Ok(number::to_integer_or_infinity(self.arg_number(call, i)?))
    }

    /// `ToString` of an argument.
    pub(crate) fn arg_str(&mut self, call: &NativeCall, i: usize) -> Res<Id> {
        if i < call.argc { self.slot_str(call.at + i) } else { Ok(ids::UNDEFINED) }
    }

    /// `ToPropertyKey` of an argument.
    pub(crate) fn arg_key(&mut self, call: &NativeCall, i: usize) -> Res<Key> {
        if i < call.argc { self.slot_key(call.at + i) } else { Ok(ids::key(ids::UNDEFINED)) }
    }

    /// `RequireObjectCoercible(this)` and `ToString(this)`.
    pub(crate) fn this_str(&mut self, call: &NativeCall, method: &str) -> Res<Id> {
        let this = self.this(call);
        if this.is_nullish() {
            return Err(self.type_error(&format!("{method} called on null or undefined")));
        }
        self.slot_str(call.at - 1)
    }

    /// The argument as an object, or a `TypeError`.
    pub(crate) fn arg_obj(&mut self, call: &NativeCall, i: usize) -> Res<Id> {
        match self.arg(call, i) {
            Value::Obj(id) => Ok(id),
            other => Err(self.not_callable(other, "is not an object")),
        }
    }

    /// `SameValue`
    pub(crate) fn same_value(&self, a: Value, b: Value) -> bool {
        match (a.as_num(), b.as_num()) {
            (Some(x), Some(y)) => {
                (x == y && x.is_sign_negative() == y.is_sign_negative()) || (x.is_nan() && y.is_nan())
            }
            _ => self.strict_equal(a, b),
        }
    }

    /// `IsStrictlyEqual`
    #[inline]
    pub(crate) fn strict_equal(&self, a: Value, b: Value) -> bool {
        match (a, b) {
            (Value::Int(x), Value::Int(y)) => x == y,
            (Value::Str(x), Value::Str(y)) => x == y || self.st.heap.str(x) == self.st.heap.str(y),
            (Value::Big(x), Value::Big(y)) => x == y || self.st.heap.big(x) == self.st.heap.big(y),
            (Value::Int(_) | Value::Num(_), Value::Int(_) | Value::Num(_)) => a.as_num() == b.as_num(),
            _ => a == b,
        }
    }

    /// `IsLooselyEqual` of the values in two slots.
    pub(crate) fn loose_equal(&mut self, x: usize, y: usize) -> Res<bool> {
        let (a, b) = (self.slot(x), self.slot(y));
        Ok(match (a, b) {
            (Value::Undefined | Value::Null, Value::Undefined | Value::Null) => true,
            (Value::Undefined | Value::Null, _) | (_, Value::Undefined | Value::Null) => false,
            (Value::Obj(_), Value::Obj(_)) => a == b,
            (Value::Obj(_), _) => return Err(Raise::Prim(x, 0)),
            (_, Value::Obj(_)) => return Err(Raise::Prim(y, 0)),
            (Value::Sym(_), _) | (_, Value::Sym(_)) => a == b,
            (Value::Str(_), Value::Str(_)) => self.strict_equal(a, b),
            (Value::Big(p), Value::Big(q)) => p == q || self.st.heap.big(p) == self.st.heap.big(q),
            (Value::Big(p), Value::Str(s)) | (Value::Str(s), Value::Big(p)) => {
                match crate::pure::bigint_text::string_to_bigint(&self.st.heap.str(s)) {
                    Ok(n) => n == self.st.heap.big(p),
                    Err(_) => false,
                }
            }
            (Value::Big(p), other) | (other, Value::Big(p)) => {
                let n = self.prim_number(other)?;
                compare_big(&self.st.heap.big(p), n) == Some(std::cmp::Ordering::Equal)
            }
            _ => self.prim_number(a)? == self.prim_number(b)?,
        })
    }

    /// Order of the values in two slots, none for unordered; both become primitives, `x` first unless `swap`.
    pub(crate) fn order(&mut self, x: usize, y: usize) -> Res<Option<std::cmp::Ordering>> {
        for at in [x, y] {
            if self.slot(at).is_object() {
                return Err(Raise::Prim(at, 1));
            }
        }
        let (a, b) = (self.slot(x), self.slot(y));
        Ok(match (a, b) {
            (Value::Str(p), Value::Str(q)) => Some(self.st.heap.str(p).compare(self.st.heap.str(q))),
            (Value::Big(p), Value::Big(q)) => Some(self.st.heap.big(p).cmp(&self.st.heap.big(q))),
            (Value::Big(p), Value::Str(s)) => {
                match crate::pure::bigint_text::string_to_bigint(&self.st.heap.str(s)) {
                    Ok(n) => Some(self.st.heap.big(p).cmp(&n)),
                    Err(_) => None,
                }
            }
            (Value::Str(s), Value::Big(q)) => {
                match crate::pure::bigint_text::string_to_bigint(&self.st.heap.str(s)) {
                    Ok(n) => Some(n.cmp(&self.st.heap.big(q))),
                    Err(_) => None,
                }
            }
            (Value::Big(p), other) => {
                let n = self.prim_number(other)?;
                compare_big(&self.st.heap.big(p), n)
            }
            (other, Value::Big(q)) => {
                let n = self.prim_number(other)?;
                compare_big(&self.st.heap.big(q), n).map(std::cmp::Ordering::reverse)
            }
            _ => {
                let left = self.prim_number(a)?;
                let right = self.prim_number(b)?;
                left.partial_cmp(&right)
            }
        })
    }

    /// `typeof`
    pub(crate) fn type_of(&self, value: Value) -> Id {
        match value {
            Value::Undefined | Value::Hole | Value::Uninit | Value::Cell(_) => ids::UNDEFINED,
            Value::Null => ids::OBJECT_T,
            Value::Bool(_) => ids::BOOLEAN_T,
            Value::Int(_) | Value::Num(_) => ids::NUMBER_T,
            Value::Str(_) => ids::STRING_T,
            Value::Sym(_) => ids::SYMBOL_T,
            Value::Big(_) => ids::BIGINT_T,
            Value::Obj(_) => {
                if self.is_callable(value) {
                    ids::FUNCTION_T
                } else {
                    ids::OBJECT_T
                }
            }
        }
    }
}

/// Order of a bigint and a number.
pub(crate) fn compare_big(a: &BigInt, b: f64) -> Option<std::cmp::Ordering> {
    if b.is_nan() {
        return None;
    }
    if b.is_infinite() {
        return Some(if b > 0.0 { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater });
    }
    let floor = b.floor();
    let whole = num_traits::FromPrimitive::from_f64(floor).unwrap_or_default();
    Some(match a.cmp(&whole) {
        std::cmp::Ordering::Equal if b > floor => std::cmp::Ordering::Less,
        other => other,
    })
}

/// A bigint as the nearest number.
pub(crate) fn big_to_number(n: &BigInt) -> f64 {
    n.to_f64().unwrap_or(f64::NAN)
}

struct Digits {
    bytes: [u8; 11],
    from: usize,
}

impl Digits {
    fn text(&mut self) -> &[u8] {
        &self.bytes[self.from..]
    }
}

fn itoa_i32(i: i32) -> Digits {
    let mut d = Digits { bytes: [0; 11], from: 11 };
    let mut n = i.unsigned_abs();
    loop {
        d.from -= 1;
        d.bytes[d.from] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    if i < 0 {
        d.from -= 1;
        d.bytes[d.from] = b'-';
    }
    d
}
