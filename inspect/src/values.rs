//! The facts that an engine provides about its values.
//!
//! Owns: [`EngineValues`] and the types of its results.

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    Undefined,
    Null,
    Boolean,
    Number,
    Bigint,
    String,
    Symbol,
    /// Functions included.
    Object,
}

/// The class of an object, which a script cannot change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectClass {
    /// Names and values in turn, in place of an object of a platform class.
    Pairs,
    Proxy,
    Array,
    Function,
    Error,
    /// A `DOMException`: its name and message are accessors of its prototype.
    DomException,
    Promise,
    Date,
    RegExp,
    Map,
    Set,
    /// A typed array, with the number of its element type in the order of `members::TYPED_ARRAYS`, which is QuickJS's.
    TypedArray(u32),
    ArrayBuffer,
    SharedArrayBuffer,
    DataView,
    WeakMap,
    WeakSet,
    WeakRef,
    Boxed(Boxed),
    Arguments,
    Generator,
    AsyncGenerator,
    MapIterator,
    SetIterator,
    Namespace,
    Plain,
}

/// The wrapper object of a primitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boxed {
    Number,
    String,
    Boolean,
    Symbol,
    Bigint,
}

/// The kind of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    Class,
    Normal,
    Generator,
    Async,
    AsyncGenerator,
}

/// The state of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    Pending,
    Fulfilled,
    Rejected,
}

/// An own property, read without running any code of the script.
#[derive(Debug, Clone)]
pub enum Property<V> {
    /// A data property.
    Data(V),
    /// An accessor property.
    Accessor {
        /// There is a getter.
        get: bool,
        /// There is a setter.
        set: bool,
    },
}

/// An own property with its enumerability.
#[derive(Debug, Clone)]
pub struct OwnKey<V> {
    pub property: Property<V>,
    pub enumerable: bool,
}

/// The items that an iterator of a `Map` or a `Set` has not returned yet.
#[derive(Debug, Clone)]
pub enum IteratorItems<V> {
    Values(Vec<V>),
    Entries(Vec<(V, V)>),
}

/// Items of an iterator, and the number of all that it has not returned yet.
pub type IteratorRest<V> = (IteratorItems<V>, usize);

