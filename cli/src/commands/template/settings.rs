//! Flags for a template's settings, the same for `create` and `update`.

use crate::error::CliError;
use crate::parse;
use serde_json::{Map, Value, json};
use vm_system_protocol::for_each_limit;
use vm_system_protocol::model::{OnCrash, Settings, TypeCheck};

macro_rules! limit_args {
    ($($name:ident: $type:ident = $default:literal, $_ceiling:literal, $_zero:ident, $unit:literal, $text:literal;)+) => {
        /// Flags for limits.
        #[derive(Debug, Clone, Default, clap::Args)]
        struct LimitFlags {
            $(#[arg(long, value_name = $unit, help = concat!($text, " [default: ", $default, "]"))]
            $name: Option<$type>,)+
        }

        impl LimitFlags {
            /// The given ones, by name.
            fn given(&self) -> impl Iterator<Item = (&'static str, Value)> {
                [$((stringify!($name), self.$name.map(Value::from)),)+]
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value?)))
            }
        }
    };
}
for_each_limit!(limit_args);

/// Flags for settings; absent ones are not changed.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Settings")]
pub(super) struct SettingsArgs {
    #[command(flatten)]
    limits: LimitFlags,
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
    /// What happens when a session's worker crashes [default: close]
    #[arg(long, value_name = "WHAT", value_parser = parse::on_crash())]
    on_crash: Option<OnCrash>,
    /// A session ends this long after its creation (seconds); 0 = never [default: 0]
    #[arg(long, value_name = "S")]
    ttl_s: Option<u32>,
    /// A session ends this long after its last execution (seconds); 0 = never [default: 0]
    #[arg(long, value_name = "S")]
    idle_timeout_s: Option<u32>,
    /// Whether TypeScript's compiler checks files before they run: off, warn (errors are shown), or error (nothing runs with errors)
    /// [default: off]
    #[arg(long, value_name = "WHAT", value_parser = parse::type_check())]
    typecheck: Option<TypeCheck>,
}

impl SettingsArgs {
    /// The given flags as a part of [`Settings`]; none without flags. `null` resets a field.
    pub(super) fn patch(&self) -> Option<Value> {
        let mut sections = Map::new();
        let mut set = |section: &str, field: &str, value: Option<Value>| {
            if let Some(value) = value {
                let fields = sections.entry(section).or_insert_with(|| json!({}));
                fields[field] = value;
            }
        };
        for (field, value) in self.limits.given() {
            set("limits", field, Some(value));
        }
        for (field, list) in [("roots", &self.roots), ("extensions", &self.extensions)] {
            set("resolver", field, (!list.is_empty()).then(|| json!(list)));
        }
        let absolute = self.allow_absolute_repo_imports;
        set("resolver", "allow_absolute_repo_imports", absolute.map(Value::from));
        for (field, value) in [("esm", self.esm), ("strict", self.strict), ("console", self.console)] {
            set("runtime", field, value.map(Value::from));
        }
        for (field, value) in [("ttl_s", self.ttl_s), ("idle_timeout_s", self.idle_timeout_s)] {
            set("runtime", field, value.map(Value::from));
        }
        set("runtime", "on_crash", self.on_crash.map(|value| json!(value)));
        set("runtime", "typecheck", self.typecheck.map(|value| json!(value)));
        (!sections.is_empty()).then_some(Value::Object(sections))
    }

    /// The defaults, overridden by the given flags.
    pub(super) fn settings(&self) -> Result<Settings, CliError> {
        let patch = self.patch().unwrap_or_else(|| json!({}));
        serde_json::from_value(patch).map_err(|error| CliError::internal(format!("settings: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_given_flags_change_settings() {
        assert_eq!(SettingsArgs::default().patch(), None);
        assert_eq!(SettingsArgs::default().settings().unwrap(), Settings::default());
        let args = SettingsArgs {
            limits: LimitFlags { cpu_ms: Some(7), ..LimitFlags::default() },
            roots: vec!["lib".to_owned()],
            ttl_s: Some(3),
            on_crash: Some(OnCrash::Close),
            ..SettingsArgs::default()
        };
        let patch = json!({
            "limits": {"cpu_ms": 7},
            "resolver": {"roots": ["lib"]},
            "runtime": {"ttl_s": 3, "on_crash": "close"},
        });
        assert_eq!(args.patch(), Some(patch));
        let settings = args.settings().unwrap();
        assert_eq!((settings.limits.cpu_ms, settings.limits.wall_ms), (7, 30_000));
        assert_eq!((settings.resolver.roots, settings.runtime.ttl_s), (vec!["lib".to_owned()], 3));
    }
}
