//! Parsing: source text to AST and scopes, the analysis that code generation needs beforehand, and readable errors.
//!
//! Owns: the calls of the parser and the semantic analysis, [`ScopeFacts`]. Must not: emit code.

use super::CompileError;
use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrowFunctionExpression, AwaitExpression, BindingIdentifier, BindingPattern, CallExpression, Class,
    Expression, ForInStatement, ForOfStatement, ForStatementLeft, FormalParameter, FormalParameters,
    Function, Program, Statement, StaticBlock, SwitchStatement, VariableDeclaration, VariableDeclarationKind,
    VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{Scoping, SemanticBuilder};
use oxc_span::{GetSpan, SourceType};
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use oxc_syntax::symbol::{SymbolFlags, SymbolId};
use std::collections::{HashMap, HashSet};

/// Makes the whole script strict; every position is shifted back by its length.
pub(super) const STRICT: &str = "'use strict';";

/// Results of the analysis before code generation.
#[derive(Default)]
pub(super) struct ScopeFacts {
    /// Scopes of classes; their direct contents may be compiled to separate functions
    pub class_scopes: HashSet<ScopeId>,
    /// Symbols with a binding in a scope cell, because a closure uses it
    pub captured: HashSet<SymbolId>,
    /// Captured symbols by scope, in order of declaration
    pub captured_in: HashMap<ScopeId, Vec<SymbolId>>,
    /// Source offset from which a lexical binding is initialised
    ready_after: HashMap<SymbolId, u32>,
    /// Lexical symbols with at least one use that may precede the initialisation
    pub checked: HashSet<SymbolId>,
    /// Names of class declarations that are assigned to somewhere: inside, the class has a separate constant binding
    pub assigned_classes: HashSet<SymbolId>,
    declared_classes: HashSet<SymbolId>,
    /// For parameter lists with expressions: source offset from which each parameter is initialised
    pub late_params: HashMap<SymbolId, u32>,
    /// Late parameters that the body declares again: the parameters' code uses another variable than the body
    pub twins: HashSet<SymbolId>,
    /// Functions that use `arguments`
    pub uses_arguments: HashSet<ScopeId>,
    /// The top level contains `await`
    pub top_level_await: bool,
    /// Calls of the top level's `main` outside of `main` itself
    pub main_calls: MainCalls,
    arrows: HashSet<ScopeId>,
    functions: HashSet<ScopeId>,
    switch_scopes: HashSet<ScopeId>,
}

/// The program's own calls of `main`, by the source offset of the callee.
#[derive(Default)]
pub(super) struct MainCalls {
    pub at: HashSet<u32>,
    /// Some are in functions
    pub in_functions: bool,
}

impl<'a> Visit<'a> for ScopeFacts {
    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if let Some(id) = it.scope_id.get() {
            self.functions.insert(id);
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        if let Some(id) = it.scope_id.get() {
            self.functions.insert(id);
            self.arrows.insert(id);
        }
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if let Some(id) = it.scope_id.get() {
            self.class_scopes.insert(id);
        }
        if let Some(symbol) = it.id.as_ref().and_then(|id| id.symbol_id.get()) {
            self.ready_after.insert(symbol, it.span.end);
            if it.is_declaration() {
                self.declared_classes.insert(symbol);
            }
        }
        walk::walk_class(self, it);
    }

    fn visit_formal_parameters(&mut self, it: &FormalParameters<'a>) {
        let plain = |p: &FormalParameter<'a>| {
            p.initializer.is_none() && matches!(p.pattern, BindingPattern::BindingIdentifier(_))
        };
        let plain_rest =
            it.rest.as_ref().is_none_or(|r| matches!(r.rest.argument, BindingPattern::BindingIdentifier(_)));
        if !plain_rest || !it.items.iter().all(plain) {
            let rest = it.rest.iter().map(|r| (&r.rest.argument, r.span.end));
            for (pattern, end) in it.items.iter().map(|p| (&p.pattern, p.span.end)).chain(rest) {
                bound_names(pattern, &mut |id| {
                    if let Some(symbol) = id.symbol_id.get() {
                        self.late_params.insert(symbol, end);
                    }
                });
            }
        }
        walk::walk_formal_parameters(self, it);
    }

    fn visit_static_block(&mut self, it: &StaticBlock<'a>) {
        if let Some(id) = it.scope_id.get() {
            self.functions.insert(id);
        }
        walk::walk_static_block(self, it);
    }

    fn visit_switch_statement(&mut self, it: &SwitchStatement<'a>) {
        if let Some(id) = it.scope_id.get() {
            self.switch_scopes.insert(id);
        }
        walk::walk_switch_statement(self, it);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        if it.kind != VariableDeclarationKind::Var {
            for d in &it.declarations {
                let end = d.span.end;
                bound_names(&d.id, &mut |id| {
                    if let Some(symbol) = id.symbol_id.get() {
                        self.ready_after.insert(symbol, end);
                    }
                });
            }
        }
        walk::walk_variable_declaration(self, it);
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        walk::walk_for_of_statement(self, it);
        self.loop_head(&it.left, it.right.span().end);
    }

    fn visit_for_in_statement(&mut self, it: &ForInStatement<'a>) {
        walk::walk_for_in_statement(self, it);
        self.loop_head(&it.left, it.right.span().end);
    }
}

