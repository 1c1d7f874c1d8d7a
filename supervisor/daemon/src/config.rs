//! The operator's settings: defaults, overridden by the TOML file, overridden by the command line. Only values: other modules
//! apply them.

use super::cgroups::{CgroupConfig, CgroupsFile};
use super::databases::DatabasesFile;
mod check;
mod source;

pub(super) use check::Wrong;
pub use source::ConfigSource;

pub use super::http_settings::HttpConfig;
use super::http_settings::HttpFile;
use super::net::operator_rule;
use super::pressure::PressureFile;
use super::shares::{ShareConfig, ShareFile, SharesFile};
use super::users::UserConfig;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vm_system_api::read_toml;
use vm_system_ops::OpsOptions;
use vm_system_policy::{Operator, is_command_name};
use vm_system_protocol::for_each_limit;
use vm_system_protocol::model::{Limits, ZeroLimit};
use vm_system_record::Retention;
use vm_system_runtime::workspaces::WorkspaceLimits;
use vm_system_runtime::worktree::RootSettings;
use vm_system_runtime::{DurableConfig, PressureConfig};
use vm_system_sandbox::namespaces::is_root;
use vm_system_spawn::{SandboxMode, ServiceIds, SpawnConfig};
use vm_system_store::Durability;

/// The runtime folder of the system's daemon.
pub const SYSTEM_RUNTIME: &str = "/run/vm-system";

/// An idle session is suspended after this time, unless the operator sets another one.
const SUSPEND_AFTER: Duration = Duration::from_mins(5);

/// Settings of a daemon.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file of these settings.
    pub source: Option<ConfigSource>,
    /// Folder of the lock, and of the database by default.
    pub state_dir: PathBuf,
    /// The database file; none = in the state directory.
    pub database: Option<PathBuf>,
    /// The control socket.
    pub socket: PathBuf,
    /// The group that may connect besides the owner.
    pub socket_group: Option<String>,
    /// Whether the daemon is a service for several users, whose own user is no administrator; none = see [`Config::is_service`].
    pub service: Option<bool>,
    /// The REST API.
    pub http: HttpConfig,
    /// The commits that survive a power cut.
    pub durability: Durability,
    /// Start although acknowledged records are lost with a damaged log.
    pub accepts_damage: bool,
    /// The sandbox walls to set up.
    pub sandbox: SandboxMode,
    /// Each owner has a jail of its own: a keeper with its zygotes, a user and a pid namespace.
    pub keeper_per_owner: bool,
    /// The user that brokers and workers run as if it is another one than the supervisor's.
    pub service_ids: ServiceIds,
    /// Users of a daemon that root starts.
    pub users: UserConfig,
    /// Folders beneath which worktrees must be; empty = anywhere, for administrators only.
    pub worktree_roots: Vec<RootSettings>,
    /// The shares of owners of the things that are counted.
    pub shares: ShareConfig,
    /// The space that the databases of owners may take.
    pub workspaces: WorkspaceLimits,
    /// The cgroups of owners.
    pub cgroups: CgroupConfig,
    /// An idle session is suspended after this time; none: only under memory pressure and on request.
    pub suspend_after: Option<Duration>,
    /// The acts while memory is short.
    pub pressure: PressureConfig,
    /// Executions of durable programs.
    pub durable: DurableConfig,
    /// Upper bounds of the limits of templates.
    pub ceilings: Limits,
    /// Names for templates: variables for scripts, commands for the `exec` module, hosts for requests.
    pub operator: Operator,
    /// The socket at which a service manager starts the egress process; none: the daemon starts it.
    pub egress_socket: Option<PathBuf>,
    /// When rows are deleted.
    pub retention: Retention,
    /// A daemon that was started on demand exits after this time without clients and executions.
    pub idle_exit: Option<Duration>,
    /// A stop leaves live sessions to the next daemon; the service manager says when the stop is final.
    pub keep_sessions: bool,
    /// How long workers outlive a supervisor that was killed.
    pub keeper_grace: Duration,
    /// When the supervisor stops: time for requests in progress to finish.
    pub drain: Duration,
    /// After that: time for sessions to end before they are killed.
    pub stop: Duration,
}

