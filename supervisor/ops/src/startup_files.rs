//! Startup files of templates. They are read from the worktree when a session is created.

use super::errors::{invalid, not_found, stored};
use super::templates::has_parts;
use super::{Ops, VerbCall, template_size};
use vm_system_protocol::control::{ErrorCode, OpError, TemplateAddStartup, TemplateRemoveStartup};
use vm_system_protocol::ids::{StartupFileId, TemplateId};
use vm_system_protocol::model::{Settings, StartupFile, StartupMode};
use vm_system_record::{Entity, Rejection, StoreError, Write};
use vm_system_runtime::worktree::clean_relative;

/// Startup files that a template may have: all of them run before a session is ready.
const FILES: usize = 100;

impl Ops {
    pub(crate) async fn template_add_startup(
        &self,
        call: &VerbCall<'_>,
        TemplateAddStartup { template, file: new }: TemplateAddStartup,
    ) -> Result<StartupFile, OpError> {
        let path = clean_relative(&new.path)
            .map_err(|error| OpError::new(ErrorCode::InvalidPath, error.to_string()))?;
        let _deciding = self.deciding(call, &template).await?;
        let detail = self.template(call, &template).await?.detail;
        has_parts(detail.template.engine, "startup files")?;
        let id = detail.template.id;
        let mode = mode(id, &new.mode, &detail.settings)?;
        if detail.startup_files.len() >= FILES {
            return Err(invalid(format!("a template has at most {FILES} startup files")));
        }
        template_size::check_added(&detail, path.len() + template_size::ROW_BYTES)?;
        self.check_quota(call)?;
        let file = StartupFile {
            id: StartupFileId::from_uuid(call.subject),
            vm_id: id,
            path,
            order_index: new.order_index,
            mode,
        };
        let write = Write::StartupFileAdd { file: file.clone(), at: self.store.now() };
        let refused = |error| taken(error, &file.path);
        self.changed(call, id, write, refused).await?;
        Ok(file)
    }

    pub(crate) async fn template_remove_startup(
        &self,
        call: &VerbCall<'_>,
        TemplateRemoveStartup { template, file: reference }: TemplateRemoveStartup,
    ) -> Result<StartupFile, OpError> {
        let detail = self.template(call, &template).await?.detail;
        let by_path = clean_relative(&reference)
            .ok()
            .and_then(|path| detail.startup_files.iter().position(|file| file.path == path));
        let place = if by_path.is_some() {
            by_path
        } else {
            let ids = detail.startup_files.iter().map(|file| file.id.to_string());
            super::resolve::find_among("startup file", ids, &reference)?
        };
        let file = place.and_then(|place| detail.startup_files.into_iter().nth(place));
        let file = file.ok_or_else(|| not_found(Entity::StartupFile, &reference))?;
        let template = detail.template.id;
        let write = Write::StartupFileRemove { template, id: file.id, at: self.store.now() };
        self.part_changed(call, template, write).await?;
        Ok(file)
    }
}

/// `import` needs a template with ES modules.
fn mode(template: TemplateId, wanted: &str, settings: &Settings) -> Result<StartupMode, OpError> {
    let wanted = wanted.trim().to_lowercase();
    let supported: &[StartupMode] =
        if settings.runtime.esm { StartupMode::ALL } else { &[StartupMode::Eval] };
    let default = wanted.is_empty().then_some(StartupMode::Eval);
    if let Some(mode) = default.or_else(|| supported.iter().copied().find(|mode| mode.as_str() == wanted)) {
        return Ok(mode);
    }
    let error = OpError::new(
        ErrorCode::StartupModeUnsupported,
        format!("the startup mode {wanted:?} is not supported by this template"),
    )
    .with_details(&serde_json::json!({
        "template_id": template,
        "requested_mode": wanted,
        "supported_modes": supported,
    }));
    Err(if wanted == StartupMode::Import.as_str() {
        error.with_hint("set runtime.esm of the template first: `vm-system template update TEMPLATE --esm`")
    } else {
        error
    })
}

/// Refuses new settings under which an existing startup file could not have been added.
pub(super) fn still_fit(files: &[StartupFile], settings: &Settings) -> Result<(), OpError> {
    if settings.runtime.esm {
        return Ok(());
    }
    match files.iter().find(|file| file.mode == StartupMode::Import) {
        Some(file) => Err(invalid(format!(
            "runtime.esm must stay true: the startup file {:?} is imported as a module",
            file.path
        ))
        .with_hint("remove the startup file first")),
        None => Ok(()),
    }
}

fn taken(error: StoreError, path: &str) -> OpError {
    match error {
        StoreError::Rejected(Rejection::Conflict(Entity::StartupFile)) => {
            OpError::new(ErrorCode::Conflict, format!("{path:?} is a startup file of the template already"))
                .with_details(&serde_json::json!({ "path": path }))
        }
        other => stored(other),
    }
}
