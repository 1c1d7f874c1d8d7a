//! The operator's settings of cgroups, as values and in the file (`[cgroups]`), and how the daemon takes its subtree.

use super::config::{Wrong, check_counts, mebibytes, set};
use super::error::DaemonError;
use serde::Deserialize;
use std::path::PathBuf;
use vm_system_sandbox::cgroup::{CgroupError, CgroupSubtree, Controllers};
use vm_system_spawn::{Cgroups, OwnerGroups, OwnerLimits};

/// Where the groups of owners are, and their limits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CgroupConfig {
    pub subtree: SubtreeSetting,
    pub limits: OwnerLimits,
}

/// The cgroup that the daemon uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SubtreeSetting {
    /// The subtree that the service manager delegates, if it delegates any.
    #[default]
    Auto,
    Off,
    /// An empty cgroup, or one that does not exist yet. Without it the daemon does not start.
    At(PathBuf),
}

/// [`CgroupConfig`] in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CgroupsFile {
    /// `auto`, `off` or a path.
    subtree: Option<String>,
    owner_cpu_weight: Option<u32>,
    owner_memory_mb: Option<u32>,
    owner_processes: Option<u32>,
    command_memory_mb: Option<u32>,
}

impl CgroupsFile {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let wrong = |name: &str, why: String| Err(Wrong::new(&["cgroups", name], why));
        if self.owner_cpu_weight.is_some_and(|weight| !(1..=10_000).contains(&weight)) {
            return wrong(
                "owner_cpu_weight",
                "[cgroups]: owner_cpu_weight must be between 1 and 10000".to_owned(),
            );
        }
        let counts = [
            ("owner_memory_mb", self.owner_memory_mb),
            ("owner_processes", self.owner_processes),
            ("command_memory_mb", self.command_memory_mb),
        ];
        check_counts("cgroups", &counts)?;
        match self.subtree.as_deref() {
            None | Some("auto" | "off") => Ok(()),
            Some(path) if path.starts_with('/') => Ok(()),
            Some(other) => wrong(
                "subtree",
                format!("[cgroups]: subtree must be \"auto\", \"off\" or an absolute path, {other:?} is not"),
            ),
        }
    }

    pub(super) fn apply(self, config: &mut CgroupConfig) {
        let subtree = self.subtree.map(|subtree| match subtree.as_str() {
            "auto" => SubtreeSetting::Auto,
            "off" => SubtreeSetting::Off,
            _ => SubtreeSetting::At(PathBuf::from(subtree)),
        });
        set(&mut config.subtree, subtree);
        let limits = &mut config.limits;
        set(&mut limits.cpu_weight, self.owner_cpu_weight);
        set(&mut limits.processes, self.owner_processes);
        limits.memory_bytes = self.owner_memory_mb.map(mebibytes).or(limits.memory_bytes);
        limits.command_memory_bytes = self.command_memory_mb.map(mebibytes).or(limits.command_memory_bytes);
    }
}

/// Takes the subtree; `Err` inside: why there is none. A cgroup that the operator names must be usable. To be called before another
/// process is started, and by a daemon of root before it becomes another user, which then needs [`CgroupSubtree::hand_over`].
pub(super) fn claim(config: &CgroupConfig) -> Result<Result<CgroupSubtree, String>, DaemonError> {
    match &config.subtree {
        SubtreeSetting::Off => Ok(Err("the operator has turned them off".to_owned())),
        SubtreeSetting::At(path) => Ok(Ok(CgroupSubtree::claim_at(path)?)),
        SubtreeSetting::Auto => match CgroupSubtree::delegated() {
            Ok(subtree) => Ok(Ok(subtree)),
            Err(error @ CgroupError::NotDelegated(_)) => Ok(Err(format!("{error}; {}", error.hint()))),
            Err(error) => Err(error.into()),
        },
    }
}

