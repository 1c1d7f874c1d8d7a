//! The refusals of the supervisor: calls that inspect or change other processes, enlarge what the kernel executes for us, or change the
//! machine. It does not need them, and neither do its children, which inherit the filter. All other calls are allowed: a supervisor
//! has threads, a database and a runtime, and its children build jails.
//!
//! A refused call fails with EPERM and does not kill: programs that commands of `exec` start try some of these calls, and the
//! stricter filter of a jailed process decides first about everything else.

use super::bpf::{Check, FilterAction, FilterRow, Number};

const fn refuse(number: Number, name: &'static str, reason: &'static str) -> FilterRow {
    FilterRow { number, name, when: &[], action: FilterAction::Fail(libc::EPERM as u16), reason }
}

/// The refused calls.
pub const TABLE: &[FilterRow] = &[
    refuse(libc::SYS_ptrace, "ptrace", "other processes of the service user"),
    refuse(libc::SYS_process_vm_readv, "process_vm_readv", "memory of other processes"),
    refuse(libc::SYS_process_vm_writev, "process_vm_writev", "memory of other processes"),
    refuse(libc::SYS_process_madvise, "process_madvise", "memory of other processes"),
    refuse(libc::SYS_pidfd_getfd, "pidfd_getfd", "descriptors of other processes"),
    refuse(libc::SYS_kcmp, "kcmp", "compares the kernel's objects of other processes"),
    FilterRow::allow(
        libc::SYS_setns,
        "setns",
        &[Check::IsInt(1, libc::CLONE_NEWUSER as u32)],
        "user namespaces that the spawn helper has made for this user; the kernel requires every right in it, which another \
         way in would not add to",
    ),
    refuse(libc::SYS_setns, "setns", "namespaces of other processes; jails are built with new ones"),
    refuse(libc::SYS_io_uring_setup, "io_uring_setup", "its calls pass by every filter"),
    refuse(libc::SYS_io_uring_enter, "io_uring_enter", "its calls pass by every filter"),
    refuse(libc::SYS_io_uring_register, "io_uring_register", "its calls pass by every filter"),
    refuse(libc::SYS_userfaultfd, "userfaultfd", "stops the kernel in the middle of a copy"),
    refuse(libc::SYS_bpf, "bpf", "programs in the kernel"),
    refuse(libc::SYS_perf_event_open, "perf_event_open", "a large interface with a history of defects"),
    refuse(libc::SYS_keyctl, "keyctl", "keys of the user, which outlive the process"),
    refuse(libc::SYS_add_key, "add_key", "keys of the user"),
    refuse(libc::SYS_request_key, "request_key", "keys of the user; starts a program of the host"),
    refuse(libc::SYS_kexec_load, "kexec_load", "another kernel"),
    refuse(libc::SYS_kexec_file_load, "kexec_file_load", "another kernel"),
    refuse(libc::SYS_init_module, "init_module", "modules of the kernel"),
    refuse(libc::SYS_finit_module, "finit_module", "modules of the kernel"),
    refuse(libc::SYS_delete_module, "delete_module", "modules of the kernel"),
    refuse(libc::SYS_reboot, "reboot", "the machine"),
    refuse(libc::SYS_swapon, "swapon", "the machine"),
    refuse(libc::SYS_swapoff, "swapoff", "the machine"),
    refuse(libc::SYS_acct, "acct", "the machine"),
    refuse(libc::SYS_syslog, "syslog", "the kernel's log has addresses"),
    refuse(libc::SYS_settimeofday, "settimeofday", "the machine's clock"),
    refuse(libc::SYS_clock_settime, "clock_settime", "the machine's clock"),
    refuse(libc::SYS_clock_adjtime, "clock_adjtime", "the machine's clock"),
    refuse(libc::SYS_adjtimex, "adjtimex", "the machine's clock"),
    refuse(libc::SYS_quotactl, "quotactl", "quotas of file systems"),
    refuse(libc::SYS_quotactl_fd, "quotactl_fd", "quotas of file systems"),
    refuse(libc::SYS_open_by_handle_at, "open_by_handle_at", "opens files without walking a path"),
    refuse(libc::SYS_fanotify_init, "fanotify_init", "file accesses of other processes"),
    refuse(libc::SYS_lookup_dcookie, "lookup_dcookie", "paths of other processes' files"),
    refuse(libc::SYS_move_pages, "move_pages", "memory of other processes"),
    refuse(libc::SYS_migrate_pages, "migrate_pages", "memory of other processes"),
    refuse(libc::SYS_fsopen, "fsopen", "file systems; jails are built with mount()"),
    refuse(libc::SYS_fsconfig, "fsconfig", "file systems"),
    refuse(libc::SYS_fsmount, "fsmount", "file systems"),
    refuse(libc::SYS_fspick, "fspick", "file systems"),
    refuse(libc::SYS_open_tree, "open_tree", "mounts; jails are built with mount()"),
    refuse(libc::SYS_move_mount, "move_mount", "mounts"),
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_iopl, "iopl", "ports of devices"),
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_ioperm, "ioperm", "ports of devices"),
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_modify_ldt, "modify_ldt", "16-bit segments"),
];