impl ScopeFacts {
    fn loop_head(&mut self, left: &ForStatementLeft<'_>, end: u32) {
        if let ForStatementLeft::VariableDeclaration(decl) = left
            && decl.kind != VariableDeclarationKind::Var
        {
            for d in &decl.declarations {
                bound_names(&d.id, &mut |id| {
                    if let Some(symbol) = id.symbol_id.get() {
                        self.ready_after.insert(symbol, end);
                    }
                });
            }
        }
    }

    /// The innermost scope around `scope` that is the scope of a function, a class or the script.
    fn owner(&self, scoping: &Scoping, scope: ScopeId) -> ScopeId {
        for s in scoping.scope_ancestors(scope) {
            if self.functions.contains(&s) || self.class_scopes.contains(&s) {
                return s;
            }
        }
        scoping.root_scope_id()
    }

    fn find_captures(&mut self, scoping: &Scoping, program: &Program<'_>) {
        for symbol in scoping.symbol_ids() {
            let scope = scoping.symbol_scope_id(symbol);
            let home = self.owner(scoping, scope);
            let ready = self.ready_after.get(&symbol).copied();
            let in_switch = self.switch_scopes.contains(&scope);
            let mut captured = false;
            for reference in scoping.get_resolved_references(symbol) {
                // Types do not exist at run time.
                if !reference.is_read() && !reference.is_write() {
                    continue;
                }
                let user = self.owner(scoping, reference.scope_id());
                captured |= user != home;
                if reference.is_write() && self.declared_classes.contains(&symbol) {
                    self.assigned_classes.insert(symbol);
                }
                if ready.is_some() && (user != home || in_switch) {
                    self.checked.insert(symbol);
                }
            }
            if captured {
                self.captured.insert(symbol);
                self.captured_in.entry(scope).or_default().push(symbol);
            }
        }
        for (&symbol, &end) in &self.late_params {
            if scoping.symbol_redeclarations(symbol).iter().any(|again| again.span.start >= end) {
                self.twins.insert(symbol);
            }
        }
        // Uses inside one function: the position decides.
        let mut early = EarlyUses { facts: self, scoping, found: Vec::new() };
        early.visit_program(program);
        let found = early.found;
        self.checked.extend(found);
        if let Some(ids) = scoping.root_unresolved_references().get("arguments") {
            for &id in ids {
                for s in scoping.scope_ancestors(scoping.get_reference(id).scope_id()) {
                    if self.functions.contains(&s) {
                        self.uses_arguments.insert(s);
                        if !self.arrows.contains(&s) {
                            break;
                        }
                    }
                }
            }
        }
    }
}

impl ScopeFacts {
    fn find_awaits(&mut self, program: &Program<'_>) {
        let mut finder = TopLevelAwait { is_found: false };
        finder.visit_program(program);
        self.top_level_await = finder.is_found;
    }

    /// The functions at the top level of a module exist before any module runs.
    fn share_functions(&mut self, scoping: &Scoping) {
        let root = scoping.get_bindings(scoping.root_scope_id()).values();
        let functions =
            root.filter(|symbol| scoping.symbol_flags(**symbol).intersects(SymbolFlags::Function));
        self.captured.extend(functions);
    }

    fn find_main_calls(&mut self, scoping: &Scoping, program: &Program<'_>) {
        let root = scoping.root_scope_id();
        let Some(main) = scoping.get_binding(root, "main".into()) else { return };
        let mut calls = MainCallFinder { main, scoping, facts: self, found: MainCalls::default() };
        calls.visit_program(program);
        self.main_calls = calls.found;
    }
}

/// Finds `await` outside of functions.
struct TopLevelAwait {
    is_found: bool,
}

