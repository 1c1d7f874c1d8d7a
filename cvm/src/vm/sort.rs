//! Merge sort as an opcode: one step processes the result of a comparison and sets up the next comparison.
//!
//! Owns: [`Opcode::SortStep`](crate::ops::Opcode::SortStep). The sort's state is in the locals of the prelude's function: comparator, list,
//! scratch list of the same length, width of the sorted runs, start of the pair of runs that is merged, positions in both and in
//! the output. So a comparator may pause, throw or run for ever like any other function. Must not: call functions.

use super::{Raise, Res, Vm};
use crate::heap::object::ObjectKind;
use crate::value::{Id, Value};

/// Locals of a sort.
pub(crate) const LOCALS: usize = 8;

/// The numbers of the state.
struct Merge {
    from: Id,
    to: Id,
    len: usize,
    width: usize,
    start: usize,
    left: usize,
    right: usize,
    out: usize,
}

impl Merge {
    /// Reads the state from the locals; the length is not one of them.
    #[inline]
    fn from_locals(locals: &[Value]) -> Option<Merge> {
        let &[_, Value::Obj(from), Value::Obj(to), width, start, left, right, out] = locals else {
            return None;
        };
        let count = |v: Value| if let Value::Int(n) = v { usize::try_from(n).ok() } else { None };
        Some(Merge {
            from,
            to,
            len: 0,
            width: count(width)?.max(1),
            start: count(start)?,
            left: count(left)?,
            right: count(right)?,
            out: count(out)?,
        })
    }

    /// Writes the numbers that change with every comparison.
    #[inline]
    fn places_to_locals(&self, locals: &mut [Value]) -> Option<()> {
        let [.., left, right, out] = locals else { return None };
        *left = Value::Int(i32::try_from(self.left).ok()?);
        *right = Value::Int(i32::try_from(self.right).ok()?);
        *out = Value::Int(i32::try_from(self.out).ok()?);
        Some(())
    }

    /// Writes all numbers.
    fn all_to_locals(&self, locals: &mut [Value]) -> Option<()> {
        self.places_to_locals(locals)?;
        let [_, from, to, width, start, ..] = locals else { return None };
        (*from, *to) = (Value::Obj(self.from), Value::Obj(self.to));
        *width = Value::Int(i32::try_from(self.width).ok()?);
        *start = Value::Int(i32::try_from(self.start).ok()?);
        Some(())
    }

    #[inline]
    fn middle(&self) -> usize {
        self.start.saturating_add(self.width).min(self.len)
    }

    #[inline]
    fn end(&self) -> usize {
        self.start.saturating_add(self.width).saturating_add(self.width).min(self.len)
    }
}

impl Vm<'_> {
    /// Reads the result of a comparison (`Uninit`: there was none yet) from the first operand and writes the next call there:
    /// comparator, `this`, two elements. False at the end: the list is sorted and in the second local. None: the result must be
    /// converted to a number first, or this is not the state of a sort.
    #[inline]
    pub(super) fn sort_step(&mut self, locals: &mut [Value], operands: &mut [Value]) -> Option<bool> {
        let (Some(&compare), Some(&result)) = (locals.first(), operands.first()) else { return None };
        let mut m = Merge::from_locals(locals)?;
        m.len = self.elements(m.from)?.len();
        if self.elements(m.to)?.len() != m.len {
            return None;
        }
        match result {
            Value::Uninit => {}
            Value::Int(n) => self.take(&mut m, n > 0)?,
            Value::Num(n) => self.take(&mut m, n > 0.0)?,
            _ => return None,
        }
        if m.left >= m.middle() || m.right >= m.end() {
            let more = self.next_pair(&mut m)?;
            m.all_to_locals(locals)?;
            if !more {
                operands.get_mut(..4)?.fill(Value::Undefined);
                return Some(false);
            }
        } else {
            m.places_to_locals(locals)?;
        }
        let list = self.elements(m.from)?;
        let [callee, this, left, right, ..] = operands else { return None };
        // One assignment each: values that are assembled from parts are slow to load again.
        *left = *list.get(m.left)?;
        *right = *list.get(m.right)?;
        *callee = compare;
        *this = Value::Undefined;
        Some(true)
    }

    #[inline]
    fn elements(&self, id: Id) -> Option<&Vec<Value>> {
        match &self.st.heap.obj(id).kind {
            ObjectKind::Array(a) => Some(&a.dense),
            _ => None,
        }
    }

    /// Moves the smaller of two elements to the output.
    #[inline]
    fn take(&mut self, m: &mut Merge, right: bool) -> Option<()> {
        let position = if right { &mut m.right } else { &mut m.left };
        let value = *self.elements(m.from)?.get(*position)?;
        *position += 1;
        if let ObjectKind::Array(to) = &mut self.st.heap.obj_mut(m.to).kind {
            *to.dense.get_mut(m.out)? = value;
        }
        m.out += 1;
        Some(())
    }

    /// Copies the rest of this pair of runs and finds the next pair that needs comparisons; false at the end of the sort.
    fn next_pair(&mut self, m: &mut Merge) -> Option<bool> {
        self.copy_run(m, m.left, m.middle())?;
        self.copy_run(m, m.right, m.end())?;
        loop {
            m.start = m.end();
            if m.start >= m.len {
                std::mem::swap(&mut m.from, &mut m.to);
                m.width *= 2;
                m.start = 0;
                if m.width >= m.len {
                    return Some(false);
                }
            }
            (m.left, m.right, m.out) = (m.start, m.middle(), m.start);
            if m.right < m.end() {
                return Some(true);
            }
            // The last run has no partner.
            self.copy_run(m, m.start, m.len)?;
        }
    }

    fn copy_run(&mut self, m: &mut Merge, first: usize, end: usize) -> Option<()> {
        if first >= end {
            return Some(());
        }
        let part = self.elements(m.from)?.get(first..end)?.to_vec();
        if let ObjectKind::Array(to) = &mut self.st.heap.obj_mut(m.to).kind {
            to.dense.get_mut(m.out..m.out + part.len())?.copy_from_slice(&part);
        }
        m.out += part.len();
        Some(())
    }

    /// The rare cases of a step: the comparator's result is not a number yet. The instruction runs again.
    pub(super) fn op_sort_slow(&mut self) -> Res<()> {
        let at = self.st.sp.wrapping_sub(1);
        if matches!(self.slot(at), Value::Int(_) | Value::Num(_) | Value::Uninit) {
            return Err(Raise::Fault("the state of a sort"));
        }
        let number = self.slot_number(at)?;
        self.set_slot(at, Value::num(number));
        if let Some(frame) = self.st.frames.last_mut() {
            frame.pc -= 1;
        }
        Ok(())
    }
}
