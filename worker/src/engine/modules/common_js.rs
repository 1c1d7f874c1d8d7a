//! Owns `require`: wrapping, caching, cycles, JSON.

use super::find::{FoundModule, ModuleFinder};
use super::load::{coded_error, has_module_syntax, javascript};
use super::required_esm::require_module;
use super::{LoadedFile, folder_of, host_module, is_allowed, keep_map, refusal};
use crate::engine::library;
use crate::engine::platform::node;
use crate::engine::position::{FileMap, Insertion};
use crate::engine::state::SharedState;
use rquickjs::context::EvalOptions;
use rquickjs::function::This;
use rquickjs::{Ctx, Error, Function, Object, Result, Value};
use vm_system_protocol::worker::SourceFormat;

/// Without parentheses: QuickJS reads all between them twice, to know whether an arrow follows.
const HEAD: &str = "0,function (exports, require, module, __filename, __dirname) {";

/// `require(specifier, referrer)` and `resolve(specifier, referrer)` for the prelude.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    natives.set(
        "require",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, specifier: String, referrer: String| {
            require(&ctx, &shared, &specifier, &referrer)
        })?,
    )?;
    natives.set(
        "isBuiltin",
        Function::new(ctx.clone(), |specifier: String| host_module(&specifier).is_some())?,
    )?;
    let shared = state.clone();
    natives.set("runsModule", Function::new(ctx.clone(), move || shared.modules.borrow().evaluating > 0)?)?;
    let shared = state.clone();
    natives.set(
        "resolve",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, specifier: String, referrer: String| {
            resolve(&ctx, &shared, specifier, &referrer)
        })?,
    )
}

/// A `require` function that resolves relative specifiers from `referrer`.
pub(super) fn make_require<'js>(ctx: &Ctx<'js>, state: &SharedState, referrer: &str) -> Result<Object<'js>> {
    state.captured_function(ctx, "makeRequire")?.call((referrer, cache(ctx, state)?))
}

/// A fresh `module` object.
pub(super) fn new_module<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    path: &str,
    require: &Object<'js>,
) -> Result<Object<'js>> {
    let parent = state.modules.borrow().required_by.get(path).cloned();
    state.captured_function(ctx, "newModule")?.call((path, require.clone(), parent))
}

/// Makes a module the one that the run is about.
pub(super) fn set_main<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    module: &Object<'js>,
    require: &Object<'js>,
) -> Result<()> {
    state.captured_function(ctx, "setMain")?.call((module.clone(), require.clone()))
}

pub(super) fn cache<'js>(ctx: &Ctx<'js>, state: &SharedState) -> Result<Object<'js>> {
    let cache = state.modules.borrow().cache.clone();
    cache.ok_or(Error::Unknown)?.restore(ctx)
}

fn exports_of<'js>(cache: &Object<'js>, path: &str) -> Result<Option<Value<'js>>> {
    let module: Value = cache.get(path)?;
    module.as_object().map(|module| module.get("exports")).transpose()
}

fn require<'js>(ctx: &Ctx<'js>, state: &SharedState, specifier: &str, referrer: &str) -> Result<Value<'js>> {
    if let Some(module) = host_module(specifier) {
        return host_exports(ctx, state, module);
    }
    // A library's own packages come before other libraries of the template.
    let is_bundled = library::bundle_of(state, referrer).is_some();
    if !is_bundled && let Some(exports) = library::require(ctx, state, specifier)? {
        return Ok(exports);
    }
    let cache = cache(ctx, state)?;
    let key = (referrer.to_owned(), specifier.to_owned(), false);
    let known = state.modules.borrow().resolved.get(&key).cloned();
    if let Some(exports) = known.map(|path| exports_of(&cache, &path)).transpose()?.flatten() {
        return Ok(exports);
    }
    let found = match find(ctx, state, specifier, referrer) {
        Err(error) if is_bundled && error.is_exception() => {
            let thrown = ctx.catch();
            let other = library::require(ctx, state, specifier)?;
            return other.ok_or_else(|| ctx.throw(thrown));
        }
        found => found?,
    };
    let path = match found {
        FoundModule::Other { specifier, referrer } => return require(ctx, state, &specifier, &referrer),
        FoundModule::Loaded(path) => path,
        FoundModule::File(file) => {
            let path = file.path.clone();
            state.modules.borrow_mut().resolved.insert(key, path.clone());
            if !referrer.is_empty() {
                state.modules.borrow_mut().required_by.entry(path).or_insert_with(|| referrer.to_owned());
            }
            return run_file(ctx, state, &cache, file);
        }
    };
    state.modules.borrow_mut().resolved.insert(key, path.clone());
    exports_of(&cache, &path)?.ok_or_else(|| Error::new_loading(&path))
}

