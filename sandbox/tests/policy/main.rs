//! The system-call tables against the real kernel: every row lets its call through and is the only one that does;
//! everything else kills. Single-threaded (no test harness), so that children may do anything before they end.
//! Runs as it was started and, if that was root, once more as an unprivileged user.

mod egress;
mod fork;
mod sys;

use std::fs::OpenOptions;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use vm_system_sandbox::command_root::{self, View};
use vm_system_sandbox::process::{self, ExitStatus, Fork};
use vm_system_sandbox::seccomp::bpf::{Check, FilterAction, FilterRow};
use vm_system_sandbox::seccomp::{
    self, table_broker, table_command, table_egress, table_helper, table_keeper, table_supervisor,
    table_worker,
};
use vm_system_sandbox::{interrupt, landlock, namespaces, pidfd, privileges, root, selftest, socket};
use vm_system_testkit::skip;

const CASES: &[(&str, fn())] = &[
    ("every_row_lets_its_call_through_and_no_other_row_does", every_row_is_needed),
    ("commands_do_what_programs_do", commands_work),
    ("commands_get_errors_for_everything_else", commands_get_errors),
    ("supervisor_and_spawn_helper_are_refused_every_call_of_their_tables", supervisor_calls_are_refused),
    ("pairs_of_commands_reach_no_address", pairs_reach_no_address),
    ("commands_cannot_write_kernel_settings_or_device_modes", commands_write_no_kernel_settings),
    ("a_process_that_becomes_another_user_cannot_be_traced", changed_users_are_not_dumpable),
    ("calls_without_a_row_are_killed", unnamed_calls_are_killed),
    ("arguments_outside_a_row_are_killed", wrong_arguments_are_killed),
    ("clocks_without_a_vdso_are_read", clocks_without_a_vdso_are_read),
    ("the_egress_process_connects_and_does_nothing_else", egress::connects_only),
    ("an_interruption_returns_only_with_its_row", interruption_needs_its_row),
    ("a_fork_waits_for_the_supervisors_reply", fork::waits_for_the_reply),
    ("the_jail_refuses_everything_the_self_test_tries", jail_refuses_all_probes),
    ("landlock_allows_only_named_directories", landlock_allows_named_directories),
    ("doctor_reports_the_layers_of_this_machine", doctor_finds_layers),
];

fn main() {
    let mut failed = run_all("as started");
    if namespaces::is_root() {
        let ending = selftest::in_child(|| {
            let service = namespaces::Ids { uid: 65534, gid: 65534 };
            namespaces::become_service_user(service).expect("root may become any user");
            i32::from(run_all("as uid 65534") > 0)
        });
        failed += usize::from(ending.expect("child") != ExitStatus::Exited(0));
    } else {
        skip("root", "the run as another user needs root");
    }
    std::process::exit(i32::from(failed > 0));
}

fn run_all(who: &str) -> usize {
    let mut failed = 0;
    for (name, case) in CASES {
        let passed = catch_unwind(AssertUnwindSafe(case)).is_ok();
        println!("test {name} ({who}) ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    failed
}

/// The wait status of a child that makes one call under a table.
fn ending_under(table: &[FilterRow], number: libc::c_long, arguments: [u64; 6]) -> ExitStatus {
    selftest::in_child(|| {
        privileges::drop_all().expect("drop privileges");
        if seccomp::install(table).is_err() {
            return 99;
        }
        let _ = sys::call(number, arguments);
        0
    })
    .expect("child")
}

const KILLED: ExitStatus = ExitStatus::Signaled(libc::SIGSYS);
const CONTINUED: ExitStatus = ExitStatus::Exited(0);

/// Harmless arguments that satisfy the row: no descriptor and no address of ours is among them, since the calls that
/// are let through are really made.
fn matching_arguments(row: &FilterRow) -> [u64; 6] {
    let mut arguments = [0; 6];
    arguments[0] = if row.number == libc::SYS_exit_group { 0 } else { u64::MAX };
    for check in row.when {
        match *check {
            Check::Is(at, value) => arguments[at as usize] = value,
            Check::IsInt(at, value) | Check::Masked(at, _, value) => {
                arguments[at as usize] = u64::from(value);
            }
        }
    }
    if row.number == libc::SYS_ppoll {
        arguments[1] = 1; // with a null set: EFAULT, not an endless wait
    }
    arguments
}

fn every_row_is_needed() {
    for (which, table) in tables() {
        for (at, row) in table.iter().enumerate() {
            assert!(!row.reason.is_empty(), "{which}: {} has no reason", row.name);
            if row.number == libc::SYS_rt_sigreturn {
                continue; // see interruption_needs_its_row
            }
            let arguments = matching_arguments(row);
            assert_eq!(
                ending_under(&table, row.number, arguments),
                CONTINUED,
                "{which}: {} is let through",
                row.name
            );
            let without: Vec<FilterRow> =
                table.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, row)| *row).collect();
            let ending = ending_under(&without, row.number, arguments);
            assert_eq!(ending, KILLED, "{which}: without its row {} is killed", row.name);
        }
    }
}

