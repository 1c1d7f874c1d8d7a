//! Carries out the actions of the durable machine. Nothing here waits: slow work is started, and polled by the owner task.

use super::files;
use super::follow::News;
use super::live::lock;
use super::pages::Change;
use super::requests;
use super::stored::add_calls;
use super::task::{ProgramContext, RunTask, RunWorker, Starting};
use super::worker::{Order, order};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use vm_system_core::WorkerExitStatus;
use vm_system_core::durable::{
    DurableAction as Action, DurableInput as Input, DurableMachine, HostCallRequest, LoadFrom, RequestEffect,
};
use vm_system_protocol::durable::{FromDurable, ToDurable};
use vm_system_record::Batch;
use vm_system_store::Urgency;

impl RunTask {
    /// Drives the machine with an input, and with the results of its actions.
    pub(super) fn step(&mut self, machine: &mut DurableMachine, context: &ProgramContext, input: Input) {
        let mut actions = Vec::new();
        // A sample costs two system calls; gathered messages neither end nor begin a segment.
        if !matches!(&input, Input::Message(FromDurable::Pages(_) | FromDurable::Events(_)))
            && let Some(worker) = &self.worker
        {
            self.clock.sample_cpu(&worker.link.process);
        }
        let mut next = VecDeque::from([input]);
        while let Some(input) = next.pop_front() {
            machine.step(input, self.clock.now(), &mut actions);
            let refilled = machine.refilled_ms().saturating_sub(self.calls.refilled_ms);
            if refilled > 0 {
                self.calls.refilled_ms += refilled;
                files::give_back(&self.calls.used, &context.policy, refilled);
            }
            for action in actions.drain(..) {
                next.extend(self.carry_out(machine, context, action));
            }
            if next.is_empty() {
                next.extend(self.reserve_pages(machine));
            }
        }
    }

    /// Reserves memory for received pages until they are stored.
    fn reserve_pages(&mut self, machine: &DurableMachine) -> Option<Input> {
        let gathered = (machine.gathered_bytes(), machine.gathered_most());
        let stored = self.writes.is_empty();
        let of = (&self.durables.page_budget, &self.holder);
        self.pages.adjust(of, gathered, stored).map(|change| match change {
            Change::Waits => Input::Stalled,
            Change::Continues => Input::Continues,
        })
    }

    fn carry_out(
        &mut self,
        machine: &DurableMachine,
        context: &ProgramContext,
        action: Action,
    ) -> Option<Input> {
        match action {
            Action::Spawn(from) => self.start(machine, context, from),
            Action::Send(message) => self.send(*message),
            Action::AllowCpu(total_ms) => {
                // The kernel counts whole seconds: most steps change nothing.
                let seconds = total_ms.div_ceil(1_000);
                if let Some(worker) = self.worker.as_mut().filter(|worker| worker.allowed_s != seconds) {
                    worker.allowed_s = seconds;
                    // A worker that has exited needs no limit.
                    let _ = worker.link.process.allow_cpu(Duration::from_secs(seconds));
                }
            }
            Action::Kill => {
                if let Some(worker) = &self.worker {
                    let _ = worker.link.process.kill();
                } else if let Some(starting) = &mut self.starting {
                    starting.unwanted = true;
                }
            }
            Action::LetGo => return self.let_worker_go(),
            Action::Write { id, mut batch } => {
                let news = News::of_batch(&batch);
                add_calls(&mut batch, &self.calls.used);
                batch.insert(0, self.hold.guard(&batch));
                // A batch that the store refuses at once is an input like any other.
                let failed = self.writes.push((id, news), Batch(batch), Urgency::Now);
                return failed.map(|outcome| self.written(outcome));
            }
            Action::Host(work) => self.call(machine, context, work),
            Action::Request(work) => self.request(machine, context, work),
            Action::Reply { token, result } => self.callers.reply(token, result.map(|stand| *stand)),
        }
        None
    }

    fn start(&mut self, machine: &DurableMachine, context: &ProgramContext, from: LoadFrom) {
        let mut whole = self.whole.take().filter(|(seq, _)| from == LoadFrom::Checkpoint(*seq));
        let waits = self.durables.shared.pressure.is_caused_by(&context.owner);
        if waits || self.durables.slots.is_full_for(&self.holder) {
            // It waits for memory, or for other executions of its owner: those of others are woken meanwhile, and its state is read later.
            (self.permit, whole) = (None, None);
        }
        let order = Order {
            pages: whole.map(|(_, pages)| pages),
            execution: self.execution,
            session: machine.record().session_id,
            owner: context.owner.clone(),
            program: context.program,
            from,
            limits: machine.spec().limits.clone(),
            life: machine.spec().life(),
        };
        let durables = Arc::clone(&self.durables);
        let worker = Box::pin(async move { durables.start_worker(order).await });
        self.starting = Some(Starting { worker, unwanted: false });
    }

    /// A worker that cannot be sent to has exited, is exiting, or is killed for not replying.
    fn send(&mut self, message: ToDurable) {
        let Some(worker) = &mut self.worker else { return };
        if let Some(error) = worker.link.outbox.push(order(message)) {
            self.cannot_send(&error);
        }
    }

    /// Releases the worker: for this execution it has exited, and the next one may be started while it ends.
    fn let_worker_go(&mut self) -> Option<Input> {
        self.calls.under_way = None;
        self.pages.acquiring = None;
        if let Some(RunWorker { session, link, jail, slot, .. }) = self.worker.take() {
            self.forget_worker(session);
            let process = link.process.clone();
            self.durables.end(process, (link, jail, slot));
        }
        match &mut self.starting {
            Some(starting) => {
                starting.unwanted = true;
                None
            }
            None => Some(Input::Exited(WorkerExitStatus::Unknown)),
        }
    }

    fn call(&mut self, machine: &DurableMachine, context: &ProgramContext, work: HostCallRequest) {
        let shared = Arc::clone(&self.durables.shared);
        let session = machine.record().session_id;
        let (used, reservation) = (Arc::clone(&self.calls.used), self.calls.reservation.clone());
        let ids = (self.execution, session);
        let called = files::call(shared, ids, context.clone(), Arc::clone(&used), reservation, work);
        self.calls.under_way = Some(Box::pin(async move {
            let result = called.await;
            let written = lock(&used).1.written_bytes;
            Input::Called { result, written }
        }));
    }

    fn request(&mut self, machine: &DurableMachine, context: &ProgramContext, work: RequestEffect) {
        let shared = Arc::clone(&self.durables.shared);
        let session = machine.record().session_id;
        let (used, reservation) = (Arc::clone(&self.calls.used), self.calls.reservation.clone());
        let ids = (self.execution, session);
        let made = requests::request(shared, ids, context.clone(), used, reservation, work);
        self.calls.under_way = Some(Box::pin(made));
    }
}
