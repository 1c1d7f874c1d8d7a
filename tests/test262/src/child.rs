//! The child: reads jobs, runs them, judges the results.

use crate::engine::{Ending, Engine};
use crate::protocol::{Job, TestMode, Verdict, receive, send};
use anyhow::Result;
use nix::sys::resource::{Resource, setrlimit};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Address space of a child, in bytes. A child that exceeds it exits, which fails one test.
const MEMORY: u64 = 3 << 30;

/// The line that an asynchronous test prints when it is done.
const COMPLETE: &str = "Test262:AsyncTestComplete";
const FAILURE: &str = "Test262:AsyncTestFailure:";

/// Serves jobs from standard input until it ends.
pub fn serve(engine: &dyn Engine) -> Result<()> {
    setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY)?;
    std::panic::set_hook(Box::new(|_| {}));
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    while let Some(job) = receive::<Job>(&mut input)? {
        let verdict = catch_unwind(AssertUnwindSafe(|| judge_all(engine, &job)));
        let verdict = verdict.unwrap_or_else(|payload| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("?");
            Verdict::Fail(format!("panic: {text}"))
        });
        send(&mut output, &verdict)?;
    }
    Ok(())
}

/// The first failure of a job's modes.
fn judge_all(engine: &dyn Engine, job: &Job) -> Verdict {
    let mut verdicts = job.modes.iter().map(|mode| match judge(engine, job, *mode) {
        Verdict::Fail(why) if *mode == TestMode::StrictScript => Verdict::Fail(format!("strict mode: {why}")),
        verdict => verdict,
    });
    verdicts.find(|verdict| *verdict != Verdict::Pass).unwrap_or(Verdict::Pass)
}

/// Runs a job and compares its end with the test's metadata.
fn judge(engine: &dyn Engine, job: &Job, mode: TestMode) -> Verdict {
    let run = engine.run(job, mode);
    if let Some(negative) = &job.negative {
        return match (&run.ending, negative.phase.as_str()) {
            (Ending::SyntaxError(_), "parse" | "resolution") if negative.kind == "SyntaxError" => {
                Verdict::Pass
            }
            // An error of a file that the test imports; the text itself is not evaluated (`$DONOTEVALUATE`).
            (Ending::Threw { name, .. }, "runtime" | "resolution") if *name == negative.kind => Verdict::Pass,
            (Ending::Finished, _) => {
                Verdict::Fail(format!("no {} in phase {}", negative.kind, negative.phase))
            }
            (other, _) => Verdict::Fail(format!("negative test: {}", other.describe())),
        };
    }
    match run.ending {
        Ending::Finished => {}
        other => return Verdict::Fail(other.describe()),
    }
    if job.asynchronous {
        let failed = run.printed.iter().find_map(|line| line.strip_prefix(FAILURE));
        return match failed {
            Some(reason) => Verdict::Fail(format!("async {reason}")),
            None if run.printed.iter().any(|line| line == COMPLETE) => Verdict::Pass,
            None => Verdict::Fail("async test did not call $DONE".to_owned()),
        };
    }
    Verdict::Pass
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ScriptRun;
    use crate::metadata::Negative;

    struct Fixed(Ending, Vec<String>);

    impl Engine for Fixed {
        fn run(&self, _: &Job, _: TestMode) -> ScriptRun {
            ScriptRun { ending: self.0.clone(), printed: self.1.clone() }
        }
    }

    fn verdict(ending: Ending, printed: &[&str], negative: Option<(&str, &str)>, asynchronous: bool) -> bool {
        let negative =
            negative.map(|(phase, kind)| Negative { phase: phase.to_owned(), kind: kind.to_owned() });
        let job = Job {
            path: String::new(),
            prelude: String::new(),
            source: String::new(),
            root: std::path::PathBuf::new(),
            modes: vec![TestMode::Script],
            negative,
            asynchronous,
        };
        let printed = printed.iter().map(|line| (*line).to_owned()).collect();
        judge_all(&Fixed(ending, printed), &job) == Verdict::Pass
    }

    #[test]
    fn a_test_passes_only_with_its_expected_end() {
        let threw = || Ending::Threw { name: "TypeError".to_owned(), message: String::new() };
        let syntax = || Ending::SyntaxError(String::new());
        assert!(verdict(Ending::Finished, &[], None, false));
        assert!(!verdict(threw(), &[], None, false));
        assert!(verdict(threw(), &[], Some(("runtime", "TypeError")), false));
        assert!(!verdict(threw(), &[], Some(("runtime", "RangeError")), false));
        assert!(!verdict(threw(), &[], Some(("parse", "SyntaxError")), false));
        assert!(verdict(syntax(), &[], Some(("parse", "SyntaxError")), false));
        assert!(!verdict(Ending::Finished, &[], Some(("parse", "SyntaxError")), false));
        assert!(!verdict(Ending::Finished, &[], None, true));
        assert!(verdict(Ending::Finished, &[COMPLETE], None, true));
        assert!(!verdict(Ending::Finished, &["Test262:AsyncTestFailure:x", COMPLETE], None, true));
    }
}
