//! From source text to bytecode.
//!
//! Reading order: `parse` (AST, scopes), `facts` (what is known of them), `emit` (code buffer, labels, stack depth), `scope` (where
//! variables are stored), `control` (break, continue, return, finally), then one file per family of syntax; `modules` (programs of
//! several files).
//! Owns: everything that uses the parser's AST. Must not: use the state or run code.

mod assign;
mod calls;
mod class;
mod control;
mod emit;
mod expr;
mod facts;
mod function;
mod loops;
mod member;
mod modules;
mod parse;
mod pattern;
mod scope;
mod stmt;
mod switch;
mod task_options;
mod top_level;
mod typescript;
mod unsupported;
mod using;
mod yields;

use crate::builtins::generations::GlobalNames;
use crate::program::{Const, FunctionTemplate, Unit};
use modules::CurrentModule;
use oxc_allocator::Allocator;
use oxc_semantic::Scoping;
use parse::Goal;
use scope::ActiveScope;
use std::collections::HashMap;
use unsupported::RefusedUse;

/// Longest source text (bytes of UTF-8). Callers usually set a much lower limit for a program.
const MAX_SOURCE_BYTES: usize = 64 << 20;

/// Options of the compiler.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// Name for errors and stacks
    pub filename: String,
    /// Read TypeScript; types are ignored
    pub typescript: bool,
    /// Exactly a script of the language: `await` at the top level is refused, and names that are declared nowhere are errors only
    /// when they are used
    pub plain_script: bool,
    /// The program has `CC.async`, `sleep` and `waitFor`: its host handles [`crate::RunOutcome::Wait`]. Without it these names do not
    /// exist, and the program never waits so
    pub items: bool,
}

impl Default for CompileOptions {
    fn default() -> Self {
        let filename = "program.js".to_owned();
        CompileOptions { filename, typescript: false, plain_script: false, items: false }
    }
}

/// A kind of fault of source that does not compile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompileErrorKind {
    /// The text is not valid, or too large
    Invalid,
    /// The text is correct, but uses something that programs do not have
    Unsupported,
    /// The text is correct, but uses a name that nothing declares
    Undefined,
}

/// A reason why source does not compile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileError {
    pub kind: CompileErrorKind,
    /// The error, without its position
    pub message: String,
    /// The file, if the program has several
    pub file: Option<String>,
    /// Line, from 1
    pub line: u32,
    /// Column in characters, from 1
    pub column: u32,
    /// The source line
    pub snippet: String,
}

impl CompileError {
    pub(crate) fn new(source: &str, offset: u32, message: &str) -> CompileError {
        let mut at = (offset as usize).min(source.len());
        while !source.is_char_boundary(at) {
            at -= 1;
        }
        let (line, column) = crate::program::line_column(source, at as u32);
        let snippet = source.lines().nth(line as usize - 1).unwrap_or("");
        let snippet: String = snippet.chars().take(400).collect();
        let kind = CompileErrorKind::Invalid;
        CompileError { kind, message: message.to_owned(), file: None, line, column, snippet }
    }

    fn in_file(mut self, name: &str) -> CompileError {
        self.file = Some(name.to_owned());
        self
    }

    fn of_kind(mut self, kind: CompileErrorKind) -> CompileError {
        self.kind = kind;
        self
    }

    /// The source line with a caret beneath the column.
    pub fn caret(&self) -> String {
        let pad: String = self
            .snippet
            .chars()
            .take(self.column as usize - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        format!("{}\n{pad}^", self.snippet)
    }
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
        }
        write!(f, "{}:{}: {}\n{}", self.line, self.column, self.message, self.caret())
    }
}

/// All reasons why source does not compile; never empty.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct CompileErrors(pub Vec<CompileError>);

pub use modules::{FileImport, SourceFile, candidates, imports};
pub(crate) use parse::has_typescript;

/// Most errors that are reported.
const ERRORS: usize = 20;

/// Compiles a program with the files that it may import; [`crate::link`] links it to the prelude.
pub(crate) fn compile_unit(
    source: &str,
    others: &[SourceFile],
    options: &CompileOptions,
    prelude: &HashMap<String, u32>,
    names: &GlobalNames,
) -> Result<Unit, CompileErrors> {
    if source.len() + others.iter().map(|file| file.text.len()).sum::<usize>() > MAX_SOURCE_BYTES {
        let message = format!("the source is too large: at most {} MiB", MAX_SOURCE_BYTES >> 20);
        return Err(CompileErrors(vec![CompileError::new("", 0, &message)]));
    }
    let allocator = Allocator::default();
    let goal = if options.plain_script { Goal::Script } else { Goal::Program };
    let names = (!options.plain_script).then_some(names);
    let named =
        |error: CompileError| if others.is_empty() { error } else { error.in_file(&options.filename) };
    let parsed = parse::parse(&allocator, source, options.typescript, goal)
        .map_err(|errors| CompileErrors(errors.into_iter().map(named).collect()))?;
    if parsed.is_module {
        return modules::compile(&allocator, (parsed, source), others, options, prelude, names);
    }
    let mut compiler = Compiler::new(source, &parsed.scoping, &parsed.facts, prelude, false);
    compiler.unit.filename.clone_from(&options.filename);
    for RefusedUse { at, kind, message } in unsupported::find(parsed.program, &parsed.scoping, names) {
        compiler.refuse_as(kind, at, &message);
    }
    compiler.script(parsed.program);
    compiler.finish().map_err(|errors| CompileErrors(errors.into_iter().map(named).collect()))
}