impl<'a> Visit<'a> for TopLevelAwait {
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_await_expression(&mut self, _: &AwaitExpression<'a>) {
        self.is_found = true;
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.is_found |= it.r#await;
        walk::walk_for_of_statement(self, it);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        self.is_found |= it.kind == VariableDeclarationKind::AwaitUsing;
        walk::walk_variable_declaration(self, it);
    }
}

/// Finds calls of `main`; skips its declarations.
struct MainCallFinder<'f> {
    main: SymbolId,
    scoping: &'f Scoping,
    facts: &'f ScopeFacts,
    found: MainCalls,
}

impl<'a> Visit<'a> for MainCallFinder<'_> {
    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if it.id.as_ref().and_then(|id| id.symbol_id.get()) != Some(self.main) {
            walk::walk_function(self, it, flags);
        }
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if !matches!(&it.id, BindingPattern::BindingIdentifier(id) if id.symbol_id.get() == Some(self.main)) {
            walk::walk_variable_declarator(self, it);
        }
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if let Expression::Identifier(id) = &it.callee
            && let Some(reference) = id.reference_id.get().map(|r| self.scoping.get_reference(r))
            && reference.symbol_id() == Some(self.main)
        {
            self.found.at.insert(id.span.start);
            let user = self.facts.owner(self.scoping, reference.scope_id());
            self.found.in_functions |= user != self.scoping.root_scope_id();
        }
        walk::walk_call_expression(self, it);
    }
}

/// Finds uses of lexical bindings before the end of their declaration.
struct EarlyUses<'f> {
    facts: &'f ScopeFacts,
    scoping: &'f Scoping,
    found: Vec<SymbolId>,
}

impl<'a> Visit<'a> for EarlyUses<'_> {
    fn visit_identifier_reference(&mut self, it: &oxc_ast::ast::IdentifierReference<'a>) {
        let symbol = it.reference_id.get().and_then(|r| self.scoping.get_reference(r).symbol_id());
        if let Some(symbol) = symbol
            && let facts = self.facts
            && let Some(&ready) = facts.ready_after.get(&symbol).or_else(|| facts.late_params.get(&symbol))
            && it.span.start < ready
        {
            self.found.push(symbol);
        }
    }
}

/// Calls `f` with every identifier a pattern binds.
pub(super) fn bound_names<'a>(pattern: &BindingPattern<'a>, f: &mut dyn FnMut(&BindingIdentifier<'a>)) {
    match pattern {
        BindingPattern::BindingIdentifier(id) => f(id),
        BindingPattern::ObjectPattern(p) => {
            for prop in &p.properties {
                bound_names(&prop.value, f);
            }
            if let Some(rest) = &p.rest {
                bound_names(&rest.argument, f);
            }
        }
        BindingPattern::ArrayPattern(p) => {
            for element in p.elements.iter().flatten() {
                bound_names(element, f);
            }
            if let Some(rest) = &p.rest {
                bound_names(&rest.argument, f);
            }
        }
        BindingPattern::AssignmentPattern(p) => bound_names(&p.left, f),
    }
}

/// Deepest nesting of brackets that is passed to the recursive parser.
const MAX_NESTING: usize = 400;
/// Most operators in a row, summed over all open brackets: each may be one more level of the parser's recursion.
const MAX_CHAIN: usize = 1200;

/// Refuses source with nesting that could exhaust the stack of the recursive parser and code generator.
///
/// This scans bytes, not tokens: regular expressions count as operators, which only makes the count larger.
fn check_nesting(source: &str) -> Result<(), (u32, &'static str)> {
    let bytes = source.as_bytes();
    let mut open: Vec<usize> = Vec::new();
    let (mut total, mut here) = (0usize, 0usize);
    let mut i = 0;
    while let Some(&b) = bytes.get(i) {
        let start = i;
        i += 1;
        match b {
            b'(' | b'[' | b'{' => {
                open.push(here);
                here = 0;
                if open.len() > MAX_NESTING {
                    return Err((start as u32, "the source is nested too deeply"));
                }
            }
            b')' | b']' | b'}' => {
                total -= here;
                here = open.pop().unwrap_or(0);
            }
            b';' | b',' => {
                total -= here;
                here = 0;
            }
            b'\'' | b'"' => {
                while let Some(&c) = bytes.get(i) {
                    i += if c == b'\\' { 2 } else { 1 };
                    if c == b || c == b'\n' {
                        break;
                    }
                }
            }
            b'/' if bytes.get(i) == Some(&b'/') => {
                i += bytes[i..].iter().position(|&c| c == b'\n').unwrap_or(bytes.len() - i);
            }
            b'/' if bytes.get(i) == Some(&b'*') => {
                let end = bytes[i + 1..].windows(2).position(|w| w == b"*/");
                i += end.map_or(bytes.len() - i, |n| n + 3);
            }
            b'!' | b'~' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'<' | b'>' | b'='
            | b'?' | b':' | b'.' => {
                here += 1;
                total += 1;
            }
            _ if b.is_ascii_alphabetic() || b == b'_' || b == b'$' => {
                while bytes.get(i).is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_' || *c == b'$') {
                    i += 1;
                }
                if is_prefix_word(&bytes[start..i]) {
                    here += 1;
                    total += 1;
                }
            }
            _ => {}
        }
        if total > MAX_CHAIN {
            return Err((start as u32, "the expression is too long: split it into several statements"));
        }
    }
    Ok(())
}

