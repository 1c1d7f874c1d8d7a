//! Owns the search for what an error of the engine may be about. QuickJS gives an operation the position that it noted last, so that
//! several calls can have the same one: this file knows where it notes positions, and returns all of them. Pure.
//!
//! QuickJS notes (`emit_source_loc` in quickjs.c): a variable that is read, the token behind `new`, the token behind the parenthesis
//! of a call, a template behind its tag, and the right operand of a binary operator. A call has the position that its last argument
//! left. A token that is no word has the column of the word before it, unless there is space between them (`marks`).

use super::marks::Marks;
use super::shown::shown;
use crate::engine::source::scan::words;
use crate::engine::source::{SourceError, guarded};
use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrayAssignmentTarget, ArrayExpression, ArrayExpressionElement, ArrayPattern, ArrowFunctionExpression,
    BinaryExpression, BinaryOperator, BindingPattern, CallExpression, Class, ClassElement, Expression,
    ForOfStatement, Function, IdentifierReference, NewExpression, ObjectAssignmentTarget, ObjectProperty,
    PrivateInExpression, Program, SpreadElement, TaggedTemplateExpression, YieldExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_semantic::{Semantic, SemanticBuilder};
use oxc_span::{GetSpan, SourceType, Span};
use oxc_syntax::scope::ScopeFlags;
use oxc_syntax::symbol::SymbolFlags;
use std::collections::HashSet;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Call,
    New,
    /// `for (… of x)`; `true`: `x` is a call.
    ForOf(bool),
    /// `[...x]`.
    Spread,
}

/// An operation that may have failed at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) operation: Operation,
    /// The expression that is called or iterated, as messages write it.
    pub(super) shown: Option<String>,
    /// The text says that it is a function.
    pub(super) is_function: bool,
    /// A global variable, and the properties of it that lead to what is called.
    pub(super) path: Vec<String>,
    /// Facts about the function around it.
    pub(super) beside: FunctionFacts,
    function: usize,
}

/// The acts of a function at positions that are not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FunctionFacts {
    /// It iterates over something, and so calls methods `next`.
    pub(super) iterates: bool,
    /// It begins to iterate over something.
    pub(super) begins_iteration: bool,
    /// It calls the constructor of its parent class.
    pub(super) constructs: bool,
}

/// The byte offset of a position; `None` if lines or columns could be counted in another way.
pub(super) fn offset(text: &str, line: u32, column: u32) -> Option<u32> {
    let mut start = 0;
    for _ in 1..line {
        start += text[start..].find('\n')? + 1;
    }
    let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
    let at = start + usize::try_from(column).ok()?.checked_sub(1)?;
    if !text[start..end].is_ascii() || at > end || text.contains(['\u{2028}', '\u{2029}']) {
        return None;
    }
    u32::try_from(at).ok()
}

/// The operations that may have failed at this offset. Empty if the text cannot be parsed.
pub(super) fn candidates(text: &str, module: bool, at: u32) -> Vec<Candidate> {
    if words(text, &HashSet::new()).deep {
        return Vec::new();
    }
    let found = guarded(|| {
        let allocator = Allocator::default();
        let kinds = if module {
            [SourceType::mjs(), SourceType::mjs()]
        } else {
            [SourceType::script(), SourceType::mjs()]
        };
        let program = kinds.into_iter().find_map(|kind| {
            let parsed = Parser::new(&allocator, text, kind).parse();
            (!parsed.panicked && !parsed.diagnostics.has_errors()).then_some(parsed.program)
        });
        let error = SourceError { message: String::new(), line: 1, column: 1 };
        let program = program.ok_or(error)?;
        let built = SemanticBuilder::new().with_build_nodes(true).build(&program);
        let marks = Marks::new(text, &program);
        Ok(CandidateFinder::new(text, at, module, &built.semantic, marks).run(&program))
    });
    found.unwrap_or_default()
}

/// The position that QuickJS has noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Noted {
    At(u32),
    /// Somewhere in what is visited now.
    Unknown,
}

struct CandidateFinder<'a, 's> {
    text: &'s str,
    marks: Marks<'s>,
    at: u32,
    module: bool,
    semantic: &'s Semantic<'a>,
    noted: Noted,
    /// The innermost function, and all that were found.
    function: usize,
    functions: Vec<FunctionFacts>,
    found: Vec<Candidate>,
}

impl<'a, 's> CandidateFinder<'a, 's> {
    fn new(text: &'s str, at: u32, module: bool, semantic: &'s Semantic<'a>, marks: Marks<'s>) -> Self {
        let functions = vec![FunctionFacts::default()];
        let (noted, found) = (Noted::Unknown, Vec::new());
        Self { text, marks, at, module, semantic, noted, function: 0, functions, found }
    }

