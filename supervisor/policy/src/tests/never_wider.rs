//! For any copy of a template and any current template: the rights of an execution are never more than either grants
//! alone, and for paths, modules and commands exactly what both grant.

use crate::paths::{CleanPath, PathBudget, PathRules};
use crate::{EffectivePolicy, Operator, Snapshot, effective};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::collections::BTreeSet;
use vm_system_protocol::ids::{CapabilityId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, CapabilityKind, Limits, Settings, ZeroLimit};

/// Rows that narrow, widen or withdraw, and invalid rows; few, so that both sides often have the same.
const ROWS: &[(CapabilityKind, &str, &str)] = &[
    (CapabilityKind::Module, "fs", "{}"),
    (CapabilityKind::Module, "fs", r#"{"read":["a/**","b/*"],"max_calls":5,"max_file_kb":1}"#),
    (
        CapabilityKind::Module,
        "fs",
        r#"{"write":["a/**"],"write_quota_kb":3,"max_total_kb":9,"max_entries":2}"#,
    ),
    (CapabilityKind::Module, "fs", r#"{"read":[],"write":["**"]}"#),
    (CapabilityKind::Module, "fs", r#"{"nonsense":1}"#),
    (CapabilityKind::Fs, "read", r#"{"paths":["a/*","c/**"]}"#),
    (CapabilityKind::Fs, "read", "{}"),
    (CapabilityKind::Fs, "write", r#"{"paths":["a/**/x","c/**"]}"#),
    (CapabilityKind::Fs, "write", "{}"),
    (CapabilityKind::Module, "database", r#"{"read_only":true,"max_rows":3,"timeout_ms":10}"#),
    (CapabilityKind::Module, "database", r#"{"max_result_kb":1,"max_database_kb":64,"max_calls":2}"#),
    (CapabilityKind::Module, "exec", r#"{"commands":["ls","wc"],"timeout_ms":7}"#),
    (
        CapabilityKind::Module,
        "exec",
        r#"{"commands":["wc","no"],"memory_mb":16,"processes":2,"max_output_kb":1}"#,
    ),
    (CapabilityKind::Module, "console", "{}"),
    (CapabilityKind::Global, "eval", "{}"),
    (CapabilityKind::Global, "Function", "{}"),
    (CapabilityKind::Env, "HOME", "{}"),
    (CapabilityKind::Env, "HOME", r#"{"value":"/x"}"#),
    (CapabilityKind::Env, "MODE", r#"{"value":"test"}"#),
    (CapabilityKind::Net, "any", "{}"),
];

const PATHS: &[&str] = &[".", "a", "a/x", "a/b/x", "a/b/c", "b", "b/x", "b/x/y", "c", "c/x", "d", "d/e/f"];

fn snapshot() -> impl Strategy<Value = Snapshot> {
    let modules = subsequence(vec!["console", "database", "exec", "fs", "http"], 0..=5);
    let rows = proptest::collection::vec((select(ROWS), any::<bool>()), 0..8);
    let limits = (1_u32..5, 1_u32..5, 1_u32..5, 1_u32..5, 1_u32..5, 0_u64..3);
    (modules, rows, limits, any::<bool>()).prop_map(|(modules, rows, limits, absolute)| {
        let (cpu_ms, wall_ms, mem_mb, max_events, max_output_kb, max_steps) = limits;
        let limits =
            Limits { cpu_ms, wall_ms, mem_mb, max_events, max_output_kb, max_steps, ..Limits::default() };
        let mut settings = Settings { limits, ..Settings::default() };
        settings.resolver.allow_absolute_repo_imports = absolute;
        let mut taken = BTreeSet::new();
        let capabilities = rows
            .into_iter()
            .filter(|((kind, name, _), _)| taken.insert((kind.as_str(), *name)))
            .map(|((kind, name, config), enabled)| Capability {
                id: CapabilityId::from_bytes([1; 16]),
                vm_id: TemplateId::from_bytes([2; 16]),
                kind,
                name: (*name).to_owned(),
                enabled,
                config: JsonText::from_untrusted((*config).to_owned()),
            })
            .collect();
        Snapshot { settings, modules: modules.into_iter().map(str::to_owned).collect(), capabilities }
    })
}

fn operator() -> impl Strategy<Value = Operator> {
    let commands = subsequence(vec!["ls", "wc"], 0..=2);
    let env = subsequence(vec!["HOME", "MODE"], 0..=2);
    (commands, env).prop_map(|(commands, env)| Operator {
        env: env.into_iter().map(|name| (name.to_owned(), "the operator's".to_owned())).collect(),
        commands: commands.into_iter().map(|name| (name.to_owned(), format!("/bin/{name}").into())).collect(),
        ..Operator::default()
    })
}

fn covered(rules: Option<&PathRules>, path: &CleanPath) -> (bool, bool) {
    let tree = |rules: &PathRules| rules.covers_tree(path, &mut PathBudget::one_path()) == Ok(true);
    rules.map_or((false, false), |rules| (rules.cover(path), tree(rules)))
}

fn both(a: (bool, bool), b: (bool, bool)) -> (bool, bool) {
    (a.0 && b.0, a.1 && b.1)
}

/// Every number of `of` is at most that of `side`.
fn at_most(of: &EffectivePolicy, side: &EffectivePolicy) -> Result<(), TestCaseError> {
    let (few, many) = (&of.wire.limits, &side.wire.limits);
    for (few, many) in few.values().zip(many.values()) {
        let unlimited = many.zero == ZeroLimit::Unlimited && many.value == 0;
        let lower = few.value <= many.value && (few.zero == ZeroLimit::Refused || few.value > 0);
        prop_assert!(unlimited || lower, "{}", few.name);
    }
    if let (Some(few), Some(many)) = (&of.fs, &side.fs) {
        prop_assert!(few.max_calls <= many.max_calls && few.max_total_bytes <= many.max_total_bytes);
        prop_assert!(few.max_file_bytes <= many.max_file_bytes && few.max_entries <= many.max_entries);
        prop_assert!(few.write_quota_bytes <= many.write_quota_bytes);
    }
    if let (Some(few), Some(many)) = (&of.database, &side.database) {
        prop_assert!(few.read_only || !many.read_only);
        prop_assert!(few.max_calls <= many.max_calls && few.max_rows <= many.max_rows);
        prop_assert!(few.max_result_bytes <= many.max_result_bytes && few.timeout_ms <= many.timeout_ms);
        prop_assert!(few.max_database_bytes <= many.max_database_bytes);
    }
    if let (Some(few), Some(many)) = (&of.exec, &side.exec) {
        prop_assert!(few.commands.is_subset(&many.commands) && few.max_calls <= many.max_calls);
        prop_assert!(few.timeout_ms <= many.timeout_ms && few.max_output_bytes <= many.max_output_bytes);
        prop_assert!(few.memory_bytes <= many.memory_bytes && few.processes <= many.processes);
    }
    Ok(())
}

/// Rights without an amount: `of` has none that `side` lacks.
fn no_other(of: &EffectivePolicy, side: &EffectivePolicy) -> Result<(), TestCaseError> {
    prop_assert!(of.wire.modules.iter().all(|module| side.allows_module(module)));
    prop_assert!(of.fs.is_none() || side.fs.is_some());
    prop_assert!(of.database.is_none() || side.database.is_some());
    prop_assert!(of.exec.is_none() || side.exec.is_some());
    prop_assert!(of.env.iter().all(|variable| side.env.contains(variable)), "{:?} {:?}", of.env, side.env);
    prop_assert!(of.programs.iter().all(|(name, path)| side.programs.get(name) == Some(path)));
    let disabled = &of.wire.disabled_globals;
    prop_assert!(side.wire.disabled_globals.iter().all(|global| disabled.contains(global)));
    let absolute = |policy: &EffectivePolicy| policy.wire.resolver.allow_absolute_repo_imports;
    prop_assert!(!absolute(of) || absolute(side));
    prop_assert!(!of.may_write_files() || side.may_write_files());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_effective_policy_is_never_wider_than_either_side(
        session in snapshot(),
        template in snapshot(),
        operator in operator(),
    ) {
        let now = effective(&session, Some(&template), &operator);
        let kept = effective(&session, None, &operator);
        let current = effective(&template, None, &operator);
        for side in [&kept, &current] {
            at_most(&now, side)?;
            no_other(&now, side)?;
        }
        let offered = |name: &String| operator.commands.contains_key(name);
        prop_assert!(now.exec.iter().flat_map(|exec| &exec.commands).all(offered));
        // For named rights it is exactly what both grant.
        for module in ["fs", "database", "exec"] {
            prop_assert_eq!(now.allows_module(module), kept.allows_module(module) && current.allows_module(module));
        }
        for text in PATHS {
            let path = CleanPath::parse(text).expect("a path of the worktree");
            let read = |policy: &EffectivePolicy| covered(policy.fs.as_ref().and_then(|fs| fs.read.as_ref()), &path);
            let write = |policy: &EffectivePolicy| covered(policy.fs.as_ref().and_then(|fs| fs.write.as_ref()), &path);
            prop_assert_eq!(read(&now), both(read(&kept), read(&current)), "read {}", text);
            prop_assert_eq!(write(&now), both(write(&kept), write(&current)), "write {}", text);
            let load = |policy: &EffectivePolicy| covered(policy.load.as_ref(), &path);
            prop_assert_eq!(load(&now), both(load(&kept), load(&current)), "load {}", text);
            prop_assert!(now.fs.is_none() || load(&now) == read(&now), "readable files can be loaded: {}", text);
        }
    }

    #[test]
    fn unchanged_template_withdraws_nothing(session in snapshot(), operator in operator()) {
        let kept = effective(&session, None, &operator);
        prop_assert_eq!(effective(&session, Some(&session), &operator), kept);
    }
}
