//! Options of `CC` and `CC.async` that are wrong whenever the call is reached: constants in an object literal.
//!
//! Owns: the names and the types of the options as far as literals show them. Must not: know what the options do.

use super::CompileErrorKind;
use super::unsupported::RefusedUse;
use oxc_ast::ast::{
    Argument, CallExpression, Expression, ObjectExpression, ObjectPropertyKind, PropertyKind,
};
use oxc_span::GetSpan;
use oxc_syntax::operator::UnaryOperator;

/// How deep schemas are looked at.
const MAX_SCHEMA_DEPTH: u32 = 16;
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
const TYPE: &str = "a type is string, number, integer, boolean, object, array or null";
const ACCESSOR: &str = "an option is a plain property, no accessor";
const OPTIONS: &str = "the options of `CC` are schema, timeout_ms, default and retries";

/// The first wrong argument or option of a call of `function`: `CC` or `CC.async`.
pub(super) fn wrong_option(call: &CallExpression<'_>, function: &str) -> Option<RefusedUse> {
    if call.arguments.iter().any(|argument| matches!(argument, Argument::SpreadElement(_))) {
        return None;
    }
    let mut arguments = call.arguments.iter().filter_map(Argument::as_expression);
    let wrong = |at, what: &str, why: &str| {
        let message = format!("`{function}({what})` is not supported: {why}");
        Some(RefusedUse { at, kind: CompileErrorKind::Unsupported, message })
    };
    let Some(prompt) = arguments.next() else {
        return wrong(call.span.start, "", "it needs a prompt");
    };
    if kind_of(prompt).is_some_and(|kind| !matches!(kind, Kind::Text | Kind::Number | Kind::Boolean)) {
        return wrong(prompt.span().start, "…", "the prompt is a string");
    }
    let options = arguments.next()?;
    let Expression::ObjectExpression(options) = options else {
        let is_wrong = kind_of(options).is_some_and(|kind| kind != Kind::Undefined);
        return is_wrong.then(|| wrong(options.span().start, "…, …", "its options are an object")).flatten();
    };
    let mut properties = Vec::new();
    for property in &options.properties {
        // An object that is spread behind an option may replace it.
        let ObjectPropertyKind::ObjectProperty(property) = property else { return None };
        properties.push(property);
    }
    properties.into_iter().find_map(|property| {
        let name = property.key.static_name().filter(|name| name != "__proto__")?;
        let is_accessor = property.kind != PropertyKind::Init;
        let why = if is_accessor { Some(ACCESSOR) } else { why_wrong(&name, &property.value) }?;
        let shown: String = name.chars().take(super::unsupported::SHOWN_CHARS).collect();
        wrong(property.span().start, &format!("…, {{ {shown} }}"), why)
    })
}

/// The type of a value that an expression shows.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Undefined,
    Null,
    Boolean,
    Number,
    /// NaN or an infinity.
    NotFinite,
    BigInt,
    Text,
    Function,
    Object,
    List,
}

/// The type of the value of a literal; none of an expression that has to be evaluated.
fn kind_of(expression: &Expression<'_>) -> Option<Kind> {
    Some(match expression {
        Expression::Identifier(id) if id.name == "undefined" => Kind::Undefined,
        Expression::Identifier(id) if id.name == "NaN" || id.name == "Infinity" => Kind::NotFinite,
        Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::UnaryNegation => {
            kind_of(&unary.argument)
                .filter(|kind| matches!(kind, Kind::Number | Kind::NotFinite | Kind::BigInt))?
        }
        Expression::NumericLiteral(number) if !number.value.is_finite() => Kind::NotFinite,
        Expression::NumericLiteral(_) => Kind::Number,
        Expression::NullLiteral(_) => Kind::Null,
        Expression::BooleanLiteral(_) => Kind::Boolean,
        Expression::BigIntLiteral(_) => Kind::BigInt,
        Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => Kind::Text,
        Expression::FunctionExpression(_)
        | Expression::ArrowFunctionExpression(_)
        | Expression::ClassExpression(_) => Kind::Function,
        Expression::ObjectExpression(_) | Expression::RegExpLiteral(_) => Kind::Object,
        Expression::ArrayExpression(_) => Kind::List,
        _ => return None,
    })
}

fn why_wrong(name: &str, value: &Expression<'_>) -> Option<&'static str> {
    let kind = kind_of(value);
    match name {
        // As if it were absent
        "schema" | "timeout_ms" | "retries" | "default" if matches!(kind, Some(Kind::Undefined)) => None,
        "default" => match kind {
            Some(Kind::NotFinite | Kind::Function) => Some("it is a value that JSON can hold"),
            _ => None,
        },
        "schema" | "timeout_ms" | "retries" if kind == Some(Kind::Null) => None,
        "schema" => match value {
            Expression::ObjectExpression(schema) => wrong_schema(schema, 0),
            _ => kind.filter(|kind| *kind != Kind::Boolean).map(|_| "a schema is an object"),
        },
        "timeout_ms" => (!may_be_count(value)).then_some("it is a whole number of milliseconds"),
        "retries" => (!may_be_count(value)).then_some("it is a whole number"),
        _ if kind == Some(Kind::Undefined) => None,
        _ => Some(OPTIONS),
    }
}

/// A type in a schema that no value has.
fn wrong_schema(schema: &ObjectExpression<'_>, depth: u32) -> Option<&'static str> {
    if depth == MAX_SCHEMA_DEPTH {
        return None;
    }
    schema.properties.iter().find_map(|property| {
        let ObjectPropertyKind::ObjectProperty(property) = property else { return None };
        match (property.key.static_name()?.as_ref(), &property.value) {
            ("type", value) => wrong_type(value),
            ("items" | "not" | "additionalProperties", Expression::ObjectExpression(inner)) => {
                wrong_schema(inner, depth + 1)
            }
            ("properties", Expression::ObjectExpression(inner)) => {
                inner.properties.iter().find_map(|property| match property {
                    ObjectPropertyKind::ObjectProperty(property) => match &property.value {
                        Expression::ObjectExpression(inner) => wrong_schema(inner, depth + 1),
                        _ => None,
                    },
                    ObjectPropertyKind::SpreadProperty(_) => None,
                })
            }
            _ => None,
        }
    })
}

fn wrong_type(value: &Expression<'_>) -> Option<&'static str> {
    match value {
        Expression::StringLiteral(name) => (!TYPES.contains(&name.value.as_str())).then_some(TYPE),
        Expression::ArrayExpression(list) => {
            list.elements.iter().find_map(|element| element.as_expression().and_then(wrong_type))
        }
        _ => kind_of(value).map(|_| TYPE),
    }
}

/// False: a literal that is no whole number.
fn may_be_count(value: &Expression<'_>) -> bool {
    match (value, kind_of(value)) {
        (Expression::NumericLiteral(number), Some(Kind::Number)) => number.value.fract() == 0.0,
        (Expression::UnaryExpression(unary), Some(Kind::Number)) => {
            matches!(&unary.argument, Expression::NumericLiteral(number) if number.value == 0.0)
        }
        (_, kind) => kind.is_none(),
    }
}