/// The rows of the supervisor, and those of the spawn helper, beside which Unix sockets are needed.
fn supervisor_calls_are_refused() {
    for table in [table_supervisor::TABLE, table_helper::TABLE] {
        for row in table.iter().filter(|row| row.action != FilterAction::Allow) {
            let ending = selftest::in_child(|| {
                if seccomp::install_refusals_everywhere(table).is_err() {
                    return 255;
                }
                let errno = |number, of| sys::call(number, of).err().and_then(|error| error.raw_os_error());
                let unix = [libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0];
                i32::from(errno(row.number, matching_arguments(row)) != Some(libc::EPERM))
                    + 2 * i32::from(errno(libc::SYS_socket, unix).is_some())
            });
            assert_eq!(ending.expect("child"), ExitStatus::Exited(0), "{}", row.name);
        }
    }
}

/// The errno of a call in a command, 0 if it succeeds.
fn in_command(number: libc::c_long, arguments: [u64; 6]) -> i32 {
    let ending = selftest::in_child(|| {
        privileges::drop_all().expect("drop privileges");
        if seccomp::install_for_program(&table_command::rows()).is_err() {
            return 255;
        }
        sys::call(number, arguments).err().and_then(|error| error.raw_os_error()).unwrap_or(0)
    });
    match ending.expect("child") {
        ExitStatus::Exited(code) => code,
        ExitStatus::Signaled(signal) => panic!("killed by signal {signal}"),
    }
}

fn commands_work() {
    for (name, number) in [("getpid", libc::SYS_getpid), ("sched_yield", libc::SYS_sched_yield)] {
        assert_eq!(in_command(number, [0; 6]), 0, "{name}");
    }
    let ending = selftest::in_child(|| {
        privileges::drop_all().expect("drop privileges");
        seccomp::install_for_program(&table_command::rows()).expect("filter");
        let output = std::process::Command::new("/bin/sh").args(["-c", "echo a | tr a b"]).output();
        i32::from(output.is_ok_and(|output| output.stdout == b"b\n"))
    });
    assert_eq!(
        ending.expect("child"),
        ExitStatus::Exited(1),
        "processes, pipes and files are a command's own business"
    );
}

