//! The system calls that neither `std` nor `nix` offer safely. Every `unsafe` block of the crate is here or in
//! [`crate::socket`]'s `sys.rs`; nothing here decides anything.

use libc::{c_int, c_long, c_uint, c_ulong, c_void};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn check(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Which inherited descriptors have found their owner (bit = number).
static CLAIMED: AtomicU64 = AtomicU64::new(0);

/// Takes ownership of a descriptor that was inherited over an exec; each number below 64 only once.
pub(crate) fn claim_inherited(fd: RawFd) -> io::Result<OwnedFd> {
    let bit = u32::try_from(fd).ok().and_then(|shift| 1_u64.checked_shl(shift));
    let bit = bit.ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: F_GETFD and F_SETFD touch no memory.
    check(c_long::from(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }))?;
    if CLAIMED.fetch_or(bit, Ordering::SeqCst) & bit != 0 {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    // SAFETY: open (fcntl succeeded) and handed out once (the bit above).
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Owns a descriptor that a library call has just made (and returned as a number).
pub(crate) fn own(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: callers pass what a duplicating call returned; nobody else has seen the number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Lets a descriptor survive the next exec.
pub(crate) fn keep_over_exec(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: F_SETFD touches no memory.
    check(c_long::from(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) })).map(drop)
}

/// Makes `target`'s number refer to `source`'s open file.
pub(crate) fn replace_fd(target: &OwnedFd, source: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: touches no memory; `target` still owns its number afterwards.
    check(c_long::from(unsafe { libc::dup3(source.as_raw_fd(), target.as_raw_fd(), libc::O_CLOEXEC) }))
        .map(drop)
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: c_uint) -> io::Result<()> {
    // SAFETY: touches no memory; callers run before anything in the process owns descriptors in that range.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) }).map(drop)
}

/// `fork()`; `None` in the child. Callers are single-threaded.
pub(crate) fn fork() -> io::Result<Option<u32>> {
    // SAFETY: every caller is a single-threaded process, so that the child may go on with any code.
    let pid = check(c_long::from(unsafe { libc::fork() }))?;
    Ok((pid != 0).then_some(pid as u32))
}

/// Exactly `clone(CLONE_PARENT|SIGCHLD, 0)`: the child is our sibling. `None` in the child.
pub(crate) fn clone_sibling() -> io::Result<Option<u32>> {
    let flags = c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    // SAFETY: no CLONE_VM: the child has its own copy of all memory; callers are single-threaded. All four other
    // arguments are null, in whatever order the architecture takes them.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) })?;
    Ok((pid != 0).then_some(pid as u32))
}

/// Ends the process at once: no destructors, no `atexit`.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: touches no memory.
    unsafe { libc::_exit(code) }
}

/// `wait4`; `None` when `nohang` and nobody has ended. Gives the pid and the raw wait status.
pub(crate) fn wait(pid: i32, nohang: bool) -> io::Result<Option<(u32, i32)>> {
    let mut status: c_int = 0;
    let options = if nohang { libc::WNOHANG } else { 0 };
    // SAFETY: `status` lives over the call; the usage pointer may be null.
    let ended = check(unsafe {
        libc::syscall(libc::SYS_wait4, pid, &raw mut status, options, std::ptr::null_mut::<libc::rusage>())
    })?;
    Ok((ended != 0).then_some((ended as u32, status)))
}

/// `prctl` with plain integers.
pub(crate) fn prctl(option: c_int, arguments: [c_ulong; 4]) -> io::Result<c_int> {
    let [a, b, c, d] = arguments;
    // SAFETY: callers pass only options whose arguments are integers.
    check(c_long::from(unsafe { libc::prctl(option, a, b, c, d) })).map(|value| value as c_int)
}

/// `MOUNT_ATTR_RDONLY`: nothing of a mount can be changed, metadata of device nodes included; what is written to a
/// device goes to its driver and is not concerned.
pub(crate) const READ_ONLY: u64 = 1;
/// `MOUNT_ATTR_NODEV`: device nodes of a mount cannot be opened.
pub(crate) const NO_DEVICES: u64 = 4;

