//! The code that drivers run: it appends a token to the state of its session, or has no end.

use crate::driver::{ANY, Driver, Failure, Outcome};
use crate::follower::LateFollower;
use crate::model::{Step, StepReply};
use vm_system_protocol::model::{Execution, ExecutionStatus};
use vm_system_tests::client::{record, repl, value};

/// Code without an end, until it is cancelled.
pub(crate) const LOOP: &str = "for (;;);";
/// Lines for a follower that does not read: more than the buffers of its connection hold.
const MANY_LINES: u64 = 400;

impl Driver<'_> {
    /// Prints some lines and appends a token, to a file first.
    pub(crate) fn append(&mut self, chosen: usize, to_file: bool) -> Outcome<()> {
        let (token, lines) = (self.token(), self.random.below(40));
        let file = self.file();
        let write = if to_file {
            format!("require('fs').appendFileSync('{file}', '{token}\\n');")
        } else {
            String::new()
        };
        let code = format!(
            "{} {write} (globalThis.tokens ??= []).push('{token}'); '{token}'",
            prints(&token, lines)
        );
        let session = self.known[chosen].session.clone();
        let op = repl(&session, &code, true);
        let printed = token.clone();
        let mut step = Step { token, code, printed, lines, reply: StepReply::Unknown, to_file };
        match self.request(op) {
            Ok(state) => {
                let execution = record(state);
                if execution.status != ExecutionStatus::Ok {
                    self.failed(&execution, to_file);
                } else if !execution.degraded {
                    assert_eq!(
                        value(execution.events.as_deref().unwrap_or_default()),
                        Some(&*format!("'{}'", step.token))
                    );
                    step.reply = StepReply::Acknowledged(execution.id);
                }
                self.note(chosen, step);
                Ok(())
            }
            Err(failure) => {
                if failure.may_have_happened() {
                    self.note(chosen, step);
                }
                Err(failure)
            }
        }
    }

    /// An execution fails only because its worker or its broker was killed.
    fn failed(&self, execution: &Execution, to_file: bool) {
        let error = execution.error.as_ref().unwrap_or_else(|| panic!("no error: {execution:?}"));
        let is_worker = error.code == "WORKER_DIED";
        assert!((is_worker || to_file) && self.strikes.any_since(0, ANY), "{execution:?}");
    }

    /// Starts code that waits for a task, and answers it.
    pub(crate) fn question(&mut self, chosen: usize) -> Outcome<()> {
        let token = self.token();
        let code = format!("(globalThis.tokens ??= []).push('{token}' + CC('{token}')); '{token}'");
        let printed = token.clone();
        let step = Step { token, code, printed, lines: 0, reply: StepReply::Unknown, to_file: false };
        self.begin(chosen, step)?;
        self.settle(chosen);
        Ok(())
    }

    /// Starts code that prints much, and a follower that reads it later.
    pub(crate) fn follow(&mut self, chosen: usize) -> Outcome<()> {
        if self.follower.is_some() {
            self.read_late();
            return Ok(());
        }
        let token = self.token();
        let printed = "-".repeat(1_000) + &token;
        let prints = prints(&printed, MANY_LINES);
        let code = format!("{prints} (globalThis.tokens ??= []).push('{token}'); '{token}'");
        let (lines, reply) = (MANY_LINES, StepReply::Unknown);
        let step = Step { token, code, printed, lines, reply, to_file: false };
        if let Some(execution) = self.begin(chosen, step)? {
            self.follower = Some(LateFollower::begin(&self.site.socket, execution.id));
        }
        Ok(())
    }

    /// Reads the events that were sent to the follower meanwhile, and the rest.
    pub(crate) fn read_late(&mut self) {
        if let Some(follower) = self.follower.take() {
            let read = follower.read(self);
            self.totals.followed += u32::from(read);
        }
    }

    /// Starts the code of a step without waiting for its end.
    fn begin(&mut self, chosen: usize, step: Step) -> Outcome<Option<Execution>> {
        let session = self.known[chosen].session.clone();
        let result = self.request(repl(&session, &step.code, false));
        match result {
            Ok(execution) => {
                self.note(chosen, step);
                Ok(Some(record(execution)))
            }
            Err(failure) => {
                if failure.may_have_happened() {
                    self.note(chosen, step);
                    return Ok(None);
                }
                Err(failure)
            }
        }
    }

    /// Starts code without an end, and cancels it.
    pub(crate) fn cancel(&mut self, chosen: usize) -> Outcome<()> {
        let session = self.known[chosen].session.clone();
        match self.request(repl(&session, LOOP, false)) {
            Ok(_) | Err(Failure::Connection) => {
                self.settle(chosen);
                Ok(())
            }
            Err(refused) => Err(refused),
        }
    }
}

/// Code that prints numbered lines.
fn prints(text: &str, lines: u64) -> String {
    format!("for (let line = 0; line < {lines}; line++) console.log(`{text} ${{line}}`);")
}
