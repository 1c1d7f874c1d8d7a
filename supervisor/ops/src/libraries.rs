//! Verbs of libraries: the installed ones, and those that a template's sessions get.
//!
//! Installed libraries belong to the operator, never to an owner: only administrators add and remove them, because their code
//! runs in all sessions that name them, of all owners.

use super::errors::{invalid, not_found, stored};
use super::resolve::most_similar;
use super::templates::has_parts;
use super::{Ops, VerbCall};
use std::sync::{Arc, PoisonError};
use vm_system_protocol::control::{
    ErrorCode, LibraryCatalog, LibraryCheck, LibraryInfo, LibraryInstall, LibraryRemove, LibraryVerify,
    OpError, TemplateAddLibrary, TemplateName, TemplateRemoveLibrary,
};
use vm_system_protocol::limits::LIBRARY_BYTES;
use vm_system_record::{Entity, LibraryRow, Write};
use vm_system_runtime::{Libraries, catalog_name, full_library_name};
use vm_system_spawn::libraries::{
    self, CATALOG, CatalogEntry, LibraryStoreError, catalog_entry, full_name, hex,
};
use vm_system_spawn::{Library, LibrarySet};

/// Libraries that may be installed.
const INSTALLED: usize = 1_000;
/// Libraries that a template may name: a session waits until all of them were evaluated.
const PER_TEMPLATE: usize = 64;

/// A copy of the installed libraries' rows.
#[derive(Debug, Clone, Default)]
pub(super) struct InstalledLibraries {
    rows: Option<Arc<[LibraryRow]>>,
    changes: u64,
}

impl Ops {
    pub(crate) async fn template_add_library(
        &self,
        call: &VerbCall<'_>,
        TemplateAddLibrary { template, name }: TemplateAddLibrary,
    ) -> Result<TemplateName, OpError> {
        let _deciding = self.deciding(call, &template).await?;
        let detail = self.template(call, &template).await?.detail;
        has_parts(detail.template.engine, "libraries")?;
        let rows = self.store.libraries().await.map_err(stored)?;
        let (mut name, id) = wanted(&name, &rows)?;
        let present = &detail.template.libraries;
        let other = present.iter().find(|present| **present != name && id_of(present) == id);
        if let Some(same) =
            other.filter(|other| full_library_name(other, &rows) == full_library_name(&name, &rows))
        {
            name.clone_from(same);
        } else if let Some(other) = other {
            return Err(OpError::new(
                ErrorCode::Conflict,
                format!("the template has {other} already, and `require({id:?})` can mean one version only"),
            )
            .with_details(&serde_json::json!({ "name": other }))
            .with_hint(format!("remove {other} first")));
        }
        if present.len() >= PER_TEMPLATE && !present.contains(&name) {
            return Err(invalid(format!("a template has at most {PER_TEMPLATE} libraries")));
        }
        let template = detail.template.id;
        let write = Write::LibraryAdd { template, name: name.clone(), at: self.store.now() };
        self.part_changed(call, template, write).await?;
        Ok(TemplateName { template_id: template, name })
    }

    pub(crate) async fn template_remove_library(
        &self,
        call: &VerbCall<'_>,
        TemplateRemoveLibrary { template, name }: TemplateRemoveLibrary,
    ) -> Result<TemplateName, OpError> {
        let detail = self.template(call, &template).await?.detail;
        let name = trimmed(&name)?;
        let template = detail.template.id;
        let present = &detail.template.libraries;
        let meant = present.iter().find(|present| *present == name);
        let meant = meant.or_else(|| present.iter().find(|present| id_of(present) == name));
        let meant =
            meant.or_else(|| present.iter().find(|present| catalog_name(present).as_deref() == Some(name)));
        // No error for a name that the template does not have.
        let name = meant.map_or(name, String::as_str).to_owned();
        let write = Write::LibraryRemove { template, name: name.clone(), at: self.store.now() };
        self.part_changed(call, template, write).await?;
        Ok(TemplateName { template_id: template, name })
    }

