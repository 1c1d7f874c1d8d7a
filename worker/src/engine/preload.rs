//! Owns the preparation of the engine in the zygote, once for all sessions: runtime, context, globals and prelude. Knows nothing of
//! sessions.

use super::compiled::sys::CompiledScript;
use super::own_scripts::{OwnScript, own_text};
use super::state::{Intrinsics, SharedState};
use super::{modules, natives, platform, run, sys, task};
use rquickjs::context::intrinsic;
use rquickjs::{CatchResultExt, Context, Ctx, Function, Module, Object, Persistent, Runtime};
use std::rc::Rc;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionKind, Limits, Resolver};
use vm_system_protocol::worker::{Execute, Policy, SourceFormat};

/// Stack that JavaScript may use (bytes); less than a thread's smallest usual stack, much less than the main thread's.
pub(super) const STACK_BYTES: usize = 512 * 1024;

/// Growth of the heap before the first collection (bytes). A collection writes to every object and so ends the
/// sharing of the zygote's pages; sessions that stay small never collect.
const GC_HEADROOM_BYTES: usize = 2 * 1024 * 1024;

/// The prelude: what it captures first, then its parts.
pub(super) const PRELUDE: &[OwnScript; 8] = &[
    OwnScript { name: "vm:core", text: own_text!("core.js") },
    OwnScript { name: "vm:buffer", text: own_text!("buffer.js") },
    OwnScript { name: "vm:web", text: own_text!("web.js") },
    OwnScript { name: "vm:modules", text: own_text!("modules.js") },
    OwnScript { name: "vm:fs", text: own_text!("fs.js") },
    OwnScript { name: "vm:database", text: own_text!("database.js") },
    OwnScript { name: "vm:exec", text: own_text!("exec.js") },
    OwnScript { name: "vm:question", text: own_text!("question.js") },
];

/// Why the engine could not be prepared: a defect of the build, or no memory.
#[derive(Debug, thiserror::Error)]
#[error("the JavaScript engine could not be prepared: {0}")]
pub struct EngineError(String);

/// A runtime with everything that sessions share. Created once; each forked child turns its copy into a session.
pub struct Preloaded(pub(super) EngineParts);

/// The parts of QuickJS that are dropped together.
pub(super) struct EngineParts {
    // Order matters: the context is dropped before its runtime.
    pub(super) context: Context,
    _collector: sys::CollectorGuard,
    pub(super) runtime: Runtime,
    pub(super) state: SharedState,
}

impl Drop for EngineParts {
    fn drop(&mut self) {
        // Values of the script must be dropped before their runtime.
        self.context.with(|_| self.state.clear());
    }
}

/// Creates the runtime, within milliseconds. Needs no files and starts no threads.
pub fn preload() -> Result<Preloaded, EngineError> {
    let plain = |error: rquickjs::Error| EngineError(error.to_string());
    let runtime = Runtime::new_with_alloc(sys::CountingAllocator).map_err(plain)?;
    runtime.set_max_stack_size(STACK_BYTES);
    // No collection while the prelude is evaluated: nothing would be freed.
    runtime.set_gc_threshold(usize::MAX);
    let context = Context::custom::<intrinsic::All>(&runtime).map_err(plain)?;
    let state: SharedState = Rc::default();
    let collector = state.collector.attach(&context);
    context.with(|ctx| install(&ctx, &state).catch(&ctx).map_err(|error| EngineError(error.to_string())))?;
    let shared = state.clone();
    runtime.set_interrupt_handler(Some(Box::new(move || shared.interrupted())));
    let shared = state.clone();
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, handled| {
        shared.rejections.borrow_mut().track(&ctx, promise, reason, handled);
    })));
    modules::install_loader(&runtime, &state);
    context.with(|ctx| {
        warm(&ctx, &state);
        state.compiled.borrow_mut().parts = platform::load_parts(&ctx, platform::COMMON_PARTS);
    });
    settle_heap(&context, &runtime);
    Ok(Preloaded(EngineParts { context, _collector: collector, runtime, state }))
}