impl Config {
    /// The defaults for a state directory and a socket.
    pub fn new(state_dir: PathBuf, socket: PathBuf) -> Self {
        Self {
            source: None,
            http: HttpConfig::default(),
            state_dir,
            database: None,
            socket,
            socket_group: None,
            service: None,
            durability: Durability::Full,
            accepts_damage: false,
            sandbox: SandboxMode::Full,
            keeper_per_owner: false,
            service_ids: SpawnConfig::embedded().service_ids,
            users: UserConfig::default(),
            worktree_roots: Vec::new(),
            shares: ShareConfig::default(),
            workspaces: WorkspaceLimits::default(),
            cgroups: CgroupConfig::default(),
            suspend_after: Some(SUSPEND_AFTER),
            pressure: PressureConfig::default(),
            durable: DurableConfig::default(),
            ceilings: OpsOptions::default().ceilings,
            operator: Operator::default(),
            egress_socket: None,
            retention: Retention::default(),
            idle_exit: None,
            keep_sessions: false,
            keeper_grace: Duration::from_mins(1),
            drain: Duration::from_secs(5),
            stop: Duration::from_secs(5),
        }
    }

    /// Whether the daemon is a service: its own user is then no administrator, because brokers and commands run as this user. Unless
    /// it is configured: if it was started as root, has a `socket_group`, or listens in the runtime folder of the system.
    pub fn is_service(&self) -> bool {
        let shared = || {
            is_root()
                || self.socket_group.is_some()
                || self.socket.parent() == Some(Path::new(SYSTEM_RUNTIME))
        };
        self.service.unwrap_or_else(shared)
    }

    /// Overrides these settings with those of a file.
    #[must_use]
    pub fn with_file(mut self, mut file: ConfigFile) -> Self {
        let roots = file.roots();
        self.source = file.source.take();
        set(&mut self.durability, file.durability.map(Into::into));
        set(&mut self.sandbox, file.sandbox.map(Into::into));
        set(&mut self.keeper_per_owner, file.keeper_per_owner);
        if !roots.is_empty() {
            self.worktree_roots = roots;
        }
        let sessions = ShareFile { most: file.max_sessions, ..ShareFile::default() };
        sessions.apply(&mut self.shares.sessions);
        file.shares.apply(&mut self.shares);
        file.databases.apply(&mut self.workspaces);
        file.cgroups.apply(&mut self.cgroups);
        if let Some(after_s) = file.suspend_after_s {
            self.suspend_after = (after_s > 0).then(|| seconds(after_s));
        }
        file.memory_pressure.apply(&mut self.pressure);
        file.durable.unwrap_or_default().apply(&mut self.durable);
        file.ceilings.unwrap_or_default().apply(&mut self.ceilings);
        set(&mut self.keeper_grace, file.keeper_grace_s.map(seconds));
        set(&mut self.drain, file.drain_s.map(seconds));
        set(&mut self.stop, file.stop_s.map(seconds));
        self.users.user = file.user.or(self.users.user);
        set(&mut self.users.min_uid, file.min_uid);
        set(&mut self.users.max_uid, file.max_uid);
        set(&mut self.users.root_files, file.root_files);
        self.users.agent_sockets = file.agent_sockets.or(self.users.agent_sockets);
        self.operator.env.extend(file.env.unwrap_or_default());
        self.operator.commands.extend(file.allow_exec.unwrap_or_default());
        let rules = [(file.allow_net, false), (file.allow_net_private, true)];
        // They were checked when the file was read.
        self.operator
            .net
            .extend(rules.into_iter().filter_map(|(allow, private)| operator_rule(&allow?, private).ok()));
        self.egress_socket = file.egress_socket.or(self.egress_socket);
        self.socket_group = file.socket_group.or(self.socket_group);
        self.service = file.service.or(self.service);
        if let Some(http) = file.http {
            self.http = http.into();
        }
        if let Some(retention) = file.retention {
            self.retention.max_age = match retention.max_age_days {
                Some(0) => None,
                Some(days) => Some(Duration::from_secs(u64::from(days) * 24 * 3_600)),
                None => self.retention.max_age,
            };
            set(&mut self.retention.quota_bytes, retention.quota_mb.map(mebibytes));
            // Of a smaller database one owner has no more than before, and records are deleted before nothing new is accepted.
            let part = self.retention.quota_bytes / 5 * 4;
            let default = |bytes: u64| bytes.min(part);
            let (prune_above, owner) = (self.retention.prune_above_bytes, self.retention.owner_quota_bytes);
            self.retention.prune_above_bytes =
                retention.prune_above_mb.map_or(default(prune_above), mebibytes);
            self.retention.owner_quota_bytes = retention.owner_quota_mb.map_or(default(owner), mebibytes);
            set(&mut self.retention.owner_write_bytes, retention.owner_write_mb_per_min.map(mebibytes));
        }
        self
    }
}

