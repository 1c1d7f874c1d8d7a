//! Patterns of schemas in JavaScript's notation; matching takes time linear in the text, whatever the pattern.
//!
//! Owns: the translation from JavaScript's notation to the matcher's, and the bounds of patterns. Look-around and back-references
//! have no linear-time matching: a pattern with them is refused. The check of a pattern parses it and compiles nothing; it counts
//! what the compiled one will have, so that a pattern that passed the check compiles.

use regex_automata::hybrid::BuildError;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{Compiler, Config as NfaConfig, WhichCaptures};
use regex_automata::{Input, MatchErrorKind};
use regex_syntax::hir::{Class, Hir, HirKind};
use regex_syntax::utf8::Utf8Sequences;
use regex_syntax::{Parser, ParserBuilder};

/// Limits of the patterns of one schema: their number, the length of one and of all (bytes), and the classes of Unicode (`\p{…}`),
/// each of which has hundreds of ranges.
const PATTERNS: usize = 64;
const PATTERN_BYTES: usize = 4096;
const ALL_BYTES: usize = 16 * 1024;
const UNICODE_CLASSES: usize = 16;
/// Most transitions of all compiled patterns of one schema: repetitions multiply them. A transition takes about 16 bytes.
const TRANSITIONS: u64 = 250_000;
/// Bytes of a compiled pattern per transition, about.
const TRANSITION_BYTES: usize = 16;
/// Deepest nesting of a pattern.
const NESTING: u32 = 64;
/// Memory for the states of one pattern that were needed so far (bytes). A text that needs more cannot be checked.
const STATES_BYTES: usize = 1 << 20;
/// Compiled patterns are smaller (bytes): a second line behind the count of transitions.
const COMPILED_BYTES: usize = 16 << 20;

/// The sizes of the patterns of one schema, as far as it is checked.
#[derive(Debug, Default)]
pub(super) struct PatternCount {
    patterns: usize,
    bytes: usize,
    unicode_classes: usize,
    transitions: u64,
}

impl PatternCount {
    /// Adds a pattern; on error the reason why the schema cannot be used.
    pub(super) fn add(&mut self, pattern: &str) -> Result<(), String> {
        self.patterns += 1;
        self.bytes += pattern.len();
        if self.patterns > PATTERNS || pattern.len() > PATTERN_BYTES || self.bytes > ALL_BYTES {
            return Err(format!(
                "it has more than {PATTERNS} patterns, one of more than {PATTERN_BYTES} bytes, or more than {ALL_BYTES} bytes of patterns"
            ));
        }
        if has_flags(pattern) {
            return Err(format!(
                "the pattern {:?} cannot be used: flags in it are not supported",
                shown(pattern)
            ));
        }
        let translated = translated(pattern);
        // Counted in the text: parsing one is what takes time.
        self.unicode_classes += translated.matches("\\p").count() + translated.matches("\\P").count();
        if self.unicode_classes > UNICODE_CLASSES {
            return Err(format!("its patterns have more than {UNICODE_CLASSES} classes \\p{{…}}"));
        }
        let hir = parsed(&translated).ok_or_else(|| unusable(pattern))?;
        self.transitions = self.transitions.saturating_add(transitions(&hir));
        if self.transitions > TRANSITIONS {
            return Err(format!(
                "the pattern {:?} is too large: with its repetitions written out, the patterns of a schema have at most \
                 {TRANSITIONS} transitions",
                shown(pattern)
            ));
        }
        Ok(())
    }

    /// Memory of the compiled patterns (bytes), about.
    pub(super) fn compiled_bytes(&self) -> usize {
        usize::try_from(self.transitions).unwrap_or(usize::MAX).saturating_mul(TRANSITION_BYTES)
    }
}

fn shown(pattern: &str) -> String {
    pattern.chars().take(100).collect()
}

fn unusable(pattern: &str) -> String {
    format!(
        "the pattern {:?} cannot be used: look-around and back-references are not supported",
        shown(pattern)
    )
}

/// Whether a group begins with flags. JSON Schema has none, and to ignore the case of a class of Unicode takes a hundred times as
/// long as the class.
fn has_flags(pattern: &str) -> bool {
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => {
                chars.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let mut group = chars.clone();
                if group.next() == Some('?') && !group.next().is_some_and(|kind| ":=!<".contains(kind)) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

fn parser() -> Parser {
    // Without `utf8`: `\B` of JavaScript is about bytes of ASCII.
    ParserBuilder::new().utf8(false).nest_limit(NESTING).build()
}

fn parsed(translated: &str) -> Option<Hir> {
    let hir = parser().parse(translated).ok()?;
    // The matcher has no word boundaries of Unicode.
    (!hir.properties().look_set().contains_word_unicode()).then_some(hir)
}

/// An upper bound of the transitions of the compiled pattern.
fn transitions(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64 + 1,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64 + 1,
        HirKind::Class(Class::Unicode(class)) => {
            let sequences =
                class.ranges().iter().flat_map(|range| Utf8Sequences::new(range.start(), range.end()));
            1 + sequences.map(|sequence| sequence.len() as u64).sum::<u64>()
        }
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min.saturating_add(1)).max(1);
            (transitions(&repeated.sub) + 2).saturating_mul(u64::from(times))
        }
        HirKind::Capture(capture) => transitions(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(1, |all: u64, part| all.saturating_add(1 + transitions(part)))
        }
    }
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct CompiledPattern(DFA);

/// A pattern whose states could not be computed within their memory.
pub(super) struct TooManyStates;

impl CompiledPattern {
    /// Compiles a pattern that passed [`PatternCount::add`].
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let hir = parsed(&translated(pattern)).ok_or_else(|| unusable(pattern))?;
        let failed = |error: &dyn std::fmt::Display| format!("the pattern {:?}: {error}", shown(pattern));
        let nfa = NfaConfig::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(COMPILED_BYTES));
        let nfa = Compiler::new().configure(nfa).build_from_hir(&hir).map_err(|error| failed(&error))?;
        let states = Config::new()
            .cache_capacity(STATES_BYTES)
            .skip_cache_capacity_check(true)
            // The states are kept: computing one takes time in proportion to the pattern, for each byte of a text at worst.
            .minimum_cache_clear_count(Some(0));
        DFA::builder()
            .configure(states)
            .build_from_nfa(nfa)
            .map(Self)
            .map_err(|error: BuildError| failed(&error))
    }

    /// Memory for the states that texts need.
    pub(super) fn states(&self) -> Cache {
        self.0.create_cache()
    }

    pub(super) fn matches(&self, states: &mut Cache, text: &str) -> Result<bool, TooManyStates> {
        match self.0.try_search_fwd(states, &Input::new(text).earliest(true)) {
            Ok(found) => Ok(found.is_some()),
            Err(error) => {
                debug_assert!(matches!(error.kind(), MatchErrorKind::GaveUp { .. }), "{error}");
                Err(TooManyStates)
            }
        }
    }
}

/// The same pattern in the matcher's notation.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('/') => out.push('/'),
                Some('b') if in_class => out.push_str("\\x08"),
                Some('b') => out.push_str("(?-u:\\b)"),
                Some('B') if !in_class => out.push_str("(?-u:\\B)"),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
            }
            // These characters have no special meaning in a class of JavaScript.
            '[' | '&' | '~' if in_class => out.extend(['\\', char]),
            ']' => {
                in_class = false;
                out.push(']');
            }
            other => out.push(other),
        }
    }
    out
}
