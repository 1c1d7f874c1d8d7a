//! Narrowing applies, widening does not.

mod never_wider;
mod paths_of_calls;
mod requests;

use super::paths::CleanPath;
use super::usage::LOADS;
use super::{EffectivePolicy, HostUsage, Operator, SessionUsage, Snapshot, judge};
use vm_system_protocol::ids::{CapabilityId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, CapabilityKind};
use vm_system_protocol::worker::HostRequest;

fn effective(session: &Snapshot, template: Option<&Snapshot>) -> EffectivePolicy {
    super::effective(session, template, &operator())
}

fn operator() -> Operator {
    let mut operator = Operator::default();
    operator.env.insert("HOME".to_owned(), "/home/operator".to_owned());
    operator.commands.insert("ls".to_owned(), "/bin/ls".into());
    operator
}

fn row(kind: CapabilityKind, name: &str, enabled: bool) -> Capability {
    Capability {
        id: CapabilityId::from_bytes([1; 16]),
        vm_id: TemplateId::from_bytes([2; 16]),
        kind,
        name: name.to_owned(),
        enabled,
        config: JsonText::empty_object(),
    }
}

fn with_modules(names: &[&str]) -> Snapshot {
    Snapshot { modules: names.iter().map(|name| (*name).to_owned()).collect(), ..Snapshot::default() }
}

#[test]
fn every_limit_is_the_smaller_of_session_and_template() {
    let mut session = Snapshot::default();
    let mut template = Snapshot::default();
    session.settings.limits.cpu_ms = 10;
    template.settings.limits.cpu_ms = 20;
    session.settings.limits.wall_ms = 50;
    template.settings.limits.wall_ms = 40;
    template.settings.limits.max_output_kb = 1;
    let limits = effective(&session, Some(&template)).wire.limits;
    assert_eq!((limits.cpu_ms, limits.wall_ms, limits.max_output_kb), (10, 40, 1));
}

#[test]
fn zero_steps_is_no_limit_and_not_the_smallest_one() {
    let mut session = Snapshot::default();
    let template = Snapshot::default();
    session.settings.limits.max_steps = 7;
    assert_eq!(effective(&session, Some(&template)).wire.limits.max_steps, 7);
    assert_eq!(effective(&template, Some(&session)).wire.limits.max_steps, 7);
}

#[test]
fn module_added_to_the_template_later_is_not_granted_to_an_old_session() {
    let policy = effective(&with_modules(&[]), Some(&with_modules(&["fs"])));
    assert!(!policy.allows_module("fs"));
}

#[test]
fn module_withdrawn_from_the_template_is_not_granted_to_the_next_execution() {
    assert!(!effective(&with_modules(&["fs"]), Some(&with_modules(&[]))).allows_module("fs"));
    let mut template = with_modules(&["fs"]);
    template.capabilities.push(row(CapabilityKind::Module, "fs", false));
    assert!(!effective(&with_modules(&["fs"]), Some(&template)).allows_module("fs"));
}

#[test]
fn an_enabled_module_row_alone_grants_nothing() {
    let mut session = with_modules(&[]);
    session.capabilities.push(row(CapabilityKind::Module, "fs", true));
    assert!(!effective(&session, None).allows_module("fs"));
}

#[test]
fn a_session_of_a_deleted_template_keeps_what_it_has() {
    assert!(effective(&with_modules(&["fs"]), None).allows_module("fs"));
}

#[test]
fn globals_disabled_on_either_side_are_disabled() {
    let mut session = Snapshot::default();
    let mut template = Snapshot::default();
    session.capabilities.push(row(CapabilityKind::Global, "eval", false));
    template.capabilities.push(row(CapabilityKind::Global, "WeakRef", false));
    template.capabilities.push(row(CapabilityKind::Global, "Map", true));
    let policy = effective(&session, Some(&template));
    assert_eq!(policy.wire.disabled_globals, ["WeakRef", "eval"]);
}

#[test]
fn files_network_and_environment_are_off_without_a_row_on_both_sides() {
    let mut session = Snapshot::default();
    session.capabilities.push(row(CapabilityKind::Env, "HOME", true));
    session.capabilities.push(row(CapabilityKind::Fs, "write", true));
    session.modules.push("fs".to_owned());
    let writes = |policy: &EffectivePolicy| policy.fs.as_ref().is_some_and(|fs| fs.write.is_some());
    let alone = effective(&session, None);
    assert_eq!(alone.env, [("HOME".to_owned(), "/home/operator".to_owned())]);
    assert!(writes(&alone));
    let narrowed = effective(&session, Some(&with_modules(&["fs"])));
    assert!(narrowed.env.is_empty() && !writes(&narrowed) && narrowed.allows_module("fs"));
    session.modules.clear();
    assert!(!writes(&effective(&session, None)), "the row grants nothing without the module");
}

#[test]
fn modules_are_loaded_from_all_of_the_worktree_unless_read_rows_narrow_it() {
    let narrowed = |rows: &[Capability]| {
        let session = Snapshot { capabilities: rows.to_vec(), ..Snapshot::default() };
        let load = effective(&session, None).load;
        ["a.js", "data/a.js"].map(|path| {
            let path = CleanPath::parse(path).expect("a path of the worktree");
            load.as_ref().is_some_and(|rules| rules.cover(&path))
        })
    };
    let with = |mut row: Capability, config: &str| {
        row.config = JsonText::from_untrusted(config.to_owned());
        row
    };
    let read = |enabled| row(CapabilityKind::Fs, "read", enabled);
    let module = || row(CapabilityKind::Module, "fs", true);
    assert_eq!(narrowed(&[]), [true, true]);
    assert_eq!(
        narrowed(&[row(CapabilityKind::Module, "fs", false)]),
        [true, true],
        "the row is about the module only"
    );
    assert_eq!(narrowed(&[with(read(true), r#"{"paths": ["data/**"]}"#)]), [false, true]);
    assert_eq!(narrowed(&[with(module(), r#"{"read": ["data/**"]}"#)]), [false, true]);
    assert_eq!(narrowed(&[read(false)]), [false, false]);
    assert_eq!(narrowed(&[with(read(true), "[]")]), [false, false], "an unknown row grants nothing");
}

#[test]
fn the_module_loads_of_one_execution_are_limited() {
    let policy = effective(&Snapshot::default(), None);
    let (mut usage, mut session) = (HostUsage::default(), SessionUsage::default());
    let mut load = || {
        let request =
            HostRequest::LoadModule { candidates: vec!["nothing".to_owned()], import: false, package: false };
        judge(&policy, request, &mut usage, &mut session)
    };
    for _ in 0..LOADS {
        load().expect("below the limit");
    }
    assert_eq!(load().expect_err("one too many").error.code, "ERR_CALL_LIMIT");
    assert!(usage.summary().is_empty(), "modules of the worktree have no line: {:?}", usage.summary());
}
