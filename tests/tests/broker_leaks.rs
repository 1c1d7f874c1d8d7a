//! Brokers leave no process and no descriptor. A separate test process, because it counts its children and descriptors.

use std::time::Duration;
use vm_system_protocol::broker::{BrokerCall, FsRequest};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_runtime::brokers::{AllowedCall, BrokerConfig, Brokers};
use vm_system_runtime::shares::Holder;
use vm_system_runtime::workspaces::{WorkspaceKey, Workspaces};
use vm_system_tests::place::User;
use vm_system_tests::program;
use vm_system_tests::rights::{WIDE, worktree};

fn children() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("tasks").flatten();
    // A thread may end while the list is read.
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.map(|list| list.split_ascii_whitespace().count()).sum()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

#[test]
fn no_process_and_no_descriptor_is_left() {
    let before = (children(), descriptors());
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    runtime.block_on(async {
        let deadline = Duration::from_millis(500);
        let brokers = Brokers::new(BrokerConfig {
            program: program::path(program::HOSTILE_BROKER, User::AsStarted),
            call_deadline: deadline,
            ..BrokerConfig::default()
        });
        for (number, behaviour) in
            ["", "exits at once", "without walls", "exits in a call", "sends garbage", "never answers"]
                .iter()
                .enumerate()
        {
            let folder = tempfile::tempdir().expect("tempdir");
            std::fs::write(folder.path().join("behaviour"), behaviour).expect("write");
            let worktree = worktree(folder.path());
            let session = SessionId::from_bytes([number as u8; 16]);
            for _ in 0..3 {
                let call = AllowedCall {
                    execution: ExecutionId::from_bytes([1; 16]),
                    request: BrokerCall::Fs {
                        request: FsRequest::Exists { path: "x".to_owned() },
                        terms: WIDE,
                    },
                    write: false,
                    worktree: worktree.clone(),
                    workspaces: Workspaces::default(),
                    workspace: WorkspaceKey { owner: String::new(), id: String::new() },
                    holder: Holder::UNKNOWN,
                };
                let answer = brokers.call(session, call).await;
                assert_eq!(answer.is_ok(), behaviour.is_empty(), "{behaviour}: {answer:?}");
            }
            if number % 2 == 0 {
                brokers.end(session);
            }
        }
        brokers.shutdown(Duration::from_secs(20)).await;
        assert_eq!(brokers.live(), 0);
    });
    drop(runtime);
    assert_eq!((children(), descriptors()), before);
}
