//! Globals and syntax that cvm does not support: reported at compile time, so that no program fails half way.
//!
//! Owns: the list of names with the reason for each, and our wording of the parser's messages. Must not: emit code.

use super::CompileErrorKind;
use crate::builtins::generations::GlobalNames;
use crate::pure::regexp::{Flags, Regex};
use oxc_ast::ast::{
    BinaryExpression, CallExpression, ClassBody, ComputedMemberExpression, Decorator, Expression, Function,
    IdentifierReference, NewExpression, Program, RegExpLiteral, StaticMemberExpression, ThisExpression,
    UnaryExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Scoping;
use oxc_span::GetSpan;
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};
use oxc_syntax::scope::ScopeFlags;
use std::collections::HashSet;

const STRINGS: &str = "a program's code is known when it is loaded";
const SHARED: &str = "a program has one thread; use `ArrayBuffer`";
const TIMERS: &str = "programs have no timers; give `CC` the option `timeout_ms`";
/// The same in programs that have `sleep`.
const SLEEP: &str = "use `await sleep(ms)`";

/// Global names of other JavaScript environments, with the reason why cvm does not have them.
const NAMES: &[(&str, &str)] = &[
    ("eval", STRINGS),
    ("SharedArrayBuffer", SHARED),
    ("Atomics", SHARED),
    ("Buffer", "use `Uint8Array`, `TextEncoder` and `TextDecoder`"),
    ("Temporal", "use `Date`"),
    ("ShadowRealm", STRINGS),
    ("WebAssembly", STRINGS),
    ("setTimeout", TIMERS),
    ("setInterval", TIMERS),
    ("setImmediate", TIMERS),
    ("clearTimeout", TIMERS),
    ("clearInterval", TIMERS),
    ("clearImmediate", TIMERS),
    ("queueMicrotask", "use `Promise.resolve().then(…)`"),
    ("require", "use `import`"),
    ("process", "use `args` and `env`"),
    ("performance", "use `Date.now()`"),
    ("module", "use `export`"),
    ("exports", "use `export`"),
    ("prompt", "use `CC`"),
    ("alert", "use `console.log`"),
    ("AbortController", "a row of kind net has `timeout_ms`"),
    ("AbortSignal", "a row of kind net has `timeout_ms`"),
    ("FormData", "use `URLSearchParams`"),
    ("Blob", "use `Uint8Array`"),
    ("ReadableStream", "bodies are whole; use `bytes()`"),
    ("XMLHttpRequest", "use `fetch`"),
];

/// Most characters of a name in a message.
pub(super) const SHOWN_CHARS: usize = 100;

/// A use of a name that programs do not have.
#[derive(Debug)]
pub(super) struct RefusedUse {
    pub at: u32,
    pub kind: CompileErrorKind,
    pub message: String,
}

/// All uses of unsupported names in a script, and of names that are declared nowhere unless `names` is none. A program that tests
/// whether a name exists (`typeof Temporal`, `globalThis.Temporal`) may use it.
pub(super) fn find(program: &Program<'_>, scoping: &Scoping, names: Option<&GlobalNames>) -> Vec<RefusedUse> {
    let mut uses = Uses::new(scoping, names, false);
    uses.visit_program(program);
    let tests = uses.tests;
    uses.found.into_iter().filter(|found| tests.refuse(found)).map(FoundName::into_use).collect()
}

/// The same in modules, each with a number: what one of them tests, all of them may use.
pub(super) fn find_in_modules<'m, 'a: 'm>(
    modules: impl Iterator<Item = (usize, &'m Program<'a>, &'m Scoping)>,
    names: Option<&GlobalNames>,
) -> Vec<(usize, RefusedUse)> {
    let mut tests = Tests::default();
    let mut found = Vec::new();
    for (number, program, scoping) in modules {
        let mut uses = Uses::new(scoping, names, true);
        uses.visit_program(program);
        found.extend(uses.found.into_iter().map(|found| (number, found)));
        tests.any_global |= uses.tests.any_global;
        tests.names.extend(uses.tests.names);
        tests.escaped.extend(uses.tests.escaped);
    }
    let kept = found.into_iter().filter(|(_, found)| tests.refuse(found));
    kept.map(|(number, found)| (number, found.into_use())).collect()
}

/// How a program may have made names exist.
#[derive(Default)]
struct Tests {
    /// Names of which it tests whether they exist
    names: HashSet<String>,
    /// Built-in objects that are used as values, and prototypes from which they inherit
    escaped: HashSet<String>,
    /// The global object is used as a value: it may get any properties
    any_global: bool,
}

