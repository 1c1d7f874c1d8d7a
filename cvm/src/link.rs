//! Linking: a compiled unit on top of the prelude and the realm becomes a [`Program`].
//!
//! Owns: constants as cells, absolute targets, property keys in instructions. A unit must have been verified first when
//! it comes from outside.

use crate::builtins::{ids, realm};
use crate::heap::{Cell, Heap};
use crate::ops::{Ins, Operand};
use crate::program::{Const, Program, Template, Unit};
use crate::value::Value;
use std::sync::Arc;

/// Makes a unit ready to run.
pub(crate) fn link(unit: Unit) -> Program {
    let built = realm::built();
    let mut heap = built.heap.clone();
    heap.cursor = ids::REALM_CELLS;
    let mut consts: Vec<Value> = Vec::new();
    let mut keys: Vec<u32> = Vec::new();
    for c in built.prelude.unit.consts.iter().chain(&unit.consts) {
        let (value, key) = constant(&mut heap, c);
        consts.push(value);
        keys.push(key);
    }
    let shift = built.prelude.unit.consts.len() as u32;
    let mut code = Vec::with_capacity(built.prelude.unit.code.len() + unit.code.len());
    let mut templates = unit.templates.clone();
    let first = built.prelude.unit.code.len() as u32;
    relocate(&mut code, &built.prelude.unit.code, &mut built.prelude.templates.clone(), 0, 0, &keys);
    relocate(&mut code, &unit.code, &mut templates, first, shift, &keys);
    let pages = heap.cells.len().div_ceil(crate::heap::PAGE_CELLS);
    // Cells up to a page's end belong to the base, so that no page is shared.
    heap.cells.resize(pages * crate::heap::PAGE_CELLS, Cell::Free);
    heap.base = heap.cells.len() as u32;
    heap.cursor = heap.base;
    heap.dirty = vec![0; pages];
    heap.changed = vec![0; pages];
    heap.bytes = 0;
    heap.gc_at = 1 << 20;
    heap.attention = false;
    let fingerprint = crate::format::checksum(1, &crate::format::encode_unit(&unit));
    Program {
        fingerprint,
        unit: Arc::new(unit),
        code: code.into(),
        templates: templates.into(),
        prelude: Arc::clone(&built.prelude),
        consts: consts.into(),
        base: Arc::new(heap),
    }
}

/// The value of a constant and, for strings, its property key.
fn constant(heap: &mut Heap, c: &Const) -> (Value, u32) {
    match c {
        Const::Num(n) => (Value::num(*n), 0),
        Const::Str(units) => {
            let id = heap.new_wide(units);
            let key = heap.key_of_str(id);
            // The canonical cell serves as the value too, where the key is not an index.
            let shown = key.as_cell().unwrap_or(id);
            (Value::Str(shown), key.0)
        }
        Const::Big(decimal) => (heap.new_big(decimal.parse().unwrap_or_default()), 0),
        Const::Template(_) => (Value::Undefined, 0),
    }
}

fn relocate(
    out: &mut Vec<Ins>,
    code: &[Ins],
    templates: &mut [Template],
    first: u32,
    shift: u32,
    keys: &[u32],
) {
    out.extend_from_slice(code);
    for t in templates.iter_mut() {
        t.start += first;
        let range = t.start as usize..(t.start + t.len) as usize;
        for ins in out.get_mut(range).unwrap_or(&mut []) {
            match ins.op.row().c {
                Operand::Const => ins.c += shift,
                Operand::Name => ins.c = keys.get((ins.c + shift) as usize).copied().unwrap_or(0),
                Operand::Target => ins.c += t.start,
                _ => {}
            }
        }
        if t.name != u32::MAX {
            t.name += shift;
        }
    }
}

impl Program {
    /// Strings of a tagged template by constant.
    pub(crate) fn template_strings(&self, constant: u32) -> &[(Option<Vec<u16>>, Vec<u16>)] {
        let prelude = self.prelude.unit.consts.len() as u32;
        match constant.checked_sub(prelude).and_then(|i| self.unit.consts.get(i as usize)) {
            Some(Const::Template(strings)) => strings,
            _ => &[],
        }
    }
}