pub(super) fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(u64::from(count))
}

pub(super) fn mebibytes(count: u32) -> u64 {
    u64::from(count) << 20
}

/// An operator's file. Every field may be absent; an unknown field is an error.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigFile {
    #[serde(skip)]
    source: Option<ConfigSource>,
    durability: Option<DurabilityName>,
    sandbox: Option<SandboxName>,
    keeper_per_owner: Option<bool>,
    /// Roots without owners: each user may use the folders that it owns.
    worktree_roots: Option<Vec<PathBuf>>,
    /// Roots with their own rules.
    worktree_root: Vec<RootFile>,
    socket_group: Option<String>,
    service: Option<bool>,
    max_sessions: Option<u32>,
    shares: SharesFile,
    databases: DatabasesFile,
    cgroups: CgroupsFile,
    user: Option<String>,
    min_uid: Option<u32>,
    max_uid: Option<u32>,
    root_files: Option<bool>,
    agent_sockets: Option<PathBuf>,
    suspend_after_s: Option<u32>,
    memory_pressure: PressureFile,
    keeper_grace_s: Option<u32>,
    drain_s: Option<u32>,
    stop_s: Option<u32>,
    http: Option<HttpFile>,
    /// Values of variables for `env` capabilities of templates.
    env: Option<BTreeMap<String, String>>,
    /// Programs that the `exec` module may start, by name.
    allow_exec: Option<BTreeMap<String, PathBuf>>,
    /// Patterns that rows of kind `net` may allow at most.
    allow_net: Option<Vec<String>>,
    /// The same, with private addresses.
    allow_net_private: Option<Vec<String>>,
    /// The file of the secrets; read when the daemon starts.
    pub secrets: Option<PathBuf>,
    egress_socket: Option<PathBuf>,
    durable: Option<DurableFile>,
    ceilings: Option<CeilingsFile>,
    retention: Option<RetentionFile>,
}

/// [`RootSettings`] in the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct RootFile {
    path: PathBuf,
    owners: Option<Vec<String>>,
    #[serde(default)]
    cross_mounts: bool,
}

impl From<RootFile> for RootSettings {
    fn from(file: RootFile) -> Self {
        let RootFile { path, owners, cross_mounts } = file;
        Self { path, owners, cross_mounts }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetentionFile {
    max_age_days: Option<u32>,
    prune_above_mb: Option<u32>,
    quota_mb: Option<u32>,
    owner_quota_mb: Option<u32>,
    owner_write_mb_per_min: Option<u32>,
}

/// A part of [`DurableConfig`]; absent fields are not changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DurableFile {
    warm_ms: Option<u32>,
    workers: Option<u32>,
    worker_starts: Option<u32>,
    checkpoint_ms: Option<u32>,
    checkpoint_steps: Option<u32>,
    history: Option<u32>,
}

impl DurableFile {
    fn apply(self, config: &mut DurableConfig) {
        let milliseconds = |count: u32| Duration::from_millis(u64::from(count));
        set(&mut config.warm, self.warm_ms.map(milliseconds));
        set(&mut config.workers, self.workers.map(|count| count as usize));
        set(&mut config.starts, self.worker_starts.map(|count| count as usize));
        set(&mut config.checkpoint, self.checkpoint_ms.map(milliseconds));
        set(&mut config.checkpoint_steps, self.checkpoint_steps.map(u64::from));
        set(&mut config.history, self.history.map(u64::from));
    }

