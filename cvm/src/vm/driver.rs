//! A whole run: top level, `main`, jobs, suspension and resumption.
//!
//! Owns: [`run`], [`resume_pause`], [`resume_host`]. Must not: depend on opcodes.

use super::run::LoopExit;
use super::{Raise, Res, Vm};
use crate::builtins::ids;
use crate::heap::object::ObjectKind;
use crate::outcome::{HostResult, PauseAnswer, PendingRequest, RunOutcome};
use crate::program::{CompiledProgram, USER_TEMPLATES};
use crate::state::{Back, PendingJob, RunPhase, VmLimitKind, VmState};
use crate::value::Value;

/// The last line of the text of a program that ended because of a rejected promise.
///
/// A rejection counts as unhandled when nothing is left to run, neither code nor jobs, the program does not wait for an item, and
/// nothing was attached to the promise; the oldest one ends the program. A pause is a call that takes long: a promise that is rejected
/// before it may be handled after it.
pub const UNHANDLED_REJECTION: &str = "(a rejected promise that nothing handled)";

/// Runs a program until it ends, waits, or has used `fuel` instructions.
pub fn run(program: &CompiledProgram, state: &mut VmState, fuel: u64) -> RunOutcome {
    match state.phase {
        RunPhase::Start | RunPhase::Running => {}
        RunPhase::Paused | RunPhase::Host => return waiting(state),
        RunPhase::Wait => return RunOutcome::Wait { rejections: Vec::new() },
        RunPhase::Limited(kind) => return RunOutcome::Limit(kind),
        RunPhase::Broken => return RunOutcome::Corrupt("found before"),
        RunPhase::Failed => return RunOutcome::Throw(state.failure.clone().unwrap_or_default()),
        RunPhase::Done => {
            return Vm { p: program, st: state }
                .done()
                .unwrap_or(RunOutcome::Corrupt("an end without a result"));
        }
    }
    let allowed = fuel.min(state.limits.steps.saturating_sub(state.steps));
    let mut left = allowed;
    let mut vm = Vm { p: program, st: state };
    let result = vm.drive(&mut left);
    let used = allowed - left;
    state.steps += used;
    let mut vm = Vm { p: program, st: state };
    match result {
        Ok(Some(outcome @ RunOutcome::Wait { .. })) => {
            vm.collect_before_a_stop();
            outcome
        }
        Ok(Some(outcome)) => outcome,
        Ok(None) => {
            if state.steps >= state.limits.steps {
                state.end(RunPhase::Limited(VmLimitKind::Steps));
                return RunOutcome::Limit(VmLimitKind::Steps);
            }
            RunOutcome::OutOfFuel
        }
        Err(Raise::Throw(value)) => vm.failed(value, ""),
        Err(Raise::Wait(request)) => {
            state.phase = if matches!(*request, PendingRequest::Task { .. }) {
                RunPhase::Paused
            } else {
                RunPhase::Host
            };
            state.request = Some(*request);
            Vm { p: program, st: state }.collect_before_a_stop();
            waiting(state)
        }
        Err(Raise::Limit(kind)) => {
            state.end(RunPhase::Limited(kind));
            RunOutcome::Limit(kind)
        }
        Err(Raise::Fault(what)) => {
            state.end(RunPhase::Broken);
            RunOutcome::Corrupt(what)
        }
        Err(Raise::Prim(..)) => {
            state.end(RunPhase::Broken);
            RunOutcome::Corrupt("conversion outside an instruction")
        }
    }
}

fn waiting(state: &VmState) -> RunOutcome {
    match &state.request {
        Some(PendingRequest::Task { prompt, options }) => {
            RunOutcome::Pause { prompt: prompt.clone(), options: options.clone() }
        }
        Some(PendingRequest::Host { name, args }) => {
            RunOutcome::Host { name: name.clone(), args: args.clone() }
        }
        None => RunOutcome::Corrupt("waits for nothing"),
    }
}

/// Delivers the answer to a paused program; [`run`] continues it. False if the program is not paused.
pub fn resume_pause(program: &CompiledProgram, state: &mut VmState, answer: &PauseAnswer) -> bool {
    if state.phase != RunPhase::Paused {
        return false;
    }
    let mut vm = Vm { p: program, st: state };
    let value = vm.answered(answer);
    vm.answer(value);
    true
}

