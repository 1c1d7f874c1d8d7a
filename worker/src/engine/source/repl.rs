//! Owns the persistence of a script's top-level declarations: `let`, `const` and `class` are replaced by `var` in place, so that
//! lines do not change and columns hardly do; assignments to constants become assignments that throw. Must not evaluate; the
//! caller declares the returned names before the text runs.

use super::scan::{Words, words};
use super::{SourceError, guarded, place};
use crate::engine::position::{FileMap, Insertion};
use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{
    AwaitExpression, BindingPattern, ForOfStatement, Function, Program, Statement, VariableDeclaration,
    VariableDeclarationKind,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_semantic::{Semantic, SemanticBuilder};
use oxc_span::{GetSpan, SourceType, Span};
use oxc_syntax::scope::ScopeFlags;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

/// A top-level name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Declared {
    pub(in crate::engine) name: String,
    pub(in crate::engine) kind: DeclarationKind,
}

/// The kind of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum DeclarationKind {
    /// `let` or `class`.
    Lexical,
    /// `const`.
    Constant,
    /// `var` or `function` in place of an earlier constant.
    Variable,
}

/// A script ready to be evaluated.
#[derive(Debug, Clone)]
pub(in crate::engine) struct PreparedInput<'a> {
    pub(in crate::engine) text: Cow<'a, str>,
    pub(in crate::engine) map: FileMap,
    /// In the order of the text.
    pub(in crate::engine) declared: Vec<Declared>,
    /// The text awaits at its top level.
    pub(in crate::engine) awaits: bool,
}

impl<'a> PreparedInput<'a> {
    fn unchanged(text: &'a str, awaits: bool) -> Self {
        Self { text: Cow::Borrowed(text), map: FileMap::default(), declared: Vec::new(), awaits }
    }
}

/// Prepares a script. A text that does not parse is returned unchanged: QuickJS reports the syntax error.
pub(in crate::engine) fn prepare<'a>(
    text: &'a str,
    constants: &HashSet<String>,
) -> Result<PreparedInput<'a>, SourceError> {
    let found = words(text, constants);
    if !found.need_parsing() {
        return Ok(PreparedInput::unchanged(text, found.awaits));
    }
    if found.brace_first
        && !text.trim_end().ends_with(';')
        && let Some(prepared) = as_object_literal(text, found, constants)
    {
        return Ok(prepared);
    }
    guarded(|| transform(text, found, constants))?
        .map_or_else(|| Ok(PreparedInput::unchanged(text, found.awaits)), Ok)
}

/// `{…}` at the start is an object literal if it parses as one, as in Node's repl.
fn as_object_literal<'a>(text: &str, found: Words, constants: &HashSet<String>) -> Option<PreparedInput<'a>> {
    let wrapped = format!("({text}\n)");
    let prepared = guarded(|| transform(&wrapped, found, constants)).ok()??;
    let mut map = prepared.map;
    for insertion in map.insertions.iter_mut().filter(|insertion| insertion.line == 1) {
        insertion.column -= 1;
    }
    map.insertions.insert(0, Insertion { line: 1, column: 1, length: 1 });
    Some(PreparedInput {
        text: Cow::Owned(prepared.text.into_owned()),
        map,
        declared: prepared.declared,
        awaits: prepared.awaits,
    })
}