/// No call of a command is fatal: programs try what a kernel may not have.
fn commands_get_errors() {
    let (unix, stream, datagram) = (libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, libc::SOCK_DGRAM as u64);
    let (set_id, create) = (0o4755, libc::O_CREAT as u64);
    let none = u64::MAX;
    let cases: &[(&str, libc::c_long, [u64; 6], i32)] = &[
        ("a stream socket", libc::SYS_socket, [unix, stream, 0, 0, 0, 0], libc::EPERM),
        ("a datagram socket", libc::SYS_socket, [unix, datagram, 0, 0, 0, 0], libc::EPERM),
        ("a network socket", libc::SYS_socket, [libc::AF_INET as u64, stream, 0, 0, 0, 0], libc::EPERM),
        ("a netlink socket", libc::SYS_socket, [libc::AF_NETLINK as u64, datagram, 0, 0, 0, 0], libc::EPERM),
        ("a pair of datagrams", libc::SYS_socketpair, [unix, datagram, 0, 0, 0, 0], libc::EPERM),
        (
            "a pair of packets",
            libc::SYS_socketpair,
            [unix, libc::SOCK_SEQPACKET as u64, 0, 0, 0, 0],
            libc::EPERM,
        ),
        ("a pair of streams, at no address", libc::SYS_socketpair, [unix, stream, 0, 0, 0, 0], libc::EFAULT),
        ("bind", libc::SYS_bind, [none, 0, 0, 0, 0, 0], libc::EPERM),
        ("connect", libc::SYS_connect, [none, 0, 0, 0, 0, 0], libc::EPERM),
        ("listen", libc::SYS_listen, [none, 0, 0, 0, 0, 0], libc::ENOSYS),
        ("accept4", libc::SYS_accept4, [none, 0, 0, 0, 0, 0], libc::ENOSYS),
        ("setsockopt", libc::SYS_setsockopt, [none, 0, 0, 0, 0, 0], libc::ENOSYS),
        ("sendto an address", libc::SYS_sendto, [none, 0, 0, 0, 1, 0], libc::EPERM),
        ("send", libc::SYS_sendto, [none, 0, 0, 0, 0, 0], libc::EBADF),
        ("a thread by clone3", libc::SYS_clone3, [0; 6], libc::ENOSYS),
        ("a user namespace", libc::SYS_clone, [libc::CLONE_NEWUSER as u64, 0, 0, 0, 0, 0], libc::EPERM),
        ("a cgroup namespace", libc::SYS_clone, [libc::CLONE_NEWCGROUP as u64, 0, 0, 0, 0, 0], libc::EPERM),
        ("unshare", libc::SYS_unshare, [libc::CLONE_NEWUSER as u64, 0, 0, 0, 0, 0], libc::ENOSYS),
        ("setns", libc::SYS_setns, [none, 0, 0, 0, 0, 0], libc::ENOSYS),
        ("mount", libc::SYS_mount, [0; 6], libc::ENOSYS),
        ("open_tree", libc::SYS_open_tree, [none, 0, 0, 0, 0, 0], libc::ENOSYS),
        ("chroot", libc::SYS_chroot, [0; 6], libc::ENOSYS),
        ("openat2", libc::SYS_openat2, [none, 0, 0, 0, 0, 0], libc::ENOSYS),
        ("open_by_handle_at", libc::SYS_open_by_handle_at, [none, 0, 0, 0, 0, 0], libc::ENOSYS),
        ("openat of a new set-user-id file", libc::SYS_openat, [none, 0, create, set_id, 0, 0], libc::EPERM),
        ("openat of what exists", libc::SYS_openat, [none, 0, 0, set_id, 0, 0], libc::EFAULT),
        ("a set-user-id bit", libc::SYS_fchmod, [none, set_id, 0, 0, 0, 0], libc::EPERM),
        ("a mode", libc::SYS_fchmod, [none, 0o755, 0, 0, 0, 0], libc::EBADF),
        (
            "a socket file",
            libc::SYS_mknodat,
            [none, 0, u64::from(libc::S_IFSOCK) | 0o700, 0, 0, 0],
            libc::EPERM,
        ),
        ("a lease", libc::SYS_fcntl, [none, libc::F_SETLEASE as u64, 0, 0, 0, 0], libc::EPERM),
        ("a terminal's input", libc::SYS_ioctl, [none, libc::TIOCSTI, 0, 0, 0, 0], libc::ENOTTY),
        ("another filter", libc::SYS_prctl, [libc::PR_SET_SECCOMP as u64, 2, 0, 0, 0, 0], libc::EINVAL),
        ("merged pages", libc::SYS_madvise, [0, 0, libc::MADV_MERGEABLE as u64, 0, 0, 0], libc::EINVAL),
        ("a personality", libc::SYS_personality, [0x0400_0000, 0, 0, 0, 0, 0], libc::EPERM),
        ("ptrace", libc::SYS_ptrace, [0; 6], libc::ENOSYS),
        ("process_vm_readv", libc::SYS_process_vm_readv, [0; 6], libc::ENOSYS),
        ("pidfd_getfd", libc::SYS_pidfd_getfd, [none, 0, 0, 0, 0, 0], libc::ENOSYS),
        ("memfd_create", libc::SYS_memfd_create, [0; 6], libc::ENOSYS),
        ("shmget", libc::SYS_shmget, [0; 6], libc::ENOSYS),
        ("io_uring_setup", libc::SYS_io_uring_setup, [0; 6], libc::ENOSYS),
        ("bpf", libc::SYS_bpf, [none, 0, 0, 0, 0, 0], libc::ENOSYS),
        ("perf_event_open", libc::SYS_perf_event_open, [0; 6], libc::ENOSYS),
        ("userfaultfd", libc::SYS_userfaultfd, [0; 6], libc::ENOSYS),
        ("keyctl", libc::SYS_keyctl, [0; 6], libc::ENOSYS),
        ("sync of the whole host", libc::SYS_sync, [0; 6], libc::ENOSYS),
        ("a call that no kernel has", 4_000, [0; 6], libc::ENOSYS),
    ];
    for (name, number, arguments, errno) in cases {
        assert_eq!(in_command(*number, *arguments), *errno, "{name}");
    }
}

