//! Pattern to program, ECMA-262 22.2.2 (`CompilePattern` and below).
//!
//! The compiler recurses once for each level of nesting, which [`super::source::check_nesting`] bounds beforehand.

use super::class::{ClassEvaluator, ClassValue, Mode};
use super::fold;
use super::program::{Direction, Insn, MatchProgram, Reg, Test};
use super::set::CodeSet;
use super::source::{check_nesting, to_parser_text};
use super::{Flags, RegExpError};
use oxc_allocator::Allocator;
use oxc_regular_expression::ast::{
    Alternative, BoundaryAssertionKind, Disjunction, LookAroundAssertion, LookAroundAssertionKind, Modifier,
    Modifiers, Quantifier, Term,
};
use oxc_regular_expression::{LiteralParser, Options};
use std::collections::BTreeMap;

/// Most instructions of a program.
const MAX_INSNS: usize = 1 << 20;
/// Most ranges in all sets of a program.
const MAX_RANGES: usize = 1 << 21;
/// "No upper bound" of a quantifier.
const ENDLESS: u32 = u32::MAX;

/// Group names with the numbers of their groups.
type Names = Vec<(String, Vec<u32>)>;

/// Parses and compiles.
pub(super) fn compile(pattern: &[u16], flags: Flags) -> Result<(MatchProgram, Names), RegExpError> {
    check_nesting(pattern, flags.unicode_sets)?;
    let text = to_parser_text(pattern, flags.full_unicode());
    let allocator = Allocator::default();
    let letters = match (flags.unicode, flags.unicode_sets) {
        (true, _) => Some("u"),
        (_, true) => Some("v"),
        _ => None,
    };
    let parsed = LiteralParser::new(&allocator, &text, letters, Options::default()).parse();
    let parsed = parsed.map_err(|error| RegExpError::Syntax(short_message(&error.to_string())))?;
    let mut compiler = PatternCompiler::new(flags);
    compiler.collect_groups(&parsed.body);
    compiler.program.captures = compiler.group_starts.len() as u32;
    compiler.program.registers = (compiler.program.captures + 1) * 2;
    compiler.disjunction(&parsed.body, Direction::Forward)?;
    compiler.emit(Insn::Match)?;
    compiler.program.first_unit = first_unit(&parsed.body, flags);
    Ok((compiler.program, compiler.names))
}

/// The parser's message without its own heading.
fn short_message(message: &str) -> String {
    message.trim_start_matches("Invalid regular expression:").trim().to_owned()
}

/// The flags that modifiers can change, at the current position of the pattern.
#[derive(Clone, Copy, Debug)]
struct ActiveModifiers {
    ignore_case: bool,
    multiline: bool,
    dot_all: bool,
}

/// How often the body of a quantifier matches, and whether as often as it can.
#[derive(Clone, Copy)]
struct Repetition {
    min: u32,
    max: u32,
    greedy: bool,
}

struct PatternCompiler {
    program: MatchProgram,
    classes: ClassEvaluator,
    modifiers: ActiveModifiers,
    unicode: bool,
    unicode_sets: bool,
    set_index: BTreeMap<CodeSet, u32>,
    ranges: usize,
    /// Source offsets of capturing groups, ascending: group n is at n − 1.
    group_starts: Vec<u32>,
    names: Names,
    /// The index of each name in `names`.
    name_index: BTreeMap<String, usize>,
}

impl PatternCompiler {
    fn new(flags: Flags) -> Self {
        PatternCompiler {
            program: MatchProgram { unicode: flags.full_unicode(), ..MatchProgram::default() },
            classes: ClassEvaluator::default(),
            modifiers: ActiveModifiers {
                ignore_case: flags.ignore_case,
                multiline: flags.multiline,
                dot_all: flags.dot_all,
            },
            unicode: flags.full_unicode(),
            unicode_sets: flags.unicode_sets,
            set_index: BTreeMap::new(),
            ranges: 0,
            group_starts: Vec::new(),
            names: Vec::new(),
            name_index: BTreeMap::new(),
        }
    }

    fn mode(&self) -> Mode {
        Mode {
            ignore_case: self.modifiers.ignore_case,
            unicode: self.unicode,
            unicode_sets: self.unicode_sets,
        }
    }

    fn emit(&mut self, insn: Insn) -> Result<usize, RegExpError> {
        if self.program.insns.len() >= MAX_INSNS {
            return Err(RegExpError::TooLarge);
        }
        self.program.insns.push(insn);
        Ok(self.program.insns.len() - 1)
    }

    fn here_target(&self) -> u32 {
        self.program.insns.len() as u32
    }

    fn register(&mut self) -> Reg {
        self.program.registers += 1;
        self.program.registers - 1
    }

