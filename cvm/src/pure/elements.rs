//! Elements of typed arrays as bytes, ECMA-262 25.1.3.16 `RawBytesToNumeric` and 25.1.3.18 `NumericToRawBytes`.
//!
//! Owns: the element types with their sizes, conversion to and from little-endian bytes, the order of `TypedArray.prototype.sort`.

use super::math::{f16_bits, f16_value};
use super::number;

/// The type of a typed array's elements; the numbers are stored, and those of the inspector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum ElementType {
    Uint8Clamped,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    BigInt64,
    BigUint64,
    Float16,
    Float32,
    Float64,
}

/// All types, by number.
pub(crate) const ELEMENT_TYPES: [ElementType; 12] = [
    ElementType::Uint8Clamped,
    ElementType::Int8,
    ElementType::Uint8,
    ElementType::Int16,
    ElementType::Uint16,
    ElementType::Int32,
    ElementType::Uint32,
    ElementType::BigInt64,
    ElementType::BigUint64,
    ElementType::Float16,
    ElementType::Float32,
    ElementType::Float64,
];

/// The value of an element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum ElementValue {
    Number(f64),
    /// Of the types `BigInt64` and `BigUint64`
    Integer(i128),
}

impl ElementType {
    /// The type with this number.
    pub(crate) fn of_number(number: usize) -> Option<ElementType> {
        ELEMENT_TYPES.get(number).copied()
    }

    /// Bytes of an element.
    #[inline]
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Uint8Clamped | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 | Self::Float16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::BigInt64 | Self::BigUint64 | Self::Float64 => 8,
        }
    }

    /// The elements are bigints.
    #[inline]
    pub(crate) fn is_big(self) -> bool {
        matches!(self, Self::BigInt64 | Self::BigUint64)
    }

    /// Name of the constructor.
    pub(crate) fn constructor(self) -> &'static str {
        match self {
            Self::Uint8Clamped => "Uint8ClampedArray",
            Self::Int8 => "Int8Array",
            Self::Uint8 => "Uint8Array",
            Self::Int16 => "Int16Array",
            Self::Uint16 => "Uint16Array",
            Self::Int32 => "Int32Array",
            Self::Uint32 => "Uint32Array",
            Self::BigInt64 => "BigInt64Array",
            Self::BigUint64 => "BigUint64Array",
            Self::Float16 => "Float16Array",
            Self::Float32 => "Float32Array",
            Self::Float64 => "Float64Array",
        }
    }

    /// The element in the first bytes; 0 if there are too few.
    #[inline]
    pub(crate) fn read(self, bytes: &[u8]) -> ElementValue {
        let mut raw = [0; 8];
        let size = self.size();
        if let (Some(to), Some(from)) = (raw.get_mut(..size), bytes.get(..size)) {
            to.copy_from_slice(from);
        }
        let bits = u64::from_le_bytes(raw);
        ElementValue::Number(match self {
            Self::Uint8Clamped | Self::Uint8 | Self::Uint16 | Self::Uint32 => bits as f64,
            Self::Int8 => f64::from(bits as u8 as i8),
            Self::Int16 => f64::from(bits as u16 as i16),
            Self::Int32 => f64::from(bits as u32 as i32),
            Self::BigInt64 => return ElementValue::Integer(i128::from(bits as i64)),
            Self::BigUint64 => return ElementValue::Integer(i128::from(bits)),
            Self::Float16 => f16_value(bits as u16),
            Self::Float32 => f64::from(f32::from_bits(bits as u32)),
            Self::Float64 => f64::from_bits(bits),
        })
    }

    /// The bytes of a value; those behind the size are 0. NaN has one form.
    #[inline]
    pub(crate) fn write(self, value: ElementValue) -> [u8; 8] {
        let n = match value {
            ElementValue::Number(n) => n,
            ElementValue::Integer(n) => return (n as u64).to_le_bytes(),
        };
        let bits = match self {
            Self::Uint8Clamped => u64::from(number::to_uint8_clamp(n)),
            Self::Int8 | Self::Uint8 => u64::from(number::to_uint8(n)),
            Self::Int16 | Self::Uint16 => u64::from(number::to_uint16(n)),
            Self::Int32 | Self::Uint32 => u64::from(number::to_uint32(n)),
            Self::BigInt64 | Self::BigUint64 => n as i64 as u64,
            Self::Float16 => u64::from(f16_bits(n)),
            Self::Float32 if n.is_nan() => u64::from(f32::NAN.to_bits()),
            Self::Float32 => u64::from((n as f32).to_bits()),
            Self::Float64 if n.is_nan() => f64::NAN.to_bits(),
            Self::Float64 => n.to_bits(),
        };
        bits.to_le_bytes()
    }

    /// A key with the order of the elements: numbers ascending, −0 before +0, NaN last.
    #[inline]
    pub(crate) fn sort_key(self, bytes: &[u8]) -> i128 {
        match self.read(bytes) {
            ElementValue::Integer(n) => n,
            ElementValue::Number(n) if n.is_nan() => i128::MAX,
            ElementValue::Number(n) => {
                let bits = n.to_bits() as i64;
                i128::from(if bits < 0 { !(bits & i64::MAX) } else { bits })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_their_bytes_and_others_are_converted() {
        for (kind, given, stored) in [
            (ElementType::Uint8Clamped, 300.0, 255.0),
            (ElementType::Uint8Clamped, 2.5, 2.0),
            (ElementType::Int8, 200.0, -56.0),
            (ElementType::Uint8, -1.0, 255.0),
            (ElementType::Int16, 40_000.0, -25_536.0),
            (ElementType::Uint32, -1.0, 4_294_967_295.0),
            (ElementType::Float16, 1.1, 1.099_609_375),
            (ElementType::Float16, 65_520.0, f64::INFINITY),
            (ElementType::Float16, 5.960_464_477_539_063e-8, 5.960_464_477_539_063e-8),
            (ElementType::Float16, -65_504.0, -65_504.0),
            (ElementType::Float32, 1.1, 1.100_000_023_841_858),
            (ElementType::Float64, 1.1, 1.1),
        ] {
            let bytes = kind.write(ElementValue::Number(given));
            assert_eq!(kind.read(&bytes), ElementValue::Number(stored), "{kind:?} {given}");
        }
        let bytes = ElementType::BigUint64.write(ElementValue::Integer(-1));
        assert_eq!(ElementType::BigUint64.read(&bytes), ElementValue::Integer(i128::from(u64::MAX)));
        assert_eq!(ElementType::BigInt64.read(&bytes), ElementValue::Integer(-1));
    }

    #[test]
    fn elements_are_sorted_as_numbers() {
        let values = [f64::NEG_INFINITY, -2.0, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
        let keys = values.map(|n| ElementType::Float64.sort_key(&n.to_le_bytes()));
        assert!(keys.is_sorted() && keys[3] < keys[4], "{keys:?}");
    }
}
