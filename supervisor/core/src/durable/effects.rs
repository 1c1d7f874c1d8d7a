//! Calls of the host: what a program wants outside of its state, and the results. Carries out nothing.

use super::input::{DurableAction as Action, HostCallRequest, RequestEffect};
use super::machine::DurableMachine;
use super::state::{AfterCommit, EffectCall, NextStep, Stage};
use crate::Now;
use vm_system_protocol::durable::{HostCall, HttpResponse, ToDurable};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::DURABLE_ROW_BYTES;
use vm_system_protocol::model::{EventPayload, ExecutionStatus};
use vm_system_protocol::worker::HostError;

impl DurableMachine {
    /// A call that others can see: it is made once the checkpoint before it is stored.
    pub(super) fn wants_effect(&mut self, call: EffectCall, now: Now, actions: &mut Vec<Action>) {
        if self.worker.effect_known && self.next == NextStep::Effect {
            // Restored from the checkpoint of this effect: the stored rows are valid.
            self.worker.effect_known = false;
            self.gathered.pages.clear();
            self.gathered.page_bytes = 0;
            self.make_effect(call, now, actions);
            return;
        }
        self.take_checkpoint("effect", NextStep::Effect, now);
        self.add_progress(ExecutionStatus::Running);
        self.flush(now, AfterCommit::Effect(call), actions);
        self.begin_wait(now);
    }

    /// Makes a call under the number of the last checkpoint, which is stored.
    pub(super) fn make_effect(&mut self, call: EffectCall, now: Now, actions: &mut Vec<Action>) {
        // The number of the stored checkpoint: a repetition after a crash makes the call under the same id.
        let effect = self.seq;
        match call {
            EffectCall::Files(call) => self.make_call(call, Some(effect), now, actions),
            EffectCall::Request(request) => {
                self.begin_call(now);
                actions.push(Action::Request(RequestEffect { request, effect }));
            }
        }
    }

    pub(super) fn make_call(
        &mut self,
        call: HostCall,
        effect: Option<u64>,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        self.begin_call(now);
        actions.push(Action::Host(HostCallRequest { call, effect }));
    }

    fn begin_call(&mut self, now: Now) {
        self.stage = Stage::Calling;
        self.clock.began = now;
    }

    pub(super) fn called(&mut self, result: Result<JsonText, String>, now: Now, actions: &mut Vec<Action>) {
        if self.stage != Stage::Calling {
            return;
        }
        self.end_call(now);
        let segment = self.begin_segment(now, actions);
        self.stage = Stage::Running;
        actions.push(Action::Send(Box::new(ToDurable::HostResult { result, segment })));
    }

    /// The response of a request goes into the state, which is stored before the program goes on: it is not requested again. The
    /// events about it are stored with that state.
    pub(super) fn responded(
        &mut self,
        result: Result<HttpResponse, HostError>,
        notes: Vec<EventPayload>,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        if self.stage != Stage::Calling {
            return;
        }
        self.end_call(now);
        let bytes: u64 = notes.iter().map(|note| note.output_bytes() + DURABLE_ROW_BYTES).sum();
        if bytes > self.record_left() {
            self.record_full(now, actions);
            return;
        }
        self.gathered.events.extend(notes.into_iter().map(|note| (0, note)));
        let segment = self.begin_segment(now, actions);
        self.stage = Stage::Running;
        // The next checkpoint must have the response: otherwise a repetition would make the request again.
        self.worker.owes_response = true;
        actions.push(Action::Send(Box::new(ToDurable::Response { result, segment })));
    }

    pub(super) fn end_call(&mut self, now: Now) {
        self.record.metrics.host_wait_ms += now.mono_ms.saturating_sub(self.clock.began.mono_ms);
    }
}
