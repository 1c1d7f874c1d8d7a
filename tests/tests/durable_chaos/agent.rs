//! An agent: starts programs, answers their tasks, records the acknowledgements, and compares them with the results.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;
use vm_system_protocol::control::{
    CheckpointList, ErrorCode, ExecEvents, GivenAnswer, OpError, ProgramStart, RunGet, TaskSubmit, Verb,
};
use vm_system_protocol::model::{CheckpointInfo, Event, EventPayload, ExecutionStatus, Run};
use vm_system_tests::PATIENCE;
use vm_system_tests::SeededRandom;
use vm_system_tests::fragile::Fragile;
use vm_system_tests::programs::NAME;
use vm_system_tests::watch::{self, Watch};

/// Tasks in every form (pauses, alone, beside a timer, in a race, two at once), output, files, computing, and at the end a task that times
/// out. It does not wait for the timers of its races.
pub(crate) const PROGRAM: &str = "
    const [name, steps, work] = [args[0], Number(args[1]), Number(args[2])];
    async function main() {
        const got = [];
        const use = answer => {
            const i = got.length;
            got.push(answer);
            console.log(`${i} ${answer}`);
            if (i % 3 === 1 && !fs.writeFile(`${name}/${i}`, answer)) throw `${i} is not written`;
            let n = 0;
            while (n < work) n++;
        };
        for (let i = 0; i < steps; i++) {
            switch (i % 5) {
                case 0: use(CC(`${i}`)); break;
                case 1: use(await CC.async(`${i}`)); break;
                case 2: use((await Promise.all([sleep(5), CC.async(`${i}`)]))[1]); break;
                case 3: use(await Promise.race([sleep(3600000), CC.async(`${i}`)])); break;
                default: {
                    const both = [CC.async(`${i}`)];
                    if (i + 1 < steps) both.push(CC.async(`${++i}`));
                    (await Promise.all(both)).forEach(use);
                }
            }
        }
        got.push(CC('late', { timeout_ms: 40, default: 'by default' }));
        console.log('end');
        return got;
    }
";

/// Executions that an agent drives at a time.
const AT_A_TIME: usize = 3;

/// A task, as far as the agent knows.
#[derive(Debug, Default)]
struct Step {
    /// Answers that were sent; whether one was accepted is unknown.
    offered: Vec<String>,
    acknowledged: Option<String>,
}

/// An execution that has not ended.
#[derive(Debug)]
struct Known {
    name: String,
    started: bool,
    work: u64,
    steps: Vec<Step>,
    since: Instant,
    /// The last received state.
    last: Option<Run>,
}

/// One agent.
pub(crate) struct Agent {
    name: u64,
    random: SeededRandom,
    client: Fragile,
    worktree: PathBuf,
    sent: Sender<()>,
    begun: u32,
}

impl Agent {
    pub(crate) fn new(
        name: u64,
        random: SeededRandom,
        socket: &Path,
        worktree: &Path,
        sent: Sender<()>,
    ) -> Self {
        Self { name, random, client: Fragile::new(socket), worktree: worktree.to_owned(), sent, begun: 0 }
    }

    /// Starts and drives executions until `enough` is set, then drives the open ones to their ends; their count.
    pub(crate) fn work(mut self, enough: &AtomicBool) -> u32 {
        let mut known: Vec<Known> = Vec::new();
        loop {
            while known.len() < AT_A_TIME && !enough.load(Ordering::Acquire) {
                let next = self.next();
                known.push(next);
            }
            if known.is_empty() {
                return self.begun;
            }
            let mut left = Vec::new();
            for mut program in known {
                if !self.turn(&mut program) {
                    assert!(program.since.elapsed() < PATIENCE, "it does not continue: {program:?}");
                    left.push(program);
                }
            }
            known = left;
            watch::moment();
        }
    }

    fn next(&mut self) -> Known {
        self.begun += 1;
        Known {
            name: format!("{}-{}", self.name, self.begun),
            started: false,
            work: [0, 100, 20_000][self.random.index(3)],
            steps: (0..3 + self.random.below(6)).map(|_| Step::default()).collect(),
            since: Instant::now(),
            last: None,
        }
    }

    /// `None`: the connection failed.
    fn op<V: Verb>(&mut self, verb: V) -> Option<Result<V::Reply, OpError>> {
        let sent = || {
            // The receiver may be gone.
            let _ = self.sent.send(());
        };
        self.client.op(verb, sent).ok()
    }

    /// Reads the state of an execution and answers at most one task; true once the execution has ended.
    fn turn(&mut self, program: &mut Known) -> bool {
        if !program.started {
            let new = ProgramStart {
                program: NAME.to_owned(),
                name: Some(program.name.clone()),
                args: vec![program.name.clone(), program.steps.len().to_string(), program.work.to_string()],
                worktree_path: Some(self.worktree.to_string_lossy().into_owned()),
                ..ProgramStart::default()
            };
            program.started = match self.op(new) {
                Some(Ok(_)) => true,
                // It was stored before the connection broke.
                Some(Err(error)) => error.code == ErrorCode::Conflict,
                None => false,
            };
            return false;
        }
        let op = RunGet { execution: program.name.clone() };
        let Some(reply) = self.op(op) else { return false };
        let run = match reply {
            Ok(run) => run,
            other => panic!("{}: {other:?}", program.name),
        };
        program.last = Some(run.clone());
        match run.execution.status {
            ExecutionStatus::Running => false,
            ExecutionStatus::Waiting => {
                self.answer(program, &run);
                false
            }
            _ => {
                self.compare(program, &run);
                true
            }
        }
    }