    fn run(mut self, program: &Program<'a>) -> Vec<Candidate> {
        self.visit_program(program);
        for candidate in &mut self.found {
            candidate.beside = self.functions[candidate.function];
        }
        self.found
    }

    fn facts(&mut self) -> &mut FunctionFacts {
        &mut self.functions[self.function]
    }

    /// The first token from this offset on that is not one of `skipped`.
    fn token(&self, from: u32, mut skipped: &[u8]) -> Option<u32> {
        let bytes = self.text.as_bytes();
        let mut at = from as usize;
        loop {
            let rest = bytes.get(at..)?;
            match rest {
                [b'/', b'/', ..] => at += rest.iter().position(|byte| *byte == b'\n')?,
                [b'/', b'*', ..] => at += rest.windows(2).skip(2).position(|pair| pair == b"*/")? + 4,
                [byte, ..] if byte.is_ascii_whitespace() => at += 1,
                [byte, ..] if skipped.first() == Some(byte) => {
                    skipped = &skipped[1..];
                    at += 1;
                }
                [byte, ..] if skipped.is_empty() && byte.is_ascii() => return u32::try_from(at).ok(),
                _ => return None,
            }
        }
    }

    /// Notes the position of the token that begins here.
    fn note(&mut self, token: Option<u32>) {
        self.noted = token.and_then(|token| self.marks.of_token(token)).map_or(Noted::Unknown, Noted::At);
    }

    /// Adds an operation whose position was noted in this span.
    fn add(&mut self, operation: Operation, span: Span, target: Option<&Expression<'a>>) {
        let may_be = match self.noted {
            Noted::At(noted) => noted == self.at,
            Noted::Unknown => span.start <= self.at && self.at < span.end,
        };
        if may_be {
            self.found.push(Candidate {
                operation,
                shown: target.and_then(shown),
                is_function: target.is_some_and(|target| self.is_function(target)),
                path: target.and_then(|target| self.path(target)).unwrap_or_default(),
                beside: FunctionFacts::default(),
                function: self.function,
            });
        }
    }

    /// Visits a function, which QuickJS compiles apart.
    fn inside(&mut self, visit: impl FnOnce(&mut Self)) {
        let outer = (self.noted, self.function);
        self.noted = Noted::Unknown;
        self.function = self.functions.len();
        self.functions.push(FunctionFacts::default());
        visit(self);
        (self.noted, self.function) = outer;
    }

    /// Whether the text says that an expression is a function: a declaration, a class or a constant, which nothing assigns.
    fn is_function(&self, expression: &Expression<'a>) -> bool {
        match expression.without_parentheses() {
            Expression::Identifier(identifier) => self.declares_function(identifier).unwrap_or(false),
            Expression::FunctionExpression(_)
            | Expression::ArrowFunctionExpression(_)
            | Expression::ClassExpression(_) => true,
            _ => false,
        }
    }

    fn declares_function(&self, identifier: &IdentifierReference<'a>) -> Option<bool> {
        let scoping = self.semantic.scoping();
        let symbol = scoping.get_reference(identifier.reference_id.get()?).symbol_id()?;
        let is_global = !self.module && scoping.symbol_scope_id(symbol) == scoping.root_scope_id();
        if is_global || scoping.symbol_is_mutated(symbol) || !scoping.symbol_redeclarations(symbol).is_empty()
        {
            return Some(false);
        }
        let flags = scoping.symbol_flags(symbol);
        if flags.intersects(SymbolFlags::Function | SymbolFlags::Class) {
            return Some(true);
        }
        let node = self.semantic.nodes().get_node(scoping.symbol_declaration(symbol));
        let AstKind::VariableDeclarator(declarator) = node.kind() else { return Some(false) };
        // A variable can be called before it has its value.
        let early = flags.contains(SymbolFlags::FunctionScopedVariable);
        let named = matches!(declarator.id, BindingPattern::BindingIdentifier(_));
        let function = declarator.init.as_ref().map(Expression::without_parentheses).is_some_and(|init| {
            matches!(
                init,
                Expression::FunctionExpression(_)
                    | Expression::ArrowFunctionExpression(_)
                    | Expression::ClassExpression(_)
            )
        });
        Some(!early && named && function)
    }

    /// The path of an expression that begins at a global variable.
    fn path(&self, expression: &Expression<'a>) -> Option<Vec<String>> {
        match expression.without_parentheses() {
            Expression::Identifier(identifier) => {
                let scoping = self.semantic.scoping();
                let symbol = scoping.get_reference(identifier.reference_id.get()?).symbol_id();
                // Variables at the top of a script are global ones.
                let top = |symbol| !self.module && scoping.symbol_scope_id(symbol) == scoping.root_scope_id();
                symbol.is_none_or(top).then(|| vec![identifier.name.to_string()])
            }
            Expression::StaticMemberExpression(member) => {
                let mut path = self.path(&member.object)?;
                path.push(member.property.name.to_string());
                Some(path)
            }
            _ => None,
        }
    }
}

