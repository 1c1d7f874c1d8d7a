//! Values, heap ids and property keys: the small `Copy` types that the whole engine uses.
//!
//! Owns: [`Value`], [`Id`], [`Key`]. Must not: reach into the heap.

/// Index of a heap cell. Ids are stable for a cell's whole life and are reused only after the collector freed it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Id(pub u32);

impl Id {
    /// No cell.
    pub(crate) const NONE: Id = Id(u32::MAX);

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub(crate) fn some(self) -> Option<Id> {
        if self == Id::NONE { None } else { Some(self) }
    }
}

/// A value of the language, or a marker that only the engine uses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Value {
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number that is a small integer; `Num` may hold the same numbers.
    Int(i32),
    /// Any other number
    Num(f64),
    /// A string cell
    Str(Id),
    /// A symbol cell
    Sym(Id),
    /// A bigint cell
    Big(Id),
    /// An object cell
    Obj(Id),
    /// Engine only: a missing array element, or the marker of a fast iterator
    Hole,
    /// Engine only: a binding before its initialisation
    Uninit,
    /// Engine only: a scope, an accessor pair or another internal cell
    Cell(Id),
}

impl Value {
    /// A number, as `Int` if that is exact.
    #[inline]
    pub(crate) fn num(n: f64) -> Value {
        let i = n as i32;
        if f64::from(i) == n && (i != 0 || n.is_sign_positive()) { Value::Int(i) } else { Value::Num(n) }
    }

    /// A count or an index as a number.
    #[inline]
    pub(crate) fn count(n: usize) -> Value {
        match i32::try_from(n) {
            Ok(i) => Value::Int(i),
            Err(_) => Value::Num(n as f64),
        }
    }

    /// `undefined` or `null`.
    #[inline]
    pub(crate) fn is_nullish(self) -> bool {
        matches!(self, Value::Undefined | Value::Null)
    }

    /// An object.
    #[inline]
    pub(crate) fn is_object(self) -> bool {
        matches!(self, Value::Obj(_))
    }

    /// The object's id.
    #[inline]
    pub(crate) fn as_obj(self) -> Option<Id> {
        if let Value::Obj(id) = self { Some(id) } else { None }
    }

    /// The number, if the value is one.
    #[inline]
    pub(crate) fn as_num(self) -> Option<f64> {
        match self {
            Value::Int(i) => Some(f64::from(i)),
            Value::Num(n) => Some(n),
            _ => None,
        }
    }

    /// The cell to which the value refers.
    #[inline]
    pub(crate) fn cell_id(self) -> Option<Id> {
        match self {
            Value::Str(id) | Value::Sym(id) | Value::Big(id) | Value::Obj(id) | Value::Cell(id) => Some(id),
            _ => None,
        }
    }
}

/// A property key: an array index below 2^31, or the id of an interned string or of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key(pub u32);

impl Key {
    const INDEX: u32 = 1 << 31;
    /// Never equal to a real key: a deleted entry.
    pub(crate) const TOMB: Key = Key(u32::MAX);
    /// Largest index a key holds directly.
    pub(crate) const MAX_INDEX: u32 = (1 << 31) - 2;

    /// An index key; `i` must be at most [`Key::MAX_INDEX`].
    #[inline]
    pub(crate) fn index(i: u32) -> Key {
        Key(i | Self::INDEX)
    }

    /// The key of an interned string or symbol cell.
    #[inline]
    pub(crate) fn cell(id: Id) -> Key {
        Key(id.0)
    }

    /// The index, if the key is one.
    #[inline]
    pub(crate) fn as_index(self) -> Option<u32> {
        if self.0 & Self::INDEX != 0 { Some(self.0 & !Self::INDEX) } else { None }
    }

    /// The string or symbol cell.
    #[inline]
    pub(crate) fn as_cell(self) -> Option<Id> {
        if self.0 & Self::INDEX == 0 { Some(Id(self.0)) } else { None }
    }
}
