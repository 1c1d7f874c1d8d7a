//! The effective policy: the intersection of the session's copy of its template, the current template, and the operator's
//! limits. Enforces nothing.

use super::net::{MAX_NET_PATTERNS, NetRights, NetRule, Secret};
use super::paths::PathRules;
use super::rights::{DatabaseRights, ExecRights, FsRights, both};
use super::row::{CapabilityRow, read_row};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use vm_system_protocol::model::{Capability, CapabilityKind, Resolver, Settings, TypeCheck};
use vm_system_protocol::worker::Policy;

/// The rights of a template at one time: the session's copy from its creation, or the current template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Limits, resolver, runtime.
    pub settings: Settings,
    /// Host modules that were added to the template.
    pub modules: Vec<String>,
    /// The template's capability rows.
    pub capabilities: Vec<Capability>,
}

/// The rights that the operator of the daemon permits. A template can only name parts of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operator {
    /// Values of variables that a row of kind `env` without a value of its own may name.
    pub env: BTreeMap<String, String>,
    /// Programs that the `exec` module may start, by the operator's name for them; absolute paths.
    pub commands: BTreeMap<String, PathBuf>,
    /// The requests that rows of kind `net` may allow at most.
    pub net: Vec<NetRule>,
    /// By name.
    pub secrets: BTreeMap<String, Secret>,
}

/// The rights and limits of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectivePolicy {
    /// The part that is sent to the worker; the supervisor nevertheless checks every request against it.
    pub wire: Policy,
    /// `.js` files are modules.
    pub esm: bool,
    /// The check of types of files that are run.
    pub typecheck: TypeCheck,
    /// Variables of the environment; the client's variables override them.
    pub env: Vec<(String, String)>,
    /// The `fs` module, if it is granted.
    pub fs: Option<FsRights>,
    /// Files that `require` and `import` may load; `None`: no files. Rows that bound what `fs` reads apply here too, whether or
    /// not the module was added.
    pub load: Option<PathRules>,
    /// The `database` module, if it is granted.
    pub database: Option<DatabaseRights>,
    /// The `exec` module, if it is granted.
    pub exec: Option<ExecRights>,
    /// The programs behind the granted commands.
    pub programs: BTreeMap<String, PathBuf>,
    /// Requests over the network, if any is granted.
    pub net: Option<NetRights>,
}

impl EffectivePolicy {
    /// Whether a host module may be called.
    pub fn allows_module(&self, name: &str) -> bool {
        self.wire.modules.iter().any(|module| module == name)
    }

    /// Whether files of the worktree may be changed: the walls of the session's file broker permit no more.
    pub fn may_write_files(&self) -> bool {
        self.fs.as_ref().is_some_and(|fs| fs.write.is_some())
    }

    /// Why a module is not granted, if there is a special reason.
    pub fn refusal(&self, name: &str) -> Option<&str> {
        let refused = self.wire.refused_modules.iter().find(|(module, _)| module == name);
        refused.map(|(_, why)| why.as_str())
    }
}

/// The policy for the next execution of a session. `template` is `None` once it was deleted: its sessions continue with
/// their copy.
pub fn effective(session: &Snapshot, template: Option<&Snapshot>, operator: &Operator) -> EffectivePolicy {
    let mine = Rights::granted_by(session);
    let rights = match template {
        Some(template) => mine.intersect(&Rights::granted_by(template)),
        None => mine,
    };
    let rights = rights.limited_to(operator);
    let settings = &session.settings;
    let now = template.map_or(settings, |template| &template.settings);
    let granted = [
        ("database", rights.database.is_some()),
        ("exec", rights.exec.is_some()),
        ("fs", rights.fs.is_some()),
    ];
    let commands = rights.exec.iter().flat_map(|exec| &exec.commands);
    let programs = commands.filter_map(|name| operator.commands.get_key_value(name));
    EffectivePolicy {
        wire: Policy {
            limits: settings.limits.narrowed_by(&now.limits),
            resolver: Resolver {
                allow_absolute_repo_imports: settings.resolver.allow_absolute_repo_imports
                    && now.resolver.allow_absolute_repo_imports,
                ..settings.resolver.clone()
            },
            strict: settings.runtime.strict,
            modules: granted.iter().filter(|(_, yes)| *yes).map(|(name, _)| (*name).to_owned()).collect(),
            refused_modules: rights.refused.into_iter().collect(),
            disabled_globals: rights.disabled_globals.into_iter().collect(),
        },
        esm: settings.runtime.esm,
        // In the order of their strictness.
        typecheck: settings.runtime.typecheck.max(now.runtime.typecheck),
        env: rights.env.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
        programs: programs.map(|(name, path)| (name.clone(), path.clone())).collect(),
        fs: rights.fs,
        load: rights.load,
        database: rights.database,
        exec: rights.exec,
        net: rights.net,
    }
}