/// The only sockets that a command has stay connected to each other.
fn pairs_reach_no_address() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&file).expect("a socket of the host");
    let address = nix::sys::socket::UnixAddr::new(&file).expect("address");
    let ending = selftest::in_child(|| {
        use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, sendmsg, socketpair};
        use std::os::fd::AsRawFd as _;
        privileges::drop_all().expect("drop privileges");
        seccomp::install_for_program(&table_command::rows()).expect("filter");
        let pair = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC);
        let (one, other) = pair.expect("a pair");
        let text = [std::io::IoSlice::new(b"x")];
        let send = |to| sendmsg(one.as_raw_fd(), &text, &[], MsgFlags::empty(), to);
        let refused = |to| send(to) == Err(nix::errno::Errno::EISCONN);
        let to_other = send(None) == Ok(1) && refused(Some(&address));
        drop(other);
        // The signal of a broken pipe is std's to ignore.
        let alone = send(None) == Err(nix::errno::Errno::EPIPE) && refused(Some(&address));
        i32::from(!(to_other && alone))
    });
    assert_eq!(ending.expect("child"), ExitStatus::Exited(0));
}

/// As the user who runs the test: if that is root, no uid check protects the switches of `/proc/sys` from a command.
fn commands_write_no_kernel_settings() {
    let worktree = tempfile::tempdir().expect("dir");
    let folder = std::fs::File::open(worktree.path()).expect("open");
    let us = namespaces::Ids { uid: nix::unistd::geteuid().as_raw(), gid: nix::unistd::getegid().as_raw() };
    let ending = selftest::in_child(|| {
        nix::unistd::fchdir(&folder).expect("it can be entered");
        if let Err(error) = namespaces::enter(us, None) {
            skip("namespaces", &format!("this machine refuses namespaces: {error}"));
            return 0;
        }
        let inside = selftest::in_child(|| {
            let fd = std::os::fd::AsFd::as_fd(&folder);
            command_root::build(fd, View::ReadWrite, Path::new("/bin/sh")).expect("a root");
            privileges::drop_all().expect("drop privileges");
            command_root::restrict(View::ReadWrite, Path::new("/bin/sh")).expect("Landlock");
            let writes = |path: &str| OpenOptions::new().write(true).open(path).is_ok();
            let same = std::os::unix::fs::PermissionsExt::from_mode(0o666);
            for (what, holds) in [
                ("no switch exists", !Path::new("/proc/sys").exists()),
                (
                    "no switch can be written",
                    !writes("/proc/sys/kernel/core_pattern") && !writes("/proc/sysrq-trigger"),
                ),
                ("nothing of /proc can be written", !writes("/proc/self/oom_score_adj")),
                ("devices keep their modes", std::fs::set_permissions("/dev/null", same).is_err()),
                ("devices work", std::fs::write("/dev/null", "x").is_ok() && writes("/dev/zero")),
                (
                    "no mount is listed, with the host's path of its folder",
                    std::fs::read_to_string("/proc/self/mountinfo").is_ok_and(|mounts| mounts.is_empty())
                        || !Path::new("/proc/self/status").exists(),
                ),
                ("the worktree can be changed", std::fs::write("/work/new", "x").is_ok()),
            ] {
                if !holds {
                    println!("failed: {what}");
                    return 1;
                }
            }
            if !Path::new("/proc/self/status").exists() {
                skip("command-proc", "this machine mounts no /proc for commands");
            }
            0
        });
        i32::from(!matches!(inside, Ok(ExitStatus::Exited(0))))
    });
    assert_eq!(ending.expect("child"), ExitStatus::Exited(0));
}

fn changed_users_are_not_dumpable() {
    let ending = selftest::in_child(|| {
        let nobody = namespaces::Ids { uid: 65534, gid: 65534 };
        namespaces::become_untraced(Some(nobody.into())).expect("another user");
        let free = nix::unistd::geteuid().is_root() || nix::sys::prctl::get_dumpable() != Ok(false);
        i32::from(free)
    });
    assert_eq!(ending.expect("child"), ExitStatus::Exited(0));
}

