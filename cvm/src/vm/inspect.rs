//! Inspection of values and frames: console text, variables, source positions. Runs no code.
//!
//! Owns: formatting for people. Must not: change the state, except through [`set_variable`].

use super::Vm;
use crate::heap::object::{Code, ObjectKind, attr};
use crate::program::{CompiledProgram, USER_TEMPLATES};
use crate::state::VmState;
use crate::value::{Id, Key, Value};

/// Nested containers shown.
const DEPTH: usize = 3;
/// Elements of one container shown.
const ITEMS: usize = 100;

impl Vm<'_> {
    /// A value as the console shows it.
    pub(crate) fn show(&mut self, value: Value) -> String {
        let mut seen = Vec::new();
        self.show_at(value, 0, &mut seen)
    }

    fn show_at(&mut self, value: Value, depth: usize, seen: &mut Vec<Id>) -> String {
        match value {
            Value::Str(id) => {
                let text = self.st.heap.str(id).to_utf8();
                if depth == 0 {
                    text
                } else {
                    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
                }
            }
            Value::Big(_) => format!("{}n", self.plain_text(value)),
            Value::Num(n) if n == 0.0 && n.is_sign_negative() => "-0".to_owned(),
            Value::Obj(id) => {
                if seen.contains(&id) {
                    return "[Circular *1]".to_owned();
                }
                seen.push(id);
                let text = self.show_object(id, depth, seen);
                seen.pop();
                text
            }
            other => self.plain_text(other),
        }
    }

    fn class_name(&mut self, id: Id) -> Option<String> {
        let proto = self.st.heap.obj(id).proto;
        if proto == Id::NONE {
            return None;
        }
        match self.get(proto, crate::builtins::ids::key(crate::builtins::ids::CONSTRUCTOR)) {
            super::props::PropertyRead::Value(Value::Obj(f)) => {
                match self.get(f, crate::builtins::ids::key(crate::builtins::ids::NAME)) {
                    super::props::PropertyRead::Value(v @ Value::Str(_)) => Some(self.plain_text(v)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn show_object(&mut self, id: Id, depth: usize, seen: &mut Vec<Id>) -> String {
        let name = self.class_name(id);
        match self.st.heap.obj(id).kind.clone() {
            ObjectKind::Function(f) => {
                let text = match self.get(id, crate::builtins::ids::key(crate::builtins::ids::NAME)) {
                    super::props::PropertyRead::Value(v @ Value::Str(_)) => self.plain_text(v),
                    _ => String::new(),
                };
                let class =
                    matches!(f.code, Code::Template(n) if self.p.template(n).is(crate::program::flag::CLASS));
                let word = if class { "class" } else { "Function" };
                let sep = if class { " " } else { ": " };
                return if text.is_empty() {
                    format!("[{word} (anonymous)]")
                } else {
                    format!("[{word}{sep}{text}]")
                };
            }
            ObjectKind::Bound(_) => return "[Function (bound)]".to_owned(),
            ObjectKind::Error => {
                let stack = match self.stack_of(id) {
                    Some(text) => self.plain_text(Value::Str(text)),
                    None => self.error_head(id),
                };
                return if depth == 0 { stack } else { format!("[{stack}]") };
            }
            ObjectKind::Primitive(v) => {
                let inner = self.show_at(v, 1, seen);
                return format!("[{}: {inner}]", name.unwrap_or_default());
            }
            ObjectKind::RegExp(source, flags) => {
                return format!("/{}/{}", self.plain_text(source), self.plain_text(flags));
            }
            ObjectKind::Date(t) => return Self::date_text(t),
            ObjectKind::Promise(p) => {
                return match p.state {
                    0 => "Promise { <pending> }".to_owned(),
                    1 => format!("Promise {{ {} }}", self.show_at(p.result, depth + 1, seen)),
                    _ => format!("Promise {{ <rejected> {} }}", self.show_at(p.result, depth + 1, seen)),
                };
            }
            ObjectKind::Coroutine(_) => return "Object [Generator] {}".to_owned(),
            _ => {}
        }
        if depth >= DEPTH {
            let shown = name.unwrap_or_else(|| "Object".to_owned());
            return format!("[{shown}]");
        }
        let (open, close, mut items) = self.show_contents(id, depth, seen);
        let props: Vec<(Key, u8, Value)> =
            self.st.heap.obj(id).props.iter().map(|p| (p.key, p.flags, p.value)).collect();
        for (key, flags, value) in props.into_iter().take(ITEMS) {
            if flags & attr::E == 0 || self.st.heap.key_is_private(key) {
                continue;
            }
            let shown_key = self.show_key(key);
            let shown = if flags & attr::ACCESSOR != 0 {
                let (get, set) = self.st.heap.pair(value);
                match (get != Value::Undefined, set != Value::Undefined) {
                    (true, true) => "[Getter/Setter]".to_owned(),
                    (true, false) => "[Getter]".to_owned(),
                    _ => "[Setter]".to_owned(),
                }
            } else {
                self.show_at(value, depth + 1, seen)
            };
            items.push(format!("{shown_key}: {shown}"));
        }
        let prefix = match (&self.st.heap.obj(id).kind, name) {
            (ObjectKind::Array(_), Some(n)) if n == "Array" => String::new(),
            (ObjectKind::Array(a), Some(n)) => format!("{n}({}) ", a.len),
            (ObjectKind::Map(t), _) => format!("Map({}) ", t.live),
            (ObjectKind::Set(t), _) => format!("Set({}) ", t.live),
            (ObjectKind::Arguments(_), _) => "[Arguments] ".to_owned(),
            (_, Some(n)) if n == "Object" => String::new(),
            (_, Some(n)) => format!("{n} "),
            (_, None) => "[Object: null prototype] ".to_owned(),
        };
        layout(&prefix, open, close, &items, depth)
    }

    fn show_contents(&mut self, id: Id, depth: usize, seen: &mut Vec<Id>) -> (char, char, Vec<String>) {
        let mut items = Vec::new();
        match self.st.heap.obj(id).kind.clone() {
            ObjectKind::Array(a) | ObjectKind::Arguments(a) => {
                let mut holes = 0;
                for v in a.dense.iter().take(ITEMS) {
                    if *v == Value::Hole {
                        holes += 1;
                        continue;
                    }
                    show_holes(&mut items, &mut holes);
                    items.push(self.show_at(*v, depth + 1, seen));
                }
                holes += (a.len as usize).saturating_sub(a.dense.len());
                show_holes(&mut items, &mut holes);
                if a.dense.len() > ITEMS {
                    items.push(format!("... {} more items", a.dense.len() - ITEMS));
                }
                ('[', ']', items)
            }
            ObjectKind::Map(t) => {
                for (k, v) in t.entries.iter().filter(|e| e.0 != Value::Hole).take(ITEMS) {
                    let (k, v) = (self.show_at(*k, depth + 1, seen), self.show_at(*v, depth + 1, seen));
                    items.push(format!("{k} => {v}"));
                }
                ('{', '}', items)
            }
            ObjectKind::Set(t) => {
                for (k, _) in t.entries.iter().filter(|e| e.0 != Value::Hole).take(ITEMS) {
                    items.push(self.show_at(*k, depth + 1, seen));
                }
                ('{', '}', items)
            }
            _ => ('{', '}', items),
        }
    }

    fn show_key(&mut self, key: Key) -> String {
        if self.st.heap.key_is_symbol(key) {
            return format!("[{}]", self.symbol_text(Id(key.0)));
        }
        let text = self.key_text(key);
        let plain = !text.is_empty()
            && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
            && !(text.starts_with(|c: char| c.is_ascii_digit()) && key.as_index().is_none());
        if plain { text } else { format!("'{text}'") }
    }

    fn date_text(t: f64) -> String {
        if t.is_nan() {
            return "Invalid Date".to_owned();
        }
        crate::pure::date::to_iso_string(t).unwrap_or_else(|| "Invalid Date".to_owned())
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
            let (line, column) = self.p.line_column(offset);
            let source_line = self.p.source().lines().nth(line as usize - 1).unwrap_or("").to_owned();
            let mut variables: Vec<(String, String)> = Vec::new();
            for b in template.bindings.iter().rev().filter(|b| b.range.0 <= pc && pc < b.range.1) {
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
                    self.show_at(value, 1, &mut Vec::new())
                };
                variables.push((b.name.clone(), shown));
            }
            variables.reverse();
            let function = self.template_name(frame.template);
            views.push(FrameView { function, line, column, source_line, variables });
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
                let shown = self.show_at(value, 1, &mut Vec::new());
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
            let pc = frame.pc.saturating_sub(template.start + 1);
            let found =
                template.bindings.iter().rev().find(|b| b.name == name && b.range.0 <= pc && pc < b.range.1);
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
    /// Line, from 1
    pub line: u32,
    /// Column, from 1
    pub column: u32,
    /// The source line
    pub source_line: String,
    /// Names with their values as text
    pub variables: Vec<(String, String)>,
}

fn show_holes(items: &mut Vec<String>, holes: &mut usize) {
    match *holes {
        0 => {}
        1 => items.push("<1 empty item>".to_owned()),
        n => items.push(format!("<{n} empty items>")),
    }
    *holes = 0;
}

/// One line if it fits 72 columns, else one line per item.
fn layout(prefix: &str, open: char, close: char, items: &[String], depth: usize) -> String {
    if items.is_empty() {
        return format!("{prefix}{open}{close}");
    }
    let total: usize = items.iter().map(|i| i.len() + 2).sum::<usize>() + prefix.len();
    if total <= 72 && items.iter().all(|i| !i.contains('\n')) {
        return format!("{prefix}{open} {} {close}", items.join(", "));
    }
    let pad = "  ".repeat(depth + 1);
    let end = "  ".repeat(depth);
    format!("{prefix}{open}\n{pad}{}\n{end}{close}", items.join(&format!(",\n{pad}")))
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