/// The file that a specifier means for `require`.
fn find(ctx: &Ctx<'_>, state: &SharedState, specifier: &str, referrer: &str) -> Result<FoundModule> {
    let cache = cache(ctx, state)?;
    let is_loaded = |path: &str| cache.contains_key(path).unwrap_or(false);
    ModuleFinder { ctx, state, referrer, import: false, is_loaded: &is_loaded }.find(specifier)
}

/// The path of the file that a specifier means for `require`, or the name of a host module or library.
fn resolve(ctx: &Ctx<'_>, state: &SharedState, specifier: String, referrer: &str) -> Result<String> {
    let is_bundled = library::bundle_of(state, referrer).is_some();
    let is_library = library::imported(state, &specifier).is_some();
    if host_module(&specifier).is_some() || (is_library && !is_bundled) {
        return Ok(specifier);
    }
    let found = match find(ctx, state, &specifier, referrer) {
        Err(error) if is_library && error.is_exception() => {
            drop(ctx.catch());
            return Ok(specifier);
        }
        found => found?,
    };
    match found {
        FoundModule::File(file) => Ok(file.path),
        FoundModule::Loaded(path) => Ok(path),
        FoundModule::Other { specifier, referrer } => resolve(ctx, state, specifier, &referrer),
    }
}

/// The exports of a host module; throws if the running execution may not use it.
pub(super) fn host_exports<'js>(ctx: &Ctx<'js>, state: &SharedState, module: &str) -> Result<Value<'js>> {
    if node::is_available(module) {
        return node::exports(ctx, state, module);
    }
    if !is_allowed(state, module) {
        let message = refusal(state, module);
        return Err(coded_error(ctx, "MODULE_NOT_ALLOWED", &message));
    }
    state.captured_function(ctx, "hostModule")?.call((module,))
}

/// The exports of a file, which is run on first use.
pub(super) fn run_file<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    cache: &Object<'js>,
    file: LoadedFile,
) -> Result<Value<'js>> {
    if let Some(exports) = exports_of(cache, &file.path)? {
        return Ok(exports);
    }
    let require = make_require(ctx, state, &file.path)?;
    let module = new_module(ctx, state, &file.path, &require)?;
    let path = file.path.clone();
    cache.set(path.as_str(), module.clone())?;
    match fill(ctx, state, &module, &require, file) {
        Ok(()) => module.get("exports"),
        Err(error) => {
            let thrown = ctx.catch();
            // The next `require` runs a module that threw again.
            if cache.remove(path.as_str()).is_err() {
                drop(ctx.catch());
            }
            Err(if error.is_exception() { ctx.throw(thrown) } else { error })
        }
    }
}

