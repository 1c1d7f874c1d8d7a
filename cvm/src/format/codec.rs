//! Numbers, texts and values as bytes. Integers are LEB128, at most ten bytes; reading fails on invalid input and never panics.

use super::FormatError;
use crate::value::{Id, Value};

/// Collects bytes.
#[derive(Default)]
pub(super) struct ByteWriter {
    pub out: Vec<u8>,
}

impl ByteWriter {
    pub(super) fn u8(&mut self, n: u8) {
        self.out.push(n);
    }

    pub(super) fn num(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.out.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.out.push(n as u8);
    }

    pub(super) fn count(&mut self, n: usize) {
        self.num(n as u64);
    }

    pub(super) fn signed(&mut self, n: i64) {
        self.num(((n << 1) ^ (n >> 63)) as u64);
    }

    pub(super) fn float(&mut self, n: f64) {
        self.out.extend_from_slice(&n.to_bits().to_le_bytes());
    }

    pub(super) fn bytes(&mut self, b: &[u8]) {
        self.count(b.len());
        self.out.extend_from_slice(b);
    }

    pub(super) fn units(&mut self, units: &[u16]) {
        self.count(units.len());
        for u in units {
            self.out.extend_from_slice(&u.to_le_bytes());
        }
    }

    pub(super) fn id(&mut self, id: Id) {
        self.num(if id == Id::NONE { 0 } else { u64::from(id.0) + 1 });
    }

    pub(super) fn value(&mut self, v: Value) {
        match v {
            Value::Undefined => self.u8(0),
            Value::Null => self.u8(1),
            Value::Bool(false) => self.u8(2),
            Value::Bool(true) => self.u8(3),
            Value::Int(n) => {
                self.u8(4);
                self.signed(i64::from(n));
            }
            Value::Num(n) => {
                self.u8(5);
                self.float(n);
            }
            Value::Hole => self.u8(6),
            Value::Uninit => self.u8(7),
            Value::Str(id) => self.tagged(8, id),
            Value::Sym(id) => self.tagged(9, id),
            Value::Big(id) => self.tagged(10, id),
            Value::Obj(id) => self.tagged(11, id),
            Value::Cell(id) => self.tagged(12, id),
        }
    }

    fn tagged(&mut self, tag: u8, id: Id) {
        self.u8(tag);
        self.id(id);
    }

    pub(super) fn values(&mut self, values: &[Value]) {
        self.count(values.len());
        for &v in values {
            self.value(v);
        }
    }
}

/// Reads bytes; every method fails instead of reading past the end.
pub(super) struct ByteReader<'b> {
    bytes: &'b [u8],
}

type Res<T> = Result<T, FormatError>;

impl<'b> ByteReader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        ByteReader { bytes }
    }

    /// Fails if bytes are left over.
    pub(super) fn end(&self) -> Res<()> {
        if self.is_at_end() { Ok(()) } else { Err(FormatError::Invalid("trailing bytes")) }
    }

    /// Bytes that are left.
    pub(super) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn take(&mut self, n: usize) -> Res<&'b [u8]> {
        let (head, tail) = self.bytes.split_at_checked(n).ok_or(FormatError::End)?;
        self.bytes = tail;
        Ok(head)
    }

    pub(super) fn u8(&mut self) -> Res<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn bool(&mut self) -> Res<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FormatError::Invalid("flag")),
        }
    }

    pub(super) fn num(&mut self) -> Res<u64> {
        let mut n = 0u64;
        for shift in (0..70).step_by(7) {
            let b = self.u8()?;
            if shift == 63 && b > 1 {
                return Err(FormatError::Invalid("number"));
            }
            n |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                return Ok(n);
            }
        }
        Err(FormatError::Invalid("number"))
    }

    pub(super) fn u32(&mut self) -> Res<u32> {
        u32::try_from(self.num()?).map_err(|_| FormatError::Invalid("number"))
    }

    pub(super) fn u16(&mut self) -> Res<u16> {
        u16::try_from(self.num()?).map_err(|_| FormatError::Invalid("number"))
    }

    /// A number of items of at least `size` bytes each; fails if the remaining bytes are too few for them.
    pub(super) fn count(&mut self, size: usize) -> Res<usize> {
        let n = usize::try_from(self.num()?).map_err(|_| FormatError::Invalid("count"))?;
        if n.checked_mul(size.max(1)).is_none_or(|total| total > self.bytes.len()) {
            return Err(FormatError::End);
        }
        Ok(n)
    }

    pub(super) fn signed(&mut self) -> Res<i64> {
        let n = self.num()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    pub(super) fn float(&mut self) -> Res<f64> {
        let b = self.take(8)?;
        let mut word = [0u8; 8];
        word.copy_from_slice(b);
        Ok(f64::from_bits(u64::from_le_bytes(word)))
    }

    pub(super) fn bytes(&mut self) -> Res<&'b [u8]> {
        let n = self.count(1)?;
        self.take(n)
    }

    pub(super) fn text(&mut self) -> Res<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| FormatError::Invalid("text"))
    }

    pub(super) fn units(&mut self) -> Res<Vec<u16>> {
        let n = self.count(2)?;
        let bytes = self.take(n * 2)?;
        Ok(bytes.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect())
    }

    pub(super) fn id(&mut self) -> Res<Id> {
        Ok(match self.u32()? {
            0 => Id::NONE,
            n if n < 1 << 31 => Id(n - 1),
            _ => return Err(FormatError::Invalid("id")),
        })
    }

    pub(super) fn value(&mut self) -> Res<Value> {
        Ok(match self.u8()? {
            0 => Value::Undefined,
            1 => Value::Null,
            2 => Value::Bool(false),
            3 => Value::Bool(true),
            4 => Value::Int(i32::try_from(self.signed()?).map_err(|_| FormatError::Invalid("integer"))?),
            5 => Value::Num(self.float()?),
            6 => Value::Hole,
            7 => Value::Uninit,
            8 => Value::Str(self.id()?),
            9 => Value::Sym(self.id()?),
            10 => Value::Big(self.id()?),
            11 => Value::Obj(self.id()?),
            12 => Value::Cell(self.id()?),
            _ => return Err(FormatError::Invalid("value")),
        })
    }

    pub(super) fn values(&mut self) -> Res<Vec<Value>> {
        let n = self.count(1)?;
        (0..n).map(|_| self.value()).collect()
    }
}
