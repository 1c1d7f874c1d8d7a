//! Files, mounts and what they show of other processes.

use super::ProbeArgument::{Bytes, Number, Text, Zeros};
use super::{EscapeAttempt, Evidence, Inside, Outside, acts, attempt, judged, refused, run};

const CWD: super::ProbeArgument = Number(libc::AT_FDCWD as u64);
const NOTHING: super::ProbeArgument = Number(0);

const SPAWN: &str = "tests/tests/spawn/cases.rs";

pub(super) const ROWS: &[EscapeAttempt] = &[
    attempt(
        5,
        "opens files",
        &[
            #[cfg(target_arch = "x86_64")]
            refused("open", libc::SYS_open, &[Text(c"/etc/passwd"), NOTHING]),
            refused("openat", libc::SYS_openat, &[CWD, Text(c"/etc/passwd"), NOTHING]),
            refused("openat2", libc::SYS_openat2, &[CWD, Text(c"/etc/passwd"), Zeros, Number(24)]),
            #[cfg(target_arch = "x86_64")]
            refused("creat", libc::SYS_creat, &[Text(c"/dev/null"), Number(0o600)]),
            refused("the root", libc::SYS_openat, &[CWD, Text(c"/"), Number(libc::O_DIRECTORY as u64)]),
            refused("a path with ..", libc::SYS_openat, &[CWD, Text(c"../../../../etc/passwd"), NOTHING]),
        ],
        &[Evidence::Test(SPAWN, "worker_starts_behind_all_walls")],
    ),
    attempt(
        6,
        "opens files beneath descriptors",
        &[
            judged("beneath the channel", libc::SYS_openat, &[Number(3), Text(c".."), NOTHING]),
            judged("beneath standard input", libc::SYS_openat, &[NOTHING, Text(c".."), NOTHING]),
            refused(
                "a file without a name",
                libc::SYS_openat,
                &[CWD, Text(c"/tmp"), Number((libc::O_TMPFILE | libc::O_RDWR) as u64), Number(0o600)],
            ),
            refused("another folder", libc::SYS_chdir, &[Text(c"/")]),
            refused("the name of its folder", libc::SYS_getcwd, &[Zeros, Number(4_096)]),
        ],
        &[],
    ),
    attempt(
        7,
        "opens files by handle, or watches them",
        &[
            judged("open_by_handle_at", libc::SYS_open_by_handle_at, &[CWD, Zeros, NOTHING]),
            judged(
                "name_to_handle_at",
                libc::SYS_name_to_handle_at,
                &[CWD, Text(c"/"), Zeros, Zeros, NOTHING],
            ),
            judged("fanotify_init", libc::SYS_fanotify_init, &[NOTHING, NOTHING]),
            refused("inotify_init1", libc::SYS_inotify_init1, &[NOTHING]),
        ],
        &[],
    ),
    attempt(
        8,
        "reads /proc",
        &[
            refused("its memory map", libc::SYS_openat, &[CWD, Text(c"/proc/self/maps"), NOTHING]),
            judged("its memory", libc::SYS_openat, &[CWD, Text(c"/proc/self/mem"), Number(2)]),
            refused(
                "its environment",
                libc::SYS_statx,
                &[CWD, Text(c"/proc/self/environ"), NOTHING, Number(0x7ff), Zeros],
            ),
            refused("its root", libc::SYS_readlinkat, &[CWD, Text(c"/proc/self/root"), Zeros, Number(4_096)]),
            refused(
                "its folder",
                libc::SYS_readlinkat,
                &[CWD, Text(c"/proc/self/cwd"), Zeros, Number(4_096)],
            ),
            judged("the root of pid 1", libc::SYS_openat, &[CWD, Text(c"/proc/1/root"), NOTHING]),
            refused(
                "the kernel's settings",
                libc::SYS_openat,
                &[CWD, Text(c"/proc/sys/kernel/ostype"), NOTHING],
            ),
            refused("the mounts", libc::SYS_openat, &[CWD, Text(c"/proc/self/mounts"), NOTHING]),
        ],
        &[Evidence::Test(SPAWN, "worker_starts_behind_all_walls")],
    ),
    attempt(
        9,
        "mounts",
        &[
            refused(
                "a file system in memory",
                libc::SYS_mount,
                &[Text(c"none"), Text(c"/tmp"), Text(c"tmpfs"), NOTHING, NOTHING],
            ),
            judged(
                "/proc",
                libc::SYS_mount,
                &[Text(c"proc"), Text(c"/proc"), Text(c"proc"), NOTHING, NOTHING],
            ),
            refused("fsopen", libc::SYS_fsopen, &[Text(c"tmpfs"), NOTHING]),
            judged("fsmount", libc::SYS_fsmount, &[Number(3), NOTHING, NOTHING]),
            judged("move_mount", libc::SYS_move_mount, &[CWD, Text(c"/"), CWD, Text(c"/tmp"), NOTHING]),
            refused("open_tree", libc::SYS_open_tree, &[CWD, Text(c"/"), NOTHING]),
            judged("mount_setattr", libc::SYS_mount_setattr, &[CWD, Text(c"/"), NOTHING, Zeros, Number(32)]),
        ],
        &[],
    ),
    attempt(
        10,
        "changes the root directory",
        &[
            judged("pivot_root", libc::SYS_pivot_root, &[Text(c"."), Text(c".")]),
            refused("chroot", libc::SYS_chroot, &[Text(c"/")]),
            judged("umount2", libc::SYS_umount2, &[Text(c"/"), Number(libc::MNT_DETACH as u64)]),
        ],
        &[],
    ),
    attempt(
        41,
        "writes to disks",
        &[
            refused("write", libc::SYS_write, &[Number(4), Bytes(b"x"), Number(1)]),
            judged("pwrite64", libc::SYS_pwrite64, &[Number(4), Bytes(b"x"), Number(1), NOTHING]),
            judged("fallocate", libc::SYS_fallocate, &[NOTHING, NOTHING, NOTHING, Number(4_096)]),
            judged("ftruncate", libc::SYS_ftruncate, &[NOTHING, NOTHING]),
            judged("truncate", libc::SYS_truncate, &[Text(c"/nothing"), NOTHING]),
            judged("mkdirat", libc::SYS_mkdirat, &[CWD, Text(c"/"), Number(0o700)]),
            judged("unlinkat", libc::SYS_unlinkat, &[CWD, Text(c"/nothing"), NOTHING]),
            judged("mknodat", libc::SYS_mknodat, &[CWD, Text(c"/"), Number(0o600), NOTHING]),
            judged(
                "renameat2",
                libc::SYS_renameat2,
                &[CWD, Text(c"/nothing"), CWD, Text(c"/nothing"), NOTHING],
            ),
            judged(
                "copy_file_range",
                libc::SYS_copy_file_range,
                &[NOTHING, NOTHING, Number(3), NOTHING, Number(1)],
            ),
        ],
        &[],
    ),
    attempt(
        42,
        "replaces a path while the supervisor walks it",
        &[
            judged("symlinkat", libc::SYS_symlinkat, &[Text(c"/etc"), CWD, Text(c"/")]),
            judged("linkat", libc::SYS_linkat, &[CWD, Text(c"/nothing"), CWD, Text(c"/nothing"), NOTHING]),
        ],
        &[Evidence::Test("tests/tests/system/bad_requests.rs", "paths_never_leave_the_worktree")],
    ),
    attempt(
        47,
        "exhausts random numbers",
        &[
            run(
                "16 MiB by getrandom",
                acts::drain_random_numbers,
                Inside::Reports(super::SUCCEEDED),
                Outside::Succeeds,
            ),
            refused("/dev/urandom", libc::SYS_openat, &[CWD, Text(c"/dev/urandom"), NOTHING]),
        ],
        &[],
    ),
];
