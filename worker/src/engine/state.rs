//! Owns the state that the callbacks of one session share: host, budget, timers, modules, rejections. Must not format values or
//! read source text.

use super::budget::{ExecutionBudget, StopReason, now};
use super::inspect::ClassNumbers;
use super::memory;
use super::messages::SourceTexts;
use super::modules::ModuleTable;
use super::position::SourceMaps;
use super::random::Random;
use super::rejections::Rejections;
use super::sys::{self, HostSlot};
use super::timers::Timers;
use rquickjs::{Ctx, Error, Function, Object, Persistent, Result, Value};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use vm_system_protocol::model::{EventPayload, Resolver};
use vm_system_protocol::worker::{HostError, HostReply, HostRequest, WorkerEvent};

/// The state of one session, shared with the native functions that scripts call.
pub(super) type SharedState = Rc<EngineState>;

/// See [`SharedState`].
#[derive(Default)]
pub(super) struct EngineState {
    pub(super) host: HostSlot,
    pub(super) budget: ExecutionBudget,
    pub(super) collector: sys::Collector,
    /// Reports about promises, once a script uses values that follow asynchronous calls.
    pub(super) promise_reports: super::platform::sys::PromiseReports,
    /// Memory limit in force (bytes).
    pub(super) heap_limit: Cell<usize>,
    /// Heap after the last collection that the engine started (bytes).
    live_heap: Cell<usize>,
    pub(super) timers: RefCell<Timers>,
    pub(super) rejections: RefCell<Rejections>,
    pub(super) http: RefCell<super::platform::http::OpenExchanges>,
    pub(super) modules: RefCell<ModuleTable>,
    pub(super) libraries: RefCell<super::library::LibraryTable>,
    pub(super) compiled: RefCell<super::compiled::Compiled>,
    pub(super) maps: RefCell<SourceMaps>,
    /// The texts from which messages of errors name expressions. Apart, so that a session writes to no more pages at its start.
    pub(super) texts: Box<RefCell<SourceTexts>>,
    pub(super) random: Random,
    pub(super) console: RefCell<super::console::ConsoleState>,
    /// How files are found.
    pub(super) resolver: RefCell<Resolver>,
    /// Names of host modules that the running execution may use.
    pub(super) allowed_modules: RefCell<Vec<String>>,
    /// Host modules that the execution may not use although the template names them, with the reason.
    pub(super) refused_modules: RefCell<Vec<(String, String)>>,
    /// Top-level constants of earlier inputs.
    pub(super) constants: RefCell<HashSet<String>>,
    /// Functions that were captured before any script ran.
    pub(super) intrinsics: RefCell<Option<Intrinsics>>,
    /// Intrinsics that the policy disables: the location of each, and its descriptor.
    pub(super) withdrawn: RefCell<HashMap<String, Vec<Withdrawn>>>,
    /// `process.env` or `process.argv` may hold values of an earlier run.
    pub(super) run_set: Cell<bool>,
    /// Targets of weak references are kept alive to the end of the job.
    pub(super) keeps_targets: Cell<bool>,
    /// The script has listened to an event of the process's end.
    pub(super) process_listens: Cell<bool>,
    /// Monotonic time of the session's start (nanoseconds).
    pub(super) session_started: Cell<u64>,
}

/// Object, key and descriptor of a property that the policy removed.
pub(super) type Withdrawn = (Persistent<Object<'static>>, String, Persistent<Value<'static>>);

/// Functions of the language captured before a script could replace them, and the numbers of QuickJS's classes.
pub(super) struct Intrinsics {
    pub(super) captured: Persistent<Object<'static>>,
    pub(super) classes: ClassNumbers,
}

impl EngineState {
    /// Sends an event, or ends the execution if the event exceeds its limits.
    pub(super) fn emit(&self, ctx: &Ctx<'_>, payload: EventPayload) -> Result<()> {
        if !self.budget.is_running() {
            return Ok(());
        }
        if self.budget.stop().is_some() || !self.budget.take_event(payload.output_bytes()) {
            return Err(sys::throw_uncatchable(ctx));
        }
        let event = WorkerEvent { at_us: self.budget.elapsed_us(), payload };
        self.host.lend(|host| host.emit(event));
        Ok(())
    }

