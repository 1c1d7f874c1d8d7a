//! Owns `import` and `require`: worktree files through the host, and host modules that the policy lists. `find` lists the files that a
//! specifier may mean; the supervisor reads the first that exists, and its path identifies the module.

mod bundle;
mod bundle_files;
mod common_js;
mod esm;
mod exports;
mod find;
pub(super) mod host_call;
mod host_database;
mod host_exec;
mod host_fs;
mod library;
mod load;
mod missing;
mod neighbour;
mod package;
mod required_esm;

pub use bundle::LibraryBundle;
pub(super) use bundle::LoadedBundle;
pub use bundle_files::{MissingPackage, PackageFiles};
pub(super) use common_js::{run_common_js, wrap};
pub(super) use esm::{declare_main, install_loader, start};
pub(super) use library::{LibraryKind, start_bundle, start_library};
pub(super) use load::syntax_error;

use super::natives;
use super::platform::node;
use super::position::FileMap;
use super::source::without_nul;
use super::state::SharedState;
use rquickjs::{Ctx, Object, Persistent, Result, Value};
use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::rc::Rc;
use vm_system_protocol::model::ExecutionKind;
use vm_system_protocol::worker::{Execute, NOT_GRANTED, SourceFormat};

/// The name under which repl input is evaluated; specifiers in it are relative to the resolver's roots.
pub(super) const REPL_NAME: &str = "repl";

/// A file of the host or of a library's bundle.
pub(super) struct LoadedFile {
    pub(super) path: String,
    pub(super) source: LoadedText,
    pub(super) format: SourceFormat,
}

/// The text of a file.
pub(super) enum LoadedText {
    Received(String),
    /// Of a module that the zygote has compiled.
    Compiled(Rc<str>),
}

impl Deref for LoadedText {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Received(text) => text,
            Self::Compiled(text) => text,
        }
    }
}

impl LoadedText {
    fn into_string(self) -> String {
        match self {
            Self::Received(text) => text,
            Self::Compiled(text) => text.as_ref().to_owned(),
        }
    }
}

impl LoadedFile {
    fn new(path: String, source: String, format: SourceFormat) -> Self {
        Self { path, source: LoadedText::Received(without_nul(source)), format }
    }
}

/// The modules of a session.
#[derive(Default)]
pub(super) struct ModuleTable {
    /// (referrer, specifier, import) to path, for modules that exist.
    resolved: HashMap<(String, String, bool), String>,
    /// ES modules that were declared.
    declared: HashSet<String>,
    /// Files that were resolved and are about to be declared.
    pending: HashMap<String, LoadedFile>,
    /// `require.cache`: an object without a prototype, from path to `module`.
    cache: Option<Persistent<Object<'static>>>,
    /// The file of the most recently created `require`.
    require_of: Option<String>,
    /// The files that the running execution knows.
    known: find::KnownFiles,
    /// `CommonJS` modules whose texts run, one within the other.
    evaluating: u32,
    /// Which file required another one first.
    required_by: HashMap<String, String>,
    /// ES modules that are being linked, outermost first.
    linking: Vec<String>,
    /// ES modules that were being linked when a `require` of an ES module began: it must not reach them.
    linked_later: HashSet<String>,
    /// The modules that an ES module imports.
    imports: HashMap<String, Vec<String>>,
    /// Counts the modules by which ES modules are required.
    facades: u64,
}

impl ModuleTable {
    /// Drops all values of the script.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Forgets what is known of files, which may have changed.
    pub(super) fn forget_files(&mut self) {
        self.known = find::KnownFiles::default();
    }
}

/// Creates the functions that the prelude and scripts call.
pub(super) fn install(ctx: &Ctx<'_>, state: &SharedState) -> Result<()> {
    let cache = Object::new_proto(ctx.clone(), None)?;
    state.modules.borrow_mut().cache = Some(Persistent::save(ctx, cache));
    Ok(())
}