/// Parses and edits; `None` if the text does not parse.
fn transform<'a>(
    text: &'a str,
    found: Words,
    constants: &HashSet<String>,
) -> Result<Option<PreparedInput<'a>>, SourceError> {
    let allocator = Allocator::default();
    // Only a module may await at top level, so scripts with the word are parsed as a module first. What does not await there, or is
    // sloppy-mode syntax, which fails there, is parsed as a script, in which `await` is allowed only in functions.
    let parse = |source_type| {
        let parsed = Parser::new(&allocator, text, source_type).parse();
        if !parsed.panicked && !parsed.diagnostics.has_errors() {
            return Ok(Some(parsed.program));
        }
        match SourceError::first(parsed.diagnostics.errors(), text) {
            Some(error) if error.message == USING_IN_A_SCRIPT => {
                Err(SourceError { message: NO_USING.to_owned(), ..error })
            }
            _ => Ok(None),
        }
    };
    let as_module = if found.awaits { parse(SourceType::mjs())?.filter(awaits_at_top) } else { None };
    let program = match as_module {
        Some(program) => Some(program),
        None => parse(SourceType::script())?,
    };
    let Some(program) = &program else { return Ok(None) };
    if let Some(using) = program.body.iter().find_map(disposing) {
        let (line, column) = place(text, using.span.start as usize);
        return Err(SourceError { message: NO_USING.to_owned(), line, column });
    }
    if program.body.iter().any(|statement| statement.as_module_declaration().is_some()) {
        return Ok(None);
    }
    let built = SemanticBuilder::new().with_build_nodes(true).with_check_syntax_error(true).build(program);
    if let Some(error) = SourceError::first(built.diagnostics.errors(), text) {
        return Err(error);
    }
    let mut edits = Edits::default();
    let mut declared = Vec::new();
    for statement in &program.body {
        edit_statement(statement, &mut edits, &mut declared);
    }
    let now_constant = constants_after(&built.semantic, constants, &mut declared);
    edit_assignments(&built.semantic, &now_constant, &mut edits);
    let awaits = program.source_type.is_module();
    let (text, map) = edits.apply(text);
    Ok(Some(PreparedInput { text, map, declared, awaits }))
}

/// The parser's message for `using` at the top level of a script.
const USING_IN_A_SCRIPT: &str = "'using' declarations are not allowed at the top level of a script";
/// A script has no end at which its resources could be disposed of: its names live as long as the session.
const NO_USING: &str = "`using` is not allowed at the top level of a script: put it into a block or a function, or into a module";

/// A declaration with `using` or `await using`.
fn disposing<'a, 'b>(statement: &'b Statement<'a>) -> Option<&'b VariableDeclaration<'a>> {
    match statement {
        Statement::VariableDeclaration(declaration)
            if matches!(
                declaration.kind,
                VariableDeclarationKind::Using | VariableDeclarationKind::AwaitUsing
            ) =>
        {
            Some(declaration)
        }
        _ => None,
    }
}

/// Turns one top-level declaration into a `var`.
fn edit_statement(statement: &Statement<'_>, edits: &mut Edits, declared: &mut Vec<Declared>) {
    match statement {
        Statement::VariableDeclaration(declaration) => edit_variables(declaration, edits, declared),
        Statement::ClassDeclaration(class) => {
            if let Some(id) = &class.id {
                declared.push(Declared { name: id.name.to_string(), kind: DeclarationKind::Lexical });
                edits.insert(class.span.start, format!("var {}=", id.name));
                // Without the semicolon the next line could continue the class expression.
                edits.insert(class.span.end, ";".to_owned());
            }
        }
        _ => {}
    }
}

fn edit_variables(declaration: &VariableDeclaration<'_>, edits: &mut Edits, declared: &mut Vec<Declared>) {
    let (kind, word) = match declaration.kind {
        VariableDeclarationKind::Let => (DeclarationKind::Lexical, "let"),
        VariableDeclarationKind::Const => (DeclarationKind::Constant, "const"),
        _ => return,
    };
    let padded = format!("{:width$}", "var", width = word.len());
    edits.replace(Span::new(declaration.span.start, declaration.span.start + word.len() as u32), padded);
    for declarator in &declaration.declarations {
        let mut add = |name: &str| declared.push(Declared { name: name.to_owned(), kind });
        names_of(&declarator.id, &mut add);
        if declarator.init.is_none() {
            edits.insert(declarator.id.span().end, "=void 0".to_owned());
        }
    }
}

fn names_of(pattern: &BindingPattern<'_>, add: &mut impl FnMut(&str)) {
    for identifier in pattern.get_binding_identifiers() {
        add(identifier.name.as_str());
    }
}

/// The names that are constants while this text runs; earlier constants that it declares as variables are added to `declared`.
fn constants_after(
    semantic: &Semantic<'_>,
    constants: &HashSet<String>,
    declared: &mut Vec<Declared>,
) -> HashSet<String> {
    let lexical: HashSet<&str> = declared.iter().map(|declared| declared.name.as_str()).collect();
    let scoping = semantic.scoping();
    let mut variables = Vec::new();
    for (name, _) in scoping.get_bindings(scoping.root_scope_id()) {
        if constants.contains(name.as_str()) && !lexical.contains(name.as_str()) {
            variables.push(Declared { name: name.to_string(), kind: DeclarationKind::Variable });
        }
    }
    declared.extend(variables);
    let mut now: HashSet<String> = constants.clone();
    for name in declared.iter() {
        if name.kind == DeclarationKind::Constant {
            now.insert(name.name.clone());
        } else {
            now.remove(&name.name);
        }
    }
    now
}

