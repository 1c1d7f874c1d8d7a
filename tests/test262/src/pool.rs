//! Children that run tests: one thread and one child each, a queue, a time limit for every test.
//!
//! A child that crashes, hangs or exceeds its memory fails the test that it was running, and no other.

use crate::protocol::{Job, Verdict, receive, send};
use crate::section::EngineName;
use crate::suite::{Suite, TestFile};
use anyhow::{Context as _, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How the tests are run.
#[derive(Clone, Debug)]
pub struct PoolLimits {
    /// Children at a time.
    pub jobs: usize,
    /// Longest time for one test, in milliseconds.
    pub test_ms: u16,
    /// The runner's own binary, which is also the child.
    pub child: PathBuf,
    /// The engine that the children run.
    pub engine: EngineName,
}

/// Runs the tests at these indices of the suite; verdicts in the same order.
pub fn run(suite: &Suite, places: &[usize], limits: &PoolLimits) -> Result<Vec<Verdict>> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(vec![None; places.len()]);
    std::thread::scope(|scope| -> Result<()> {
        let work = || -> Result<()> {
            let mut runner = None;
            loop {
                let turn = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = places.get(turn) else { return Ok(()) };
                let verdict = run_one(suite, &suite.tests[*place], &mut runner, limits)?;
                let mut verdicts =
                    verdicts.lock().map_err(|_| anyhow::anyhow!("another runner thread panicked"))?;
                verdicts[turn] = Some(verdict);
                if turn % 1000 == 999 {
                    eprintln!("test262: {} of {}", turn + 1, places.len());
                }
            }
        };
        let threads: Vec<_> = (0..limits.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a runner thread panicked"))??;
        }
        Ok(())
    })?;
    let verdicts = verdicts.into_inner().map_err(|_| anyhow::anyhow!("a runner thread panicked"))?;
    verdicts.into_iter().map(|verdict| verdict.context("a test was not run")).collect()
}

fn run_one(
    suite: &Suite,
    test: &TestFile,
    runner: &mut Option<Runner>,
    limits: &PoolLimits,
) -> Result<Verdict> {
    let job = Job {
        path: test.path.clone(),
        prelude: suite.prelude(test)?,
        source: test.source.clone(),
        root: suite.root.clone(),
        modes: limits.engine.modes(&test.metadata),
        negative: test.metadata.negative.clone(),
        asynchronous: test.metadata.has_flag("async"),
    };
    let mut running = match runner.take() {
        Some(running) => running,
        None => Runner::start(&limits.child, limits.engine)?,
    };
    match running.run(&job, limits.test_ms) {
        Ok(verdict) => {
            running.left -= 1;
            *runner = Some(running).filter(|running| running.left > 0);
            Ok(verdict)
        }
        Err(failure) => Ok(Verdict::Fail(running.post_mortem(&failure))),
    }
}

/// Tests of one child: a session is made for a process of its own, and leaves memory behind.
const TESTS_OF_A_CHILD: u32 = 200;

/// A child and its pipes. Killed when dropped.
struct Runner {
    /// Tests until it is replaced.
    left: u32,
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Runner {
    fn start(program: &Path, engine: EngineName) -> Result<Runner> {
        let mut child = Command::new(program)
            .args(["child", engine.as_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let input = child.stdin.take().context("the child has no standard input")?;
        let output = child.stdout.take().context("the child has no standard output")?;
        Ok(Runner { left: TESTS_OF_A_CHILD, child, input, output })
    }

    /// The verdict, or the failure of the child.
    fn run(&mut self, job: &Job, test_ms: u16) -> Result<Verdict> {
        send(&mut self.input, job)?;
        let mut ready = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, PollTimeout::from(test_ms))? == 0 {
            anyhow::bail!("timeout");
        }
        receive(&mut self.output)?.context("crash")
    }

    /// Waits for the child and describes its exit.
    fn post_mortem(mut self, failure: &anyhow::Error) -> String {
        use std::os::unix::process::ExitStatusExt as _;
        if failure.to_string() == "timeout" {
            return "timeout".to_owned();
        }
        match self.child.wait() {
            Ok(status) => match status.signal() {
                Some(signal) => format!("crash: signal {signal}"),
                None => format!("crash: exit code {}", status.code().unwrap_or(-1)),
            },
            Err(error) => format!("crash: {error}"),
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Fails only if the child has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
