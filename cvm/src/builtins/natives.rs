//! The table of Rust functions that JavaScript can call, and the description of a builtin file.
//!
//! Owns: [`Module`] and its parts, native numbers. Must not: depend on any builtin.

use crate::value::Id;
use crate::vm::NativeFn;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The contents of one builtin file.
pub(crate) struct Module {
    /// The first generation that has them
    pub since: u32,
    /// Natives the prelude calls as `$name(…)`
    pub intrinsics: &'static [(&'static str, NativeFn)],
    /// Methods and getters in Rust
    pub methods: &'static [NativeMethod],
    /// Constructors
    pub ctors: &'static [Ctor],
    /// Method lists of the prelude and the objects they are defined on
    pub lists: &'static [(Id, &'static str)],
    /// The prelude's part of this file
    pub source: &'static str,
    /// Constants and the like
    pub extra: fn(&mut super::realm::Realm),
}

/// A module without parts, for `..EMPTY`.
pub(crate) const EMPTY: Module =
    Module { since: 1, intrinsics: &[], methods: &[], ctors: &[], lists: &[], source: "", extra: |_| {} };

/// A method or getter in Rust.
pub(crate) struct NativeMethod {
    /// The object on which the method is defined
    pub holder: Id,
    /// A name, or `$$SYM_…` for a well-known symbol
    pub key: &'static str,
    /// `length`
    pub length: u16,
    /// The function
    pub run: NativeFn,
    /// Function of the prelude that is called when this native returns `Ret::Slow`
    pub slow: &'static str,
    /// A getter instead of a method
    pub getter: bool,
    /// Has `[[Construct]]`
    pub constructs: bool,
    /// Fixed id of the function object, or none
    pub at: Option<Id>,
}

/// A method.
pub(crate) const fn method(holder: Id, key: &'static str, length: u16, run: NativeFn) -> NativeMethod {
    NativeMethod { holder, key, length, run, slow: "", getter: false, constructs: false, at: None }
}

/// A getter.
pub(crate) const fn getter(holder: Id, key: &'static str, run: NativeFn) -> NativeMethod {
    NativeMethod { holder, key, length: 0, run, slow: "", getter: true, constructs: false, at: None }
}

impl NativeMethod {
    /// Sets the prelude's version for the cases that this native does not handle.
    pub(crate) const fn slow(mut self, name: &'static str) -> NativeMethod {
        self.slow = name;
        self
    }

    /// Sets the fixed id of the function object.
    pub(crate) const fn with_id(mut self, id: Id) -> NativeMethod {
        self.at = Some(id);
        self
    }
}

/// The code of a constructor.
pub(crate) enum CtorCode {
    /// A Rust function; it sees `new_target`
    Native(NativeFn),
    /// A function of the prelude, with a name that ends in `_`
    Prelude(&'static str),
}

/// A constructor with its prototype object.
pub(crate) struct Ctor {
    /// Fixed id of the function object
    pub id: Id,
    /// Name, also the global's name
    pub name: &'static str,
    /// `length`
    pub length: u16,
    /// The function
    pub code: CtorCode,
    /// Fixed id of `prototype`, or `Id::NONE`
    pub proto: Id,
    /// `[[Prototype]]` of the function object
    pub parent: Id,
    /// `[[Prototype]]` of the prototype object
    pub proto_parent: Id,
    /// A property of the global object
    pub global: bool,
}

/// An entry of the table.
pub(crate) struct Native {
    /// The function
    pub run: NativeFn,
    /// Has `[[Construct]]`
    pub constructs: bool,
    /// Function of the prelude for the slow case
    pub slow: &'static str,
}

/// All builtin files.
pub(crate) const MODULES: &[&Module] = &[
    &super::core::MODULE,
    &super::proxy::MODULE,
    &super::object::MODULE,
    &super::function::MODULE,
    &super::error::MODULE,
    &super::symbol::MODULE,
    &super::boolean::MODULE,
    &super::number::MODULE,
    &super::bigint::MODULE,
    &super::string::MODULE,
    &super::string_make::MODULE,
    &super::array::MODULE,
    &super::array_methods::MODULE,
    &super::iterator::MODULE,
    &super::iterator_helpers::MODULE,
    &super::generator::MODULE,
    &super::promise::MODULE,
    &super::math::MODULE,
    &super::date::MODULE,
    &super::date_set::MODULE,
    &super::collections::MODULE,
    &super::json::MODULE,
    &super::json_plain::MODULE,
    &super::regexp::MODULE,
    &super::uri::MODULE,
    &super::global::MODULE,
    &super::host::MODULE,
    &super::console::MODULE,
    &super::web::MODULE,
    &super::dispose::MODULE,
    &super::array_dense::MODULE,
    &super::array_buffer::MODULE,
    &super::data_view::MODULE,
    &super::typed_array::MODULE,
    &super::elements::MODULE,
    &super::encoding::MODULE,
    &super::fetch::MODULE,
    &super::intl::MODULE,
    &super::intl_tags::MODULE,
    &super::items::MODULE,
];

/// The files of a generation that is built from the sources. Later modules follow the others, so that ids, templates and numbers of
/// natives of an earlier generation are the same without them.
pub(crate) fn modules_of(generation: u32) -> impl Iterator<Item = &'static Module> {
    MODULES.iter().copied().filter(move |module| module.since <= generation)
}

