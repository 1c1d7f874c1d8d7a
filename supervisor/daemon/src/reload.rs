//! SIGHUP, and so `systemctl reload`: the file of tokens and the operator's file are read again, and the folder of the web UI is opened
//! again. Tokens, worktree roots and that folder take effect at once; other settings that differ are named, because they need a restart.
//! After an error in any of them nothing has changed.

use super::config::{Config, ConfigFile, ConfigSource};
use super::notify::{self, Notification, State, notify};
use std::collections::BTreeSet;
use std::sync::Arc;
use toml::{Table, Value};
use vm_system_api::rest::{RestOptions, TokenBook, UiDir};
use vm_system_runtime::worktree::Roots;

/// Settings of the file that take effect without a restart.
const WITHOUT_RESTART: [&str; 2] = ["worktree_root", "worktree_roots"];

/// The settings that can be read again, where they are in force.
#[derive(Debug)]
pub(super) struct Reload {
    tokens: Arc<TokenBook>,
    ui: Option<UiDir>,
    roots: Roots,
    source: Option<ConfigSource>,
    /// The settings of the file that are in force.
    in_force: Table,
    has_secrets: bool,
}

/// The content of the files that a reload has read.
#[derive(Debug)]
struct Reloaded {
    tokens: usize,
    needs_restart: Vec<String>,
    in_force: Table,
}

impl Reload {
    pub(super) fn new(config: &Config, http: &RestOptions, roots: Roots) -> Self {
        let (tokens, ui) = (Arc::clone(&http.tokens), http.ui.clone());
        let source = config.source.clone();
        // It was valid when the daemon started.
        let in_force = source.as_ref().and_then(|source| source.text.parse().ok()).unwrap_or_default();
        Self { tokens, ui, roots, source, in_force, has_secrets: !config.operator.secrets.is_empty() }
    }

    /// Reads again, and reports the outcome to the log and to the service manager.
    pub(super) async fn run(&mut self) {
        notify(State::Reloading);
        let (tokens, ui, roots) = (Arc::clone(&self.tokens), self.ui.clone(), self.roots.clone());
        let (source, in_force) = (self.source.clone(), self.in_force.clone());
        let read =
            tokio::task::spawn_blocking(move || read((&tokens, ui.as_ref()), &roots, source, in_force));
        let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
        let status = match read {
            Ok(Reloaded { tokens, needs_restart, in_force }) => {
                self.in_force = in_force;
                tracing::info!(tokens, "tokens, worktree roots and the folder of the web UI were read again");
                if self.has_secrets {
                    tracing::info!(
                        "the file of secrets is read at the start only: changed secrets need a restart"
                    );
                }
                if needs_restart.is_empty() {
                    "serving; the configuration was read again".to_owned()
                } else {
                    let settings = needs_restart.join(", ");
                    tracing::warn!(%settings, "changed settings need a restart of the daemon");
                    format!("serving; changed settings need a restart: {settings}")
                }
            }
            Err(error) => {
                tracing::error!(%error, "the configuration was not read again: the previous tokens stay valid, and so do the other settings");
                format!("serving with the previous configuration: {error}")
            }
        };
        let line = status.replace(|char: char| char.is_control(), " ");
        let text = format!("READY=1\nSTATUS={line}");
        if let Err(error) = notify::send(&Notification { text: &text, fds: &[] }) {
            tracing::debug!(%error, "nobody is notified of the reload");
        }
    }
}

