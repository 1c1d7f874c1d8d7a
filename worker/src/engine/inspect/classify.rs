//! Owns the classification of objects by QuickJS's class, which a script cannot change.

use crate::engine::sys;
use rquickjs::{Object, Result, Value};
use vm_system_inspect::{Boxed, ObjectClass};

macro_rules! classes {
    ($($field:ident => $kind:expr,)*) => {
        /// QuickJS's class numbers, learnt from samples.
        #[derive(Debug, Clone, Copy, Default)]
        pub(in crate::engine) struct ClassNumbers {
            $($field: u32,)*
            pub(in crate::engine) generator_function: u32,
            pub(in crate::engine) async_function: u32,
            pub(in crate::engine) async_generator_function: u32,
            namespace: u32,
        }

        impl ClassNumbers {
            /// Reads the class numbers of sample objects that were created before any script ran.
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

            fn by_class(&self, class: u32) -> Option<ObjectClass> {
                $(if class == self.$field { return Some($kind); })*
                (class == self.namespace).then_some(ObjectClass::Namespace)
            }
        }
    };
}

classes! {
    plain => ObjectClass::Plain,
    array => ObjectClass::Array,
    error => ObjectClass::Error,
    dom_exception => ObjectClass::DomException,
    promise => ObjectClass::Promise,
    date => ObjectClass::Date,
    regexp => ObjectClass::RegExp,
    map => ObjectClass::Map,
    set => ObjectClass::Set,
    array_buffer => ObjectClass::ArrayBuffer,
    shared_array_buffer => ObjectClass::SharedArrayBuffer,
    data_view => ObjectClass::DataView,
    weak_map => ObjectClass::WeakMap,
    weak_set => ObjectClass::WeakSet,
    weak_ref => ObjectClass::WeakRef,
    number => ObjectClass::Boxed(Boxed::Number),
    string => ObjectClass::Boxed(Boxed::String),
    boolean => ObjectClass::Boxed(Boxed::Boolean),
    symbol => ObjectClass::Boxed(Boxed::Symbol),
    bigint => ObjectClass::Boxed(Boxed::Bigint),
    arguments => ObjectClass::Arguments,
    mapped_arguments => ObjectClass::Arguments,
    generator => ObjectClass::Generator,
    async_generator => ObjectClass::AsyncGenerator,
    map_iterator => ObjectClass::MapIterator,
    set_iterator => ObjectClass::SetIterator,
}

impl ClassNumbers {
    /// The class of this object.
    pub(in crate::engine) fn kind(&self, object: &Object<'_>) -> ObjectClass {
        if object.is_proxy() {
            return ObjectClass::Proxy;
        }
        if let Some(element) = sys::typed_array_kind(object) {
            return ObjectClass::TypedArray(element);
        }
        match self.by_class(sys::class_id(object)) {
            Some(kind) => kind,
            None if object.is_function() => ObjectClass::Function,
            None => ObjectClass::Plain,
        }
    }
}

impl ClassNumbers {
    /// Whether the object is one of `{}` or of a class that a script has written.
    pub(in crate::engine) fn is_ordinary(&self, object: &Object<'_>) -> bool {
        sys::class_id(object) == self.plain
    }
}

/// The object behind any number of proxies; `None` if one of them was revoked.
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
