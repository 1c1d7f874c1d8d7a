//! A compiled program: templates, constants, source, and the code linked after the prelude's.
//!
//! Owns: [`CompiledProgram`], [`FunctionTemplate`]. Must not: use the AST, the state or the stored bytes (see `format`).

use crate::ops::Instruction;
use std::sync::Arc;

/// A constant.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Const {
    /// A number
    Num(f64),
    /// A string, as UTF-16 units (lone surrogates are possible)
    Str(Vec<u16>),
    /// A bigint in decimal
    Big(String),
    /// Strings of a tagged template: cooked (none where invalid) and raw
    Template(Vec<(Option<Vec<u16>>, Vec<u16>)>),
}

/// Bits of [`FunctionTemplate::flags`].
pub(crate) mod flag {
    /// Has no own `this`, `arguments`, `new.target`
    pub(crate) const ARROW: u16 = 1;
    /// Method, getter, setter or builtin: no `[[Construct]]`
    pub(crate) const METHOD: u16 = 2;
    /// Class constructor
    pub(crate) const CLASS: u16 = 4;
    /// Class constructor with heritage
    pub(crate) const DERIVED: u16 = 8;
    /// Generator
    pub(crate) const GENERATOR: u16 = 16;
    /// Async function
    pub(crate) const ASYNC: u16 = 32;
    /// All arguments are collected in an array in the first local
    pub(crate) const ALL_ARGS: u16 = 64;
    /// Constructor of the prelude: `this` stays undefined
    pub(crate) const BUILTIN: u16 = 128;
    /// Class field initialiser or static block
    pub(crate) const FIELDS: u16 = 256;
}

/// A protected range of instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExceptionHandler {
    /// First instruction covered, relative to the template
    pub start: u32,
    /// First instruction not covered
    pub end: u32,
    /// Jump target; the thrown value is on the stack
    pub target: u32,
    /// Operands kept beneath the thrown value
    pub depth: u16,
}

/// The location of a named variable, for inspection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// Name in the source
    pub name: String,
    /// Local that holds it, or the scope that holds it
    pub local: u16,
    /// Slot, if the variable is in a scope
    pub slot: Option<u16>,
    /// First and last instruction of the variable's range
    pub range: (u32, u32),
}

/// A function's compiled form.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FunctionTemplate {
    /// Name, a string constant or `u32::MAX`
    pub name: u32,
    /// See [`flag`]
    pub flags: u16,
    /// Declared parameters that get a slot each
    pub params: u16,
    /// `length`
    pub length: u16,
    /// Frame slots: callee, this, parameters, locals
    pub slots: u16,
    /// Deepest operand stack
    pub depth: u16,
    /// First instruction in [`CompiledProgram::code`]
    pub start: u32,
    /// Number of instructions
    pub len: u32,
    /// Innermost first
    pub handlers: Vec<ExceptionHandler>,
    /// `(instruction, byte offset in the source)`, ascending
    pub positions: Vec<(u32, u32)>,
    /// Source range of the whole function
    pub span: (u32, u32),
    /// Names for inspection
    pub bindings: Vec<Binding>,
}

impl FunctionTemplate {
    /// Tests a flag bit.
    #[inline]
    pub fn is(&self, bit: u16) -> bool {
        self.flags & bit != 0
    }

    /// The variables that a frame shows which continues at an instruction relative to the start: those in whose range the one before
    /// it is. A later one hides an earlier one of the same name.
    pub(crate) fn visible(&self, pc: u32) -> impl DoubleEndedIterator<Item = &Binding> {
        let at = pc.saturating_sub(1);
        self.bindings.iter().filter(move |b| b.range.0 <= at && at < b.range.1)
    }
}

/// The compiler's result before linking; stored in this form.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Unit {
    /// Name for stacks and errors
    pub filename: String,
    /// Source text; that of all files one after the other
    pub source: String,
    /// The files, if there are several, in the order of their texts
    pub files: Vec<SourceFileStart>,
    /// Functions; the first is the top level
    pub templates: Vec<FunctionTemplate>,
    /// Constants of all functions
    pub consts: Vec<Const>,
    /// Instructions of all functions; template and constant numbers are those of the unit
    pub code: Vec<Instruction>,
}

/// A file of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SourceFileStart {
    pub name: String,
    /// Byte offset of its text in the unit's source
    pub start: u32,
}