/// The rights of one snapshot. Sorted sets, so that a template with n rows takes O(n log n).
#[derive(Debug, Clone, Default)]
struct Rights {
    fs: Option<FsRights>,
    load: Option<PathRules>,
    database: Option<DatabaseRights>,
    exec: Option<ExecRights>,
    net: Option<NetRights>,
    disabled_globals: BTreeSet<String>,
    /// Names, with the row's own value if it has one.
    env: BTreeMap<String, Option<String>>,
    /// Modules that are named but not granted, with the reason.
    refused: BTreeMap<String, String>,
}

impl Rights {
    fn granted_by(snapshot: &Snapshot) -> Self {
        let mut rights = Self { load: Some(PathRules::everything()), ..Self::default() };
        for module in &snapshot.modules {
            rights.grant(module);
        }
        for row in &snapshot.capabilities {
            rights.apply(row);
        }
        rights.settle_writing(&snapshot.capabilities);
        rights.settle_net(&snapshot.capabilities);
        rights
    }

    /// All enabled rows of kind `net` together; those that are not valid, and those with too many patterns, grant nothing.
    fn settle_net(&mut self, rows: &[Capability]) {
        let enabled = rows.iter().filter(|row| row.kind == CapabilityKind::Net && row.enabled);
        let rules = enabled.filter_map(|row| match read_row(row.kind, &row.name, &row.config) {
            Ok(CapabilityRow::Net(rule)) => Some(rule),
            _ => None,
        });
        let mut patterns = 0;
        let within = rules.filter(|rule| {
            patterns += rule.patterns.len();
            patterns <= MAX_NET_PATTERNS
        });
        let rules: Vec<NetRule> = within.collect();
        self.net = (!rules.is_empty()).then(|| NetRights::new(rules));
    }

    fn grant(&mut self, module: &str) {
        match module {
            "fs" => self.fs = Some(FsRights::default()),
            "database" => self.database = Some(DatabaseRights::default()),
            "exec" => self.exec = Some(ExecRights::default()),
            // Every session has it.
            "http" => {}
            _ => self.refuse(module, "this version has no such module"),
        }
    }

    fn refuse(&mut self, module: &str, why: impl Into<String>) {
        match module {
            "fs" => self.fs = None,
            "database" => self.database = None,
            "exec" => self.exec = None,
            _ => {}
        }
        self.refused.insert(module.to_owned(), why.into());
    }

    /// Applies one row to the grants of the modules.
    fn apply(&mut self, row: &Capability) {
        let meaning = match read_row(row.kind, &row.name, &row.config) {
            Ok(meaning) => meaning,
            Err(error) => return self.withdraw_invalid(row, &error.to_string()),
        };
        match (meaning, row.enabled) {
            (CapabilityRow::Global(name), false) => {
                self.disabled_globals.insert(name.to_owned());
            }
            (CapabilityRow::Env(value), true) => {
                self.env.insert(row.name.clone(), value);
            }
            (CapabilityRow::Fs(_) | CapabilityRow::Database(_) | CapabilityRow::Exec(_), false) => {
                self.refuse(&row.name, "a capability of the template withdraws it");
            }
            // An enabled module row narrows a module that was added; it does not add one.
            (CapabilityRow::Fs(given), true) => {
                self.load = both(self.load.take(), given.read.as_ref());
                if let Some(fs) = &mut self.fs {
                    *fs = FsRights {
                        read: both(fs.read.take(), given.read.as_ref()),
                        write: fs.write.take(),
                        ..given
                    };
                }
            }
            (CapabilityRow::Database(given), true) => {
                if let Some(database) = &mut self.database {
                    *database = given;
                }
            }
            (CapabilityRow::Exec(given), true) => {
                if let Some(exec) = &mut self.exec {
                    *exec = given;
                }
            }
            (CapabilityRow::Read(paths), enabled) => {
                self.load = if enabled { both(self.load.take(), Some(&paths)) } else { None };
                if let Some(fs) = &mut self.fs {
                    fs.read = if enabled { both(fs.read.take(), Some(&paths)) } else { None };
                }
            }
            // Intrinsics are on without a row; `fs`, `env` and `net` rows that are off change nothing; writing and the network
            // are decided when all rows are read.
            (CapabilityRow::Global(_), true)
            | (CapabilityRow::Env(_), false)
            | (CapabilityRow::Write(_) | CapabilityRow::Net(_) | CapabilityRow::Nothing, _) => {}
        }
    }

