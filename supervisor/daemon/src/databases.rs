//! The operator's limits of the databases of workspaces, in the file: `[databases]`.

use super::config::Wrong;
use super::config::{mebibytes, set};
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
        match settings.iter().find(|(_, value)| *value == Some(0)) {
            Some((name, _)) => {
                Err(Wrong::new(&["databases", name], format!("[databases]: {name} must be at least 1")))
            }
            None => Ok(()),
        }
    }

    pub(super) fn apply(self, limits: &mut WorkspaceLimits) {
        set(&mut limits.per_owner, self.workspaces_per_owner.map(|count| count as usize));
        set(&mut limits.workspace_bytes, self.workspace_mb.map(mebibytes));
        set(&mut limits.owner_bytes, self.owner_mb.map(mebibytes));
    }
}