    pub(crate) async fn library_catalog(
        &self,
        _call: &VerbCall<'_>,
        _: LibraryCatalog,
    ) -> Result<Vec<LibraryInfo>, OpError> {
        let rows = self.store.libraries().await.map_err(stored)?;
        let absent = CATALOG.iter().filter(|entry| !rows.iter().any(|row| row.name == entry.name()));
        let mut all: Vec<LibraryInfo> = absent.map(not_installed).collect();
        all.extend(rows.into_iter().map(info));
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    pub(crate) async fn library_install(
        &self,
        call: &VerbCall<'_>,
        mut new: LibraryInstall,
    ) -> Result<LibraryInfo, OpError> {
        operator(call)?;
        let unusable = |error: libraries::NameError| invalid(error.to_string());
        libraries::check_id(&new.id).map_err(unusable)?;
        libraries::check_version(&new.version).map_err(unusable)?;
        let global =
            new.global.take().or_else(|| catalog_entry(&new.id).map(|entry| entry.global.to_owned()));
        global.as_deref().map(libraries::check_global).transpose().map_err(unusable)?;
        if new.source.trim().is_empty() {
            return Err(invalid("the library's source is empty"));
        }
        if new.source.len() > LIBRARY_BYTES {
            return Err(invalid(format!("the library's source has more than {LIBRARY_BYTES} bytes")));
        }
        self.check_quota(call)?;
        let name = full_name(&new.id, &new.version);
        let checked =
            if new.unchecked { Ok(()) } else { self.loads(call, &name, &new, global.as_ref()).await };
        let _installing = self.installing.lock().await;
        let rows = self.store.libraries().await.map_err(stored)?;
        if let Err((hash, error)) = checked {
            self.audit(call, &name, &Err::<(), _>(error.clone())).await;
            if let Some(hash) = hash {
                self.remove_source(&name, hash, &rows).await;
            }
            return Err(error);
        }
        let before = rows.iter().find(|row| row.name == name);
        if rows.len() >= INSTALLED && before.is_none() {
            return Err(invalid(format!("at most {INSTALLED} libraries can be installed")));
        }
        let bytes = new.source.len() as u64;
        let library_store = self.library_store.clone();
        let hash = blocking(move || library_store.put(&new.source)).await?.map_err(|error| unkept(&error))?;
        let row = LibraryRow {
            name,
            id: new.id,
            version: new.version,
            global,
            hash,
            bytes,
            installed_at: self.store.now(),
        };
        let result =
            self.store_of(call).apply(Write::LibraryInstall(Box::new(row.clone()))).await.map_err(stored);
        self.installed_changed();
        self.audit(call, &row.name, &result).await;
        result?;
        if let Some(before) = before.filter(|before| before.hash != hash) {
            self.forget_source(before, &rows).await;
        }
        Ok(info(row))
    }

    pub(crate) async fn library_remove(
        &self,
        call: &VerbCall<'_>,
        LibraryRemove { name }: LibraryRemove,
    ) -> Result<LibraryInfo, OpError> {
        operator(call)?;
        let name = trimmed(&name)?;
        let _installing = self.installing.lock().await;
        let rows = self.store.libraries().await.map_err(stored)?;
        let row = installed(name, &rows)?.ok_or_else(|| unknown(name, &rows))?;
        let write = Write::LibraryUninstall { name: row.name.clone() };
        let result = self.store_of(call).apply(write).await.map_err(stored);
        self.installed_changed();
        self.audit(call, &row.name, &result).await;
        result?;
        self.forget_source(row, &rows).await;
        Ok(info(row.clone()))
    }

    pub(crate) async fn library_verify(
        &self,
        _call: &VerbCall<'_>,
        LibraryVerify { name }: LibraryVerify,
    ) -> Result<Vec<LibraryCheck>, OpError> {
        let mut rows = self.store.libraries().await.map_err(stored)?;
        if let Some(name) = name {
            let name = trimmed(&name)?;
            let row = installed(name, &rows)?.ok_or_else(|| unknown(name, &rows))?;
            rows = vec![row.clone()];
        }
        let library_store = self.library_store.clone();
        let check = move || {
            let check = |row: LibraryRow| {
                let problem = library_store.get(&row.hash).err().map(|error| error.to_string());
                LibraryCheck { name: row.name, ok: problem.is_none(), problem }
            };
            rows.into_iter().map(check).collect()
        };
        blocking(check).await
    }

    /// The current versions of the libraries that a template names.
    pub(super) async fn libraries_of(&self, names: &[String]) -> Result<Libraries, OpError> {
        if names.is_empty() {
            return Ok(Libraries::Installed(LibrarySet::default()));
        }
        let installed = self.installed().await?;
        Ok(Libraries::find_installed(names, &installed))
    }

    /// Every installed library. They change rarely and every session needs them: a copy is kept until one is installed or
    /// removed.
    async fn installed(&self) -> Result<Arc<[LibraryRow]>, OpError> {
        let known = self.installed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(rows) = known.rows {
            return Ok(rows);
        }
        let rows: Arc<[LibraryRow]> = self.store.libraries().await.map_err(stored)?.into();
        let mut kept = self.installed.lock().unwrap_or_else(PoisonError::into_inner);
        // Rows that were read before a change are not kept after it.
        if kept.changes == known.changes {
            kept.rows = Some(Arc::clone(&rows));
        }
        Ok(rows)
    }

    fn installed_changed(&self) {
        let mut kept = self.installed.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = InstalledLibraries { rows: None, changes: kept.changes + 1 };
    }

    /// Checks that a new library loads by itself, without the lock: an endless loop takes its time. The error comes with the
    /// hash of the source if that was stored.
    async fn loads(
        &self,
        call: &VerbCall<'_>,
        name: &str,
        new: &LibraryInstall,
        global: Option<&String>,
    ) -> Result<(), (Option<[u8; 32]>, OpError)> {
        let (library_store, source) = (self.library_store.clone(), new.source.clone());
        let put = blocking(move || library_store.put(&source)).await.map_err(|error| (None, error))?;
        let hash = put.map_err(|error| (None, unkept(&error)))?;
        let library = Library { name: name.to_owned(), id: new.id.clone(), global: global.cloned(), hash };
        let failed = match self.runtime.check_library(call.caller.owner.clone(), library).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => {
                let message = format!("{name} was not installed, because it does not load by itself: {why}");
                OpError::new(ErrorCode::StartupFailed, message).with_hint(
                    "--entry chooses another file of the package; --unchecked installs a library that needs others of its template",
                )
            }
            Err(error) => error.into(),
        };
        Err((Some(hash), failed))
    }

