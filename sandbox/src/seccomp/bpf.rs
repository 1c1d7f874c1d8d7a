//! Compiles a table of rows to classic BPF: a check of the architecture, of x32 numbers, then the rows from top to bottom, then the
//! action for all other calls.

use libc::sock_filter;
use std::io;

/// A system-call number, `x86_64` or aarch64 (`libc::SYS_*`).
pub type Number = libc::c_long;

/// One row: a call, its conditions, the action, and the reason of the row.
#[derive(Debug, Clone, Copy)]
pub struct FilterRow {
    /// The call's number.
    pub number: Number,
    /// The call's name, for reports and tests.
    pub name: &'static str,
    /// All of these must hold; otherwise the next row is tried.
    pub when: &'static [Check],
    /// The action.
    pub action: FilterAction,
    /// The code that needs the call, and why the call does no harm.
    pub reason: &'static str,
}

impl FilterRow {
    /// A row that allows a call if all of `when` hold.
    pub const fn allow(
        number: Number,
        name: &'static str,
        when: &'static [Check],
        reason: &'static str,
    ) -> Self {
        Self { number, name, when, action: FilterAction::Allow, reason }
    }
}

/// A condition on one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// All 64 bits of argument `.0` equal `.1`.
    Is(u8, u64),
    /// The low 32 bits of argument `.0` (an `int`) equal `.1`.
    IsInt(u8, u32),
    /// The low 32 bits of argument `.0`, masked by `.1`, equal `.2`.
    Masked(u8, u32, u32),
}

/// The action of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterAction {
    /// The call is allowed.
    Allow,
    /// The call fails with this errno.
    Fail(u16),
    /// The supervisor decides.
    Notify,
}

/// The action for a call that no row allows. Foreign architectures and x32 numbers kill in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Otherwise {
    /// The kernel kills the process.
    Kill,
    /// The process waits in the call; the listener gets the call's number and kills the process.
    Report,
    /// The call fails with this errno.
    Fail(u16),
    /// The call is allowed: for a table of refusals.
    Allow,
}

impl Otherwise {
    const fn code(self) -> u32 {
        match self {
            Self::Kill => libc::SECCOMP_RET_KILL_PROCESS,
            Self::Report => libc::SECCOMP_RET_USER_NOTIF,
            Self::Fail(errno) => libc::SECCOMP_RET_ERRNO | errno as u32,
            Self::Allow => libc::SECCOMP_RET_ALLOW,
        }
    }
}

impl FilterRow {
    /// Whether the row matches this call; must agree with the compiled filter.
    pub(super) fn matches(&self, number: i32, arguments: &[u64; 6]) -> bool {
        self.number == Number::from(number) && self.when.iter().all(|check| check.holds(arguments))
    }
}

impl Check {
    fn holds(self, arguments: &[u64; 6]) -> bool {
        let argument = |at: u8| arguments.get(usize::from(at)).copied().unwrap_or(u64::MAX);
        match self {
            Self::Is(at, value) => argument(at) == value,
            Self::IsInt(at, value) => argument(at) as u32 == value,
            Self::Masked(at, mask, value) => argument(at) as u32 & mask == value,
        }
    }
}

impl FilterAction {
    const fn code(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Fail(errno) => libc::SECCOMP_RET_ERRNO | errno as u32,
            Self::Notify => libc::SECCOMP_RET_USER_NOTIF,
        }
    }
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the seccomp tables support x86_64 and aarch64 only");

/// First number of the x32 calls (`x86_64` only; no aarch64 call comes near it).
const X32: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

const fn op(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn load(at: u32) -> sock_filter {
    op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at)
}

fn ret(action: u32) -> sock_filter {
    op(libc::BPF_RET | libc::BPF_K, action)
}

fn jump(condition: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { jt, jf, ..op(libc::BPF_JMP | condition | libc::BPF_K, k) }
}