/// Takes set-user-id and what `more` names from a mount and all beneath it; what is taken already stays so.
pub(crate) fn mount_restrict(path: &std::path::Path, more: u64) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    const RECURSIVE: c_uint = 0x8000;
    const NOSUID: u64 = 2;
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        userns_fd: u64,
    }
    let path =
        std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let attribute = MountAttr { set: NOSUID | more, clear: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: path and attribute live over the call; the size is that of `mount_attr`.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            RECURSIVE,
            &raw const attribute,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Gives up every capability (version 3, two words each of effective, permitted, inheritable).
pub(crate) fn clear_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    let header = Header { version: 0x2008_0522, pid: 0 };
    let sets = [0_u32; 6];
    // SAFETY: both live over the call and have the layout of `cap_user_header_t` and two `cap_user_data_t`.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) }).map(drop)
}

/// Sets the supplementary groups of the calling thread alone: the C library's function changes all threads.
pub(crate) fn set_thread_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the kernel reads `groups.len()` ids of 32 bits from the slice, which lives over the call.
    check(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) }).map(drop)
}

/// Whether an open file or folder has a POSIX access control list: mode bits alone do not say then who may do what. An error
/// other than "there is none" is returned.
pub(crate) fn has_access_list(file: BorrowedFd<'_>) -> io::Result<bool> {
    // By its link in /proc: a path handle (O_PATH) refuses `fgetxattr`. The kernel follows the link to the open file itself.
    let path = std::ffi::CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let name = c"system.posix_acl_access";
    // SAFETY: both strings live over the call; with size 0 the kernel writes nothing and returns the size.
    let size = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) };
    match check(size as c_long) {
        Ok(_) => Ok(true),
        Err(error) if [Some(libc::ENODATA), Some(libc::EOPNOTSUPP)].contains(&error.raw_os_error()) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The kernel's Landlock ABI, 0 if there is none.
pub(crate) fn landlock_abi() -> u32 {
    let version_flag: c_uint = 1;
    // SAFETY: with this flag attribute and size must be null and 0; touches no memory.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<c_void>(), 0_usize, version_flag)
    };
    u32::try_from(abi).unwrap_or(0)
}

/// Creates a ruleset that handles the given access rights; words beyond the ABI's must be 0.
pub(crate) fn landlock_ruleset(fs: u64, net: u64, scoped: u64, words: usize) -> io::Result<OwnedFd> {
    let attribute = [fs, net, scoped];
    let size = words.min(attribute.len()) * size_of::<u64>();
    // SAFETY: `attribute` lives over the call and is at least `size` bytes long.
    let fd = check(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attribute.as_ptr(), size, 0) })?;
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Allows `access` beneath `directory`.
pub(crate) fn landlock_allow(
    ruleset: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    access: u64,
) -> io::Result<()> {
    #[repr(C, packed)]
    struct PathBeneath {
        allowed_access: u64,
        parent_fd: i32,
    }
    let rule = PathBeneath { allowed_access: access, parent_fd: directory.as_raw_fd() };
    let path_beneath: c_int = 1;
    // SAFETY: `rule` lives over the call and has the layout of `landlock_path_beneath_attr`.
    check(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), path_beneath, &raw const rule, 0)
    })
    .map(drop)
}

/// Puts the calling thread under the ruleset.
pub(crate) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: touches no memory.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// Installs a filter for the calling thread.
pub(crate) fn install_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    load_filter(program, 0).map(drop)
}

/// Installs a filter and returns the descriptor on which its notifications arrive. Without `WAIT_KILLABLE_RECV`: after
/// an adoption a signal must be able to re-issue a notification that the dead supervisor had taken.
pub(crate) fn install_filter_with_listener(program: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let fd = load_filter(program, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?;
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

fn load_filter(program: &[libc::sock_filter], flags: c_ulong) -> io::Result<c_long> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `len` instructions; slice and header live over the call.
    check(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    })
}

/// Takes the next notification, if one still waits.
pub(crate) fn notification(listener: BorrowedFd<'_>) -> io::Result<libc::seccomp_notif> {
    // SAFETY: all-zero is a valid `seccomp_notif`, and the kernel demands zeroes.
    let mut notification: libc::seccomp_notif = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: `notification` lives over the call and has the kernel's layout.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification) };
    check(c_long::from(result))?;
    Ok(notification)
}

