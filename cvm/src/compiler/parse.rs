//! Parsing: source text to AST and scopes, and readable errors.
//!
//! Owns: the calls of the parser and the semantic analysis, [`Goal`]. Must not: emit code.

use super::CompileError;
use super::facts::ScopeFacts;
use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{Program, Statement};
use oxc_ast_visit::Visit;
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{Scoping, SemanticBuilder};
use oxc_span::SourceType;

/// Makes the whole script strict; every position is shifted back by its length.
pub(super) const STRICT: &str = "'use strict';";

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

/// The production of the grammar as which a text is parsed.
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
        // Each position costs a search for its line.
        if errors.len() == super::ERRORS {
            break;
        }
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
