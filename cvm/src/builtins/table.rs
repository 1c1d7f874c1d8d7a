//! The ordered hash table of `Map` and `Set`: entries in insertion order, found by `SameValueZero`.
//!
//! Owns: hashing of values, tombstones, compaction. Iterators hold the number of the last entry they returned, so entries may
//! move. Must not: run user code. The index is derived: an empty one is rebuilt on first use.

use crate::heap::object::{EntryTable, Object, ObjectKind};
use crate::value::{Id, Value};
use crate::vm::Vm;
use std::hash::{BuildHasher, Hasher};

impl Vm<'_> {
    /// The table of a `Map` or a `Set`.
    pub(crate) fn table(&self, id: Id) -> Option<&EntryTable> {
        match &self.st.heap.obj(id).kind {
            ObjectKind::Map(table) | ObjectKind::Set(table) => Some(table),
            _ => None,
        }
    }

    fn table_mut(&mut self, id: Id) -> Option<&mut EntryTable> {
        Self::table_in(self.st.heap.obj_mut(id))
    }

    /// The table for writing one entry.
    fn table_entry(&mut self, id: Id, position: usize) -> Option<&mut EntryTable> {
        Self::table_in(self.st.heap.obj_item(id, position))
    }

    fn table_in(object: &mut Object) -> Option<&mut EntryTable> {
        match &mut object.kind {
            ObjectKind::Map(table) | ObjectKind::Set(table) => Some(table),
            _ => None,
        }
    }

    /// Equal under `SameValueZero` means equal hashes.
    fn hash_value(&self, value: Value) -> u64 {
        let mut hasher = foldhash::fast::FixedState::default().build_hasher();
        match value {
            Value::Str(id) => return self.st.heap.str(id).hash64(),
            Value::Big(id) => hasher.write(&self.st.heap.big(id).to_signed_bytes_le()),
            Value::Int(i) => hasher.write_u64(f64::from(i).to_bits()),
            // Both zeros are one key, and so are all NaNs.
            Value::Num(n) => hasher.write_u64(if n == 0.0 {
                0
            } else if n.is_nan() {
                u64::MAX
            } else {
                n.to_bits()
            }),
            Value::Bool(b) => hasher.write_u8(u8::from(b)),
            Value::Undefined => hasher.write_u8(2),
            Value::Null => hasher.write_u8(3),
            Value::Sym(id) | Value::Obj(id) | Value::Cell(id) => hasher.write_u32(id.0),
            Value::Hole | Value::Uninit => hasher.write_u8(4),
        }
        hasher.finish()
    }

    fn same_value_zero(&self, a: Value, b: Value) -> bool {
        match (a.as_num(), b.as_num()) {
            (Some(x), Some(y)) => x == y || (x.is_nan() && y.is_nan()),
            _ => self.strict_equal(a, b),
        }
    }

    /// Builds the index, which is not stored, after a load.
    fn ensure_index(&mut self, id: Id) {
        let missing = self.table(id).is_some_and(|table| table.index.is_empty() && table.live > 0);
        if missing {
            self.reindex(id);
        }
    }

    fn reindex(&mut self, id: Id) {
        let Some(table) = self.table(id) else { return };
        let live = table.entries.iter().enumerate().filter(|(_, (key, _))| *key != Value::Hole);
        let hashes: Vec<(u64, u32)> =
            live.map(|(position, (key, _))| (self.hash_value(*key), position as u32)).collect();
        if let Some(table) = self.st.heap.obj_derived(id).and_then(Self::table_in) {
            table.index.clear();
            for (hash, position) in hashes {
                table.index.entry(hash).or_default().push(position);
            }
        }
    }

    fn position(&self, id: Id, key: Value) -> Option<usize> {
        let table = self.table(id)?;
        let positions = table.index.get(&self.hash_value(key))?;
        let fits = |position: &&u32| {
            table.entries.get(**position as usize).is_some_and(|e| self.same_value_zero(e.0, key))
        };
        positions.iter().find(fits).map(|position| *position as usize)
    }

    /// The value at a key.
    pub(crate) fn table_get(&mut self, id: Id, key: Value) -> Option<Value> {
        self.ensure_index(id);
        let position = self.position(id, key)?;
        self.table(id)?.entries.get(position).map(|entry| entry.1)
    }

    /// Sets the value at a key; −0 becomes +0.
    pub(crate) fn table_set(&mut self, id: Id, key: Value, value: Value) {
        self.ensure_index(id);
        let key = if key.as_num() == Some(0.0) { Value::Int(0) } else { key };
        if let Some(position) = self.position(id, key) {
            if let Some(entry) =
                self.table_entry(id, position).and_then(|table| table.entries.get_mut(position))
            {
                entry.1 = value;
            }
            return;
        }
        let hash = self.hash_value(key);
        let end = self.table(id).map_or(0, |table| table.entries.len());
        let Some(table) = self.table_entry(id, end) else { return };
        table.index.entry(hash).or_default().push(table.entries.len() as u32);
        table.entries.push((key, value));
        table.order.push(table.next);
        table.next += 1;
        table.live += 1;
        self.st.heap.charge(48);
    }

    /// Removes a key; false if there is no such key.
    pub(crate) fn table_delete(&mut self, id: Id, key: Value) -> bool {
        self.ensure_index(id);
        let Some(position) = self.position(id, key) else { return false };
        let hash = self.hash_value(key);
        let Some(table) = self.table_entry(id, position) else { return false };
        if let Some(positions) = table.index.get_mut(&hash) {
            positions.retain(|known| *known as usize != position);
            if positions.is_empty() {
                table.index.remove(&hash);
            }
        }
        if let Some(entry) = table.entries.get_mut(position) {
            *entry = (Value::Hole, Value::Undefined);
        }
        table.live -= 1;
        if table.entries.len() > 16 && (table.live as usize) < table.entries.len() / 2 {
            self.compact(id);
        }
        true
    }

    /// Removes all entries.
    pub(crate) fn table_clear(&mut self, id: Id) {
        let before = self.weight_of(id);
        if let Some(table) = self.table_mut(id) {
            table.entries.clear();
            table.order.clear();
            table.index.clear();
            table.live = 0;
        }
        self.account(id, before);
    }

    fn compact(&mut self, id: Id) {
        let before = self.weight_of(id);
        if let Some(table) = self.table_mut(id) {
            let entries = std::mem::take(&mut table.entries);
            let order = std::mem::take(&mut table.order);
            for (entry, number) in entries.into_iter().zip(order) {
                if entry.0 != Value::Hole {
                    table.entries.push(entry);
                    table.order.push(number);
                }
            }
        }
        self.account(id, before);
        self.reindex(id);
    }

    fn weight_of(&self, id: Id) -> u64 {
        self.st.heap.cell(id).map_or(0, crate::heap::Heap::weight)
    }

    /// Releases the accounted bytes that a table no longer has.
    fn account(&mut self, id: Id, before: u64) {
        let after = self.weight_of(id);
        self.st.heap.bytes = self.st.heap.bytes.saturating_sub(before.saturating_sub(after));
    }

    /// The first live entry with a number above `after` (−1 for the first of all): its number, key and value.
    pub(crate) fn table_after(&self, id: Id, after: f64) -> Option<(u64, Value, Value)> {
        let table = self.table(id)?;
        let from =
            if after < 0.0 { 0 } else { table.order.partition_point(|number| *number as f64 <= after) };
        (from..table.entries.len()).find_map(|position| {
            let (key, value) = table.entries[position];
            let number = table.order.get(position).copied()?;
            (key != Value::Hole).then_some((number, key, value))
        })
    }
}
