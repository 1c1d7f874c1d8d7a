//! `GetSubstitution`, ECMA-262 22.1.3.19.1: the meaning of `$1`, `$&`, `$<name>` in a replacement text.
//!
//! Named groups may be objects with getters, so this does not expand them: it splits the template into parts, and the
//! caller joins them, reading named groups in order.

use super::units::Units;
use std::ops::Range;

/// One piece of a replacement template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ReplacementPart {
    /// Units of the template itself.
    Literal(Range<usize>),
    /// `$&`: the matched text.
    Matched,
    /// `` $` ``: the text before the match.
    Before,
    /// `$'`: the text after the match.
    After,
    /// `$n` or `$nn`: capture with this number, 1-based, at most the number of captures.
    Capture(usize),
    /// `$<name>`: the units of the name in the template. Only if there is a groups object.
    Named(Range<usize>),
}

/// Splits `template`; `captures` is the number of captures (without the whole match), and `named` is true if the match has
/// a groups object. At most one part for each unit of the template.
pub(crate) fn split<U: Units + ?Sized>(template: &U, captures: usize, named: bool) -> Vec<ReplacementPart> {
    let count = template.count();
    let at = |index: usize| if index < count { template.unit(index) } else { 0 };
    let digit = |index: usize| match at(index) {
        unit @ 0x30..=0x39 => Some(usize::from(unit - 0x30)),
        _ => None,
    };
    let mut parts = Vec::new();
    let mut literal = 0;
    let mut index = 0;
    while index < count {
        if at(index) != u16::from(b'$') {
            index += 1;
            continue;
        }
        let found = match at(index + 1) {
            0x24 => {
                // "$$" is one dollar sign: end the literal after the first, skip the second.
                parts.push(ReplacementPart::Literal(literal..index + 1));
                index += 2;
                literal = index;
                continue;
            }
            0x26 => Some((ReplacementPart::Matched, 2)),
            0x60 => Some((ReplacementPart::Before, 2)),
            0x27 => Some((ReplacementPart::After, 2)),
            0x30..=0x39 => {
                let one = digit(index + 1).unwrap_or(0);
                let two = digit(index + 2).map(|second| one * 10 + second);
                match two {
                    Some(two) if (1..=captures).contains(&two) => Some((ReplacementPart::Capture(two), 3)),
                    _ if (1..=captures).contains(&one) => Some((ReplacementPart::Capture(one), 2)),
                    _ => None,
                }
            }
            0x3C if named => (index + 2..count)
                .find(|&end| at(end) == u16::from(b'>'))
                .map(|end| (ReplacementPart::Named(index + 2..end), end + 1 - index)),
            _ => None,
        };
        if let Some((part, length)) = found {
            if literal < index {
                parts.push(ReplacementPart::Literal(literal..index));
            }
            parts.push(part);
            index += length;
            literal = index;
        } else {
            index += 1;
        }
    }
    if literal < count {
        parts.push(ReplacementPart::Literal(literal..count));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(template: &str, captures: usize, named: bool) -> String {
        let parts = split(template.as_bytes(), captures, named);
        let show = |part: &ReplacementPart| match part {
            ReplacementPart::Literal(range) => template[range.clone()].to_owned(),
            ReplacementPart::Matched => "{&}".to_owned(),
            ReplacementPart::Before => "{`}".to_owned(),
            ReplacementPart::After => "{'}".to_owned(),
            ReplacementPart::Capture(number) => format!("{{{number}}}"),
            ReplacementPart::Named(range) => format!("{{<{}>}}", &template[range.clone()]),
        };
        parts.iter().map(show).collect()
    }

    #[test]
    fn templates_split_as_specified() {
        for (template, captures, named, expected) in [
            ("", 0, false, ""),
            ("a$$b", 0, false, "a$b"),
            ("$$$$", 0, false, "$$"),
            ("[$&$`$']", 0, false, "[{&}{`}{']"),
            ("$1$2", 1, false, "{1}$2"),
            ("$10", 1, false, "{1}0"),
            ("$10", 10, false, "{10}"),
            ("$01$00$0", 3, false, "{1}$00$0"),
            ("$<n>", 0, false, "$<n>"),
            ("$<n>$<", 0, true, "{<n>}$<"),
            ("$<>", 0, true, "{<>}"),
            ("$", 1, true, "$"),
            ("x$y", 1, true, "x$y"),
        ] {
            let expected = expected.replace("{']", "{'}]");
            assert_eq!(shown(template, captures, named), expected, "{template}");
        }
    }
}
