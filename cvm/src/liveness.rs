//! Dead slots of a frame: those whose values its code reads no more, and that hold no variable that is visible.
//!
//! Owns: the analysis of code, backwards from each read of a slot to the writes before it. It needs nothing but the instructions, so it
//! finds variables of blocks that have ended, and the slots that the compiler uses for loops, iterators and exits, in programs of
//! every generation. Must not: look at a state.

use crate::ops::{Instruction, Opcode, Operand};
use crate::program::{CompiledProgram, FunctionTemplate};
use std::collections::HashMap;
use std::sync::Arc;

/// Bound of what is kept for one function, in sets of 64 slots. No slot of a function that would need more counts as dead; the same
/// goes for [`MOST_WORK`]. Both depend on the function alone, so a state is the same whenever it is analysed.
const MOST_SETS: usize = 1 << 19;
/// Bound of the analysis of one function: instructions and sets visited. Compiled code needs a few for each instruction.
const MOST_WORK: usize = 1 << 23;
/// The callee and `this`, which natives and returns read, too.
const RESERVED: u16 = 2;

/// Dead slots of a program's functions: derived, and analysed when they are needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadSlots {
    functions: HashMap<u32, Arc<LiveSlots>>,
    at: HashMap<(u32, u32), Arc<[u16]>>,
}

impl DeadSlots {
    /// The dead slots of a frame that continues at an instruction (counted from the template's start), or at a handler of the one
    /// before it.
    pub(crate) fn dead_at(&mut self, program: &CompiledProgram, template: u32, pc: u32) -> Arc<[u16]> {
        if let Some(known) = self.at.get(&(template, pc)) {
            return Arc::clone(known);
        }
        let t = program.template(template);
        let found: Arc<[u16]> = match self.live(program, template, pc) {
            Some(mut live) => {
                for binding in t.visible(pc) {
                    set(&mut live, binding.local);
                }
                (RESERVED..t.slots).filter(|&slot| !has(&live, slot)).collect()
            }
            None => Arc::from([]),
        };
        self.at.insert((template, pc), Arc::clone(&found));
        found
    }

    /// Whether the code reads the value of a slot, as far as is known, from an instruction on or from a handler of the one before it.
    pub(crate) fn may_read(&mut self, program: &CompiledProgram, template: u32, pc: u32, slot: u16) -> bool {
        slot < RESERVED
            || slot >= program.template(template).slots
            || self.live(program, template, pc).is_none_or(|live| has(&live, slot))
    }

    /// Forgets the positions: what remains depends on the program's size only.
    pub(crate) fn forget_positions(&mut self) {
        self.at.clear();
    }

    /// The slots that are read; `None` when that is not known.
    fn live(&mut self, program: &CompiledProgram, template: u32, pc: u32) -> Option<Vec<u64>> {
        let t = program.template(template);
        let code = program.code.get(t.start as usize..(t.start + t.len) as usize)?;
        let function = Function { code, template: t };
        let known = self.functions.entry(template).or_insert_with(|| Arc::new(LiveSlots::analyse(&function)));
        if known.starts.is_empty() || pc >= t.len {
            return None;
        }
        let mut live = known.live_from(&function, pc);
        for target in pc.checked_sub(1).into_iter().flat_map(|pc| function.handlers(pc)) {
            add(&mut live, known.at_start(target));
        }
        Some(live)
    }
}

fn has(set: &[u64], slot: u16) -> bool {
    set.get(usize::from(slot) / 64).is_some_and(|word| word & (1 << (slot % 64)) != 0)
}

fn set(set: &mut [u64], slot: u16) {
    if let Some(word) = set.get_mut(usize::from(slot) / 64) {
        *word |= 1 << (slot % 64);
    }
}

fn add(set: &mut [u64], more: &[u64]) {
    for (word, more) in set.iter_mut().zip(more) {
        *word |= more;
    }
}

/// A function's linked code.
struct Function<'p> {
    code: &'p [Instruction],
    template: &'p FunctionTemplate,
}

