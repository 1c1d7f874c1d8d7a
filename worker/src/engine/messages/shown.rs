//! Owns expressions as V8 writes them into messages (its `CallPrinter`). What is not certain is `None`.

use oxc_ast::ast::{ChainElement, ComputedMemberExpression, Expression};

/// Longest text of an expression in a message (bytes).
const TEXT_BYTES: usize = 200;

/// The text of an expression in a message.
pub(super) fn shown(expression: &Expression<'_>) -> Option<String> {
    text(expression).filter(|text| text.len() <= TEXT_BYTES && !text.contains('\n'))
}

fn text(expression: &Expression<'_>) -> Option<String> {
    Some(match expression {
        Expression::Identifier(identifier) => identifier.name.to_string(),
        Expression::ThisExpression(_) => "this".to_owned(),
        Expression::NullLiteral(_) => "null".to_owned(),
        Expression::BooleanLiteral(literal) => literal.value.to_string(),
        Expression::StringLiteral(literal) => format!("\"{}\"", literal.value),
        Expression::NumericLiteral(literal) => index(literal.value)?,
        Expression::TemplateLiteral(template) if template.expressions.is_empty() => {
            format!("\"{}\"", template.quasis.first()?.value.cooked.as_ref()?)
        }
        Expression::ArrayExpression(array) if array.elements.is_empty() => "[]".to_owned(),
        Expression::ParenthesizedExpression(inner) => match &inner.expression {
            // A chain in parentheses ends there: its `?.` does not skip what follows.
            Expression::ChainExpression(_) => return None,
            inner => text(inner)?,
        },
        Expression::FunctionExpression(_)
        | Expression::ArrowFunctionExpression(_)
        | Expression::ClassExpression(_)
        | Expression::NewExpression(_)
        | Expression::AwaitExpression(_)
        | Expression::Super(_) => "(intermediate value)".to_owned(),
        Expression::StaticMemberExpression(member) => {
            let dot = if member.optional { "?." } else { "." };
            format!("{}{dot}{}", text(&member.object)?, member.property.name)
        }
        Expression::ComputedMemberExpression(member) => computed(member)?,
        Expression::CallExpression(call) => format!("{}(...)", text(&call.callee)?),
        Expression::TaggedTemplateExpression(call) => format!("{}(...)", text(&call.tag)?),
        Expression::ChainExpression(chain) => match &chain.expression {
            ChainElement::StaticMemberExpression(member) => {
                let dot = if member.optional { "?." } else { "." };
                format!("{}{dot}{}", text(&member.object)?, member.property.name)
            }
            ChainElement::ComputedMemberExpression(member) => computed(member)?,
            ChainElement::CallExpression(call) => format!("{}(...)", text(&call.callee)?),
            _ => return None,
        },
        _ => return None,
    })
}

fn computed(member: &ComputedMemberExpression<'_>) -> Option<String> {
    let object = text(&member.object)?;
    let name = match &member.expression {
        Expression::StringLiteral(literal) => Some(literal.value.to_string()),
        Expression::TemplateLiteral(template) if template.expressions.is_empty() => {
            Some(template.quasis.first()?.value.cooked.as_ref()?.to_string())
        }
        _ => None,
    };
    Some(match (name, member.optional) {
        // A text that is an index is written as one.
        (Some(name), _) if name.parse::<f64>().is_ok() => return None,
        (Some(name), true) => format!("{object}?.{name}"),
        (Some(name), false) => format!("{object}.{name}"),
        (None, true) => format!("{object}?.[{}]", text(&member.expression)?),
        (None, false) => format!("{object}[{}]", text(&member.expression)?),
    })
}

/// A number whose text is the same in every notation.
fn index(number: f64) -> Option<String> {
    (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then(|| number.to_string())
}