/// Compiles the prelude: every function and method becomes a template; `const X = { … }` lists methods.
pub(crate) fn compile_prelude(source: &str) -> Result<(Unit, PreludeNames), CompileErrors> {
    let (empty, allocator) = (HashMap::new(), Allocator::default());
    let parsed = parse::parse(&allocator, source, false, Goal::Script).map_err(CompileErrors)?;
    let mut compiler = Compiler::new(source, &parsed.scoping, &parsed.facts, &empty, true);
    let names = compiler.prelude(parsed.program);
    compiler.finish().map(|unit| (unit, names)).map_err(CompileErrors)
}

/// The definitions of the prelude.
#[derive(Clone, Debug, Default)]
pub(crate) struct PreludeNames {
    /// Top-level functions by name
    pub functions: HashMap<String, u32>,
    /// Method lists by name: key, kind (0 method 1 getter 2 setter), template
    pub methods: HashMap<String, Vec<(String, u8, u32)>>,
}

/// State of one compilation.
struct Compiler<'a, 's> {
    /// Text of the file that is compiled
    source: &'s str,
    scoping: &'s Scoping,
    facts: &'s facts::ScopeFacts,
    unit: Unit,
    consts: HashMap<ConstKey, u32>,
    functions: Vec<emit::FunctionBuilder>,
    active_scopes: Vec<ActiveScope>,
    errors: Vec<CompileError>,
    prelude_names: &'a HashMap<String, u32>,
    /// Compiling the prelude: `$name` is a native, `$$NAME` a realm object
    in_prelude: bool,
    own_names: HashMap<String, u32>,
    first_template: u32,
    /// Variables that have another location in the code being compiled than in the code around it
    aliases: Vec<scope::Alias>,
    current: CurrentModule<'s>,
    /// Calls of the top level that it awaits at its end: source offset, and local with the result
    started_calls: Vec<(u32, u16)>,
}

#[derive(PartialEq, Eq, Hash)]
enum ConstKey {
    Num(u64),
    Str(Vec<u16>),
    Big(String),
}

impl<'a, 's> Compiler<'a, 's> {
    fn new(
        source: &'s str,
        scoping: &'s Scoping,
        facts: &'s facts::ScopeFacts,
        prelude_names: &'a HashMap<String, u32>,
        in_prelude: bool,
    ) -> Self {
        let unit = Unit { source: source.to_owned(), ..Unit::default() };
        Compiler {
            source,
            scoping,
            facts,
            unit,
            consts: HashMap::new(),
            functions: Vec::new(),
            active_scopes: Vec::new(),
            errors: Vec::new(),
            prelude_names,
            in_prelude,
            own_names: HashMap::new(),
            aliases: Vec::new(),
            current: CurrentModule::default(),
            started_calls: Vec::new(),
            first_template: if in_prelude { 0 } else { crate::program::USER_TEMPLATES },
        }
    }

    /// Records a compile error; code generation continues in order to find more.
    fn refuse(&mut self, offset: u32, message: &str) {
        self.refuse_as(CompileErrorKind::Invalid, offset, message);
    }

    /// The same, about something that programs do not have.
    fn refuse_unsupported(&mut self, offset: u32, message: &str) {
        self.refuse_as(CompileErrorKind::Unsupported, offset, message);
    }

    fn refuse_as(&mut self, kind: CompileErrorKind, offset: u32, message: &str) {
        let at = offset.saturating_sub(parse::STRICT.len() as u32);
        if self.errors.len() < ERRORS {
            let error = CompileError::new(self.source, at, message).of_kind(kind);
            self.errors.push(match self.current.file {
                Some(name) => error.in_file(name),
                None => error,
            });
        }
    }

    fn finish(mut self) -> Result<Unit, Vec<CompileError>> {
        // Each stage reports its own errors; they are sorted by position for the reader.
        self.errors.sort_by_key(|error| (error.line, error.column));
        if self.errors.is_empty() { Ok(self.unit) } else { Err(self.errors) }
    }

    fn number_const(&mut self, n: f64) -> u32 {
        self.intern(ConstKey::Num(n.to_bits()), || Const::Num(n))
    }

    fn str_const(&mut self, text: &str) -> u32 {
        let units: Vec<u16> = text.encode_utf16().collect();
        self.units_const(units)
    }

    fn units_const(&mut self, units: Vec<u16>) -> u32 {
        self.intern(ConstKey::Str(units.clone()), || Const::Str(units))
    }

    fn big_const(&mut self, decimal: &str) -> u32 {
        self.intern(ConstKey::Big(decimal.to_owned()), || Const::Big(decimal.to_owned()))
    }

    fn intern(&mut self, key: ConstKey, make: impl FnOnce() -> Const) -> u32 {
        let next = self.unit.consts.len() as u32;
        let at = *self.consts.entry(key).or_insert(next);
        if at == next {
            self.unit.consts.push(make());
        }
        at
    }

    /// Reserves the number of a template that is compiled later.
    fn reserve_template(&mut self) -> u32 {
        self.unit.templates.push(FunctionTemplate::default());
        self.first_template + self.unit.templates.len() as u32 - 1
    }

    /// Number of a function of the prelude.
    fn pre(&mut self, name: &str) -> u32 {
        let names = if self.in_prelude { &self.own_names } else { self.prelude_names };
        if let Some(&n) = names.get(name) {
            return n;
        }
        self.refuse(0, &format!("internal: the prelude has no function {name}"));
        0
    }
}
