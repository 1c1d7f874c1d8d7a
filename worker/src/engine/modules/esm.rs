//! Owns ES modules: resolving and loading for QuickJS, `import.meta`, and modules that wrap values of other files.

use super::common_js::{exports_for_import, host_exports, parse_json};
use super::find::{FoundModule, ModuleFinder};
use super::load::{has_module_syntax, javascript};
use super::required_esm::{FACADE_PREFIX, refuse_cycle};
use super::{LoadedFile, REPL_NAME, folder_of, host_module, is_allowed, keep_map};
use crate::engine::library::{self, Imported};
use crate::engine::position::{FileMap, shown_name};
use crate::engine::state::SharedState;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::object::Filter;
use rquickjs::{Ctx, Error, Function, Module, Promise, Result, Runtime, Value};
use std::fmt::Write;
use vm_system_protocol::worker::SourceFormat;

/// Connects QuickJS's module loading with the host.
pub(in crate::engine) fn install_loader(runtime: &Runtime, state: &SharedState) {
    runtime.set_loader(HostResolver(state.clone()), HostLoader(state.clone()));
}

/// Prefix of the names of modules that wrap a library's value; no path begins with it.
const LIBRARY_PREFIX: &str = "library:";

struct HostResolver(SharedState);
struct HostLoader(SharedState);

impl Resolver for HostResolver {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let state = &self.0;
        let base = shown_name(base);
        if base.starts_with(FACADE_PREFIX) {
            refuse_cycle(ctx, state, name)?;
            return Ok(name.to_owned());
        }
        let referrer = if base == REPL_NAME { "" } else { base };
        let name = self.named(ctx, referrer, name)?;
        if !referrer.is_empty() {
            state.modules.borrow_mut().imports.entry(referrer.to_owned()).or_default().push(name.clone());
        }
        refuse_cycle(ctx, state, &name)?;
        Ok(name)
    }
}

impl HostResolver {
    /// The path of a file, which is declared or pending; or the name of another module.
    fn file(&self, ctx: &Ctx<'_>, referrer: &str, name: &str) -> Result<String> {
        let state = &self.0;
        let key = (referrer.to_owned(), name.to_owned(), true);
        {
            let table = state.modules.borrow();
            if let Some(path) = table.resolved.get(&key)
                && table.declared.contains(path)
            {
                return Ok(path.clone());
            }
        }
        let is_loaded = |path: &str| state.modules.borrow().declared.contains(path);
        let found = ModuleFinder { ctx, state, referrer, import: true, is_loaded: &is_loaded }.find(name)?;
        let path = match found {
            FoundModule::Loaded(path) => path,
            FoundModule::Other { specifier, referrer } => return self.named(ctx, &referrer, &specifier),
            FoundModule::File(file) => {
                let path = file.path.clone();
                let mut table = state.modules.borrow_mut();
                if !table.declared.contains(&path) {
                    table.pending.insert(path.clone(), file);
                }
                path
            }
        };
        state.modules.borrow_mut().resolved.insert(key, path.clone());
        Ok(path)
    }

    /// The name that QuickJS gets for a specifier.
    fn named(&self, ctx: &Ctx<'_>, referrer: &str, name: &str) -> Result<String> {
        let state = &self.0;
        if let Some(module) = host_module(name) {
            if !is_allowed(state, module) {
                host_exports(ctx, state, module)?;
            }
            return Ok(format!("node:{module}"));
        }
        let library = library::imported(state, name);
        if library::bundle_of(state, referrer).is_some() {
            // A library's own packages come before other libraries of the template.
            match self.file(ctx, referrer, name) {
                Err(error) if library.is_some() && error.is_exception() => drop(ctx.catch()),
                found => return found,
            }
        }
        match library {
            Some(Imported::Module(module)) => Ok(module),
            Some(Imported::Value) => Ok(format!("{LIBRARY_PREFIX}{name}")),
            None => self.file(ctx, referrer, name),
        }
    }
}

impl Loader for HostLoader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let state = &self.0;
        if let Some(module) = name.strip_prefix("node:") {
            let exports = host_exports(ctx, state, module)?;
            return of_value(ctx, name, exports, true);
        }
        if let Some(id) = name.strip_prefix(LIBRARY_PREFIX) {
            let exports = library::require(ctx, state, id)?.ok_or_else(|| Error::new_loading(name))?;
            return of_value(ctx, name, exports, true);
        }
        let pending = state.modules.borrow_mut().pending.remove(name);
        let file = pending.ok_or_else(|| Error::new_loading(name))?;
        declare_found(ctx, state, file)
    }
}

