//! The catalog of host modules, and which names are refused with which reason.

use super::errors::invalid;
use vm_system_protocol::control::{ErrorCode, ModuleInfo, OpError};

/// Host modules that exist, with what they give.
const AVAILABLE: &[(&str, &str)] = &[("fs", "read files and folders beneath the session's worktree")];
/// Host modules that are planned, with what is missing.
const KNOWN: &[(&str, &str)] = &[
    ("database", "this version has no database module"),
    ("exec", "this version has no exec module"),
    ("http", "this version has no http module"),
];
/// Part of the language: always there, and switched off by a capability row of kind `global`.
const BUILT_IN: &[&str] = &["console", "math", "json", "date", "array", "string", "object", "promise"];

pub(super) fn catalog() -> Vec<ModuleInfo> {
    let info = |(name, description): &(&str, &str)| ModuleInfo {
        name: (*name).to_owned(),
        description: (*description).to_owned(),
    };
    AVAILABLE.iter().map(info).collect()
}

/// Trims and lower-cases a name and checks it against the catalog.
pub(super) fn checked(name: &str) -> Result<String, OpError> {
    let name = normal(name)?;
    if AVAILABLE.iter().any(|(known, _)| *known == name) {
        return Ok(name);
    }
    let why = if BUILT_IN.contains(&name.as_str()) {
        "it is part of JavaScript and needs no module".to_owned()
    } else if let Some((_, why)) = KNOWN.iter().find(|(known, _)| *known == name) {
        (*why).to_owned()
    } else {
        "it is not in the catalog".to_owned()
    };
    let names: Vec<&str> = AVAILABLE.iter().map(|(name, _)| *name).collect();
    Err(OpError::new(ErrorCode::ModuleNotAllowed, format!("module {name:?} is not allowed: {why}"))
        .with_details(&serde_json::json!({ "module": name, "available": names }))
        .with_hint(format!("available modules: {}", names.join(", "))))
}

/// As names are stored.
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
