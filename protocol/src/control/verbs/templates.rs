//! Verbs of templates and their parts.

use crate::codec::{Decode, Encode};
use crate::control::ListPage;
use crate::json::JsonText;
use crate::model::{CapabilityKind, Engine, Settings};

/// Create a template.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateCreate {
    /// Unique among the owner's templates.
    pub name: String,
    pub engine: Engine,
    /// Absent fields have their defaults.
    pub settings: Settings,
    /// Host modules that sessions may require.
    pub modules: Vec<String>,
}

/// Templates, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateList {
    pub page: ListPage,
    /// Include the built-in template, which has no owner, at the end.
    pub built_in: bool,
}

/// One template with its parts.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateGet {
    pub template: String,
}

/// Change a template.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateUpdate {
    pub template: String,
    pub change: TemplateChange,
}

/// Delete a template; its sessions continue.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateDelete {
    pub template: String,
}

/// Allow sessions of a template to use a host module.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateAddModule {
    pub template: String,
    pub name: String,
}

/// Withdraw a host module.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateRemoveModule {
    pub template: String,
    pub name: String,
}

/// Grant, narrow or withdraw a right of a template's sessions.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateAddCapability {
    pub template: String,
    pub capability: NewCapability,
}

/// Remove a capability row. Replies with the removed row.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateRemoveCapability {
    pub template: String,
    /// The row's id, or a unique prefix of it.
    pub capability: String,
}

/// Add a file that new sessions of a template run first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateAddStartup {
    pub template: String,
    pub file: NewStartupFile,
}

/// Remove a startup file. Replies with the removed row.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateRemoveStartup {
    pub template: String,
    /// The row's id, a unique prefix of it, or its path.
    pub file: String,
}

/// Add a library to new sessions of a template.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateAddLibrary {
    pub template: String,
    /// `id-version`, or `id` for the installed version.
    pub name: String,
}

/// Remove a library; existing sessions keep it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TemplateRemoveLibrary {
    pub template: String,
    /// `id-version`, or `id` if the template has one version of the library.
    pub name: String,
}

/// The host modules that templates may name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ModuleCatalog;

/// A capability row to be created.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewCapability {
    pub kind: CapabilityKind,
    /// The module, global, …; (kind, name) is unique in a template.
    pub name: String,
    /// Whether the row grants (true) or withdraws (false) the right.
    pub enabled: bool,
    /// An object that narrows the right.
    pub config: JsonText,
}

/// A startup file to be added.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewStartupFile {
    /// Relative to the session's worktree.
    pub path: String,
    /// Lower runs first; equal ones by path.
    pub order_index: i64,
    /// `eval`, or `import` if the template's `runtime.esm` is true; as the client sent it.
    pub mode: String,
}

/// The changes of a template; absent parts stay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct TemplateChange {
    /// New name.
    pub name: Option<String>,
    /// Part of [`Settings`] as an object (`{"limits":{"cpu_ms":100}}`): a present field replaces the setting, `null` resets it to
    /// the default, other settings stay (JSON merge patch, RFC 7396).
    pub settings: Option<JsonText>,
}
