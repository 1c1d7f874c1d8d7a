//! Cells that states share: the realm's, then a program's constants. They are built from code, never stored and never
//! changed; a state that writes to such a cell copies it first.
//!
//! Owns: [`Base`], [`Interns`]. Must not: use states.

use super::object::Object;
use super::text::Text;
use super::{Cell, StrCell};
use crate::value::Id;
use std::collections::HashMap;
use std::sync::Arc;

/// Canonical strings by the hash of their text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interns {
    by_hash: HashMap<u64, Id, foldhash::fast::FixedState>,
    collisions: Vec<(u64, Id)>,
}

impl Interns {
    /// The canonical string for which `is` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl Fn(Id) -> bool) -> Option<Id> {
        let &id = self.by_hash.get(&hash)?;
        if is(id) {
            return Some(id);
        }
        self.collisions.iter().find(|(h, id)| *h == hash && is(*id)).map(|&(_, id)| id)
    }

    pub(crate) fn insert(&mut self, hash: u64, id: Id) {
        if let std::collections::hash_map::Entry::Vacant(e) = self.by_hash.entry(hash) {
            e.insert(id);
        } else {
            self.collisions.push((hash, id));
        }
    }

    /// Removes the strings for which `keep` is false.
    pub(crate) fn retain(&mut self, keep: impl Fn(Id) -> bool) {
        self.by_hash.retain(|_, id| keep(*id));
        let old = std::mem::take(&mut self.collisions);
        for (hash, id) in old {
            if keep(id) {
                self.insert(hash, id);
            }
        }
    }
}

/// Shared cells: those of the layers below, then the layer's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Base {
    pub(super) under: Option<Arc<Base>>,
    /// Id of the first own cell
    pub(super) first: usize,
    pub(super) cells: Vec<Cell>,
    pub(super) interns: Interns,
}

impl Base {
    /// Number of cells, those of the layers below included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.first + self.cells.len()
    }

    /// The cell with this number.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&Cell> {
        let mut layer = self;
        while index < layer.first {
            layer = layer.under.as_deref()?;
        }
        layer.cells.get(index - layer.first)
    }

    /// The object with this id.
    pub(crate) fn object(&self, id: Id) -> Option<&Object> {
        match self.get(id.index()) {
            Some(Cell::Obj(object)) => Some(object),
            _ => None,
        }
    }

    /// The canonical string of a text.
    pub(super) fn intern(&self, hash: u64, text: Text<'_>) -> Option<Id> {
        let mut layer = self;
        loop {
            let is = |id: Id| match self.get(id.index()) {
                Some(Cell::Str(StrCell::Narrow(t, _))) => Text::Narrow(t) == text,
                Some(Cell::Str(StrCell::Wide(t, _))) => Text::Wide(t) == text,
                _ => false,
            };
            if let Some(id) = layer.interns.find(hash, is) {
                return Some(id);
            }
            layer = layer.under.as_deref()?;
        }
    }
}
