//! `docs/security/escape-suite.md`, from the rows and from what a run has seen.

use super::{EscapeAttempt, EscapeProbe, Evidence, Outside};
use std::fmt::Write as _;

/// The document's path from the root of the repository.
pub const PATH: &str = "docs/security/escape-suite.md";

const HEAD: &str = "\
# The escape suite

Written by `tests/tests/system/escape.rs` from what it has seen; do not edit. `VM_SYSTEM_BLESS=1` writes it again, and the test
fails if it differs from a run.

Each probe is native code in a worker of a running daemon, as an attacker has it who controls the JavaScript engine: the same
binary, jail and start as those of the product, with another main loop in the worker (`tests/src/bin/hostile_worker.rs`). The suite
runs with a daemon of root and with one of an unprivileged user. After each probe a sibling session must still respond; at the end
the supervisor has as many descriptors and as much memory as before.

*In a worker* is what happened there. `seccomp(call)` and the like is the closing reason of the session: a forbidden call is not
made, and its worker is killed. Anything else is what the probe got, and the session went on. *Outside* is the same probe as
root of fresh namespaces, without the other walls, so that a probe which fails for another reason is noticed: `succeeds`;
`judged` where the kernel's own checks decide, because the call needs rights that no test may have or arguments that do harm;
`ends too` where the probe harms its own process alone.

";

/// The document. `observed`: what a run has seen in a worker, for each attempt and probe.
pub fn text(rows: &[&EscapeAttempt], observed: &[Vec<String>]) -> String {
    let mut page = HEAD.to_owned();
    let probes: usize = rows.iter().map(|row| row.probes.len()).sum();
    let _ = writeln!(page, "{} attempts, {probes} probes.", rows.len());
    for (row, seen) in rows.iter().zip(observed) {
        let _ = writeln!(page, "\n## {} {}\n", row.number, row.name);
        if !row.probes.is_empty() {
            page.push_str("| probe | in a worker | outside |\n|---|---|---|\n");
        }
        for (probe, seen) in row.probes.iter().zip(seen) {
            let _ = writeln!(page, "| {} | `{seen}` | {} |", probe.name, outside(probe));
        }
        if !row.probes.is_empty() && !row.evidence.is_empty() {
            page.push('\n');
        }
        for evidence in row.evidence {
            let _ = match evidence {
                Evidence::Test(file, name) => {
                    writeln!(page, "- Test `{}` in `{file}`", name.trim_matches('"'))
                }
                Evidence::Document(file, passage) => writeln!(page, "- Documented in `{file}`: {passage}"),
                Evidence::Later(why) => writeln!(page, "- Not proven: {why}"),
            };
        }
    }
    page
}

fn outside(probe: &EscapeProbe) -> &'static str {
    match probe.outside {
        Outside::Succeeds => "succeeds",
        Outside::IsJudged => "judged",
        Outside::EndsToo => "ends too",
    }
}
