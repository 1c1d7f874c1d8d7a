//! The collector: mark and sweep, without moving. A freed id may be reused for a later cell; ids of live cells never
//! change. The time of a collection depends on accounted bytes and on pauses only, so equal states collect at equal moments.
//!
//! Owns: reachability. Must not: know code; the caller passes the roots, and says which slots of a suspended frame are dead.

use super::object::{Coroutine, Object, ObjectKind};
use super::{Cell, Heap, PAGE_CELLS, StrCell};
use crate::value::{Id, Value};
use std::sync::Arc;

/// The dead slots of a frame, by the template and the instruction at which it continues.
type DeadSlotsAt<'d> = dyn FnMut(u32, u32) -> Arc<[u16]> + 'd;

struct Marks<'d> {
    bits: Vec<u64>,
    todo: Vec<Id>,
    dead_slots: &'d mut DeadSlotsAt<'d>,
    /// Suspended frames with references in dead slots
    outdated: Vec<(Id, Arc<[u16]>)>,
}

impl Marks<'_> {
    #[inline]
    fn value(&mut self, value: Value) {
        if let Some(id) = value.cell_id() {
            self.id(id);
        }
    }

    #[inline]
    fn id(&mut self, id: Id) {
        let i = id.index();
        if let Some(word) = self.bits.get_mut(i / 64)
            && *word & (1 << (i % 64)) == 0
        {
            *word |= 1 << (i % 64);
            self.todo.push(id);
        }
    }

    fn values(&mut self, values: &[Value]) {
        for &v in values {
            self.value(v);
        }
    }

    /// Marks what a suspended frame refers to, but for its dead slots.
    fn coroutine(&mut self, id: Id, c: &Coroutine) {
        self.values(&[c.env, c.new_target, c.link]);
        if c.slots.is_empty() {
            return;
        }
        let dead = (self.dead_slots)(c.template, c.pc);
        let mut rest = &dead[..];
        let mut is_outdated = false;
        for (slot, value) in c.slots.iter().enumerate() {
            match rest.split_first() {
                Some((&first, behind)) if usize::from(first) == slot => {
                    rest = behind;
                    is_outdated |= value.cell_id().is_some();
                }
                _ => self.value(*value),
            }
        }
        if is_outdated {
            self.outdated.push((id, dead));
        }
    }

    fn object(&mut self, id: Id, o: &Object) {
        if o.proto != Id::NONE {
            self.id(o.proto);
        }
        for p in o.props.iter() {
            if let Some(id) = p.key.as_cell() {
                self.id(id);
            }
            self.value(p.value);
        }
        match &o.kind {
            ObjectKind::Array(a) | ObjectKind::Arguments(a) => self.values(&a.dense),
            ObjectKind::Function(f) => self.values(&[f.env, f.home, f.this, f.extra, f.fields]),
            ObjectKind::Bound(b) => {
                self.values(&[b.0, b.1]);
                self.values(&b.2);
            }
            ObjectKind::Primitive(v) => self.value(*v),
            ObjectKind::RegExp(source, flags) => self.values(&[*source, *flags]),
            ObjectKind::Map(t) | ObjectKind::Set(t) | ObjectKind::Weak(t) => {
                for (k, v) in &t.entries {
                    self.values(&[*k, *v]);
                }
            }
            ObjectKind::Coroutine(c) => self.coroutine(id, c),
            ObjectKind::Promise(p) => {
                self.value(p.result);
                for (a, b, c) in &p.reactions {
                    self.values(&[*a, *b, *c]);
                }
            }
            ObjectKind::Record(_, slots) => self.values(slots),
            ObjectKind::Proxy(p) => self.values(&[p.0, p.1]),
            ObjectKind::View(view) => self.id(view.buffer),
            ObjectKind::Plain | ObjectKind::Error | ObjectKind::Date(_) | ObjectKind::Buffer(_) => {}
        }
    }

    fn cell(&mut self, id: Id, cell: &Cell) {
        match cell {
            Cell::Obj(o) => self.object(id, o),
            Cell::Scope(parent, slots) => {
                self.value(*parent);
                self.values(slots);
            }
            Cell::Pair(get, set) => self.values(&[*get, *set]),
            Cell::Str(StrCell::View(buf, _)) => self.id(*buf),
            Cell::Sym(s) => self.value(s.description),
            Cell::Str(_) | Cell::Big(_) | Cell::Buf(_) | Cell::Free | Cell::Below => {}
        }
    }
}

