//! Flags for a template's settings, the same for making and changing one.

use std::ops::Not as _;
use vm_system_protocol::model::Settings;

/// Flags for settings; what is not named stays as it is.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Settings")]
pub(super) struct SettingsArgs {
    /// CPU time of one execution (milliseconds) [default: 5000]
    #[arg(long, value_name = "MS")]
    cpu_ms: Option<u32>,
    /// Wall-clock time of one execution without waits for the host (milliseconds) [default: 30000]
    #[arg(long, value_name = "MS")]
    wall_ms: Option<u32>,
    /// Memory of a session (MiB) [default: 128]
    #[arg(long, value_name = "MIB")]
    mem_mb: Option<u32>,
    /// Events that one execution may record [default: 1000]
    #[arg(long, value_name = "N")]
    max_events: Option<u32>,
    /// Text that one execution may put out (KiB) [default: 512]
    #[arg(long, value_name = "KIB")]
    max_output_kb: Option<u32>,
    /// Longest source text (KiB) [default: 1024]
    #[arg(long, value_name = "KIB")]
    max_source_kb: Option<u32>,
    /// A folder of the worktree in which `require` and `import` look (may be given several times) [default: the
    /// worktree itself]
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<String>,
    /// An extension that `require` and `import` try (may be given several times) [default: .js .mjs]
    #[arg(long = "extension", value_name = "EXT")]
    extensions: Vec<String>,
    /// Whether `/x/y.js` means the worktree's root [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    allow_absolute_repo_imports: Option<bool>,
    /// Whether run-file treats `.js` as ES modules [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    esm: Option<bool>,
    /// Whether scripts run in strict mode [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    strict: Option<bool>,
    /// Whether there is a `console` [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    console: Option<bool>,
}

impl SettingsArgs {
    /// Changes what the flags name; answers whether they name anything.
    pub(super) fn apply(&self, settings: &mut Settings) -> bool {
        let before = settings.clone();
        let limits = &mut settings.limits;
        set(&mut limits.cpu_ms, self.cpu_ms);
        set(&mut limits.wall_ms, self.wall_ms);
        set(&mut limits.mem_mb, self.mem_mb);
        set(&mut limits.max_events, self.max_events);
        set(&mut limits.max_output_kb, self.max_output_kb);
        set(&mut limits.max_source_kb, self.max_source_kb);
        let resolver = &mut settings.resolver;
        set(&mut resolver.roots, self.roots.is_empty().not().then(|| self.roots.clone()));
        set(&mut resolver.extensions, self.extensions.is_empty().not().then(|| self.extensions.clone()));
        set(&mut resolver.allow_absolute_repo_imports, self.allow_absolute_repo_imports);
        set(&mut settings.runtime.esm, self.esm);
        set(&mut settings.runtime.strict, self.strict);
        set(&mut settings.runtime.console, self.console);
        *settings != before
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_changes() {
        let mut settings = Settings::default();
        assert!(!SettingsArgs::default().apply(&mut settings));
        assert_eq!(settings, Settings::default());
        let args = SettingsArgs { cpu_ms: Some(7), roots: vec!["lib".to_owned()], ..SettingsArgs::default() };
        assert!(args.apply(&mut settings));
        assert_eq!((settings.limits.cpu_ms, settings.limits.wall_ms), (7, 30_000));
        assert_eq!(settings.resolver.roots, ["lib"]);
    }
}