impl Tests {
    fn refuse(&self, found: &FoundName) -> bool {
        // Properties that an object inherits may have been changed through these.
        let inherits =
            || ["Object.prototype", "Function.prototype"].iter().any(|name| self.escaped.contains(*name));
        !self.names.contains(&found.name)
            && (found.is_listed || !self.any_global)
            && found.builtin.as_ref().is_none_or(|name| !inherits() && !self.escaped.contains(name))
    }
}

/// A name that programs do not have.
struct FoundName {
    at: u32,
    /// As it is tested
    name: String,
    /// From [`NAMES`]: refused even if the program might define it
    is_listed: bool,
    /// The built-in object that has no such member: it may get one wherever it is used as a value
    builtin: Option<String>,
    kind: CompileErrorKind,
    message: String,
}

impl FoundName {
    fn into_use(self) -> RefusedUse {
        RefusedUse { at: self.at, kind: self.kind, message: self.message }
    }
}

fn unsupported(name: &str, why: &str) -> String {
    format!("`{name}` is not supported: {why}")
}

/// A suggestion of the known name that differs from `name` in its case alone; empty if there is none.
pub(super) fn similar<'n>(name: &str, known: impl Iterator<Item = &'n String>) -> String {
    let mut known = known.filter(|one| one.eq_ignore_ascii_case(name));
    known.next().map_or_else(String::new, |one| format!("; did you mean `{one}`?"))
}

impl super::Compiler<'_, '_> {
    /// A pattern that the engine cannot match is a compile error.
    pub(super) fn check_regexp(&mut self, literal: &RegExpLiteral<'_>) {
        let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        let flags = Flags::parse(units(&literal.regex.flags.to_string()).as_slice()).unwrap_or_default();
        if let Err(error) = Regex::compile(&units(literal.regex.pattern.text.as_str()), flags) {
            self.refuse(literal.span.start, &error.to_string());
        }
    }
}

struct Uses<'s> {
    scoping: &'s Scoping,
    names: Option<&'s GlobalNames>,
    found: Vec<FoundName>,
    tests: Tests,
    /// Code around that has a `this` of its own: functions, and modules
    in_functions: usize,
}

impl<'s> Uses<'s> {
    fn new(scoping: &'s Scoping, names: Option<&'s GlobalNames>, is_module: bool) -> Self {
        let in_functions = usize::from(is_module);
        Uses { scoping, names, found: Vec::new(), tests: Tests::default(), in_functions }
    }

    fn is_global(&self, id: &IdentifierReference<'_>) -> bool {
        id.reference_id.get().is_none_or(|r| self.scoping.get_reference(r).symbol_id().is_none())
    }

    /// Whether the reference exists at run time: types do not.
    fn is_used(&self, id: &IdentifierReference<'_>) -> bool {
        let reference = id.reference_id.get().map(|r| self.scoping.get_reference(r));
        reference.is_none_or(|reference| reference.is_read() || reference.is_write())
    }

    fn listed(&mut self, at: u32, name: &str, shown: &str, why: &str) {
        let message = unsupported(shown, why);
        let (name, kind) = (name.to_owned(), CompileErrorKind::Unsupported);
        self.found.push(FoundName { at, name, is_listed: true, builtin: None, kind, message });
    }

    /// `Function(…)` and `new Function(…)`
    fn constructs_function(&mut self, callee: &Expression<'_>) {
        if let Expression::Identifier(id) = callee
            && id.name.as_str() == "Function"
            && self.is_global(id)
        {
            self.listed(id.span.start, "Function(…)", "Function(…)", STRINGS);
        }
    }

