//! Owns a session of the engine: its creation from the preloaded runtime, its executions, its end.

use super::host::Host;
use super::preload::{EngineParts, Preloaded};
use super::{budget, disabled, memory, run, source, sys};
use crate::allocator;
use std::cell::Cell;
use vm_system_protocol::model::Limits;
use vm_system_protocol::worker::{Done, Execute, Start, Usage};

/// Memory that each execution has at its beginning, also in a session that holds all that its limit permits (bytes).
const FREE_BYTES: usize = 256 * 1024;
/// Most bytes by which that exceeds the limit.
const BEYOND_BYTES: usize = 8 * 1024 * 1024;

/// One session: global state that carries over from execution to execution.
pub struct JsSession {
    machine: EngineParts,
    /// The highest limit of its memory so far (bytes).
    highest_limit: Cell<usize>,
}

impl JsSession {
    /// Turns the preloaded runtime into a session.
    pub fn start(preloaded: Preloaded, start: &Start) -> Self {
        let Preloaded(machine) = preloaded;
        machine.state.random.seed(&start.random_seed);
        machine.state.session_started.set(budget::now());
        memory::begin();
        let session = Self { machine, highest_limit: Cell::new(0) };
        session.limit_heap(&start.limits);
        if !start.console {
            session.machine.context.with(|ctx| disabled::remove_global(&ctx, "console"));
        }
        session
    }

    /// Called in a forked worker: the session keeps all values of the parent's scripts and gets a new random seed. Its clock
    /// continues, so that time never runs backwards for a script.
    pub fn go_on_as(&self, start: &Start) {
        self.machine.state.random.seed(&start.random_seed);
        self.limit_heap(&start.limits);
    }

    fn limit_heap(&self, limits: &Limits) {
        let limit = usize::try_from(u64::from(limits.mem_mb) * 1024 * 1024).unwrap_or(usize::MAX);
        let limit = limit.saturating_add(sys::shared_bytes());
        self.highest_limit.set(self.highest_limit.get().max(limit));
        if memory::held_bytes().saturating_add(FREE_BYTES) > limit {
            self.machine.runtime.run_gc();
        }
        let held = memory::held_bytes();
        // Memory that an earlier limit permitted ends nothing: the limit may be raised again.
        if held > self.highest_limit.get().saturating_add(BEYOND_BYTES) {
            allocator::end();
        }
        // A script may fill the reserve of each execution as well: without free memory not even `all = null` could run, and the session
        // would be of no use. Bounded, so that input after input does not raise the limit for ever.
        let limit = held.saturating_add(FREE_BYTES).clamp(limit, limit.saturating_add(BEYOND_BYTES));
        self.machine.state.heap_limit.set(limit);
        // Each time: the engine gives a reserve once after each call, for code that handles that memory is out.
        self.machine.runtime.set_memory_limit(limit);
        memory::limit(limit);
    }

    /// JavaScript heap (bytes).
    pub fn heap_bytes(&self) -> u64 {
        sys::own_heap_bytes() as u64
    }

    /// Runs one piece of code to its end: the result is settled and nothing is queued, or a limit or the interrupt
    /// flag ended it. Events are sent to `host` as they happen; the last ones are in the result. Never fails: every
    /// failure of the script is an outcome.
    pub fn execute(&mut self, job: &Execute, host: &mut dyn Host) -> Done {
        self.limit_heap(&job.policy.limits);
        sys::reset_heap_peak();
        let job = if job.source.contains('\0') {
            let source = source::without_nul(job.source.clone());
            &Execute { source, ..job.clone() }
        } else {
            job
        };
        let EngineParts { context, state, .. } = &self.machine;
        state.budget.begin(&job.policy.limits);
        let ended = state.host.scoped(host, || context.with(|ctx| run::execute(&ctx, state, job)));
        let usage = Usage {
            cpu_us: state.budget.cpu_used() / 1_000,
            heap_bytes: sys::own_heap_bytes() as u64,
            heap_peak_bytes: sys::own_heap_peak() as u64,
        };
        Done { execution: job.execution, events: ended.events, outcome: ended.outcome, usage }
    }
}