/// `x = 1` for a constant `x` becomes `__constants__.x = 1`, a setter that throws.
fn edit_assignments(semantic: &Semantic<'_>, constants: &HashSet<String>, edits: &mut Edits) {
    if constants.is_empty() {
        return;
    }
    let scoping = semantic.scoping();
    let mut references = Vec::new();
    for (name, symbol) in scoping.get_bindings(scoping.root_scope_id()) {
        if constants.contains(name.as_str()) {
            references.extend_from_slice(scoping.get_resolved_reference_ids(*symbol));
        }
    }
    for (name, unresolved) in scoping.root_unresolved_references() {
        if constants.contains(name.as_str()) {
            references.extend(unresolved.iter().copied());
        }
    }
    for reference in references {
        let reference = scoping.get_reference(reference);
        if !reference.is_write() {
            continue;
        }
        let nodes = semantic.nodes();
        let node = nodes.get_node(reference.node_id());
        let (span, name) = (node.kind().span(), semantic.reference_name(reference));
        let shorthand =
            matches!(nodes.parent_kind(reference.node_id()), AstKind::AssignmentTargetPropertyIdentifier(_));
        let prefix = if shorthand { format!("{name}:__constants__.") } else { "__constants__.".to_owned() };
        edits.insert(span.start, prefix);
    }
}

/// Finds an `await` outside of functions.
fn awaits_at_top(program: &Program<'_>) -> bool {
    struct AwaitFinder(bool);
    impl<'a> Visit<'a> for AwaitFinder {
        fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}
        fn visit_arrow_function_expression(&mut self, _: &oxc_ast::ast::ArrowFunctionExpression<'a>) {}
        fn visit_await_expression(&mut self, _: &AwaitExpression<'a>) {
            self.0 = true;
        }
        fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
            self.0 |= statement.r#await;
            walk::walk_for_of_statement(self, statement);
        }
    }
    let mut finder = AwaitFinder(false);
    finder.visit_program(program);
    finder.0
}

/// Changes of a text, by byte offset; insertions at the same offset keep their order.
#[derive(Default)]
struct Edits {
    changes: BTreeMap<(u32, usize), (u32, String)>,
}

impl Edits {
    fn insert(&mut self, at: u32, text: String) {
        self.changes.insert((at, self.changes.len()), (0, text));
    }

    /// Replaces by text of the same length, on one line.
    fn replace(&mut self, span: Span, text: String) {
        self.changes.insert((span.start, self.changes.len()), (span.end - span.start, text));
    }

    fn apply(self, source: &str) -> (Cow<'_, str>, FileMap) {
        if self.changes.is_empty() {
            return (Cow::Borrowed(source), FileMap::default());
        }
        let mut text = String::with_capacity(source.len() + self.changes.len() * 16);
        let mut map = FileMap::default();
        let mut at = 0;
        let mut known = (0, (1, 1));
        for ((offset, _), (removed, new)) in self.changes {
            let offset = offset as usize;
            text.push_str(&source[at..offset]);
            text.push_str(&new);
            at = offset + removed as usize;
            if removed == 0 {
                known = (offset, advance(source, known, offset));
                let length = u32::try_from(new.chars().count()).unwrap_or(u32::MAX);
                map.insertions.push(Insertion { line: known.1.0, column: known.1.1, length });
            }
        }
        text.push_str(&source[at..]);
        (Cow::Owned(text), map)
    }
}

/// Line and column of `offset`, computed from an earlier position, so that all edits take one pass.
fn advance(source: &str, (from, (line, column)): (usize, (u32, u32)), offset: usize) -> (u32, u32) {
    let (lines, last) = place(&source[from..], offset - from);
    if lines == 1 { (line, column + last - 1) } else { (line + lines - 1, last) }
}
