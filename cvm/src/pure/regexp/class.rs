//! The value of a character class: a set of characters and, with the flag `v`, strings. ECMA-262 22.2.2.9.

use super::RegExpError;
use super::fold;
use super::property;
use super::set::CodeSet;
use oxc_regular_expression::ast::{
    CharacterClass, CharacterClassContents, CharacterClassContentsKind, CharacterClassEscapeKind,
    ClassStringDisjunction, UnicodePropertyEscape,
};
use std::collections::BTreeSet;

/// The flags and modifiers in force for the class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    pub ignore_case: bool,
    /// `u` or `v`
    pub unicode: bool,
    /// `v`
    pub unicode_sets: bool,
}

/// `CharSet` of the specification: single characters apart from longer (or empty) strings.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassValue {
    pub set: CodeSet,
    pub strings: BTreeSet<Vec<u32>>,
}

/// Most work for evaluating classes, in ranges visited.
const MAX_WORK: usize = 20_000_000;

/// Evaluates classes and counts the work.
#[derive(Debug, Default)]
pub(super) struct ClassEvaluator {
    work: usize,
}

impl ClassEvaluator {
    /// The set that a matcher tests for `value` outside and inside of classes: closed under case if that is ignored.
    pub(super) fn finish(&mut self, set: CodeSet, mode: Mode) -> Result<CodeSet, RegExpError> {
        self.spend(set.ranges().len() + if mode.ignore_case { 1500 } else { 1 })?;
        Ok(if mode.ignore_case { fold::closure(&set, mode.unicode) } else { set })
    }

    fn spend(&mut self, work: usize) -> Result<(), RegExpError> {
        self.work += work;
        if self.work > MAX_WORK { Err(RegExpError::TooLarge) } else { Ok(()) }
    }

    /// `MaybeSimpleCaseFolding`: with `v` and `i` sets are kept closed under folding, so that set algebra on them has the same
    /// result as the specification's algebra on folded members.
    fn leaf(&mut self, set: CodeSet, mode: Mode) -> Result<CodeSet, RegExpError> {
        if mode.unicode_sets { self.finish(set, mode) } else { Ok(set) }
    }

    /// A whole class in brackets.
    pub(super) fn class(
        &mut self,
        class: &CharacterClass<'_>,
        mode: Mode,
    ) -> Result<ClassValue, RegExpError> {
        let mut value: Option<ClassValue> = None;
        for item in &class.body {
            let item = self.item(item, mode)?;
            self.spend(item.set.ranges().len() + item.strings.len() + 1)?;
            value = Some(match value {
                None => item,
                Some(so_far) => match class.kind {
                    CharacterClassContentsKind::Union => ClassValue {
                        set: self.union(&so_far.set, &item.set)?,
                        strings: so_far.strings.into_iter().chain(item.strings).collect(),
                    },
                    CharacterClassContentsKind::Intersection => ClassValue {
                        set: so_far.set.intersection(&item.set),
                        strings: so_far
                            .strings
                            .into_iter()
                            .filter(|text| item.strings.contains(text))
                            .collect(),
                    },
                    CharacterClassContentsKind::Subtraction => ClassValue {
                        set: so_far.set.difference(&item.set),
                        strings: so_far
                            .strings
                            .into_iter()
                            .filter(|text| !item.strings.contains(text))
                            .collect(),
                    },
                },
            });
        }
        let mut value = value.unwrap_or_default();
        if !mode.unicode_sets {
            value.set = self.finish(value.set, mode)?;
        }
        if class.negative {
            value.set = value.set.complement();
        }
        Ok(value)
    }

    fn union(&mut self, left: &CodeSet, right: &CodeSet) -> Result<CodeSet, RegExpError> {
        self.spend(left.ranges().len() + right.ranges().len())?;
        Ok(left.union(right))
    }