    fn set(&mut self, set: CodeSet) -> Result<u32, RegExpError> {
        if let Some(index) = self.set_index.get(&set) {
            return Ok(*index);
        }
        self.ranges += set.ranges().len() + 1;
        if self.ranges > MAX_RANGES {
            return Err(RegExpError::TooLarge);
        }
        let index = self.program.sets.len() as u32;
        self.program.sets.push(set.clone());
        self.set_index.insert(set, index);
        Ok(index)
    }

    /// Numbers the groups in the order of their parentheses.
    fn collect_groups(&mut self, disjunction: &Disjunction<'_>) {
        for term in disjunction.body.iter().flat_map(|alternative| &alternative.body) {
            self.collect_in_term(term);
        }
    }

    fn collect_in_term(&mut self, term: &Term<'_>) {
        match term {
            Term::CapturingGroup(group) => {
                self.group_starts.push(group.span.start);
                let number = self.group_starts.len() as u32;
                if let Some(name) = &group.name {
                    let name = name.as_str();
                    if let Some(index) = self.name_index.get(name) {
                        self.names[*index].1.push(number);
                    } else {
                        self.name_index.insert(name.to_owned(), self.names.len());
                        self.names.push((name.to_owned(), vec![number]));
                    }
                }
                self.collect_groups(&group.body);
            }
            Term::IgnoreGroup(group) => self.collect_groups(&group.body),
            Term::LookAroundAssertion(look) => self.collect_groups(&look.body),
            Term::Quantifier(quantifier) => self.collect_in_term(&quantifier.body),
            _ => {}
        }
    }

    /// Registers of the groups that begin in this part of the source.
    fn registers_in(&self, span: oxc_span::Span) -> (Reg, Reg) {
        let count = |offset: u32| self.group_starts.partition_point(|start| *start < offset) as u32;
        ((count(span.start) + 1) * 2, (count(span.end) + 1) * 2)
    }

    fn disjunction(
        &mut self,
        disjunction: &Disjunction<'_>,
        direction: Direction,
    ) -> Result<(), RegExpError> {
        let mut jumps = Vec::new();
        for (index, alternative) in disjunction.body.iter().enumerate() {
            let last = index + 1 == disjunction.body.len();
            let fork = if last { None } else { Some(self.emit(Insn::Fork { second: 0 })?) };
            self.alternative(alternative, direction)?;
            if let Some(fork) = fork {
                jumps.push(self.emit(Insn::Jump(0))?);
                self.program.insns[fork] = Insn::Fork { second: self.here_target() };
            }
        }
        self.land(&jumps);
        Ok(())
    }

    fn land(&mut self, jumps: &[usize]) {
        for jump in jumps {
            self.program.insns[*jump] = Insn::Jump(self.here_target());
        }
    }

    fn alternative(
        &mut self,
        alternative: &Alternative<'_>,
        direction: Direction,
    ) -> Result<(), RegExpError> {
        match direction {
            Direction::Forward => alternative.body.iter().try_for_each(|term| self.term(term, direction)),
            Direction::Backward => {
                alternative.body.iter().rev().try_for_each(|term| self.term(term, direction))
            }
        }
    }

    fn term(&mut self, term: &Term<'_>, direction: Direction) -> Result<(), RegExpError> {
        match term {
            Term::BoundaryAssertion(assertion) => self.boundary(assertion.kind),
            Term::LookAroundAssertion(look) => self.look(look),
            Term::Quantifier(quantifier) => self.quantifier(quantifier, direction),
            Term::CapturingGroup(group) => {
                let number = self.group_starts.partition_point(|start| *start < group.span.start) as u32 + 1;
                let (start, end) = (number * 2, number * 2 + 1);
                let (before, behind) =
                    if direction == Direction::Forward { (start, end) } else { (end, start) };
                self.emit(Insn::Save(before))?;
                self.disjunction(&group.body, direction)?;
                self.emit(Insn::Save(behind)).map(drop)
            }
            Term::IgnoreGroup(group) => {
                let outside = self.modifiers;
                if let Some(modifiers) = &group.modifiers {
                    self.modifiers = with_modifiers(outside, modifiers);
                }
                let result = self.disjunction(&group.body, direction);
                self.modifiers = outside;
                result
            }
            Term::IndexedReference(reference) => self.same(&[reference.index], direction),
            Term::NamedReference(reference) => {
                let known = self.name_index.get(reference.name.as_str());
                let groups = known.map(|index| self.names[*index].1.clone()).unwrap_or_default();
                self.same(&groups, direction)
            }
            _ => match self.single(term)? {
                Single::Test(test) => self.emit(Insn::One(test, direction)).map(drop),
                Single::Class(value) => self.strings(value, direction),
            },
        }
    }

