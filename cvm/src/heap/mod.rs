//! The heap: cells by stable id, dirty tracking by page, exact accounting, interned strings.
//!
//! Owns: allocation and access. Must not: run code, use opcodes or the stored format. A read with a wrong id or kind
//! returns an inert substitute instead of a panic, because ids may be those of a hostile state.

pub(crate) mod base;
pub(crate) mod bytes;
pub(crate) mod gc;
mod keys;
pub(crate) mod object;
pub(crate) mod spare;
pub(crate) mod text;

use crate::value::{Id, Value};
use base::{Base, Interns};
use num_bigint::BigInt;
use object::{Object, ObjectKind};
use std::collections::HashSet;
use std::sync::Arc;
use text::{Buf, Text};

/// Cells of one page.
pub(crate) const PAGE_CELLS: usize = 64;
/// Items of one part of a long container: elements, entries, properties.
pub(crate) const PART_ITEMS: usize = 128;
/// Bytes of one part of a long text.
pub(crate) const PART_TEXT: usize = 2048;
/// A page with fewer free cells gets no new ones: a checkpoint writes each page that got one.
const LEAST_FREE: usize = 32;
/// The whole cell counts as changed when more of its parts than this are.
const MOST_PARTS: usize = 4096;

/// A string cell's storage.
#[derive(Clone, Debug)]
pub(crate) enum StrCell {
    /// Latin-1 text; the flag is set in the canonical cell of this content
    Narrow(Box<[u8]>, bool),
    /// UTF-16 text with at least one unit above 255
    Wide(Box<[u16]>, bool),
    /// The first units of a shared append-only buffer
    View(Id, u32),
}

/// A symbol cell.
#[derive(Clone, Debug)]
pub(crate) struct SymCell {
    /// Description: a string value or undefined
    pub description: Value,
    /// A private name of a class: never seen by reflection
    pub private: bool,
    /// Registered by `Symbol.for`
    pub registered: bool,
}

/// One cell of the heap.
#[derive(Clone, Debug, Default)]
pub(crate) enum Cell {
    /// Free for the next allocation
    #[default]
    Free,
    /// A string
    Str(StrCell),
    /// A symbol or private name
    Sym(SymCell),
    /// A bigint
    Big(Box<BigInt>),
    /// An object
    Obj(Box<Object>),
    /// Bindings that closures share: parent scope, slots
    Scope(Value, Box<[Value]>),
    /// An accessor pair: getter, setter
    Pair(Value, Value),
    /// Text that string views share
    Buf(Box<Buf>),
    /// Equal to the base's cell
    Below,
}

/// The heap of one state.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    pub(crate) cells: Vec<Cell>,
    /// Per page: cells written anywhere since the last checkpoint
    pub(crate) dirty: Vec<u64>,
    /// Per page: cells of which only the noted parts were written, unless they are dirty too
    pub(crate) partly: Vec<u64>,
    /// Cell and part, for the cells that are partly written
    pub(crate) parts: HashSet<(u32, u32), foldhash::fast::FixedState>,
    /// Per page of the base: cells that differ from the base
    pub(crate) changed: Vec<u64>,
    /// Cells below are reproduced from the realm and the program
    pub(crate) base: u32,
    /// Cells below are not allocated before the next collection
    pub(crate) cursor: u32,
    /// Bytes of all cells, by [`Heap::weight`]
    pub(crate) bytes: u64,
    /// Collect when `bytes` reaches this
    pub(crate) gc_at: u64,
    /// Limit of `bytes`
    pub(crate) limit: u64,
    /// Units that a string may have
    pub(crate) longest: usize,
    /// A longer string was created; the interpreter reacts before its next instruction
    pub(crate) too_long: bool,
    /// Set when the interpreter must check the heap before its next instruction
    pub(crate) attention: bool,
    /// The contents of cells marked [`Cell::Below`]
    under: Option<Arc<Base>>,
    interns: Interns,
    inert: Object,
}

impl Heap {
    /// An empty heap.
    pub(crate) fn new(limit: u64) -> Heap {
        Heap {
            cells: Vec::new(),
            dirty: Vec::new(),
            partly: Vec::new(),
            parts: HashSet::default(),
            changed: Vec::new(),
            base: 0,
            cursor: 0,
            bytes: 0,
            gc_at: u64::MAX,
            limit,
            longest: usize::MAX,
            too_long: false,
            attention: false,
            under: None,
            interns: Interns::default(),
            inert: Object::new(Id::NONE, ObjectKind::Plain),
        }
    }