/// Answers a notification: 0 lets the call go on as it is, else the errno that the caller sees.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, errno: c_int) -> io::Result<()> {
    const CONTINUE: u32 = 1;
    let flags = if errno == 0 { CONTINUE } else { 0 };
    let response = libc::seccomp_notif_resp { id, val: 0, error: -errno, flags };
    // SAFETY: `response` lives over the call and has the kernel's layout.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
    check(c_long::from(result)).map(drop)
}

/// Sets (`Some`) or reads (`None`) a resource limit of a process (0 = self); gives the previous (soft, hard).
pub(crate) fn prlimit(pid: u32, resource: c_uint, new: Option<(u64, u64)>) -> io::Result<(u64, u64)> {
    let new = new.map(|(soft, hard)| libc::rlimit64 { rlim_cur: soft, rlim_max: hard });
    let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let mut old = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `old` and the value behind `new` (null: leave as it is) live over the call.
    check(unsafe { libc::syscall(libc::SYS_prlimit64, pid, resource, new, &raw mut old) })?;
    Ok((old.rlim_cur, old.rlim_max))
}

/// Opens a pidfd for a process of our pid namespace.
pub(crate) fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: touches no memory.
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Sends a signal through a pidfd.
pub(crate) fn pidfd_send_signal(pidfd: BorrowedFd<'_>, signal: c_int) -> io::Result<()> {
    let info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed.
    check(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, info, 0) }).map(drop)
}

/// `struct pidfd_info` in its first published size (Linux 6.13).
#[repr(C)]
#[derive(Default)]
pub(crate) struct PidfdInfo {
    pub(crate) mask: u64,
    pub(crate) cgroup: u64,
    pub(crate) pid: u32,
    pub(crate) tgid: u32,
    pub(crate) ppid: u32,
    /// ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid.
    pub(crate) ids: [u32; 8],
    /// Raw wait status, once the parent has reaped (mask bit 3).
    pub(crate) exit_code: i32,
}

/// `ioctl(PIDFD_GET_INFO)` with the given mask.
pub(crate) fn pidfd_info(pidfd: BorrowedFd<'_>, mask: u64) -> io::Result<PidfdInfo> {
    // _IOWR(0xFF, 11, struct pidfd_info)
    const PIDFD_GET_INFO: u64 = (3 << 30) | ((size_of::<PidfdInfo>() as u64) << 16) | (0xFF << 8) | 0xB;
    let mut info = PidfdInfo { mask, ..PidfdInfo::default() };
    // SAFETY: the size in the request number is that of `info`, which lives over the call.
    check(c_long::from(unsafe {
        libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as libc::Ioctl, &raw mut info)
    }))?;
    Ok(info)
}

/// CPU time that all threads of a process have used.
pub(crate) fn cpu_time(pid: u32) -> io::Result<Duration> {
    // The kernel's MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
    let clock = ((!(pid as libc::clockid_t)) << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives over the call.
    check(c_long::from(unsafe { libc::clock_gettime(clock, &raw mut time) }))?;
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// What SIGUSR1 sets (see [`crate::interrupt`]).
static INTERRUPTED: OnceLock<&'static AtomicBool> = OnceLock::new();

extern "C" fn on_interrupt(_signal: c_int) {
    if let Some(flag) = INTERRUPTED.get() {
        flag.store(true, Ordering::Relaxed);
    }
}

/// Installs the handler of SIGUSR1, which sets `flag`; interrupted calls are restarted.
pub(crate) fn install_interrupt_handler(flag: &'static AtomicBool) -> io::Result<()> {
    let _ = INTERRUPTED.set(flag);
    // SAFETY: all-zero is a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = on_interrupt as extern "C" fn(c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler is async-signal-safe: an atomic load and a relaxed store.
    check(c_long::from(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) }))
        .map(drop)
}