    /// `CC` and, in programs that have it, `CC.async`
    fn question_function(&self, callee: &Expression<'_>) -> Option<&'static str> {
        let is_cc = |expression: &Expression<'_>| matches!(expression, Expression::Identifier(id) if id.name == "CC" && self.is_global(id));
        match callee {
            Expression::StaticMemberExpression(member)
                if member.property.name == "async"
                    && is_cc(&member.object)
                    && self.builtin(&member.object).is_some_and(|(_, members)| members.contains("async")) =>
            {
                Some("CC.async")
            }
            other => is_cc(other).then_some("CC"),
        }
    }

    /// `console.print(…)`
    fn calls_host_object(&mut self, callee: &Expression<'_>) {
        let (Expression::StaticMemberExpression(member), Some(names)) = (callee, self.names) else { return };
        let Expression::Identifier(object) = &member.object else { return };
        let Some((_, methods)) = names.of_host.iter().find(|(name, _)| *name == object.name.as_str()) else {
            return;
        };
        let method = member.property.name.as_str();
        let inherited = ["toString", "hasOwnProperty", "valueOf", "isPrototypeOf"].contains(&method);
        if methods.contains(method) || inherited || member.optional || !self.is_global(object) {
            return;
        }
        let mut all: Vec<&str> = methods.iter().map(String::as_str).collect();
        all.sort_unstable();
        let name = format!("{}.{method}", object.name);
        let shown: String = name.chars().take(SHOWN_CHARS).collect();
        let message = unsupported(&shown, &format!("`{}` has {}", object.name, all.join(", ")));
        let (at, kind) = (member.property.span.start, CompileErrorKind::Unsupported);
        self.found.push(FoundName { at, name, is_listed: false, builtin: None, kind, message });
    }

    /// The name and the members of a built-in object (`Math`, `Array`), if the expression is its name.
    fn builtin(&self, object: &Expression<'_>) -> Option<(&str, &HashSet<String>)> {
        let Expression::Identifier(id) = object else { return None };
        let (name, members) = self.names?.of_builtins.get_key_value(id.name.as_str())?;
        self.is_global(id).then_some((name, members))
    }

    /// `Math.nosuch(…)`, `new Array.nosuch(…)`
    fn calls_builtin(&mut self, callee: &Expression<'_>) {
        let Expression::StaticMemberExpression(member) = callee else { return };
        let Some((object, members)) = self.builtin(&member.object) else { return };
        let method = member.property.name.as_str();
        if members.contains(method) || member.optional {
            return;
        }
        let name = format!("{object}.{method}");
        let shown: String = name.chars().take(SHOWN_CHARS).collect();
        let meant = members.iter().find(|one| one.eq_ignore_ascii_case(method));
        let meant = meant.map_or_else(String::new, |one| format!("; did you mean `{object}.{one}`?"));
        let message = format!("`{shown}` is not defined{meant}");
        let builtin = Some(object.to_owned());
        let (at, kind) = (member.property.span.start, CompileErrorKind::Undefined);
        self.found.push(FoundName { at, name, is_listed: false, builtin, kind, message });
    }

    fn property_of_global(&mut self, object: &Expression<'_>, name: Option<&str>) -> bool {
        let is_global = match object {
            Expression::Identifier(id) => id.name.as_str() == "globalThis" && self.is_global(id),
            Expression::ThisExpression(_) => self.in_functions == 0,
            _ => false,
        };
        if is_global && let Some(name) = name {
            self.tests.names.insert(name.to_owned());
        }
        is_global && name.is_some()
    }

    /// A property that is only read, to see whether it exists, or assigned: `if (console.print)`, `fs.x = …`.
    fn tests_host_object(&mut self, member: &StaticMemberExpression<'_>) {
        if let Expression::Identifier(object) = &member.object
            && self
                .names
                .is_some_and(|names| names.of_host.iter().any(|(name, _)| *name == object.name.as_str()))
        {
            self.tests.names.insert(format!("{}.{}", object.name, member.property.name));
        }
    }

    /// The same of a built-in object, of which only a member is used; false if it is none.
    fn tests_builtin(&mut self, member: &StaticMemberExpression<'_>) -> bool {
        let Some((object, _)) = self.builtin(&member.object) else { return false };
        let name = format!("{object}.{}", member.property.name);
        if matches!(name.as_str(), "Object.prototype" | "Function.prototype") {
            self.tests.escaped.insert(name);
        } else {
            self.tests.names.insert(name);
        }
        true
    }
}

impl<'a> Visit<'a> for Uses<'_> {
    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        if let (UnaryOperator::Typeof, Expression::Identifier(id)) = (it.operator, &it.argument) {
            self.tests.names.insert(id.name.to_string());
        }
        walk::walk_unary_expression(self, it);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        self.tests_host_object(it);
        if !self.tests_builtin(it) && !self.property_of_global(&it.object, Some(it.property.name.as_str())) {
            walk::walk_static_member_expression(self, it);
        }
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        let name = match &it.expression {
            Expression::StringLiteral(name) => Some(name.value.as_str()),
            _ => None,
        };
        if !self.property_of_global(&it.object, name) {
            walk::walk_computed_member_expression(self, it);
        }
    }

    fn visit_decorator(&mut self, _: &Decorator<'a>) {
        // Refused as such.
    }

    fn visit_this_expression(&mut self, _: &ThisExpression) {
        self.tests.any_global |= self.in_functions == 0;
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.in_functions += 1;
        walk::walk_function(self, it, flags);
        self.in_functions -= 1;
    }

    fn visit_class_body(&mut self, it: &ClassBody<'a>) {
        self.in_functions += 1;
        walk::walk_class_body(self, it);
        self.in_functions -= 1;
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.constructs_function(&it.callee);
        if let Some(function) = self.question_function(&it.callee)
            && let Some(RefusedUse { at, kind, message }) = super::task_options::wrong_option(it, function)
        {
            let name = format!("{function}(…)");
            self.found.push(FoundName { at, name, is_listed: true, builtin: None, kind, message });
        }
        if let Expression::StaticMemberExpression(member) = &it.callee
            && !it.optional
        {
            // A call does not test whether the method exists.
            self.calls_host_object(&it.callee);
            self.calls_builtin(&it.callee);
            let is_builtin = self.builtin(&member.object).is_some();
            if !is_builtin && !self.property_of_global(&member.object, Some(member.property.name.as_str())) {
                self.visit_expression(&member.object);
            }
        } else if self.builtin(&it.callee).is_none() {
            self.visit_expression(&it.callee);
        }
        self.visit_arguments(&it.arguments);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.constructs_function(&it.callee);
        self.calls_builtin(&it.callee);
        let is_member = matches!(&it.callee, Expression::StaticMemberExpression(member)
            if self.builtin(&member.object).is_some());
        if !is_member && self.builtin(&it.callee).is_none() {
            self.visit_expression(&it.callee);
        }
        self.visit_arguments(&it.arguments);
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        self.visit_expression(&it.left);
        if it.operator != BinaryOperator::Instanceof || self.builtin(&it.right).is_none() {
            self.visit_expression(&it.right);
        }
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if !self.is_global(it) || !self.is_used(it) {
            return;
        }
        let (at, name) = (it.span().start, it.name.as_str());
        if let Some(&(_, why)) = NAMES.iter().find(|(listed, _)| *listed == name) {
            let has_sleep = self.names.is_some_and(|names| names.globals.contains("sleep"));
            let why = if why == TIMERS && has_sleep { SLEEP } else { why };
            self.listed(at, name, name, why);
        } else if name == "globalThis" {
            self.tests.any_global = true;
        } else if let Some(names) = self.names
            && !names.globals.contains(name)
            && name != "arguments"
        {
            let shown: String = name.chars().take(SHOWN_CHARS).collect();
            let message = format!("`{shown}` is not defined{}", similar(name, names.globals.iter()));
            self.found.push(FoundName {
                at,
                name: name.to_owned(),
                is_listed: false,
                builtin: None,
                kind: CompileErrorKind::Undefined,
                message,
            });
        }
        if self.names.is_some_and(|names| names.of_builtins.contains_key(name)) {
            self.tests.escaped.insert(name.to_owned());
        }
    }
}

