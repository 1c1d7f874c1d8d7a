//! The built-in template, for executions of programs for which no template is named. All callers see it, none can change it.
//! Its content is defined here only; its row in the store exists for the sessions that refer to it.

use super::Ops;
use super::errors::stored;
use vm_system_protocol::control::{ErrorCode, OpError};
use vm_system_protocol::ids::{CapabilityId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, CapabilityKind, Engine, Settings, Template, TemplateDetail};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Owner, PolicySnapshot, Rejection, StoreError, TemplateRow, Write};

/// The same id on every machine.
pub(super) const BUILT_IN: TemplateId = TemplateId::from_bytes(*b"\0\0\0\0\0\0\x80\0\x80\0\0\0\0cvm");
/// The template's name; no other template gets it.
pub(super) const NAME: &str = "cvm";

/// The template's content.
pub(super) fn detail() -> TemplateDetail {
    TemplateDetail {
        template: Template {
            id: BUILT_IN,
            name: NAME.to_owned(),
            engine: Engine::Cvm,
            is_active: true,
            exposed_modules: Vec::new(),
            libraries: Vec::new(),
            // Older than all others: the last of every list.
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            built_in: true,
        },
        settings: Settings::default(),
        // A caller names a worktree so that the program can use it.
        capabilities: vec![Capability {
            id: CapabilityId::from_bytes(*BUILT_IN.as_bytes()),
            vm_id: BUILT_IN,
            kind: CapabilityKind::Fs,
            name: "write".to_owned(),
            enabled: true,
            config: JsonText::from_value(&serde_json::json!({})),
        }],
        startup_files: Vec::new(),
    }
}

/// As a row that all callers may see.
pub(super) fn row() -> TemplateRow {
    TemplateRow { owner: owner(), detail: detail() }
}

/// No token and no uid can have this name.
fn owner() -> Owner {
    Owner::new("(system)")
}

/// Whether a reference that matches no other template means this one: by its name, its id, or a prefix of the id.
pub(super) fn is_meant(reference: &str) -> bool {
    let id = BUILT_IN.to_string();
    reference == NAME
        || (reference.len() >= super::resolve::PREFIX_MIN && id.starts_with(&reference.to_lowercase()))
}

/// Refuses to change it.
pub(super) fn not_changed(template: TemplateId) -> Result<(), OpError> {
    if template != BUILT_IN {
        return Ok(());
    }
    Err(OpError::new(ErrorCode::NotPermitted, "the template `cvm` is built in: it cannot be changed or deleted")
        .with_hint("create your own with `vm-system template create --name NAME --engine cvm`, and start programs with `--template-id NAME`"))
}

/// Refuses the name for other templates: programs would continue with the built-in one.
pub(super) fn name_is_free(name: &str) -> Result<(), OpError> {
    if name != NAME {
        return Ok(());
    }
    Err(OpError::new(ErrorCode::Conflict, "`cvm` is the name of the built-in template")
        .with_details(&serde_json::json!({ "name": name }))
        .with_hint("choose another name"))
}

impl Ops {
    /// The policy; the row is inserted when it is first needed.
    pub(super) async fn built_in(&self) -> Result<PolicySnapshot, OpError> {
        let detail = detail();
        let policy = PolicySnapshot::from(&detail);
        self.built_in_row.get_or_try_init(|| self.make_row(detail)).await?;
        Ok(policy)
    }

    async fn make_row(&self, mut detail: TemplateDetail) -> Result<(), OpError> {
        let at = self.store.now();
        (detail.template.created_at, detail.template.updated_at) = (at, at);
        let write = Write::TemplateInsert { owner: owner(), detail: Box::new(detail) };
        match self.store.apply(write).await {
            Ok(_) | Err(StoreError::Rejected(Rejection::Conflict(_))) => Ok(()),
            Err(error) => Err(stored(error)),
        }
    }
}
