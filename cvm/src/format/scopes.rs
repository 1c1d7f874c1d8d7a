//! Scopes that code relies on: the slots of scope cells that its instructions use, for the cells that a frame creates and for those
//! that its closure was made with.
//!
//! Owns: the analysis of code. Must not: look at a state (see `verify_state`).
//!
//! A scope cell gets into a frame in few ways: it is the environment of the function, it is made with a parent that is one, or it is a
//! copy. So a walk over the code knows at each instruction which positions of the frame hold such a cell, and how many slots it
//! and the cells around it have. Code that uses a cell of which this is not known is refused.

use super::FormatError;
use crate::ops::{Instruction, Opcode, Operand};
use crate::program::{CompiledProgram, FunctionTemplate, USER_TEMPLATES};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Bound of the analysis of one program: visits of instructions, and what is known there. Compiled code needs a few for each instruction;
/// hostile code could make it take hours.
const MOST_WORK: u64 = 1 << 27;
/// Rounds over functions that make each other; those of compiled code are a tree, and need two.
const MOST_ROUNDS: usize = 16;

/// Slots of scope cells, from the innermost outwards.
pub(super) type ScopeSizes = Rc<[u32]>;

/// A position of a frame (locals, then operands) that holds a scope cell of these sizes; the parent of the last one is the environment
/// of the frame. Without sizes it holds the environment itself.
pub(super) type HeldScope = (u16, ScopeSizes);

/// The scopes that a frame holds before an instruction, in the order of the positions.
type Held = Rc<[HeldScope]>;

/// The scopes that the code of a function holds, needs and passes on.
pub(super) struct ScopeUse {
    /// The scopes held before each instruction; none where no path leads.
    held: Vec<Option<Held>>,
    /// Least sizes of the environment that its own instructions need.
    own: Vec<u32>,
    /// The functions that it makes or calls, with the scope that they get: `None` for one that is not known, or for none.
    closures: Vec<(u32, Option<ScopeSizes>)>,
}

impl ScopeUse {
    /// The scopes that a frame must hold to continue at an instruction, or at a handler of the one before it.
    pub(super) fn held_at(&self, t: &FunctionTemplate, pc: u32) -> impl Iterator<Item = &HeldScope> {
        let handlers = t.handlers.iter().filter(move |h| h.start < pc && pc <= h.end).map(|h| h.target);
        std::iter::once(pc)
            .chain(handlers)
            .filter_map(|at| self.held.get(at as usize)?.as_ref())
            .flat_map(|held| held.iter())
    }
}

/// The scopes of a program's functions, analysed when they are needed.
#[derive(Default)]
pub(super) struct Scopes {
    uses: HashMap<u32, Rc<ScopeUse>>,
    needs: HashMap<u32, Vec<u32>>,
    work: u64,
}

impl Scopes {
    /// The use of scopes by a function, analysed once.
    pub(super) fn scope_use(
        &mut self,
        program: &CompiledProgram,
        template: u32,
    ) -> Result<Rc<ScopeUse>, FormatError> {
        if let Some(known) = self.uses.get(&template) {
            return Ok(Rc::clone(known));
        }
        let t = program.template(template);
        let code = program.code.get(t.start as usize..(t.start + t.len) as usize);
        let code = code.filter(|code| !code.is_empty()).ok_or(FormatError::Invalid("template"))?;
        let found = Rc::new(walk(code, t, template < USER_TEMPLATES, &mut self.work)?);
        self.uses.insert(template, Rc::clone(&found));
        Ok(found)
    }

    /// Least sizes of the scopes that a function's closure must have, from its environment outwards: those that it uses itself, and
    /// those that the functions use that it makes.
    pub(super) fn needs(&mut self, program: &CompiledProgram, template: u32) -> Result<&[u32], FormatError> {
        if !self.needs.contains_key(&template) {
            self.find_needs(program, template)?;
        }
        Ok(self.needs.get(&template).map_or(&[], Vec::as_slice))
    }

