//! One run of the program up to the next stop: a pause, a host call, a checkpoint after many steps, the end.

use super::output::EventBatch;
use super::{ProgramWorker, items, requests, send};
use crate::link::Link;
use vm_system_cvm::{
    CompiledProgram, DroppedOutput, FETCH, PauseAnswer, RunOutcome, VmLimitKind, VmState, resume_host,
    resume_pause, run,
};
use vm_system_protocol::counted::counted;
use vm_system_protocol::durable::{
    Cause, DurableLimit, End, FromDurable, HostCall, MESSAGE_BYTES, PROMPT_BYTES, RESULT_BYTES, Segment,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ConsoleLevel, EventPayload, console_piece};

/// Instructions of one slice; console lines are collected after each, which bounds their memory.
const SLICE: u64 = 2_048;
/// Slices between two readings of the clocks.
const CLOCK_SLICES: u32 = 8;

impl ProgramWorker {
    /// Runs to the next stop and reports it.
    pub(super) fn run(&mut self, segment: Segment, link: &mut Link) -> Option<()> {
        self.clock.begin(segment, self.state.as_ref()?.steps());
        let mut output = EventBatch::default();
        let cause = self.until_stop(&mut output, link)?;
        if matches!(cause, Cause::Pause { .. } | Cause::Wait | Cause::Ended(_)) {
            let dropped = self.clock.take_dropped();
            if dropped.lines > 0 {
                output.push(dropped_mark(dropped), self.clock.elapsed_us(), link);
            }
        }
        if let Cause::Ended(End::Threw { message, stack, full_bytes }) = &cause {
            let payload = exception(message.clone(), stack.clone(), *full_bytes);
            output.push(payload, self.clock.elapsed_us(), link);
        }
        output.flush(link);
        match cause {
            Cause::Effect(call) if call.name != "writeFile" => {
                send(link, FromDurable::Call(call));
                Some(())
            }
            cause => self.checkpoint(cause, link),
        }
    }

    fn until_stop(&mut self, output: &mut EventBatch, link: &mut Link) -> Option<Cause> {
        self.state.as_mut()?.set_time(self.clock.now_ms());
        loop {
            let (program, state) = (self.program.as_ref()?, self.state.as_mut()?);
            let steps = self.clock.steps_until_checkpoint(state.steps());
            let outcome = run(program, state, steps.clamp(1, SLICE));
            for line in state.take_output() {
                let mut rest = line.text.as_str();
                loop {
                    let (piece, behind) = rest.split_at(console_piece(rest).len());
                    if !self.clock.admits_event(piece.len()) {
                        self.clock.drop_output(DroppedOutput { lines: 1, bytes: rest.len() as u64 });
                        break;
                    }
                    let more = !behind.is_empty();
                    output.take(line.level, piece, more, self.clock.elapsed_us(), link);
                    if !more {
                        break;
                    }
                    rest = behind;
                }
            }
            self.clock.drop_output(state.take_dropped());
            let new_items = state.take_new_items();
            if !new_items.is_empty() {
                items::send_new(new_items, self.clock.elapsed_us(), link);
            }
            match outcome {
                RunOutcome::OutOfFuel => {}
                RunOutcome::Wait { rejections } => {
                    for text in &rejections {
                        let (message, stack, full_bytes) = cut_exception(text);
                        output.push(exception(message, stack, full_bytes), self.clock.elapsed_us(), link);
                    }
                    let Some(next) = self.items.left.pop_front() else { return Some(Cause::Wait) };
                    if !self.apply(next)? {
                        return Some(Cause::Ended(End::Corrupt("an impossible answer".to_owned())));
                    }
                }
                RunOutcome::Pause { prompt, options } => {
                    if prompt.len() + options.as_ref().map_or(0, String::len) <= PROMPT_BYTES {
                        let options = options.map(JsonText::from_untrusted);
                        return Some(Cause::Pause { prompt, options });
                    }
                    let message = format!("the prompt has more than {PROMPT_BYTES} bytes");
                    resume_pause(program, state, &PauseAnswer::Error(message));
                }
                RunOutcome::Host { name, args } if name == FETCH => match requests::request(&args) {
                    Some(Ok(request)) => return Some(Cause::Request(Box::new(request))),
                    Some(Err(refused)) => {
                        resume_host(program, state, &refused);
                    }
                    None => return Some(Cause::Ended(End::Corrupt("an impossible request".to_owned()))),
                },
                RunOutcome::Host { name, args } => {
                    return Some(Cause::Effect(HostCall { name, args: JsonText::from_untrusted(args) }));
                }
                ended => return Some(Cause::Ended(end(ended))),
            }
            let state = self.state.as_mut()?;
            self.slices = self.slices.wrapping_add(1);
            let clocks_due = self.slices.is_multiple_of(CLOCK_SLICES);
            if clocks_due {
                if let Some(end) = self.clock.stop() {
                    return Some(Cause::Ended(end));
                }
                state.set_time(self.clock.now_ms());
            }
            let late = clocks_due && self.clock.is_checkpoint_late();
            if late || self.clock.steps_until_checkpoint(state.steps()) == 0 {
                return Some(Cause::Steps);
            }
        }
    }
}

