//! The table of Rust functions that JavaScript can call, and how builtin files describe themselves.
//!
//! Owns: [`Module`] and its parts, native numbers. Must not: know any builtin.

use crate::value::{Id, Value};
use crate::vm::NativeFn;
use std::collections::HashMap;
use std::sync::OnceLock;

/// What one builtin file brings.
pub(crate) struct Module {
    /// Natives the prelude calls as `$name(…)`
    pub intrinsics: &'static [(&'static str, NativeFn)],
    /// Methods and getters in Rust
    pub methods: &'static [Method],
    /// Constructors
    pub ctors: &'static [Ctor],
    /// Method lists of the prelude and the objects they go on
    pub lists: &'static [(Id, &'static str)],
    /// The prelude's part of this file
    pub source: &'static str,
    /// Constants and the like
    pub extra: fn(&mut super::realm::Realm),
}

/// A module without parts, for `..EMPTY`.
pub(crate) const EMPTY: Module =
    Module { intrinsics: &[], methods: &[], ctors: &[], lists: &[], source: "", extra: |_| {} };

/// A method or getter in Rust.
pub(crate) struct Method {
    /// The object it goes on
    pub holder: Id,
    /// Its key: a name, or `$$SYM_…` for a well-known symbol
    pub key: &'static str,
    /// `length`
    pub length: u16,
    /// What it does
    pub run: NativeFn,
    /// Function of the prelude that takes over when it gives `Ret::Slow`
    pub slow: &'static str,
    /// A getter instead of a method
    pub getter: bool,
    /// Has `[[Construct]]`
    pub constructs: bool,
    /// Fixed id of the function object, or none
    pub at: Option<Id>,
}

/// A method.
pub(crate) const fn method(holder: Id, key: &'static str, length: u16, run: NativeFn) -> Method {
    Method { holder, key, length, run, slow: "", getter: false, constructs: false, at: None }
}

/// A getter.
pub(crate) const fn getter(holder: Id, key: &'static str, run: NativeFn) -> Method {
    Method { holder, key, length: 0, run, slow: "", getter: true, constructs: false, at: None }
}

impl Method {
    /// Names the prelude's version for cases that this one does not take.
    pub(crate) const fn slow(mut self, name: &'static str) -> Method {
        self.slow = name;
        self
    }

    /// Gives the function object a fixed id.
    pub(crate) const fn at(mut self, id: Id) -> Method {
        self.at = Some(id);
        self
    }
}

/// How a constructor runs.
pub(crate) enum CtorCode {
    /// A Rust function; it sees `new_target`
    Native(NativeFn),
    /// A function of the prelude whose name ends in `_`
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
    /// What it does
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
    /// What it does
    pub run: NativeFn,
    /// Has `[[Construct]]`
    pub constructs: bool,
    /// Function of the prelude for the slow case
    pub slow: &'static str,
}

/// All builtin files. The order is part of the realm's layout: append.
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
];

struct Tables {
    natives: Vec<Native>,
    intrinsics: HashMap<&'static str, u32>,
    /// Number of the first method of each module
    methods: Vec<u32>,
    /// Number of the first constructor of each module
    ctors: Vec<u32>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut t = Tables {
            natives: Vec::new(),
            intrinsics: HashMap::new(),
            methods: Vec::new(),
            ctors: Vec::new(),
        };
        for module in MODULES {
            for &(name, run) in module.intrinsics {
                t.intrinsics.insert(name, t.natives.len() as u32);
                t.natives.push(Native { run, constructs: false, slow: "" });
            }
            t.methods.push(t.natives.len() as u32);
            for m in module.methods {
                t.natives.push(Native { run: m.run, constructs: m.constructs, slow: m.slow });
            }
            t.ctors.push(t.natives.len() as u32);
            for c in module.ctors {
                let (run, constructs): (NativeFn, bool) = match c.code {
                    CtorCode::Native(run) => (run, true),
                    CtorCode::Prelude(_) => (|_, _| Ok(Value::Undefined.into()), false),
                };
                t.natives.push(Native { run, constructs, slow: "" });
            }
        }
        t
    })
}

/// All natives by number.
#[inline]
pub(crate) fn table() -> &'static [Native] {
    &tables().natives
}

/// Number of the native that the prelude calls `$name`.
pub(crate) fn intrinsic(name: &str) -> Option<u32> {
    tables().intrinsics.get(name).copied()
}

/// Numbers of the first method and the first constructor of a module.
pub(crate) fn first_numbers(module: usize) -> (u32, u32) {
    let t = tables();
    (t.methods.get(module).copied().unwrap_or(0), t.ctors.get(module).copied().unwrap_or(0))
}