/// The parser's message, reworded to name what a program can do instead.
pub(super) fn reworded(message: &str) -> &str {
    match message {
        "Unexpected import.meta expression" => {
            "`import.meta` is not allowed: a program's files have no addresses"
        }
        "'with' statements are not allowed" => "`with` is not allowed: programs are strict",
        "`await` is only allowed within async functions and at the top levels of modules" => {
            "`await` is only allowed within async functions and at the top level"
        }
        "`for await` loops are only allowed within async functions and at the top levels of modules" => {
            "`for await` is only allowed within async functions and at the top level"
        }
        "'using' declarations are not allowed at the top level of a script" => {
            "`using` is not allowed at the top level: put it into a block or a function"
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use crate::{CompileOptions, compile};

    fn refused(source: &str) -> Option<String> {
        let errors = compile(source, &CompileOptions::default()).err()?;
        errors.0.first().map(|error| error.message.clone())
    }

    #[test]
    fn missing_globals_are_refused_at_load_by_name() {
        for (name, _) in super::NAMES {
            let message = refused(&format!("function later() {{ return {name}; }}")).unwrap_or_default();
            assert!(message.starts_with(&format!("`{name}` is not supported: ")), "{name}: {message}");
        }
        for source in ["new Function('return 1')", "Function()"] {
            assert!(
                refused(source).is_some_and(|message| message.starts_with("`Function(…)` is not supported"))
            );
        }
    }

    #[test]
    fn declared_names_and_tested_names_are_allowed() {
        for source in [
            "function setTimeout() {} setTimeout();",
            "const make = (Temporal) => Temporal.x;",
            "if (typeof Temporal !== 'undefined') Temporal.Now.instant();",
            "globalThis.process = {}; process.x = 1;",
            "({ Temporal: 1 }).Temporal;",
            "[] instanceof Function; Function.prototype.call;",
        ] {
            assert_eq!(refused(source), None, "{source}");
        }
    }
}
