//! Options of `CC` that are wrong whenever the call is reached: constants in an object literal.
//!
//! Owns: the names and the types of the options as far as literals show them. Must not: know what the options do.

use super::unsupported::UnsupportedUse;
use oxc_ast::ast::{Argument, CallExpression, Expression, ObjectPropertyKind};
use oxc_span::GetSpan;

const OPTIONS: &str = "the options of `CC` are schema, timeout_ms, default and retries";

/// The first wrong option of a call of `CC`.
pub(super) fn wrong_option(call: &CallExpression<'_>) -> Option<UnsupportedUse> {
    let [prompt, options, ..] = call.arguments.as_slice() else { return None };
    if matches!(prompt, Argument::SpreadElement(_)) {
        return None;
    }
    let Some(Expression::ObjectExpression(options)) = options.as_expression() else { return None };
    let mut properties = Vec::new();
    for property in &options.properties {
        // What is spread behind an option may replace it.
        let ObjectPropertyKind::ObjectProperty(property) = property else { return None };
        properties.push(property);
    }
    properties.into_iter().find_map(|property| {
        let name = property.key.static_name().filter(|name| name != "__proto__")?;
        let why = why_wrong(&name, &property.value)?;
        let shown: String = name.chars().take(super::unsupported::SHOWN_CHARS).collect();
        Some((property.span().start, format!("`CC(…, {{ {shown} }})` is not supported: {why}")))
    })
}

fn why_wrong(name: &str, value: &Expression<'_>) -> Option<&'static str> {
    match name {
        // As if it were absent
        _ if matches!(value, Expression::Identifier(id) if id.name == "undefined") => None,
        "default" => None,
        "schema" | "timeout_ms" | "retries" if matches!(value, Expression::NullLiteral(_)) => None,
        "schema" => match value {
            Expression::StringLiteral(_) | Expression::NumericLiteral(_) | Expression::ArrayExpression(_) => {
                Some("a schema is an object")
            }
            _ => None,
        },
        "timeout_ms" => (!may_be_count(value)).then_some("it is a whole number of milliseconds"),
        "retries" => (!may_be_count(value)).then_some("it is a whole number"),
        _ => Some(OPTIONS),
    }
}

/// False: a literal that is no whole number.
fn may_be_count(value: &Expression<'_>) -> bool {
    match value {
        Expression::NumericLiteral(number) => number.value >= 0.0 && number.value.fract() == 0.0,
        Expression::UnaryExpression(unary) => !matches!(&unary.argument, Expression::NumericLiteral(number)
            if unary.operator == oxc_syntax::operator::UnaryOperator::UnaryNegation && number.value > 0.0),
        Expression::StringLiteral(_)
        | Expression::TemplateLiteral(_)
        | Expression::BooleanLiteral(_)
        | Expression::BigIntLiteral(_)
        | Expression::ArrayExpression(_)
        | Expression::ObjectExpression(_) => false,
        _ => true,
    }
}