    /// The source of a library that was replaced or removed, unless another one has the same.
    async fn forget_source(&self, row: &LibraryRow, rows: &[LibraryRow]) {
        let others: Vec<LibraryRow> = rows.iter().filter(|other| other.name != row.name).cloned().collect();
        self.remove_source(&row.name, row.hash, &others).await;
    }

    /// Removes a source that no installed library has.
    async fn remove_source(&self, name: &str, hash: [u8; 32], installed: &[LibraryRow]) {
        if installed.iter().any(|row| row.hash == hash) {
            return;
        }
        let library_store = self.library_store.clone();
        match blocking(move || library_store.remove(&hash)).await {
            Ok(Ok(())) => {}
            // The next start deletes the file.
            Ok(Err(error)) => tracing::warn!(%error, library = name, "a removed library's file stays"),
            Err(error) => tracing::warn!(%error, library = name, "a removed library's file stays"),
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, OpError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| OpError::new(ErrorCode::Internal, error.to_string()))
}

fn operator(call: &VerbCall<'_>) -> Result<(), OpError> {
    if call.caller.admin {
        return Ok(());
    }
    let message = "only an administrator can install and remove libraries: their code runs in the sessions of all owners";
    Err(OpError::new(ErrorCode::NotPermitted, message))
}

fn unkept(error: &LibraryStoreError) -> OpError {
    OpError::new(ErrorCode::StorageUnavailable, format!("the library cannot be stored: {error}"))
        .with_hint("nothing was changed; free some disk space, then try again")
}

fn trimmed(name: &str) -> Result<&str, OpError> {
    match name.trim() {
        "" => Err(invalid("the library's name is missing")),
        name if name.len() > 400 => Err(invalid("the library's name is too long")),
        name => Ok(name),
    }
}

/// The installed library of this name, or the only one of this id.
fn installed<'a>(name: &str, rows: &'a [LibraryRow]) -> Result<Option<&'a LibraryRow>, OpError> {
    if let Some(row) = rows.iter().find(|row| row.name == name) {
        return Ok(Some(row));
    }
    let versions: Vec<&LibraryRow> = rows.iter().filter(|row| row.id == name).collect();
    if versions.len() > 1 {
        let names: Vec<&str> = versions.iter().map(|row| row.name.as_str()).collect();
        return Err(invalid(format!("more than one version of {name} is installed: {}", names.join(", ")))
            .with_details(&serde_json::json!({ "candidates": names }))
            .with_hint("give the name with its version"));
    }
    Ok(versions.first().copied())
}

