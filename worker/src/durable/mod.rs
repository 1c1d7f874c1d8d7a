//! A worker that runs a durable program. It executes one order after the other; between a pause and its answer it holds no
//! state that is not also in the supervisor's store. Such a worker is never adopted, so that sent messages are not kept.
//!
//! Reading order: this file (orders), `segment` (one run between two stops), `clock` (its limits), `output` (console lines),
//! `pages` (the messages of a checkpoint), `items` (what it waits for), `requests` (HTTP).

mod clock;
mod items;
mod output;
mod pages;
mod requests;
mod segment;

use crate::engine;
use crate::link::Link;
use clock::SegmentClock;
use std::collections::{BTreeMap, VecDeque};
use vm_system_cvm::{
    CompileError, CompileErrorKind, CompileOptions, CompiledProgram, HostResult, ItemAnswer, PauseAnswer,
    SourceFile, StateConfig, VmLimits, VmState, compile_files, frames, globals, has_typescript, resume_host,
    resume_item, resume_pause, set_variable,
};
use vm_system_protocol::durable::{
    AnsweredItem, CODE_BYTES, Cause, DurableLimits, FromDurable, PENDING_ITEMS, Segment, TaskAnswer,
    ToDurable,
};
use vm_system_protocol::model::{Diagnostic, ProgramFrame, ProgramState, Variable};
use vm_system_protocol::program_source;
use vm_system_protocol::worker::{FromWorker, ToWorker};

/// Exit code of a worker that got an order out of sequence.
const EXIT_ORDER: i32 = 74;
/// Most diagnostics that are reported for one text.
const DIAGNOSTICS: usize = 20;
/// Longest source line in a diagnostic (bytes).
const SNIPPET_BYTES: usize = 1_000;
/// Longest string of a program (UTF-16 units).
const STRING_UNITS: u32 = 1 << 28;

/// Programs may wait for many things at once.
const ITEMS: bool = true;

/// Builds the realm and the prelude, which all programs share, in their zygote.
pub(crate) fn warm_up() {
    vm_system_cvm::warm_up(ITEMS);
    engine::plug_holes();
}

/// The state of a worker that runs a durable program.
struct ProgramWorker {
    program: Option<CompiledProgram>,
    limits: DurableLimits,
    /// Pages that were received for the next `Restore`.
    received_pages: BTreeMap<u64, Vec<u8>>,
    state: Option<VmState>,
    /// The last checkpoint that was sent.
    sent: u64,
    clock: SegmentClock,
    items: ItemAnswers,
    /// Slices of all segments so far: the clocks are read every few slices, whether segments are short or long.
    slices: u32,
}

/// Answers to items on their way into the state.
#[derive(Default)]
struct ItemAnswers {
    /// Not applied yet.
    left: VecDeque<AnsweredItem>,
    /// Applied since the last checkpoint.
    applied: u32,
}

/// Executes orders, beginning with `first`, until the channel is closed or an order is out of sequence; returns the exit code.
pub(crate) fn run(link: &mut Link, first: ToDurable) -> i32 {
    let mut machine = ProgramWorker {
        program: None,
        limits: DurableLimits { heap_bytes: 0, stack_depth: 0, steps: 0 },
        received_pages: BTreeMap::new(),
        state: None,
        sent: 0,
        clock: SegmentClock::default(),
        items: ItemAnswers::default(),
        slices: 0,
    };
    let mut order = first;
    loop {
        if machine.execute(order, link).is_none() {
            return EXIT_ORDER;
        }
        order = match link.next_order() {
            ToWorker::Durable(next) => *next,
            _ => return EXIT_ORDER,
        };
    }
}

/// The restored state is not at the request that its execution's rows name: the two do not belong together.
fn waits_for_something_else(link: &mut Link) {
    send(
        link,
        FromDurable::Refused { why: "the state: it waits for something else than this answer".to_owned() },
    );
}

/// Sends a message to the supervisor.
fn send(link: &mut Link, message: FromDurable) {
    link.send_unkept(&FromWorker::Durable(Box::new(message)));
}

