//! Room for a program and its state, made before it is needed: a process that is forked after [`prepare`] shares it with its
//! parent, and touches only what it changes. Without any, the same room is made when it is asked for.
//!
//! Owns: the stock. Must not: hold anything of a program.

use super::Cell;
use crate::ops::Ins;
use std::sync::{Mutex, PoisonError};

/// Cells beyond the base that are there from the beginning: a small program needs no more.
const CELLS: usize = 2_048;
/// Instructions behind the prelude's.
const CODE: usize = 4_096;
/// Heaps that a process needs at once: one to link the program in, one for its state.
const HEAPS: usize = 2;

static HEAP: Mutex<Vec<Vec<Cell>>> = Mutex::new(Vec::new());
static PRELUDE: Mutex<Option<(u32, Vec<Ins>)>> = Mutex::new(None);

/// Fills the stock, for programs of this generation.
pub(crate) fn prepare(generation: u32, base: usize, prelude: &[Ins]) {
    let mut heaps = HEAP.lock().unwrap_or_else(PoisonError::into_inner);
    heaps.clear();
    heaps.extend((0..HEAPS).map(|_| made(base + CELLS)));
    *PRELUDE.lock().unwrap_or_else(PoisonError::into_inner) = Some((generation, copied(prelude)));
}

/// So many cells that are as the base has them, and room for some more.
pub(super) fn below(count: usize) -> Vec<Cell> {
    let stocked = HEAP.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut cells = stocked.unwrap_or_else(|| made(count));
    if cells.len() < count {
        cells.resize_with(count, || Cell::Below);
    }
    cells.truncate(count);
    cells
}

/// The prelude's code, to put a program's behind it.
pub(crate) fn code(generation: u32, prelude: &[Ins]) -> Vec<Ins> {
    let mut stock = PRELUDE.lock().unwrap_or_else(PoisonError::into_inner);
    match stock.take_if(|(number, _)| *number == generation) {
        Some((_, code)) => code,
        None => copied(prelude),
    }
}

fn made(count: usize) -> Vec<Cell> {
    let mut cells = Vec::with_capacity(count + CELLS);
    cells.resize_with(count, || Cell::Below);
    cells
}

fn copied(prelude: &[Ins]) -> Vec<Ins> {
    let mut code = Vec::with_capacity(prelude.len() + CODE);
    code.extend_from_slice(prelude);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_cells_as_are_asked_for_come_from_any_stock() {
        for stocked in [0, 10, 5_000] {
            *HEAP.lock().expect("nobody panics under it") = vec![made(stocked)];
            let cells = below(100);
            assert_eq!(cells.len(), 100);
            assert!(cells.iter().all(|cell| matches!(cell, Cell::Below)));
        }
    }
}
