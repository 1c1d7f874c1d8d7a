//! Owns a session's libraries: they are evaluated once, in the zygote, and every forked session has their values. Knows nothing of
//! the origin of the sources.
//!
//! A library is one file without relative imports, or a bundle (`modules::bundle`). `CommonJS`, UMD and scripts that set or declare
//! their global variable run in a function like a required file; ES modules run as modules. A library may `require` others of its set.

use super::host::Host;
use super::modules::{self, LibraryBundle, LibraryKind, LoadedBundle};
use super::preload::{self, Preloaded};
use super::source::without_nul;
use super::state::SharedState;
use super::{natives, run, sys};
use rquickjs::{Ctx, Persistent, Promise, Result, Value};
use std::rc::Rc;
use std::time::Duration;
use vm_system_protocol::limits::{LIBRARY_HEAP_MB, LIBRARY_MS};
use vm_system_protocol::model::Limits;
use vm_system_protocol::worker::{HostError, HostReply, HostRequest, WorkerEvent};

/// Longest error message about a library (bytes).
const MESSAGE_BYTES: usize = 2_000;

/// A library with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibrarySource {
    /// `id-version`; the name of its file in stacks.
    pub name: String,
    /// The name in `require` and `import`.
    pub id: String,
    /// The global variable that the library sets.
    pub global: Option<String>,
    /// The text of the library's only file, or of its bundle.
    pub source: String,
}

/// The failed evaluation of a library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {message}")]
pub struct LibraryEvaluationError {
    /// `id-version`.
    pub name: String,
    /// The exception and its position, or the limit that was reached.
    pub message: String,
}

/// The evaluated libraries of a session.
#[derive(Default)]
pub(super) struct LibraryTable(Vec<LibraryEntry>);

struct LibraryEntry {
    library: LibrarySource,
    state: Evaluation,
    /// The files of a library of several files, which functions of it may require at any time.
    bundle: Option<Rc<LoadedBundle>>,
}

enum Evaluation {
    NotYet,
    /// Being evaluated. A library that requires this one in a cycle gets its `module`.
    Running(Option<Persistent<rquickjs::Object<'static>>>),
    Done {
        exports: Persistent<Value<'static>>,
        /// The name in QuickJS of a library that is an ES module.
        module: Option<String>,
    },
}

/// The host of libraries while they are evaluated: refuses every call and discards output.
struct DiscardingHost;

impl Host for DiscardingHost {
    fn emit(&mut self, _event: WorkerEvent) {}

    fn call(&mut self, _request: HostRequest) -> HostReply {
        let message = "a library cannot reach the host while it is evaluated".to_owned();
        HostReply::Failed(HostError { code: "ERR_NO_HOST".to_owned(), message })
    }

    fn poll(&mut self) {}

    fn sleep(&mut self, at_most: Duration) {
        std::thread::park_timeout(at_most.min(Duration::from_millis(20)));
    }
}

impl Preloaded {
    /// Evaluates a set of libraries in order; a required library is evaluated first. Called once, before any session.
    pub fn load_libraries(
        &mut self,
        libraries: Vec<LibrarySource>,
    ) -> std::result::Result<(), LibraryEvaluationError> {
        let machine = &self.0;
        let heap = LIBRARY_HEAP_MB as usize * 1024 * 1024;
        machine.state.heap_limit.set(heap);
        machine.runtime.set_memory_limit(heap);
        sys::reset_heap_peak();
        let names: Vec<String> = libraries.iter().map(|library| library.name.clone()).collect();
        *machine.state.libraries.borrow_mut() = LibraryTable(
            libraries
                .into_iter()
                .map(|library| LibrarySource { source: without_nul(library.source), ..library })
                .map(|library| LibraryEntry { library, state: Evaluation::NotYet, bundle: None })
                .collect(),
        );
        let state = &machine.state;
        for (place, name) in names.into_iter().enumerate() {
            let evaluated = state
                .host
                .scoped(&mut DiscardingHost, || machine.context.with(|ctx| evaluate_at(&ctx, state, place)));
            evaluated.map_err(|message| LibraryEvaluationError { name, message: cut(message) })?;
        }
        preload::settle_heap(&machine.context, &machine.runtime);
        Ok(())
    }
}

/// Evaluates one library of the set as a separate execution, unless another one required it already.
fn evaluate_at(ctx: &Ctx<'_>, state: &SharedState, place: usize) -> std::result::Result<(), String> {
    let limits = Limits {
        cpu_ms: LIBRARY_MS,
        // No wall limit: the machine may be busy.
        wall_ms: 2 * LIBRARY_MS,
        mem_mb: LIBRARY_HEAP_MB,
        max_events: u32::MAX,
        max_output_kb: u32::MAX,
        ..Limits::default()
    };
    if matches!(state.libraries.borrow().0.get(place), Some(LibraryEntry { state: Evaluation::NotYet, .. })) {
        state.budget.begin(&limits);
        run::to_the_end(ctx, state, LIBRARY_HEAP_MB, || begin(ctx, state, place))?;
    }
    conclude(ctx, state, place).map_err(|error| {
        drop(ctx.catch());
        error.to_string()
    })?;
    let libraries = state.libraries.borrow();
    let Some(LibraryEntry { library, state: Evaluation::Done { exports, .. }, .. }) = libraries.0.get(place)
    else {
        return Err("it was not evaluated".to_owned());
    };
    let (global, exports) = (library.global.clone(), exports.clone());
    drop(libraries);
    let Some(global) = global else { return Ok(()) };
    let define = || natives::define_hidden(&ctx.globals(), &global, exports.restore(ctx)?);
    define().map_err(|_: rquickjs::Error| {
        drop(ctx.catch());
        format!("the global variable {global} cannot be set")
    })
}

/// Starts the evaluation; a module's promise settles when the module has run.
fn begin<'js>(ctx: &Ctx<'js>, state: &SharedState, place: usize) -> Result<Option<Promise<'js>>> {
    let library = {
        let mut libraries = state.libraries.borrow_mut();
        let Some(entry) = libraries.0.get_mut(place) else { return Ok(None) };
        entry.state = Evaluation::Running(None);
        // The text is not needed again.
        let source = std::mem::take(&mut entry.library.source);
        LibrarySource { source, ..entry.library.clone() }
    };
    if let Some(global) = &library.global
        && ctx.globals().contains_key(global.as_str())?
    {
        let message = format!("there is a global variable {global} already");
        return Err(rquickjs::Exception::throw_message(ctx, &message));
    }
    let started = match LibraryBundle::parse(&library.source) {
        Some(bundle) => {
            let bundle = bundle.map_err(|message| rquickjs::Exception::throw_message(ctx, &message))?;
            let bundle = Rc::new(LoadedBundle::new(&library.name, bundle));
            if let Some(entry) = state.libraries.borrow_mut().0.get_mut(place) {
                entry.bundle = Some(Rc::clone(&bundle));
            }
            modules::start_bundle(ctx, state, &library, &bundle)?
        }
        None => modules::start_library(ctx, state, &library, |module| {
            if let Some(entry) = state.libraries.borrow_mut().0.get_mut(place) {
                entry.state = Evaluation::Running(Some(module));
            }
        })?,
    };
    let (exports, module, promise) = match started {
        LibraryKind::Script(exports) => (exports, None, None),
        LibraryKind::Module(name, exports, promise) => (exports, Some(name), Some(promise)),
    };
    let exports = Persistent::save(ctx, exports);
    if let Some(entry) = state.libraries.borrow_mut().0.get_mut(place) {
        entry.state = Evaluation::Done { exports, module };
    }
    Ok(promise)
}

