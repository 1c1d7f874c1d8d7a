//! Exceptions: from a raise to a handler, frame by frame.
//!
//! Owns: handler search, and the exception of a full stack. Must not: create other errors (see `errors`).

use super::{Raise, Res, Vm};
use crate::state::{Back, VmLimitKind};
use crate::value::{Id, Value};

impl Vm<'_> {
    /// Handles the reason why an instruction did not complete; its position is in the frame. `Ok`: continue.
    pub(crate) fn handle(&mut self, raise: Raise) -> Res<()> {
        match raise {
            Raise::Throw(value) => self.unwind(value),
            Raise::Limit(VmLimitKind::Stack) => {
                let error = self.stack_error();
                self.unwind(error)
            }
            Raise::Prim(slot, hint) => {
                // Run this instruction again once the operand is a primitive.
                if let Some(frame) = self.st.frames.last_mut() {
                    frame.pc -= 1;
                }
                let object = self.slot(slot);
                let hint = Self::hint_name(hint);
                self.push(object);
                self.push(hint);
                let template = self.p.prelude.to_primitive;
                match self.call_pre(template, 2, Back::Store(slot as u32)) {
                    Err(raise) => {
                        if let Some(frame) = self.st.frames.last_mut() {
                            frame.pc += 1;
                        }
                        self.handle(raise)
                    }
                    Ok(()) => Ok(()),
                }
            }
            other => Err(other),
        }
    }

    /// More calls in progress, or more operands, than fit. The program can catch it: what was on the stack is released on the way to
    /// the handler.
    fn stack_error(&mut self) -> Value {
        self.make_error(crate::builtins::ids::RANGE_ERROR_PROTO, "Maximum call stack size exceeded")
    }

    /// The hint of a conversion as `ToPrimitive` expects it.
    pub(super) fn hint_name(hint: u8) -> Value {
        Value::Str(match hint {
            1 => crate::builtins::ids::NUMBER_T,
            2 => crate::builtins::ids::STRING_T,
            _ => crate::builtins::ids::DEFAULT,
        })
    }

    fn unwind(&mut self, value: Value) -> Res<()> {
        let mut value = value;
        // The stored position is after the instruction, but it is that of an instruction which runs again after a conversion.
        let mut runs_again = false;
        while let Some(frame) = self.st.frames.last().copied() {
            let template = self.p.template(frame.template);
            let pc = frame.pc.saturating_sub(template.start + u32::from(!runs_again));
            runs_again =
                frame.template == self.p.prelude.to_primitive && matches!(frame.back, Back::Store(_));
            if let Some(h) = template.handlers.iter().find(|h| h.start <= pc && pc < h.end) {
                let (target, depth) = (template.start + h.target, h.depth as usize);
                self.st.sp = frame.base as usize + template.slots as usize + depth;
                self.push(value);
                if let Some(frame) = self.st.frames.last_mut() {
                    frame.pc = target;
                }
                return Ok(());
            }
            self.st.frames.pop();
            self.st.sp = frame.base as usize;
            if frame.coroutine != Id::NONE {
                match self.coroutine_threw(frame, value) {
                    Ok(()) => return Ok(()),
                    Err(Raise::Throw(next)) => value = next,
                    Err(Raise::Limit(VmLimitKind::Stack)) => value = self.stack_error(),
                    Err(other) => return Err(other),
                }
            }
        }
        Err(Raise::Throw(value))
    }
}