struct Tables {
    natives: Vec<Native>,
    numbers: HashMap<String, u32>,
}

/// Natives have their numbers of the newest released generation; new ones follow in the order of the modules.
fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut mine: HashMap<String, Native> = HashMap::new();
        let mut order = Vec::new();
        for module in MODULES {
            for (name, native) in natives_of(module) {
                order.push(name.clone());
                mine.insert(name, native);
            }
        }
        let mut names = super::generations::released_natives();
        names.extend(order.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
        let numbers = names.iter().enumerate().map(|(i, name)| (name.clone(), i as u32)).collect();
        let natives = names.iter().map(|name| mine.remove(name).unwrap_or(MISSING)).collect();
        Tables { natives, numbers }
    })
}

/// Replaces a native of a released generation that this engine does not have; a test excludes it.
const MISSING: Native =
    Native { run: |_, _| Err(crate::vm::Raise::Fault("a native is missing")), constructs: false, slow: "" };

fn natives_of(module: &Module) -> Vec<(String, Native)> {
    let mut list = Vec::new();
    for &(name, run) in module.intrinsics {
        list.push((intrinsic_name(name), Native { run, constructs: false, slow: "" }));
    }
    for m in module.methods {
        list.push((method_name(m), Native { run: m.run, constructs: m.constructs, slow: m.slow }));
    }
    for c in module.ctors {
        if let CtorCode::Native(run) = c.code {
            list.push((ctor_name(c), Native { run, constructs: true, slow: "" }));
        }
    }
    list
}

fn intrinsic_name(name: &str) -> String {
    format!("${name}")
}

fn method_name(m: &NativeMethod) -> String {
    let word = if m.getter { "get " } else { "" };
    format!("{word}{}.{}", super::ids::object_shown(m.holder), m.key)
}

fn ctor_name(c: &Ctor) -> String {
    format!("new {}", super::ids::object_shown(c.id))
}

/// All natives by number.
#[inline]
pub(crate) fn table() -> &'static [Native] {
    &tables().natives
}

/// Names of all natives by number; they are part of a generation.
#[cfg(test)]
pub(crate) fn names() -> Vec<String> {
    let mut names = vec![String::new(); tables().natives.len()];
    for (name, &number) in &tables().numbers {
        names[number as usize].clone_from(name);
    }
    names
}

/// Whether this name is that of a native.
#[cfg(test)]
pub(crate) fn exists(name: &str) -> bool {
    MODULES.iter().any(|module| natives_of(module).iter().any(|(known, _)| known == name))
}

fn number(name: &str) -> Option<u32> {
    tables().numbers.get(name).copied()
}

/// Number of the native that the prelude calls `$name`.
pub(crate) fn intrinsic(name: &str) -> Option<u32> {
    number(&intrinsic_name(name))
}

/// Number of a method's native.
pub(crate) fn of_method(m: &NativeMethod) -> u32 {
    number(&method_name(m)).unwrap_or(u32::MAX)
}

/// Number of a constructor's native.
pub(crate) fn of_ctor(c: &Ctor) -> u32 {
    number(&ctor_name(c)).unwrap_or(u32::MAX)
}