    fn check(&self) -> Result<(), Wrong> {
        let counts = [
            ("workers", self.workers),
            ("worker_starts", self.worker_starts),
            ("checkpoint_ms", self.checkpoint_ms),
            ("checkpoint_steps", self.checkpoint_steps),
        ];
        check_counts("durable", &counts)
    }
}

macro_rules! ceilings_file {
    ($($name:ident: $type:ident = $_default:literal, $_ceiling:literal, $zero:ident, $_unit:literal, $_text:literal;)+) => {
        /// A part of [`Limits`]; absent fields are not changed.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct CeilingsFile {
            $($name: Option<$type>,)+
        }

        impl CeilingsFile {
            fn apply(self, limits: &mut Limits) {
                $(set(&mut limits.$name, self.$name);)+
            }

            /// No template has a limit of 0 that is refused.
            fn check(&self) -> Result<(), Wrong> {
                $(if self.$name == Some(0) && ZeroLimit::$zero == ZeroLimit::Refused {
                    return Err(zero("ceilings", stringify!($name)));
                })+
                Ok(())
            }
        }
    };
}
for_each_limit!(ceilings_file);

/// Refuses counts of a table that are 0.
pub(super) fn check_counts(table: &str, counts: &[(&str, Option<u32>)]) -> Result<(), Wrong> {
    match counts.iter().find(|(_, count)| *count == Some(0)) {
        Some((name, _)) => Err(zero(table, name)),
        None => Ok(()),
    }
}

