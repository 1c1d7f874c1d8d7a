//! Runs tests with cvm.

use crate::engine::{Ending, Engine, ScriptRun};
use crate::protocol::{Job, TestMode};
use vm_system_cvm::{
    CompileOptions, RunOutcome, StateConfig, UNHANDLED_REJECTION, VmLimits, VmState, compile, run,
};

/// The engine of programs. All of their code is strict.
#[derive(Clone, Copy, Debug)]
pub struct Cvm;

/// Limits of one test.
const STEPS: u64 = 400_000_000;
const HEAP_BYTES: u64 = 768 << 20;

/// The host of test262's `INTERPRETING.md`, as far as one realm and one thread allow. Harness files use some globals in functions
/// that many tests never call; reading a global as a property of `globalThis` makes the compiler accept its uses.
const HOST: &str = "var print = (text) => console.log(String(text)); \
var $262 = { global: globalThis, gc() {}, detachArrayBuffer(buffer) { if (!buffer.detached) buffer.transfer(); }, evalScript() { throw new SyntaxError('evalScript is not supported'); }, \
agent: { start() { throw new SyntaxError('agents are not supported'); } } }; \
void globalThis.Temporal; void globalThis.queueMicrotask; void globalThis.SharedArrayBuffer; void globalThis.Atomics;\n";

impl Engine for Cvm {
    fn run(&self, Job { prelude, source, .. }: &Job, _: TestMode) -> ScriptRun {
        let script = if prelude.is_empty() { source.clone() } else { format!("{HOST}{prelude}\n{source}") };
        let options =
            CompileOptions { filename: "test.js".to_owned(), typescript: false, plain_script: true };
        let program = match compile(&script, &options) {
            Ok(program) => program,
            Err(errors) => {
                let message = errors.0.first().map(|error| error.message.clone()).unwrap_or_default();
                let refused = errors.0.iter().any(|error| error.message.contains("not supported"));
                let ending =
                    if refused { Ending::Unsupported(message) } else { Ending::SyntaxError(message) };
                return ScriptRun { ending, printed: Vec::new() };
            }
        };
        let limits = VmLimits { heap_bytes: HEAP_BYTES, steps: STEPS, ..VmLimits::default() };
        let mut state = VmState::new(&program, &StateConfig { limits, seed: 1, ..StateConfig::default() });
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        state.set_time(now.map_or(0.0, |time| time.as_millis() as f64));
        let outcome = run(&program, &mut state, u64::MAX);
        let printed = state.take_output().into_iter().map(|line| line.text).collect();
        let ending = match outcome {
            RunOutcome::Done { .. } => Ending::Finished,
            // The suite's host ignores unhandled rejections.
            RunOutcome::Throw(message) if message.ends_with(UNHANDLED_REJECTION) => Ending::Finished,
            RunOutcome::Throw(message) => {
                let name = message.split([':', '\n']).next().unwrap_or_default().trim();
                Ending::Threw { name: name.trim_start_matches("Uncaught ").to_owned(), message }
            }
            RunOutcome::Limit(kind) => Ending::Stopped(format!("limit {kind:?}")),
            other => Ending::Stopped(format!("{other:?}")),
        };
        ScriptRun { ending, printed }
    }
}