/// Ends the preparation: everything that is on the heap stays; later allocations belong to sessions.
pub(super) fn settle_heap(context: &Context, runtime: &Runtime) {
    runtime.run_gc();
    sys::plug_holes();
    context.with(|ctx| sys::plug_pools(&ctx));
    runtime.set_gc_threshold(sys::heap_bytes() + GC_HEADROOM_BYTES);
}

fn install(ctx: &Ctx<'_>, state: &SharedState) -> rquickjs::Result<()> {
    natives::install_console(ctx, state)?;
    natives::install_random(ctx, state)?;
    let natives = natives::natives(ctx, state)?;
    modules::install_natives(ctx, state, &natives)?;
    task::install(ctx, state, &natives)?;
    platform::install_natives(ctx, state, &natives)?;
    let [core, parts @ ..] = PRELUDE;
    let captured: Object = function_of(ctx, core)?.call((natives.clone(),))?;
    for part in parts {
        let _: rquickjs::Value = function_of(ctx, part)?.call((natives.clone(), captured.clone()))?;
    }
    platform::install(&captured)?;
    *state.intrinsics.borrow_mut() = Some(Intrinsics::new(ctx, captured)?);
    modules::install(ctx, state)?;
    // One evaluation, so that the lazily created data of parser and compiler is shared as well.
    let _: rquickjs::Value = state.captured_function(ctx, "touch")?.call(())?;
    // Loads the local time zone from its file, which sessions cannot open.
    let _: rquickjs::Value = ctx.eval("[1,2,3].map(x => x * 2); new Date(0).getTimezoneOffset()")?;
    Ok(())
}

/// Runs the common operations of sessions once, so that caches, lazy built-ins and code pages exist and are shared.
fn warm(ctx: &Ctx<'_>, state: &SharedState) {
    for source in [
        "1 + 2",
        "let warm = await [1, 2].map((x) => ({ x })); warm",
        "class Warm {}; console.log('%s', { warm }, new Map([[1, new Set([2])]]), [new Error('warm')], Warm)",
        "warm.missing.field",
        "delete globalThis.warm; delete globalThis.Warm; void 0",
    ] {
        let job = Execute {
            execution: ExecutionId::from_bytes([0; 16]),
            kind: ExecutionKind::Repl,
            source: source.to_owned(),
            file_name: modules::REPL_NAME.to_owned(),
            format: SourceFormat::Script,
            args: JsonText::empty_object(),
            env: Vec::new(),
            argv: Vec::new(),
            policy: Policy {
                limits: Limits::default(),
                resolver: Resolver::default(),
                strict: false,
                modules: Vec::new(),
                refused_modules: Vec::new(),
                disabled_globals: Vec::new(),
            },
        };
        state.budget.begin(&job.policy.limits);
        run::execute(ctx, state, &job);
    }
    state.forget_warm_up();
}

/// The function that a script of ours evaluates to.
pub(super) fn function_of<'js>(ctx: &Ctx<'js>, script: &OwnScript) -> rquickjs::Result<Function<'js>> {
    CompiledScript::of_ours(ctx, script).ok_or(rquickjs::Error::Allocation)?.evaluate(ctx)
}

/// A module namespace, as the sample of its class.
fn namespace<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let (module, _) = Module::declare(ctx.clone(), "vm:namespace", "export default 0;")?.eval()?;
    module.namespace()
}

impl Intrinsics {
    fn new<'js>(ctx: &Ctx<'js>, captured: Object<'js>) -> rquickjs::Result<Self> {
        let classes = super::inspect::ClassNumbers::learn(&captured.get("samples")?, &namespace(ctx)?)?;
        Ok(Self { captured: Persistent::save(ctx, captured), classes })
    }
}
