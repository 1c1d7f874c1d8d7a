//! The escape suite: what native code in a worker tries in order to reach something outside of its session. One row per attempt;
//! `tests/tests/system/escape.rs` makes each in a worker of a real daemon, and outside of the jail, where it must have an effect: so a
//! probe that fails for another reason than a wall is noticed. Knows nothing of the daemon.
//!
//! - [`processes`], [`files`], [`kernel`], [`memory`], [`channel`]: the rows
//! - [`acts`]: probes that are more than one system call; [`sys`]: the calls themselves
//! - [`page`], which writes `docs/security/escape-suite.md`

#[allow(clippy::unnecessary_wraps, reason = "all probes have one type")]
mod acts;
mod channel;
mod files;
mod kernel;
mod memory;
pub mod page;
mod processes;
mod sys;

use nix::errno::Errno;
use std::ffi::{CStr, OsString};
use vm_system_sandbox::process::{self, ExitStatus};
use vm_system_sandbox::seccomp::names;
use vm_system_sandbox::{namespaces, selftest, socket};

/// One attempt of the suite.
#[derive(Debug)]
pub struct EscapeAttempt {
    /// The probe's number; the threat model and other documents refer to it.
    pub number: u8,
    pub name: &'static str,
    /// Made as native code by this suite.
    pub probes: &'static [EscapeProbe],
    /// Further evidence.
    pub evidence: &'static [Evidence],
}

/// One thing that native code does in a worker.
#[derive(Debug)]
pub struct EscapeProbe {
    pub name: &'static str,
    act: ProbeAct,
    /// The expected outcome in a worker.
    pub inside: Inside,
    /// The expected outcome outside of the jail.
    pub outside: Outside,
}

