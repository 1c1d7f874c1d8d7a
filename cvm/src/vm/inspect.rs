//! Inspection of a run: variables, calls in progress, source positions. Runs no code.
//!
//! Owns: what is shown of a state. `vm-system-inspect` formats values (see `values`). Must not: change the state, except through [`set_variable`].

use super::Vm;
use crate::heap::object::attr;
use crate::program::{CompiledProgram, USER_TEMPLATES};
use crate::state::VmState;
use crate::value::Value;

impl Vm<'_> {
    /// A value as the console shows it.
    pub(crate) fn show(&self, value: Value) -> String {
        match value {
            Value::Str(id) => self.st.heap.str(id).to_utf8(),
            _ => vm_system_inspect::inspect(self, &value),
        }
    }

    /// The frames from the innermost on: function name, line, variables with their console text.
    pub(crate) fn frames_shown(&mut self, most: usize) -> (Vec<FrameView>, u64) {
        let frames = self.st.frames.iter().rev().filter(|frame| frame.template >= USER_TEMPLATES);
        let frames: Vec<_> = frames.copied().collect();
        let mut views = Vec::new();
        for frame in frames.iter().take(most) {
            let template = self.p.template(frame.template).clone();
            let pc = frame.pc.saturating_sub(template.start + 1);
            let offset = template.position(pc);
            let position = self.p.position(offset);
            let mut variables: Vec<(String, String)> = Vec::new();
            for b in template.visible(frame.pc.saturating_sub(template.start)).rev() {
                if variables.iter().any(|(n, _)| *n == b.name) {
                    continue;
                }
                let local = self.slot(frame.base as usize + b.local as usize);
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
            let function = self.template_name(frame.template);
            views.push(FrameView {
                function,
                file: self.p.has_files().then(|| position.file.to_owned()),
                line: position.line,
                column: position.column,
                source_line: position.text.to_owned(),
                variables,
            });
        }
        let more = frames.len() - views.len();
        (views, more as u64)
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

    /// Sets a variable of a frame (0 is the innermost of the program's own), or a global.
    pub(crate) fn set_variable(&mut self, frame: usize, name: &str, json: &str) -> bool {
        let value = self.json_value(json);
        let frames: Vec<_> =
            self.st.frames.iter().rev().filter(|f| f.template >= USER_TEMPLATES).copied().collect();
        if let Some(frame) = frames.get(frame) {
            let template = self.p.template(frame.template).clone();
            let pc = frame.pc.saturating_sub(template.start);
            let found = template.visible(pc).rev().find(|b| b.name == name);
            if let Some(b) = found {
                let at = frame.base as usize + b.local as usize;
                match b.slot {
                    Some(slot) => {
                        let scope = self.slot(at);
                        return self.st.heap.set_scope_slot(scope, slot as usize, value);
                    }
                    None => self.set_slot(at, value),
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

/// A call in progress, for display.
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
}

/// The calls in progress, innermost first.
pub fn frames(program: &CompiledProgram, state: &mut VmState, most: usize) -> (Vec<FrameView>, u64) {
    Vm { p: program, st: state }.frames_shown(most)
}

/// Global variables with their values as text.
pub fn globals(program: &CompiledProgram, state: &mut VmState) -> Vec<(String, String)> {
    Vm { p: program, st: state }.globals_shown()
}

/// Sets a variable of frame `frame` (0 is the innermost), or a global of that name, to a JSON value. False when there is
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
