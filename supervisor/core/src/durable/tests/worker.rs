//! The model's worker: a program whose whole state is one page.

use super::items::ItemProgram;
use super::json;
use vm_system_protocol::durable::{
    Cause, End, FromDurable, HostCall, StatePage, Stop, TaskAnswer, ToDurable,
};
use vm_system_protocol::egress::HttpRequest;
use vm_system_protocol::model::{ConsoleLevel, EventPayload};
use vm_system_protocol::worker::WorkerEvent;

/// Tasks of the model's program before it ends.
pub(super) const TASKS: u64 = 6;

/// Requests of the model's program.
pub(super) const REQUESTS: u64 = 1;

/// A request of a program.
pub(super) fn request() -> HttpRequest {
    let (method, url) = ("POST".to_owned(), "http://host/".to_owned());
    HttpRequest { method, url, headers: Vec::new(), data: Vec::new(), end: true }
}

/// The model's program: its whole state is one page with the answers so far. It begins a task, prints the answer, and before
/// every odd task requests an effect: a file call, and before every fourth an HTTP request.
#[derive(Debug, Clone, Default)]
pub(super) struct Worker {
    pub(super) answers: Vec<String>,
    effect_done: bool,
    pub(super) started: bool,
    /// Instead of all this a program that waits for many things at once.
    pub(super) items: Option<ItemProgram>,
}

impl Worker {
    pub(super) fn new(has_items: bool) -> Self {
        Self { items: has_items.then(ItemProgram::default), ..Self::default() }
    }

    pub(super) fn page(&self) -> Vec<StatePage> {
        if let Some(items) = &self.items {
            return vec![StatePage { number: 0, bytes: items.page() }];
        }
        let text = format!("{}|{}", self.answers.join(","), u8::from(self.effect_done));
        vec![StatePage { number: 0, bytes: text.into_bytes() }]
    }

    pub(super) fn restore(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).expect("the model's own");
        if let Some(items) = ItemProgram::restore(&text) {
            return Self { items: Some(items), started: true, ..Self::default() };
        }
        let (answers, effect) = text.split_once('|').expect("the model's own");
        let answers = answers.split(',').filter(|answer| !answer.is_empty()).map(str::to_owned).collect();
        Self { answers, effect_done: effect == "1", started: true, items: None }
    }

    pub(super) fn stop(&self, cause: Cause) -> Vec<FromDurable> {
        let stop = Stop { cause, cpu_us: 1, heap_bytes: 1, applied: 0 };
        vec![FromDurable::Pages(self.page()), FromDurable::Checkpoint(Box::new(stop))]
    }

    pub(super) fn next(&self) -> Vec<FromDurable> {
        let tasks = self.answers.len() as u64;
        if tasks == TASKS {
            let result = json(&format!("\"{}\"", self.answers.join(",")));
            return self.stop(Cause::Ended(End::Ok { result }));
        }
        if tasks % 2 == 1 && !self.effect_done {
            let files = HostCall { name: "writeFile".to_owned(), args: json("[]") };
            let is_request = tasks % 4 == 3;
            return self.stop(if is_request {
                Cause::Request(Box::new(request()))
            } else {
                Cause::Effect(files)
            });
        }
        self.stop(Cause::Pause { prompt: format!("question {tasks}"), options: None })
    }

    pub(super) fn on_message(&mut self, order: &ToDurable) -> Vec<FromDurable> {
        if let Some(items) = &mut self.items {
            self.started |= matches!(order, ToDurable::Start { .. });
            return items.on_message(order);
        }
        match order {
            ToDurable::Start { .. } => {
                self.started = true;
                let mut sent = self.stop(Cause::Started);
                sent.extend(self.next());
                sent
            }
            ToDurable::Answer { answer: TaskAnswer::Text(text), .. } => {
                self.answers.push(text.clone());
                self.effect_done = false;
                let payload = EventPayload::console(ConsoleLevel::Log, text.clone());
                let mut sent = vec![FromDurable::Events(vec![WorkerEvent { at_us: 1, payload }])];
                sent.extend(self.next());
                sent
            }
            ToDurable::HostResult { .. } => {
                self.effect_done = true;
                self.next()
            }
            ToDurable::Response { .. } => {
                self.effect_done = true;
                self.stop(Cause::Response)
            }
            ToDurable::Continue { .. } => self.next(),
            // No reply.
            ToDurable::Set { .. } | ToDurable::Answer { answer: TaskAnswer::Wrong(_), .. } => Vec::new(),
            other => panic!("the model does not handle {other:?}"),
        }
    }
}
