//! The system calls that neither `std` nor `nix` offer safely. Every `unsafe` block of the crate is here or in the `sys.rs` of
//! [`crate::process`] and [`crate::socket`]; nothing here decides anything.

use libc::{c_int, c_long, c_uint, c_ulong, c_void};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) fn check(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Takes ownership of a descriptor that a system call returned.
///
/// # Safety
/// `fd` is open, and nothing else owns it.
pub(crate) unsafe fn own(fd: c_long) -> OwnedFd {
    // SAFETY: the caller's promise.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

/// A system call with integer arguments only: none is the address of memory that can be written or that is freed before the
/// process exits. Only the constructors below create one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    number: c_long,
    arguments: [usize; 6],
}

impl Call {
    pub(crate) const GETPID: Self = Self::new(libc::SYS_getpid, [0; 6]);
    /// Without a path and a folder.
    pub(crate) const OPENAT: Self = Self::new(libc::SYS_openat, [usize::MAX, 0, 0, 0, 0, 0]);
    pub(crate) const SOCKET: Self =
        Self::new(libc::SYS_socket, [libc::AF_UNIX as usize, libc::SOCK_STREAM as usize, 0, 0, 0, 0]);
    /// Without a program.
    pub(crate) const EXECVE: Self = Self::new(libc::SYS_execve, [0; 6]);
    /// A fresh page, at an address that the kernel chooses.
    pub(crate) const EXECUTABLE_PAGE: Self = {
        let (protection, kind) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        Self::new(libc::SYS_mmap, [0, 4096, protection as usize, kind as usize, usize::MAX, 0])
    };
    pub(crate) const NEW_USER_NAMESPACE: Self =
        Self::new(libc::SYS_unshare, [libc::CLONE_NEWUSER as usize, 0, 0, 0, 0, 0]);
    /// By number, like all calls below: the C library's functions change all threads at once.
    pub(crate) const BECOME_UID_1: Self = Self::new(libc::SYS_setuid, [1, 0, 0, 0, 0, 0]);
    pub(crate) const CLEAR_AMBIENT: Self =
        Self::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as usize);
    pub(crate) const NO_NEW_PRIVILEGES: Self = Self::prctl(libc::PR_SET_NO_NEW_PRIVS, 1);
    pub(crate) const NOT_DUMPABLE: Self = Self::prctl(libc::PR_SET_DUMPABLE, 0);
    /// `PR_MDWE_REFUSE_EXEC_GAIN`.
    pub(crate) const REFUSE_EXEC_GAIN: Self = Self::prctl(libc::PR_SET_MDWE, 1);

    const fn new(number: c_long, arguments: [usize; 6]) -> Self {
        Self { number, arguments }
    }

    const fn prctl(option: c_int, argument: usize) -> Self {
        Self::new(libc::SYS_prctl, [option as usize, argument, 0, 0, 0, 0])
    }

    /// Removes a capability from the bounding set.
    pub(crate) const fn drop_capability(number: usize) -> Self {
        Self::prctl(libc::PR_CAPBSET_DROP, number)
    }

    pub(crate) const fn set_securebits(bits: usize) -> Self {
        Self::prctl(libc::PR_SET_SECUREBITS, bits)
    }

    pub(crate) fn make(self) -> io::Result<c_long> {
        let [first, second, third, fourth, fifth, sixth] = self.arguments;
        // SAFETY: integers alone, by the list above; none of the calls touches memory that is in use.
        check(unsafe { libc::syscall(self.number, first, second, third, fourth, fifth, sixth) })
    }
}

/// Sets the host name of this UTS namespace.
pub(crate) fn set_host_name(name: &[u8]) -> io::Result<c_long> {
    // SAFETY: the name outlives the call, with its true length.
    check(unsafe { libc::syscall(libc::SYS_sethostname, name.as_ptr(), name.len()) })
}

/// `MOUNT_ATTR_RDONLY`: nothing of a mount can be changed, metadata of device nodes included; a write to a device goes to its
/// driver and is still allowed.
pub(crate) const READ_ONLY: u64 = 1;
/// `MOUNT_ATTR_NODEV`: device nodes of a mount cannot be opened.
pub(crate) const NO_DEVICES: u64 = 4;

/// Disables set-user-id and the rights of the attributes `more` on a mount and all mounts beneath it; attributes that are already
/// set stay.
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
    // SAFETY: path and attribute outlive the call; the size is that of `mount_attr`.
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

/// Keeps these capabilities (bit = number) effective and permitted, and no other one; inheritable is none.
pub(crate) fn keep_capabilities(kept: u64) -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    let header = Header { version: 0x2008_0522, pid: 0 };
    // Two words each of effective, permitted, inheritable; the low words first.
    let (low, high) = (kept as u32, (kept >> 32) as u32);
    let sets = [low, low, 0, high, high, 0];
    // SAFETY: both outlive the call and have the layout of `cap_user_header_t` (version 3) and two `cap_user_data_t`.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) }).map(drop)
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
    // SAFETY: `attribute` outlives the call and is at least `size` bytes long.
    let fd = check(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attribute.as_ptr(), size, 0) })?;
    // SAFETY: the call has just created the descriptor.
    Ok(unsafe { own(fd) })
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
    // SAFETY: `rule` outlives the call and has the layout of `landlock_path_beneath_attr`.
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