/// The name that a template stores for a name from a request, and its id. An id of the catalog is stored as it is, because clients
/// of the original look for it in the template's list; another id is replaced by the name of its installed version.
fn wanted(name: &str, rows: &[LibraryRow]) -> Result<(String, String), OpError> {
    let name = trimmed(name)?;
    if CATALOG.iter().any(|entry| entry.id == name) {
        return Ok((name.to_owned(), name.to_owned()));
    }
    if let Some(row) = installed(name, rows)? {
        return Ok((row.name.clone(), row.id.clone()));
    }
    if let Some(entry) = catalog_entry(name) {
        return Ok((entry.name(), entry.id.to_owned()));
    }
    if let Some(similar) = similar(name, rows) {
        return Err(
            unknown(name, rows).with_details(&serde_json::json!({ "name": name, "similar": similar }))
        );
    }
    let command = install_command(name);
    Err(not_found(Entity::Library, name)
        .with_details(&serde_json::json!({ "name": name, "command": command }))
        .with_hint(format!("an administrator can install it: {command}")))
}

/// The error for a name that no library has, with what may have been meant.
fn unknown(name: &str, rows: &[LibraryRow]) -> OpError {
    let error = not_found(Entity::Library, name);
    match similar(name, rows) {
        Some(similar) => error.with_hint(format!("did you mean {similar:?}?")),
        None => error,
    }
}

/// The installed library or the one of the catalog whose name is most like this one.
fn similar(name: &str, rows: &[LibraryRow]) -> Option<String> {
    let installed = rows.iter().flat_map(|row| [row.name.clone(), row.id.clone()]);
    let of_catalog = CATALOG.iter().flat_map(|entry| [entry.id.to_owned(), entry.name()]);
    most_similar(name, installed.chain(of_catalog))
}

/// `left-pad-1.3.0` → `left-pad`: everything before the first hyphen that a version could follow.
fn id_of(name: &str) -> &str {
    let version_follows = |(place, _): &(usize, &str)| {
        let rest = &name[place + 1..];
        rest.starts_with(|first: char| first.is_ascii_digit()) && rest.contains('.')
    };
    let hyphens = name.match_indices('-');
    hyphens.filter(|(place, _)| *place > 0).find(version_follows).map_or(name, |(place, _)| &name[..place])
}

/// How a library that a template names is installed.
pub(super) fn install_command(name: &str) -> String {
    if let Some(entry) = catalog_entry(name) {
        return format!("vm-system libs download {}", entry.id);
    }
    match id_of(name) {
        id if id.len() < name.len() => format!("vm-system libs install {id}@{}", &name[id.len() + 1..]),
        id => format!("vm-system libs install {id}@VERSION"),
    }
}

fn info(row: LibraryRow) -> LibraryInfo {
    LibraryInfo {
        name: row.name,
        id: row.id,
        version: row.version,
        global: row.global,
        installed: true,
        sha256: Some(hex(&row.hash)),
        bytes: Some(row.bytes),
        installed_at: Some(row.installed_at),
    }
}

fn not_installed(entry: &CatalogEntry) -> LibraryInfo {
    LibraryInfo {
        name: entry.name(),
        id: entry.id.to_owned(),
        version: entry.version.to_owned(),
        global: Some(entry.global.to_owned()),
        installed: false,
        sha256: None,
        bytes: None,
        installed_at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{id_of, install_command};

    #[test]
    fn id_is_what_comes_before_the_version() {
        for (name, id) in [
            ("lodash-4.17.21", "lodash"),
            ("left-pad-1.3.0", "left-pad"),
            ("@a/b-c-1.0.0-beta.1", "@a/b-c"),
            ("lodash", "lodash"),
            ("es-2015-x", "es-2015-x"),
            ("-1.0", "-1.0"),
        ] {
            assert_eq!(id_of(name), id, "{name}");
        }
    }

    #[test]
    fn the_command_installs_what_is_missing() {
        assert_eq!(install_command("moment-2.29.4"), "vm-system libs download moment");
        assert_eq!(install_command("left-pad-1.3.0"), "vm-system libs install left-pad@1.3.0");
        assert_eq!(install_command("left-pad"), "vm-system libs install left-pad@VERSION");
    }
}
