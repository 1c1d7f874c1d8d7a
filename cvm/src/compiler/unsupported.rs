//! Globals and syntax that cvm does not support: reported at compile time, so that no program fails half way.
//!
//! Owns: the list of names with the reason for each, and our wording of the parser's messages. Must not: emit code.

use crate::pure::regexp::{Flags, Regex};
use oxc_ast::ast::{
    CallExpression, Expression, IdentifierReference, NewExpression, Program, RegExpLiteral,
    StaticMemberExpression, UnaryExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Scoping;
use oxc_span::GetSpan;
use oxc_syntax::operator::UnaryOperator;
use std::collections::HashSet;

const STRINGS: &str = "a program's code is known when it is loaded";
const BYTES: &str = "programs have no typed arrays; keep numbers in arrays and text in strings";
const TIMERS: &str = "programs have no timers; give `CC` the option `timeout_ms`";

/// Global names of other JavaScript environments, with the reason why cvm does not have them.
const NAMES: &[(&str, &str)] = &[
    ("eval", STRINGS),
    ("ArrayBuffer", BYTES),
    ("SharedArrayBuffer", BYTES),
    ("DataView", BYTES),
    ("Atomics", BYTES),
    ("Int8Array", BYTES),
    ("Uint8Array", BYTES),
    ("Uint8ClampedArray", BYTES),
    ("Int16Array", BYTES),
    ("Uint16Array", BYTES),
    ("Int32Array", BYTES),
    ("Uint32Array", BYTES),
    ("BigInt64Array", BYTES),
    ("BigUint64Array", BYTES),
    ("Float16Array", BYTES),
    ("Float32Array", BYTES),
    ("Float64Array", BYTES),
    ("Buffer", BYTES),
    ("Intl", "programs have no locales"),
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
    ("structuredClone", "use `JSON.parse(JSON.stringify(…))`"),
    ("require", "a program is one file"),
    ("process", "use `args` and `env`"),
    ("fetch", "programs have no network; create a task with `CC`"),
];

/// Source offset and message.
pub(super) type UnsupportedUse = (u32, String);

/// All uses of unsupported names. A program that tests whether a name exists (`typeof Intl`, `globalThis.Intl`) may use it.
pub(super) fn find(program: &Program<'_>, scoping: &Scoping) -> Vec<UnsupportedUse> {
    let mut uses = Uses { scoping, found: Vec::new(), tested: HashSet::new() };
    uses.visit_program(program);
    let Uses { found, tested, .. } = uses;
    let kept = found.into_iter().filter(|(_, name, _)| !tested.contains(*name));
    kept.map(|(at, name, why)| (at, format!("`{name}` is not supported: {why}"))).collect()
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
    found: Vec<(u32, &'static str, &'static str)>,
    tested: HashSet<String>,
}

impl Uses<'_> {
    fn is_global(&self, id: &IdentifierReference<'_>) -> bool {
        id.reference_id.get().is_none_or(|r| self.scoping.get_reference(r).symbol_id().is_none())
    }

    /// `Function(…)` and `new Function(…)`
    fn constructs_function(&mut self, callee: &Expression<'_>) {
        if let Expression::Identifier(id) = callee
            && id.name.as_str() == "Function"
            && self.is_global(id)
        {
            self.found.push((id.span.start, "Function(…)", STRINGS));
        }
    }
}

impl<'a> Visit<'a> for Uses<'_> {
    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        if let (UnaryOperator::Typeof, Expression::Identifier(id)) = (it.operator, &it.argument) {
            self.tested.insert(id.name.to_string());
        }
        walk::walk_unary_expression(self, it);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        if let Expression::Identifier(id) = &it.object
            && id.name.as_str() == "globalThis"
        {
            self.tested.insert(it.property.name.to_string());
        }
        walk::walk_static_member_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.constructs_function(&it.callee);
        walk::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.constructs_function(&it.callee);
        walk::walk_new_expression(self, it);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if let Some(&(name, why)) = NAMES.iter().find(|(name, _)| *name == it.name.as_str())
            && self.is_global(it)
        {
            self.found.push((it.span().start, name, why));
        }
    }
}

/// The parser's message, reworded to name what a program can do instead.
pub(super) fn reworded(message: &str) -> &str {
    match message {
        "Cannot use import statement outside a module" => {
            "`import` is not allowed here: a program is one file"
        }
        "Cannot use export statement outside a module" => {
            "`export` is not allowed here: a program is one file"
        }
        "Unexpected import.meta expression" => "`import.meta` is not allowed here: a program is one file",
        "'with' statements are not allowed" => "`with` is not allowed: programs are strict",
        "`await` is only allowed within async functions and at the top levels of modules" => {
            "`await` is only allowed within async functions: put it into `async function main() { … }`"
        }
        "`for await` loops are only allowed within async functions and at the top levels of modules" => {
            "`for await` is only allowed within async functions: put it into `async function main() { … }`"
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
            "const make = (Intl) => Intl.x;",
            "if (typeof Intl !== 'undefined') Intl.NumberFormat();",
            "globalThis.process = {}; process.x = 1;",
            "({ Temporal: 1 }).Temporal;",
            "x instanceof Function; Function.prototype.call;",
        ] {
            assert_eq!(refused(source), None, "{source}");
        }
    }
}
