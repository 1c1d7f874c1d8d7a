//! Inspection of a run: variables, calls in progress, source positions. Runs no code.
//!
//! Owns: what is shown of a state. `vm-system-inspect` formats values (see `values`). Must not: change the state, except through [`set_variable`].

use super::Vm;
use crate::heap::object::attr;
use crate::program::{CompiledProgram, USER_TEMPLATES};
use crate::state::{RunPhase, VmState};
use crate::value::{Id, Value};

impl Vm<'_> {
    /// A value as the console shows it.
    pub(crate) fn show(&self, value: Value) -> String {
        match value {
            Value::Str(id) => self.st.heap.str(id).to_utf8(),
            _ => vm_system_inspect::inspect(self, &value),
        }
    }

    /// The frames from the innermost on; of a program that waits for items its suspended functions.
    pub(crate) fn frames_shown(&mut self, most: usize) -> (Vec<FrameView>, u64) {
        let frames = self.visible_frames();
        let views: Vec<FrameView> = frames.iter().take(most).map(|frame| self.frame_view(frame)).collect();
        let more = frames.len() - views.len();
        (views, more as u64)
    }

    fn visible_frames(&self) -> Vec<VisibleFrame> {
        if self.st.phase == RunPhase::Wait {
            let suspended = self.suspended().into_iter();
            return suspended
                .filter_map(|one| {
                    let c = self.coroutine(one.id)?;
                    let pc = self.p.template(c.template).start.saturating_add(c.pc);
                    Some(VisibleFrame {
                        template: c.template,
                        pc,
                        slots: Slots::Of(one.id),
                        items: one.items,
                    })
                })
                .collect();
        }
        let frames = self.st.frames.iter().rev().filter(|frame| frame.template >= USER_TEMPLATES);
        frames
            .map(|frame| VisibleFrame {
                template: frame.template,
                pc: frame.pc,
                slots: Slots::At(frame.base as usize),
                items: Vec::new(),
            })
            .collect()
    }

    /// The value of a frame's slot.
    fn frame_slot(&self, frame: &VisibleFrame, slot: usize) -> Value {
        match frame.slots {
            Slots::At(base) => self.slot(base + slot),
            Slots::Of(id) => {
                self.coroutine(id).and_then(|c| c.slots.get(slot)).copied().unwrap_or(Value::Undefined)
            }
        }
    }

    fn frame_view(&mut self, frame: &VisibleFrame) -> FrameView {
        let template = self.p.template(frame.template).clone();
        let offset = template.position(frame.pc.saturating_sub(template.start + 1));
        let position = self.p.position(offset);
        let mut variables: Vec<(String, String)> = Vec::new();
        for b in template.visible(frame.pc.saturating_sub(template.start)).rev() {
            if variables.iter().any(|(n, _)| *n == b.name) {
                continue;
            }
            let local = self.frame_slot(frame, b.local as usize);
            let value = match b.slot {
                Some(slot) => self.st.heap.scope_slot(local, slot as usize).unwrap_or(Value::Undefined),
                None => local,
            };
            let shown = if value == Value::Uninit {
                "<uninitialized>".to_owned()
            } else {
                vm_system_inspect::inspect(self, &value)
            };
            variables.push((b.name.clone(), shown));
        }
        variables.reverse();
        FrameView {
            function: self.template_name(frame.template),
            file: self.p.has_files().then(|| position.file.to_owned()),
            line: position.line,
            column: position.column,
            source_line: position.text.to_owned(),
            variables,
            items: frame.items.clone(),
        }
    }

    /// Own enumerable properties of the global object.
    pub(crate) fn globals_shown(&mut self) -> Vec<(String, String)> {
        let global = crate::builtins::ids::GLOBAL;
        let props: Vec<_> =
            self.st.heap.obj(global).props.iter().map(|p| (p.key, p.flags, p.value)).collect();
        let mut list = Vec::new();
        for (key, flags, value) in props {
            if flags & attr::E != 0 && flags & attr::ACCESSOR == 0 {
                let name = self.key_text(key);
                let shown = vm_system_inspect::inspect(self, &value);
                list.push((name, shown));
            }
        }
        list
    }

    /// Sets a variable of a frame (0 is the first that is shown), or a global.
    pub(crate) fn set_variable(&mut self, frame: usize, name: &str, json: &str) -> bool {
        let value = self.json_value(json);
        if let Some(frame) = self.visible_frames().get(frame) {
            let template = self.p.template(frame.template).clone();
            let pc = frame.pc.saturating_sub(template.start);
            if let Some(b) = template.visible(pc).rev().find(|b| b.name == name) {
                let local = b.local as usize;
                if let Some(slot) = b.slot {
                    let scope = self.frame_slot(frame, local);
                    return self.st.heap.set_scope_slot(scope, slot as usize, value);
                }
                match frame.slots {
                    Slots::At(base) => self.set_slot(base + local, value),
                    Slots::Of(id) => {
                        let slots = self.coroutine_mut(id).map(|c| &mut c.slots);
                        match slots.and_then(|slots| slots.get_mut(local)) {
                            Some(slot) => *slot = value,
                            None => return false,
                        }
                    }
                }
                return true;
            }
        }
        let key = self.st.heap.key(name);
        let global = crate::builtins::ids::GLOBAL;
        match self.own(global, key) {
            Some(own) if own.flags & (attr::ACCESSOR | attr::W) == attr::W => {
                self.replace_own(global, key, value, own.flags);
                true
            }
            _ => false,
        }
    }
}

/// A frame whose variables can be seen: of a call in progress, or of a suspended function.
struct VisibleFrame {
    template: u32,
    /// Next instruction, absolute
    pc: u32,
    slots: Slots,
    /// Items that it waits for
    items: Vec<u64>,
}

/// Location of a frame's slots.
#[derive(Clone, Copy)]
enum Slots {
    /// On the stack, from here on
    At(usize),
    /// In this coroutine
    Of(Id),
}

/// A call in progress, or a suspended function, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameView {
    /// Function name, empty at the top level and for anonymous functions
    pub function: String,
    /// The file, if the program has several
    pub file: Option<String>,
    /// Line, from 1
    pub line: u32,
    /// Column, from 1
    pub column: u32,
    /// The source line
    pub source_line: String,
    /// Names with their values as text
    pub variables: Vec<(String, String)>,
    /// Of a suspended function: numbers of the items that it waits for, as far as they are known, ascending; at most 100
    pub items: Vec<u64>,
}

/// The calls in progress, innermost first. A program in phase [`RunPhase::Wait`] has none: its functions that wait in an `await` are
/// shown, those that wait for the oldest items first, and of each item the innermost first.
pub fn frames(program: &CompiledProgram, state: &mut VmState, most: usize) -> (Vec<FrameView>, u64) {
    Vm { p: program, st: state }.frames_shown(most)
}

/// Global variables with their values as text.
pub fn globals(program: &CompiledProgram, state: &mut VmState) -> Vec<(String, String)> {
    Vm { p: program, st: state }.globals_shown()
}

/// Sets a variable of frame `frame` (0 is the first of [`frames`]), or a global of that name, to a JSON value. False when there is
/// no such variable.
pub fn set_variable(
    program: &CompiledProgram,
    state: &mut VmState,
    frame: usize,
    name: &str,
    json: &str,
) -> bool {
    Vm { p: program, st: state }.set_variable(frame, name, json)
}
