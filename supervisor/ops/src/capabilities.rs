//! Capability rows of templates: validates that they are known and unique. The policy defines their meaning.

use super::errors::{invalid, not_found, stored};
use super::{Ops, VerbCall, template_size};
use vm_system_policy::{CapabilityRow, MAX_NET_PATTERNS, NO_HTTP, read_row};
use vm_system_protocol::control::{ErrorCode, OpError, TemplateAddCapability, TemplateRemoveCapability};
use vm_system_protocol::ids::CapabilityId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, CapabilityKind};
use vm_system_record::{Entity, Rejection, StoreError, Write};

/// Rows that a template may have.
const ROWS: usize = 1_000;
/// Longest name (bytes).
const NAME_CHARS: usize = 200;
/// Largest config (bytes of JSON).
const CONFIG_BYTES: usize = 64 * 1024;

impl Ops {
    pub(crate) async fn template_add_capability(
        &self,
        call: &VerbCall<'_>,
        TemplateAddCapability { template, capability: new }: TemplateAddCapability,
    ) -> Result<Capability, OpError> {
        let name = name(new.kind, &new.name)?;
        let config = config(&new.config)?;
        // A mistyped right would have no effect: rows without a meaning are not stored.
        let row = read_row(new.kind, &name, &config)
            .map_err(|error| invalid(error.message.clone()).with_hint(error.hint))?;
        if row == CapabilityRow::Nothing {
            return Err(invalid(format!("a capability for the module {name:?} has no effect: {NO_HTTP}"))
                .with_hint("add a capability of kind net, with patterns of what it may reach"));
        }
        let _deciding = self.deciding(call, &template).await?;
        let detail = self.template(call, &template).await?.detail;
        if detail.capabilities.len() >= ROWS {
            return Err(invalid(format!("a template has at most {ROWS} capabilities")));
        }
        let patterns = net_patterns(Some(row)) + detail.capabilities.iter().map(patterns_of).sum::<usize>();
        if patterns > MAX_NET_PATTERNS {
            let message = format!(
                "the capabilities of kind net of a template have at most {MAX_NET_PATTERNS} patterns together"
            );
            return Err(invalid(message).with_hint("use *.NAME, or another template"));
        }
        template_size::check_added(&detail, name.len() + config.as_str().len() + template_size::ROW_BYTES)?;
        self.check_quota(call)?;
        let id = detail.template.id;
        let capability = Capability {
            id: CapabilityId::from_uuid(call.subject),
            vm_id: id,
            kind: new.kind,
            name,
            enabled: new.enabled,
            config,
        };
        let write = Write::CapabilityAdd { capability: capability.clone(), at: self.store.now() };
        let refused = |error| taken(error, &capability);
        self.changed(call, id, write, refused).await?;
        Ok(capability)
    }

    pub(crate) async fn template_remove_capability(
        &self,
        call: &VerbCall<'_>,
        TemplateRemoveCapability { template, capability: reference }: TemplateRemoveCapability,
    ) -> Result<Capability, OpError> {
        let detail = self.template(call, &template).await?.detail;
        let ids = detail.capabilities.iter().map(|row| row.id.to_string());
        let place = super::resolve::find_among("capability", ids, &reference)?;
        let capability = place.and_then(|place| detail.capabilities.into_iter().nth(place));
        let capability = capability.ok_or_else(|| not_found(Entity::Capability, &reference))?;
        let template = detail.template.id;
        let write = Write::CapabilityRemove { template, id: capability.id, at: self.store.now() };
        self.part_changed(call, template, write).await?;
        Ok(capability)
    }
}

/// The patterns of a stored row.
fn patterns_of(row: &Capability) -> usize {
    if row.kind == CapabilityKind::Net {
        net_patterns(read_row(row.kind, &row.name, &row.config).ok())
    } else {
        0
    }
}

fn net_patterns(row: Option<CapabilityRow>) -> usize {
    match row {
        Some(CapabilityRow::Net(rule)) => rule.patterns.len(),
        _ => 0,
    }
}

fn name(kind: CapabilityKind, name: &str) -> Result<String, OpError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(invalid("the capability's name is missing"));
    }
    if name.chars().count() > NAME_CHARS {
        return Err(invalid(format!("the capability's name has more than {NAME_CHARS} characters")));
    }
    if name.chars().any(char::is_control) {
        return Err(invalid("the capability's name contains control characters"));
    }
    // As with the names of modules.
    Ok(if kind == CapabilityKind::Module { name.to_lowercase() } else { name.to_owned() })
}

/// The stored form of the config: a compact object.
fn config(config: &JsonText) -> Result<JsonText, OpError> {
    if config.as_str().len() > CONFIG_BYTES {
        return Err(invalid(format!("the capability's config has more than {CONFIG_BYTES} bytes")));
    }
    match config.to_value() {
        Some(value @ serde_json::Value::Object(_)) => Ok(JsonText::from_value(&value)),
        _ => Err(invalid("the capability's config must be an object")),
    }
}

fn taken(error: StoreError, capability: &Capability) -> OpError {
    let Capability { kind, name, .. } = capability;
    match error {
        StoreError::Rejected(Rejection::Conflict(Entity::Capability)) => OpError::new(
            ErrorCode::Conflict,
            format!("the template has a capability of kind {kind} called {name:?} already"),
        )
        .with_details(&serde_json::json!({ "kind": kind, "name": name }))
        .with_hint(
            "to change a capability, remove it and add it again: `vm-system template remove-capability TEMPLATE ID`",
        ),
        other => stored(other),
    }
}
