//! Durable programs over the control socket: the verbs, with the replies that tests use.

use crate::client::Client;
use crate::watch::Watch;
use vm_system_protocol::control::{
    CheckpointList, ErrorCode, GivenAnswer, ListPage, OpError, ProgramLoad, ProgramStart, RunGet, StateGet,
    TaskGet, TaskList, TaskSubmit,
};
use vm_system_protocol::model::{CheckpointInfo, ExecutionStatus, ProgramState, Run, Task, TaskStatus};

/// The name under which programs are loaded.
pub const NAME: &str = "program";

/// An execution's id.
pub fn id(run: &Run) -> String {
    run.execution.id.to_string()
}

/// The result of an execution that must have succeeded, as JSON.
#[track_caller]
pub fn result(run: &Run) -> &str {
    assert_eq!(run.execution.status, ExecutionStatus::Ok, "{:?}", run.execution.error);
    run.execution.result_json().unwrap_or_default()
}

/// The error code of a request that must fail.
#[track_caller]
pub fn code<T: std::fmt::Debug>(result: Result<T, OpError>) -> ErrorCode {
    result.expect_err("refused").code
}

/// Waits until an execution has ended.
pub fn ended(client: &mut Client, execution: &str) -> Run {
    let mut watch = Watch::begin();
    loop {
        let run = client.get_run(execution);
        if run.execution.status.is_final() {
            return run;
        }
        watch.pause(|| format!("it does not end: {run:?}"));
    }
}

impl Client {
    /// Loads a source under [`NAME`].
    pub fn load(&mut self, source: &str) {
        let op = ProgramLoad { name: NAME.to_owned(), source: source.to_owned(), ..ProgramLoad::default() };
        self.op(op).expect("a program that compiles");
    }

    /// Loads a program and starts it as a named execution.
    pub fn begin(&mut self, source: &str, name: &str) -> Run {
        self.load(source);
        self.start_program(ProgramStart { name: Some(name.to_owned()), ..ProgramStart::default() })
            .expect("started")
    }

    /// Starts [`NAME`].
    pub fn start_program(&mut self, new: ProgramStart) -> Result<Run, OpError> {
        let new = ProgramStart { program: NAME.to_owned(), ..new };
        self.op(new)
    }

    /// Answers the task of an execution.
    pub fn submit(&mut self, execution: &str, answer: &str) -> Result<Run, OpError> {
        self.op(TaskSubmit {
            execution: execution.to_owned(),
            task: None,
            result: GivenAnswer::Typed(answer.to_owned()),
            wait: true,
        })
    }

    /// The state of an execution.
    pub fn get_run(&mut self, execution: &str) -> Run {
        self.op(RunGet { execution: execution.to_owned() }).expect("there")
    }

    /// The task of an execution, or its end.
    pub fn task(&mut self, execution: &str) -> TaskStatus {
        self.op(TaskGet { execution: execution.to_owned() }).expect("there")
    }

    /// All open tasks.
    pub fn tasks(&mut self) -> Vec<Task> {
        let tasks = self.op(TaskList::pending(ListPage::first(10_000))).expect("a list");
        tasks.into_iter().map(|listed| listed.task).collect()
    }

    /// The stored checkpoints.
    pub fn checkpoints(&mut self, execution: &str) -> Vec<CheckpointInfo> {
        self.op(CheckpointList { execution: execution.to_owned() }).expect("a list")
    }

    /// The frames and variables of a program.
    pub fn state(&mut self, execution: &str) -> ProgramState {
        let op = StateGet { execution: execution.to_owned(), checkpoint: None };
        self.op(op).expect("a state")
    }
}
