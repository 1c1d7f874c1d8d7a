//! Owns messages: `util.format` with its `%` directives.

use crate::values::{EngineValues, ValueType};
use crate::{inspect, inspect_to_depth};

/// `util.format`; strings are cut to `most` bytes, objects to the limit of a value's text.
pub fn format_message<E: EngineValues>(engine: &E, arguments: &[E::Value], most: usize) -> String {
    let mut text = String::new();
    let mut rest = arguments;
    if let Some(template) = arguments.first().filter(|first| engine.is_string(first)) {
        let template = engine.text(template, most);
        rest = &arguments[1..];
        if rest.is_empty() {
            return template;
        }
        let used = substitute(engine, &template, rest, &mut text, most);
        rest = &rest[used..];
        if !rest.is_empty() {
            text.push(' ');
        }
    }
    for (index, argument) in rest.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        if text.len() > most {
            break;
        }
        text.push_str(&if engine.is_string(argument) {
            engine.text(argument, most)
        } else {
            inspect(engine, argument)
        });
    }
    text
}

/// Replaces the `%` directives; returns how many arguments they used.
fn substitute<E: EngineValues>(
    engine: &E,
    template: &str,
    arguments: &[E::Value],
    text: &mut String,
    most: usize,
) -> usize {
    let mut used = 0;
    let mut characters = template.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        match characters.peek() {
            Some('%') => {
                characters.next();
                text.push('%');
            }
            Some(directive) if used < arguments.len() && text.len() <= most => {
                match directive_text(engine, *directive, &arguments[used], most) {
                    Some(replacement) => {
                        characters.next();
                        used += 1;
                        text.push_str(&replacement);
                    }
                    None => text.push('%'),
                }
            }
            _ => text.push('%'),
        }
    }
    used
}

fn directive_text<E: EngineValues>(
    engine: &E,
    directive: char,
    argument: &E::Value,
    most: usize,
) -> Option<String> {
    Some(match directive {
        's' => match engine.value_type(argument) {
            ValueType::String => engine.text(argument, most),
            ValueType::Object => inspect_to_depth(engine, argument, 0),
            _ => inspect(engine, argument),
        },
        'd' | 'i' | 'f' => {
            if engine.value_type(argument) == ValueType::Bigint && directive != 'f' {
                return Some(format!("{}n", engine.primitive(argument)));
            }
            let number = number(engine, argument, directive);
            let number = if directive == 'i' { number.trunc() } else { number };
            inspect(engine, &engine.value_of_number(number))
        }
        'j' => engine.json(argument).unwrap_or_else(|| inspect(engine, argument)),
        'o' => inspect_to_depth(engine, argument, 4),
        'O' => inspect(engine, argument),
        'c' => String::new(),
        _ => return None,
    })
}

fn number<E: EngineValues>(engine: &E, argument: &E::Value, directive: char) -> f64 {
    if let Some(number) = engine.number(argument) {
        return number;
    }
    let kind = engine.value_type(argument);
    if matches!(kind, ValueType::Object | ValueType::Symbol) {
        return f64::NAN;
    }
    if directive == 'd' {
        return engine.to_number(argument);
    }
    let text = match kind {
        ValueType::String => engine.string(argument),
        ValueType::Bigint => engine.primitive(argument),
        _ => return f64::NAN,
    };
    let text = text.trim();
    let mut end = 0;
    for (at, character) in text.char_indices() {
        let sign = at == 0 && matches!(character, '-' | '+');
        if !(sign || character.is_ascii_digit() || (directive == 'f' && matches!(character, '.' | 'e'))) {
            break;
        }
        end = at + character.len_utf8();
    }
    text[..end].parse().unwrap_or(f64::NAN)
}
