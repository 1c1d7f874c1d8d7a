//! The values that a cell refers to.

use crate::heap::object::{Object, ObjectKind};
use crate::heap::{Cell, StrCell};
use crate::value::{Id, Value};

/// Calls `each` with every value that a cell refers to.
pub(super) fn references(cell: &Cell, mut each: impl FnMut(Value)) {
    match cell {
        Cell::Str(StrCell::View(buf, _)) => each(Value::Cell(*buf)),
        Cell::Sym(s) => each(s.description),
        Cell::Scope(parent, slots) => {
            each(*parent);
            slots.iter().copied().for_each(each);
        }
        Cell::Pair(get, set) => {
            each(*get);
            each(*set);
        }
        Cell::Obj(o) => object_references(o, &mut each),
        _ => {}
    }
}

fn object_references(o: &Object, each: &mut impl FnMut(Value)) {
    if o.proto != Id::NONE {
        each(Value::Obj(o.proto));
    }
    for p in o.props.iter() {
        each(p.value);
    }
    match &o.kind {
        ObjectKind::Array(a) | ObjectKind::Arguments(a) => a.dense.iter().copied().for_each(each),
        ObjectKind::Function(f) => [f.env, f.home, f.this, f.extra, f.fields].into_iter().for_each(each),
        ObjectKind::Bound(b) => {
            each(b.0);
            each(b.1);
            b.2.iter().copied().for_each(each);
        }
        ObjectKind::Primitive(v) => each(*v),
        ObjectKind::RegExp(a, b) => {
            each(*a);
            each(*b);
        }
        ObjectKind::Map(t) | ObjectKind::Set(t) | ObjectKind::Weak(t) => {
            for (k, v) in &t.entries {
                each(*k);
                each(*v);
            }
        }
        ObjectKind::Coroutine(c) => {
            c.slots.iter().copied().for_each(&mut *each);
            [c.env, c.new_target, c.link].into_iter().for_each(each);
        }
        ObjectKind::Promise(p) => {
            each(p.result);
            for (a, b, c) in &p.reactions {
                each(*a);
                each(*b);
                each(*c);
            }
        }
        ObjectKind::Record(_, slots) => slots.iter().copied().for_each(each),
        ObjectKind::Proxy(p) => {
            each(p.0);
            each(p.1);
        }
        ObjectKind::View(view) => each(Value::Obj(view.buffer)),
        ObjectKind::Plain | ObjectKind::Error | ObjectKind::Date(_) | ObjectKind::Buffer(_) => {}
    }
}