    fn answer(&mut self, program: &mut Known, run: &Run) {
        let Some(task) = &run.task else { return };
        let Ok(number) = task.prompt.parse::<usize>() else { return };
        let repeated = program.steps[number..].iter().any(|step| step.acknowledged.is_some());
        assert!(!repeated, "task {number} is open after its answer was acknowledged: {program:?}");
        let step = &mut program.steps[number];
        let answer = format!("{}:{number}:{}", program.name, step.offered.len());
        step.offered.push(answer.clone());
        let op = TaskSubmit {
            execution: program.name.clone(),
            task: Some(task.id.to_string()),
            result: GivenAnswer::Typed(answer.clone()),
            // Without `wait`, the acknowledgement is as binding.
            wait: number % 2 == 0,
        };
        match self.op(op) {
            Some(Ok(_)) => program.steps[number].acknowledged = Some(answer),
            Some(Err(error)) if error.code == ErrorCode::TaskNotPending => {
                let step = &program.steps[number];
                assert!(step.offered.len() > 1, "no other client answers {}: {step:?}", program.name);
            }
            // It may have been accepted or not.
            Some(Err(_)) | None => {}
        }
    }

    fn compare(&mut self, program: &Known, run: &Run) {
        let about = format!("{program:?}\n{run:?}");
        assert_eq!(run.execution.status, ExecutionStatus::Ok, "{about}");
        let result = run
            .execution
            .result
            .as_ref()
            .and_then(|result| result.json.as_ref()?.to_value())
            .expect("a result");
        let got: Vec<String> = serde_json::from_value(result).expect("texts");
        assert_eq!(got.len(), program.steps.len() + 1, "{about}");
        assert_eq!(got[program.steps.len()], "by default");
        for (step, got) in program.steps.iter().zip(&got) {
            match &step.acknowledged {
                Some(answer) => assert_eq!(answer, got, "{about}"),
                None => assert!(step.offered.contains(got), "{got} was never sent: {about}"),
            }
        }
        let (lines, prompts): (Vec<_>, Vec<_>) = self
            .patiently(|agent| agent.events(run))
            .into_iter()
            .enumerate()
            .map(|(place, event)| {
                assert_eq!(event.seq, place as u64 + 1, "a gap in the output: {about}");
                event.payload
            })
            .partition(|payload| matches!(payload, EventPayload::Console { .. }));
        let numbered = || got.iter().enumerate().take(program.steps.len());
        let wanted: Vec<String> =
            numbered().map(|(i, got)| format!("{i} {got}")).chain(["end".to_owned()]).collect();
        let lines: Vec<String> = lines.into_iter().filter_map(text).collect();
        assert_eq!(lines, wanted, "{about}");
        let wanted: Vec<String> = numbered().map(|(i, _)| i.to_string()).chain(["late".to_owned()]).collect();
        let prompts: Vec<String> = prompts.into_iter().filter_map(text).collect();
        assert_eq!(prompts, wanted, "each task exists once: {about}");
        for (i, got) in numbered().filter(|(i, _)| i % 3 == 1) {
            let file = self.worktree.join(&program.name).join(i.to_string());
            assert_eq!(&std::fs::read_to_string(file).expect("written"), got, "{about}");
        }
        let effects = self.patiently(|agent| agent.checkpoints(run));
        let effects = effects.iter().filter(|checkpoint| checkpoint.cause == "effect").count();
        assert_eq!(effects, numbered().filter(|(i, _)| i % 3 == 1).count(), "{about}");
    }

    /// Repeats a request until the daemon replies.
    fn patiently<T>(&mut self, mut request: impl FnMut(&mut Self) -> Option<T>) -> T {
        let mut watch = Watch::begin();
        loop {
            if let Some(reply) = request(self) {
                return reply;
            }
            watch.pause(|| "the daemon does not reply".to_owned());
        }
    }

    fn events(&mut self, run: &Run) -> Option<Vec<Event>> {
        let execution = run.execution.id.to_string();
        match self.op(ExecEvents { execution, after_seq: 0, limit: 0, follow: false })? {
            Ok(events) => Some(events),
            other => panic!("{other:?}"),
        }
    }

    fn checkpoints(&mut self, run: &Run) -> Option<Vec<CheckpointInfo>> {
        match self.op(CheckpointList { execution: run.execution.id.to_string() })? {
            Ok(list) => Some(list),
            other => panic!("{other:?}"),
        }
    }
}

fn text(payload: EventPayload) -> Option<String> {
    match payload {
        EventPayload::Console { text, .. } => Some(text),
        EventPayload::Task { prompt, .. } => Some(prompt),
        _ => None,
    }
}