/// Delivers the result of a host call. False if the program does not wait for one.
pub fn resume_host(program: &CompiledProgram, state: &mut VmState, result: &HostResult) -> bool {
    if state.phase != RunPhase::Host {
        return false;
    }
    let mut vm = Vm { p: program, st: state };
    let value = match result {
        HostResult::Json(json) => Ok(vm.json_value(json)),
        HostResult::Error(message) => Err((ids::ERROR_PROTO, message)),
        HostResult::Response(response) => match vm.response_value(response) {
            Some(value) => Ok(value),
            None => return false,
        },
        HostResult::Failed { code, message } => Ok(vm.failure_value(code, message)),
    };
    vm.answer(value);
    true
}

impl Vm<'_> {
    /// The value of an answer, or prototype and message of the error that it is.
    pub(super) fn answered<'a>(
        &mut self,
        answer: &'a PauseAnswer,
    ) -> Result<Value, (crate::value::Id, &'a String)> {
        match answer {
            PauseAnswer::Text(text) => Ok(self.st.heap.str_value(text)),
            PauseAnswer::Json(json) => Ok(self.json_value(json)),
            PauseAnswer::Error(message) => Err((ids::CC_ERROR_PROTO, message)),
            PauseAnswer::Timeout(message) => Err((ids::CC_TIMEOUT_ERROR_PROTO, message)),
            PauseAnswer::Wrong(message) => Err((ids::TYPE_ERROR_PROTO, message)),
        }
    }

    fn answer(&mut self, value: Result<Value, (crate::value::Id, &String)>) {
        self.st.phase = RunPhase::Running;
        self.st.request = None;
        self.st.printed = 0;
        match value {
            Ok(value) => {
                let back = self.st.wait_back;
                self.deliver(value, back);
            }
            Err((proto, message)) => {
                let error = self.make_error(proto, message);
                self.st.thrown = Some(error);
            }
        }
    }

    /// `None`: the fuel is used up.
    fn drive(&mut self, fuel: &mut u64) -> Res<Option<RunOutcome>> {
        if let Some(error) = self.st.thrown.take() {
            self.handle(Raise::Throw(error))?;
        }
        loop {
            if self.st.heap.attention {
                self.attend(fuel)?;
                if self.st.debt > 0 {
                    return Ok(None);
                }
            }
            if !self.st.frames.is_empty()
                && let LoopExit::Fuel = self.run_loop(fuel)?
            {
                return Ok(None);
            }
            if self.st.phase == RunPhase::Start {
                self.st.phase = RunPhase::Running;
                self.push(Value::Undefined);
                self.push(Value::Obj(ids::GLOBAL));
                self.push_frame(USER_TEMPLATES, 0, Value::Undefined, Value::Undefined, Back::Result)?;
                continue;
            }
            match self.st.jobs.pop_front() {
                Some(job) => {
                    if let Err(raise) = self.start_job(job) {
                        self.handle(raise)?;
                    }
                }
                None => return self.finish().map(Some),
            }
        }
    }

    /// Handles everything that is due before the next instruction: limits, garbage collection, work that was not charged yet.
    #[inline(never)]
    pub(crate) fn attend(&mut self, fuel: &mut u64) -> Res<()> {
        if self.st.heap.too_long {
            return Err(Raise::Limit(VmLimitKind::Text));
        }
        let paid = self.st.debt.min(*fuel);
        self.st.debt -= paid;
        *fuel -= paid;
        if self.st.heap.bytes >= self.st.heap.gc_at || self.st.heap.bytes > self.st.heap.limit {
            self.collect()?;
        }
        // The rest is charged before the first instruction of the next slice.
        self.st.heap.attention = self.st.debt > 0;
        Ok(())
    }

    /// Collects garbage, and ends the program if the heap still exceeds its limit. Dead slots of frames that refer to cells become
    /// undefined first: code that no longer reads them sees no difference.
    fn collect(&mut self) -> Res<()> {
        let mut dead_slots = std::mem::take(&mut self.st.dead_slots);
        dead_slots.forget_positions();
        for frame in &self.st.frames {
            let pc = frame.pc.saturating_sub(self.p.template(frame.template).start);
            for &slot in dead_slots.dead_at(self.p, frame.template, pc).iter() {
                if let Some(value) = self.st.stack.get_mut(frame.base as usize + usize::from(slot))
                    && value.cell_id().is_some()
                {
                    *value = Value::Undefined;
                }
            }
        }
        let mut heap = std::mem::replace(&mut self.st.heap, crate::heap::Heap::new(0));
        heap.collect(self.st.roots(), &mut |template, pc| dead_slots.dead_at(self.p, template, pc));
        self.st.dead_slots = dead_slots;
        heap.bytes += self.st.bytes_beside_cells();
        self.st.heap = heap;
        if self.st.heap.bytes > self.st.heap.limit {
            return Err(Raise::Limit(VmLimitKind::Heap));
        }
        Ok(())
    }

    /// Collects garbage where that is cheaper than storing it. A heap that is still too large ends the program before its next
    /// instruction, as without a stop.
    fn collect_before_a_stop(&mut self) {
        if self.st.heap.is_worth_collecting() {
            let _ = self.collect();
        }
    }

    fn start_job(&mut self, job: PendingJob) -> Res<()> {
        match job {
            PendingJob::Call(template, args) => {
                for &a in &args {
                    self.push(a);
                }
                self.call_pre(template, args.len(), Back::Discard)
            }
            PendingJob::Resume(id, mode, value) => self.resume(id, mode, value, Back::Discard),
        }
    }

    /// The outcome when nothing is left to run.
    fn finish(&mut self) -> Res<RunOutcome> {
        // Before rejections: what waits for an item may handle them.
        if self.waits_for_items() {
            return Ok(self.wait());
        }
        if let Some((_, Value::Obj(id), _)) = self.table_after(ids::REJECTIONS, -1.0)
            && let ObjectKind::Promise(p) = &self.st.heap.obj(id).kind
        {
            let reason = p.result;
            // The promise that `main` returned is the program's result: no note is added.
            let note = if self.st.result == Value::Obj(id) { "" } else { UNHANDLED_REJECTION };
            return Ok(self.failed(reason, note));
        }
        if let Value::Obj(id) = self.st.result
            && let ObjectKind::Promise(p) = &self.st.heap.obj(id).kind
        {
            match p.state {
                0 => {
                    let error = self.make_error(
                        ids::ERROR_PROTO,
                        "the program waits for a promise that nothing can settle any more",
                    );
                    return Err(Raise::Throw(error));
                }
                1 => self.st.result = p.result,
                // The program has handled the rejection: others are reported above.
                _ => self.st.result = Value::Undefined,
            }
        }
        let done = self.done()?;
        self.st.phase = RunPhase::Done;
        Ok(done)
    }

    fn done(&mut self) -> Res<RunOutcome> {
        let json = self
            .export_json(self.st.result)
            .map_err(|error| self.type_error(&format!("The result {}", error.why())))?;
        let text = self.show(self.st.result);
        Ok(RunOutcome::Done { json, text })
    }

    /// Ends the program with an exception; a `note` is added below its stack.
    fn failed(&mut self, value: Value, note: &str) -> RunOutcome {
        self.st.end(RunPhase::Failed);
        let mut text = self.uncaught_text(value);
        if !note.is_empty() {
            text.push_str("\n    ");
            text.push_str(note);
        }
        self.st.failure = Some(text.clone());
        RunOutcome::Throw(text)
    }

    fn uncaught_text(&mut self, value: Value) -> String {
        self.error_text(value, 0)
    }

    /// An error with its stack and its causes, three levels deep.
    pub(super) fn error_text(&mut self, value: Value, depth: u32) -> String {
        if let Value::Obj(id) = value
            && matches!(self.st.heap.obj(id).kind, ObjectKind::Error)
        {
            let head = self.error_head(id);
            let stack = self.stack_of(id).map_or_else(String::new, |text| self.plain_text(Value::Str(text)));
            let frames: Vec<&str> = stack.lines().filter(|l| l.starts_with("    at ")).collect();
            let sep = if frames.is_empty() { "" } else { "\n" };
            let text = format!("{head}{sep}{}", frames.join("\n"));
            let cause = match self.own_data(id, ids::CAUSE) {
                Some(cause) if depth < 3 => format!("\ncaused by: {}", self.error_text(cause, depth + 1)),
                _ => String::new(),
            };
            return text + &cause;
        }
        self.show(value)
    }
}