/// A position in the source of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourcePosition<'p> {
    /// Name of the file
    pub file: &'p str,
    /// Line, from 1
    pub line: u32,
    /// Column in characters, from 1
    pub column: u32,
    /// The line's text
    pub text: &'p str,
}

/// Template numbers below belong to the prelude.
pub(crate) const USER_TEMPLATES: u32 = 4096;

/// A program that can run: the prelude's code, followed by its own.
#[derive(Clone, Debug)]
pub struct CompiledProgram {
    pub(crate) unit: Arc<Unit>,
    /// Prelude and user code; names are heap ids, templates are global numbers, targets are indices into this list
    pub(crate) code: Arc<Vec<Instruction>>,
    /// User templates with `start` in [`CompiledProgram::code`]
    pub(crate) templates: Arc<[FunctionTemplate]>,
    pub(crate) prelude: Arc<crate::builtins::prelude::Prelude>,
    /// Values of the prelude's constants, then of the unit's
    pub(crate) consts: Arc<[crate::value::Value]>,
    /// Identifies the program in stored states
    pub(crate) fingerprint: u32,
    /// The generation it was compiled for
    pub(crate) generation: u32,
    /// Realm and constants
    pub(crate) base: Arc<crate::heap::base::Base>,
}

impl CompiledProgram {
    /// Template by global number; the empty one for a wrong number.
    #[inline]
    pub fn template(&self, number: u32) -> &FunctionTemplate {
        let (list, at) = if number >= USER_TEMPLATES {
            (&self.templates[..], number - USER_TEMPLATES)
        } else {
            (&self.prelude.templates[..], number)
        };
        list.get(at as usize).unwrap_or(&self.prelude.nothing)
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.unit.source
    }

    /// Number of the generation of the builtins for which the program was compiled.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether the program's builtins can make items, so that its states have them.
    pub(crate) fn has_items(&self) -> bool {
        self.generation >= crate::builtins::generations::FIRST_WITH_ITEMS
    }

    /// Whether the program has several files.
    pub fn has_files(&self) -> bool {
        !self.unit.files.is_empty()
    }

    /// The position of a byte offset of the source.
    pub fn position(&self, offset: u32) -> SourcePosition<'_> {
        let Unit { files, filename, source, .. } = &*self.unit;
        let next = files.partition_point(|file| file.start <= offset);
        let (file, start) = match files.get(next.wrapping_sub(1)) {
            Some(file) => (file.name.as_str(), file.start),
            None => (filename.as_str(), 0),
        };
        let end = files.get(next).map_or(source.len(), |file| file.start as usize);
        let text = source.get(start as usize..end).unwrap_or("");
        let (line, column) = line_column(text, offset - start);
        SourcePosition { file, line, column, text: text.lines().nth(line as usize - 1).unwrap_or("") }
    }
}

/// Line and column (1-based, in characters) of a byte offset.
pub(crate) fn line_column(source: &str, offset: u32) -> (u32, u32) {
    let before = source.get(..offset as usize).unwrap_or(source);
    let line = before.bytes().filter(|&b| b == b'\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u32 + 1;
    (line, column)
}

impl FunctionTemplate {
    /// Byte offset of the source for an instruction relative to the start.
    pub fn position(&self, pc: u32) -> u32 {
        let at = self.positions.partition_point(|&(p, _)| p <= pc);
        self.positions.get(at.wrapping_sub(1)).map_or(self.span.0, |&(_, offset)| offset)
    }
}

impl CompiledProgram {
    /// The program's bytecode for people: one line an instruction, with operands, fuel and meaning.
    pub fn disassemble(&self) -> String {
        let mut text = String::new();
        for (n, t) in self.unit.templates.iter().enumerate() {
            let name = match self.unit.consts.get(t.name as usize) {
                Some(Const::Str(units)) => String::from_utf16_lossy(units),
                _ => String::new(),
            };
            text.push_str(&format!("function {n} {name} ({} slots, depth {})\n", t.slots, t.depth));
            let range = t.start as usize..(t.start + t.len) as usize;
            for (pc, ins) in self.unit.code.get(range).unwrap_or(&[]).iter().enumerate() {
                let row = ins.op.row();
                let (b, c) = (ins.b, ins.c as i32);
                text.push_str(&format!("{pc:6} {:16} {c:8} {b:4} ; {} ({})\n", row.name, row.doc, row.fuel));
            }
        }
        text
    }
}
