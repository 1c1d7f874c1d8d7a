//! Owns `require` of an ES module: a module of our own imports it, which is evaluated at once.

use super::LoadedFile;
use super::load::coded_error;
use crate::engine::state::SharedState;
use crate::engine::sys;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Error, Module, Object, Result, Value};
use std::collections::HashSet;

/// Prefix of the names of these modules; no path begins with it.
pub(super) const FACADE_PREFIX: &str = "require:";

/// The namespace of an ES module; with `__esModule` if it has a default export, as in Node.
pub(super) fn require_module<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    file: LoadedFile,
) -> Result<Value<'js>> {
    let path = file.path.clone();
    let before = {
        let mut table = state.modules.borrow_mut();
        if !table.declared.contains(&path) {
            table.pending.insert(path.clone(), file);
        }
        let linking: HashSet<String> = table.linking.iter().cloned().collect();
        std::mem::replace(&mut table.linked_later, linking)
    };
    let exports = namespace(ctx, state, &path);
    state.modules.borrow_mut().linked_later = before;
    exports
}

fn namespace<'js>(ctx: &Ctx<'js>, state: &SharedState, path: &str) -> Result<Value<'js>> {
    let quoted = super::esm::quoted(path);
    let all = evaluate(ctx, state, path, &format!("import * as all from {quoted}; export {{ all }};"))?;
    let all: Object = all.get("all")?;
    if all.contains_key("module.exports")? {
        return all.get("module.exports");
    }
    if !all.contains_key("default")? || all.contains_key("__esModule")? {
        return Ok(all.into_value());
    }
    let text = format!(
        "export * from {quoted}; export {{ default }} from {quoted}; export const __esModule = true;"
    );
    evaluate(ctx, state, path, &text).map(Object::into_value)
}

/// The namespace of a module of our own.
fn evaluate<'js>(ctx: &Ctx<'js>, state: &SharedState, path: &str, text: &str) -> Result<Object<'js>> {
    let name = {
        let mut table = state.modules.borrow_mut();
        table.facades += 1;
        format!("{FACADE_PREFIX}{}:{path}", table.facades)
    };
    let (module, promise) = Module::declare(ctx.clone(), name, text)?.eval()?;
    sys::mark_handled(&promise);
    state.rejections.borrow_mut().forget(sys::identity(promise.as_value()));
    match promise.state() {
        PromiseState::Resolved => module.namespace(),
        PromiseState::Pending => {
            let message =
                "require() cannot be used on an ESM graph with top-level await. Use import() instead.";
            Err(coded_error(ctx, "ERR_REQUIRE_ASYNC_MODULE", &format!("{message} ({path})")))
        }
        PromiseState::Rejected => match promise.result::<Value>() {
            Some(Err(error)) => Err(error),
            _ => Err(Error::Unknown),
        },
    }
}

/// Throws if a `require` of an ES module would evaluate a module that is not linked completely.
pub(super) fn refuse_cycle(ctx: &Ctx<'_>, state: &SharedState, path: &str) -> Result<()> {
    let table = state.modules.borrow();
    if table.linked_later.is_empty() {
        return Ok(());
    }
    let mut seen = HashSet::new();
    let mut next = vec![path];
    while let Some(path) = next.pop() {
        if table.linked_later.contains(path) {
            let message = format!(
                "Cannot require() ES Module {path} in a cycle. A cycle involving require(esm) is disallowed; load at least \
                 one of its modules later."
            );
            return Err(coded_error(ctx, "ERR_REQUIRE_CYCLE_MODULE", &message));
        }
        if seen.insert(path) {
            next.extend(table.imports.get(path).into_iter().flatten().map(String::as_str));
        }
    }
    Ok(())
}
