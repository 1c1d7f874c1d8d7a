//! The catalog of host modules, and why other names are refused.

use super::errors::invalid;
use super::{Ops, OpsOptions, VerbCall};
use vm_system_policy::NO_HTTP;
use vm_system_protocol::control::{ErrorCode, ModuleCatalog, ModuleInfo, OpError};

/// Host modules that exist, with a description.
const AVAILABLE: &[(&str, &str)] = &[
    ("database", "SQLite databases of the session's workspace"),
    ("exec", "commands that the operator lists and a capability names, in a jail of their own"),
    ("fs", "files and folders beneath the session's worktree; changing them needs the capability fs write"),
];
/// Modules that every session has, with what grants their use.
const KNOWN: &[(&str, &str)] = &[("http", NO_HTTP)];
/// Why `exec` cannot be added where the operator lists no commands.
const NO_COMMANDS: &str = "the operator of this daemon lists no commands (serve --allow-exec NAME=/PATH)";
/// Part of the language: always there, and switched off by a capability row of kind `global`.
const BUILT_IN: &[&str] = &["console", "math", "json", "date", "array", "string", "object", "promise"];

impl Ops {
    #[expect(clippy::unused_async, reason = "as all handlers of verbs")]
    pub(crate) async fn module_catalog(
        &self,
        _: &VerbCall<'_>,
        _: ModuleCatalog,
    ) -> Result<Vec<ModuleInfo>, OpError> {
        Ok(catalog(&self.options))
    }
}

fn catalog(options: &OpsOptions) -> Vec<ModuleInfo> {
    let info = |(name, description): &(&str, &str)| ModuleInfo {
        name: (*name).to_owned(),
        description: if is_unlisted(name, options) {
            format!("{description}; not now: {NO_COMMANDS}")
        } else {
            (*description).to_owned()
        },
    };
    AVAILABLE.iter().map(info).collect()
}

/// Whether this is `exec` and the operator lists no commands.
fn is_unlisted(name: &str, options: &OpsOptions) -> bool {
    name == "exec" && !options.commands_listed
}

/// Trims and lower-cases a name and checks it against the catalog, and `exec` against the operator's list.
pub(super) fn checked(name: &str, options: &OpsOptions) -> Result<String, OpError> {
    let name = normal(name)?;
    let unlisted = is_unlisted(&name, options);
    if !unlisted && AVAILABLE.iter().any(|(known, _)| *known == name) {
        return Ok(name);
    }
    let why = if BUILT_IN.contains(&name.as_str()) {
        "it is part of JavaScript and needs no module".to_owned()
    } else if unlisted {
        NO_COMMANDS.to_owned()
    } else if let Some((_, why)) = KNOWN.iter().find(|(known, _)| *known == name) {
        (*why).to_owned()
    } else {
        "it is not in the catalog".to_owned()
    };
    let names = AVAILABLE.iter().map(|(name, _)| *name).filter(|name| !is_unlisted(name, options));
    let names: Vec<&str> = names.collect();
    Err(OpError::new(ErrorCode::ModuleNotAllowed, format!("module {name:?} is not allowed: {why}"))
        .with_details(&serde_json::json!({ "module": name, "available": names }))
        .with_hint(format!("available modules: {}", names.join(", "))))
}

/// The stored form of a name.
pub(super) fn normal(name: &str) -> Result<String, OpError> {
    let name = name.trim().to_lowercase();
    if name.is_empty() {
        return Err(invalid("the module's name is missing"));
    }
    if name.len() > 200 {
        return Err(invalid("the module's name is too long"));
    }
    Ok(name)
}
