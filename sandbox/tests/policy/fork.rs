//! The fork of a process under the worker's filter.

use nix::sys::wait::{Id, WaitPidFlag, waitid};
use vm_system_sandbox::process::{self, ExitStatus, Fork};
use vm_system_sandbox::seccomp::notify::{CallResponse, Listener};
use vm_system_sandbox::seccomp::{self, table_worker};
use vm_system_sandbox::{pidfd, privileges, socket};

pub(super) fn waits_for_the_reply() {
    let (ours, theirs) = socket::pair().expect("pair");
    let forker = match process::fork().expect("fork") {
        Fork::Parent(pid) => pid,
        Fork::Child => {
            privileges::drop_all().expect("drop privileges");
            let listener = seccomp::install_with_listener(table_worker::TABLE).expect("filter");
            let fd = std::os::fd::AsFd::as_fd(&listener);
            socket::send(&theirs, &[b"listener"], &[fd], socket::Wait::Yes).expect("send");
            let first = match process::fork_sibling() {
                Ok(Fork::Child) => process::exit_now(5),
                first => first.is_ok(),
            };
            let second = match process::fork_sibling() {
                Ok(Fork::Child) => process::exit_now(6),
                second => second.map_err(|error| error.raw_os_error()),
            };
            process::exit_now(i32::from(!(first && second == Err(Some(libc::EPERM)))))
        }
    };
    let mut got = socket::receive(&ours, &mut [0; 16], socket::Wait::Yes).expect("listener");
    let listener = Listener::from(got.fds.pop().expect("a descriptor"));
    let request = listener.next().expect("notification").expect("still there");
    assert_eq!(request.pid, forker, "the kernel reports the caller's pid");
    assert_eq!(listener.allow(request).expect("allow"), CallResponse::Taken);
    // A stop interrupts the call, which is made again.
    let request = listener.next().expect("notification").expect("still there");
    let process = pidfd::PidFd::open(forker).expect("pidfd");
    process.signal(libc::SIGSTOP).expect("alive");
    let forker_pid = nix::unistd::Pid::from_raw(forker.cast_signed());
    waitid(Id::Pid(forker_pid), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOWAIT).expect("it stops");
    assert_eq!(listener.allow(request).expect("allow"), CallResponse::Late);
    process.signal(libc::SIGCONT).expect("alive");
    let request = listener.next().expect("notification").expect("still there");
    assert_eq!(request.pid, forker, "it makes the call again");
    assert_eq!(listener.refuse(request).expect("refuse"), CallResponse::Taken);
    // CLONE_PARENT: the new process is our child and a sibling of the forking process.
    let mut endings = Vec::new();
    while endings.len() < 2 {
        waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).expect("two children");
        while let Some(reaped) = process::reap() {
            endings.push((reaped.pid == forker, ExitStatus::from_wait_status(reaped.wait_status)));
        }
    }
    assert!(endings.contains(&(true, ExitStatus::Exited(0))), "{endings:?}");
    assert!(endings.contains(&(false, ExitStatus::Exited(5))), "{endings:?}");
}