/// Gives a signal its default action.
pub(crate) fn default_action(signal: c_int) -> io::Result<()> {
    // SAFETY: all-zero is a valid `sigaction`: SIG_DFL, no flags, empty mask.
    let action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: `action` lives over the call; no handler is installed.
    check(c_long::from(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })).map(drop)
}

/// Calls `tzset()`, which opens `/etc/localtime` once and for all.
pub(crate) fn tzset() {
    unsafe extern "C" {
        fn tzset();
    }
    // SAFETY: callers are single-threaded; it reads the environment and fills libc's own state.
    unsafe { tzset() }
}

/// What [`posix_spawn`] is to start.
pub(crate) struct SpawnPlan<'a> {
    pub(crate) program: &'a std::ffi::CStr,
    pub(crate) arguments: &'a [&'a std::ffi::CStr],
    pub(crate) environment: &'a [&'a std::ffi::CStr],
    /// Source descriptors, all above the highest target; they become 3, 4, 5, …
    pub(crate) descriptors: &'a [RawFd],
}

/// Starts a program in a session of its own, 0–2 on `/dev/null`, only the given descriptors, default signals.
pub(crate) fn posix_spawn(plan: &SpawnPlan<'_>) -> io::Result<u32> {
    let pointers = |texts: &[&std::ffi::CStr]| {
        let ends = std::iter::once(std::ptr::null_mut());
        texts.iter().map(|text| text.as_ptr().cast_mut()).chain(ends).collect::<Vec<_>>()
    };
    let (arguments, environment) = (pointers(plan.arguments), pointers(plan.environment));
    let mut pid = 0;
    let code = |result: c_int| if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) };
    let mut actions = MaybeUninit::uninit();
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: both objects are initialised before any other use and destroyed once on every path; all pointers live
    // over the calls; the arrays end with a null pointer; libc copies what it keeps.
    unsafe {
        code(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
        let actions = actions.as_mut_ptr();
        let prepared = (|| {
            for (fd, flags) in [(0, libc::O_RDONLY), (1, libc::O_WRONLY), (2, libc::O_WRONLY)] {
                code(libc::posix_spawn_file_actions_addopen(actions, fd, c"/dev/null".as_ptr(), flags, 0))?;
            }
            for (target, source) in (3..).zip(plan.descriptors) {
                code(libc::posix_spawn_file_actions_adddup2(actions, *source, target))?;
            }
            // Whatever a library of the caller left open without close-on-exec.
            #[cfg(target_env = "gnu")]
            code(libc::posix_spawn_file_actions_addclosefrom_np(
                actions,
                3 + plan.descriptors.len() as c_int,
            ))?;
            code(libc::posix_spawnattr_init(attributes.as_mut_ptr()))
        })();
        let result = prepared.and_then(|()| {
            let attributes = attributes.as_mut_ptr();
            let mut signals = MaybeUninit::uninit();
            libc::sigemptyset(signals.as_mut_ptr());
            let flags = libc::POSIX_SPAWN_SETSID
                | (libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF) as libc::c_short;
            let spawned = code(libc::posix_spawnattr_setflags(attributes, flags))
                .and_then(|()| code(libc::posix_spawnattr_setsigmask(attributes, signals.as_ptr())))
                .and_then(|()| {
                    libc::sigfillset(signals.as_mut_ptr());
                    code(libc::posix_spawnattr_setsigdefault(attributes, signals.as_ptr()))
                })
                .and_then(|()| {
                    code(libc::posix_spawn(
                        &raw mut pid,
                        plan.program.as_ptr(),
                        actions,
                        attributes,
                        arguments.as_ptr(),
                        environment.as_ptr(),
                    ))
                });
            libc::posix_spawnattr_destroy(attributes);
            spawned
        });
        libc::posix_spawn_file_actions_destroy(actions);
        result?;
    }
    Ok(pid as u32)
}

/// A system call by number with plain integers: for probes that must be refused (see [`crate::selftest`]), and for what the C
/// library does to all threads at once.
pub(crate) fn raw(number: c_long, arguments: [usize; 6]) -> io::Result<c_long> {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: callers pass no pointers into our memory except null or constants that are only read.
    check(unsafe { libc::syscall(number, first, second, third, fourth, fifth, sixth) })
}