    /// A heap with only the cells of a base.
    pub(crate) fn on_base(base: &Arc<Base>, limit: u64) -> Heap {
        let cells = base.len();
        let pages = cells.div_ceil(PAGE_CELLS);
        Heap {
            cells: spare::cells_below(cells),
            dirty: vec![0; pages],
            partly: vec![0; pages],
            changed: vec![0; pages],
            base: cells as u32,
            cursor: cells as u32,
            gc_at: 1 << 20,
            under: Some(Arc::clone(base)),
            ..Heap::new(limit)
        }
    }

    /// A heap that has these cells and no base.
    pub(crate) fn of_cells(cells: Vec<Cell>) -> Heap {
        let pages = cells.len().div_ceil(PAGE_CELLS);
        let mut heap = Heap {
            cursor: cells.len() as u32,
            cells,
            dirty: vec![0; pages],
            partly: vec![0; pages],
            ..Heap::new(u64::MAX)
        };
        for i in 0..heap.cells.len() {
            if let Cell::Str(StrCell::Narrow(_, true) | StrCell::Wide(_, true)) = heap.cells[i] {
                heap.adopt_interned(Id(i as u32));
            }
        }
        heap
    }

    /// The allocated cells as a base of other heaps; with `whole_pages` no later cell shares a page with them.
    pub(crate) fn into_base(mut self, whole_pages: bool) -> Base {
        let first = self.base as usize;
        let mut cells = self.cells.split_off(first.min(self.cells.len()));
        if whole_pages {
            let len = (first + cells.len()).next_multiple_of(PAGE_CELLS);
            cells.resize(len - first, Cell::Free);
        }
        Base { under: self.under, first, cells, interns: self.interns }
    }

    /// Accounted bytes of a cell; depends on the content only, never on spare capacity.
    pub(crate) fn weight(cell: &Cell) -> u64 {
        let payload = match cell {
            Cell::Free | Cell::Below => return 0,
            Cell::Str(StrCell::Narrow(t, _)) => t.len(),
            Cell::Str(StrCell::Wide(t, _)) => t.len() * 2,
            Cell::Str(StrCell::View(..)) | Cell::Sym(_) | Cell::Pair(..) => 16,
            Cell::Big(n) => (n.bits() / 8) as usize + 24,
            Cell::Scope(_, slots) => slots.len() * 16 + 16,
            Cell::Buf(b) => b.bytes(),
            Cell::Obj(o) => {
                64 + o.props.capacity_bytes()
                    + match &o.kind {
                        ObjectKind::Array(a) | ObjectKind::Arguments(a) => a.dense.len() * 16 + 24,
                        ObjectKind::Function(_) => 112,
                        ObjectKind::Bound(b) => b.2.len() * 16 + 56,
                        ObjectKind::Map(t) | ObjectKind::Set(t) | ObjectKind::Weak(t) => {
                            t.entries.len() * 48 + 64
                        }
                        ObjectKind::Coroutine(c) => c.slots.len() * 16 + 96,
                        ObjectKind::Promise(p) => {
                            p.reactions.len() * 48 + 64 + p.item.map_or(0, |_| object::ITEM_BYTES)
                        }
                        ObjectKind::Record(_, slots) => slots.len() * 16 + 24,
                        ObjectKind::RegExp(..) => 64,
                        ObjectKind::Buffer(b) => b.bytes.len() + 48,
                        ObjectKind::View(_) => 48,
                        _ => 0,
                    }
            }
        };
        (payload + 32) as u64
    }

    /// Accounts `n` more bytes; the interpreter reacts before its next instruction.
    #[inline]
    pub(crate) fn charge(&mut self, n: usize) {
        self.bytes = self.bytes.saturating_add(n as u64);
        if self.bytes >= self.gc_at || self.bytes > self.limit {
            self.attention = true;
        }
    }

    /// Checks the length of a new string.
    #[inline]
    pub(super) fn measure(&mut self, units: usize) {
        if units > self.longest {
            self.too_long = true;
            self.attention = true;
        }
    }

    /// Marks a cell as changed, and copies a cell of the base into this heap. Must be called before every change.
    #[inline]
    pub(crate) fn touch(&mut self, id: Id) {
        let i = id.index();
        if id.0 < self.base {
            self.own(i);
        }
        if let Some(page) = self.dirty.get_mut(i / PAGE_CELLS) {
            *page |= 1 << (i % PAGE_CELLS);
        }
    }

    /// As [`Heap::touch`] for one item of a container: a checkpoint writes that part and the cell itself only.
    #[inline]
    pub(crate) fn touch_item(&mut self, id: Id, item: usize) {
        self.touch_part(id, item / PART_ITEMS);
    }