impl ProgramWorker {
    /// `None`: the order is out of sequence.
    fn execute(&mut self, order: ToDurable, link: &mut Link) -> Option<()> {
        match order {
            ToDurable::Compile { source, file_name, typescript } => {
                send(link, compiled(&source, &file_name, typescript));
            }
            ToDurable::Load { code, limits } => {
                self.limits = limits;
                match CompiledProgram::decode(&code) {
                    Ok(program) => self.program = Some(program),
                    Err(error) => send(link, FromDurable::Refused { why: format!("the program: {error}") }),
                }
            }
            ToDurable::Pages(pages) => {
                self.received_pages.extend(pages.into_iter().map(|page| (page.number, page.bytes)));
            }
            ToDurable::Restore => self.restore(link)?,
            ToDurable::Start { args, env, seed, segment } => self.start(args, env, seed, segment, link)?,
            ToDurable::Continue { segment } => self.run(segment, link)?,
            ToDurable::Answer { answer, segment } => {
                let (program, state) = (self.program.as_ref()?, self.state.as_mut()?);
                if !resume_pause(program, state, &engine_answer(answer)) {
                    waits_for_something_else(link);
                    return Some(());
                }
                self.run(segment, link)?;
            }
            ToDurable::Answers { answers, segment } => {
                let mut answers = VecDeque::from(answers);
                let first = answers.pop_front()?;
                self.items.left = answers;
                if !self.apply(first)? {
                    waits_for_something_else(link);
                    return Some(());
                }
                self.run(segment, link)?;
            }
            ToDurable::HostResult { result, segment } => {
                let (program, state) = (self.program.as_ref()?, self.state.as_mut()?);
                let result = match result {
                    Ok(json) => HostResult::Json(json.as_str().to_owned()),
                    Err(message) => HostResult::Error(message),
                };
                if !resume_host(program, state, &result) {
                    waits_for_something_else(link);
                    return Some(());
                }
                self.run(segment, link)?;
            }
            ToDurable::Response { result, segment } => {
                let (program, state) = (self.program.as_ref()?, self.state.as_mut()?);
                if !resume_host(program, state, &requests::response(result)) {
                    waits_for_something_else(link);
                    return Some(());
                }
                self.clock.begin(segment, state.steps());
                let cause = segment::response_cause(program, state);
                self.checkpoint(cause, link)?;
            }
            ToDurable::Inspect => {
                let (program, state) = (self.program.as_ref()?, self.state.as_mut()?);
                send(link, FromDurable::View(Box::new(view(program, state))));
            }
            ToDurable::Set { frame, name, value } => {
                let (program, state) = (self.program.as_ref()?, self.state.as_mut()?);
                if set_variable(program, state, frame as usize, &name, value.as_str()) {
                    self.checkpoint(Cause::Edited, link)?;
                } else {
                    send(link, FromDurable::NotSet);
                }
            }
        }
        Some(())
    }

    fn engine_limits(&self) -> VmLimits {
        VmLimits {
            heap_bytes: self.limits.heap_bytes,
            stack_depth: self.limits.stack_depth,
            string_units: STRING_UNITS,
            steps: self.limits.steps,
            // Bounds the memory for the output of one slice; the segment's limit is usually smaller.
            output_bytes: self.limits.heap_bytes,
            pending_items: PENDING_ITEMS,
        }
    }

    /// Settles the promise of an item; false: there is no such item, or the program waits for something else.
    fn apply(&mut self, answered: AnsweredItem) -> Option<bool> {
        let (program, state) = (self.program.as_ref()?, self.state.as_mut()?);
        let answer = match answered.answer {
            Some(answer) => ItemAnswer::Answer(engine_answer(answer)),
            None => ItemAnswer::Elapsed,
        };
        self.items.applied += 1;
        Some(resume_item(program, state, answered.number, &answer))
    }

    fn restore(&mut self, link: &mut Link) -> Option<()> {
        let program = self.program.as_ref()?;
        // A state that was restored before gives up its memory first.
        self.state = None;
        let received_pages = std::mem::take(&mut self.received_pages);
        let pages = received_pages.iter().map(|(number, bytes)| (*number, bytes.as_slice()));
        match VmState::restore(program, self.engine_limits(), pages) {
            Ok(state) => {
                self.sent = state.checkpoint_number();
                self.state = Some(state);
                send(link, FromDurable::Restored);
            }
            Err(error) => send(link, FromDurable::Refused { why: format!("the state: {error}") }),
        }
        Some(())
    }

    fn start(
        &mut self,
        args: Vec<String>,
        env: Vec<(String, String)>,
        seed: u64,
        segment: Segment,
        link: &mut Link,
    ) -> Option<()> {
        let config = StateConfig { limits: self.engine_limits(), seed, args, env };
        self.state = Some(VmState::new(self.program.as_ref()?, &config));
        self.sent = 0;
        self.checkpoint(Cause::Started, link)?;
        self.run(segment, link)
    }
}

fn engine_answer(answer: TaskAnswer) -> PauseAnswer {
    match answer {
        TaskAnswer::Text(text) => PauseAnswer::Text(text),
        TaskAnswer::Json(json) => PauseAnswer::Json(json.as_str().to_owned()),
        TaskAnswer::Failed(message) => PauseAnswer::Error(message),
        TaskAnswer::Expired(message) => PauseAnswer::Timeout(message),
        TaskAnswer::Wrong(message) => PauseAnswer::Wrong(message),
    }
}

