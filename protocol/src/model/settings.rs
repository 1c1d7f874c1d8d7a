//! A template's settings with their defaults.

use super::{Limits, text_enum};
use crate::codec::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// How `require` and `import` find worktree files.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resolver {
    /// Folders relative to the worktree in which specifiers are looked up; empty = the worktree itself.
    pub roots: Vec<String>,
    /// Tried in order for a specifier without an extension.
    pub extensions: Vec<String>,
    /// `/x/y.js` means the worktree's root.
    pub allow_absolute_repo_imports: bool,
}

impl Default for Resolver {
    fn default() -> Self {
        Self {
            roots: Vec::new(),
            extensions: vec![".js".to_owned(), ".mjs".to_owned()],
            allow_absolute_repo_imports: false,
        }
    }
}

text_enum! {
    /// The action when a session's worker exits unexpectedly.
    OnCrash {
        /// The session is `crashed`.
        Close = "close",
        /// A new worker replaces it, which has run the startup files and nothing else.
        Restart = "restart",
        /// A fork of the frozen copy that was made before the execution continues.
        Rollback = "rollback",
    }
}

text_enum! {
    /// The meaning, for a file, of the errors that TypeScript's compiler finds in it. In the order of their strictness.
    TypeCheck {
        /// The compiler is not run.
        Off = "off",
        /// They are recorded with the execution, which goes on.
        Warn = "warn",
        /// The execution ends with them before anything of the file runs.
        Error = "error",
    }
}

/// How code is run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuntimeSettings {
    /// run-file treats `.js` as a module; `import` startup files are allowed.
    pub esm: bool,
    /// repl and script input run in strict mode.
    pub strict: bool,
    /// There is a `console` global.
    pub console: bool,
    /// The action when the worker exits unexpectedly.
    pub on_crash: OnCrash,
    /// A session ends this long after its creation (seconds), 0 = never.
    pub ttl_s: u32,
    /// A session ends this long after its last execution (seconds), 0 = never.
    pub idle_timeout_s: u32,
    /// The check of types of worktree files that are run.
    pub typecheck: TypeCheck,
}

impl Default for RuntimeSettings {
    fn default() -> Self {
        Self {
            esm: false,
            strict: false,
            console: true,
            on_crash: OnCrash::Close,
            ttl_s: 0,
            idle_timeout_s: 0,
            typecheck: TypeCheck::Off,
        }
    }
}

/// All settings of a template.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The limits of executions.
    pub limits: Limits,
    /// How modules are found.
    pub resolver: Resolver,
    /// How code is run.
    pub runtime: RuntimeSettings,
}