    fn same(&mut self, groups: &[u32], direction: Direction) -> Result<(), RegExpError> {
        let first = self.program.groups.len() as u32;
        self.program.groups.extend_from_slice(groups);
        let end = self.program.groups.len() as u32;
        self.emit(Insn::Same { first, end, fold: self.modifiers.ignore_case, direction }).map(drop)
    }

    fn boundary(&mut self, kind: BoundaryAssertionKind) -> Result<(), RegExpError> {
        let multiline = self.modifiers.multiline;
        let insn = match kind {
            BoundaryAssertionKind::Start => Insn::Start { multiline },
            BoundaryAssertionKind::End => Insn::End { multiline },
            BoundaryAssertionKind::Boundary | BoundaryAssertionKind::NegativeBoundary => {
                let words = self.classes.words(self.mode())?;
                let negative = kind == BoundaryAssertionKind::NegativeBoundary;
                Insn::Boundary { words: self.set(words)?, negative }
            }
        };
        self.emit(insn).map(drop)
    }

    fn look(&mut self, look: &LookAroundAssertion<'_>) -> Result<(), RegExpError> {
        use LookAroundAssertionKind as Kind;
        let negative = matches!(look.kind, Kind::NegativeLookahead | Kind::NegativeLookbehind);
        let behind = matches!(look.kind, Kind::Lookbehind | Kind::NegativeLookbehind);
        let (height, position) = (self.register(), self.register());
        let head = self.emit(Insn::Look { height, position, negative, after: 0 })?;
        self.disjunction(&look.body, if behind { Direction::Backward } else { Direction::Forward })?;
        self.emit(Insn::LookEnd { height, position, negative })?;
        self.program.insns[head] = Insn::Look { height, position, negative, after: self.here_target() };
        Ok(())
    }

    /// A term that reads one character, or a class with strings.
    fn single(&mut self, term: &Term<'_>) -> Result<Single, RegExpError> {
        let mode = self.mode();
        let set = match term {
            Term::Character(one) => return self.character(one.value).map(Single::Test),
            Term::Dot(_) => {
                return Ok(Single::Test(if self.modifiers.dot_all { Test::Any } else { Test::NotLine }));
            }
            Term::CharacterClassEscape(escape) => {
                let set = self.classes.escape(escape.kind, mode)?;
                self.classes.finish(set, mode)?
            }
            Term::UnicodePropertyEscape(escape) => {
                let value = self.classes.property(escape, mode)?;
                if !value.strings.is_empty() {
                    return Ok(Single::Class(value));
                }
                self.classes.finish(value.set, mode)?
            }
            Term::CharacterClass(class) => {
                let value = self.classes.class(class, mode)?;
                if !value.strings.is_empty() {
                    return Ok(Single::Class(value));
                }
                value.set
            }
            _ => CodeSet::default(),
        };
        Ok(Single::Test(Test::Set(self.set(set)?)))
    }

    fn character(&mut self, code_point: u32) -> Result<Test, RegExpError> {
        if self.modifiers.ignore_case {
            let equal = fold::equals(code_point, self.unicode);
            if equal.ranges() != [(code_point, code_point)] {
                return Ok(Test::Set(self.set(equal)?));
            }
        }
        Ok(Test::Char(code_point))
    }

    /// A class with strings: the longest first, single characters after those with two, the empty string last
    /// (ECMA-262 22.2.2.7, `CharacterClass`).
    fn strings(&mut self, value: ClassValue, direction: Direction) -> Result<(), RegExpError> {
        let mut texts: Vec<Vec<u32>> = value.strings.into_iter().collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let empty = texts.last().is_some_and(Vec::is_empty) && texts.pop().is_some();
        let mut jumps = Vec::new();
        for mut text in texts {
            let fork = self.emit(Insn::Fork { second: 0 })?;
            if direction == Direction::Backward {
                text.reverse();
            }
            for code_point in text {
                let test = self.character(code_point)?;
                self.emit(Insn::One(test, direction))?;
            }
            jumps.push(self.emit(Insn::Jump(0))?);
            self.program.insns[fork] = Insn::Fork { second: self.here_target() };
        }
        let set = self.set(value.set)?;
        if empty {
            let fork = self.emit(Insn::Fork { second: 0 })?;
            self.emit(Insn::One(Test::Set(set), direction))?;
            self.program.insns[fork] = Insn::Fork { second: self.here_target() };
        } else {
            self.emit(Insn::One(Test::Set(set), direction))?;
        }
        self.land(&jumps);
        Ok(())
    }

