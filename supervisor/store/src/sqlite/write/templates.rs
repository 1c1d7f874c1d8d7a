//! Templates and their parts.

use super::{exists, int, run};
use crate::sqlite::failure::{Constrained, SqliteFailure};
use rusqlite::{Connection, params};
use vm_system_protocol::ids::{CapabilityId, StartupFileId, TemplateId};
use vm_system_protocol::model::{Capability, Settings, StartupFile, TemplateDetail};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Entity, LibraryRow, Owner, StoreError};

fn settings_text(settings: &Settings) -> Result<String, SqliteFailure> {
    serde_json::to_string(settings)
        .map_err(|error| StoreError::Corrupt(format!("settings have no JSON form: {error}")).into())
}

pub(super) fn insert(c: &Connection, owner: &Owner, detail: &TemplateDetail) -> Result<u64, SqliteFailure> {
    let template = &detail.template;
    run(
        c,
        "INSERT INTO templates (id, owner, name, engine, is_active, settings, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7)",
        params![
            template.id.as_bytes(),
            owner.as_str(),
            template.name,
            template.engine.as_str(),
            settings_text(&detail.settings)?,
            template.created_at.0,
            template.updated_at.0
        ],
    )
    .constrained(Entity::Template, Entity::Template)?;
    for name in &template.exposed_modules {
        insert_name(c, "modules", template.id, name)?;
    }
    for name in &template.libraries {
        insert_name(c, "libraries", template.id, name)?;
    }
    for capability in &detail.capabilities {
        insert_capability(c, template.id, capability)?;
    }
    for file in &detail.startup_files {
        insert_startup_file(c, template.id, file)?;
    }
    Ok(1)
}

pub(super) fn update(
    c: &Connection,
    id: TemplateId,
    name: Option<&str>,
    settings: Option<&Settings>,
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    let settings = settings.map(settings_text).transpose()?;
    let rows = run(
        c,
        "UPDATE templates SET name = coalesce(?2, name), settings = coalesce(?3, settings), updated_at = ?4
         WHERE id = ?1 AND is_active = 1",
        params![id.as_bytes(), name, settings, at.0],
    )
    .constrained(Entity::Template, Entity::Template)?;
    found(rows)
}

pub(super) fn delete(c: &Connection, id: TemplateId, at: Timestamp) -> Result<u64, SqliteFailure> {
    found(run(
        c,
        "UPDATE templates SET is_active = 0, updated_at = ?2 WHERE id = ?1 AND is_active = 1",
        params![id.as_bytes(), at.0],
    )?)?;
    for sql in [
        "DELETE FROM template_modules WHERE template = ?1",
        "DELETE FROM template_libraries WHERE template = ?1",
        "DELETE FROM capabilities WHERE template = ?1",
        "DELETE FROM startup_files WHERE template = ?1",
    ] {
        run(c, sql, params![id.as_bytes()])?;
    }
    // The row is only kept for the sessions that refer to it.
    run(
        c,
        "DELETE FROM templates WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE template = ?1)",
        params![id.as_bytes()],
    )?;
    Ok(1)
}

fn found(rows: u64) -> Result<u64, SqliteFailure> {
    if rows == 0 { Err(StoreError::missing(Entity::Template).into()) } else { Ok(rows) }
}

fn is_active(c: &Connection, id: TemplateId) -> Result<(), SqliteFailure> {
    let sql = "SELECT 1 FROM templates WHERE id = ?1 AND is_active = 1";
    found(u64::from(exists(c, sql, params![id.as_bytes()])?)).map(|_| ())
}

fn touch(c: &Connection, id: TemplateId, at: Timestamp) -> Result<(), SqliteFailure> {
    run(c, "UPDATE templates SET updated_at = ?2 WHERE id = ?1", params![id.as_bytes(), at.0])?;
    Ok(())
}

/// `list` is `modules` or `libraries`: the tables have the same shape.
fn insert_name(c: &Connection, list: &str, id: TemplateId, name: &str) -> Result<u64, SqliteFailure> {
    let sql = format!("INSERT INTO template_{list} (template, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING");
    Ok(run(c, &sql, params![id.as_bytes(), name])?)
}

