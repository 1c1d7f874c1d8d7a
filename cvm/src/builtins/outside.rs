//! Values as JSON for whoever is outside: results, options of `CC`, arguments of host calls. No code of the program runs:
//! accessors and `toJSON` are not called. Every reader can read what is written: there are no half characters in it, and it is
//! not nested deeper than readers go.

use crate::heap::object::{Kind, attr};
use crate::pure::date::to_iso_string;
use crate::pure::json::quote_readably;
use crate::value::{Id, Key, Value};
use crate::vm::Vm;

/// Deepest nesting. Common readers take 127 levels, and a value may lie in a list or two there.
const MAX_DEPTH: usize = 100;
/// Most that is written or looked at: UTF-16 units, and one for each property. Far more than anybody outside takes; an object
/// that lies in itself twice at each of so many levels would be written 2^100 times.
const BUDGET: usize = 16 << 20;

/// Why a value cannot be told outside; completes a sentence that begins with what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Untold {
    /// A cycle, or as good as one.
    Deep,
    /// Beyond the budget.
    Large,
}

impl Untold {
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::Deep => "contains itself, or is nested more than 100 levels deep",
            Self::Large => "is too large",
        }
    }
}

impl Vm<'_> {
    /// A value as JSON; what JSON does not know is `null`.
    pub(crate) fn told(&self, value: Value) -> Result<String, Untold> {
        let mut teller = Teller { vm: self, out: Vec::new(), seen: 0 };
        teller.value(value, 0)?;
        Ok(String::from_utf16_lossy(&teller.out))
    }
}

struct Teller<'a, 'p> {
    vm: &'a Vm<'p>,
    out: Vec<u16>,
    /// Properties and elements that were looked at.
    seen: usize,
}

impl Teller<'_, '_> {
    fn plain(&mut self, text: &str) {
        self.out.extend(text.encode_utf16());
    }

    fn text(&mut self, text: Id) -> Result<(), Untold> {
        let text = self.vm.st.heap.str(text);
        // Before it is copied, and perhaps six times as long.
        if text.len() > BUDGET {
            return Err(Untold::Large);
        }
        quote_readably(&mut self.out, &text);
        Ok(())
    }

    /// One more property or element.
    fn step(&mut self) -> Result<(), Untold> {
        self.seen += 1;
        if self.out.len() + self.seen > BUDGET { Err(Untold::Large) } else { Ok(()) }
    }

    fn value(&mut self, value: Value, depth: usize) -> Result<(), Untold> {
        match value {
            Value::Str(id) => self.text(id)?,
            Value::Bool(_) | Value::Int(_) | Value::Null => self.plain(&self.vm.plain_text(value)),
            Value::Num(n) if n.is_finite() => self.plain(&self.vm.plain_text(value)),
            Value::Big(_) => self.plain(&format!("\"{}\"", self.vm.plain_text(value))),
            Value::Obj(_) if self.vm.is_callable(value) => self.plain("null"),
            Value::Obj(_) if depth == MAX_DEPTH => return Err(Untold::Deep),
            Value::Obj(id) => self.object(id, depth)?,
            _ => self.plain("null"),
        }
        Ok(())
    }

    fn object(&mut self, id: Id, depth: usize) -> Result<(), Untold> {
        let object = self.vm.st.heap.obj(id);
        match &object.kind {
            Kind::Array(array) => {
                self.plain("[");
                for i in 0..array.len {
                    if i > 0 {
                        self.plain(",");
                    }
                    self.step()?;
                    let dense = array.dense.get(i as usize).copied().filter(|value| *value != Value::Hole);
                    let element = dense.or_else(|| self.beside(id, i)).unwrap_or(Value::Null);
                    self.value(element, depth + 1)?;
                }
                self.plain("]");
            }
            Kind::Primitive(value) => self.value(*value, depth + 1)?,
            Kind::Date(time) => {
                let text =
                    to_iso_string(*time).map_or_else(|| "null".to_owned(), |text| format!("\"{text}\""));
                self.plain(&text);
            }
            _ => self.properties(id, depth)?,
        }
        Ok(())
    }

    /// An element that is kept among the properties: behind a gap, or with attributes of its own.
    fn beside(&self, array: Id, i: u32) -> Option<Value> {
        let props = &self.vm.st.heap.obj(array).props;
        let found = props.find(Key::index(i)).and_then(|slot| props.at(slot))?;
        (found.flags & attr::ACCESSOR == 0).then_some(found.value)
    }

    fn properties(&mut self, id: Id, depth: usize) -> Result<(), Untold> {
        self.plain("{");
        let mut first = true;
        for p in self.vm.st.heap.obj(id).props.iter() {
            self.step()?;
            let hidden = p.flags & attr::E == 0 || p.flags & attr::ACCESSOR != 0;
            let nothing = matches!(p.value, Value::Undefined | Value::Sym(_)) || self.vm.is_callable(p.value);
            if hidden || nothing || self.vm.st.heap.key_is_symbol(p.key) {
                continue;
            }
            if !first {
                self.plain(",");
            }
            first = false;
            match p.key.as_index() {
                Some(i) => self.plain(&format!("\"{i}\"")),
                None => self.text(Id(p.key.0))?,
            }
            self.plain(":");
            self.value(p.value, depth + 1)?;
        }
        self.plain("}");
        Ok(())
    }
}