/// Keywords that can be repeated or nested without brackets.
fn is_prefix_word(word: &[u8]) -> bool {
    matches!(
        word,
        b"new"
            | b"typeof"
            | b"void"
            | b"delete"
            | b"await"
            | b"yield"
            | b"if"
            | b"else"
            | b"for"
            | b"while"
            | b"do"
            | b"async"
            | b"in"
            | b"instanceof"
            | b"as"
            | b"satisfies"
            | b"keyof"
            | b"readonly"
            | b"infer"
            | b"unique"
    )
}

/// Whether a text that compiles as TypeScript has any syntax that JavaScript does not have.
pub(crate) fn has_typescript(source: &str) -> bool {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::ts().with_script(true)).parse();
    let mut finder = TypeScriptFinder { is_found: false };
    finder.visit_program(&parsed.program);
    finder.is_found
}

/// Finds nodes of TypeScript, and its modifiers of other nodes.
struct TypeScriptFinder {
    is_found: bool,
}

impl<'a> Visit<'a> for TypeScriptFinder {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        self.is_found |= match kind {
            AstKind::Class(class) => class.r#abstract || class.declare,
            AstKind::VariableDeclaration(declaration) => declaration.declare,
            AstKind::VariableDeclarator(declarator) => declarator.definite,
            AstKind::Function(function) => function.declare || function.body.is_none(),
            AstKind::FormalParameter(parameter) => {
                parameter.accessibility.is_some()
                    || parameter.readonly
                    || parameter.r#override
                    || parameter.optional
            }
            AstKind::MethodDefinition(method) => {
                member_of_typescript(&kind).is_some() || method.value.body.is_none()
            }
            AstKind::PropertyDefinition(_) => member_of_typescript(&kind).is_some(),
            kind => format!("{:?}", kind.ty()).starts_with("TS"),
        };
    }
}

/// The offset of a member of a class that has a modifier of TypeScript, or is optional.
fn member_of_typescript(kind: &AstKind<'_>) -> Option<u32> {
    let (span, is_found) = match kind {
        AstKind::MethodDefinition(method) => {
            (method.span, method.accessibility.is_some() || method.r#override || method.optional)
        }
        AstKind::PropertyDefinition(property) => {
            let modified = property.accessibility.is_some()
                || property.declare
                || property.r#override
                || property.readonly;
            (property.span, modified || property.optional || property.definite)
        }
        _ => return None,
    };
    is_found.then_some(span.start)
}

/// Finds the members of classes that only TypeScript has: the parser accepts them in JavaScript, too.
#[derive(Default)]
struct TypedMembers {
    first: Option<u32>,
}

impl<'a> Visit<'a> for TypedMembers {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        if self.first.is_none() {
            self.first = member_of_typescript(&kind);
        }
    }
}

/// What a text is parsed as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// Exactly a script of the language
    Script,
    /// The first file of a program: a module if it imports or exports, else a script, with `await` at its top level
    Program,
    /// A file that is imported
    Module,
}

/// A text that was parsed.
pub(super) struct Parsed<'a> {
    pub program: &'a Program<'a>,
    pub scoping: Scoping,
    pub facts: ScopeFacts,
    /// It imports or exports, or is imported
    pub is_module: bool,
}

