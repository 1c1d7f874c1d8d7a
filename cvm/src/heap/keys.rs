//! Property keys: canonical strings by their content, and symbols.
//!
//! Owns: which string cell is the canonical one of its content. Must not: use objects.

use super::text::Text;
use super::{Cell, Heap, StrCell};
use crate::value::{Id, Key, Value};

impl Heap {
    fn intern_lookup(&self, hash: u64, text: Text<'_>) -> Option<Id> {
        let own = self.interns.find(hash, |id| self.str(id) == text);
        own.or_else(|| self.under.as_ref().and_then(|base| base.intern(hash, text)))
    }

    /// Marks a flat string cell as the canonical one of its content.
    pub(crate) fn adopt_interned(&mut self, id: Id) {
        let hash = self.str(id).hash64();
        if self.intern_lookup(hash, self.str(id)).is_none() {
            self.interns.insert(hash, id);
        }
    }

    /// The key of a string, if any object could have it.
    pub(crate) fn find_key(&self, id: Id) -> Option<Key> {
        match self.cell(id) {
            Some(Cell::Str(StrCell::Narrow(_, true) | StrCell::Wide(_, true))) if id.0 > 255 => {
                return Some(Key::cell(id));
            }
            _ => {}
        }
        let text = self.str(id);
        if let Some(i) = text.as_index() {
            return Some(Key::index(i));
        }
        self.intern_lookup(text.hash64(), text).map(Key::cell)
    }

    /// The key of a text, if any object could have it.
    pub(crate) fn find_key_of(&self, text: &str) -> Option<Key> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let narrow: Option<Vec<u8>> = units.iter().map(|unit| u8::try_from(*unit).ok()).collect();
        let text = match &narrow {
            Some(bytes) => Text::Narrow(bytes),
            None => Text::Wide(&units),
        };
        match text.as_index() {
            Some(index) => Some(Key::index(index)),
            None => self.intern_lookup(text.hash64(), text).map(Key::cell),
        }
    }

    /// The key of a string.
    pub(crate) fn key_of_str(&mut self, id: Id) -> Key {
        if let Some(key) = self.find_key(id) {
            return key;
        }
        let hash = self.str(id).hash64();
        let canonical = if matches!(self.cell(id), Some(Cell::Str(StrCell::Narrow(..) | StrCell::Wide(..)))) {
            self.touch(id);
            if let Some(Cell::Str(StrCell::Narrow(_, flag) | StrCell::Wide(_, flag))) =
                self.cells.get_mut(id.index())
            {
                *flag = true;
            }
            id
        } else {
            let cell = match self.str(id) {
                Text::Narrow(t) => StrCell::Narrow(t.into(), true),
                Text::Wide(t) => StrCell::Wide(t.into(), true),
            };
            self.alloc(Cell::Str(cell))
        };
        self.interns.insert(hash, canonical);
        Key::cell(canonical)
    }

    /// The key of a text of the engine itself.
    pub(crate) fn key(&mut self, text: &str) -> Key {
        let id = self.new_str(text);
        self.key_of_str(id)
    }

    /// A key as a value of the language.
    pub(crate) fn key_value(&mut self, key: Key) -> Value {
        match key.as_index() {
            Some(i) => {
                let text = i.to_string();
                Value::Str(self.new_str(&text))
            }
            None => {
                let id = Id(key.0);
                if self.symbol(id).is_some() { Value::Sym(id) } else { Value::Str(id) }
            }
        }
    }

    /// Whether this key is a symbol (private names included).
    pub(crate) fn key_is_symbol(&self, key: Key) -> bool {
        key.as_cell().is_some_and(|id| self.symbol(id).is_some())
    }

    /// Whether this key is a private name.
    pub(crate) fn key_is_private(&self, key: Key) -> bool {
        key.as_cell().is_some_and(|id| self.symbol(id).is_some_and(|s| s.private))
    }
}
