//! The settings of a template: valid ranges (`VALIDATION_ERROR`), then the operator's ceilings
//! (`LIMIT_NOT_ALLOWED`).

use super::errors::invalid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::HashMap;
use vm_system_protocol::control::{ErrorCode, OpError};
use vm_system_protocol::input::read_value;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Engine, LimitValue, Limits, Resolver, Settings, TypeCheck, ZeroLimit};
use vm_system_runtime::worktree::clean_relative;

/// Longest name of a template (characters).
const NAME_CHARS: usize = 200;
/// Most folders or extensions of a resolver.
const RESOLVER_ENTRIES: usize = 64;
/// Largest limit: JSON has larger numbers only approximately (RFC 8259, section 6).
const MOST: u64 = (1 << 53) - 1;
/// Longest extension (bytes).
const EXTENSION_BYTES: usize = 32;

/// Whether it is shown as what it is: no control character, and none that changes the order in which text is shown.
pub fn is_printable(char: char) -> bool {
    let changes_order = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !char.is_control() && !changes_order
}

/// A template's name as it is stored: trimmed, not empty, of printable characters.
pub(super) fn name(name: &str) -> Result<String, OpError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(invalid("the template's name is missing"));
    }
    if name.chars().count() > NAME_CHARS {
        return Err(invalid(format!("the template's name has more than {NAME_CHARS} characters")));
    }
    if !name.chars().all(is_printable) {
        return Err(invalid("the template's name contains characters that are not printable"));
    }
    Ok(name.to_owned())
}

pub(super) fn check(settings: &Settings, engine: Engine, ceilings: &Limits) -> Result<(), OpError> {
    resolver(&settings.resolver)?;
    if engine == Engine::Cvm && settings.runtime.typecheck != TypeCheck::Off {
        return Err(invalid("runtime.typecheck is for templates with engine quickjs: a program is compiled without a worktree")
            .with_hint("`vm-system check --program FILE` checks the types of a program before it is started"));
    }
    limits(&settings.limits, ceilings)
}

/// `current` after a merge patch (see [`TemplateChange`](vm_system_protocol::control::TemplateChange)).
pub(super) fn merged(current: &Settings, patch: &JsonText) -> Result<Settings, OpError> {
    let Some(Value::Object(mut patch)) = patch.to_value() else {
        return Err(malformed("settings must be an object"));
    };
    let merged = Settings {
        limits: section(&current.limits, "limits", &mut patch)?,
        resolver: section(&current.resolver, "resolver", &mut patch)?,
        runtime: section(&current.runtime, "runtime", &mut patch)?,
    };
    match patch.keys().next() {
        Some(unknown) => {
            Err(malformed(format!("unknown field {unknown:?}, expected limits, resolver or runtime")))
        }
        None => Ok(merged),
    }
}

fn section<T: Serialize + DeserializeOwned + Default + Clone>(
    current: &T,
    name: &str,
    patch: &mut Map<String, Value>,
) -> Result<T, OpError> {
    let fields = match patch.remove(name) {
        None => return Ok(current.clone()),
        Some(Value::Null) => return Ok(T::default()),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(malformed(format!("{name} must be an object"))),
    };
    let Ok(Value::Object(mut merged)) = serde_json::to_value(current) else {
        return Err(OpError::new(ErrorCode::Internal, "settings have no JSON form"));
    };
    for (field, value) in fields {
        if !merged.contains_key(&field) {
            return Err(malformed(format!("unknown field {name}.{field}")));
        }
        // An absent field is its default.
        if value.is_null() {
            merged.remove(&field)
        } else {
            merged.insert(field, value)
        };
    }
    // Inside an object of the section's name, which is then a part of the path that errors name.
    let mut section: HashMap<String, T> =
        read_value("settings", serde_json::json!({ name: merged })).map_err(malformed)?;
    section.remove(name).ok_or_else(|| OpError::new(ErrorCode::Internal, "settings have no JSON form"))
}

fn malformed(what: impl Into<String>) -> OpError {
    OpError::new(ErrorCode::InvalidRequest, what)
}

fn limits(limits: &Limits, ceilings: &Limits) -> Result<(), OpError> {
    let zero = |limit: &LimitValue| limit.value == 0 && limit.zero == ZeroLimit::Refused;
    if let Some(LimitValue { name, .. }) = limits.values().find(zero) {
        return Err(invalid(format!("limits.{name} must be at least 1")));
    }
    for (LimitValue { name, value, zero }, ceiling) in limits.values().zip(ceilings.values()) {
        if value > MOST {
            return Err(invalid(format!("limits.{name} must be at most {MOST}, or 0 for no limit")));
        }
        // A limit of 0 may mean none, so that a ceiling narrows it without being smaller.
        if zero.narrower(value, ceiling.value) != value {
            return Err(over_ceiling(name, value, ceiling.value));
        }
    }
    Ok(())
}

fn over_ceiling(field: &str, value: u64, ceiling: u64) -> OpError {
    let shown = if value == 0 { "no limit".to_owned() } else { value.to_string() };
    OpError::new(
        ErrorCode::LimitNotAllowed,
        format!("limits.{field} = {shown} is over the operator's ceiling of {ceiling}"),
    )
    .with_details(&serde_json::json!({ "field": field, "value": value, "ceiling": ceiling }))
    .with_hint(format!("the operator may raise `{field}` in [ceilings] of the daemon's --config"))
}

fn resolver(resolver: &Resolver) -> Result<(), OpError> {
    if resolver.roots.len() > RESOLVER_ENTRIES || resolver.extensions.len() > RESOLVER_ENTRIES {
        return Err(invalid(format!("resolver lists have at most {RESOLVER_ENTRIES} entries")));
    }
    for root in &resolver.roots {
        // `.` is the worktree itself, which names no file.
        if root != "." && root != "./" {
            clean_relative(root).map_err(|error| invalid(format!("resolver.roots: {error}")))?;
        }
    }
    for extension in &resolver.extensions {
        let name = extension.strip_prefix('.').unwrap_or_default();
        if name.is_empty()
            || extension.len() > EXTENSION_BYTES
            || name.chars().any(|char| char == '/' || char.is_control() || char.is_whitespace())
        {
            return Err(invalid(format!("resolver.extensions: {extension:?} is not like \".js\"")));
        }
    }
    Ok(())
}
