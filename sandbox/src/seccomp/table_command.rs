//! Refusals for commands of the operator. Commands are ordinary programs, so this is a deny list: calls that no command needs, and
//! calls that are used to attack the kernel. The other walls (namespaces, a separate root directory, no capabilities, limits) do
//! not rely on it.

use super::bpf::{Check, FilterAction, FilterRow};

const fn refuse(number: libc::c_long, name: &'static str, reason: &'static str) -> FilterRow {
    FilterRow { number, name, when: &[], action: FilterAction::Fail(libc::EPERM as u16), reason }
}

const fn without(flag: i32, reason: &'static str, when: &'static [Check]) -> FilterRow {
    assert!(flag != 0);
    FilterRow {
        number: libc::SYS_clone,
        name: "clone",
        when,
        action: FilterAction::Fail(libc::EPERM as u16),
        reason,
    }
}

macro_rules! namespace {
    ($flag:ident, $reason:literal) => {
        without(libc::$flag, $reason, &[Check::Masked(0, libc::$flag as u32, libc::$flag as u32)])
    };
}

const fn absent(number: libc::c_long, name: &'static str, reason: &'static str) -> FilterRow {
    FilterRow { number, name, when: &[], action: FilterAction::Fail(libc::ENOSYS as u16), reason }
}

const SET_USER_ID: u32 = libc::S_ISUID;
const SET_GROUP_ID: u32 = libc::S_ISGID;
/// The bit of `O_TMPFILE` that distinguishes it from `O_DIRECTORY`.
const UNNAMED: u32 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;

/// A call whose argument `$mode` has a set-user-id or set-group-id bit.
macro_rules! lending {
    ($number:ident, $name:literal, $mode:literal, $bit:ident) => {
        FilterRow {
            number: libc::$number,
            name: $name,
            when: &[Check::Masked($mode, $bit, $bit)],
            action: FilterAction::Fail(libc::EPERM as u16),
            reason: "no program that runs with the rights of the worktree's owner for any user who starts it",
        }
    };
    ($number:ident, $name:literal, $flags:literal, $how:expr, $mode:literal, $bit:ident) => {
        FilterRow {
            number: libc::$number,
            name: $name,
            when: &[Check::Masked($flags, $how, $how), Check::Masked($mode, $bit, $bit)],
            action: FilterAction::Fail(libc::EPERM as u16),
            reason: "as chmod, for new files; the mode has no meaning for existing ones",
        }
    };
}

