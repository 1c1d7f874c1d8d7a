//! Requests of a worker to host modules, and replies of brokers: a call is permitted within its rights only, and the same path is
//! named to the broker as was judged. First byte: which message; then its encoding.
#![cfg_attr(fuzzing, no_main)]

use std::path::PathBuf;
use std::sync::OnceLock;
use vm_system_policy::{
    EffectivePolicy, HostUsage, Operator, Permit, SessionUsage, Snapshot, effective, judge,
};
use vm_system_protocol::broker::{BrokerCall, FromBroker, FsRequest, ToBroker};
use vm_system_protocol::codec::decode;
use vm_system_protocol::ids::{CapabilityId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, CapabilityKind};
use vm_system_protocol::worker::{HostReply, HostRequest};

/// Read `data/**`, change `data/out/**`, one command; and everything.
fn policies() -> &'static [EffectivePolicy; 2] {
    static POLICIES: OnceLock<[EffectivePolicy; 2]> = OnceLock::new();
    POLICIES.get_or_init(|| {
        let modules = ["fs", "database", "exec"].map(str::to_owned).to_vec();
        let row = |number, kind, name: &str, config: &str| Capability {
            id: CapabilityId::from_bytes([number; 16]),
            vm_id: TemplateId::from_bytes([1; 16]),
            kind,
            name: name.to_owned(),
            enabled: true,
            config: JsonText::from_untrusted(config.to_owned()),
        };
        let narrow = vec![
            row(1, CapabilityKind::Fs, "read", r#"{"paths":["data/**"]}"#),
            row(2, CapabilityKind::Fs, "write", r#"{"paths":["data/out/**"]}"#),
            row(3, CapabilityKind::Module, "exec", r#"{"commands":["cat"]}"#),
        ];
        let wide = vec![row(1, CapabilityKind::Fs, "write", "{}")];
        let mut operator = Operator::default();
        operator.commands.insert("cat".to_owned(), PathBuf::from("/bin/cat"));
        [narrow, wide].map(|capabilities| {
            let snapshot = Snapshot { modules: modules.clone(), capabilities, ..Snapshot::default() };
            effective(&snapshot, None, &operator)
        })
    })
}

fn changed(request: &FsRequest) -> Vec<&str> {
    match request {
        FsRequest::Write { path, .. }
        | FsRequest::MakeDir { path, .. }
        | FsRequest::RemoveFile { path }
        | FsRequest::RemoveDir { path }
        | FsRequest::Remove { path, .. } => vec![path],
        FsRequest::Rename { from, to } => vec![from, to],
        FsRequest::Copy { to, .. } => vec![to],
        _ => Vec::new(),
    }
}

/// Whether the text, read as the kernel reads it without links, is beneath a folder.
fn beneath(path: &str, folder: &str) -> bool {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            ".." if names.pop().is_none() => return false,
            "" | "." | ".." => {}
            name => names.push(name),
        }
    }
    let folder: Vec<&str> = folder.split('/').collect();
    !path.starts_with('/') && names.starts_with(&folder)
}

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    let Some((&which, bytes)) = data.split_first() else { return };
    match which % 4 {
        0 => drop(decode::<FromBroker>(bytes)),
        1 => drop(decode::<ToBroker>(bytes)),
        2 => drop(decode::<HostReply>(bytes)),
        _ => {
            let Ok(request) = decode::<HostRequest>(bytes) else { return };
            let [narrow, wide] = policies();
            for policy in [narrow, wide] {
                let (mut usage, mut session) = (HostUsage::default(), SessionUsage::default());
                let permit = judge(policy, request.clone(), &mut usage, &mut session);
                let Ok(Permit::Broker(call)) = permit else { continue };
                match call {
                    BrokerCall::Fs { request, terms } if std::ptr::eq(policy, narrow) => {
                        assert!(!terms.links, "links would be followed");
                        for path in changed(&request) {
                            // A path that is none gets the broker's error.
                            let is_none = vm_system_policy::paths::CleanPath::parse(path).is_none();
                            assert!(is_none || beneath(path, "data/out"), "{request:?}");
                        }
                    }
                    BrokerCall::Exec { request, .. } => assert_eq!(request.command, "cat"),
                    _ => {}
                }
            }
        }
    }
});
