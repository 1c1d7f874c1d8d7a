//! The errors of modules that do not exist. Their messages begin as Node's; the last line has the words that the contract has for every
//! module that cannot be loaded.

use super::find::{ModuleFinder, is_relative};
use super::load::coded_error;

/// Most files in `requireStack`.
const STACK: usize = 50;

impl ModuleFinder<'_, '_> {
    /// Nothing has this name, or no module can have it.
    pub(super) fn not_found(&self, specifier: &str, path: &str) -> rquickjs::Error {
        self.missing(specifier, path, None)
    }

    /// A path of the worktree or library that something else than the specifier names.
    pub(super) fn no_file(&self, path: &str) -> rquickjs::Error {
        self.error(path, path, None, true)
    }

    /// As [`Self::not_found`]; with the file that was perhaps meant.
    pub(super) fn missing(&self, specifier: &str, path: &str, neighbour: Option<String>) -> rquickjs::Error {
        let is_file =
            is_relative(specifier) || ["/", "file:"].iter().any(|start| specifier.starts_with(start));
        self.error(specifier, path, neighbour, is_file)
    }

    /// Of `require` with the files that required each other, of `import` with the importing file.
    fn error(
        &self,
        specifier: &str,
        path: &str,
        neighbour: Option<String>,
        is_file: bool,
    ) -> rquickjs::Error {
        let mut stack = Vec::new();
        let mut message = if self.import {
            let is_bare = specifier == path && !specifier.contains('/');
            let what = if is_bare { "package" } else { "module" };
            format!("Cannot find {what} '{}' imported from {}", shown(path), self.shown_referrer())
        } else {
            let table = self.state.modules.borrow();
            let mut at = (!self.referrer.is_empty()).then_some(self.referrer);
            while let Some(path) = at.filter(|_| stack.len() < STACK) {
                stack.push(path.to_owned());
                at = table.required_by.get(path).map(String::as_str);
            }
            format!("Cannot find module '{}'", shown(specifier))
        };
        if !stack.is_empty() {
            message.push_str("\nRequire stack:\n- ");
            message.push_str(&stack.join("\n- "));
        }
        if let Some(neighbour) = neighbour {
            let verb = if self.import { "import" } else { "require" };
            message.extend(["\nDid you mean to ", verb, " \"", &shown(&neighbour), "\"?"]);
        }
        let why = match (is_file, self.bundle().is_some()) {
            (true, false) => "the worktree has no such file",
            (true, true) => "the library has no such file",
            (false, false) => "no host module, library or package in node_modules has this name",
            (false, true) => "no host module, library or package of the library has this name",
        };
        message.extend(["\nInvalid module '", &shown(specifier), "': ", why]);
        if self.import {
            return coded_error(self.ctx, "ERR_MODULE_NOT_FOUND", &message);
        }
        let error = coded_error(self.ctx, "MODULE_NOT_FOUND", &message);
        let thrown = self.ctx.catch();
        if let Some(object) = thrown.as_object() {
            let _ = object.set("requireStack", stack);
        }
        drop(error);
        self.ctx.throw(thrown)
    }
}

/// A name in a message, which is cut if it is long.
fn shown(text: &str) -> String {
    text.chars().take(200).collect()
}