/// The instructions of a table. Fails only for a row with too many checks.
pub fn compile(table: &[FilterRow], otherwise: Otherwise) -> io::Result<Vec<sock_filter>> {
    let kill = libc::SECCOMP_RET_KILL_PROCESS;
    let mut program = vec![
        load(ARCHITECTURE_AT),
        jump(libc::BPF_JEQ, ARCHITECTURE, 1, 0),
        ret(kill),
        load(NUMBER_AT),
        jump(libc::BPF_JGE, X32, 0, 1),
        ret(kill),
    ];
    for row in table {
        compile_row(row, &mut program)?;
    }
    program.push(ret(otherwise.code()));
    Ok(program)
}

/// `number? → checks → action`, then the number is loaded again for the next row.
fn compile_row(row: &FilterRow, program: &mut Vec<sock_filter>) -> io::Result<()> {
    let number = u32::try_from(row.number).map_err(|_| io::ErrorKind::InvalidInput)?;
    if row.when.is_empty() {
        program.push(jump(libc::BPF_JEQ, number, 0, 1));
        program.push(ret(row.action.code()));
        return Ok(());
    }
    let mut checks = Vec::new();
    for check in row.when {
        compile_check(*check, &mut checks);
    }
    checks.push(ret(row.action.code()));
    // A failed check jumps past the action: from its position to the end of the block.
    let len = checks.len();
    for (at, instruction) in checks.iter_mut().enumerate() {
        if instruction.jf == FAILS {
            instruction.jf = u8::try_from(len - at - 1).map_err(|_| io::ErrorKind::InvalidInput)?;
        }
    }
    let behind = u8::try_from(len + 1).map_err(|_| io::ErrorKind::InvalidInput)?;
    program.push(jump(libc::BPF_JEQ, number, 0, behind));
    program.extend(checks);
    program.push(load(NUMBER_AT));
    Ok(())
}

/// Placeholder of a jump to the end of the row.
const FAILS: u8 = u8::MAX;

fn compile_check(check: Check, into: &mut Vec<sock_filter>) {
    // Both architectures are little endian: low word first.
    let low = |argument: u8| load(ARGUMENTS_AT + 8 * u32::from(argument));
    let high = |argument: u8| load(ARGUMENTS_AT + 8 * u32::from(argument) + 4);
    match check {
        Check::Is(argument, value) => into.extend([
            high(argument),
            jump(libc::BPF_JEQ, (value >> 32) as u32, 0, FAILS),
            low(argument),
            jump(libc::BPF_JEQ, value as u32, 0, FAILS),
        ]),
        Check::IsInt(argument, value) => {
            into.extend([low(argument), jump(libc::BPF_JEQ, value, 0, FAILS)]);
        }
        Check::Masked(argument, mask, value) => into.extend([
            low(argument),
            op(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask),
            jump(libc::BPF_JEQ, value, 0, FAILS),
        ]),
    }
}

#[cfg(test)]
pub(crate) mod interpreter {
    //! Runs a compiled program on simulated calls, as the kernel would.

    use super::{ARCHITECTURE, Number};
    use libc::sock_filter;

    /// The verdict on a call of our own architecture.
    pub(crate) fn verdict(program: &[sock_filter], number: Number, arguments: [u64; 6]) -> u32 {
        verdict_of(program, number as u32, ARCHITECTURE, arguments)
    }

