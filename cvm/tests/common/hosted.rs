//! A host of programs with items, and the transcript of a run: console lines, new items, stops, answers, the end.
//!
//! Answers follow from requests alone, so that another host can give the same ones: a prompt or a name that begins with `fail`, `late`
//! or `wrong` gets an error of that kind, one with `json` a value, and any other its own text. The order of the answers is the caller's.

use std::collections::BTreeMap;
use vm_system_cvm::{
    CompiledProgram, HostResult, ItemAnswer, ItemRequest, PauseAnswer, RunOutcome, RunPhase, StateConfig,
    VmLimits, VmState, resume_host, resume_item, resume_pause, run,
};

/// When the state is stored and restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Storing {
    /// Never
    Warm,
    /// When the program waits for the host
    AtStops,
    /// Each time when it has executed so many instructions, and when it waits
    #[allow(dead_code, reason = "not every test that includes this file stores so often")]
    Every(u64),
}

/// Chooses which of the open items is answered: an index of the list of their numbers.
pub(crate) type Choice<'c> = &'c mut dyn FnMut(&[u64]) -> usize;

fn answer_to(text: &str) -> PauseAnswer {
    let shown = text.to_owned();
    match text.get(..4) {
        Some("fail") => PauseAnswer::Error(shown),
        Some("late") => PauseAnswer::Timeout(shown),
        Some("wron") => PauseAnswer::Wrong(shown),
        Some("json") => PauseAnswer::Json(format!("{{\"of\":[{text:?},1]}}")),
        _ => PauseAnswer::Text(format!("<{text}>")),
    }
}

/// The host's answer to a request. Events have values that JSON can hold.
pub(crate) fn settlement(request: &ItemRequest) -> ItemAnswer {
    match request {
        ItemRequest::Question { prompt, .. } => ItemAnswer::Answer(answer_to(prompt)),
        ItemRequest::Timer { .. } => ItemAnswer::Elapsed,
        ItemRequest::Event { name, default, .. } => ItemAnswer::Answer(match (default, answer_to(name)) {
            (Some(default), PauseAnswer::Timeout(_)) => PauseAnswer::Json(default.clone()),
            (_, PauseAnswer::Text(text)) => PauseAnswer::Json(format!("{text:?}")),
            (_, other) => other,
        }),
    }
}

fn shown_item(number: u64, request: &ItemRequest) -> String {
    match request {
        ItemRequest::Question { prompt, options } => {
            format!("+ {number} question {prompt} {}", options.as_deref().unwrap_or("-"))
        }
        ItemRequest::Timer { duration_ms } => format!("+ {number} timer {duration_ms}"),
        ItemRequest::Event { name, timeout_ms, default } => {
            let time = timeout_ms.map_or_else(|| "-".to_owned(), |time| time.to_string());
            format!("+ {number} event {name} {time} {}", default.as_deref().unwrap_or("-"))
        }
    }
}

fn listed(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

/// A program that runs, with everything that its host stores of it.
pub(crate) struct Hosted<'p> {
    pub(crate) program: &'p CompiledProgram,
    pub(crate) state: VmState,
    pages: BTreeMap<u64, Vec<u8>>,
    checkpoint: u64,
    limits: VmLimits,
    /// Requests of the pending items
    pub(crate) requests: BTreeMap<u64, ItemRequest>,
    pub(crate) lines: Vec<String>,
    /// Lines of the items that were made since the last stop: slices end anywhere between them and the console's lines
    made: Vec<String>,
}

