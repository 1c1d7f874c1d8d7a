//! A template's settings with their defaults.

use super::{Limits, text_enum};
use crate::codec::{Decode, Encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pattern of a folder of the worktree.
const FOLDER: &str = r"^(?!/)(?!(?:[^\u0000]*/)?\.\.(?:/|$))(?!\.?(?:/+\.?)*$)(?![\s\u0085]*$)[^\u0000]+$";

/// How `require` and `import` find worktree files.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resolver {
    /// Folders relative to the worktree in which specifiers are looked up; empty = the worktree itself.
    #[schemars(length(max = 32), inner(length(min = 1, max = 1024), regex(pattern = FOLDER)))]
    pub roots: Vec<String>,
    /// Extensions that are tried in order for a specifier without one.
    #[schemars(length(max = 32), inner(length(max = 32), regex(pattern = r"^\.[A-Za-z0-9]+$")))]
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
        /// It continues with the state before the execution, as a fork of a frozen copy.
        Rollback = "rollback",
    }
}

text_enum! {
    /// The check of files before they run, by TypeScript's compiler, the package `typescript` of the worktree. Only for engine
    /// `quickjs`.
    TypeCheck {
        /// The compiler is not run.
        Off = "off",
        /// Errors are recorded with the execution, and the file runs.
        Warn = "warn",
        /// An execution with type errors ends as `TYPE_ERRORS`, without a result of the check as `TYPE_CHECK_FAILED`, before anything of
        /// the file runs.
        Error = "error",
    }
}

/// Settings of the JavaScript runtime.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuntimeSettings {
    /// run-file treats `.js` as a module; `import` startup files are allowed.
    pub esm: bool,
    /// repl and script input run in strict mode.
    pub strict: bool,
    /// There is a `console` global.
    pub console: bool,
    /// The reaction to a worker that exits by itself.
    pub on_crash: OnCrash,
    /// A session ends this long after its creation (seconds), 0 = never.
    pub ttl_s: u32,
    /// A session ends this long after its last execution (seconds), 0 = never.
    pub idle_timeout_s: u32,
    /// The check of files before they run.
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The limits of executions.
    pub limits: Limits,
    /// How modules are found.
    pub resolver: Resolver,
    /// How code is run.
    pub runtime: RuntimeSettings,
}