fn fill<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    module: &Object<'js>,
    require: &Object<'js>,
    file: LoadedFile,
) -> Result<()> {
    if file.format == SourceFormat::Json {
        let value = parse_json(ctx, &file)?;
        return module.set("exports", value);
    }
    let file = javascript(ctx, state, file, false)?;
    if file.format != SourceFormat::Module {
        let before = state.maps.borrow().get(&file.path).cloned().unwrap_or_default();
        match compile_wrapped(ctx, state, &file.path, &file.source) {
            Ok(wrapper) => {
                run_wrapped(state, &wrapper, module, require, &file.path)?;
                return module.set("loaded", true);
            }
            // The text is parsed for the syntax of modules only if it is no script.
            Err(error) if error.is_exception() && state.budget.stop().is_none() => {
                let thrown = ctx.catch();
                if !has_module_syntax(&file.source) {
                    return Err(ctx.throw(thrown));
                }
                keep_map(state, &file.path, before);
            }
            Err(error) => return Err(error),
        }
    }
    let exports = require_module(ctx, state, file)?;
    module.set("exports", exports)?;
    module.set("loaded", true)
}

/// The exports of an already requested file, for `import` of a file that is no ES module.
pub(super) fn exports_for_import<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    file: LoadedFile,
) -> Result<Value<'js>> {
    run_file(ctx, state, &cache(ctx, state)?, file)
}

/// Parses a JSON file; the error names it.
pub(super) fn parse_json<'js>(ctx: &Ctx<'js>, file: &LoadedFile) -> Result<Value<'js>> {
    ctx.json_parse(file.source.trim_start_matches('\u{feff}')).map_err(|error| {
        let thrown = ctx.catch();
        let message = thrown.as_exception().and_then(rquickjs::Exception::message).unwrap_or_default();
        let _ = error;
        rquickjs::Exception::throw_syntax(ctx, &format!("{}: {message}", file.path))
    })
}

pub(super) fn call_wrapped<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    module: &Object<'js>,
    require: &Object<'js>,
    path: &str,
    source: &str,
) -> Result<Value<'js>> {
    run_wrapped(state, &compile_wrapped(ctx, state, path, source)?, module, require, path)
}

fn compile_wrapped<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    path: &str,
    source: &str,
) -> Result<Function<'js>> {
    if let Some((module, script)) = state.compiled.borrow().find(path, source) {
        state.texts.borrow_mut().keep(&module.name, &module.text, false);
        return script.evaluate(ctx);
    }
    let (name, text) = wrap(state, path, source);
    state.texts.borrow_mut().keep(&name, &text, false);
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name);
    ctx.eval_with_options(text, options)
}

/// The script that evaluates to a module's function, and the name to evaluate it under.
pub(in crate::engine) fn wrap(state: &SharedState, path: &str, source: &str) -> (String, String) {
    let shell = shell(source);
    let text = format!("{HEAD}{shell}{source}\n}}");
    let mut map = state.maps.borrow().get(path).cloned().unwrap_or_default();
    let length = u32::try_from(HEAD.len() + shell.len()).unwrap_or(0);
    map.insertions = vec![Insertion { line: 1, column: 1, length }];
    (state.maps.borrow_mut().add(path, FileMap { ..map }), text)
}

/// A `#!` line is not valid JavaScript inside of the wrapper.
fn shell(source: &str) -> &'static str {
    if source.starts_with("#!") { "//" } else { "" }
}

fn run_wrapped<'js>(
    state: &SharedState,
    wrapper: &Function<'js>,
    module: &Object<'js>,
    require: &Object<'js>,
    path: &str,
) -> Result<Value<'js>> {
    let exports: Value = module.get("exports")?;
    let arguments = (
        This(exports.clone()),
        exports,
        require.clone(),
        module.clone(),
        path.to_owned(),
        folder_of(path).to_owned(),
    );
    state.modules.borrow_mut().evaluating += 1;
    let result = wrapper.call(arguments);
    state.modules.borrow_mut().evaluating -= 1;
    result
}

/// Runs a text as the main `CommonJS` module; returns its exports.
pub(in crate::engine) fn run_common_js<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    path: &str,
    source: &str,
) -> Result<Value<'js>> {
    let require = make_require(ctx, state, path)?;
    let module = new_module(ctx, state, path, &require)?;
    set_main(ctx, state, &module, &require)?;
    keep_map(state, path, FileMap::default());
    call_wrapped(ctx, state, &module, &require, path, source)?;
    module.set("loaded", true)?;
    module.get("exports")
}
