//! Templates with their parts, and installed libraries.

use super::{Read, ReadError, Select, count, moment, parsed};
use rusqlite::{Connection, Row, params};
use vm_system_protocol::ids::{CapabilityId, StartupFileId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, StartupFile, Template, TemplateDetail};
use vm_system_record::{LibraryRow, Owner, Page, Scope, TemplateRow};

const HEAD: &str = "SELECT id, owner, name, engine, settings, created_at, updated_at FROM templates";

pub(in crate::sqlite) fn template(
    c: &Connection,
    scope: &Scope,
    id: TemplateId,
) -> Read<Option<Box<TemplateRow>>> {
    let mut select = Select::new(HEAD);
    select.and_value("id =", id.as_bytes().to_vec()).and("is_active = 1").scope(scope);
    with_parts(c, select.first_boxed(c, head)?)
}

pub(in crate::sqlite) fn template_by_name(
    c: &Connection,
    scope: &Scope,
    name: &str,
) -> Read<Option<Box<TemplateRow>>> {
    let mut select = Select::new(HEAD);
    select.and_value("name =", name.to_owned()).and("is_active = 1").scope(scope);
    select.newest_first("created_at", Page::first(1));
    with_parts(c, select.first_boxed(c, head)?)
}

pub(in crate::sqlite) fn templates(c: &Connection, scope: &Scope, page: Page) -> Read<Vec<TemplateRow>> {
    let mut select = Select::new(HEAD);
    select.and("is_active = 1").scope(scope).newest_first("created_at", page);
    let mut rows = select.rows(c, head)?;
    for row in &mut rows {
        fill(c, row)?;
    }
    Ok(rows)
}

fn head(row: &Row<'_>) -> Read<TemplateRow> {
    let settings = row.get_ref(4)?.as_str().map_err(|_| ReadError::Damaged("template"))?;
    Ok(TemplateRow {
        owner: Owner::new(row.get_ref(1)?.as_str().map_err(|_| ReadError::Damaged("template"))?),
        detail: TemplateDetail {
            template: Template {
                id: TemplateId::from_bytes(row.get(0)?),
                name: row.get(2)?,
                engine: parsed(row, 3, "template")?,
                is_active: true,
                built_in: false,
                exposed_modules: Vec::new(),
                libraries: Vec::new(),
                created_at: moment(row, 5)?,
                updated_at: moment(row, 6)?,
            },
            settings: serde_json::from_str(settings).map_err(|_| ReadError::Damaged("template"))?,
            capabilities: Vec::new(),
            startup_files: Vec::new(),
        },
    })
}

fn with_parts(c: &Connection, row: Option<Box<TemplateRow>>) -> Read<Option<Box<TemplateRow>>> {
    row.map(|mut row| fill(c, &mut row).map(|()| row)).transpose()
}

fn fill(c: &Connection, row: &mut TemplateRow) -> Read<()> {
    let detail = &mut row.detail;
    let id = detail.template.id;
    detail.template.exposed_modules = names(c, "modules", id)?;
    detail.template.libraries = names(c, "libraries", id)?;
    detail.capabilities = capabilities(c, id)?;
    detail.startup_files = startup_files(c, id)?;
    Ok(())
}

/// `list` is `modules` or `libraries`.
fn names(c: &Connection, list: &str, id: TemplateId) -> Read<Vec<String>> {
    let sql = format!("SELECT name FROM template_{list} WHERE template = ?1 ORDER BY name");
    let mut statement = c.prepare_cached(&sql)?;
    let names = statement.query_map(params![id.as_bytes()], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

fn capabilities(c: &Connection, id: TemplateId) -> Read<Vec<Capability>> {
    let mut select = Select::new("SELECT id, kind, name, enabled, config FROM capabilities");
    select.and_value("template =", id.as_bytes().to_vec()).text(" ORDER BY kind, name");
    select.rows(c, |row| {
        Ok(Capability {
            id: CapabilityId::from_bytes(row.get(0)?),
            vm_id: id,
            kind: parsed(row, 1, "capability")?,
            name: row.get(2)?,
            enabled: row.get(3)?,
            config: JsonText::from_untrusted(row.get(4)?),
        })
    })
}

fn startup_files(c: &Connection, id: TemplateId) -> Read<Vec<StartupFile>> {
    let mut select = Select::new("SELECT id, path, order_index, mode FROM startup_files");
    select.and_value("template =", id.as_bytes().to_vec()).text(" ORDER BY order_index, path");
    select.rows(c, |row| {
        Ok(StartupFile {
            id: StartupFileId::from_bytes(row.get(0)?),
            vm_id: id,
            path: row.get(1)?,
            order_index: row.get(2)?,
            mode: parsed(row, 3, "startup file")?,
        })
    })
}

pub(in crate::sqlite) fn libraries(c: &Connection) -> Read<Vec<LibraryRow>> {
    Select::new("SELECT name, id, version, global, hash, bytes, installed_at FROM libraries ORDER BY name")
        .rows(c, |row| {
            Ok(LibraryRow {
                name: row.get(0)?,
                id: row.get(1)?,
                version: row.get(2)?,
                global: row.get(3)?,
                hash: row.get(4)?,
                bytes: count(row, 5)?,
                installed_at: moment(row, 6)?,
            })
        })
}
