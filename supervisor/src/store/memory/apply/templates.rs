//! Templates, their parts, installed libraries.

use super::super::{Tables, Template};
use crate::store::error::{Entity, StoreError};
use crate::store::rows::{LibraryRow, Owner, TemplateRow};
use vm_system_protocol::ids::{CapabilityId, StartupFileId, TemplateId};
use vm_system_protocol::model::{Capability, Settings, StartupFile, TemplateDetail};
use vm_system_protocol::time::Timestamp;

impl Tables {
    pub(super) fn template_insert(
        &mut self,
        owner: &Owner,
        detail: &TemplateDetail,
    ) -> Result<u64, StoreError> {
        let id = detail.template.id;
        if self.templates.contains(&id) || self.template_name_taken(id, owner, &detail.template.name) {
            return Err(StoreError::conflict(Entity::Template));
        }
        let mut detail = detail.clone();
        detail.template.is_active = true;
        for names in [&mut detail.template.exposed_modules, &mut detail.template.libraries] {
            names.sort_unstable();
            names.dedup();
        }
        let capabilities = std::mem::take(&mut detail.capabilities);
        let files = std::mem::take(&mut detail.startup_files);
        let at = detail.template.updated_at;
        self.templates
            .set(id, Template { row: TemplateRow { owner: owner.clone(), detail }, is_active: true });
        for capability in capabilities {
            self.capability_add(&Capability { vm_id: id, ..capability }, at)?;
        }
        for file in files {
            self.startup_file_add(&StartupFile { vm_id: id, ..file }, at)?;
        }
        Ok(1)
    }

    fn template_name_taken(&self, id: TemplateId, owner: &Owner, name: &str) -> bool {
        self.templates.iter().any(|(other, template)| {
            *other != id
                && template.is_active
                && template.row.owner == *owner
                && template.row.detail.template.name == name
        })
    }

    fn active_template(&self, id: TemplateId) -> Result<Template, StoreError> {
        let template = self.templates.get(&id).filter(|template| template.is_active);
        template.cloned().ok_or(StoreError::missing(Entity::Template))
    }

    pub(super) fn template_update(
        &mut self,
        id: TemplateId,
        name: Option<&str>,
        settings: Option<&Settings>,
        at: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut template = self.active_template(id)?;
        if let Some(name) = name {
            if self.template_name_taken(id, &template.row.owner, name) {
                return Err(StoreError::conflict(Entity::Template));
            }
            name.clone_into(&mut template.row.detail.template.name);
        }
        if let Some(settings) = settings {
            template.row.detail.settings = settings.clone();
        }
        template.row.detail.template.updated_at = at;
        self.templates.set(id, template);
        Ok(1)
    }

    pub(super) fn template_delete(&mut self, id: TemplateId, at: Timestamp) -> Result<u64, StoreError> {
        let mut template = self.active_template(id)?;
        if !self.sessions.iter().any(|(_, session)| session.row.session.template_id == id) {
            self.templates.remove(&id);
            return Ok(1);
        }
        template.is_active = false;
        let detail = &mut template.row.detail;
        detail.template.updated_at = at;
        detail.template.exposed_modules.clear();
        detail.template.libraries.clear();
        detail.capabilities.clear();
        detail.startup_files.clear();
        self.templates.set(id, template);
        Ok(1)
    }

    pub(super) fn name_change(
        &mut self,
        id: TemplateId,
        at: Timestamp,
        change: impl FnOnce(&mut TemplateDetail) -> bool,
    ) -> Result<u64, StoreError> {
        let mut template = self.active_template(id)?;
        let changed = change(&mut template.row.detail);
        if changed {
            template.row.detail.template.updated_at = at;
            self.templates.set(id, template);
        }
        Ok(u64::from(changed))
    }

    pub(super) fn capability_add(
        &mut self,
        capability: &Capability,
        at: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut template = self.active_template(capability.vm_id)?;
        let id_taken = self.templates.iter().any(|(_, template)| {
            template.row.detail.capabilities.iter().any(|known| known.id == capability.id)
        });
        let rows = &mut template.row.detail.capabilities;
        let order = |row: &Capability| (row.kind.as_str(), row.name.clone());
        if id_taken || rows.iter().any(|known| order(known) == order(capability)) {
            return Err(StoreError::conflict(Entity::Capability));
        }
        rows.push(capability.clone());
        rows.sort_by_key(order);
        template.row.detail.template.updated_at = at;
        self.templates.set(capability.vm_id, template);
        Ok(1)
    }

    pub(super) fn capability_remove(
        &mut self,
        template: TemplateId,
        id: CapabilityId,
        at: Timestamp,
    ) -> Result<u64, StoreError> {
        match self.name_change(template, at, |detail| {
            let before = detail.capabilities.len();
            detail.capabilities.retain(|row| row.id != id);
            detail.capabilities.len() < before
        })? {
            0 => Err(StoreError::missing(Entity::Capability)),
            rows => Ok(rows),
        }
    }

    pub(super) fn startup_file_add(&mut self, file: &StartupFile, at: Timestamp) -> Result<u64, StoreError> {
        let mut template = self.active_template(file.vm_id)?;
        let id_taken = self
            .templates
            .iter()
            .any(|(_, template)| template.row.detail.startup_files.iter().any(|known| known.id == file.id));
        let rows = &mut template.row.detail.startup_files;
        if id_taken || rows.iter().any(|known| known.path == file.path) {
            return Err(StoreError::conflict(Entity::StartupFile));
        }
        rows.push(file.clone());
        rows.sort_by(|a, b| (a.order_index, &a.path).cmp(&(b.order_index, &b.path)));
        template.row.detail.template.updated_at = at;
        self.templates.set(file.vm_id, template);
        Ok(1)
    }

    pub(super) fn startup_file_remove(
        &mut self,
        template: TemplateId,
        id: StartupFileId,
        at: Timestamp,
    ) -> Result<u64, StoreError> {
        match self.name_change(template, at, |detail| {
            let before = detail.startup_files.len();
            detail.startup_files.retain(|row| row.id != id);
            detail.startup_files.len() < before
        })? {
            0 => Err(StoreError::missing(Entity::StartupFile)),
            rows => Ok(rows),
        }
    }

    pub(super) fn library_install(&mut self, row: &LibraryRow) -> u64 {
        self.libraries.set(row.name.clone(), row.clone());
        1
    }

    pub(super) fn library_uninstall(&mut self, name: &str) -> Result<u64, StoreError> {
        if self.libraries.remove(&name.to_owned()) {
            Ok(1)
        } else {
            Err(StoreError::missing(Entity::Library))
        }
    }
}
