//! The operator's limits of memory pressure in the file: `[memory_pressure]`.

use serde::Deserialize;
use std::path::PathBuf;
use vm_system_runtime::PressureConfig;

/// [`PressureConfig`] in the file; absent fields are not changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PressureFile {
    suspend_below_mb: Option<u32>,
    refuse_below_mb: Option<u32>,
    suspend_stalled_percent: Option<u32>,
    refuse_stalled_percent: Option<u32>,
    end_largest: Option<bool>,
    meminfo: Option<PathBuf>,
    stalls: Option<PathBuf>,
}

impl PressureFile {
    pub(super) fn check(&self) -> Result<(), String> {
        let percents = [self.suspend_stalled_percent, self.refuse_stalled_percent];
        if percents.into_iter().flatten().any(|percent| percent > 100) {
            return Err("[memory_pressure]: a percentage is at most 100; 0: stalls do not count".to_owned());
        }
        if let (Some(suspend), Some(refuse)) = (self.suspend_below_mb, self.refuse_below_mb)
            && refuse > suspend
        {
            return Err(format!(
                "[memory_pressure]: refuse_below_mb ({refuse}) is larger than suspend_below_mb ({suspend}): sessions are suspended first"
            ));
        }
        match [&self.meminfo, &self.stalls].into_iter().flatten().find(|path| !path.is_absolute()) {
            Some(path) => Err(format!("[memory_pressure]: `{}` must be absolute", path.display())),
            None => Ok(()),
        }
    }

    pub(super) fn apply(self, config: &mut PressureConfig) {
        config.suspend_below_mb = self.suspend_below_mb.map(u64::from).or(config.suspend_below_mb);
        config.refuse_below_mb = self.refuse_below_mb.map(u64::from).or(config.refuse_below_mb);
        super::config::set(&mut config.suspend_stalled_percent, self.suspend_stalled_percent);
        super::config::set(&mut config.refuse_stalled_percent, self.refuse_stalled_percent);
        super::config::set(&mut config.end_largest, self.end_largest);
        super::config::set(&mut config.meminfo, self.meminfo);
        config.stalls = self.stalls.or(config.stalls.take());
    }
}