    fn find_needs(&mut self, program: &CompiledProgram, template: u32) -> Result<(), FormatError> {
        // The function before those that it makes: in the reverse order the first round finds all, unless functions make each other.
        let (mut found, mut next) = (vec![template], 0);
        let mut known = HashSet::from([template]);
        while let Some(&at) = found.get(next) {
            next += 1;
            for &(inner, _) in &self.scope_use(program, at)?.closures {
                if !self.needs.contains_key(&inner) && known.insert(inner) {
                    found.push(inner);
                }
            }
        }
        for _ in 0..MOST_ROUNDS {
            let mut changed = false;
            for &at in found.iter().rev() {
                let analysed = self.scope_use(program, at)?;
                let mut needs = analysed.own.clone();
                for (inner, sizes) in &analysed.closures {
                    let inner = self.needs.get(inner).map_or(&[][..], Vec::as_slice);
                    let known = sizes.as_deref();
                    for (level, &least) in inner.iter().enumerate() {
                        match known.map(|sizes| sizes.get(level).ok_or_else(|| level - sizes.len())) {
                            Some(Ok(&slots)) if slots >= least => {}
                            Some(Err(outside)) => require(&mut needs, outside, least),
                            _ => return Err(FormatError::Invalid("scope slot")),
                        }
                    }
                }
                // One that is not known yet counted as without needs.
                changed |= self.needs.get(&at).map_or(&[][..], Vec::as_slice) != needs;
                self.needs.insert(at, needs);
            }
            if !changed {
                return Ok(());
            }
        }
        Err(FormatError::Invalid("functions that make each other"))
    }
}

/// Verifies all functions of a program: each scope that they use is known, and large enough.
pub(super) fn verify(program: &CompiledProgram) -> Result<(), FormatError> {
    let mut scopes = Scopes::default();
    for number in (0..program.templates.len() as u32).rev() {
        scopes.needs(program, USER_TEMPLATES + number)?;
    }
    // The program itself begins without a scope.
    match scopes.needs(program, USER_TEMPLATES)? {
        [] => Ok(()),
        _ => Err(FormatError::Invalid("scope slot")),
    }
}

fn require(needs: &mut Vec<u32>, level: usize, least: u32) {
    if needs.len() <= level {
        needs.resize(level + 1, 0);
    }
    needs[level] = needs[level].max(least);
}

/// The scopes of a frame while the walk is at an instruction.
struct WalkedFrame {
    held: Held,
    /// Locals and operands.
    height: u16,
}

impl WalkedFrame {
    fn scope_at(&self, position: u16) -> Option<ScopeSizes> {
        let place = self.held.binary_search_by_key(&position, |held| held.0).ok()?;
        Some(Rc::clone(&self.held[place].1))
    }

    /// Operand `n` from the top.
    fn operand(&self, n: u16) -> Option<ScopeSizes> {
        self.scope_at(self.height - 1 - n)
    }

    fn set(&mut self, position: u16, scope: Option<ScopeSizes>) {
        if scope.is_none() && self.scope_at(position).is_none() {
            return;
        }
        let before = self.held.iter().filter(|held| held.0 < position).cloned();
        let behind = self.held.iter().filter(|held| held.0 > position).cloned();
        self.held = before.chain(scope.map(|scope| (position, scope))).chain(behind).collect();
    }

    /// Drops operands, and adds others that are no scopes.
    fn replace(&mut self, pops: u16, pushes: u16) {
        self.height -= pops;
        self.held = up_to(&self.held, self.height);
        self.height += pushes;
    }

    /// Puts these operands in place of the topmost ones, of which they are.
    fn arrange(&mut self, pops: u16, order: &[u16]) {
        let scopes: Vec<_> = order.iter().map(|&n| self.operand(n)).collect();
        self.replace(pops, order.len() as u16);
        for (position, scope) in (self.height - order.len() as u16..).zip(scopes) {
            self.set(position, scope);
        }
    }
}

/// Without the positions from `height` on.
fn up_to(held: &Held, height: u16) -> Held {
    match held.last() {
        Some(last) if last.0 >= height => held.iter().filter(|held| held.0 < height).cloned().collect(),
        _ => Rc::clone(held),
    }
}

/// The facts that are known on both ways.
fn on_both(a: &Held, b: &Held) -> Held {
    if Rc::ptr_eq(a, b) || a == b {
        Rc::clone(a)
    } else {
        a.iter().filter(|held| b.contains(held)).cloned().collect()
    }
}

