//! Helpers that several builtin files use: shared function objects, changed attributes, uncommon construction.
//!
//! Must not: depend on a particular builtin.

use super::ids;
use super::realm::Realm;
use crate::heap::object::attr;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Ret, Vm};

impl Realm {
    /// Defines the value of a property on another object too.
    pub(super) fn share(&mut self, from: Id, name: &str, to: Id) {
        let key = self.key(name);
        let found = self.heap.obj(from).props.get(key).copied();
        if let Some(property) = found {
            self.put(to, name, property.value, property.flags);
        }
    }

    /// Makes the members of a prototype enumerable, as `WebIDL` has it, unlike ECMA-262.
    pub(super) fn show_members(&mut self, object: Id) {
        let names: Vec<_> = self.heap.obj(object).props.iter().map(|p| (p.key, p.flags)).collect();
        for (key, flags) in names {
            let hidden = key == ids::key(ids::CONSTRUCTOR) || self.heap.key_is_symbol(key);
            let props = &mut self.heap.obj_mut(object).props;
            if let Some(slot) = props.find(key).filter(|_| !hidden)
                && let Some(property) = props.at_mut(slot)
            {
                property.flags = flags | attr::E;
            }
        }
    }

    /// Changes the attributes of a property.
    pub(super) fn set_flags(&mut self, holder: Id, name: &str, flags: u8) {
        let key = self.key(name);
        let object = self.heap.obj_mut(holder);
        if let Some(slot) = object.props.find(key)
            && let Some(property) = object.props.at_mut(slot)
        {
            property.flags = flags;
        }
    }
}

impl Vm<'_> {
    /// Continues in a constructor of the prelude, because `prototype` of the new target is a getter or behind a proxy.
    pub(super) fn slow_constructor(&mut self, call: &NativeCall, name: &str) -> Ret {
        let constructor = self.prelude_function(name);
        self.set_slot(call.at - 2, constructor);
        self.set_slot(call.at - 1, Value::Undefined);
        Ret::TailNew(call.argc, call.new_target)
    }
}