    pub(crate) fn verdict_of(
        program: &[sock_filter],
        number: u32,
        architecture: u32,
        arguments: [u64; 6],
    ) -> u32 {
        let word = |at: u32| match at {
            0 => number,
            4 => architecture,
            _ => (arguments[(at as usize - 16) / 8] >> (8 * (at % 8))) as u32,
        };
        let (mut at, mut a) = (0, 0);
        loop {
            let instruction = program[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { instruction.jt } else { instruction.jf });
            match u32::from(instruction.code) {
                0x20 => a = word(instruction.k),
                0x54 => a &= instruction.k,
                0x15 => at += jump(a == instruction.k),
                0x35 => at += jump(a >= instruction.k),
                0x06 => return instruction.k,
                other => unreachable!("no such instruction is compiled: {other:#x}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::interpreter::{verdict, verdict_of};
    use super::*;

    const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

    const fn row(number: Number, when: &'static [Check], action: FilterAction) -> FilterRow {
        FilterRow { number, name: "test", when, action, reason: "test" }
    }

    #[test]
    fn other_architectures_and_x32_numbers_are_killed() {
        let program =
            compile(&[row(libc::SYS_close, &[], FilterAction::Allow)], Otherwise::Kill).expect("compiles");
        assert_eq!(verdict(&program, libc::SYS_close, [0; 6]), ALLOW);
        assert_eq!(verdict_of(&program, libc::SYS_close as u32, 0x4000_0003, [0; 6]), KILL, "i386");
        assert_eq!(verdict(&program, libc::SYS_close | 0x4000_0000, [0; 6]), KILL, "x32");
        assert_eq!(verdict(&program, -1, [0; 6]), KILL);
    }

    #[test]
    fn checks_see_all_their_bits_and_no_others() {
        let rows = [
            row(1, &[Check::Is(0, 0x1_0000_0011), Check::Is(1, 0)], FilterAction::Notify),
            row(1, &[Check::Is(0, 7)], FilterAction::Fail(0x26)),
            row(2, &[Check::IsInt(3, u32::MAX)], FilterAction::Allow),
            row(3, &[Check::Masked(2, 0x4, 0), Check::Masked(3, 0x23, 0x22)], FilterAction::Allow),
            row(4, &[], FilterAction::Allow),
        ];
        let program = compile(&rows, Otherwise::Kill).expect("compiles");
        assert_eq!(verdict(&program, 1, [0x1_0000_0011, 0, 0, 0, 0, 0]), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(verdict(&program, 1, [0x0_0000_0011, 0, 0, 0, 0, 0]), KILL);
        assert_eq!(verdict(&program, 1, [0x1_0000_0011, 1 << 40, 0, 0, 0, 0]), KILL);
        assert_eq!(verdict(&program, 1, [7, 9, 9, 9, 9, 9]), libc::SECCOMP_RET_ERRNO | 0x26);
        assert_eq!(verdict(&program, 2, [0, 0, 0, 0xffff_ffff, 0, 0]), ALLOW);
        assert_eq!(verdict(&program, 2, [0, 0, 0, u64::MAX, 0, 0]), ALLOW);
        assert_eq!(verdict(&program, 2, [0; 6]), KILL);
        assert_eq!(verdict(&program, 3, [0, 0, 0x3, 0x22, 0, 0]), ALLOW);
        assert_eq!(verdict(&program, 3, [0, 0, 0x7, 0x22, 0, 0]), KILL);
        assert_eq!(verdict(&program, 3, [0, 0, 0x3, 0x21, 0, 0]), KILL);
        assert_eq!(verdict(&program, 4, [0; 6]), ALLOW, "rows after failed checks are still evaluated");
        assert_eq!(verdict(&program, 5, [0; 6]), KILL);
    }

    #[test]
    fn exactly_the_calls_without_a_row_are_reported() {
        let rows = [row(1, &[Check::IsInt(0, 7)], FilterAction::Allow), row(2, &[], FilterAction::Fail(1))];
        let program = compile(&rows, Otherwise::Report).expect("compiles");
        let reported = libc::SECCOMP_RET_USER_NOTIF;
        assert_eq!(verdict(&program, 1, [7, 0, 0, 0, 0, 0]), ALLOW);
        for (number, first) in [(1, 8), (3, 0), (449, 7)] {
            assert_eq!(verdict(&program, number, [first, 0, 0, 0, 0, 0]), reported, "{number}");
            assert!(!rows.iter().any(|row| row.matches(number as i32, &[first, 0, 0, 0, 0, 0])));
        }
        assert_eq!(verdict_of(&program, 1, 0x4000_0003, [7, 0, 0, 0, 0, 0]), KILL, "i386");
        assert_eq!(verdict(&program, 1 | 0x4000_0000, [7, 0, 0, 0, 0, 0]), KILL, "x32");
    }
}