    /// `RepeatMatcher`, ECMA-262 22.2.2.3.1.
    fn quantifier(&mut self, quantifier: &Quantifier<'_>, direction: Direction) -> Result<(), RegExpError> {
        let bound = |count: u64| u32::try_from(count).unwrap_or(ENDLESS - 1).min(ENDLESS - 1);
        let min = bound(quantifier.min);
        let max = quantifier.max.filter(|max| *max < u64::from(ENDLESS)).map_or(ENDLESS, bound);
        let greedy = quantifier.greedy;
        let body = &quantifier.body;
        if max == 0 {
            return Ok(());
        }
        if is_single(body) {
            match self.single(body)? {
                Single::Test(test) => {
                    return self.emit(Insn::Run { test, min, max, greedy, direction }).map(drop);
                }
                Single::Class(value) => {
                    let nullable = value.strings.contains(&Vec::new());
                    let strings = |this: &mut Self| this.strings(value.clone(), direction);
                    return self.repeat(Repetition { min, max, greedy }, (0, 0), nullable, strings);
                }
            }
        }
        let clear = self.registers_in(oxc_span::GetSpan::span(body));
        self.repeat(Repetition { min, max, greedy }, clear, can_be_empty(body), |this| {
            this.term(body, direction)
        })
    }

    fn repeat(
        &mut self,
        Repetition { min, max, greedy }: Repetition,
        clear: (Reg, Reg),
        nullable: bool,
        body: impl FnOnce(&mut Self) -> Result<(), RegExpError>,
    ) -> Result<(), RegExpError> {
        let counted = !(min == 0 && (max == 1 || max == ENDLESS));
        let counter = if counted { Some(self.register()) } else { None };
        let start = if nullable { Some(self.register()) } else { None };
        if let Some(counter) = counter {
            self.emit(Insn::Set(counter, 0))?;
        }
        let head = self.emit(Insn::Fail)?;
        if let Some(start) = start {
            self.emit(Insn::Save(start))?;
        }
        if clear.0 < clear.1 {
            self.emit(Insn::Clear { first: clear.0, end: clear.1 })?;
        }
        body(self)?;
        if let Some(start) = start {
            self.emit(Insn::NotEmpty { start, required: counter.map(|counter| (counter, min)) })?;
        }
        match counter {
            Some(counter) => drop(self.emit(Insn::Again { counter, head: head as u32 })?),
            None if max == ENDLESS => drop(self.emit(Insn::Jump(head as u32))?),
            None => {}
        }
        let exit = self.here_target();
        self.program.insns[head] = match counter {
            Some(counter) => Insn::Loop { counter, min, max, greedy, exit },
            None if greedy => Insn::Fork { second: exit },
            None => Insn::ForkBack { target: exit },
        };
        Ok(())
    }
}

/// The compiled form of a term that reads characters.
enum Single {
    Test(Test),
    Class(ClassValue),
}

fn is_single(term: &Term<'_>) -> bool {
    matches!(
        term,
        Term::Character(_)
            | Term::Dot(_)
            | Term::CharacterClassEscape(_)
            | Term::UnicodePropertyEscape(_)
            | Term::CharacterClass(_)
    )
}

/// False if the term always consumes a character. Recursion is bounded like the compiler's; inner terms are visited once for
/// each enclosing quantifier.
fn can_be_empty(term: &Term<'_>) -> bool {
    let any_empty = |disjunction: &Disjunction<'_>| {
        disjunction.body.iter().any(|alternative| alternative.body.iter().all(can_be_empty))
    };
    match term {
        Term::CapturingGroup(group) => any_empty(&group.body),
        Term::IgnoreGroup(group) => any_empty(&group.body),
        Term::Quantifier(quantifier) => quantifier.min == 0 || can_be_empty(&quantifier.body),
        Term::CharacterClass(class) => class.strings,
        _ => !is_single(term),
    }
}

/// `UpdateModifiers`, ECMA-262 22.2.2.8.1.
fn with_modifiers(outer: ActiveModifiers, modifiers: &Modifiers) -> ActiveModifiers {
    let flag = |now: bool, letter: Modifier| {
        (now || modifiers.enabling.contains(letter)) && !modifiers.disabling.contains(letter)
    };
    ActiveModifiers {
        ignore_case: flag(outer.ignore_case, Modifier::I),
        multiline: flag(outer.multiline, Modifier::M),
        dot_all: flag(outer.dot_all, Modifier::S),
    }
}

/// The unit that every match begins with, in simple cases.
fn first_unit(body: &Disjunction<'_>, flags: Flags) -> Option<u16> {
    if flags.ignore_case || body.body.len() != 1 {
        return None;
    }
    let code_point = match body.body.first()?.body.first()? {
        Term::Character(one) => one.value,
        Term::Quantifier(quantifier) if quantifier.min > 0 => match &quantifier.body {
            Term::Character(one) => one.value,
            _ => return None,
        },
        _ => return None,
    };
    let mut units = Vec::new();
    super::super::units::push_code_point(&mut units, code_point);
    units.first().copied()
}