/// Parses a text and finds its scopes.
pub(super) fn parse<'a>(
    allocator: &'a Allocator,
    source: &str,
    typescript: bool,
    goal: Goal,
) -> Result<Parsed<'a>, Vec<CompileError>> {
    if let Err((at, message)) = check_nesting(source) {
        return Err(vec![CompileError::new(source, at, message)]);
    }
    let mut text = String::with_capacity(source.len() + STRICT.len());
    text.push_str(STRICT);
    match source.strip_prefix("#!") {
        Some(rest) => {
            text.push_str("//");
            text.push_str(rest);
        }
        None => text.push_str(source),
    }
    let text = allocator.alloc_str(&text);
    let script = if typescript { SourceType::ts().with_script(true) } else { SourceType::script() };
    let as_module = || parsed(allocator, source, text, script.with_module(true));
    let (program, scoping) = match goal {
        Goal::Script => parsed(allocator, source, text, script)?,
        Goal::Module => as_module()?,
        Goal::Program => {
            let as_script = parsed(allocator, source, text, script);
            let awaits =
                |(_, scoping): &(_, Scoping)| scoping.root_unresolved_references().contains_key(AWAIT);
            let may_be_module = [AWAIT, "import", "export"].iter().any(|word| source.contains(word))
                && as_script.as_ref().map_or(true, awaits);
            match (may_be_module.then(as_module), as_script) {
                (Some(Ok(module)), _) => module,
                // The errors of the kind of text that it is meant to be.
                (Some(Err(errors)), Err(found)) if found.iter().any(is_about_modules) => return Err(errors),
                (_, as_script) => as_script?,
            }
        }
    };
    let is_module = goal == Goal::Module || program.body.iter().any(Statement::is_module_declaration);
    let mut facts = ScopeFacts::default();
    facts.visit_program(program);
    facts.find_captures(&scoping, program);
    if goal != Goal::Script {
        facts.find_awaits(program);
    }
    if goal != Goal::Module {
        facts.find_main_calls(&scoping, program);
    }
    if is_module {
        facts.share_functions(&scoping);
    }
    Ok(Parsed { program, scoping, facts, is_module })
}

/// The errors that the parser reports in a script for what only modules have.
fn is_about_modules(error: &CompileError) -> bool {
    let starts = [
        "Cannot use import statement",
        "Cannot use export statement",
        "`await` is only",
        "`for await` is only",
    ];
    starts.iter().any(|start| error.message.starts_with(start))
}

const AWAIT: &str = "await";

/// The AST and the scopes of a text.
fn parsed<'a>(
    allocator: &'a Allocator,
    source: &str,
    text: &'a str,
    kind: SourceType,
) -> Result<(&'a Program<'a>, Scoping), Vec<CompileError>> {
    let options =
        ParseOptions { preserve_parens: false, parse_regular_expression: true, ..ParseOptions::default() };
    let parsed = Parser::new(allocator, text, kind).with_options(options).parse();
    let errors = diagnostics(source, parsed.diagnostics);
    if !errors.is_empty() || parsed.panicked {
        return Err(if errors.is_empty() {
            vec![CompileError::new(source, 0, "cannot be parsed")]
        } else {
            errors
        });
    }
    let program: &'a Program<'a> = allocator.alloc(parsed.program);
    let mut typed = TypedMembers::default();
    if !kind.is_typescript() {
        typed.visit_program(program);
    }
    if let Some(at) = typed.first {
        let message =
            "modifiers (`private`, `readonly`, …) and `?` of class members are TypeScript, not JavaScript";
        return Err(vec![CompileError::new(source, at.saturating_sub(STRICT.len() as u32), message)]);
    }
    let built = SemanticBuilder::new().with_check_syntax_error(true).build(program);
    let errors = diagnostics(source, built.diagnostics);
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok((program, built.semantic.into_scoping()))
}

fn diagnostics(source: &str, found: oxc_diagnostics::Diagnostics) -> Vec<CompileError> {
    let mut errors = Vec::new();
    for d in found.into_vec() {
        if d.severity != oxc_diagnostics::Severity::Error {
            continue;
        }
        // For two declarations of one name, the second is reported as the error.
        let again = d.message.ends_with("has already been declared");
        let label = if again { d.labels.last() } else { d.labels.first() };
        let at = label.and_then(|l| (l.offset() as usize).checked_sub(STRICT.len()));
        // The parser reports a second error at the same position.
        if !errors.is_empty() && (at.is_none() || d.message == "Unexpected token") {
            continue;
        }
        // An error at the end of the text is reported after the last token.
        let at = at.unwrap_or(0).min(source.trim_end().len());
        errors.push(CompileError::new(source, at as u32, super::unsupported::reworded(d.message.as_ref())));
    }
    errors
}