/// A module's value is its default export, if there is one; it exists only after the module has run.
fn conclude(ctx: &Ctx<'_>, state: &SharedState, place: usize) -> Result<()> {
    let (namespace, module) = match state.libraries.borrow().0.get(place) {
        Some(LibraryEntry { state: Evaluation::Done { exports, module: Some(module) }, .. }) => {
            (exports.clone(), module.clone())
        }
        _ => return Ok(()),
    };
    let namespace = namespace.restore(ctx)?;
    let Some(object) = namespace.as_object() else { return Ok(()) };
    if object.contains_key("default")? {
        let exports = Persistent::save(ctx, object.get::<_, Value>("default")?);
        if let Some(entry) = state.libraries.borrow_mut().0.get_mut(place) {
            entry.state = Evaluation::Done { exports, module: Some(module) };
        }
    }
    Ok(())
}

/// The result of `require(id)`, if there is a library of that name. While libraries are evaluated, a required library is
/// evaluated first.
pub(super) fn require<'js>(ctx: &Ctx<'js>, state: &SharedState, id: &str) -> Result<Option<Value<'js>>> {
    enum Found {
        Exports(Persistent<Value<'static>>),
        Module(Option<Persistent<rquickjs::Object<'static>>>),
        NotYet(usize),
    }
    let found = {
        let libraries = state.libraries.borrow();
        let Some((place, entry)) = libraries.0.iter().enumerate().find(|(_, entry)| entry.library.id == id)
        else {
            return Ok(None);
        };
        match &entry.state {
            Evaluation::Done { exports, .. } => Found::Exports(exports.clone()),
            Evaluation::Running(module) => Found::Module(module.clone()),
            Evaluation::NotYet => Found::NotYet(place),
        }
    };
    match found {
        Found::Exports(exports) => exports.restore(ctx).map(Some),
        Found::Module(Some(module)) => module.restore(ctx)?.get("exports").map(Some),
        Found::Module(None) => {
            Err(rquickjs::Exception::throw_message(ctx, &format!("{id} requires itself before it runs")))
        }
        Found::NotYet(place) => {
            begin(ctx, state, place)?;
            require(ctx, state, id)
        }
    }
}

/// A library as `import` sees it: an ES module, or one that is created from its value.
pub(super) enum Imported {
    /// A module of this name is declared in QuickJS.
    Module(String),
    /// A module must be created from the result of `require`.
    Value,
}

/// The meaning of `import id`, if there is a library of that name.
pub(super) fn imported(state: &SharedState, id: &str) -> Option<Imported> {
    let libraries = state.libraries.borrow();
    let entry = libraries.0.iter().find(|entry| entry.library.id == id)?;
    Some(match &entry.state {
        Evaluation::Done { module: Some(module), .. } => Imported::Module(module.clone()),
        _ => Imported::Value,
    })
}

/// The bundle to which a file belongs.
pub(super) fn bundle_of(state: &SharedState, path: &str) -> Option<Rc<LoadedBundle>> {
    if !LoadedBundle::is_path(path) {
        return None;
    }
    let libraries = state.libraries.borrow();
    let bundles = libraries.0.iter().filter_map(|entry| entry.bundle.as_ref());
    bundles.into_iter().find(|bundle| bundle.covers(path)).cloned()
}

/// Whether libraries are being evaluated; they have no access to files.
pub(super) fn is_evaluating(state: &SharedState) -> bool {
    state.libraries.borrow().0.iter().any(|entry| matches!(entry.state, Evaluation::Running(_)))
}

fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES {
        let end = (0..=MESSAGE_BYTES).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    message
}