    fn item(&mut self, item: &CharacterClassContents<'_>, mode: Mode) -> Result<ClassValue, RegExpError> {
        let set = match item {
            CharacterClassContents::Character(one) => CodeSet::one(one.value),
            CharacterClassContents::CharacterClassRange(range) => {
                CodeSet::new(vec![(range.min.value, range.max.value)])
            }
            CharacterClassContents::CharacterClassEscape(escape) => self.escape(escape.kind, mode)?,
            CharacterClassContents::UnicodePropertyEscape(escape) => return self.property(escape, mode),
            CharacterClassContents::NestedCharacterClass(class) => return self.class(class, mode),
            CharacterClassContents::ClassStringDisjunction(strings) => {
                return self.string_list(strings, mode);
            }
        };
        Ok(ClassValue { set: self.leaf(set, mode)?, strings: BTreeSet::new() })
    }

    fn string_list(
        &mut self,
        list: &ClassStringDisjunction<'_>,
        mode: Mode,
    ) -> Result<ClassValue, RegExpError> {
        let texts = list.body.iter().map(|text| text.body.iter().map(|one| one.value).collect()).collect();
        self.of_strings(texts, mode)
    }

    /// Splits strings into single characters and the rest.
    fn of_strings(&mut self, texts: Vec<Vec<u32>>, mode: Mode) -> Result<ClassValue, RegExpError> {
        self.spend(texts.len())?;
        let mut singles = Vec::new();
        let mut strings = BTreeSet::new();
        for mut text in texts {
            if let [one] = text[..] {
                singles.push((one, one));
                continue;
            }
            if mode.ignore_case {
                for one in &mut text {
                    *one = fold::canonicalize(*one, true);
                }
            }
            strings.insert(text);
        }
        Ok(ClassValue { set: self.leaf(CodeSet::new(singles), mode)?, strings })
    }

    /// `\p{…}` and `\P{…}`.
    pub(super) fn property(
        &mut self,
        escape: &UnicodePropertyEscape<'_>,
        mode: Mode,
    ) -> Result<ClassValue, RegExpError> {
        let unsupported = || {
            let value = escape.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
            RegExpError::UnsupportedProperty(format!("{}{value}", escape.name))
        };
        if escape.strings {
            let texts = property::strings(escape.name.as_str()).ok_or_else(unsupported)?;
            return self.of_strings(texts, mode);
        }
        let value = escape.value.as_ref().map(std::convert::AsRef::as_ref);
        let set = property::property(escape.name.as_str(), value).ok_or_else(unsupported)?;
        let set = self.leaf(CodeSet::clone(&set), mode)?;
        Ok(ClassValue { set: if escape.negative { set.complement() } else { set }, strings: BTreeSet::new() })
    }

    /// `\d`, `\s`, `\w` and their complements.
    pub(super) fn escape(
        &mut self,
        kind: CharacterClassEscapeKind,
        mode: Mode,
    ) -> Result<CodeSet, RegExpError> {
        use CharacterClassEscapeKind as Kind;
        let set = match kind {
            Kind::D | Kind::NegativeD => CodeSet::new(vec![(0x30, 0x39)]),
            Kind::S | Kind::NegativeS => white_space(),
            Kind::W | Kind::NegativeW => self.words(mode)?,
        };
        let set = self.leaf(set, mode)?;
        let negative = matches!(kind, Kind::NegativeD | Kind::NegativeS | Kind::NegativeW);
        Ok(if negative { set.complement() } else { set })
    }

    /// `WordCharacters`, ECMA-262 22.2.2.9.3: in Unicode mode without case also the characters that fold to one of them.
    pub(super) fn words(&mut self, mode: Mode) -> Result<CodeSet, RegExpError> {
        let basic = CodeSet::new(vec![(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]);
        if mode.unicode { self.finish(basic, mode) } else { Ok(basic) }
    }
}

/// `WhiteSpace` and `LineTerminator`.
fn white_space() -> CodeSet {
    let units = (0..=u16::MAX).filter(|unit| super::super::units::is_white_space(*unit));
    CodeSet::new(units.map(|unit| (u32::from(unit), u32::from(unit))).collect())
}
