//! Owns what an object is inside, by QuickJS's class and not by anything that a script could change.

use crate::engine::sys;
use rquickjs::{Object, Result, Value};

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Kind {
    Proxy,
    Array,
    Function,
    Error,
    Promise,
    Date,
    RegExp,
    Map,
    Set,
    /// With QuickJS's number of the element type.
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

/// A primitive in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Boxed {
    Number,
    String,
    Boolean,
    Symbol,
    Bigint,
}

macro_rules! classes {
    ($($field:ident => $kind:expr,)*) => {
        /// QuickJS's class numbers, learnt from samples.
        #[derive(Debug, Clone, Copy, Default)]
        pub(in crate::engine) struct Classes {
            $($field: u32,)*
            pub(in crate::engine) generator_function: u32,
            pub(in crate::engine) async_function: u32,
            pub(in crate::engine) async_generator_function: u32,
            namespace: u32,
        }

        impl Classes {
            /// Reads the classes of an object of samples, made before any script ran.
            pub(in crate::engine) fn learn(samples: &Object<'_>, namespace: &Object<'_>) -> Result<Self> {
                let class = |name: &str| -> Result<u32> { Ok(sys::class_id(&samples.get::<_, Object>(name)?)) };
                Ok(Self {
                    $($field: class(stringify!($field))?,)*
                    generator_function: class("generator_function")?,
                    async_function: class("async_function")?,
                    async_generator_function: class("async_generator_function")?,
                    namespace: sys::class_id(namespace),
                })
            }

            fn by_class(&self, class: u32) -> Option<Kind> {
                $(if class == self.$field { return Some($kind); })*
                (class == self.namespace).then_some(Kind::Namespace)
            }
        }
    };
}

classes! {
    array => Kind::Array,
    error => Kind::Error,
    promise => Kind::Promise,
    date => Kind::Date,
    regexp => Kind::RegExp,
    map => Kind::Map,
    set => Kind::Set,
    array_buffer => Kind::ArrayBuffer,
    shared_array_buffer => Kind::SharedArrayBuffer,
    data_view => Kind::DataView,
    weak_map => Kind::WeakMap,
    weak_set => Kind::WeakSet,
    weak_ref => Kind::WeakRef,
    number => Kind::Boxed(Boxed::Number),
    string => Kind::Boxed(Boxed::String),
    boolean => Kind::Boxed(Boxed::Boolean),
    symbol => Kind::Boxed(Boxed::Symbol),
    bigint => Kind::Boxed(Boxed::Bigint),
    arguments => Kind::Arguments,
    mapped_arguments => Kind::Arguments,
    generator => Kind::Generator,
    async_generator => Kind::AsyncGenerator,
    map_iterator => Kind::MapIterator,
    set_iterator => Kind::SetIterator,
}

impl Classes {
    /// What this object is.
    pub(in crate::engine) fn kind(&self, object: &Object<'_>) -> Kind {
        if object.is_proxy() {
            return Kind::Proxy;
        }
        if let Some(element) = sys::typed_array_kind(object) {
            return Kind::TypedArray(element);
        }
        match self.by_class(sys::class_id(object)) {
            Some(kind) => kind,
            None if object.is_function() => Kind::Function,
            None => Kind::Plain,
        }
    }
}

/// The object behind any number of proxies; `None` when one was revoked.
pub(in crate::engine) fn behind_proxies<'js>(value: &Value<'js>) -> Option<Value<'js>> {
    let mut value = value.clone();
    for _ in 0..super::PROTOTYPES {
        match value.as_object() {
            Some(object) if object.is_proxy() => value = sys::proxy_target(object)?,
            _ => return Some(value),
        }
    }
    None
}
