//! The intersection itself.

use std::collections::BTreeSet;
use vm_system_protocol::model::{Capability, CapabilityKind, Limits, Resolver, Settings};
use vm_system_protocol::worker::Policy;

/// The rights that a template gives at one moment: what a session keeps from its creation, and what the template
/// says now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Limits, resolver, runtime.
    pub settings: Settings,
    /// Host modules that were added to the template.
    pub modules: Vec<String>,
    /// Its capability rows.
    pub capabilities: Vec<Capability>,
}

/// What one execution may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectivePolicy {
    /// The part that the worker is told; the supervisor checks every request against it all the same.
    pub wire: Policy,
    /// `.js` files are modules.
    pub esm: bool,
    /// Names of variables that the environment may give (an `env` row each). Empty: none.
    pub env_names: Vec<String>,
    /// `fs` may also change files (an `fs` row called `write`).
    pub fs_write: bool,
}

impl EffectivePolicy {
    /// Whether a host module may be called.
    pub fn allows_module(&self, name: &str) -> bool {
        self.wire.modules.iter().any(|module| module == name)
    }
}

/// The policy for the next execution of a session. `template` is `None` once it was deleted: its sessions go on with
/// what they have.
pub fn effective(session: &Snapshot, template: Option<&Snapshot>) -> EffectivePolicy {
    let mine = Rights::of(session);
    let rights = match template {
        Some(template) => mine.intersect(&Rights::of(template)),
        None => mine,
    };
    let settings = &session.settings;
    let now = template.map_or(settings, |template| &template.settings);
    EffectivePolicy {
        wire: Policy {
            limits: min_limits(&settings.limits, &now.limits),
            resolver: Resolver {
                allow_absolute_repo_imports: settings.resolver.allow_absolute_repo_imports
                    && now.resolver.allow_absolute_repo_imports,
                ..settings.resolver.clone()
            },
            strict: settings.runtime.strict,
            modules: rights.modules.into_iter().collect(),
            disabled_globals: rights.disabled_globals.into_iter().collect(),
        },
        esm: settings.runtime.esm,
        env_names: rights.env_names.into_iter().collect(),
        fs_write: rights.fs_write,
    }
}

/// The rights of one snapshot. Sets, so that a template with many rows costs n log n.
struct Rights {
    modules: BTreeSet<String>,
    disabled_globals: BTreeSet<String>,
    env_names: BTreeSet<String>,
    fs_write: bool,
}

impl Rights {
    fn of(snapshot: &Snapshot) -> Self {
        let mut rights = Self {
            modules: snapshot.modules.iter().cloned().collect(),
            disabled_globals: BTreeSet::new(),
            env_names: BTreeSet::new(),
            fs_write: false,
        };
        for row in &snapshot.capabilities {
            match (row.kind, row.enabled) {
                (CapabilityKind::Module, false) => {
                    rights.modules.remove(&row.name);
                }
                (CapabilityKind::Global, false) => {
                    rights.disabled_globals.insert(row.name.clone());
                }
                (CapabilityKind::Env, true) => {
                    rights.env_names.insert(row.name.clone());
                }
                (CapabilityKind::Fs, true) if row.name == "write" => rights.fs_write = true,
                // An enabled module row narrows a module that was added, it does not add one; intrinsics are on
                // without a row; `fs`, `net` and `env` rows that are off change nothing; there is no network yet.
                _ => {}
            }
        }
        rights
    }

    fn intersect(mut self, other: &Self) -> Self {
        self.modules.retain(|name| other.modules.contains(name));
        self.env_names.retain(|name| other.env_names.contains(name));
        self.disabled_globals.extend(other.disabled_globals.iter().cloned());
        self.fs_write &= other.fs_write;
        self
    }
}

fn min_limits(a: &Limits, b: &Limits) -> Limits {
    Limits {
        cpu_ms: a.cpu_ms.min(b.cpu_ms),
        wall_ms: a.wall_ms.min(b.wall_ms),
        mem_mb: a.mem_mb.min(b.mem_mb),
        max_events: a.max_events.min(b.max_events),
        max_output_kb: a.max_output_kb.min(b.max_output_kb),
        max_source_kb: a.max_source_kb.min(b.max_source_kb),
        max_steps: match (a.max_steps, b.max_steps) {
            // 0 is "no limit".
            (0, limit) | (limit, 0) => limit,
            (a, b) => a.min(b),
        },
        max_stack_depth: a.max_stack_depth.min(b.max_stack_depth),
        max_state_mb: a.max_state_mb.min(b.max_state_mb),
    }
}