/// Installs a filter for all threads of the process, with this thread's `no_new_privs`. ESRCH if a thread has a filter of its own.
pub(crate) fn install_filter_everywhere(program: &[libc::sock_filter]) -> io::Result<()> {
    const TSYNC_ESRCH: c_ulong = 1 << 4;
    load_filter(program, libc::SECCOMP_FILTER_FLAG_TSYNC | TSYNC_ESRCH).map(drop)
}

/// Installs a filter and returns the descriptor on which its notifications arrive. Without `WAIT_KILLABLE_RECV`: after
/// an adoption a signal must be able to re-issue a notification that the exited supervisor had received.
pub(crate) fn install_filter_with_listener(program: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let fd = load_filter(program, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?;
    // SAFETY: the call has just created the descriptor.
    Ok(unsafe { own(fd) })
}

fn load_filter(program: &[libc::sock_filter], flags: c_ulong) -> io::Result<c_long> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `len` instructions; slice and header outlive the call.
    check(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    })
}

/// Receives the next notification, if one is still pending.
pub(crate) fn notification(listener: BorrowedFd<'_>) -> io::Result<libc::seccomp_notif> {
    // SAFETY: all-zero is a valid `seccomp_notif`, and the kernel demands zeroes.
    let mut notification: libc::seccomp_notif = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: `notification` outlives the call and has the kernel's layout.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification) };
    check(c_long::from(result))?;
    Ok(notification)
}

/// Responds to a notification: 0 lets the call continue unchanged; any other value is the errno that the caller gets.
pub(crate) fn respond(listener: BorrowedFd<'_>, id: u64, errno: c_int) -> io::Result<()> {
    const CONTINUE: u32 = 1;
    let flags = if errno == 0 { CONTINUE } else { 0 };
    let response = libc::seccomp_notif_resp { id, val: 0, error: -errno, flags };
    // SAFETY: `response` outlives the call and has the kernel's layout.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
    check(c_long::from(result)).map(drop)
}

/// Sets (`Some`) or reads (`None`) a resource limit of a process (0 = self); returns the previous (soft, hard).
pub(crate) fn prlimit(pid: u32, resource: c_uint, new: Option<(u64, u64)>) -> io::Result<(u64, u64)> {
    let new = new.map(|(soft, hard)| libc::rlimit64 { rlim_cur: soft, rlim_max: hard });
    let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let mut old = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `old` and the value behind `new` (null: leave as it is) outlive the call.
    check(unsafe { libc::syscall(libc::SYS_prlimit64, pid, resource, new, &raw mut old) })?;
    Ok((old.rlim_cur, old.rlim_max))
}

/// Opens a pidfd for a process of our pid namespace.
pub(crate) fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: touches no memory.
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the call has just created the descriptor.
    Ok(unsafe { own(fd) })
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
    // SAFETY: the size in the request number is that of `info`, which outlives the call.
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
    // SAFETY: `time` outlives the call.
    check(c_long::from(unsafe { libc::clock_gettime(clock, &raw mut time) }))?;
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// The flag that SIGUSR1 sets (see [`crate::interrupt`]).
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
    check(c_long::from(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) }))?;
    action.sa_sigaction = on_reissue as extern "C" fn(c_int) as usize;
    // SAFETY: the handler does nothing.
    check(c_long::from(unsafe { libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()) }))
        .map(drop)
}

/// A handler, unlike the ignored signal, makes a system call begin again.
extern "C" fn on_reissue(_: c_int) {}

/// The file handle of an open file: its type (4 bytes), then the handle. Fails where the file system has none.
pub(crate) fn file_handle(file: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    #[repr(C)]
    struct FileHandle {
        header: libc::file_handle,
        bytes: [u8; libc::MAX_HANDLE_SZ as usize],
    }
    let header =
        libc::file_handle { handle_bytes: libc::MAX_HANDLE_SZ as c_uint, handle_type: 0, f_handle: [] };
    let mut handle = FileHandle { header, bytes: [0; libc::MAX_HANDLE_SZ as usize] };
    let mut mount: c_int = 0;
    // SAFETY: the path is a text with its end; the kernel writes at most `handle_bytes` bytes behind the header, which are there.
    check(c_long::from(unsafe {
        libc::name_to_handle_at(
            file.as_raw_fd(),
            c"".as_ptr(),
            (&raw mut handle).cast(),
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    }))?;
    let kind = handle.header.handle_type.to_ne_bytes();
    let bytes = handle.bytes.get(..handle.header.handle_bytes as usize).ok_or(io::ErrorKind::InvalidData)?;
    Ok([&kind, bytes].concat())
}

/// `mallopt(M_ARENA_MAX)`.
pub(crate) fn limit_arenas(most: c_int) {
    // SAFETY: takes the heap's own lock and changes a number.
    #[cfg(target_env = "gnu")]
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, most) };
    #[cfg(not(target_env = "gnu"))]
    let _ = most;
}

/// `malloc_trim(0)`.
pub(crate) fn trim_heap() {
    // SAFETY: takes the heap's own locks and touches unused memory only.
    #[cfg(target_env = "gnu")]
    let _ = unsafe { libc::malloc_trim(0) };
}

/// The size of a page (bytes).
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: touches no memory.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4_096)
}

/// Whether a file has the extended attribute with the value "1".
pub(crate) fn has_attribute(path: &std::path::Path, name: &std::ffi::CStr) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()) else { return false };
    let mut value = [0_u8; 1];
    // SAFETY: both texts end with a zero byte; the kernel writes at most one byte to `value`.
    let read =
        unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    read == 1 && value == *b"1"
}