pub(super) fn add_name(
    c: &Connection,
    list: &str,
    id: TemplateId,
    name: &str,
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    is_active(c, id)?;
    let rows = insert_name(c, list, id, name)?;
    if rows > 0 {
        touch(c, id, at)?;
    }
    Ok(rows)
}

pub(super) fn remove_name(
    c: &Connection,
    list: &str,
    id: TemplateId,
    name: &str,
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    is_active(c, id)?;
    let sql = format!("DELETE FROM template_{list} WHERE template = ?1 AND name = ?2");
    let rows = run(c, &sql, params![id.as_bytes(), name])?;
    if rows > 0 {
        touch(c, id, at)?;
    }
    Ok(rows)
}

/// Removes one capability or startup file of a template: rows with their own id.
fn remove_part(
    c: &Connection,
    table: &str,
    what: Entity,
    template: TemplateId,
    id: &[u8; 16],
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    is_active(c, template)?;
    let sql = format!("DELETE FROM {table} WHERE id = ?1 AND template = ?2");
    if run(c, &sql, params![id, template.as_bytes()])? == 0 {
        return Err(StoreError::missing(what).into());
    }
    touch(c, template, at)?;
    Ok(1)
}

fn insert_capability(
    c: &Connection,
    template: TemplateId,
    capability: &Capability,
) -> Result<u64, SqliteFailure> {
    run(
        c,
        "INSERT INTO capabilities (id, template, kind, name, enabled, config) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            capability.id.as_bytes(),
            template.as_bytes(),
            capability.kind.as_str(),
            capability.name,
            capability.enabled,
            capability.config.as_str()
        ],
    )
    .constrained(Entity::Capability, Entity::Template)
}

pub(super) fn add_capability(
    c: &Connection,
    capability: &Capability,
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    is_active(c, capability.vm_id)?;
    insert_capability(c, capability.vm_id, capability)?;
    touch(c, capability.vm_id, at)?;
    Ok(1)
}

pub(super) fn remove_capability(
    c: &Connection,
    template: TemplateId,
    id: CapabilityId,
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    remove_part(c, "capabilities", Entity::Capability, template, id.as_bytes(), at)
}

fn insert_startup_file(
    c: &Connection,
    template: TemplateId,
    file: &StartupFile,
) -> Result<u64, SqliteFailure> {
    run(
        c,
        "INSERT INTO startup_files (id, template, path, order_index, mode) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![file.id.as_bytes(), template.as_bytes(), file.path, file.order_index, file.mode.as_str()],
    )
    .constrained(Entity::StartupFile, Entity::Template)
}

pub(super) fn add_startup_file(
    c: &Connection,
    file: &StartupFile,
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    is_active(c, file.vm_id)?;
    insert_startup_file(c, file.vm_id, file)?;
    touch(c, file.vm_id, at)?;
    Ok(1)
}

pub(super) fn remove_startup_file(
    c: &Connection,
    template: TemplateId,
    id: StartupFileId,
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    remove_part(c, "startup_files", Entity::StartupFile, template, id.as_bytes(), at)
}

pub(super) fn install_library(c: &Connection, row: &LibraryRow) -> Result<u64, SqliteFailure> {
    Ok(run(
        c,
        "INSERT INTO libraries (name, id, version, global, hash, bytes, installed_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (name) DO UPDATE
         SET id = ?2, version = ?3, global = ?4, hash = ?5, bytes = ?6, installed_at = ?7",
        params![row.name, row.id, row.version, row.global, row.hash, int(row.bytes), row.installed_at.0],
    )?)
}

pub(super) fn uninstall_library(c: &Connection, name: &str) -> Result<u64, SqliteFailure> {
    if run(c, "DELETE FROM libraries WHERE name = ?1", params![name])? == 0 {
        return Err(StoreError::missing(Entity::Library).into());
    }
    Ok(1)
}