/// How a probe is carried out.
#[derive(Debug)]
enum ProbeAct {
    /// One system call.
    Call(libc::c_long, &'static [ProbeArgument]),
    /// Anything else; the text is reported.
    Run(fn() -> Result<String, Errno>),
}

/// An argument of a system call.
#[derive(Debug, Clone, Copy)]
enum ProbeArgument {
    Number(u64),
    Text(&'static CStr),
    /// The address of 64 KiB of zeros that the kernel may write to.
    Zeros,
    /// The address of these bytes.
    Bytes(&'static [u8]),
    /// An argument vector of the program that reports that it was executed.
    Arguments,
}

/// The result of a probe in a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// The call is not made: the session ends with `seccomp(name)`.
    Forbidden,
    /// As [`Inside::Forbidden`], for a probe that makes this call.
    ForbiddenCall(&'static str),
    /// The call fails, and the session goes on.
    Fails(Errno),
    /// The probe reports this text, and the session goes on.
    Reports(&'static str),
    /// The session ends with this reason.
    Ends(&'static str),
}

/// The result of a probe outside of the jail, as the root of a fresh user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// It succeeds.
    Succeeds,
    /// The kernel's own checks refuse it, which it never reaches in a worker: it needs rights that no test may have, or has
    /// arguments that do no harm.
    IsJudged,
    /// It ends the process in the same way: it harms nothing but its own process.
    EndsToo,
}

/// Evidence for an attempt that is not a probe of this suite.
#[derive(Debug, Clone, Copy)]
pub enum Evidence {
    /// A test by file (from the root of the repository) and name.
    Test(&'static str, &'static str),
    /// A passage of a document.
    Document(&'static str, &'static str),
    /// Not proven yet, and why.
    Later(&'static str),
}

/// All attempts in the order of their numbers.
pub fn attempts() -> Vec<&'static EscapeAttempt> {
    let parts = [processes::ROWS, files::ROWS, kernel::ROWS, memory::ROWS, channel::ROWS];
    let mut rows: Vec<_> = parts.into_iter().flatten().collect();
    rows.sort_by_key(|row| row.number);
    rows
}

const fn attempt(
    number: u8,
    name: &'static str,
    probes: &'static [EscapeProbe],
    evidence: &'static [Evidence],
) -> EscapeAttempt {
    EscapeAttempt { number, name, probes, evidence }
}

/// A call that no worker may make and that succeeds outside.
const fn refused(
    name: &'static str,
    number: libc::c_long,
    arguments: &'static [ProbeArgument],
) -> EscapeProbe {
    let act = ProbeAct::Call(number, arguments);
    EscapeProbe { name, act, inside: Inside::Forbidden, outside: Outside::Succeeds }
}

/// A call that no worker may make and that the kernel's own checks refuse outside.
const fn judged(
    name: &'static str,
    number: libc::c_long,
    arguments: &'static [ProbeArgument],
) -> EscapeProbe {
    let act = ProbeAct::Call(number, arguments);
    EscapeProbe { name, act, inside: Inside::Forbidden, outside: Outside::IsJudged }
}

const fn run(
    name: &'static str,
    act: fn() -> Result<String, Errno>,
    inside: Inside,
    outside: Outside,
) -> EscapeProbe {
    EscapeProbe { name, act: ProbeAct::Run(act), inside, outside }
}

/// The report of a call that succeeded.
const SUCCEEDED: &str = "succeeded";

impl EscapeProbe {
    /// Does it; the report.
    fn act(&self) -> String {
        let result = match self.act {
            ProbeAct::Call(number, arguments) => sys::call(number, arguments).map(|_| SUCCEEDED.to_owned()),
            ProbeAct::Run(run) => run(),
        };
        result.unwrap_or_else(|errno| format!("{errno:?}"))
    }

    /// The expected closing reason of the session, or `None` if it goes on.
    pub fn reason(&self) -> Option<String> {
        match (self.inside, &self.act) {
            (Inside::Forbidden, ProbeAct::Call(number, _)) => {
                Some(format!("seccomp({})", names::name(*number as i32)))
            }
            (Inside::ForbiddenCall(name), _) => Some(format!("seccomp({name})")),
            (Inside::Ends(reason), _) => Some(reason.to_owned()),
            _ => None,
        }
    }

    /// The expected report of a session that goes on.
    pub fn report(&self) -> String {
        match self.inside {
            Inside::Fails(errno) => format!("{errno:?}"),
            Inside::Reports(text) => text.to_owned(),
            _ => String::new(),
        }
    }
}

/// The source text that makes the hostile worker carry out a probe.
pub fn source(attempt: &EscapeAttempt, probe: usize) -> String {
    format!("{PREFIX}{} {probe}", attempt.number)
}

const PREFIX: &str = "escape: ";

/// Carries out the probe that a source text names; `None`: it names none.
pub fn obey(source: &str) -> Option<String> {
    find(source.strip_prefix(PREFIX)?).map(EscapeProbe::act)
}

fn find(names: &str) -> Option<&'static EscapeProbe> {
    let (number, probe) = names.split_once(' ')?;
    let (number, probe): (u8, usize) = (number.parse().ok()?, probe.parse().ok()?);
    attempts().into_iter().find(|row| row.number == number)?.probes.get(probe)
}

/// First argument of a process that carries out a probe outside of the jail.
pub const OUTSIDE: &str = "escape-outside";
/// First argument of the program that reports that it was executed.
const EXECUTED: &str = "escape-executed";

/// Runs the mode that the arguments (program name included) name, and never returns; returns if they name none.
pub fn dispatch(mut arguments: impl Iterator<Item = OsString>) {
    let mode = arguments.nth(1);
    let rest: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    match mode.as_deref().and_then(std::ffi::OsStr::to_str) {
        Some(EXECUTED) => {
            println!("{SUCCEEDED}");
            process::exit_now(0)
        }
        Some(OUTSIDE) => process::exit_now(outside(&rest.join(" "))),
        _ => {}
    }
}

/// Carries out a probe as pid 1 and root of fresh namespaces, so that what succeeds harms nothing of the host. Prints the report,
/// or the end of the process that made it. The exit code: 0, or 1 if the probe could not be made.
fn outside(names: &str) -> i32 {
    let Some(probe) = find(names) else { return 1 };
    if let Err(error) = namespaces::enter(namespaces::Ids { uid: 65534, gid: 65534 }, None) {
        eprintln!("{error}");
        return 1;
    }
    // A child of pid 1, which may have siblings.
    let first = selftest::in_child(|| {
        let ending = selftest::in_child(|| {
            let Ok((channel, peer)) = socket::pair() else { return 1 };
            // As in a worker: the channel is descriptor 3.
            if sys::take_number(&channel, 3).is_err() {
                return 1;
            }
            println!("{}", probe.act());
            drop(peer);
            0
        });
        print_end(&ending)
    });
    i32::from(!matches!(first, Ok(ExitStatus::Exited(0))))
}

fn print_end(ending: &std::io::Result<ExitStatus>) -> i32 {
    match ending {
        Ok(ExitStatus::Exited(0)) => 0,
        Ok(ExitStatus::Exited(code)) => {
            println!("exited({code})");
            0
        }
        Ok(ExitStatus::Signaled(signal)) => {
            println!("signal {signal}");
            0
        }
        Err(_) => 1,
    }
}

/// Whether the report of a process outside is what a probe must do there. `None`: the kernel lacks the call.
pub fn is_as_expected(probe: &EscapeProbe, report: &str) -> Option<bool> {
    let is_errno =
        report.starts_with('E') && report.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    if report == "ENOSYS" {
        return None;
    }
    let ended = report.is_empty() || report.starts_with("exited(") || report.starts_with("signal ");
    Some(match probe.outside {
        // A result outside must differ from the one that a worker gets: else the probe tests nothing.
        Outside::Succeeds => !is_errno && !ended && (report == SUCCEEDED || report != probe.report()),
        Outside::IsJudged => !ended,
        Outside::EndsToo => ended,
    })
}
