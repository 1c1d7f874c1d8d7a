//! The operator's limits of the databases of workspaces, in the file: `[databases]`.

use super::config::{Wrong, check_counts, mebibytes, set};
use serde::Deserialize;
use vm_system_runtime::workspaces::WorkspaceLimits;

/// [`WorkspaceLimits`] in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DatabasesFile {
    workspaces_per_owner: Option<u32>,
    workspace_mb: Option<u32>,
    owner_mb: Option<u32>,
}

impl DatabasesFile {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let settings = [
            ("workspaces_per_owner", self.workspaces_per_owner),
            ("workspace_mb", self.workspace_mb),
            ("owner_mb", self.owner_mb),
        ];
        check_counts("databases", &settings)?;
        let default = WorkspaceLimits::default();
        let mib = |bytes: u64| u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        let workspace = self.workspace_mb.unwrap_or(mib(default.workspace_bytes));
        let owner = self.owner_mb.unwrap_or(mib(default.owner_bytes));
        if owner < workspace {
            let setting = if self.owner_mb.is_some() { "owner_mb" } else { "workspace_mb" };
            let why = format!(
                "[databases]: owner_mb ({owner}) is below workspace_mb ({workspace}): one workspace could not have its databases"
            );
            return Err(Wrong::new(&["databases", setting], why));
        }
        Ok(())
    }

    pub(super) fn apply(self, limits: &mut WorkspaceLimits) {
        set(&mut limits.per_owner, self.workspaces_per_owner.map(|count| count as usize));
        set(&mut limits.workspace_bytes, self.workspace_mb.map(mebibytes));
        set(&mut limits.owner_bytes, self.owner_mb.map(mebibytes));
    }
}