    /// As [`Heap::touch`] for bytes of a text or of a buffer.
    fn touch_text(&mut self, id: Id, bytes: std::ops::Range<usize>) {
        let parts = bytes.start / PART_TEXT..bytes.end.div_ceil(PART_TEXT);
        if parts.len() > MOST_PARTS {
            self.touch(id);
            return;
        }
        for part in parts {
            self.touch_part(id, part);
        }
    }

    fn touch_part(&mut self, id: Id, part: usize) {
        let (page, bit) = (id.index() / PAGE_CELLS, 1 << (id.index() % PAGE_CELLS));
        if self.dirty.get(page).is_some_and(|cells| cells & bit != 0) {
            return;
        }
        if id.0 < self.base || self.parts.len() >= MOST_PARTS {
            self.touch(id);
            return;
        }
        if let Some(cells) = self.partly.get_mut(page) {
            *cells |= bit;
            self.parts.insert((id.0, part as u32));
        }
    }

    /// The object for writing one item of its container and nothing else.
    #[inline]
    pub(crate) fn obj_item(&mut self, id: Id, item: usize) -> &mut Object {
        self.touch_item(id, item);
        match self.cells.get_mut(id.index()) {
            Some(Cell::Obj(o)) => o,
            _ => {
                self.inert = Object::new(Id::NONE, ObjectKind::Plain);
                &mut self.inert
            }
        }
    }

    /// The object for writing data that is derived and never stored.
    pub(crate) fn obj_derived(&mut self, id: Id) -> Option<&mut Object> {
        match self.cells.get_mut(id.index()) {
            Some(Cell::Obj(o)) => Some(o),
            _ => None,
        }
    }

    #[cold]
    fn own(&mut self, i: usize) {
        if let Some(page) = self.changed.get_mut(i / PAGE_CELLS) {
            *page |= 1 << (i % PAGE_CELLS);
        }
        if let Some(cell) = self.cells.get_mut(i)
            && matches!(cell, Cell::Below)
        {
            *cell = self.under.as_ref().and_then(|base| base.get(i)).cloned().unwrap_or_default();
            let weight = Heap::weight(cell);
            self.charge(weight as usize);
        }
    }

    /// Everything counts as written since the last checkpoint.
    pub(crate) fn all_dirty(&mut self) {
        self.parts.clear();
        let in_base = (self.base as usize).div_ceil(PAGE_CELLS);
        for (page, cells) in self.dirty.iter_mut().enumerate() {
            *cells = if page < in_base { self.changed.get(page).copied().unwrap_or(0) } else { u64::MAX };
        }
        self.partly.fill(0);
    }

    /// Whether this cell is still equal to the base's.
    pub(crate) fn is_pristine(&self, i: usize) -> bool {
        i < self.base as usize
            && self.changed.get(i / PAGE_CELLS).is_none_or(|m| m & (1 << (i % PAGE_CELLS)) == 0)
    }

    /// The cell, from this heap or from its base.
    #[inline]
    pub(crate) fn cell(&self, id: Id) -> Option<&Cell> {
        match self.cells.get(id.index()) {
            Some(Cell::Below) => self.base_cell(id),
            cell => cell,
        }
    }

    #[inline]
    fn base_cell(&self, id: Id) -> Option<&Cell> {
        self.under.as_ref().and_then(|base| base.get(id.index()))
    }

    /// Whether enough cells are free in the page that begins here.
    fn is_free_enough(&self, first: usize) -> bool {
        let cells = &self.cells[first..self.cells.len().min(first + PAGE_CELLS)];
        let used = cells.iter().filter(|cell| !matches!(cell, Cell::Free)).count();
        used + LEAST_FREE <= PAGE_CELLS
    }

    /// Stores a cell under the lowest free id of a page in which enough cells are free, or were when it got its first one since the last
    /// collection.
    pub(crate) fn alloc(&mut self, cell: Cell) -> Id {
        self.charge(Heap::weight(&cell) as usize);
        let mut at = self.cursor as usize;
        while at < self.cells.len() {
            if at.is_multiple_of(PAGE_CELLS) && !self.is_free_enough(at) {
                at = (at + PAGE_CELLS).min(self.cells.len());
            } else if matches!(self.cells[at], Cell::Free) {
                break;
            } else {
                at += 1;
            }
        }
        self.cursor = at as u32 + 1;
        if at == self.cells.len() {
            self.cells.push(cell);
            if self.cells.len().div_ceil(PAGE_CELLS) > self.dirty.len() {
                self.dirty.push(0);
                self.partly.push(0);
            }
        } else {
            self.cells[at] = cell;
        }
        let id = Id(at as u32);
        self.touch(id);
        id
    }

