//! Owns how a library's text is evaluated: as a module, or in a function like a required file.

use super::common_js::{cache, call_wrapped, make_require, new_module, run_file};
use super::esm::declare_found;
use super::find::{FoundModule, ModuleFinder};
use super::load::has_module_syntax;
use super::{LoadedBundle, keep_map};
use crate::engine::library::LibrarySource;
use crate::engine::position::FileMap;
use crate::engine::state::SharedState;
use rquickjs::object::Filter;
use rquickjs::{Ctx, Module, Object, Persistent, Promise, Result, Value};
use vm_system_protocol::worker::SourceFormat;

/// A started library.
pub(in crate::engine) enum LibraryKind<'js> {
    /// A script, which has run: its exports.
    Script(Value<'js>),
    /// A module, which runs until the promise is settled: its name in QuickJS and its namespace.
    Module(String, Value<'js>, Promise<'js>),
}

/// Starts a library. `running` is called before a library that is no ES module runs, with its `module` object.
pub(in crate::engine) fn start_library<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    library: &LibrarySource,
    running: impl FnOnce(Persistent<Object<'static>>),
) -> Result<LibraryKind<'js>> {
    keep_map(state, &library.name, FileMap::default());
    if has_module_syntax(&library.source) {
        let module = Module::declare(ctx.clone(), library.name.as_str(), library.source.as_str())?;
        let (module, promise) = module.eval()?;
        return Ok(LibraryKind::Module(library.name.clone(), module.namespace()?.into_value(), promise));
    }
    let require = make_require(ctx, state, &library.name)?;
    let module = new_module(ctx, state, &library.name, &require)?;
    running(Persistent::save(ctx, module.clone()));
    // A top-level declaration of its global variable would be local to the wrapping function.
    let declared = match &library.global {
        Some(global) => {
            let name = global.as_str();
            let text =
                format!("{}\n;return typeof {name} === \"undefined\" ? undefined : {name};", library.source);
            call_wrapped(ctx, state, &module, &require, &library.name, &text)?
        }
        None => call_wrapped(ctx, state, &module, &require, &library.name, &library.source)?,
    };
    module.set("loaded", true)?;
    script_value(ctx, library, module.get("exports")?, declared)
}

/// Starts the library of several files: its entry as `require` or `import` would run it.
pub(in crate::engine) fn start_bundle<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    library: &LibrarySource,
    bundle: &LoadedBundle,
) -> Result<LibraryKind<'js>> {
    let (referrer, entry) = (bundle.referrer(), bundle.entry());
    let finder = ModuleFinder { ctx, state, referrer: &referrer, import: false, is_loaded: &|_| false };
    let FoundModule::File(file) = finder.exactly(&entry)? else {
        return Err(rquickjs::Error::new_loading(&entry));
    };
    let is_module = match file.format {
        SourceFormat::Module => true,
        SourceFormat::CommonJs => has_module_syntax(&file.source),
        _ => false,
    };
    if is_module {
        let (module, promise) = declare_found(ctx, state, file)?.eval()?;
        return Ok(LibraryKind::Module(entry, module.namespace()?.into_value(), promise));
    }
    let exports = run_file(ctx, state, &cache(ctx, state)?, file)?;
    script_value(ctx, library, exports, Value::new_undefined(ctx.clone()))
}

/// The exports of a library that is no ES module, or else its global variable.
fn script_value<'js>(
    ctx: &Ctx<'js>,
    library: &LibrarySource,
    exports: Value<'js>,
    declared: Value<'js>,
) -> Result<LibraryKind<'js>> {
    if !is_empty(&exports) {
        return Ok(LibraryKind::Script(exports));
    }
    // Without exports, its value is the global variable.
    let Some(global) = &library.global else { return Ok(LibraryKind::Script(exports)) };
    let globals = ctx.globals();
    let own = if globals.contains_key(global.as_str())? { globals.get(global.as_str())? } else { declared };
    if own.is_undefined() {
        let message = format!("it neither exports anything nor sets the global variable {global}");
        return Err(rquickjs::Exception::throw_message(ctx, &message));
    }
    Ok(LibraryKind::Script(own))
}

/// Whether `module.exports` is still the initial object.
fn is_empty(exports: &Value<'_>) -> bool {
    exports.as_object().is_some_and(|object| {
        !object.is_function()
            && !object.is_array()
            && object.own_keys::<Value>(Filter::new().string().symbol()).next().is_none()
    })
}
