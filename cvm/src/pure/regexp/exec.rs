//! The matcher: backtracking with an explicit stack and a step budget.
//!
//! Owns: running a [`MatchProgram`] on text. Steps are counted the same way on every machine, so a pattern with exponential
//! backtracking stops at the same point everywhere. Must not: recurse, or keep more than [`MAX_STACK`] entries.

use super::super::units::{Units, code_point_at, code_point_before, is_lead, is_line_terminator, is_trail};
use super::fold::canonicalize;
use super::program::{Direction, Insn, MatchProgram, Reg, Target, Test};

/// Most entries on the backtracking stack (16 bytes each).
pub(crate) const MAX_STACK: usize = 1 << 21;

/// An empty register.
const NONE: u32 = u32::MAX;

/// Why matching stopped without a result. If the budget is the execution's fuel, the program cannot catch the error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum MatchError {
    /// The budget of steps is used up.
    #[error("regular expression took too many steps")]
    OutOfSteps,
    /// Too many alternatives are open.
    #[error("regular expression is too complex for this text")]
    OutOfStack,
    /// Positions are 32 bits wide.
    #[error("text is too long for a regular expression")]
    TextTooLong,
}

/// An entry of the backtracking stack.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// Continue at `target` with the position `position`.
    Resume { target: Target, position: u32 },
    /// Restore the old value and continue with the entry below.
    Undo { register: Reg, old: u32 },
    /// A greedy run that may release characters down to `least`; `position` is its present end.
    Shrink { insn: Target, least: u32, position: u32 },
    /// A lazy run that may match `left` more characters.
    Grow { insn: Target, left: u32, position: u32 },
}

/// Runs `program` on `text` from `start` (at one position only if `sticky`); returns the registers of the groups of a match.
/// `steps` is lowered by the work done.
pub(super) fn run<U: Units + ?Sized>(
    program: &MatchProgram,
    text: &U,
    start: usize,
    sticky: bool,
    steps: &mut u64,
) -> Result<Option<Vec<u32>>, MatchError> {
    if text.count() >= NONE as usize {
        return Err(MatchError::TextTooLong);
    }
    let mut start = start;
    let inside_pair = program.unicode && start > 0 && start < text.count();
    if inside_pair && is_trail(text.unit(start)) && is_lead(text.unit(start - 1)) {
        start -= 1;
    }
    let mut matcher = Matcher {
        program,
        text,
        length: text.count() as u32,
        steps: *steps,
        registers: vec![NONE; program.registers as usize],
        stack: Vec::new(),
    };
    let result = matcher.search(start as u32, sticky);
    *steps = matcher.steps;
    result.map(|found| found.then_some(matcher.registers))
}

struct Matcher<'a, U: Units + ?Sized> {
    program: &'a MatchProgram,
    text: &'a U,
    length: u32,
    steps: u64,
    registers: Vec<u32>,
    stack: Vec<Entry>,
}

