//! The contents of an object cell: prototype, own properties in order, and the internal slots of its kind.
//!
//! Owns: [`Object`], [`Props`], [`ObjectKind`]. Must not: access other cells, run code or account memory.

use crate::outcome::ItemKind;
use crate::pure::elements::ElementType;
use crate::value::{Id, Key, Value};
use std::collections::HashMap;

/// Property attributes as bits.
pub(crate) mod attr {
    /// `[[Writable]]`
    pub(crate) const W: u8 = 1;
    /// `[[Enumerable]]`
    pub(crate) const E: u8 = 2;
    /// `[[Configurable]]`
    pub(crate) const C: u8 = 4;
    /// The value is an accessor pair cell
    pub(crate) const ACCESSOR: u8 = 8;
    /// Plain assignment's attributes
    pub(crate) const ALL: u8 = W | E | C;
    /// Attributes of builtin methods
    pub(crate) const HIDDEN: u8 = W | C;
}

/// One own property.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prop {
    /// Name
    pub key: Key,
    /// Attribute bits, see [`attr`]
    pub flags: u8,
    /// Value, or `Value::Cell` of an accessor pair
    pub value: Value,
}

/// Own properties in creation order. From nine on a hash index helps; it is derived and never stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Props {
    list: Vec<Prop>,
    live: u32,
    index: Option<HashMap<Key, u32, foldhash::fast::FixedState>>,
}

const INDEX_FROM: usize = 9;

impl Props {
    /// Slot of `key`.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<usize> {
        if let Some(index) = &self.index {
            return index.get(&key).map(|&i| i as usize);
        }
        self.list.iter().position(|p| p.key == key)
    }

    /// The property of `key`.
    pub(crate) fn get(&self, key: Key) -> Option<&Prop> {
        self.find(key).and_then(|slot| self.prop_at(slot))
    }

    /// The property at `slot`, a result of [`Props::find`].
    #[inline]
    pub(crate) fn prop_at(&self, slot: usize) -> Option<&Prop> {
        self.list.get(slot)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, slot: usize) -> Option<&mut Prop> {
        self.list.get_mut(slot)
    }

    /// Adds a key that does not exist yet.
    pub(crate) fn push(&mut self, prop: Prop) {
        if let Some(index) = &mut self.index {
            index.insert(prop.key, self.list.len() as u32);
        }
        self.list.push(prop);
        self.live += 1;
        if self.index.is_none() && self.list.len() >= INDEX_FROM {
            self.reindex();
        }
    }

    fn reindex(&mut self) {
        let mut index =
            HashMap::with_capacity_and_hasher(self.list.len() * 2, foldhash::fast::FixedState::default());
        for (i, p) in self.list.iter().enumerate() {
            if p.key != Key::TOMB {
                index.insert(p.key, i as u32);
            }
        }
        self.index = Some(index);
    }

    /// Removes the property at `slot`; compacts the list when half of its entries are deleted.
    pub(crate) fn remove(&mut self, slot: usize) {
        let Some(key) = self.list.get(slot).map(|p| p.key) else { return };
        if slot + 1 == self.list.len() {
            self.list.pop();
            if let Some(index) = &mut self.index {
                index.remove(&key);
            }
            self.live -= 1;
            return;
        }
        if self.index.is_none() {
            self.list.remove(slot);
            self.live -= 1;
            return;
        }
        self.list[slot] = Prop { key: Key::TOMB, flags: 0, value: Value::Undefined };
        if let Some(index) = &mut self.index {
            index.remove(&key);
        }
        self.live -= 1;
        if (self.live as usize) * 2 < self.list.len() {
            self.list.retain(|p| p.key != Key::TOMB);
            if self.list.len() < INDEX_FROM {
                self.index = None;
            } else {
                self.reindex();
            }
        }
    }

    /// All properties in creation order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Prop> + '_ {
        self.list.iter().filter(|p| p.key != Key::TOMB)
    }

    /// The raw list with its deleted entries, as it is stored.
    pub(crate) fn raw(&self) -> &[Prop] {
        &self.list
    }

    pub(crate) fn from_raw(list: Vec<Prop>) -> Props {
        let live = list.iter().filter(|p| p.key != Key::TOMB).count() as u32;
        let mut props = Props { list, live, index: None };
        if props.list.len() >= INDEX_FROM {
            props.reindex();
        }
        props
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.list.len() * 24
    }
}

/// How a function cell runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Code {
    /// Compiled code: template number
    Template(u32),
    /// Rust function: number in the native table
    Native(u32),
}

/// A function's internal slots.
#[derive(Clone, Debug)]
pub(crate) struct Func {
    /// Compiled code or native
    pub code: Code,
    /// Closure scope (`Value::Cell`) or undefined
    pub env: Value,
    /// `[[HomeObject]]` or undefined
    pub home: Value,
    /// Arrow functions: the captured `this`; natives: a bound internal value
    pub this: Value,
    /// Arrow functions: the captured `new.target`; natives: a second internal value
    pub extra: Value,
    /// Classes: the function that initialises fields, or undefined
    pub fields: Value,
    /// Own `length`, `name` and `prototype` are created on first access
    pub lazy: bool,
}

/// Dense storage of arrays and arguments objects.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    /// Elements with plain attributes; `Value::Hole` where missing or kept among the properties
    pub dense: Vec<Value>,
    /// `length`
    pub len: u32,
    /// `length` may be changed
    pub len_writable: bool,
}