    /// Makes a host call; its time does not count as wall time, unless the script waits for its standard input.
    pub(super) fn call(&self, ctx: &Ctx<'_>, request: HostRequest) -> Result<HostReply> {
        if request.has_effect() {
            self.modules.borrow_mut().forget_files();
        }
        let (before, counts) = (now(), matches!(request, HostRequest::Stdin { .. }));
        let reply = self.host.lend(|host| host.call(request));
        if !counts {
            self.budget.waited(now().saturating_sub(before));
        }
        if self.budget.check() {
            return Err(sys::throw_uncatchable(ctx));
        }
        Ok(reply.unwrap_or_else(|| {
            HostReply::Failed(HostError {
                code: "ERR_NO_HOST".to_owned(),
                message: "no execution is running".to_owned(),
            })
        }))
    }

    /// Ends the execution.
    pub(super) fn stop(&self, ctx: &Ctx<'_>, stop: StopReason) -> Error {
        self.budget.stop_for(stop);
        sys::throw_uncatchable(ctx)
    }

    /// QuickJS's interrupt hook, called about every 10 000 steps: whether to stop.
    pub(super) fn interrupted(&self) -> bool {
        if !self.budget.is_running() {
            return false;
        }
        self.host.lend(|host| host.poll());
        self.collector.collect_before(self.heap_limit.get());
        if memory::takes_back_reserve(self.heap_limit.get()) {
            self.collector.restore_reserve(self.heap_limit.get());
        }
        self.budget.check()
    }

    /// The object with everything that the prelude captured. It has no prototype and no accessors.
    pub(super) fn captured<'js>(&self, ctx: &Ctx<'js>) -> Option<Object<'js>> {
        let captured = self.intrinsics.borrow().as_ref()?.captured.clone();
        captured.restore(ctx).ok()
    }

    /// A captured object.
    pub(super) fn captured_object<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Option<Object<'js>> {
        self.captured(ctx)?.get(name).ok()
    }

    /// A captured function.
    pub(super) fn captured_function<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Result<Function<'js>> {
        self.captured(ctx).ok_or(Error::Unknown)?.get(name)
    }

    /// Collects cycles that an execution left behind, if little memory is left for the next one. Costs time only in sessions that
    /// use much of their memory, and only when they have grown.
    pub(super) fn tidy_heap(&self, ctx: &Ctx<'_>) {
        let heap = sys::heap_bytes();
        if heap > self.heap_limit.get() / 2 && heap > self.live_heap.get() / 4 * 5 {
            self.collect(ctx);
        }
    }

    /// Collects cycles.
    pub(super) fn collect(&self, ctx: &Ctx<'_>) {
        ctx.run_gc();
        self.live_heap.set(sys::heap_bytes());
    }

    /// Resets everything that executions in the zygote have changed.
    pub(super) fn forget_warm_up(&self) {
        *self.maps.borrow_mut() = SourceMaps::default();
        *self.texts.borrow_mut() = SourceTexts::default();
        *self.console.borrow_mut() = super::console::ConsoleState::default();
        self.constants.borrow_mut().clear();
    }

    /// Drops every JavaScript value in this state; required before the runtime is dropped.
    pub(super) fn clear(&self) {
        self.timers.borrow_mut().clear();
        self.rejections.borrow_mut().clear();
        self.promise_reports.clear();
        self.http.borrow_mut().clear();
        self.modules.borrow_mut().clear();
        *self.libraries.borrow_mut() = super::library::LibraryTable::default();
        *self.compiled.borrow_mut() = super::compiled::Compiled::default();
        self.withdrawn.borrow_mut().clear();
        self.intrinsics.borrow_mut().take();
    }
}
