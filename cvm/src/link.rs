//! Linking: a compiled unit on top of a generation becomes a [`CompiledProgram`].
//!
//! Owns: constants as cells, absolute targets, property keys in instructions. A unit that was read from stored bytes must be
//! verified first.

use crate::builtins::generations::Generation;
use crate::builtins::prelude::Prelude;
use crate::heap::{Heap, spare};
use crate::ops::{Instruction, Operand};
use crate::program::{CompiledProgram, Const, FunctionTemplate, Unit};
use crate::value::Value;
use std::sync::Arc;

/// Links the prelude, so that programs can be linked to it and to the realm.
pub(crate) fn link_prelude(number: u32, mut heap: Heap, mut prelude: Prelude) -> Generation {
    heap.cursor = heap.cells.len() as u32;
    let (consts, keys) = constants(&mut heap, &prelude.unit.consts);
    let mut code = Vec::new();
    relocate(&mut code, &prelude.unit.code, &mut prelude.templates, 0, 0, &keys);
    let base = Arc::new(heap.into_base(false));
    Generation { number, base, prelude: Arc::new(prelude), code, consts }
}

/// Links a unit to the generation that it was compiled for.
pub(crate) fn link(generation: &Generation, unit: Unit, fingerprint: u32) -> CompiledProgram {
    let mut heap = Heap::on_base(&generation.base, u64::MAX);
    let (user_consts, keys) = constants(&mut heap, &unit.consts);
    let consts: Arc<[Value]> = generation.consts.iter().chain(&user_consts).copied().collect();
    let mut code = spare::code(generation.number, &generation.code);
    let mut templates = unit.templates.clone();
    let (first, shift) = (code.len() as u32, generation.consts.len() as u32);
    relocate(&mut code, &unit.code, &mut templates, first, shift, &keys);
    CompiledProgram {
        fingerprint,
        generation: generation.number,
        unit: Arc::new(unit),
        code: Arc::new(code),
        templates: templates.into(),
        prelude: Arc::clone(&generation.prelude),
        consts,
        // Cells up to a page's end belong to the base, so that no page is shared.
        base: Arc::new(heap.into_base(true)),
    }
}

/// Values of constants and, for strings, their property keys.
fn constants(heap: &mut Heap, list: &[Const]) -> (Vec<Value>, Vec<u32>) {
    list.iter().map(|c| constant(heap, c)).unzip()
}

/// The value of a constant and, for strings, its property key.
fn constant(heap: &mut Heap, c: &Const) -> (Value, u32) {
    match c {
        Const::Num(n) => (Value::num(*n), 0),
        Const::Str(units) => {
            let id = heap.new_wide(units);
            let key = heap.key_of_str(id);
            // The canonical cell is also the value, unless the key is an index.
            let shown = key.as_cell().unwrap_or(id);
            (Value::Str(shown), key.0)
        }
        Const::Big(decimal) => (heap.new_big(decimal.parse().unwrap_or_default()), 0),
        Const::Template(_) => (Value::Undefined, 0),
    }
}

/// Appends code with constants that are numbered from `shift` on, and the keys of those constants.
fn relocate(
    out: &mut Vec<Instruction>,
    code: &[Instruction],
    templates: &mut [FunctionTemplate],
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
                Operand::Name => ins.c = keys.get(ins.c as usize).copied().unwrap_or(0),
                Operand::Target => ins.c += t.start,
                _ => {}
            }
        }
        if t.name != u32::MAX {
            t.name += shift;
        }
    }
}

impl CompiledProgram {
    /// Strings of a tagged template by constant.
    pub(crate) fn template_strings(&self, constant: u32) -> &[(Option<Vec<u16>>, Vec<u16>)] {
        let prelude = self.prelude.unit.consts.len() as u32;
        match constant.checked_sub(prelude).and_then(|i| self.unit.consts.get(i as usize)) {
            Some(Const::Template(strings)) => strings,
            _ => &[],
        }
    }
}