/// Blocks. Changes tokens, roots and the folder of the web UI together or none of them.
fn read(
    (tokens, ui): (&TokenBook, Option<&UiDir>),
    roots: &Roots,
    source: Option<ConfigSource>,
    mut in_force: Table,
) -> Result<Reloaded, String> {
    let mut needs_restart = Vec::new();
    let mut opened = None;
    if let Some(ConfigSource { path, .. }) = source {
        let file = ConfigFile::read(&path).map_err(|error| error.to_string())?;
        let text = file.source().map(|source| source.text.clone()).unwrap_or_default();
        let now: Table = text.parse().map_err(|_| format!("{}: not TOML", path.display()))?;
        let settings = file.roots();
        let is_confined = |table: &Table| WITHOUT_RESTART.iter().any(|name| table.contains_key(*name));
        // The start decides whether clients other than administrators may name folders at all.
        let keeps_meaning = roots.has_agents() || is_confined(&in_force) == is_confined(&now);
        for name in changed(&in_force, &now) {
            if !WITHOUT_RESTART.contains(&name.as_str()) || !keeps_meaning {
                needs_restart.push(name);
            }
        }
        if keeps_meaning {
            opened = Some(roots.open_again(&settings).map_err(|error| error.to_string())?);
            for name in WITHOUT_RESTART {
                in_force.remove(name);
                in_force.extend(now.get(name).map(|value| (name.to_owned(), value.clone())));
            }
        }
    }
    let folder = ui.map(UiDir::open_again).transpose();
    let folder = folder.map_err(|error| format!("the folder of the web UI: {error}"))?;
    let count = tokens.reload().map_err(|error| error.to_string())?;
    if let Some(opened) = opened {
        roots.replace(opened);
    }
    if let (Some(ui), Some(folder)) = (ui, folder) {
        ui.replace(folder);
    }
    Ok(Reloaded { tokens: count, needs_restart, in_force })
}

/// The settings that differ; those of a table with its name.
fn changed(before: &Table, after: &Table) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut changed_names = Vec::new();
    for name in names {
        match (before.get(name), after.get(name)) {
            (before, after) if before == after => {}
            (Some(Value::Table(before)), Some(Value::Table(after))) => {
                changed_names
                    .extend(changed(before, after).into_iter().map(|inner| format!("{name}.{inner}")));
            }
            _ => changed_names.push(name.clone()),
        }
    }
    changed_names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn changed_settings_have_the_names_of_their_tables() {
        let table = |text: &str| text.parse::<Table>().expect("TOML");
        let before =
            table("stop_s = 1\n[http]\nlisten = []\nrequire_token = true\n[shares.streams]\nmost = 1\n");
        let after = table(
            "drain_s = 1\n[http]\nlisten = [\"[::1]:1\"]\nrequire_token = true\n[shares.streams]\nmost = 2\n",
        );
        assert_eq!(changed(&before, &after), ["drain_s", "http.listen", "shares.streams.most", "stop_s"]);
        assert_eq!(changed(&before, &before), [""; 0]);
    }

    #[test]
    fn an_error_in_either_file_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, tokens) = (folder.path().join("config.toml"), folder.path().join("tokens"));
        let root = |name: &str| format!("worktree_roots = [{:?}]\n", folder.path().join(name));
        std::fs::create_dir(folder.path().join("a")).expect("made");
        std::fs::create_dir(folder.path().join("b")).expect("made");
        std::fs::write(&tokens, "").expect("written");
        std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).expect("mode");
        std::fs::write(&path, root("a")).expect("written");
        let book = TokenBook::open(&tokens).expect("tokens");
        let file = ConfigFile::read(&path).expect("a configuration");
        let source = file.source().cloned();
        let roots = Roots::new(&file.roots(), None).expect("roots");
        let in_force: Table = root("a").parse().expect("TOML");
        let read = || read((&book, None), &roots, source.clone(), in_force.clone());
        let has = |name: &str| roots.configured().contains(&folder.path().join(name));
        for wrong in ["nonsense", "unknown_setting = 1\n", &root("absent")] {
            std::fs::write(&path, wrong).expect("written");
            read().expect_err(wrong);
            assert!(has("a"), "{wrong}");
        }
        std::fs::write(&path, root("b") + "stop_s = 7\n").expect("written");
        std::fs::write(&tokens, "nonsense").expect("written");
        read().expect_err("the tokens");
        assert!(has("a") && !has("b"));
        std::fs::write(&tokens, "").expect("written");
        let reloaded = read().expect("both are valid");
        assert!(has("b") && !has("a"));
        assert_eq!(reloaded.needs_restart, ["stop_s"]);
        assert!(!reloaded.in_force.contains_key("stop_s"), "it is not in force");
        // Without roots, administrators alone name folders: another rule, not another root.
        std::fs::write(&path, "").expect("written");
        assert_eq!(read().expect("valid").needs_restart, ["worktree_roots"]);
        assert!(has("b"));
    }
}
