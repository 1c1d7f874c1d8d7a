//! The operator's limits of memory pressure in the file: `[memory_pressure]`.

use super::config::Wrong;
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
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let wrong = |name: &str, why: String| Wrong::new(&["memory_pressure", name], why);
        let percents = [
            ("suspend_stalled_percent", self.suspend_stalled_percent),
            ("refuse_stalled_percent", self.refuse_stalled_percent),
        ];
        if let Some((name, _)) =
            percents.iter().find(|(_, percent)| percent.is_some_and(|percent| percent > 100))
        {
            let why = "[memory_pressure]: a percentage is at most 100; 0: stalls do not count";
            return Err(wrong(name, why.to_owned()));
        }
        if let (Some(suspend), Some(refuse)) = (self.suspend_below_mb, self.refuse_below_mb)
            && refuse > suspend
        {
            let why = format!(
                "[memory_pressure]: refuse_below_mb ({refuse}) is larger than suspend_below_mb ({suspend}): sessions are suspended first"
            );
            return Err(wrong("refuse_below_mb", why));
        }
        let default = PressureConfig::default();
        let suspend = self.suspend_stalled_percent.unwrap_or(default.suspend_stalled_percent);
        let refuse = self.refuse_stalled_percent.unwrap_or(default.refuse_stalled_percent);
        // 0 turns one of them off.
        if 0 < refuse && refuse < suspend {
            let set = self.refuse_stalled_percent.is_some();
            let name = if set { "refuse_stalled_percent" } else { "suspend_stalled_percent" };
            let why = format!(
                "[memory_pressure]: refuse_stalled_percent ({refuse}) is below suspend_stalled_percent ({suspend}): sessions are \
                 suspended first"
            );
            return Err(wrong(name, why));
        }
        for (name, path) in [("meminfo", &self.meminfo), ("stalls", &self.stalls)] {
            let Some(path) = path else { continue };
            let shown = path.display();
            if !path.is_absolute() {
                return Err(wrong(
                    name,
                    format!("[memory_pressure]: {name} must be absolute, `{shown}` is not"),
                ));
            }
            if let Err(error) = std::fs::File::open(path) {
                return Err(wrong(name, format!("[memory_pressure]: {name} `{shown}`: {error}")));
            }
        }
        Ok(())
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