impl Function<'_> {
    /// Where an exception of an instruction may be caught.
    fn handlers(&self, pc: u32) -> impl Iterator<Item = u32> {
        let handlers = self.template.handlers.iter();
        handlers.filter(move |h| h.start <= pc && pc < h.end).map(|h| h.target)
    }

    /// The instruction to which this one may jump. Linked targets count from the beginning of all code.
    fn target(&self, ins: Instruction) -> Option<u32> {
        (ins.op.row().c == Operand::Target).then(|| ins.c.wrapping_sub(self.template.start))
    }

    /// The first instructions of the blocks: pieces of code that run from their first instruction to their last one, with the same
    /// handlers.
    fn blocks(&self) -> Vec<u32> {
        let handlers = self.template.handlers.iter().flat_map(|h| [h.start, h.end, h.target]);
        let mut starts: Vec<u32> = std::iter::once(0).chain(handlers).collect();
        for (pc, &ins) in (0..).zip(self.code) {
            let target = self.target(ins);
            if target.is_some() || ins.op.ends_path() {
                starts.push(pc + 1);
            }
            starts.extend(target);
        }
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|&start| (start as usize) < self.code.len());
        starts
    }
}

/// The slots that are read from the beginning of each block on, before they are written.
#[derive(Debug)]
struct LiveSlots {
    /// First instruction of each block; none when the function is too large.
    starts: Vec<u32>,
    /// Length of a set in words
    words: usize,
    /// A set for each block
    sets: Vec<u64>,
}

impl LiveSlots {
    fn analyse(function: &Function<'_>) -> LiveSlots {
        let words = usize::from(function.template.slots).div_ceil(64);
        let starts = function.blocks();
        let mut found = LiveSlots { sets: Vec::new(), words, starts };
        if found.starts.len() * words > MOST_SETS {
            found.starts.clear();
            return found;
        }
        found.sets = vec![0; found.starts.len() * words];
        // One more round for each loop inside of a loop: what is read at a loop's head is live at its end.
        let round = function.code.len() + found.starts.len() * (words + function.template.handlers.len());
        for _ in 0..MOST_WORK / round.max(1) {
            let mut changed = false;
            for block in (0..found.starts.len()).rev() {
                let set = found.live_from(function, found.starts[block]);
                let known = &mut found.sets[block * words..(block + 1) * words];
                if *known != set[..] {
                    known.copy_from_slice(&set);
                    changed = true;
                }
            }
            if !changed {
                return found;
            }
        }
        found.starts.clear();
        found
    }

    fn block_of(&self, pc: u32) -> usize {
        self.starts.partition_point(|&start| start <= pc).saturating_sub(1)
    }

    /// The set of the block that begins at an instruction.
    fn at_start(&self, pc: u32) -> &[u64] {
        let block = self.block_of(pc);
        self.sets.get(block * self.words..(block + 1) * self.words).unwrap_or(&[])
    }

    /// The slots that are read from an instruction on, from what is known of the blocks behind it.
    fn live_from(&self, function: &Function<'_>, pc: u32) -> Vec<u64> {
        let end = self.starts.get(self.block_of(pc) + 1).map_or(function.code.len(), |&next| next as usize);
        // An exception may leave the block before or after each of its writes.
        let mut caught = vec![0; self.words];
        for target in function.handlers(pc) {
            add(&mut caught, self.at_start(target));
        }
        let mut live = caught.clone();
        let code = function.code.get(pc as usize..end).unwrap_or(&[]);
        if let Some(&last) = code.last() {
            if let Some(target) = function.target(last) {
                add(&mut live, self.at_start(target));
            }
            if !last.op.ends_path() && end < function.code.len() {
                add(&mut live, self.at_start(end as u32));
            }
        }
        for ins in code.iter().rev() {
            step(&mut live, &caught, *ins);
        }
        live
    }
}

/// The effect of an instruction: it reads each local that it names, unless it only writes it.
fn step(live: &mut [u64], caught: &[u64], ins: Instruction) {
    let row = ins.op.row();
    if row.c == Operand::Local {
        // Operands are verified: a local's number fits.
        let slot = ins.c as u16;
        if !matches!(ins.op, Opcode::StoreLoc | Opcode::TeeLoc) {
            set(live, slot);
        } else if !has(caught, slot)
            && let Some(word) = live.get_mut(usize::from(slot) / 64)
        {
            *word &= !(1 << (slot % 64));
        }
    }
    if row.b == Operand::Local {
        for slot in ins.b..ins.b.saturating_add(ins.op.locals_from_b()) {
            set(live, slot);
        }
    }
}

#[cfg(test)]
mod tests;
