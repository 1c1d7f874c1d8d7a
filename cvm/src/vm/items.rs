//! Items: promises that the host settles.
//!
//! A program without a promise as its result waits while an item has a reaction: code that goes on when it is settled. A program whose
//! result is a promise (of `main`, or of a top level that awaits) waits until this promise is settled, and no longer: items that are
//! open then are withdrawn, whatever code has reactions to them.
//!
//! Owns: making and settling items, and when a program waits for them. Must not: read arguments (see `builtins::items`), or keep
//! requests in the state.

use super::{Res, Vm};
use crate::builtins::ids;
use crate::heap::object::{ObjectKind, Promise, PromiseItem};
use crate::outcome::{ItemAnswer, ItemKind, ItemRequest, NewItem, RunOutcome};
use crate::program::CompiledProgram;
use crate::state::{RunPhase, VmState};
use crate::value::{Id, Value};

/// Most texts in one [`RunOutcome::Wait`].
pub const MOST_REJECTIONS: usize = 16;

/// Bytes of requests for which a program pays one instruction. It bounds what may wait for [`VmState::take_new_items`]: eight bytes for
/// each instruction of the host's slice of fuel, and one request.
const BYTES_PER_INSTRUCTION: usize = 8;

/// Settles a pending item; [`crate::run`] continues the program with the jobs that follow from it. False, with nothing done, if the
/// program is not in phase [`RunPhase::Wait`], if the item is not pending, or if the answer does not fit its kind.
pub fn resume_item(program: &CompiledProgram, state: &mut VmState, item: u64, answer: &ItemAnswer) -> bool {
    if state.phase != RunPhase::Wait {
        return false;
    }
    let mut vm = Vm { p: program, st: state };
    let Some(&promise) = vm.st.items.get(&item) else { return false };
    if vm.item_of(promise).is_none_or(|item| !answer.fits(item.kind)) {
        return false;
    }
    let settled = match answer {
        ItemAnswer::Elapsed => Ok(Value::Undefined),
        ItemAnswer::Answer(answer) => vm.answered(answer),
    };
    vm.st.phase = RunPhase::Running;
    vm.st.printed = 0;
    match settled {
        Ok(value) => vm.settle(promise, 1, value),
        Err((proto, message)) => {
            let error = vm.make_error(proto, message);
            vm.settle(promise, 2, error);
        }
    }
    true
}

impl Vm<'_> {
    fn promise_at(&self, id: Id) -> Option<&Promise> {
        match &self.st.heap.obj(id).kind {
            ObjectKind::Promise(promise) => Some(promise),
            _ => None,
        }
    }

    /// The item that settles a promise.
    pub(crate) fn item_of(&self, promise: Id) -> Option<PromiseItem> {
        self.promise_at(promise)?.item
    }

    /// Makes an item and its promise. Beyond the limit nothing is made: what waits already is not displaced.
    pub(crate) fn make_item(&mut self, request: ItemRequest) -> Res<Value> {
        let limit = self.st.limits.pending_items;
        if self.st.items.len() >= limit as usize {
            let message = format!(
                "{} cannot wait for more: {limit} questions, timers and events are pending, which is the limit pending_items",
                shown(request.kind())
            );
            return Err(self.range_error(&message));
        }
        let bytes = match &request {
            ItemRequest::Question { prompt, options } => {
                prompt.len() + options.as_ref().map_or(0, String::len)
            }
            ItemRequest::Timer { .. } => 0,
            ItemRequest::Event { name, default, .. } => name.len() + default.as_ref().map_or(0, String::len),
        };
        self.charge_work(bytes / BYTES_PER_INSTRUCTION);
        let number = self.st.next_item;
        self.st.next_item += 1;
        let promise = Promise {
            state: 0,
            handled: false,
            result: Value::Undefined,
            reactions: Vec::new(),
            item: Some(PromiseItem { number, kind: request.kind() }),
        };
        let id = self.st.heap.new_object(ids::PROMISE_PROTO, ObjectKind::Promise(Box::new(promise)));
        self.st.items.insert(number, id);
        self.st.new_items.push(NewItem { number, request });
        Ok(Value::Obj(id))
    }

    /// Whether the program waits for items when neither code nor jobs are left to run.
    pub(super) fn waits_for_items(&self) -> bool {
        let is_pending = |id: &Id| self.promise_at(*id).is_some_and(|promise| promise.state == 0);
        let has_reactions =
            |id: &Id| self.promise_at(*id).is_some_and(|promise| !promise.reactions.is_empty());
        !self.st.items.is_empty()
            && match self.st.result {
                Value::Obj(id) if self.promise_at(id).is_some() => is_pending(&id),
                _ => self.st.items.values().any(has_reactions),
            }
    }

    /// The outcome of a program that waits for items.
    pub(super) fn wait(&mut self) -> RunOutcome {
        let rejections = self.report_rejections();
        self.st.phase = RunPhase::Wait;
        RunOutcome::Wait { rejections }
    }

    /// The texts of the oldest unhandled rejections that were not reported yet, and marks these as reported.
    fn report_rejections(&mut self) -> Vec<String> {
        let entries = self.table(ids::REJECTIONS).map_or(&[][..], |table| &table.entries);
        // Older ones are reported first, and handled ones are holes: those to report are the last ones.
        let reported =
            entries.iter().rposition(|(_, mark)| *mark == Value::Bool(true)).map_or(0, |last| last + 1);
        let due = entries[reported..].iter().filter_map(|(promise, _)| promise.as_obj());
        let due: Vec<Id> = due.take(MOST_REJECTIONS).collect();
        due.into_iter()
            .map(|promise| {
                self.table_set(ids::REJECTIONS, Value::Obj(promise), Value::Bool(true));
                let reason = self.promise_at(promise).map_or(Value::Undefined, |promise| promise.result);
                self.error_text(reason, 0)
            })
            .collect()
    }
}

/// The function that makes items of a kind.
fn shown(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Question => "CC.async",
        ItemKind::Timer => "sleep",
        ItemKind::Event => "waitFor",
    }
}
