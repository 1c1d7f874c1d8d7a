//! Runs tests with cvm.

use crate::engine::{Ending, Engine, ScriptRun};
use crate::protocol::{Job, TestMode};
use std::collections::{BTreeMap, VecDeque};
use vm_system_cvm::{
    CompileOptions, RunOutcome, SourceFile, StateConfig, UNHANDLED_REJECTION, VmLimits, VmState, candidates,
    compile, compile_files, imports, run,
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

/// The file with the harness, which a program with a module imports before the test.
const HARNESS: &str = "harness.js";

impl Engine for Cvm {
    fn run(&self, job: &Job, mode: TestMode) -> ScriptRun {
        let options = |filename: &str, plain_script| CompileOptions {
            filename: filename.to_owned(),
            typescript: false,
            plain_script,
            items: false,
        };
        let Job { prelude, source, path, .. } = job;
        let compiled = if mode == TestMode::Module {
            let entry = format!("import './{HARNESS}'; import './{path}';");
            compile_files(&entry, &files(job), &options("entry.js", false))
        } else {
            let script =
                if prelude.is_empty() { source.clone() } else { format!("{HOST}{prelude}\n{source}") };
            compile(&script, &options("test.js", true))
        };
        let program = match compiled {
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
                let name = message.trim_start_matches("Uncaught ");
                let end = name.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(name.len());
                Ending::Threw { name: name[..end].to_owned(), message }
            }
            RunOutcome::Limit(kind) => Ending::Stopped(format!("limit {kind:?}")),
            other => Ending::Stopped(format!("{other:?}")),
        };
        ScriptRun { ending, printed }
    }
}

/// The harness as a module, the test, and the files that it imports.
fn files(job: &Job) -> Vec<SourceFile> {
    let mut harness = format!("{HOST}{}\n", job.prelude);
    // Scripts of the harness declare globals, a module does not.
    for line in job.prelude.lines() {
        let declared = ["function ", "function* ", "async function ", "class ", "var ", "let ", "const "]
            .iter()
            .find_map(|word| line.strip_prefix(word));
        let is_part = |letter: &char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
        let name: String = declared.unwrap_or_default().chars().take_while(is_part).collect();
        if !name.is_empty() {
            harness.extend(["globalThis.", &name, " = ", &name, ";\n"]);
        }
    }
    harness.push_str("globalThis.print = print; globalThis.$262 = $262;\n");
    let mut texts = BTreeMap::from([(HARNESS.to_owned(), harness)]);
    let mut queue = VecDeque::from([SourceFile { name: job.path.clone(), text: job.source.clone() }]);
    while let Some(file) = queue.pop_front() {
        for import in imports(&file) {
            let names = candidates(&file.name, &import.specifier).unwrap_or_default();
            let read = |name: String| Some((std::fs::read_to_string(job.root.join(&name)).ok()?, name));
            let found = names.into_iter().find_map(read);
            if let Some((text, name)) = found.filter(|(_, name)| !texts.contains_key(name)) {
                texts.insert(name.clone(), text.clone());
                queue.push_back(SourceFile { name, text });
            }
        }
        texts.insert(file.name, file.text);
    }
    texts.into_iter().map(|(name, text)| SourceFile { name, text }).collect()
}