/// Smallest number of bytes between two collections.
const MIN_STEP: u64 = 1 << 20;
/// Before a pause garbage is collected from this many new bytes on, if they are also this many for each cell: marking and sweeping the
/// cells is then cheaper than storing the garbage.
const PAUSE_STEP: u64 = 8 << 10;
const PAUSE_BYTES_OF_A_CELL: u64 = 8;

impl Heap {
    /// Whether to collect before the state is stored at a pause.
    pub(crate) fn is_worth_collecting(&self) -> bool {
        // The inverse of what a collection makes of the bytes that it left.
        let left =
            if self.gc_at >= 2 * MIN_STEP { self.gc_at / 2 } else { self.gc_at.saturating_sub(MIN_STEP) };
        let cells = self.cells.len().saturating_sub(self.base as usize) as u64;
        self.bytes.saturating_sub(left) >= PAUSE_STEP.max(cells * PAUSE_BYTES_OF_A_CELL)
    }

    /// Frees every cell that neither the base nor `roots` reach, other than through dead slots of suspended frames, which become
    /// undefined.
    pub(crate) fn collect<'d>(
        &mut self,
        roots: impl Iterator<Item = Value>,
        dead_slots: &'d mut DeadSlotsAt<'d>,
    ) {
        let bits = vec![0; self.cells.len().div_ceil(64)];
        let mut marks = Marks { bits, todo: Vec::new(), dead_slots, outdated: Vec::new() };
        for root in roots {
            marks.value(root);
        }
        let base = (self.base as usize).min(self.cells.len());
        // Pristine cells of the base refer to each other only.
        let own: Vec<usize> = (self.changed.iter().enumerate())
            .filter(|(_, cells)| **cells != 0)
            .flat_map(|(page, &cells)| {
                (0..PAGE_CELLS)
                    .filter(move |bit| cells & (1 << bit) != 0)
                    .map(move |bit| page * PAGE_CELLS + bit)
            })
            .filter(|&i| i < base)
            .collect();
        for &i in &own {
            marks.id(Id(i as u32));
        }
        while let Some(id) = marks.todo.pop() {
            if let Some(cell) = self.cells.get(id.index()) {
                marks.cell(id, cell);
            }
        }
        let Marks { bits, outdated, .. } = marks;
        for (id, dead) in outdated {
            if let ObjectKind::Coroutine(c) = &mut self.obj_mut(id).kind {
                for &slot in dead.iter() {
                    if let Some(value) = c.slots.get_mut(usize::from(slot))
                        && value.cell_id().is_some()
                    {
                        *value = Value::Undefined;
                    }
                }
            }
        }
        let live = |i: usize| bits.get(i / 64).is_some_and(|word| word & (1 << (i % 64)) != 0);
        self.interns.retain(|id| id.index() < base || live(id.index()));
        let mut bytes = 0;
        let mut first_free = self.cells.len();
        for i in base..self.cells.len() {
            if live(i) {
                bytes += Heap::weight(&self.cells[i]);
            } else {
                if !matches!(self.cells[i], Cell::Free) {
                    self.cells[i] = Cell::Free;
                    self.dirty[i / 64] |= 1 << (i % 64);
                }
                first_free = first_free.min(i);
            }
        }
        // Cells of the base are not charged to the program; changed copies of them are.
        bytes += own.iter().map(|&i| Heap::weight(&self.cells[i])).sum::<u64>();
        while self.cells.len() > base && matches!(self.cells.last(), Some(Cell::Free)) {
            self.cells.pop();
        }
        // Only whole pages are judged by their free cells.
        let first_free = first_free.min(self.cells.len());
        self.cursor = (first_free - first_free % PAGE_CELLS).max(base) as u32;
        self.bytes = bytes;
        self.gc_at = bytes + bytes.max(MIN_STEP);
    }
}