impl<'a> Visit<'a> for CandidateFinder<'a, '_> {
    fn visit_identifier_reference(&mut self, identifier: &IdentifierReference<'a>) {
        self.noted = Noted::At(identifier.span.start);
    }

    fn visit_object_property(&mut self, property: &ObjectProperty<'a>) {
        // `{ a }` notes nothing.
        if !property.shorthand {
            walk::walk_object_property(self, property);
        }
    }

    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        self.visit_expression(&binary.left);
        if binary.operator != BinaryOperator::Exponential {
            self.note(Some(binary.right.span().start));
        }
        self.visit_expression(&binary.right);
    }

    fn visit_private_in_expression(&mut self, expression: &PrivateInExpression<'a>) {
        walk::walk_private_in_expression(self, expression);
        self.noted = Noted::Unknown;
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if matches!(call.callee, Expression::Super(_)) {
            self.facts().constructs = true;
            walk::walk_call_expression(self, call);
            return;
        }
        self.visit_expression(&call.callee);
        let open: &[u8] = if call.optional { b"?.(" } else { b"(" };
        self.note(self.token(call.callee.span().end, open));
        for argument in &call.arguments {
            self.visit_argument(argument);
        }
        self.add(Operation::Call, call.span, Some(&call.callee));
    }

    fn visit_tagged_template_expression(&mut self, call: &TaggedTemplateExpression<'a>) {
        self.visit_expression(&call.tag);
        self.note(Some(call.quasi.span.start));
        self.visit_template_literal(&call.quasi);
        self.add(Operation::Call, call.span, Some(&call.tag));
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        self.note(Some(new.callee.span().start));
        self.visit_expression(&new.callee);
        for argument in &new.arguments {
            self.visit_argument(argument);
        }
        self.add(Operation::New, new.span, Some(&new.callee));
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.facts().iterates = true;
        self.noted = Noted::Unknown;
        self.visit_expression(&statement.right);
        if self.noted == Noted::Unknown || statement.r#await {
            self.facts().begins_iteration = true;
        } else {
            let (is_call, target) = match statement.right.without_parentheses() {
                Expression::CallExpression(call) => (true, Some(&call.callee)),
                Expression::NewExpression(new) => (true, Some(&new.callee)),
                Expression::ChainExpression(_) => (false, None),
                other => (false, Some(other)),
            };
            self.add(Operation::ForOf(is_call), statement.right.span(), target);
        }
        self.visit_for_statement_left(&statement.left);
        self.visit_statement(&statement.body);
    }

    fn visit_array_expression(&mut self, array: &ArrayExpression<'a>) {
        for element in &array.elements {
            self.visit_array_expression_element(element);
            if let ArrayExpressionElement::SpreadElement(spread) = element {
                self.add(Operation::Spread, spread.span, Some(&spread.argument));
            }
        }
    }

    fn visit_spread_element(&mut self, spread: &SpreadElement<'a>) {
        self.facts().iterates = true;
        walk::walk_spread_element(self, spread);
    }

    fn visit_array_pattern(&mut self, pattern: &ArrayPattern<'a>) {
        self.facts().iterates = true;
        self.facts().begins_iteration = true;
        walk::walk_array_pattern(self, pattern);
        self.noted = Noted::Unknown;
    }

    fn visit_array_assignment_target(&mut self, target: &ArrayAssignmentTarget<'a>) {
        self.facts().iterates = true;
        self.facts().begins_iteration = true;
        walk::walk_array_assignment_target(self, target);
        self.noted = Noted::Unknown;
    }

    fn visit_object_assignment_target(&mut self, target: &ObjectAssignmentTarget<'a>) {
        walk::walk_object_assignment_target(self, target);
        self.noted = Noted::Unknown;
    }

    fn visit_yield_expression(&mut self, expression: &YieldExpression<'a>) {
        self.facts().iterates |= expression.delegate;
        self.facts().begins_iteration |= expression.delegate;
        walk::walk_yield_expression(self, expression);
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.inside(|this| walk::walk_function(this, function, flags));
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        self.inside(|this| walk::walk_arrow_function_expression(this, arrow));
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        if let Some(parent) = &class.heritage {
            self.visit_class_heritage(parent);
        }
        for element in &class.body.body {
            if let Some(key) = element.property_key().filter(|_| element.computed()) {
                self.visit_property_key(key);
                self.noted = Noted::Unknown;
            }
            self.inside(|this| match element {
                ClassElement::MethodDefinition(method) => {
                    this.visit_function(&method.value, ScopeFlags::Function);
                }
                ClassElement::PropertyDefinition(property) => {
                    property.value.iter().for_each(|value| this.visit_expression(value));
                }
                ClassElement::StaticBlock(block) => this.visit_static_block(block),
                _ => {}
            });
        }
    }
}