impl<U: Units + ?Sized> Matcher<'_, U> {
    fn search(&mut self, start: u32, sticky: bool) -> Result<bool, MatchError> {
        let mut position = start;
        while position <= self.length {
            self.charge(1)?;
            let promising = match self.program.first_unit {
                Some(first) => position < self.length && self.text.unit(position as usize) == first,
                None => true,
            };
            if promising {
                self.charge(self.registers.len() as u64 / 16)?;
                self.registers.fill(NONE);
                self.stack.clear();
                if let Some(end) = self.attempt(position)? {
                    self.registers[0] = position;
                    self.registers[1] = end;
                    return Ok(true);
                }
            }
            if sticky {
                return Ok(false);
            }
            position = match self.read(position, Direction::Forward) {
                Some((_, next)) => next,
                None => return Ok(false),
            };
        }
        Ok(false)
    }

    #[inline]
    fn charge(&mut self, amount: u64) -> Result<(), MatchError> {
        if self.steps < amount {
            self.steps = 0;
            return Err(MatchError::OutOfSteps);
        }
        self.steps -= amount;
        Ok(())
    }

    #[inline]
    fn push(&mut self, entry: Entry) -> Result<(), MatchError> {
        if self.stack.len() >= MAX_STACK {
            return Err(MatchError::OutOfStack);
        }
        self.stack.push(entry);
        Ok(())
    }

    /// Changes a register so that backtracking restores it.
    #[inline]
    fn set(&mut self, register: Reg, value: u32) -> Result<(), MatchError> {
        let old = std::mem::replace(&mut self.registers[register as usize], value);
        if old == value { Ok(()) } else { self.push(Entry::Undo { register, old }) }
    }

    /// The character in reading direction and the position after it.
    #[inline]
    fn read(&self, position: u32, direction: Direction) -> Option<(u32, u32)> {
        match direction {
            Direction::Forward if position < self.length => {
                if self.program.unicode {
                    let (code_point, length) = code_point_at(self.text, position as usize);
                    Some((code_point, position + length as u32))
                } else {
                    Some((u32::from(self.text.unit(position as usize)), position + 1))
                }
            }
            Direction::Backward if position > 0 => {
                if self.program.unicode {
                    let (code_point, length) = code_point_before(self.text, position as usize);
                    Some((code_point, position - length as u32))
                } else {
                    Some((u32::from(self.text.unit(position as usize - 1)), position - 1))
                }
            }
            _ => None,
        }
    }

    #[inline]
    fn test(&self, test: Test, position: u32, direction: Direction) -> Option<u32> {
        let (code_point, next) = self.read(position, direction)?;
        let fits = match test {
            Test::Char(wanted) => wanted == code_point,
            Test::Set(index) => self.program.sets[index as usize].contains(code_point),
            Test::Any => true,
            Test::NotLine => !matches!(code_point, 0x0A | 0x0D | 0x2028 | 0x2029),
        };
        fits.then_some(next)
    }

    /// One attempt at `position`; returns the end of the match.
    fn attempt(&mut self, position: u32) -> Result<Option<u32>, MatchError> {
        let program = self.program;
        let mut at = 0_usize;
        let mut position = position;
        loop {
            self.charge(1)?;
            let next = match &program.insns[at] {
                Insn::Match => return Ok(Some(position)),
                Insn::One(test, direction) => match self.test(*test, position, *direction) {
                    Some(behind) => {
                        position = behind;
                        Some(at + 1)
                    }
                    None => None,
                },
                Insn::Run { .. } => self.start_run(at, &mut position)?.then_some(at + 1),
                Insn::Fork { second } => {
                    self.push(Entry::Resume { target: *second, position })?;
                    Some(at + 1)
                }
                Insn::ForkBack { target } => {
                    self.push(Entry::Resume { target: at as u32 + 1, position })?;
                    Some(*target as usize)
                }
                Insn::Jump(target) => Some(*target as usize),
                Insn::Save(register) => {
                    self.set(*register, position)?;
                    Some(at + 1)
                }
                Insn::Set(register, value) => {
                    self.set(*register, *value)?;
                    Some(at + 1)
                }
                Insn::Clear { first, end } => {
                    self.charge(u64::from(end - first))?;
                    for register in *first..*end {
                        self.set(register, NONE)?;
                    }
                    Some(at + 1)
                }
                Insn::Loop { counter, min, max, greedy, exit } => {
                    self.loop_head(at, position, *counter, (*min, *max), *greedy, *exit)?
                }
                Insn::Again { counter, head } => {
                    let count = self.registers[*counter as usize].saturating_add(1).min(NONE - 1);
                    self.set(*counter, count)?;
                    Some(*head as usize)
                }
                Insn::NotEmpty { start, required } => {
                    let needed =
                        required.is_some_and(|(counter, min)| self.registers[counter as usize] < min);
                    (needed || self.registers[*start as usize] != position).then_some(at + 1)
                }
                Insn::Same { first, end, fold, direction } => {
                    let groups = &program.groups[*first as usize..*end as usize];
                    self.same_text(groups, *fold, *direction, &mut position)?.then_some(at + 1)
                }
                Insn::Look { height, position: saved, negative, after } => {
                    self.set(*saved, position)?;
                    self.push(Entry::Undo { register: *height, old: self.registers[*height as usize] })?;
                    self.registers[*height as usize] = self.stack.len() as u32;
                    if *negative {
                        self.push(Entry::Resume { target: *after, position })?;
                    }
                    Some(at + 1)
                }
                Insn::LookEnd { height, position: saved, negative } => {
                    let bottom = self.registers[*height as usize] as usize;
                    if *negative {
                        self.undo_to(bottom)?;
                        None
                    } else {
                        position = self.registers[*saved as usize];
                        self.keep_undo_entries(bottom)?;
                        Some(at + 1)
                    }
                }
                Insn::Start { multiline } => self.at_start(position, *multiline).then_some(at + 1),
                Insn::End { multiline } => self.at_end(position, *multiline).then_some(at + 1),
                Insn::Boundary { words, negative } => {
                    (self.at_boundary(*words, position) != *negative).then_some(at + 1)
                }
                Insn::Fail => None,
            };
            at = match next {
                Some(next) => next,
                None => match self.backtrack()? {
                    Some((target, back)) => {
                        position = back;
                        target as usize
                    }
                    None => return Ok(None),
                },
            };
        }
    }

    /// Continues with the newest alternative.
    fn backtrack(&mut self) -> Result<Option<(Target, u32)>, MatchError> {
        while let Some(entry) = self.stack.pop() {
            self.charge(1)?;
            match entry {
                Entry::Resume { target, position } => return Ok(Some((target, position))),
                Entry::Undo { register, old } => self.registers[register as usize] = old,
                Entry::Shrink { insn, least, position } => {
                    let Insn::Run { direction, .. } = self.program.insns[insn as usize] else { continue };
                    let back = match direction {
                        Direction::Forward => self.read(position, Direction::Backward),
                        Direction::Backward => self.read(position, Direction::Forward),
                    };
                    let Some((_, back)) = back else { continue };
                    if back != least {
                        self.stack.push(Entry::Shrink { insn, least, position: back });
                    }
                    return Ok(Some((insn + 1, back)));
                }
                Entry::Grow { insn, left, position } => {
                    let Insn::Run { test, direction, .. } = self.program.insns[insn as usize] else {
                        continue;
                    };
                    let Some(behind) = self.test(test, position, direction) else { continue };
                    if left > 1 {
                        self.stack.push(Entry::Grow { insn, left: left - 1, position: behind });
                    }
                    return Ok(Some((insn + 1, behind)));
                }
            }
        }
        Ok(None)
    }

    /// Matches the required part of a run, and as much as possible if the run is greedy. False if the required part does not match.
    fn start_run(&mut self, at: usize, position: &mut u32) -> Result<bool, MatchError> {
        let Insn::Run { test, min, max, greedy, direction } = self.program.insns[at] else {
            return Ok(false);
        };
        let first = *position;
        for _ in 0..min {
            match self.test(test, *position, direction) {
                Some(behind) => *position = behind,
                None => return Ok(false),
            }
        }
        let least = *position;
        if greedy {
            let mut left = max - min;
            while left > 0 {
                let Some(behind) = self.test(test, *position, direction) else { break };
                *position = behind;
                left -= 1;
            }
            if *position != least {
                self.push(Entry::Shrink { insn: at as u32, least, position: *position })?;
            }
        } else if max > min {
            self.push(Entry::Grow { insn: at as u32, left: max - min, position: *position })?;
        }
        self.charge(u64::from(position.abs_diff(first)))?;
        Ok(true)
    }

    /// `RepeatMatcher`, ECMA-262 22.2.2.3.1, for loops that count.
    fn loop_head(
        &mut self,
        at: usize,
        position: u32,
        counter: Reg,
        (min, max): (u32, u32),
        greedy: bool,
        exit: Target,
    ) -> Result<Option<usize>, MatchError> {
        let count = self.registers[counter as usize];
        if max != NONE && count >= max {
            return Ok(Some(exit as usize));
        }
        if count < min {
            return Ok(Some(at + 1));
        }
        let (now, later) = if greedy { (at as u32 + 1, exit) } else { (exit, at as u32 + 1) };
        self.push(Entry::Resume { target: later, position })?;
        Ok(Some(now as usize))
    }

    /// `BackreferenceMatcher`, ECMA-262 22.2.2.7.2.
    fn same_text(
        &mut self,
        groups: &[u32],
        fold: bool,
        direction: Direction,
        position: &mut u32,
    ) -> Result<bool, MatchError> {
        let captured = groups.iter().find_map(|group| {
            let start = self.registers[*group as usize * 2];
            let end = self.registers[*group as usize * 2 + 1];
            (start != NONE && end != NONE).then_some((start, end))
        });
        let Some((start, end)) = captured else { return Ok(true) };
        let length = end - start;
        self.charge(u64::from(length))?;
        let from = match direction {
            Direction::Forward if self.length - *position >= length => *position,
            Direction::Backward if *position >= length => *position - length,
            _ => return Ok(false),
        };
        let unicode = self.program.unicode;
        let mut offset = 0;
        while offset < length {
            let step = if fold && unicode {
                let (wanted, wide) = code_point_at(self.text, (start + offset) as usize);
                let (found, _) = code_point_at(self.text, (from + offset) as usize);
                if canonicalize(wanted, true) != canonicalize(found, true) {
                    return Ok(false);
                }
                wide as u32
            } else {
                let wanted = self.text.unit((start + offset) as usize);
                let found = self.text.unit((from + offset) as usize);
                let same = wanted == found
                    || fold
                        && canonicalize(u32::from(wanted), false) == canonicalize(u32::from(found), false);
                if !same {
                    return Ok(false);
                }
                1
            };
            offset += step;
        }
        *position = if direction == Direction::Forward { from + length } else { from };
        Ok(true)
    }

    /// Drops all entries above `bottom` and restores the registers.
    fn undo_to(&mut self, bottom: usize) -> Result<(), MatchError> {
        self.charge((self.stack.len() - bottom) as u64)?;
        while self.stack.len() > bottom {
            if let Some(Entry::Undo { register, old }) = self.stack.pop() {
                self.registers[register as usize] = old;
            }
        }
        Ok(())
    }

    /// Drops the alternatives above `bottom` (an assertion is not entered again) but keeps the entries that restore registers.
    fn keep_undo_entries(&mut self, bottom: usize) -> Result<(), MatchError> {
        self.charge((self.stack.len() - bottom) as u64)?;
        let mut kept = bottom;
        for index in bottom..self.stack.len() {
            if matches!(self.stack[index], Entry::Undo { .. }) {
                self.stack[kept] = self.stack[index];
                kept += 1;
            }
        }
        self.stack.truncate(kept);
        Ok(())
    }

    fn at_start(&self, position: u32, multiline: bool) -> bool {
        position == 0 || multiline && is_line_terminator(self.text.unit(position as usize - 1))
    }

    fn at_end(&self, position: u32, multiline: bool) -> bool {
        position == self.length || multiline && is_line_terminator(self.text.unit(position as usize))
    }

    fn at_boundary(&self, words: u32, position: u32) -> bool {
        let words = &self.program.sets[words as usize];
        let before = self
            .read(position, Direction::Backward)
            .is_some_and(|(code_point, _)| words.contains(code_point));
        let after =
            self.read(position, Direction::Forward).is_some_and(|(code_point, _)| words.contains(code_point));
        before != after
    }
}
