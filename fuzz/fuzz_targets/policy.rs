//! Any capability rows: each is refused or has a meaning, and a template that is narrowed never gives more than the session's copy.
//! An input is a list of rows ([`vm_system_fuzz::pieces`]): the kind says which; the content is a name, a line break and a config. Rows
//! of an odd kind belong to the current template, the others to the session's copy.
#![cfg_attr(fuzzing, no_main)]

use vm_system_fuzz::pieces::{Pieces, text};
use vm_system_policy::paths::{CleanPath, Pattern};
use vm_system_policy::{Operator, Snapshot, effective, read_row};
use vm_system_protocol::ids::{CapabilityId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, CapabilityKind};

const KINDS: [CapabilityKind; 5] = [
    CapabilityKind::Module,
    CapabilityKind::Fs,
    CapabilityKind::Global,
    CapabilityKind::Env,
    CapabilityKind::Net,
];
const PATHS: [&str; 6] = ["a", "data/x", "data/out/y.csv", "src/a/b/c.js", ".", "ä/ü"];

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    let modules = ["fs", "database", "exec", "http"].map(str::to_owned).to_vec();
    let mut copies = [(); 2].map(|()| Snapshot { modules: modules.clone(), ..Snapshot::default() });
    for (number, (kind, content)) in Pieces::new(data).enumerate() {
        let text = text(content);
        let (name, config) = text.split_once('\n').unwrap_or((&text, "{}"));
        if let Ok(pattern) = Pattern::parse(name) {
            assert!(Pattern::parse(&pattern.to_string()).is_ok(), "{name:?} is shown as {pattern}");
        }
        let row = Capability {
            id: CapabilityId::from_bytes([number as u8; 16]),
            vm_id: TemplateId::from_bytes([1; 16]),
            kind: KINDS[usize::from(kind >> 2) % KINDS.len()],
            name: name.to_owned(),
            enabled: kind & 2 == 0,
            config: JsonText::from_untrusted(config.to_owned()),
        };
        let _ = read_row(row.kind, &row.name, &row.config);
        copies[usize::from(kind & 1)].capabilities.push(row);
    }
    let [copy, template] = copies;
    let operator = Operator::default();
    let (alone, now, both) = (
        effective(&copy, None, &operator),
        effective(&template, None, &operator),
        effective(&copy, Some(&template), &operator),
    );
    for wider in [&alone, &now] {
        for module in &both.wire.modules {
            assert!(wider.allows_module(module), "{module} is widened");
        }
        for global in &wider.wire.disabled_globals {
            assert!(both.wire.disabled_globals.contains(global), "{global} is enabled again");
        }
        for path in PATHS.map(|path| CleanPath::parse(path).expect("a path")) {
            let read = |policy: &vm_system_policy::EffectivePolicy| {
                policy.fs.as_ref().and_then(|fs| fs.read.as_ref()).is_some_and(|rules| rules.cover(&path))
            };
            let write = |policy: &vm_system_policy::EffectivePolicy| {
                policy.fs.as_ref().and_then(|fs| fs.write.as_ref()).is_some_and(|rules| rules.cover(&path))
            };
            assert!(!read(&both) || read(wider), "reading {path:?} is widened");
            assert!(!write(&both) || write(wider), "writing {path:?} is widened");
        }
        if let (Some(both), Some(wider)) = (&both.fs, &wider.fs) {
            assert!(both.max_calls <= wider.max_calls && both.max_file_bytes <= wider.max_file_bytes);
        }
        if let (Some(both), Some(wider)) = (&both.exec, &wider.exec) {
            assert!(both.commands.is_subset(&wider.commands), "a command is added");
        }
    }
});