/// Natives that the prelude needs.
pub(super) fn install_natives<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    host_fs::install(ctx, state, natives)?;
    host_database::install(ctx, state, natives)?;
    host_exec::install(ctx, state, natives)?;
    common_js::install(ctx, state, natives)
}

/// The name of a module of the host or of Node, without `node:`; `None` for anything else.
pub(super) fn host_module(specifier: &str) -> Option<&'static str> {
    let name = specifier.strip_prefix("node:");
    match name.unwrap_or(specifier) {
        "fs" => Some("fs"),
        "fs/promises" => Some("fs/promises"),
        // Not a module of Node, so without the prefix `node:`; a file of the worktree can be required as `./database`.
        "database" if name.is_none() => Some("database"),
        "exec" if name.is_none() => Some("exec"),
        // As in Node, these have the prefix always: packages have the names without it.
        "test" | "test/reporters" | "sea" | "sqlite" if name.is_none() => None,
        other => node::module_name(other),
    }
}

/// Whether the running execution may use a host module.
pub(super) fn is_allowed(state: &SharedState, module: &str) -> bool {
    if node::is_available(module) {
        return true;
    }
    let name = module.split('/').next().unwrap_or(module);
    state.allowed_modules.borrow().iter().any(|allowed| allowed == name || allowed == module)
}

/// The error text of a module that is not allowed, in the words of the contract: one that does not exist at all has Node's words.
pub(super) fn refusal(state: &SharedState, module: &str) -> String {
    if let Some(why) = node::refusal(module) {
        return format!("Invalid module '{module}': it is not available in sessions: {why}.");
    }
    let refused = state.refused_modules.borrow();
    let why = refused.iter().find(|(name, _)| name == module).map(|(_, why)| why.as_str());
    let why = why.unwrap_or(NOT_GRANTED);
    format!("Invalid module '{module}': {why}.")
}

/// Defines an ordinary property, whatever its name.
fn define_plain<'js>(object: &Object<'js>, name: &str, value: Value<'js>) -> Result<()> {
    object.prop(name, rquickjs::object::Property::from(value).enumerable().writable().configurable())
}

/// Sets `require` for the run that begins. Returns the other variables of a file: `module`, `exports`, `__filename`, `__dirname`.
pub(super) fn begin<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    job: &Execute,
) -> Result<Vec<(&'static str, Value<'js>)>> {
    let file = job.kind != ExecutionKind::Repl;
    state.modules.borrow_mut().forget_files();
    if *state.resolver.borrow() != job.policy.resolver {
        state.resolver.borrow_mut().clone_from(&job.policy.resolver);
    }
    let referrer = if file { job.file_name.as_str() } else { "" };
    if !file && state.modules.borrow().require_of.as_deref() == Some("") {
        return Ok(Vec::new());
    }
    let globals = ctx.globals();
    let require = common_js::make_require(ctx, state, referrer)?;
    natives::define_hidden(&globals, "require", require.clone().into_value())?;
    state.modules.borrow_mut().require_of = Some(referrer.to_owned());
    if !file || job.format == SourceFormat::Module || job.format == SourceFormat::TypeScriptModule {
        return Ok(Vec::new());
    }
    let module = common_js::new_module(ctx, state, referrer, &require)?;
    common_js::set_main(ctx, state, &module, &require)?;
    let exports: Value = module.get("exports")?;
    let text =
        |text: &str| Ok::<_, rquickjs::Error>(rquickjs::String::from_str(ctx.clone(), text)?.into_value());
    Ok(vec![
        ("module", module.into_value()),
        ("exports", exports),
        ("__filename", text(referrer)?),
        ("__dirname", text(folder_of(referrer))?),
    ])
}

/// The folder of a path; `.` for the worktree itself.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(folder, _)| folder)
}

/// Keeps the map of a module's text under its path.
fn keep_map(state: &SharedState, path: &str, map: FileMap) {
    state.maps.borrow_mut().set(path, map);
}
