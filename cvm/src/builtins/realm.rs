//! Building the pristine realm: every builtin object at its fixed or computed id, from the modules' descriptions.
//!
//! Owns: [`Realm`], the builder that interprets the modules' descriptions. Must not: depend on what builtins do, or on the
//! generation of a program (see `generations`).

use super::ids;
use super::natives::{self, CtorCode};
use super::prelude::{self, Methods, Prelude};
use crate::heap::object::{Array, Code, Func, Object, ObjectKind, Prop, attr};
use crate::heap::{Cell, Heap, StrCell, SymCell};
use crate::value::{Id, Key, Value};

/// The realm while it is built.
pub(crate) struct Realm {
    pub heap: Heap,
    pub prelude: Prelude,
    methods: Methods,
}

/// Builds realm and prelude of a generation that this engine's sources describe.
pub(crate) fn build(generation: u32) -> (Heap, Prelude) {
    let (prelude, methods) = prelude::compile(generation);
    let mut realm = Realm { heap: Heap::new(u64::MAX), prelude, methods };
    realm.fixed();
    for module in natives::modules_of(generation) {
        realm.module(module);
    }
    (realm.heap, realm.prelude)
}

impl Realm {
    fn fixed(&mut self) {
        for unit in 0..=255u8 {
            let id = self.heap.alloc(Cell::Str(StrCell::Narrow(Box::new([unit]), true)));
            self.heap.adopt_interned(id);
        }
        let empty = self.heap.alloc(Cell::Str(StrCell::Narrow(Box::new([]), true)));
        self.heap.adopt_interned(empty);
        let [(atoms, _), (symbols, _), (objects, _)] = ids::fixed();
        self.reach(atoms);
        for (_, text) in ids::ATOMS {
            let id = self.heap.alloc(Cell::Str(StrCell::Narrow(text.as_bytes().into(), true)));
            self.heap.adopt_interned(id);
        }
        // Descriptions of symbols are allocated after the fixed cells.
        self.reach(symbols);
        for _ in ids::SYMBOLS {
            self.heap.alloc(Cell::Sym(SymCell {
                description: Value::Undefined,
                private: false,
                registered: false,
            }));
        }
        self.reach(objects);
        for _ in ids::OBJECTS {
            self.heap.new_object(ids::OBJECT_PROTO, ObjectKind::Plain);
        }
        self.reach(Id(ids::FIRST_FREE));
        for (name, text) in ids::SYMBOLS {
            let description = self.heap.str_value(text);
            if let Some(id) = ids::realm_id(name)
                && let Some(Cell::Sym(s)) = self.heap.cells.get_mut(id.index())
            {
                s.description = description;
            }
        }
        self.heap.obj_mut(ids::OBJECT_PROTO).proto = Id::NONE;
        let dense = Array { dense: Vec::new(), len: 0, len_writable: true };
        self.heap.obj_mut(ids::ARRAY_PROTO).kind = ObjectKind::Array(dense);
    }

    /// Continues at this id; the ids before it stay free.
    fn reach(&mut self, id: Id) {
        self.heap.cells.resize(id.index(), Cell::Free);
        self.heap.dirty.resize(id.index().div_ceil(crate::heap::PAGE_CELLS), 0);
        self.heap.partly.resize(id.index().div_ceil(crate::heap::PAGE_CELLS), 0);
        self.heap.cursor = id.0;
    }

    /// The key of a name or `$$SYM_…`.
    pub(crate) fn key(&mut self, name: &str) -> Key {
        match name.strip_prefix("$$").and_then(ids::realm_id) {
            Some(id) => Key::cell(id),
            None => self.heap.key(name),
        }
    }

    /// Defines a property of an object.
    pub(crate) fn put(&mut self, holder: Id, name: &str, value: Value, flags: u8) {
        let key = self.key(name);
        let object = self.heap.obj_mut(holder);
        match object.props.find(key) {
            Some(slot) => {
                if let Some(p) = object.props.at_mut(slot) {
                    *p = Prop { key, flags, value };
                }
            }
            None => object.props.push(Prop { key, flags, value }),
        }
    }

    /// Defines a string property, not writable, configurable: `Symbol.toStringTag` and the like.
    pub(crate) fn tag(&mut self, holder: Id, text: &str) {
        let value = self.heap.str_value(text);
        self.put(holder, "$$SYM_TO_STRING_TAG", value, attr::C);
    }

    /// Defines an object as a property of the global object.
    pub(crate) fn global(&mut self, name: &str, value: Value) {
        self.put(ids::GLOBAL, name, value, attr::HIDDEN);
    }