/// A part of an object of a platform class, whose state is not in properties.
#[derive(Debug, Clone)]
pub enum ShownField<V> {
    Text(String),
    Value(V),
    /// An object of this class, whose names and values are these.
    Pairs(&'static str, Vec<(String, String)>),
}

/// The parts of an object with their names.
pub type ShownFields<V> = Vec<(&'static str, ShownField<V>)>;

/// Keys and values, and the number of all.
pub type MapEntries<V> = (Vec<(V, V)>, usize);

/// A binding of a module that is not initialised yet.
#[derive(Debug, Clone, Copy)]
pub struct Uninitialized;

/// Reads values of an engine. No function runs code of a script. Functions about objects return an empty result for values that
/// are not of the named class.
pub trait EngineValues {
    type Value: Clone;
    type Key: Clone;

    /// Longest text of one value (bytes).
    const TEXT_BYTES: usize;

    fn value_type(&self, value: &Self::Value) -> ValueType;
    /// The number, if the value is one.
    fn number(&self, value: &Self::Value) -> Option<f64>;
    fn value_of_number(&self, number: f64) -> Self::Value;
    fn truthy(&self, value: &Self::Value) -> bool;
    /// `String(x)` of a boolean, a number or a bigint, `undefined` or `null`.
    fn primitive(&self, value: &Self::Value) -> String;
    /// `Number(x)` of a primitive other than a symbol.
    fn to_number(&self, value: &Self::Value) -> f64;
    /// `Symbol(description)`.
    fn symbol(&self, value: &Self::Value) -> String;
    /// Length of a string in code units.
    fn string_units(&self, string: &Self::Value) -> usize;
    /// At most `most` code units of a string; `true`: it is longer.
    fn units(&self, string: &Self::Value, most: usize) -> (Vec<u16>, bool);
    /// A string as text, cut to this many bytes.
    fn text(&self, string: &Self::Value, most: usize) -> String;

    /// The same for the same object, and different for others.
    fn identity(&self, object: &Self::Value) -> usize;
    fn class(&self, object: &Self::Value) -> ObjectClass;
    /// The object behind any number of proxies: itself if it is none; `None` if one of them was revoked.
    fn behind_proxies(&self, object: &Self::Value) -> Option<Self::Value>;
    fn is_callable(&self, value: &Self::Value) -> bool;
    fn prototype(&self, object: &Self::Value) -> Option<Self::Value>;
    /// The text that is shown in place of an object of a platform class, whose state is not in properties.
    fn view(
        &self,
        _object: &Self::Value,
        _class: ObjectClass,
        _constructor: Option<&str>,
    ) -> Option<(Self::Value, ObjectClass)> {
        None
    }

    /// The parts that are shown of an object of a platform class, with their names.
    fn fields(&self, _object: &Self::Value) -> Option<ShownFields<Self::Value>> {
        None
    }

    /// The name and message of a [`ObjectClass::DomException`].
    fn dom_exception(&self, _object: &Self::Value) -> Option<(String, String)> {
        None
    }

    /// The own property of an object that is no proxy.
    fn own(
        &self,
        object: &Self::Value,
        key: &Self::Key,
    ) -> Result<Option<OwnKey<Self::Value>>, Uninitialized>;
    /// The element of a list.
    fn element(&self, list: &Self::Value, index: usize) -> Option<OwnKey<Self::Value>>;
    /// The first index from `from` on at which a list has an element.
    fn next_element(&self, list: &Self::Value, from: usize) -> Option<usize> {
        let keys = self.keys(list, false, usize::MAX);
        let indices = keys.iter().filter_map(|key| self.key_text(key)?.parse::<usize>().ok());
        indices.filter(|index| *index >= from).min()
    }
    /// Enumerable keys of a list of this length that are no indices.
    fn keys_beside_elements(&self, list: &Self::Value, length: usize) -> Vec<Self::Key> {
        if length > SEARCHED_ELEMENTS {
            return Vec::new();
        }
        let is_index = |key: &Self::Key| {
            self.key_text(key).is_some_and(|text| {
                text.parse::<u32>().is_ok_and(|index| index < u32::MAX && index.to_string() == text)
            })
        };
        self.keys(list, true, usize::MAX).into_iter().filter(|key| !is_index(key)).collect()
    }
    /// The key of a name; `None`: no object can have it.
    fn key(&self, name: &str) -> Option<Self::Key>;
    /// The key `Symbol.toStringTag`.
    fn to_string_tag(&self) -> Option<Self::Key>;
    /// At most `most` own enumerable keys of an object that is no proxy: strings, then symbols if `symbols` is set.
    fn keys(&self, object: &Self::Value, symbols: bool, most: usize) -> Vec<Self::Key>;
    /// At most `most` code units of a key; `true`: it is longer. `None` for a symbol.
    fn key_units(&self, key: &Self::Key, most: usize) -> Option<(Vec<u16>, bool)>;
    /// The description of a key that is a symbol.
    fn key_symbol(&self, key: &Self::Key) -> Vec<u16>;

    /// The primitive in a wrapper object.
    fn unboxed(&self, object: &Self::Value) -> Option<Self::Value>;
    /// A date's ISO text; `None` if it is invalid.
    fn date(&self, date: &Self::Value) -> Option<String>;
    /// Source and flags.
    fn regexp(&self, regexp: &Self::Value) -> (String, String);
    fn function_kind(&self, function: &Self::Value) -> FunctionKind;
    /// The text of `stack`: an own property that the script set, or the stack that the engine recorded.
    fn error_stack(&self, error: &Self::Value) -> Option<String>;
    /// At most `most` entries of a `Map`, and the number of all.
    fn map_entries(&self, map: &Self::Value, most: usize) -> MapEntries<Self::Value>;
    /// At most `most` values of a `Set`, and the number of all.
    fn set_values(&self, set: &Self::Value, most: usize) -> (Vec<Self::Value>, usize);
    /// At most `most` items of the rest of an iterator of a `Map` or a `Set`, and the number of all; `None` if the engine cannot
    /// tell. The iterator stays where it is.
    fn iterator_items(&self, iterator: &Self::Value, most: usize) -> Option<IteratorRest<Self::Value>>;
    /// Whether the items of an iterator of a `Map` or a `Set` are entries.
    fn iterates_entries(&self, iterator: &Self::Value) -> bool;
    fn promise(&self, promise: &Self::Value) -> Option<(Settled, Self::Value)>;
    fn weak_target(&self, reference: &Self::Value) -> Option<Self::Value>;
    /// At most `most` bytes of a buffer, and its length; `None` if it is detached.
    fn buffer_bytes(&self, buffer: &Self::Value, most: usize) -> Option<(Vec<u8>, usize)>;
    /// At most `most` bytes of a typed array, and its length in bytes.
    fn typed_array_bytes(&self, array: &Self::Value, most: usize) -> Option<(Vec<u8>, usize)>;
    /// The text of a typed array's element that is a bigint, if a value of the engine cannot be made of it.
    fn bigint_element(&self, _array: &Self::Value, _index: usize) -> Option<String> {
        None
    }
    /// `byteLength`, `byteOffset` and `buffer` of a `DataView`.
    fn data_view(&self, view: &Self::Value) -> Option<[Self::Value; 3]>;

    /// The JSON that represents a value completely, if there is one of limited size.
    fn json(&self, value: &Self::Value) -> Option<String>;
    /// The calls in progress, as in a stack: each on a line of its own, after a line feed.
    fn calls(&self) -> String;

    /// The value of an own data property.
    fn own_data(&self, object: &Self::Value, name: &str) -> Option<Self::Value> {
        match self.own(object, &self.key(name)?) {
            Ok(Some(OwnKey { property: Property::Data(value), .. })) => Some(value),
            _ => None,
        }
    }

    /// The first data property of this name along the prototypes; an accessor or a proxy on the way hides it.
    fn inherited_data(&self, object: &Self::Value, name: &str) -> Option<Self::Value> {
        let key = self.key(name)?;
        let mut at = object.clone();
        for _ in 0..PROTOTYPES {
            if self.class(&at) == ObjectClass::Proxy {
                return None;
            }
            match self.own(&at, &key) {
                Ok(Some(OwnKey { property: Property::Data(value), .. })) => return Some(value),
                Ok(None) => at = self.prototype(&at)?,
                _ => return None,
            }
        }
        None
    }

    /// A key's text; `None` for a symbol.
    fn key_text(&self, key: &Self::Key) -> Option<String> {
        Some(String::from_utf16_lossy(&self.key_units(key, Self::TEXT_BYTES)?.0))
    }

    /// A string as text, cut to the limit of a value's text.
    fn string(&self, string: &Self::Value) -> String {
        self.text(string, Self::TEXT_BYTES)
    }

    fn is_string(&self, value: &Self::Value) -> bool {
        self.value_type(value) == ValueType::String
    }

    fn is_object(&self, value: &Self::Value) -> bool {
        self.value_type(value) == ValueType::Object
    }
}

/// Lists longer than this are not searched for properties besides their elements, where all keys would be listed.
const SEARCHED_ELEMENTS: usize = 100_000;

/// Longest prototype chain that is followed.
pub(crate) const PROTOTYPES: usize = 1_000;