/// Ordered storage of `Map` and `Set`: entries keep their position until the collection is compacted.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntryTable {
    /// Key and value; a deleted entry has the key `Value::Hole`
    pub entries: Vec<(Value, Value)>,
    /// Live entries
    pub live: u32,
    /// Derived: hash of key to positions
    pub index: HashMap<u64, Vec<u32>, foldhash::fast::FixedState>,
    /// For each entry its number in order of insertion, ascending: iterators hold these numbers and so survive compaction
    pub order: Vec<u64>,
    /// Number of the next entry
    pub next: u64,
}

/// The bytes of an `ArrayBuffer`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteBuffer {
    /// `[[ArrayBufferData]]`, none when detached
    pub bytes: Vec<u8>,
    /// `[[ArrayBufferMaxByteLength]]` of a resizable one
    pub max: Option<u64>,
    /// Transferred: it has no bytes any more
    pub detached: bool,
}

/// A typed array, or a `DataView`.
#[derive(Clone, Debug)]
pub(crate) struct ByteView {
    /// Type of the elements; none for a `DataView`
    pub element: Option<ElementType>,
    /// `[[ViewedArrayBuffer]]`
    pub buffer: Id,
    /// `[[ByteOffset]]`
    pub offset: u64,
    /// Elements, or bytes of a `DataView`; none if the length follows the buffer's
    pub length: Option<u64>,
}

impl ByteView {
    /// Bytes of an element.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.element.map_or(1, ElementType::size)
    }

    /// Number of elements (bytes for a `DataView`) over a buffer with this many bytes; none if the view is out of its bounds.
    #[inline]
    pub(crate) fn count(&self, bytes: usize) -> Option<usize> {
        let rest = (bytes as u64).checked_sub(self.offset)?;
        let fits = rest / self.size() as u64;
        match self.length {
            None => Some(fits as usize),
            Some(length) => (length <= fits).then_some(length as usize),
        }
    }
}

/// Internal slots by kind of object.
#[derive(Clone, Debug)]
pub(crate) enum ObjectKind {
    /// No internal slots
    Plain,
    /// Array exotic object
    Array(Array),
    /// Strict arguments object
    Arguments(Array),
    /// A function
    Function(Box<Func>),
    /// Bound function exotic object: target, this, arguments
    Bound(Box<(Value, Value, Vec<Value>)>),
    /// Error; its stack text
    Error,
    /// Wrapper of a primitive
    Primitive(Value),
    /// Milliseconds since the epoch or NaN
    Date(f64),
    /// Source, flags (both string values); the compiled form is derived
    RegExp(Value, Value),
    /// Map
    Map(Box<EntryTable>),
    /// Set
    Set(Box<EntryTable>),
    /// `WeakMap`, `WeakSet`, `WeakRef`, `FinalizationRegistry`: held strongly; liveness is not observable
    Weak(Box<EntryTable>),
    /// Generator, async function or async generator: a suspended frame
    Coroutine(Box<Coroutine>),
    /// A promise: state 0 pending, 1 fulfilled, 2 rejected; result; reactions; handled
    Promise(Box<Promise>),
    /// Engine record with a tag and value slots: iterators of builtins, proxies' private parts, capabilities
    Record(u32, Vec<Value>),
    /// Proxy: target, handler (null when revoked); callable, constructor
    Proxy(Box<(Value, Value, bool, bool)>),
    /// `ArrayBuffer`
    Buffer(Box<ByteBuffer>),
    /// Integer-indexed exotic object, or a `DataView`
    View(Box<ByteView>),
}

/// A promise's internal slots.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    /// 0 pending, 1 fulfilled, 2 rejected
    pub state: u8,
    /// `[[PromiseIsHandled]]`
    pub handled: bool,
    /// Result or reason
    pub result: Value,
    /// Reactions in order: (capability or coroutine, on fulfilled, on rejected)
    pub reactions: Vec<(Value, Value, Value)>,
    /// The pending item that settles it
    pub item: Option<PromiseItem>,
}

/// A promise is an item's: the number of the item, and its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PromiseItem {
    pub number: u64,
    pub kind: ItemKind,
}

/// Accounted bytes of a pending item, in addition to its promise.
pub(crate) const ITEM_BYTES: usize = 64;

/// A suspended frame of a generator or an async function.
#[derive(Clone, Debug)]
pub(crate) struct Coroutine {
    /// 0 suspended at start, 1 suspended at a yield or await, 2 running, 3 done
    pub state: u8,
    /// Template of the function
    pub template: u32,
    /// Instruction at which to continue, relative to the template's start
    pub pc: u32,
    /// Frame slots: callee, this, locals, operands
    pub slots: Vec<Value>,
    /// Frame environment
    pub env: Value,
    /// `new.target` of the frame
    pub new_target: Value,
    /// Async: the promise of the call; async generators: the request queue
    pub link: Value,
}

/// An object.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// `[[Prototype]]`, `Id::NONE` for null
    pub proto: Id,
    /// `[[Extensible]]`
    pub extensible: bool,
    /// Own properties
    pub props: Props,
    /// Internal slots
    pub kind: ObjectKind,
}

impl Object {
    pub(crate) fn new(proto: Id, kind: ObjectKind) -> Object {
        Object { proto, extensible: true, props: Props::default(), kind }
    }
}