/// The groups of owners in the subtree, without those that a killed daemon has left; its jails may be kept. A limit that the operator
/// has set must be in force. Blocks.
pub(super) fn groups(
    subtree: Result<CgroupSubtree, String>,
    keeps_jails: bool,
    config: &CgroupConfig,
) -> Result<Cgroups, DaemonError> {
    let (controllers, problem) = match &subtree {
        Ok(subtree) => {
            let controllers = subtree.controllers();
            (controllers, format!("{} has {:?}", subtree.path().display(), controllers.names()))
        }
        Err(why) => (Controllers::default(), why.clone()),
    };
    let OwnerLimits { cpu_weight, memory_bytes, processes, command_memory_bytes } = &config.limits;
    let default = OwnerLimits::default();
    let needs = [
        ("owner_cpu_weight", "cpu", *cpu_weight != default.cpu_weight && !controllers.cpu),
        ("owner_memory_mb", "memory", memory_bytes.is_some() && !controllers.memory),
        ("owner_processes", "pids", *processes != default.processes && !controllers.pids),
        ("command_memory_mb", "memory", command_memory_bytes.is_some() && !controllers.memory),
    ];
    if let Some((setting, controller, _)) = needs.into_iter().find(|(_, _, lacks)| *lacks) {
        return Err(DaemonError::CgroupLimit { setting, controller, problem });
    }
    if let Ok(subtree) = &subtree {
        subtree.end_left(keeps_jails)?;
    }
    match subtree {
        Err(why) => {
            tracing::info!(why, "owners have no cgroups");
            Ok(Cgroups::Unused(why))
        }
        Ok(subtree) => {
            let path = subtree.path().display();
            if controllers.are_complete() {
                tracing::info!(%path, "owners have cgroups");
            } else {
                tracing::warn!(%path, has = controllers.names(), "owners have cgroups, but not all controllers");
            }
            let groups = OwnerGroups::new(subtree, config.limits.clone()).map_err(DaemonError::Groups)?;
            Ok(Cgroups::Used(groups))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_system_api::read_toml;

    fn config(text: &str) -> Result<CgroupConfig, String> {
        let file: CgroupsFile = read_toml(text)?;
        file.check().map_err(|wrong| wrong.why)?;
        let mut config = CgroupConfig::default();
        file.apply(&mut config);
        Ok(config)
    }

    #[test]
    fn settings_are_read_and_checked() {
        assert_eq!(config(""), Ok(CgroupConfig::default()));
        let read =
            config("subtree = \"/sys/fs/cgroup/vm\"\nowner_memory_mb = 2\nowner_processes = 9").unwrap();
        assert_eq!(read.subtree, SubtreeSetting::At("/sys/fs/cgroup/vm".into()));
        assert_eq!((read.limits.memory_bytes, read.limits.processes), (Some(2 << 20), 9));
        for (wrong, part) in [
            ("subtree = \"vm\"", "absolute path"),
            ("owner_cpu_weight = 0", "between 1 and 10000"),
            ("owner_memory_mb = 0", "owner_memory_mb"),
            ("owner_memory = 1", "owner_memory"),
        ] {
            assert!(config(wrong).unwrap_err().contains(part), "{wrong}");
        }
    }

    #[test]
    fn a_limit_of_the_operator_is_in_force_or_the_daemon_does_not_start() {
        let without = || Err("none here".to_owned());
        let default = groups(without(), false, &CgroupConfig::default()).expect("no limit was set");
        assert!(default.groups().is_none());
        for (text, controller) in [
            ("owner_memory_mb = 1", "memory"),
            ("command_memory_mb = 1", "memory"),
            ("owner_processes = 1", "pids"),
            ("owner_cpu_weight = 1", "cpu"),
        ] {
            let refused =
                groups(without(), false, &config(text).unwrap()).expect_err("not in force").to_string();
            assert!(refused.contains(controller) && refused.contains("none here"), "{refused}");
        }
    }
}
