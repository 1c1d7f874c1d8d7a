//! Paths that no honest script uses: the time of the decision does not grow with their length.

use super::{effective, row};
use crate::usage::{HostUsage, SessionUsage};
use crate::{EffectivePolicy, Permit, Snapshot, judge};
use vm_system_protocol::broker::{BrokerCall, FsRequest};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, CapabilityKind};
use vm_system_protocol::worker::{HostError, HostRequest};
use vm_system_protocol::worktree_path::NO_CHANGES;

/// A session that may read and change the files that one pattern covers.
fn with_pattern(pattern: &str) -> EffectivePolicy {
    let mut session = Snapshot { modules: vec!["fs".to_owned()], ..Snapshot::default() };
    let config = JsonText::from_value(&serde_json::json!({"paths": [pattern]}));
    for name in ["read", "write"] {
        let row = row(CapabilityKind::Fs, name, true);
        session.capabilities.push(Capability { config: config.clone(), ..row });
    }
    effective(&session, None)
}

fn decide(policy: &EffectivePolicy, request: FsRequest) -> Result<Permit, HostError> {
    judge(policy, HostRequest::Fs(request), &mut HostUsage::default(), &mut SessionUsage::default())
        .map_err(|denial| denial.error)
}

#[test]
fn a_path_of_millions_of_names_is_refused_before_it_is_parsed() {
    let path = "a/".repeat(2_000_000);
    for patterns in ["a/**", "**/a/**", "**"] {
        let policy = with_pattern(patterns);
        for request in [
            FsRequest::Exists { path: path.clone() },
            FsRequest::MakeDir { path: path.clone(), recursive: true, mode: 0o777 },
            FsRequest::Rename { from: "a/b".to_owned(), to: path.clone() },
        ] {
            let error = decide(&policy, request).expect_err("longer than any path");
            assert_eq!(error.code, "ENAMETOOLONG", "{patterns}");
            assert!(error.message.len() < 500, "messages are short");
        }
    }
}

#[test]
fn a_change_without_any_right_says_so_in_the_words_that_clients_recognize() {
    let readers = effective(&Snapshot { modules: vec!["fs".to_owned()], ..Snapshot::default() }, None);
    let write = FsRequest::MakeDir { path: "a".to_owned(), recursive: false, mode: 0o777 };
    let error = decide(&readers, write).expect_err("no right to change files");
    assert_eq!(error.code, "EACCES");
    assert!(error.message.contains(NO_CHANGES), "{}", error.message);
}

#[test]
fn longest_path_that_the_kernel_accepts_is_compared_with_the_patterns() {
    let path = format!("out/{}", "n".repeat(4_091));
    let judged = decide(&with_pattern("out/**"), FsRequest::Exists { path: path.clone() });
    let Ok(Permit::Broker(BrokerCall::Fs { request, .. })) = judged else { unreachable!("{judged:?}") };
    assert_eq!(request, FsRequest::Exists { path: path.clone() });
    let error = decide(&with_pattern("out/**"), FsRequest::Exists { path: format!("{path}n") });
    assert_eq!(error.expect_err("one byte more").code, "ENAMETOOLONG");
}

#[test]
fn folders_that_must_be_there_are_counted_only_where_folders_are_made() {
    let policy = with_pattern("a/b/**");
    let levels = |request| match decide(&policy, request) {
        Ok(Permit::Broker(BrokerCall::Fs { terms, .. })) => terms.existing_levels,
        other => unreachable!("{other:?}"),
    };
    let path = "a/b/c".to_owned();
    assert_eq!(levels(FsRequest::MakeDir { path: path.clone(), recursive: true, mode: 0 }), 1);
    assert_eq!(levels(FsRequest::MakeDir { path: path.clone(), recursive: false, mode: 0 }), 0);
    assert_eq!(levels(FsRequest::Exists { path }), 0);
}

#[test]
fn a_path_from_the_root_is_one_from_the_worktree_and_patterns_see_it_so() {
    let path = |policy: &EffectivePolicy, path: &str| match decide(
        policy,
        FsRequest::ReadFile { path: path.to_owned() },
    ) {
        Ok(Permit::Broker(BrokerCall::Fs { request: FsRequest::ReadFile { path }, .. })) => path,
        Err(error) => error.code,
        other => unreachable!("{other:?}"),
    };
    let (everything, some) = (with_pattern("**"), with_pattern("data/**"));
    for (given, seen, covered) in [
        ("/data/a", "data/a", "data/a"),
        ("///data//a", "data//a", "data/a"),
        ("/", ".", "EACCES"),
        ("/data/../x", "data/../x", "EACCES"),
        ("/x", "x", "EACCES"),
        // A path that leaves the worktree is refused by the broker, with its own root as with any other beginning.
        ("/../x", "../x", "../x"),
        ("data/a", "data/a", "data/a"),
    ] {
        assert_eq!(
            (path(&everything, given), path(&some, given)),
            (seen.to_owned(), covered.to_owned()),
            "{given}"
        );
    }
}