    /// Creates a function object, at the fixed id `at` if there is one.
    pub(crate) fn function(&mut self, at: Option<Id>, code: Code, name: &str, length: u16, proto: Id) -> Id {
        let func = Func {
            code,
            env: Value::Undefined,
            home: Value::Undefined,
            this: Value::Undefined,
            extra: Value::Undefined,
            fields: Value::Undefined,
            lazy: false,
        };
        let id = at.unwrap_or_else(|| self.heap.new_object(proto, ObjectKind::Plain));
        let text = self.heap.new_str(name);
        let name = Value::Str(Id(self.heap.key_of_str(text).as_cell().unwrap_or(text).0));
        let mut object = Object::new(proto, ObjectKind::Function(Box::new(func)));
        object.props.push(Prop {
            key: ids::key(ids::LENGTH),
            flags: attr::C,
            value: Value::Int(i32::from(length)),
        });
        object.props.push(Prop { key: ids::key(ids::NAME), flags: attr::C, value: name });
        // Properties that were set earlier on a fixed id follow these.
        for p in self.heap.obj(id).props.iter().copied().collect::<Vec<_>>() {
            object.props.push(p);
        }
        *self.heap.obj_mut(id) = object;
        id
    }

    /// Adds a getter or setter.
    fn accessor(&mut self, holder: Id, name: &str, get: Option<Id>, set: Option<Id>) {
        let key = self.key(name);
        let old = self.heap.obj(holder).props.get(key).map(|p| p.value);
        let (old_get, old_set) = old.map_or((Value::Undefined, Value::Undefined), |v| self.heap.pair(v));
        let pair =
            self.heap.alloc(Cell::Pair(get.map_or(old_get, Value::Obj), set.map_or(old_set, Value::Obj)));
        self.put(holder, name, Value::Cell(pair), attr::C | attr::ACCESSOR);
    }

    fn shown(name: &str) -> String {
        if name.starts_with("$$") { ids::symbol_shown(name) } else { name.to_owned() }
    }

    fn module(&mut self, module: &natives::Module) {
        for c in module.ctors {
            let code = match c.code {
                CtorCode::Native(_) => Code::Native(natives::of_ctor(c)),
                CtorCode::Prelude(name) => {
                    Code::Template(self.prelude.functions.get(name).copied().unwrap_or(0))
                }
            };
            self.function(Some(c.id), code, c.name, c.length, c.parent);
            if c.proto != Id::NONE {
                self.heap.obj_mut(c.proto).proto = c.proto_parent;
                self.put(c.id, "prototype", Value::Obj(c.proto), 0);
                self.put(c.proto, "constructor", Value::Obj(c.id), attr::HIDDEN);
            }
            if c.global {
                self.global(c.name, Value::Obj(c.id));
            }
        }
        for m in module.methods {
            let code = Code::Native(natives::of_method(m));
            let shown = Self::shown(m.key);
            if m.getter {
                let f = self.function(m.at, code, &format!("get {shown}"), 0, ids::FUNCTION_PROTO);
                self.accessor(m.holder, m.key, Some(f), None);
            } else {
                let f = self.function(m.at, code, &shown, m.length, ids::FUNCTION_PROTO);
                self.put(m.holder, m.key, Value::Obj(f), attr::HIDDEN);
            }
        }
        for (holder, list) in module.lists {
            self.list(*holder, list);
        }
        (module.extra)(self);
    }

    /// Defines a method list of the prelude on an object.
    pub(crate) fn list(&mut self, holder: Id, list: &str) {
        let Some(methods) = self.methods.get(list).cloned() else {
            panic!("the prelude has no method list {list}")
        };
        for (key, kind, template) in &methods {
            let length = self.prelude.templates[*template as usize].length;
            let shown = Self::shown(key);
            let name = match kind {
                1 => format!("get {shown}"),
                2 => format!("set {shown}"),
                _ => shown,
            };
            let f = self.function(None, Code::Template(*template), &name, length, ids::FUNCTION_PROTO);
            match kind {
                1 => self.accessor(holder, key, Some(f), None),
                2 => self.accessor(holder, key, None, Some(f)),
                _ => self.put(holder, key, Value::Obj(f), attr::HIDDEN),
            }
        }
    }

    /// Moves a method's function object to its fixed id.
    pub(crate) fn pin(&mut self, holder: Id, name: &str, at: Id) {
        let key = self.key(name);
        let found = self.heap.obj(holder).props.get(key).copied();
        if let Some(p) = found
            && let Value::Obj(id) = p.value
        {
            *self.heap.obj_mut(at) = self.heap.obj(id).clone();
            self.put(holder, name, Value::Obj(at), p.flags);
        }
    }

    /// Adds an alias of a method to its object.
    pub(crate) fn alias(&mut self, holder: Id, name: &str, as_name: &str) {
        let key = self.key(name);
        let found = self.heap.obj(holder).props.get(key).copied();
        if let Some(p) = found {
            self.put(holder, as_name, p.value, p.flags);
        }
    }
}
