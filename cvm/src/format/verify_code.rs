//! The bytecode verifier: a unit that passes cannot make the interpreter leave its stack, its frame or its code.
//!
//! Owns: stack depth at every instruction, ranges of operands, kinds of constants, handler tables. Everything is read from the
//! opcode table; no opcode is a special case, except those that end a path.

use super::FormatError;
use crate::ops::{Instruction, Opcode, Operand};
use crate::program::{Const, FunctionTemplate, USER_TEMPLATES, Unit, flag};

type Res<T> = Result<T, FormatError>;

/// Depth of an unreachable instruction.
pub(super) const UNREACHED: u16 = u16::MAX;

/// The numbers that code may refer to.
pub(super) struct Names<'u> {
    pub consts: &'u [Const],
    /// User templates
    pub templates: usize,
    /// Templates of the prelude
    pub prelude: usize,
}

/// Verifies a unit that was read from stored bytes.
pub(super) fn verify(unit: &Unit, prelude: usize) -> Res<()> {
    if unit.templates.is_empty() || unit.templates.len() > 1 << 20 {
        return Err(FormatError::Invalid("templates"));
    }
    let names = Names { consts: &unit.consts, templates: unit.templates.len(), prelude };
    let mut next = 0u32;
    let mut order: Vec<&FunctionTemplate> = unit.templates.iter().collect();
    order.sort_unstable_by_key(|t| t.start);
    for t in order {
        if t.start != next {
            return Err(FormatError::Invalid("template range"));
        }
        next = next.checked_add(t.len).ok_or(FormatError::Invalid("template range"))?;
    }
    if next as usize != unit.code.len() {
        return Err(FormatError::Invalid("template range"));
    }
    for t in &unit.templates {
        header(t, unit)?;
        let code = &unit.code[t.start as usize..(t.start + t.len) as usize];
        for &ins in code {
            operands(ins, t, &names)?;
        }
        depths(code, t, 0)?;
    }
    if unit.templates[0].params != 0 || unit.templates[0].flags & !(flag::ALL_ARGS | flag::ASYNC) != 0 {
        return Err(FormatError::Invalid("top level"));
    }
    Ok(())
}

fn header(t: &FunctionTemplate, unit: &Unit) -> Res<()> {
    let extra = u32::from(t.flags & flag::ALL_ARGS != 0);
    if t.slots == u16::MAX || t.depth > 60_000 || u32::from(t.slots) < 2 + u32::from(t.params) + extra {
        return Err(FormatError::Invalid("frame size"));
    }
    if t.name != u32::MAX && !matches!(unit.consts.get(t.name as usize), Some(Const::Str(_))) {
        return Err(FormatError::Invalid("function name"));
    }
    if t.handlers.iter().any(|h| h.start >= h.end || h.end > t.len || h.target >= t.len) {
        return Err(FormatError::Invalid("handler"));
    }
    if t.bindings.iter().any(|b| b.local >= t.slots) {
        return Err(FormatError::Invalid("binding"));
    }
    Ok(())
}

fn operands(ins: Instruction, t: &FunctionTemplate, names: &Names<'_>) -> Res<()> {
    let row = ins.op.row();
    let ok = |kind: Operand, n: u32| match kind {
        Operand::None => n == 0,
        Operand::Imm | Operand::Count | Operand::Slot => true,
        Operand::Num => u16::try_from(n).is_ok(),
        Operand::Const => match names.consts.get(n as usize) {
            Some(Const::Template(_)) => ins.op == Opcode::TemplateObj,
            Some(_) => ins.op != Opcode::TemplateObj,
            None => false,
        },
        Operand::Name => matches!(names.consts.get(n as usize), Some(Const::Str(_))),
        Operand::Local => n < u32::from(t.slots),
        Operand::Depth => n < 10_000,
        Operand::Target => n < t.len,
        Operand::Template if ins.op == Opcode::CallPre => (n as usize) < names.prelude,
        Operand::Template => {
            n.checked_sub(USER_TEMPLATES).is_some_and(|n| (n as usize) < names.templates && n > 0)
        }
        // Only the prelude calls intrinsics and names realm objects.
        Operand::Native | Operand::Realm => false,
    };
    let wide =
        row.b != Operand::Local || u32::from(ins.b) + u32::from(ins.op.locals_from_b()) <= u32::from(t.slots);
    let generator = match ins.op {
        Opcode::Yield | Opcode::YieldStar | Opcode::InitialYield => t.flags & flag::GENERATOR != 0,
        Opcode::Await => t.flags & flag::ASYNC != 0,
        Opcode::AsyncStart => t.flags & (flag::ASYNC | flag::GENERATOR) == flag::ASYNC,
        Opcode::RetDerived => t.flags & flag::DERIVED != 0,
        Opcode::Construct => false,
        _ => true,
    };
    if ok(row.c, ins.c) && ok(row.b, u32::from(ins.b)) && wide && generator {
        Ok(())
    } else {
        Err(FormatError::Invalid("operand"))
    }
}

/// Operand depth before each instruction; targets in `code` count from `shift`.
pub(super) fn depths(code: &[Instruction], t: &FunctionTemplate, shift: u32) -> Res<Vec<u16>> {
    let mut at = vec![UNREACHED; code.len()];
    let mut todo: Vec<(u32, u16)> = vec![(0, 0)];
    while let Some((pc, depth)) = todo.pop() {
        let known = at.get_mut(pc as usize).ok_or(FormatError::Invalid("code that runs off its end"))?;
        if *known != UNREACHED {
            if *known != depth {
                return Err(FormatError::Invalid("stack depth"));
            }
            continue;
        }
        *known = depth;
        for h in t.handlers.iter().filter(|h| h.start <= pc && pc < h.end) {
            if h.depth > depth || h.depth + 1 > t.depth {
                return Err(FormatError::Invalid("handler depth"));
            }
            todo.push((h.target, h.depth + 1));
        }
        let ins = code[pc as usize];
        let row = ins.op.row();
        let extra = if row.b == Operand::Count { ins.b } else { 0 };
        let pops = u16::from(row.pops) + extra;
        let left = depth.checked_sub(pops).ok_or(FormatError::Invalid("stack depth"))?;
        let after = left + u16::from(row.pushes);
        if after > t.depth {
            return Err(FormatError::Invalid("stack depth"));
        }
        if row.c == Operand::Target {
            todo.push((ins.c.wrapping_sub(shift), after));
        }
        if !ins.op.ends_path() {
            todo.push((pc + 1, after));
        }
    }
    Ok(at)
}