/// Declares a file that was found, as an `import` of it does.
pub(super) fn declare_found<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    file: LoadedFile,
) -> Result<Module<'js, Declared>> {
    let path = file.path.clone();
    let module = declare(ctx, state, file)?;
    state.modules.borrow_mut().declared.insert(path);
    Ok(module)
}

fn declare<'js>(ctx: &Ctx<'js>, state: &SharedState, file: LoadedFile) -> Result<Module<'js, Declared>> {
    let file = javascript(ctx, state, file, true)?;
    match file.format {
        SourceFormat::Json => {
            let value = parse_json(ctx, &file)?;
            of_value(ctx, &file.path, value, false)
        }
        SourceFormat::Script | SourceFormat::CommonJs if !has_module_syntax(&file.source) => {
            let path = file.path.clone();
            let exports = exports_for_import(ctx, state, file)?;
            of_value(ctx, &path, exports, true)
        }
        _ => {
            // The imports of the file are loaded before this returns.
            state.modules.borrow_mut().linking.push(file.path.clone());
            state.texts.borrow_mut().keep(&file.path, &file.source, true);
            let declared = Module::declare(ctx.clone(), file.path.as_str(), file.source.into_string());
            state.modules.borrow_mut().linking.pop();
            with_meta(ctx, state, declared?, &file.path)
        }
    }
}

fn with_meta<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    module: Module<'js, Declared>,
    path: &str,
) -> Result<Module<'js, Declared>> {
    let meta = module.meta()?;
    meta.set("url", format!("file:///{path}"))?;
    meta.set("filename", path)?;
    meta.set("dirname", folder_of(path))?;
    let (resolver, referrer) = (HostResolver(state.clone()), path.to_owned());
    let resolve = move |ctx: Ctx<'js>, specifier: String| -> Result<String> {
        let name = resolver.named(&ctx, &referrer, &specifier)?;
        let is_file = !name.starts_with("node:") && !name.starts_with(LIBRARY_PREFIX);
        Ok(if is_file { format!("file:///{name}") } else { name })
    };
    meta.set("resolve", Function::new(ctx.clone(), resolve)?.with_name("resolve")?)?;
    Ok(module)
}

/// A module with a value as its default export and the value's properties as named exports.
fn of_value<'js>(
    ctx: &Ctx<'js>,
    path: &str,
    value: Value<'js>,
    named: bool,
) -> Result<Module<'js, Declared>> {
    let mut text = "const value = import.meta.value; export default value;".to_owned();
    if let Some(object) = value.as_object().filter(|_| named) {
        for (index, key) in object.own_keys::<String>(Filter::new().string().enum_only()).enumerate() {
            let key = key?;
            if key != "default" {
                let name = quoted(&key);
                let _ = write!(text, "const e{index} = value[{name}]; export {{ e{index} as {name} }};");
            }
        }
    }
    let module = Module::declare(ctx.clone(), path, text)?;
    module.meta()?.set("value", value)?;
    Ok(module)
}

/// A JavaScript string literal.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\u{2028}' => quoted.push_str("\\u2028"),
            '\u{2029}' => quoted.push_str("\\u2029"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Declares and starts the main module; the promise settles when the module has run.
pub(in crate::engine) fn declare_main<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    path: &str,
    source: &str,
    map: FileMap,
) -> Result<Module<'js, Declared>> {
    let first = state.modules.borrow_mut().declared.insert(path.to_owned());
    let name = if first {
        keep_map(state, path, map);
        path.to_owned()
    } else {
        // The same file ran before, and QuickJS still has that module under its path.
        state.maps.borrow_mut().add_always(path, map)
    };
    state.modules.borrow_mut().linking.push(path.to_owned());
    state.texts.borrow_mut().keep(&name, source, true);
    let declared = Module::declare(ctx.clone(), name.as_str(), source);
    state.modules.borrow_mut().linking.pop();
    match declared {
        Ok(module) => with_meta(ctx, state, module, path),
        Err(error) => {
            if first {
                state.modules.borrow_mut().declared.remove(path);
            }
            Err(error)
        }
    }
}

/// Evaluates a declared module.
pub(in crate::engine) fn start(module: Module<'_, Declared>) -> Result<Promise<'_>> {
    module.eval().map(|(_, promise)| promise)
}
