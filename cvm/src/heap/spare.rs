//! Preallocated memory for a program and its state: a process that is forked after [`prepare`] shares the pages with its parent
//! until it writes to them. Without [`prepare`] the memory is allocated on demand.
//!
//! Owns: the preallocated buffers. Must not: hold data of a program.

use super::Cell;
use crate::ops::Instruction;
use std::sync::{Mutex, PoisonError};

/// Cells that are allocated in addition to the base's; a small program needs no more.
const CELLS: usize = 2_048;
/// Instructions that are allocated in addition to the prelude's.
const CODE: usize = 4_096;
/// Heaps that a process needs at once: one for linking the program, one for its state.
const HEAPS: usize = 2;

static HEAP: Mutex<Vec<Vec<Cell>>> = Mutex::new(Vec::new());
static PRELUDE: Mutex<Option<(u32, Vec<Instruction>)>> = Mutex::new(None);

/// Allocates the buffers, for programs of this generation.
pub(crate) fn prepare(generation: u32, base: usize, prelude: &[Instruction]) {
    let mut heaps = HEAP.lock().unwrap_or_else(PoisonError::into_inner);
    heaps.clear();
    heaps.extend((0..HEAPS).map(|_| new_cells(base + CELLS)));
    *PRELUDE.lock().unwrap_or_else(PoisonError::into_inner) = Some((generation, copy_of(prelude)));
}

/// `count` cells marked as the base's, with capacity for some more.
pub(super) fn cells_below(count: usize) -> Vec<Cell> {
    let stocked = HEAP.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut cells = stocked.unwrap_or_else(|| new_cells(count));
    if cells.len() < count {
        cells.resize_with(count, || Cell::Below);
    }
    cells.truncate(count);
    cells
}

/// The prelude's code, with capacity for a program's.
pub(crate) fn code(generation: u32, prelude: &[Instruction]) -> Vec<Instruction> {
    let mut stock = PRELUDE.lock().unwrap_or_else(PoisonError::into_inner);
    match stock.take_if(|(number, _)| *number == generation) {
        Some((_, code)) => code,
        None => copy_of(prelude),
    }
}

fn new_cells(count: usize) -> Vec<Cell> {
    let mut cells = Vec::with_capacity(count + CELLS);
    cells.resize_with(count, || Cell::Below);
    cells
}

fn copy_of(prelude: &[Instruction]) -> Vec<Instruction> {
    let mut code = Vec::with_capacity(prelude.len() + CODE);
    code.extend_from_slice(prelude);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_number_of_cells_is_returned_with_and_without_preallocated_ones() {
        for stocked in [0, 10, 5_000] {
            *HEAP.lock().expect("no panic while locked") = vec![new_cells(stocked)];
            let cells = cells_below(100);
            assert_eq!(cells.len(), 100);
            assert!(cells.iter().all(|cell| matches!(cell, Cell::Below)));
        }
    }
}