    /// An invalid stored row withdraws the right that it names.
    fn withdraw_invalid(&mut self, row: &Capability, why: &str) {
        match row.kind {
            CapabilityKind::Module => {
                if row.name == "fs" {
                    self.load = None;
                }
                self.refuse(&row.name, format!("its capability is not valid: {why}"));
            }
            CapabilityKind::Fs => {
                self.load = None;
                self.refuse("fs", format!("the capability fs {} is not valid: {why}", row.name));
            }
            CapabilityKind::Global if !row.enabled => {
                self.disabled_globals.insert(row.name.clone());
            }
            CapabilityKind::Global | CapabilityKind::Env | CapabilityKind::Net => {}
        }
    }

    /// Writing is off without a row of kind `fs`; with one, it is limited by the module's own row.
    fn settle_writing(&mut self, rows: &[Capability]) {
        let Some(fs) = &mut self.fs else { return };
        let find = |kind: CapabilityKind, name: &str| {
            let row = rows.iter().find(|row| row.kind == kind && row.name == name && row.enabled)?;
            read_row(row.kind, &row.name, &row.config).ok()
        };
        let Some(CapabilityRow::Write(granted)) = find(CapabilityKind::Fs, "write") else { return };
        fs.write = match find(CapabilityKind::Module, "fs") {
            Some(CapabilityRow::Fs(given)) => both(Some(granted), given.write.as_ref()),
            _ => Some(granted),
        };
    }

    fn intersect(self, now: &Self) -> Self {
        let mut refused = self.refused;
        for (module, had, has) in [
            ("fs", self.fs.is_some(), now.fs.is_some()),
            ("database", self.database.is_some(), now.database.is_some()),
            ("exec", self.exec.is_some(), now.exec.is_some()),
        ] {
            if had && !has {
                let why =
                    now.refused.get(module).map_or("it was withdrawn from the template", String::as_str);
                refused.insert(module.to_owned(), why.to_owned());
            } else if has && !had && !refused.contains_key(module) {
                let why = "it was added to the template after this session was created; create a new session";
                refused.insert(module.to_owned(), why.to_owned());
            }
        }
        let mut env = self.env;
        env.retain(|name, value| now.env.get(name) == Some(value));
        let mut disabled_globals = self.disabled_globals;
        disabled_globals.extend(now.disabled_globals.iter().cloned());
        Self {
            fs: self.fs.zip(now.fs.as_ref()).map(|(mine, now)| mine.and(now)),
            load: both(self.load, now.load.as_ref()),
            database: self.database.zip(now.database.as_ref()).map(|(mine, now)| mine.and(now)),
            exec: self.exec.zip(now.exec.as_ref()).map(|(mine, now)| mine.and(now)),
            net: self.net.zip(now.net.as_ref()).map(|(mine, now)| mine.and(now)),
            disabled_globals,
            env,
            refused,
        }
    }

    /// Limits the rights to what the operator permits: listed commands, and variables with a value.
    fn limited_to(mut self, operator: &Operator) -> Self {
        if let Some(exec) = &mut self.exec {
            exec.commands.retain(|name| operator.commands.contains_key(name));
            if operator.commands.is_empty() {
                self.refuse(
                    "exec",
                    "the operator of this daemon lists no commands (serve --allow-exec NAME=/PATH)",
                );
            }
        }
        for (name, value) in &mut self.env {
            if value.is_none() {
                value.clone_from(&operator.env.get(name).cloned());
            }
        }
        self.net = self.net.map(|net| net.limited_to(&operator.net, &operator.secrets));
        if self.net.is_some() && operator.net.is_empty() {
            self.refuse("http", "the operator of this daemon allows no requests (serve --allow-net PATTERN)");
        }
        self
    }
}
