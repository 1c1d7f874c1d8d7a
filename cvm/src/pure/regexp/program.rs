//! The instructions that a pattern compiles to. A program is created by the compiler only, never read from stored bytes.

use super::set::CodeSet;

/// A test of one character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Test {
    /// This code point.
    Char(u32),
    /// A member of the set with this index.
    Set(u32),
    /// Anything.
    Any,
    /// Anything but a line terminator.
    NotLine,
}

/// The direction in which the text is read: lookbehind reads backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// Index of an instruction.
pub(super) type Target = u32;
/// Index of a register. Registers hold positions, counters and stack heights.
pub(super) type Reg = u32;

/// One instruction. On failure the matcher continues with the newest alternative.
#[derive(Clone, Debug)]
pub(super) enum Insn {
    /// The match is complete.
    Match,
    /// Test one character and move over it.
    One(Test, Direction),
    /// The test as often as possible (or as seldom), at least `min`, at most `max` times.
    Run {
        test: Test,
        min: u32,
        max: u32,
        greedy: bool,
        direction: Direction,
    },
    /// `^`
    Start {
        multiline: bool,
    },
    /// `$`
    End {
        multiline: bool,
    },
    /// `\b` and `\B`; `words` is the set of word characters.
    Boundary {
        words: u32,
        negative: bool,
    },
    /// Continue with the next instruction; alternative: `second`.
    Fork {
        second: Target,
    },
    /// Continue at `target`; alternative: the next instruction.
    ForkBack {
        target: Target,
    },
    Jump(Target),
    /// Store the position.
    Save(Reg),
    /// Store a number.
    Set(Reg, u32),
    /// Registers of captures `first..end` become empty.
    Clear {
        first: Reg,
        end: Reg,
    },
    /// Head of a counted loop: enter the body at the next instruction, or leave to `exit`.
    Loop {
        counter: Reg,
        min: u32,
        max: u32,
        greedy: bool,
        exit: Target,
    },
    /// Add one to a counter and go back to the loop's head.
    Again {
        counter: Reg,
        head: Target,
    },
    /// Fail if nothing was read since `start` was stored, unless the iteration was required by the counter.
    NotEmpty {
        start: Reg,
        required: Option<(Reg, u32)>,
    },
    /// The text of the first group in `groups[first..end]` that participated.
    Same {
        first: u32,
        end: u32,
        fold: bool,
        direction: Direction,
    },
    /// Begin a lookaround: remember stack height and position; if `negative`, a failure inside continues at `after`.
    Look {
        height: Reg,
        position: Reg,
        negative: bool,
        after: Target,
    },
    /// The inside of a lookaround matched.
    LookEnd {
        height: Reg,
        position: Reg,
        negative: bool,
    },
    /// Never matches.
    Fail,
}

/// A compiled pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchProgram {
    pub insns: Vec<Insn>,
    pub sets: Vec<CodeSet>,
    /// Group numbers of backreferences, see [`Insn::Same`].
    pub groups: Vec<u32>,
    /// Number of registers; the first two for each group (0 is the whole match) hold its start and end.
    pub registers: u32,
    /// Number of capturing groups, without the whole match.
    pub captures: u32,
    /// Units are joined to code points.
    pub unicode: bool,
    /// If set, every match starts with this unit.
    pub first_unit: Option<u16>,
}