/// The rows.
pub const TABLE: &[FilterRow] = &[
    FilterRow {
        number: libc::SYS_clone3,
        name: "clone3",
        when: &[],
        action: FilterAction::Fail(libc::ENOSYS as u16),
        reason: "its flags cannot be filtered; libcs fall back to clone",
    },
    namespace!(CLONE_NEWUSER, "new user namespaces open the kernel's least tested parts"),
    namespace!(CLONE_NEWNS, "no new mount namespace"),
    namespace!(CLONE_NEWNET, "no new network namespace"),
    namespace!(CLONE_NEWPID, "no new pid namespace"),
    #[cfg(target_arch = "x86_64")]
    lending!(SYS_chmod, "chmod", 1, SET_USER_ID),
    #[cfg(target_arch = "x86_64")]
    lending!(SYS_chmod, "chmod", 1, SET_GROUP_ID),
    lending!(SYS_fchmod, "fchmod", 1, SET_USER_ID),
    lending!(SYS_fchmod, "fchmod", 1, SET_GROUP_ID),
    lending!(SYS_fchmodat, "fchmodat", 2, SET_USER_ID),
    lending!(SYS_fchmodat, "fchmodat", 2, SET_GROUP_ID),
    lending!(SYS_fchmodat2, "fchmodat2", 2, SET_USER_ID),
    lending!(SYS_fchmodat2, "fchmodat2", 2, SET_GROUP_ID),
    #[cfg(target_arch = "x86_64")]
    lending!(SYS_creat, "creat", 1, SET_USER_ID),
    #[cfg(target_arch = "x86_64")]
    lending!(SYS_creat, "creat", 1, SET_GROUP_ID),
    #[cfg(target_arch = "x86_64")]
    lending!(SYS_mknod, "mknod", 1, SET_USER_ID),
    #[cfg(target_arch = "x86_64")]
    lending!(SYS_mknod, "mknod", 1, SET_GROUP_ID),
    lending!(SYS_mknodat, "mknodat", 2, SET_USER_ID),
    lending!(SYS_mknodat, "mknodat", 2, SET_GROUP_ID),
    #[cfg(target_arch = "x86_64")]
    lending!(SYS_open, "open", 1, libc::O_CREAT as u32, 2, SET_USER_ID),
    #[cfg(target_arch = "x86_64")]
    lending!(SYS_open, "open", 1, libc::O_CREAT as u32, 2, SET_GROUP_ID),
    #[cfg(target_arch = "x86_64")]
    lending!(SYS_open, "open", 1, UNNAMED, 2, SET_USER_ID),
    #[cfg(target_arch = "x86_64")]
    lending!(SYS_open, "open", 1, UNNAMED, 2, SET_GROUP_ID),
    lending!(SYS_openat, "openat", 2, libc::O_CREAT as u32, 3, SET_USER_ID),
    lending!(SYS_openat, "openat", 2, libc::O_CREAT as u32, 3, SET_GROUP_ID),
    lending!(SYS_openat, "openat", 2, UNNAMED, 3, SET_USER_ID),
    lending!(SYS_openat, "openat", 2, UNNAMED, 3, SET_GROUP_ID),
    absent(libc::SYS_openat2, "openat2", "its mode cannot be filtered; programs fall back to openat"),
    absent(libc::SYS_memfd_create, "memfd_create", "memory that no limit of a process counts"),
    absent(libc::SYS_shmget, "shmget", "memory that no limit of a process counts"),
    absent(libc::SYS_semget, "semget", "kernel memory that no limit of a process counts"),
    absent(libc::SYS_msgget, "msgget", "kernel memory that no limit of a process counts"),
    refuse(libc::SYS_unshare, "unshare", "no new namespaces"),
    refuse(libc::SYS_setns, "setns", "no other namespaces"),
    refuse(libc::SYS_socket, "socket", "no network, and no socket files of the worktree"),
    refuse(libc::SYS_ptrace, "ptrace", "no debugging"),
    refuse(libc::SYS_process_vm_readv, "process_vm_readv", "no debugging"),
    refuse(libc::SYS_process_vm_writev, "process_vm_writev", "no debugging"),
    refuse(libc::SYS_pidfd_getfd, "pidfd_getfd", "no descriptors of others"),
    refuse(libc::SYS_mount, "mount", "the view is final"),
    refuse(libc::SYS_umount2, "umount2", "the view is final"),
    refuse(libc::SYS_pivot_root, "pivot_root", "the view is final"),
    refuse(libc::SYS_chroot, "chroot", "the view is final"),
    refuse(libc::SYS_fsopen, "fsopen", "the view is final"),
    refuse(libc::SYS_fsmount, "fsmount", "the view is final"),
    refuse(libc::SYS_move_mount, "move_mount", "the view is final"),
    refuse(libc::SYS_open_tree, "open_tree", "the view is final"),
    refuse(libc::SYS_mount_setattr, "mount_setattr", "the view is final"),
    refuse(libc::SYS_open_by_handle_at, "open_by_handle_at", "files only by name"),
    refuse(libc::SYS_name_to_handle_at, "name_to_handle_at", "files only by name"),
    refuse(libc::SYS_bpf, "bpf", "kernel attack surface"),
    refuse(libc::SYS_perf_event_open, "perf_event_open", "kernel attack surface"),
    refuse(libc::SYS_userfaultfd, "userfaultfd", "kernel attack surface"),
    refuse(libc::SYS_io_uring_setup, "io_uring_setup", "kernel attack surface"),
    refuse(libc::SYS_io_uring_enter, "io_uring_enter", "kernel attack surface"),
    refuse(libc::SYS_io_uring_register, "io_uring_register", "kernel attack surface"),
    refuse(libc::SYS_keyctl, "keyctl", "keyrings are not namespaced"),
    refuse(libc::SYS_add_key, "add_key", "keyrings are not namespaced"),
    refuse(libc::SYS_request_key, "request_key", "keyrings are not namespaced"),
    refuse(libc::SYS_kexec_load, "kexec_load", "administration"),
    refuse(libc::SYS_init_module, "init_module", "administration"),
    refuse(libc::SYS_finit_module, "finit_module", "administration"),
    refuse(libc::SYS_delete_module, "delete_module", "administration"),
    refuse(libc::SYS_reboot, "reboot", "administration"),
    refuse(libc::SYS_swapon, "swapon", "administration"),
    refuse(libc::SYS_swapoff, "swapoff", "administration"),
    refuse(libc::SYS_syslog, "syslog", "the kernel's log"),
    refuse(libc::SYS_acct, "acct", "administration"),
    refuse(libc::SYS_quotactl, "quotactl", "administration"),
    refuse(libc::SYS_personality, "personality", "weakens address randomisation"),
];