fn zero(table: &str, name: &str) -> Wrong {
    Wrong::new(&[table, name], format!("[{table}]: {name} must be at least 1"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DurabilityName {
    Full,
    Normal,
}

impl From<DurabilityName> for Durability {
    fn from(name: DurabilityName) -> Self {
        match name {
            DurabilityName::Full => Self::Full,
            DurabilityName::Normal => Self::Normal,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SandboxName {
    Full,
    NoUserns,
}

impl From<SandboxName> for SandboxMode {
    fn from(name: SandboxName) -> Self {
        match name {
            SandboxName::Full => Self::Full,
            SandboxName::NoUserns => Self::NoUserns,
        }
    }
}

/// Why an operator's file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The file has an invalid value.
    #[error("{}: {detail}", path.display())]
    Invalid {
        path: PathBuf,
        /// The value and its position.
        detail: String,
    },
}

impl ConfigFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Io { path: path.to_owned(), source })?;
        let mut file =
            Self::parse(&text).map_err(|detail| ConfigError::Invalid { path: path.to_owned(), detail })?;
        let path =
            std::path::absolute(path).map_err(|source| ConfigError::Io { path: path.to_owned(), source })?;
        file.source = Some(ConfigSource::new(path, text));
        Ok(file)
    }

    pub(super) fn source(&self) -> Option<&ConfigSource> {
        self.source.as_ref()
    }

    /// The worktree roots of both forms.
    pub(super) fn roots(&self) -> Vec<RootSettings> {
        let plain = |path: &PathBuf| RootSettings { path: path.clone(), ..RootSettings::default() };
        let plain_roots = self.worktree_roots.iter().flatten().map(plain);
        plain_roots.chain(self.worktree_root.iter().cloned().map(Into::into)).collect()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: Self = read_toml(text)?;
        file.check().map_err(|wrong| wrong.at_line(text)).map(|()| file)
    }
}

/// Checks a command of the operator: it needs a plain name, and its program must exist. The error is for the operator.
pub fn check_command(name: &str, path: &Path) -> Result<(), String> {
    if !is_command_name(name) {
        return Err(format!("allow_exec: {name:?} is not a command name (letters, digits, . _ + -)"));
    }
    if !path.is_absolute() || path.to_str().is_none() {
        return Err(format!(
            "allow_exec: the path of {name:?} must be absolute, `{}` is not",
            path.display()
        ));
    }
    match path.metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(format!("allow_exec: `{}` is not a regular file", path.display())),
        Err(error) => Err(format!("allow_exec: `{}`: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Config, String> {
        ConfigFile::parse(text).map(|file| Config::new("/s".into(), "/c".into()).with_file(file))
    }

    #[test]
    fn roots_with_and_without_rules_are_combined() {
        let text = "
            worktree_roots = [\"/srv\"]
            [[worktree_root]]
            path = \"/etc\"
            owners = [\"ci\", \"uid:1000\"]
            cross_mounts = true
            [[worktree_root]]
            path = \"/home\"
        ";
        let root = |path: &str, owners: Option<&[&str]>, cross_mounts| RootSettings {
            path: path.into(),
            owners: owners.map(|owners| owners.iter().map(|&owner| owner.to_owned()).collect()),
            cross_mounts,
        };
        let expected = [
            root("/srv", None, false),
            root("/etc", Some(&["ci", "uid:1000"]), true),
            root("/home", None, false),
        ];
        assert_eq!(config(text).unwrap().worktree_roots, expected);
    }

    #[test]
    fn a_daemon_for_several_users_is_a_service_unless_configured() {
        let service = |socket: &str, file: &str| {
            let file = ConfigFile::parse(file).expect("valid");
            Config::new("/s".into(), socket.into()).with_file(file).is_service()
        };
        assert_eq!(service("/run/user/1000/vm-system/control.sock", ""), is_root());
        assert!(service("/run/vm-system/control.sock", ""));
        assert!(service("/c/control.sock", "socket_group = \"users\""));
        assert!(service("/c/control.sock", "service = true"));
        assert!(!service("/run/vm-system/control.sock", "service = false\nsocket_group = \"users\""));
    }

    #[test]
    fn a_file_overrides_only_the_settings_that_it_has() {
        let text = "
            durability = \"normal\"
            sandbox = \"no-userns\"
            worktree_roots = [\"/srv\"]
            keeper_grace_s = 60
            [ceilings]
            cpu_ms = 7
            [http]
            listen = [\"127.0.0.1:3210\"]
            allowed_hosts = [\"VM.example\"]
            allowed_origins = [\"http://LOCALHOST:5173\"]
            [retention]
            max_age_days = 0
            quota_mb = 1
        ";
        let config = config(text).unwrap();
        assert_eq!((config.durability, config.sandbox), (Durability::Normal, SandboxMode::NoUserns));
        assert_eq!(config.worktree_roots, [RootSettings { path: "/srv".into(), ..RootSettings::default() }]);
        assert_eq!(config.keeper_grace, Duration::from_mins(1));
        assert_eq!(
            (config.ceilings.cpu_ms, config.ceilings.wall_ms),
            (7, OpsOptions::default().ceilings.wall_ms)
        );
        assert_eq!(config.shares, ShareConfig::default());
        assert_eq!((config.http.listen.len(), config.http.allowed_hosts[0].as_str()), (1, "vm.example"));
        assert_eq!(config.http.allowed_origins, ["http://localhost:5173"]);
        assert_eq!(
            config.http.socket_beside(Path::new("/run/x/control.sock")),
            Path::new("/run/x/http.sock")
        );
        assert_eq!(config.http.socket_beside(Path::new("/run/x/b.sock")), Path::new("/run/x/b.sock.http"));
        let retention = &config.retention;
        assert_eq!((retention.max_age, retention.quota_bytes), (None, 1 << 20));
        let part = (1 << 20) / 5 * 4;
        assert_eq!((retention.prune_above_bytes, retention.owner_quota_bytes), (part, part));
    }

    #[test]
    fn errors_name_the_setting_and_its_line() {
        assert!(config("durabilty = \"full\"").unwrap_err().contains("durabilty"));
        assert!(config("durability = \"most\"").unwrap_err().contains("line 1"));
        assert!(config("worktree_roots = [\"rel\"]").unwrap_err().contains("absolute"));
        assert!(config("[[worktree_root]]\npath = \"rel\"").unwrap_err().contains("absolute"));
        assert!(config("[[worktree_root]]\nowners = [\"ci\"]").unwrap_err().contains("path"));
        assert!(config("[http]\ntokens = \"rel\"").unwrap_err().contains("http.tokens"));
        assert!(config("[http]\nlisten = [\"localhost\"]").is_err());
        for host in ["a:1", "[::1]", "192.0.2.7:80", "*", "a@b", ""] {
            assert!(config(&format!("[http]\nallowed_hosts = [\"{host}\"]")).is_err(), "{host}");
        }
        assert!(config("[http]\nallowed_hosts = [\"192.0.2.7\", \"2001:db8::7\"]").is_ok());
        for origin in
            ["localhost:5173", "http://", "http://a/", "*", "http://*", "ftp://a", "http://a@b", "null"]
        {
            assert!(config(&format!("[http]\nallowed_origins = [\"{origin}\"]")).is_err(), "{origin}");
        }
        assert!(config("max_sessions = 0").is_err() && config("max_sessions = -1").is_err());
        assert!(config("").is_ok());
    }
}