fn tables() -> Vec<(&'static str, Vec<FilterRow>)> {
    vec![
        ("worker", table_worker::TABLE.to_vec()),
        ("keeper", table_keeper::TABLE.to_vec()),
        ("broker that reads", table_broker::rows(false, false)),
        ("broker that writes", table_broker::rows(true, false)),
        ("broker with databases", table_broker::rows(true, true)),
        ("egress", table_egress::TABLE.to_vec()),
    ]
}

fn unnamed_calls_are_killed() {
    let everywhere: &[(&str, libc::c_long)] = &[
        ("socket", libc::SYS_socket),
        ("socketpair", libc::SYS_socketpair),
        ("connect", libc::SYS_connect),
        ("bind", libc::SYS_bind),
        ("execve", libc::SYS_execve),
        ("execveat", libc::SYS_execveat),
        ("kill", libc::SYS_kill),
        ("tgkill", libc::SYS_tgkill),
        ("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo),
        ("ptrace", libc::SYS_ptrace),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("pidfd_open", libc::SYS_pidfd_open),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("prlimit64", libc::SYS_prlimit64),
        ("prctl", libc::SYS_prctl),
        ("seccomp", libc::SYS_seccomp),
        ("unshare", libc::SYS_unshare),
        ("setns", libc::SYS_setns),
        ("mount", libc::SYS_mount),
        ("umount2", libc::SYS_umount2),
        ("pivot_root", libc::SYS_pivot_root),
        ("chroot", libc::SYS_chroot),
        ("fsopen", libc::SYS_fsopen),
        ("open_tree", libc::SYS_open_tree),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("keyctl", libc::SYS_keyctl),
        ("add_key", libc::SYS_add_key),
        ("memfd_create", libc::SYS_memfd_create),
        ("shmget", libc::SYS_shmget),
        ("ioctl", libc::SYS_ioctl),
        ("setuid", libc::SYS_setuid),
        ("capset", libc::SYS_capset),
        ("sched_setscheduler", libc::SYS_sched_setscheduler),
        ("timer_create", libc::SYS_timer_create),
        ("mlockall", libc::SYS_mlockall),
        ("personality", libc::SYS_personality),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("inotify_init1", libc::SYS_inotify_init1),
        ("landlock_restrict_self", libc::SYS_landlock_restrict_self),
        ("symlinkat", libc::SYS_symlinkat),
        ("linkat", libc::SYS_linkat),
        ("mknodat", libc::SYS_mknodat),
    ];
    // The egress process connects, and does nothing else of these.
    let of_egress = ["connect", "bind"];
    for (which, table) in tables() {
        for (name, number) in everywhere {
            if which == "egress" && of_egress.contains(name) {
                continue;
            }
            assert_eq!(ending_under(&table, *number, [0; 6]), KILLED, "{which}: {name}");
        }
        assert_eq!(
            ending_under(&table, 0x4000_0000 | libc::SYS_close, [99, 0, 0, 0, 0, 0]),
            KILLED,
            "{which}: x32"
        );
    }
    for (name, number) in [
        ("openat", libc::SYS_openat),
        ("getpid", libc::SYS_getpid),
        ("read", libc::SYS_read),
        ("write", libc::SYS_write),
        ("wait4", libc::SYS_wait4),
        ("accept4", libc::SYS_accept4),
        ("pidfd_send_signal", libc::SYS_pidfd_send_signal),
    ] {
        assert_eq!(ending_under(table_worker::TABLE, number, [0; 6]), KILLED, "worker: {name}");
    }
}

/// The functions of the vdso become these calls on machines with another clock source than the processor's counter.
fn clocks_without_a_vdso_are_read() {
    let none = u64::MAX;
    for (which, table) in tables() {
        // Brokers without databases read no clock.
        let reads = |number| table.iter().any(|row| row.number == number);
        assert_eq!(
            reads(libc::SYS_clock_gettime),
            !["broker that reads", "broker that writes"].contains(&which),
            "{which}"
        );
        if reads(libc::SYS_clock_gettime) {
            for clock in [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC] {
                let ending = ending_under(&table, libc::SYS_clock_gettime, [clock as u64, none, 0, 0, 0, 0]);
                assert_eq!(ending, CONTINUED, "{which}: clock {clock}");
            }
        }
    }
    for table in [table_worker::TABLE.to_vec(), table_broker::rows(true, true)] {
        assert_eq!(ending_under(&table, libc::SYS_gettimeofday, [none, none, 0, 0, 0, 0]), CONTINUED);
    }
}

fn wrong_arguments_are_killed() {
    let (private, anonymous) = (libc::MAP_PRIVATE as u64, libc::MAP_ANONYMOUS as u64);
    let execute = libc::PROT_EXEC as u64;
    let fork = table_worker::FORK_FLAGS;
    let cases: &[(&str, libc::c_long, [u64; 6])] = &[
        ("executable mapping", libc::SYS_mmap, [0, 4096, execute, private | anonymous, u64::MAX, 0]),
        ("shared mapping", libc::SYS_mmap, [0, 4096, 0, libc::MAP_SHARED as u64 | anonymous, u64::MAX, 0]),
        ("mapping of a descriptor", libc::SYS_mmap, [0, 4096, 0, private, 3, 0]),
        ("making memory executable", libc::SYS_mprotect, [0, 4096, execute, 0, 0, 0]),
        ("peeking at a message", libc::SYS_recvmsg, [u64::MAX, 0, libc::MSG_PEEK as u64, 0, 0, 0]),
        ("dup3 to another number", libc::SYS_dup3, [0, 7, libc::O_CLOEXEC as u64, 0, 0, 0]),
        ("dup3 over an exec", libc::SYS_dup3, [0, 3, 0, 0, 0, 0]),
        ("clone of a child", libc::SYS_clone, [libc::SIGCHLD as u64, 0, 0, 0, 0, 0]),
        ("clone of a thread", libc::SYS_clone, [fork | libc::CLONE_VM as u64, 0, 0, 0, 0, 0]),
        ("clone into a namespace", libc::SYS_clone, [fork | libc::CLONE_NEWUSER as u64, 0, 0, 0, 0, 0]),
        ("clone with a pidfd", libc::SYS_clone, [fork | libc::CLONE_PIDFD as u64, 0, 0, 0, 0, 0]),
        ("clone with a stack", libc::SYS_clone, [fork, 4096, 0, 0, 0, 0]),
        ("another process's clock", libc::SYS_clock_gettime, [u64::from((!1_u32) << 3 | 2), 0, 0, 0, 0, 0]),
        ("duplicating a descriptor", libc::SYS_fcntl, [3, libc::F_DUPFD as u64, 0, 0, 0, 0]),
        ("signals from a socket", libc::SYS_fcntl, [3, libc::F_SETOWN as u64, 1, 0, 0, 0]),
        (
            "huge pages",
            libc::SYS_mmap,
            [0, 4096, 0, private | anonymous | libc::MAP_HUGETLB as u64, u64::MAX, 0],
        ),
        (
            "locked pages",
            libc::SYS_mmap,
            [0, 4096, 0, private | anonymous | libc::MAP_LOCKED as u64, u64::MAX, 0],
        ),
        ("merging pages", libc::SYS_madvise, [0, 4096, libc::MADV_MERGEABLE as u64, 0, 0, 0]),
        ("requeueing", libc::SYS_futex, [0, libc::FUTEX_CMP_REQUEUE as u64, 0, 0, 0, 0]),
        ("an operation on wake", libc::SYS_futex, [0, libc::FUTEX_WAKE_OP as u64, 0, 0, 0, 0]),
        ("inheriting a priority", libc::SYS_futex, [0, libc::FUTEX_LOCK_PI as u64, 0, 0, 0, 0]),
        (
            "trying to inherit one",
            libc::SYS_futex,
            [0, (libc::FUTEX_TRYLOCK_PI | libc::FUTEX_PRIVATE_FLAG) as u64, 0, 0, 0, 0],
        ),
        ("poll of many descriptors", libc::SYS_ppoll, [0, 2, 0, 0, 0, 0]),
    ];
    for (name, number, arguments) in cases {
        assert_eq!(ending_under(table_worker::TABLE, *number, *arguments), KILLED, "worker: {name}");
    }
    for (name, number, arguments) in [
        ("signals other than SIGKILL", libc::SYS_pidfd_send_signal, [0, 15, 0, 0, 0, 0]),
        ("a wait that blocks", libc::SYS_wait4, [u64::MAX, 0, 0, 0, 0, 0]),
        ("a wait for one child", libc::SYS_wait4, [1, 0, 1, 0, 0, 0]),
        ("executable mapping", libc::SYS_mmap, [0, 4096, execute, private | anonymous, u64::MAX, 0]),
    ] {
        assert_eq!(ending_under(table_keeper::TABLE, number, arguments), KILLED, "keeper: {name}");
    }
    let clone3 =
        table_worker::TABLE.iter().find(|row| row.number == libc::SYS_clone3).expect("clone3 has a row");
    assert_eq!(clone3.action, FilterAction::Fail(libc::ENOSYS as u16));
}

static FLAG: AtomicBool = AtomicBool::new(false);

/// The wait status of a child under `table` that is interrupted while it runs; 0 if it saw the interrupt and continued.
fn interrupted_under(table: &[FilterRow]) -> ExitStatus {
    let (ours, theirs) = socket::pair().expect("pair");
    match process::fork().expect("fork") {
        Fork::Child => {
            interrupt::install(&FLAG).expect("handler");
            privileges::drop_all().expect("drop privileges");
            seccomp::install(table).expect("filter");
            socket::send(&theirs, &[b"r"], &[], socket::Wait::Yes).expect("ready");
            while !FLAG.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            process::exit_now(0)
        }
        Fork::Parent(pid) => {
            let process = pidfd::PidFd::open(pid).expect("pidfd");
            socket::receive(&ours, &mut [0; 1], socket::Wait::Yes).expect("ready");
            process.signal(interrupt::SIGNAL).expect("interrupt");
            process::wait_for(pid).expect("wait")
        }
    }
}

fn interruption_needs_its_row() {
    let table = table_worker::TABLE;
    assert_eq!(interrupted_under(table), CONTINUED);
    let without: Vec<FilterRow> =
        table.iter().filter(|row| row.number != libc::SYS_rt_sigreturn).copied().collect();
    assert_eq!(interrupted_under(&without), KILLED);
}

fn jail_refuses_all_probes() {
    let service = namespaces::Ids { uid: 65534, gid: 65534 };
    let ending = selftest::in_child(|| {
        if let Err(error) = namespaces::enter(service, None) {
            skip("namespaces", &format!("this machine refuses namespaces: {error}"));
            return 0;
        }
        let inside = selftest::in_child(|| {
            let _ = namespaces::forbid_nested();
            root::replace_by_nothing().expect("an empty root");
            privileges::drop_all().expect("drop privileges");
            if landlock::restrict(&[]).expect("landlock").abi == 0 {
                skip("landlock", "no Landlock in this kernel");
            }
            match selftest::layers_refuse(selftest::BENEATH) {
                Ok(()) => {}
                Err(error) => {
                    println!("{error}");
                    return 1;
                }
            }
            i32::from(selftest::filter_kills(table_worker::TABLE, selftest::FILTERED).is_err())
        });
        i32::from(!matches!(inside, Ok(ExitStatus::Exited(0))))
    });
    assert_eq!(ending.expect("child"), ExitStatus::Exited(0));
}

fn landlock_allows_named_directories() {
    if landlock::abi() == 0 {
        skip("landlock", "no Landlock in this kernel");
        return;
    }
    let (granted, other) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
    std::fs::write(granted.path().join("in"), "x").expect("write");
    std::fs::write(other.path().join("out"), "x").expect("write");
    let ending = selftest::in_child(|| {
        privileges::drop_all().expect("drop privileges");
        let directory = std::fs::File::open(granted.path()).expect("open");
        let fd = std::os::fd::AsFd::as_fd(&directory);
        landlock::restrict(&[(fd, landlock::Access::Read)]).expect("restrict");
        let read = std::fs::read(granted.path().join("in")).is_ok();
        let write = std::fs::write(granted.path().join("new"), "x").is_err();
        let outside = std::fs::read(other.path().join("out")).is_err();
        i32::from(!(read && write && outside))
    });
    assert_eq!(ending.expect("child"), ExitStatus::Exited(0));
}

fn doctor_finds_layers() {
    let findings = vm_system_sandbox::doctor::examine(namespaces::Ids { uid: 65534, gid: 65534 }, None);
    for finding in &findings {
        if finding.works {
            continue;
        }
        assert!(!finding.detail.is_empty(), "{} has a detail", finding.name);
        skip(&format!("layer-{}", finding.name), &finding.detail);
    }
    let seccomp =
        findings.iter().find(|finding| finding.name == vm_system_sandbox::step::Layer::Seccomp.name());
    assert!(seccomp.is_some_and(|finding| finding.works && finding.required));
}