    /// The object, or an inert substitute for a wrong id.
    #[inline]
    pub(crate) fn obj(&self, id: Id) -> &Object {
        match self.cells.get(id.index()) {
            Some(Cell::Obj(o)) => o,
            Some(Cell::Below) => match self.base_cell(id) {
                Some(Cell::Obj(o)) => o,
                _ => &self.inert,
            },
            _ => &self.inert,
        }
    }

    /// The object for writing; its page becomes dirty.
    #[inline]
    pub(crate) fn obj_mut(&mut self, id: Id) -> &mut Object {
        self.touch(id);
        match self.cells.get_mut(id.index()) {
            Some(Cell::Obj(o)) => o,
            _ => {
                self.inert = Object::new(Id::NONE, ObjectKind::Plain);
                &mut self.inert
            }
        }
    }

    /// A new object; its prototype may be `Id::NONE`.
    #[inline]
    pub(crate) fn new_object(&mut self, proto: Id, kind: ObjectKind) -> Id {
        self.alloc(Cell::Obj(Box::new(Object::new(proto, kind))))
    }

    /// A new scope.
    pub(crate) fn new_scope(&mut self, parent: Value, slots: usize) -> Id {
        self.alloc(Cell::Scope(parent, vec![Value::Uninit; slots].into_boxed_slice()))
    }

    #[inline]
    pub(crate) fn scope_slot(&self, scope: Value, slot: usize) -> Option<Value> {
        match scope {
            Value::Cell(id) => match self.cell(id) {
                Some(Cell::Scope(_, slots)) => slots.get(slot).copied(),
                _ => None,
            },
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn set_scope_slot(&mut self, scope: Value, slot: usize, value: Value) -> bool {
        if let Value::Cell(id) = scope {
            self.touch(id);
            if let Some(Cell::Scope(_, slots)) = self.cells.get_mut(id.index())
                && let Some(place) = slots.get_mut(slot)
            {
                *place = value;
                return true;
            }
        }
        false
    }

    #[inline]
    pub(crate) fn scope_parent(&self, scope: Value) -> Value {
        if let Value::Cell(id) = scope
            && let Some(Cell::Scope(parent, _)) = self.cell(id)
        {
            return *parent;
        }
        Value::Undefined
    }

    /// A copy of a scope for the next iteration of a loop.
    pub(crate) fn copy_scope(&mut self, scope: Value) -> Value {
        if let Value::Cell(id) = scope
            && let Some(cell @ Cell::Scope(..)) = self.cell(id)
        {
            let copy = cell.clone();
            return Value::Cell(self.alloc(copy));
        }
        Value::Undefined
    }

    /// Getter and setter of an accessor cell.
    #[inline]
    pub(crate) fn pair(&self, value: Value) -> (Value, Value) {
        if let Value::Cell(id) = value
            && let Some(Cell::Pair(get, set)) = self.cell(id)
        {
            return (*get, *set);
        }
        (Value::Undefined, Value::Undefined)
    }

    /// The symbol cell.
    pub(crate) fn symbol(&self, id: Id) -> Option<&SymCell> {
        match self.cell(id) {
            Some(Cell::Sym(s)) => Some(s),
            _ => None,
        }
    }

    /// A new symbol.
    pub(crate) fn new_symbol(&mut self, description: Value, private: bool) -> Id {
        self.alloc(Cell::Sym(SymCell { description, private, registered: false }))
    }

    /// The bigint; zero for a wrong id.
    pub(crate) fn big(&self, id: Id) -> BigInt {
        match self.cell(id) {
            Some(Cell::Big(n)) => (**n).clone(),
            _ => BigInt::default(),
        }
    }

    /// A new bigint value.
    pub(crate) fn new_big(&mut self, n: BigInt) -> Value {
        Value::Big(self.alloc(Cell::Big(Box::new(n))))
    }

    /// The text of a string cell; empty for a wrong id.
    #[inline]
    pub(crate) fn str(&self, id: Id) -> Text<'_> {
        match self.cell(id) {
            Some(Cell::Str(StrCell::Narrow(t, _))) => Text::Narrow(t),
            Some(Cell::Str(StrCell::Wide(t, _))) => Text::Wide(t),
            Some(Cell::Str(StrCell::View(buf, len))) => match self.cell(*buf) {
                Some(Cell::Buf(b)) => b.prefix(*len as usize),
                _ => Text::Narrow(&[]),
            },
            _ => Text::Narrow(&[]),
        }
    }
}
