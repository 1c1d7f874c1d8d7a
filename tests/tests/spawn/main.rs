//! Keeper, zygote and workers as real processes, behind the production walls, with a worker with scripted
//! misbehaviour. This binary is also the keeper's program, so it checks its mode before anything else.
//!
//! Every case runs as the test was started and, if that was root, once more as an unprivileged user.

mod body;
mod cases;
mod jail;
mod ready;
mod zygotes;

use std::panic::{AssertUnwindSafe, catch_unwind};
use vm_system_sandbox::namespaces::{self, Ids};
use vm_system_sandbox::process::ExitStatus;
use vm_system_sandbox::selftest;
use vm_system_tests::skip;

fn main() {
    body::look_at_own_name();
    vm_system_worker::roles::dispatch(std::env::args_os(), body::MODES);
    if std::env::args().nth(1).is_some_and(|mode| mode == cases::NO_USER_NAMESPACES) {
        std::process::exit(cases::host_without_user_namespaces());
    }
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let mut failed = 0;
    // First of all: the cases start threads, and a process that has had threads does not fork.
    if namespaces::is_root() {
        let ending = selftest::in_child(|| {
            namespaces::become_service_user(Ids { uid: 65534, gid: 65534 }).expect("root may switch users");
            i32::from(run_all("as uid 65534", only.as_deref()) > 0)
        });
        failed += usize::from(ending.expect("child") != ExitStatus::Exited(0));
    } else {
        skip("root", "the run as another user needs root");
    }
    failed += run_all("as started", only.as_deref());
    std::process::exit(i32::from(failed > 0));
}

fn run_all(who: &str, only: Option<&str>) -> usize {
    let mut failed = 0;
    for (name, case) in cases::CASES {
        if only.is_some_and(|only| !name.contains(only)) {
            continue;
        }
        // A new runtime for every case: its threads have ended before the next process is forked.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("runtime");
        let limit = std::time::Duration::from_mins(1);
        let result = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(async {
                tokio::time::timeout(limit, case()).await.expect("the case ends within a minute");
            });
        }));
        drop(runtime);
        println!("test {name} ({who}) ... {}", if result.is_ok() { "ok" } else { "FAILED" });
        failed += usize::from(result.is_err());
    }
    failed
}