/// Compiles a text. Without a `typescript` flag the text is JavaScript, unless it compiles only as TypeScript and has syntax of
/// TypeScript: that compiler also accepts texts that are neither.
fn compiled(source: &str, file_name: &str, typescript: Option<bool>) -> FromDurable {
    let (file_name, source, others) = match program_source::files(source) {
        Ok(None) => (file_name, source, Vec::new()),
        Ok(Some(files)) => {
            let others = files[1..].iter();
            let others = others.map(|(name, text)| SourceFile { name: (*name).into(), text: (*text).into() });
            (files[0].0, files[0].1, others.collect())
        }
        Err(error) => return not_compiled(error.to_string()),
    };
    let attempt = |typescript| {
        let options =
            CompileOptions { filename: file_name.to_owned(), typescript, plain_script: false, items: ITEMS };
        let language = if typescript { "TypeScript" } else { "JavaScript" };
        let program = compile_files(source, &others, &options);
        program.map(|program| (program, typescript)).map_err(|errors| (errors.0, language))
    };
    let result = match typescript {
        Some(typescript) => attempt(typescript),
        None => attempt(false).or_else(|script| match attempt(true) {
            Ok(program) if has_typescript(source) => Ok(program),
            // A text that is TypeScript, with something that programs do not have; else the attempt with the later first error
            // has the more useful message.
            Err(typed)
                if typed.0.iter().all(|error| error.kind == CompileErrorKind::Unsupported)
                    || place(&typed.0) > place(&script.0) =>
            {
                Err(typed)
            }
            _ => Err(script),
        }),
    };
    match result {
        Ok((program, typescript)) => {
            let code = program.encode();
            if code.len() <= CODE_BYTES {
                return FromDurable::Compiled { code, typescript };
            }
            not_compiled(format!("the compiled program has {} bytes, more than {CODE_BYTES}", code.len()))
        }
        Err((mut errors, language)) => {
            // A missing file or export is missing in both languages.
            let is_syntax = |error: &CompileError| {
                let is_entry = error.file.as_deref().is_none_or(|file| file == file_name);
                is_entry && error.kind == CompileErrorKind::Invalid
            };
            if let Some(first) = errors.first_mut().filter(|first| is_syntax(first)) {
                if typescript.is_none() {
                    first.message.extend([" (read as ", language, ")"]);
                } else if typescript == Some(false) && has_typescript(source) && attempt(true).is_ok() {
                    first.message.push_str(" (read as JavaScript; it is TypeScript)");
                }
            }
            FromDurable::NotCompiled(errors.into_iter().take(DIAGNOSTICS).map(diagnostic).collect())
        }
    }
}

/// An error without a position.
fn not_compiled(message: String) -> FromDurable {
    let diagnostic = Diagnostic { message, file: None, line: 1, column: 1, snippet: String::new() };
    FromDurable::NotCompiled(vec![diagnostic])
}

fn place(errors: &[CompileError]) -> (u32, u32) {
    errors.first().map_or((0, 0), |error| (error.line, error.column))
}

fn diagnostic(error: CompileError) -> Diagnostic {
    let mut snippet = error.snippet;
    output::cut(&mut snippet, SNIPPET_BYTES);
    Diagnostic { message: error.message, file: error.file, line: error.line, column: error.column, snippet }
}

/// Limit of the shown text of all variables (bytes).
const VIEW_BYTES: usize = 4 << 20;
/// Limit of the shown text of one variable (bytes).
const VALUE_BYTES: usize = 64 << 10;
/// Most frames that are shown.
const VIEW_FRAMES: usize = 200;

fn view(program: &CompiledProgram, state: &mut VmState) -> ProgramState {
    let mut left = VIEW_BYTES;
    let mut shown = |variables: Vec<(String, String)>| -> Vec<Variable> {
        let mut list = Vec::new();
        for (name, mut value) in variables {
            output::cut(&mut value, VALUE_BYTES);
            let bytes = name.len() + value.len() + 16;
            if bytes > left {
                break;
            }
            left -= bytes;
            list.push(Variable { name, value });
        }
        list
    };
    let globals = shown(globals(program, state));
    let (frames, more_frames) = frames(program, state, VIEW_FRAMES);
    let frames = frames
        .into_iter()
        .map(|frame| {
            let mut source_line = frame.source_line;
            output::cut(&mut source_line, SNIPPET_BYTES);
            ProgramFrame {
                function: frame.function,
                file: frame.file,
                line: frame.line,
                column: frame.column,
                source_line,
                variables: shown(frame.variables),
                items: frame.items,
            }
        })
        .collect();
    ProgramState { frames, more_frames, globals }
}
