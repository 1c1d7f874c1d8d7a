//! The errors of modules that do not exist. Their messages begin as Node's; the last line has the words that the contract has for every
//! module that cannot be loaded.

use super::find::Finder;
use super::load::coded_error;

/// Most files in `requireStack`.
const STACK: usize = 50;

/// Where nothing has the name.
enum Missing {
    File,
    Name,
}

impl Finder<'_, '_> {
    /// Neither a path nor a package of this name, or a name that no module can have.
    pub(super) fn not_found(&self, specifier: &str, path: &str) -> rquickjs::Error {
        let is_path = ["/", "./", "../", "file:"].iter().any(|start| specifier.starts_with(start));
        self.missing(specifier, path, None, if is_path { Missing::File } else { Missing::Name })
    }

    /// A path of the worktree or library that something else than the specifier names.
    pub(super) fn no_file(&self, path: &str) -> rquickjs::Error {
        self.missing(path, path, None, Missing::File)
    }

    pub(super) fn no_relative(
        &self,
        specifier: &str,
        path: &str,
        neighbour: Option<String>,
    ) -> rquickjs::Error {
        self.missing(specifier, path, neighbour, Missing::File)
    }

    /// Of `require` with the files that required each other, of `import` with the importing file.
    fn missing(
        &self,
        specifier: &str,
        path: &str,
        neighbour: Option<String>,
        missing: Missing,
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
        let why = match (missing, self.bundle().is_some()) {
            (Missing::File, false) => "the worktree has no such file",
            (Missing::File, true) => "the library has no such file",
            (Missing::Name, false) => "no host module, library or package in node_modules has this name",
            (Missing::Name, true) => "no host module, library or package of the library has this name",
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