impl<'p> Hosted<'p> {
    pub(crate) fn new(program: &'p CompiledProgram, limits: VmLimits) -> Hosted<'p> {
        let state = VmState::new(program, &StateConfig { limits, ..StateConfig::default() });
        Hosted {
            program,
            state,
            pages: BTreeMap::new(),
            checkpoint: 0,
            limits,
            requests: BTreeMap::new(),
            lines: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Numbers of the pending items.
    pub(crate) fn open(&self) -> Vec<u64> {
        self.requests.keys().copied().collect()
    }

    /// Runs a slice, and takes over output and new items.
    pub(crate) fn slice(&mut self, fuel: u64) -> RunOutcome {
        let outcome = run(self.program, &mut self.state, fuel);
        self.lines.extend(self.state.take_output().into_iter().map(|line| line.text));
        for item in self.state.take_new_items() {
            self.made.push(shown_item(item.number, &item.request));
            assert!(self.requests.insert(item.number, item.request).is_none(), "a number is used twice");
        }
        if outcome != RunOutcome::OutOfFuel {
            self.lines.append(&mut self.made);
        }
        outcome
    }

    /// Makes a checkpoint: the number of bytes that it writes.
    pub(crate) fn store(&mut self) -> usize {
        let written = self.state.pages_since(self.program, self.checkpoint);
        self.checkpoint = written.number;
        let bytes = written.pages.iter().map(|page| page.bytes.len()).sum();
        for page in written.pages {
            if page.bytes.is_empty() {
                self.pages.remove(&page.number);
            } else {
                self.pages.insert(page.number, page.bytes);
            }
        }
        bytes
    }

    /// Goes on with what was stored.
    pub(crate) fn restore(&mut self) {
        let pages = self.pages.iter().map(|(number, bytes)| (*number, bytes.as_slice()));
        let restored = match VmState::restore(self.program, self.limits, pages) {
            Ok(restored) => restored,
            Err(error) => panic!("its own pages: {error}\n{}", self.lines.join("\n")),
        };
        // The accounted bytes are part of the state: the collector runs at the same moments.
        assert_eq!(restored.heap_bytes(), self.state.heap_bytes(), "{}", self.lines.join("\n"));
        self.state = restored;
    }

    /// Settles an item as its request says.
    pub(crate) fn settle(&mut self, number: u64) {
        let Some(request) = self.requests.remove(&number) else { panic!("{number} is not pending") };
        self.lines.push(format!("= {number}"));
        assert!(resume_item(self.program, &mut self.state, number, &settlement(&request)), "{number}");
        assert!(!resume_item(self.program, &mut self.state, number, &settlement(&request)), "settled twice");
    }

    /// Runs to the end: the transcript, and the number of instructions.
    pub(crate) fn finish(mut self, storing: Storing, choose: Choice<'_>) -> (Vec<String>, u64) {
        let fuel = if let Storing::Every(steps) = storing { steps } else { u64::MAX };
        loop {
            let outcome = self.slice(fuel);
            let stops = outcome != RunOutcome::OutOfFuel;
            if storing != Storing::Warm && (stops || storing != Storing::AtStops) {
                self.store();
                self.restore();
            }
            match outcome {
                RunOutcome::OutOfFuel => {}
                RunOutcome::Pause { prompt, .. } => {
                    self.lines.push(format!("? {prompt}"));
                    assert!(resume_pause(self.program, &mut self.state, &answer_to(&prompt)));
                }
                RunOutcome::Host { name, args } => {
                    self.lines.push(format!("! {name} {args}"));
                    let result = HostResult::Json("\"file text\"".to_owned());
                    assert!(resume_host(self.program, &mut self.state, &result));
                }
                RunOutcome::Wait { rejections } => {
                    self.lines.extend(rejections.iter().map(|text| format!("rejected {text}")));
                    let open = self.open();
                    self.lines.push(format!("wait {}", listed(&open)));
                    assert_eq!(self.state.phase(), RunPhase::Wait);
                    let pending: Vec<u64> = self.state.open_items().iter().map(|item| item.number).collect();
                    assert_eq!(pending, open, "{}", self.lines.join("\n"));
                    self.settle(open[choose(&open)]);
                    // A host may also store what it has not run on.
                    if matches!(storing, Storing::Every(_)) {
                        self.store();
                        self.restore();
                    }
                }
                RunOutcome::Done { json, .. } => return self.ended(format!("=> {json}")),
                RunOutcome::Throw(text) => return self.ended(format!("threw {text}")),
                other => return self.ended(format!("{other:?}")),
            }
        }
    }

    fn ended(mut self, end: String) -> (Vec<String>, u64) {
        self.lines.push(end);
        let open = self.state.open_items();
        for item in &open {
            assert_eq!(self.requests.get(&item.number).map(ItemRequest::kind), Some(item.kind));
        }
        if !open.is_empty() {
            let numbers: Vec<u64> = open.iter().map(|item| item.number).collect();
            self.lines.push(format!("abandoned {}", listed(&numbers)));
        }
        (self.lines, self.state.steps())
    }
}

/// The transcript of a run from the start.
#[allow(dead_code, reason = "not every test that includes this file runs whole programs")]
pub(crate) fn transcript(program: &CompiledProgram, storing: Storing, choose: Choice<'_>) -> Vec<String> {
    Hosted::new(program, VmLimits::default()).finish(storing, choose).0
}