/// Follows all paths through code whose depths and operands are verified.
fn walk(
    code: &[Instruction],
    t: &FunctionTemplate,
    is_prelude: bool,
    work: &mut u64,
) -> Result<ScopeUse, FormatError> {
    let nothing: Held = Rc::from([]);
    let mut before: Vec<Option<Held>> = vec![None; code.len()];
    let mut todo = vec![(0, t.slots, Rc::clone(&nothing))];
    let mut heights = vec![0; code.len()];
    while let Some((pc, height, held)) = todo.pop() {
        let held = match &before[pc as usize] {
            Some(known) => {
                let both = on_both(known, &held);
                if both == *known {
                    continue;
                }
                both
            }
            None => held,
        };
        *work += 1 + held.len() as u64;
        if *work > MOST_WORK {
            return Err(FormatError::Invalid("scopes"));
        }
        before[pc as usize] = Some(Rc::clone(&held));
        heights[pc as usize] = height;
        for h in t.handlers.iter().filter(|h| h.start <= pc && pc < h.end) {
            todo.push((h.target, t.slots + h.depth + 1, up_to(&held, t.slots + h.depth)));
        }
        let ins = code[pc as usize];
        let mut frame = WalkedFrame { held, height };
        step(&mut frame, ins);
        if ins.op.row().c == Operand::Target {
            // Linked targets count from the beginning of all code.
            todo.push((ins.c.wrapping_sub(t.start), frame.height, Rc::clone(&frame.held)));
        }
        if !ins.op.ends_path() {
            todo.push((pc + 1, frame.height, frame.held));
        }
    }
    let mut found = ScopeUse { held: Vec::new(), own: Vec::new(), closures: Vec::new() };
    for ((ins, held), height) in code.iter().zip(&before).zip(heights) {
        if let Some(held) = held {
            note(&mut found, *ins, &WalkedFrame { held: Rc::clone(held), height }, is_prelude)?;
        }
    }
    found.held = before;
    Ok(found)
}

/// The effect of an instruction.
fn step(frame: &mut WalkedFrame, ins: Instruction) {
    let row = ins.op.row();
    let local = ins.c as u16;
    match ins.op {
        Opcode::PushEnv => {
            frame.replace(0, 1);
            frame.set(frame.height - 1, Some(Rc::from([])));
        }
        Opcode::NewScope => {
            let scope = frame.operand(0).map(|around| {
                std::iter::once(ins.c.min(1 << 16)).chain(around.iter().copied()).collect::<ScopeSizes>()
            });
            frame.set(frame.height - 1, scope);
        }
        Opcode::CopyScope => {}
        Opcode::LoadLoc | Opcode::LoadLocChk => {
            let scope = frame.scope_at(local);
            frame.replace(0, 1);
            frame.set(frame.height - 1, scope);
        }
        Opcode::StoreLoc | Opcode::StoreLocChk => {
            let scope = frame.operand(0);
            frame.replace(1, 0);
            frame.set(local, scope);
        }
        Opcode::TeeLoc => frame.set(local, frame.operand(0)),
        Opcode::Dup => frame.arrange(1, &[0, 0]),
        Opcode::Dup2 => frame.arrange(2, &[1, 0, 1, 0]),
        Opcode::Swap => frame.arrange(2, &[0, 1]),
        Opcode::Rot3 => frame.arrange(3, &[0, 2, 1]),
        Opcode::Rot4 => frame.arrange(4, &[0, 3, 2, 1]),
        op => {
            let extra = if row.b == Operand::Count { ins.b } else { 0 };
            frame.replace(u16::from(row.pops) + extra, u16::from(row.pushes));
            if row.c == Operand::Local {
                frame.set(local, None);
            }
            let is_read = matches!(
                op,
                Opcode::LoadScope | Opcode::LoadScopeChk | Opcode::StoreScope | Opcode::StoreScopeChk
            );
            if row.b == Operand::Local && !is_read {
                for written in ins.b..ins.b.saturating_add(op.locals_from_b()) {
                    frame.set(written, None);
                }
            }
        }
    }
}

/// Adds what an instruction needs.
fn note(
    found: &mut ScopeUse,
    ins: Instruction,
    frame: &WalkedFrame,
    is_prelude: bool,
) -> Result<(), FormatError> {
    let refused = Err(FormatError::Invalid("scope slot"));
    match ins.op {
        Opcode::LoadEnv | Opcode::LoadEnvChk | Opcode::StoreEnv | Opcode::StoreEnvChk => {
            require(&mut found.own, usize::from(ins.b), ins.c.saturating_add(1));
        }
        Opcode::LoadScope | Opcode::LoadScopeChk | Opcode::StoreScope | Opcode::StoreScopeChk => {
            let Some(scope) = frame.scope_at(ins.b) else { return refused };
            match scope.first() {
                Some(&slots) if ins.c < slots => {}
                Some(_) => return refused,
                None => require(&mut found.own, 0, ins.c.saturating_add(1)),
            }
        }
        Opcode::CopyScope if frame.operand(0).is_none() => return refused,
        Opcode::Closure | Opcode::NewClass => found.closures.push((ins.c, frame.operand(0))),
        // The prelude calls its own functions rightly.
        Opcode::CallPre if !is_prelude => found.closures.push((ins.c, None)),
        _ => {}
    }
    Ok(())
}
