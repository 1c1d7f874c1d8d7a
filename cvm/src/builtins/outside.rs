//! Values as JSON for the host: results, options of `CC`, arguments of host calls. No code of the program runs: accessors and
//! `toJSON` are not called; dates and URLs are the texts that theirs return. Every JSON reader can parse the text: it has no lone
//! surrogates, and its nesting is bounded.

use crate::heap::object::{ObjectKind, attr};
use crate::pure::date::to_iso_string;
use crate::pure::elements::ElementValue;
use crate::pure::json::quote_readably;
use crate::value::{Id, Key, Value};
use crate::vm::Vm;

/// Deepest nesting. Common JSON parsers accept 127 levels, and the value may be embedded in other lists and objects.
const MAX_DEPTH: usize = 100;
/// Most work: UTF-16 units that are written, and one for each property that is visited. The host accepts much less. Without
/// the bound, an object that refers twice to the next one at each of 100 levels would be written 2^100 times.
const BUDGET: usize = 16 << 20;

/// Why a value cannot be exported; completes a sentence with the value as its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotExportable {
    /// A cycle, or nested too deeply.
    Deep,
    /// More than [`BUDGET`].
    Large,
    /// A proxy: its properties are those that its handler returns, and no code of the program runs here.
    Proxy,
}

impl NotExportable {
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::Deep => "contains itself, or is nested more than 100 levels deep",
            Self::Large => "is too large",
            Self::Proxy => {
                "is or contains a Proxy, which has no data of its own: use a copy, such as `{ ...proxy }`"
            }
        }
    }
}

impl Vm<'_> {
    /// A value as JSON; parts that JSON cannot represent are `null`.
    pub(crate) fn export_json(&self, value: Value) -> Result<String, NotExportable> {
        let mut exporter = JsonExporter { vm: self, out: Vec::new(), visited: 0 };
        exporter.value(value, 0)?;
        Ok(String::from_utf16_lossy(&exporter.out))
    }
}

struct JsonExporter<'a, 'p> {
    vm: &'a Vm<'p>,
    out: Vec<u16>,
    /// Properties and elements that were visited.
    visited: usize,
}

impl JsonExporter<'_, '_> {
    fn plain(&mut self, text: &str) {
        self.out.extend(text.encode_utf16());
    }

    fn text(&mut self, text: Id) -> Result<(), NotExportable> {
        let text = self.vm.st.heap.str(text);
        // Checked before the copy, which can be six times as long.
        if text.len() > BUDGET {
            return Err(NotExportable::Large);
        }
        quote_readably(&mut self.out, &text);
        Ok(())
    }

    /// Counts one property or element.
    fn step(&mut self) -> Result<(), NotExportable> {
        self.visited += 1;
        if self.out.len() + self.visited > BUDGET { Err(NotExportable::Large) } else { Ok(()) }
    }

    fn value(&mut self, value: Value, depth: usize) -> Result<(), NotExportable> {
        match value {
            Value::Str(id) => self.text(id)?,
            Value::Bool(_) | Value::Int(_) | Value::Null => self.plain(&self.vm.plain_text(value)),
            Value::Num(n) if n.is_finite() => self.plain(&self.vm.plain_text(value)),
            Value::Big(_) => self.plain(&format!("\"{}\"", self.vm.plain_text(value))),
            Value::Obj(_) if self.vm.is_callable(value) => self.plain("null"),
            Value::Obj(_) if depth == MAX_DEPTH => return Err(NotExportable::Deep),
            Value::Obj(id) => self.object(id, depth)?,
            _ => self.plain("null"),
        }
        Ok(())
    }

    fn object(&mut self, id: Id, depth: usize) -> Result<(), NotExportable> {
        if let Some(href) = self.vm.href(id) {
            return self.text(href);
        }
        let object = self.vm.st.heap.obj(id);
        match &object.kind {
            ObjectKind::Array(array) => {
                self.plain("[");
                for i in 0..array.len {
                    if i > 0 {
                        self.plain(",");
                    }
                    self.step()?;
                    let dense = array.dense.get(i as usize).copied().filter(|value| *value != Value::Hole);
                    let element = dense.or_else(|| self.element_property(id, i)).unwrap_or(Value::Null);
                    self.value(element, depth + 1)?;
                }
                self.plain("]");
            }
            ObjectKind::Primitive(value) => self.value(*value, depth + 1)?,
            ObjectKind::Proxy(_) => return Err(NotExportable::Proxy),
            ObjectKind::Date(time) => {
                let text =
                    to_iso_string(*time).map_or_else(|| "null".to_owned(), |text| format!("\"{text}\""));
                self.plain(&text);
            }
            _ => self.properties(id, depth)?,
        }
        Ok(())
    }

    /// An element that is stored as a property: after a gap, or with other attributes.
    fn element_property(&self, array: Id, i: u32) -> Option<Value> {
        let found = self.vm.st.heap.obj(array).props.get(Key::index(i))?;
        (found.flags & attr::ACCESSOR == 0).then_some(found.value)
    }

    /// The elements of a typed array, each with its index as the key; false if there are none.
    fn elements(&mut self, id: Id) -> Result<bool, NotExportable> {
        let Some(view) = self.vm.st.heap.typed_array(Value::Obj(id)) else { return Ok(false) };
        let count = self.vm.st.heap.count_of(view).unwrap_or(0);
        for i in 0..count {
            self.step()?;
            let text = match self.vm.element_value(view, i) {
                Some(ElementValue::Number(n)) if n.is_finite() => self.vm.plain_text(Value::num(n)),
                Some(ElementValue::Integer(n)) => format!("\"{n}\""),
                _ => "null".to_owned(),
            };
            self.plain(&format!("{}\"{i}\":{text}", if i > 0 { "," } else { "" }));
        }
        Ok(count > 0)
    }

    fn properties(&mut self, id: Id, depth: usize) -> Result<(), NotExportable> {
        self.plain("{");
        let mut first = !self.elements(id)?;
        for p in self.vm.st.heap.obj(id).props.iter() {
            self.step()?;
            let value = match p.flags & attr::ACCESSOR {
                0 => Some(p.value),
                // The export of a module
                _ => self.vm.exported_value(p.value),
            };
            let Some(value) = value.filter(|_| p.flags & attr::E != 0) else { continue };
            let nothing = matches!(value, Value::Undefined | Value::Uninit | Value::Sym(_))
                || self.vm.is_callable(value);
            if nothing || self.vm.st.heap.key_is_symbol(p.key) {
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
            self.value(value, depth + 1)?;
        }
        self.plain("}");
        Ok(())
    }
}
