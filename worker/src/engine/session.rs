//! Owns a session's life: from the preloaded runtime, through executions, to its end.

use super::host::Host;
use super::preload::Preloaded;
use super::state::Shared;
use super::{budget, disabled, modules, run, sys};
use rquickjs::{Context, Runtime};
use vm_system_protocol::worker::{Done, Execute, Start, Usage};

/// One session: global state that carries over from execution to execution.
pub struct Session {
    // Order matters: the context goes before its runtime.
    context: Context,
    runtime: Runtime,
    state: Shared,
    heap_limit: usize,
}

impl Session {
    /// Makes the preloaded runtime this session's.
    pub fn start(preloaded: Preloaded, start: &Start) -> Self {
        let Preloaded { runtime, context, state } = preloaded;
        state.random.seed(&start.random_seed);
        state.session_started.set(budget::now());
        let heap_limit = usize::try_from(u64::from(start.limits.mem_mb) * 1024 * 1024).unwrap_or(usize::MAX);
        runtime.set_memory_limit(heap_limit);
        let session = Self { context, runtime, state, heap_limit };
        if !start.console {
            session.context.with(|ctx| disabled::remove_global(&ctx, "console"));
        }
        session
    }

    /// JavaScript heap (bytes).
    pub fn heap_bytes(&self) -> u64 {
        sys::heap_bytes() as u64
    }

    /// Runs one piece of code to its end: the result is settled and nothing is queued, or a limit or the interrupt
    /// flag ended it. Events go to `host` as they happen, the last ones are in the answer. Never fails: whatever the
    /// script does is an outcome.
    pub fn execute(&mut self, job: &Execute, host: &mut dyn Host) -> Done {
        let limit = usize::try_from(u64::from(job.policy.limits.mem_mb) * 1024 * 1024).unwrap_or(usize::MAX);
        if limit != self.heap_limit {
            self.heap_limit = limit;
            self.runtime.set_memory_limit(limit);
        }
        sys::reset_heap_peak();
        self.state.budget.begin(&job.policy.limits);
        let ended =
            self.state.host.scoped(host, || self.context.with(|ctx| run::execute(&ctx, &self.state, job)));
        let usage = Usage {
            cpu_us: self.state.budget.cpu_used() / 1_000,
            heap_bytes: sys::heap_bytes() as u64,
            heap_peak_bytes: sys::heap_peak() as u64,
        };
        Done {
            execution: job.execution,
            events: ended.events,
            outcome: ended.outcome,
            result: ended.result,
            usage,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Values of the script must be gone before the runtime that they live in.
        self.context.with(|_| {
            modules::clear(&self.state);
            self.state.clear();
        });
    }
}
