//! Regular expressions: patterns are compiled to instructions that a bounded backtracking matcher runs.
//!
//! Owns: ECMA-262 22.2.1 and 22.2.2, flags, `source` text, `RegExp.escape`. The grammar and its early errors are those of
//! `oxc_regular_expression` (the parser that also reads literals), properties and case folding those of ICU4X. The matcher is
//! our own because it must stop after a number of steps that is the same everywhere, which `regress` cannot promise; the
//! tests compare it with `QuickJS`. Must not: use `lastIndex`, match arrays or anything else of the object.

mod class;
mod compile;
mod exec;
mod flags;
mod fold;
mod program;
mod property;
mod set;
mod source;

#[cfg(test)]
mod tests;

pub(crate) use exec::{MAX_STACK, MatchError};
pub(crate) use flags::Flags;
pub(crate) use property::property;
pub(crate) use set::CodeSet;
pub(crate) use source::{MAX_NESTING, escape_literal, escape_pattern};

use super::units::Units;

/// Why a pattern was refused. All variants but the first are limits; the caller throws a `SyntaxError` with the text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum RegExpError {
    /// The pattern does not follow the grammar.
    #[error("Invalid regular expression: {0}")]
    Syntax(String),
    /// Groups or classes are nested deeper than [`MAX_NESTING`].
    #[error("Invalid regular expression: nested too deeply")]
    TooDeep,
    /// The compiled pattern would be too large.
    #[error("Invalid regular expression: too large")]
    TooLarge,
    /// A property of strings for which this build has no data.
    #[error("Invalid regular expression: property {0} is not supported")]
    UnsupportedProperty(String),
}

/// The ranges of the groups of a match, in units: the whole match first. `None` for a group that did not participate.
pub(crate) type Groups = Vec<Option<std::ops::Range<usize>>>;

/// A compiled pattern with its flags. Not part of any stored state: it is compiled again from source and flags.
#[derive(Clone, Debug)]
pub(crate) struct Regex {
    program: program::MatchProgram,
    flags: Flags,
    names: Vec<(String, Vec<u32>)>,
}

impl Regex {
    /// `RegExpInitialize` without the object, ECMA-262 22.2.3.3.
    pub(crate) fn compile(pattern: &[u16], flags: Flags) -> Result<Regex, RegExpError> {
        let (program, names) = compile::compile(pattern, flags)?;
        Ok(Regex { program, flags, names })
    }

    /// The flags of the expression.
    pub(crate) fn flags(&self) -> Flags {
        self.flags
    }

    /// Number of capturing groups, without the whole match.
    pub(crate) fn captures(&self) -> usize {
        self.program.captures as usize
    }

    /// Names of groups in the order of their first appearance, with the numbers of the groups that have them (several in
    /// different alternatives).
    pub(crate) fn names(&self) -> &[(String, Vec<u32>)] {
        &self.names
    }

    /// The first match at or after `start` (exactly there with the flag `y`), ECMA-262 22.2.7.2 steps 10 to 13.
    /// `steps` is lowered by the work done; at zero the result is [`MatchError::OutOfSteps`].
    pub(crate) fn exec<U: Units + ?Sized>(
        &self,
        text: &U,
        start: usize,
        steps: &mut u64,
    ) -> Result<Option<Groups>, MatchError> {
        if start > text.count() {
            return Ok(None);
        }
        let found = exec::run(&self.program, text, start, self.flags.sticky, steps)?;
        Ok(found.map(|registers| {
            let pairs = registers.chunks_exact(2).take(self.captures() + 1);
            let filled = |pair: &[u32]| pair.iter().all(|position| *position != u32::MAX);
            pairs.map(|pair| filled(pair).then(|| pair[0] as usize..pair[1] as usize)).collect()
        }))
    }
}