/// The event that says how much output was dropped before it.
fn dropped_mark(dropped: DroppedOutput) -> EventPayload {
    let DroppedOutput { lines, bytes } = dropped;
    let were = if lines == 1 { "was" } else { "were" };
    let (lines, bytes) = (counted(lines, "line"), counted(bytes, "byte"));
    let message = format!(
        "{lines} of output ({bytes}) {were} dropped: more than max_events and max_output_kb permit between two answers"
    );
    EventPayload::System { message, level: ConsoleLevel::Warn, code: None }
}

/// Why a checkpoint is made with a response in the state: its end, if the memory that it may use is exceeded.
pub(super) fn response_cause(program: &CompiledProgram, state: &mut VmState) -> Cause {
    // Executes nothing, but collects garbage if it has to.
    match run(program, state, 0) {
        RunOutcome::OutOfFuel => Cause::Response,
        ended => Cause::Ended(end(ended)),
    }
}

fn end(outcome: RunOutcome) -> End {
    match outcome {
        RunOutcome::Done { json, .. } if json.len() > RESULT_BYTES => End::Limit(DurableLimit::Result),
        RunOutcome::Done { json, .. } => End::Ok { result: JsonText::from_untrusted(json) },
        RunOutcome::Throw(text) => {
            let (message, stack, full_bytes) = cut_exception(&text);
            End::Threw { message, stack, full_bytes }
        }
        RunOutcome::Limit(VmLimitKind::Output) => End::Limit(DurableLimit::Output),
        RunOutcome::Limit(VmLimitKind::Heap | VmLimitKind::Text) => End::Limit(DurableLimit::Heap),
        RunOutcome::Limit(VmLimitKind::Stack) => End::Limit(DurableLimit::Stack),
        RunOutcome::Limit(VmLimitKind::Steps) => End::Limit(DurableLimit::Steps),
        RunOutcome::Corrupt(what) => End::Corrupt(what.to_owned()),
        RunOutcome::OutOfFuel
        | RunOutcome::Pause { .. }
        | RunOutcome::Host { .. }
        | RunOutcome::Wait { .. } => End::Corrupt("not an end".to_owned()),
    }
}

/// Message and stack of a thrown value with its text, cut, and the size of the message if something was cut.
fn cut_exception(text: &str) -> (String, String, Option<u64>) {
    let (mut stack, mut message) = (text.to_owned(), thrown(text).to_owned());
    let full_bytes = (text.len() > MESSAGE_BYTES).then_some(message.len() as u64);
    super::output::truncate(&mut stack, MESSAGE_BYTES);
    super::output::truncate(&mut message, MESSAGE_BYTES);
    (message, stack, full_bytes)
}

/// The event of an exception. Errors of programs have no codes.
fn exception(message: String, stack: String, full_bytes: Option<u64>) -> EventPayload {
    EventPayload::Exception { message, stack, code: None, truncated: full_bytes.is_some(), full_bytes }
}

/// The text of the thrown value, which may have several lines, without the stack below it.
fn thrown(text: &str) -> &str {
    text.split("\n    at ").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{DroppedOutput, EventPayload, dropped_mark, thrown};

    #[test]
    fn one_dropped_line_has_no_plural() {
        let mark = |lines, bytes| match dropped_mark(DroppedOutput { lines, bytes }) {
            EventPayload::System { message, .. } => message,
            other => panic!("{other:?}"),
        };
        assert!(mark(1, 1).starts_with("1 line of output (1 byte) was dropped: "), "{}", mark(1, 1));
        assert!(mark(2, 0).starts_with("2 lines of output (0 bytes) were dropped: "), "{}", mark(2, 0));
    }

    #[test]
    fn the_thrown_value_ends_where_the_stack_begins() {
        assert_eq!(
            thrown("TypeError: bad\nsecond line\n    at f (out.js:2:21)\n    at main"),
            "TypeError: bad\nsecond line"
        );
        assert_eq!(thrown("[\n  [ 1, 2 ],\n  [ 3, 4 ]\n]"), "[\n  [ 1, 2 ],\n  [ 3, 4 ]\n]");
        assert_eq!(thrown(""), "");
    }
}
