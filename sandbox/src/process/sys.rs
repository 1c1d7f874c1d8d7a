//! Descriptors over an exec, forks, and the end of processes. Must not decide anything.

use crate::sys::{check, own};
use libc::{c_int, c_long, c_uint};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Numbers of the descriptors that a program can be started with, besides the standard three.
pub(crate) const INHERITABLE: std::ops::Range<c_int> = 3..64;

/// Descriptors that this process was started with and that were not taken yet (bit = number).
static INHERITED: AtomicU64 = AtomicU64::new(0);

/// Notes the descriptors that this program was started with, and closes those with larger numbers than anything is passed by.
/// Runs before `main`: no code of ours has opened anything yet, so every open descriptor was inherited, and no value owns it.
extern "C" fn note_inherited() {
    // SAFETY: F_GETFD touches no memory.
    let is_open = |fd: &c_int| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
    // SAFETY: touches no memory, and nothing owns a descriptor yet.
    unsafe { libc::syscall(libc::SYS_close_range, INHERITABLE.end, c_uint::MAX, 0) };
    INHERITED.store(INHERITABLE.filter(is_open).fold(0, |bits, fd| bits | 1 << fd), Ordering::SeqCst);
}

#[used]
// SAFETY: an entry of this section is a function that the C library calls once before `main`, with its own state in place.
#[unsafe(link_section = ".init_array")]
static NOTE_INHERITED: extern "C" fn() = note_inherited;

/// Takes ownership of a descriptor that this process was started with, each once.
pub(crate) fn take_inherited(fd: RawFd) -> io::Result<OwnedFd> {
    let bit = u32::try_from(fd).ok().and_then(|shift| 1_u64.checked_shl(shift)).unwrap_or(0);
    if INHERITED.fetch_and(!bit, Ordering::SeqCst) & bit == 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    // SAFETY: open since before `main`, and handed out once (the bit above), so that only its owner can close it.
    let fd = unsafe { own(c_long::from(fd)) };
    set_close_on_exec(&fd, true)?;
    Ok(fd)
}

/// Closes every descriptor that this process was started with and that was not taken.
pub(crate) fn close_inherited() {
    close_inherited_except(&[]);
}

/// As [`close_inherited`], but for these numbers.
pub(crate) fn close_inherited_except(kept: &[RawFd]) {
    for fd in INHERITABLE.filter(|fd| !kept.contains(fd)) {
        drop(take_inherited(fd));
    }
}

/// Another number, not below `at_least`, for the same open file; close-on-exec.
pub(crate) fn duplicate(fd: BorrowedFd<'_>, at_least: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC touches no memory.
    let copy = check(c_long::from(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, at_least) }))?;
    // SAFETY: the call has just created the descriptor.
    Ok(unsafe { own(copy) })
}

/// Sets whether a descriptor is closed by the next exec.
pub(crate) fn set_close_on_exec(fd: &OwnedFd, ends: bool) -> io::Result<()> {
    let flags = if ends { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: F_SETFD touches no memory.
    check(c_long::from(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, flags) })).map(drop)
}

/// Makes `target`'s number refer to `source`'s open file.
pub(crate) fn replace_fd(target: &OwnedFd, source: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: touches no memory; `target` still owns its number afterwards.
    check(c_long::from(unsafe { libc::dup3(source.as_raw_fd(), target.as_raw_fd(), libc::O_CLOEXEC) }))
        .map(drop)
}

/// An error unless this process certainly has one thread. A child has only the thread that forked: a lock that another thread
/// held is never released there, and the data behind it may be half changed.
fn require_single_thread() -> io::Result<()> {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            /// glibc's: nonzero until the first thread is started, and again only when glibc is certain that one is left.
            static __libc_single_threaded: AtomicU8;
        }
        // SAFETY: a static byte, written only while there is one thread.
        if unsafe { __libc_single_threaded.load(Ordering::Relaxed) } != 0 {
            return Ok(());
        }
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }
    // This flag changes nothing, and the kernel refuses it to a process with several threads.
    #[cfg(not(target_env = "gnu"))]
    Ok(nix::sched::unshare(nix::sched::CloneFlags::CLONE_THREAD)?)
}

/// `fork()`; `None` in the child. EBUSY in a process that has started threads.
pub(crate) fn fork() -> io::Result<Option<u32>> {
    require_single_thread()?;
    // SAFETY: there is no other thread, so that the child may run any code.
    let pid = check(c_long::from(unsafe { libc::fork() }))?;
    Ok((pid != 0).then_some(pid as u32))
}

/// Exactly `clone(flags, 0)`, in the order of the arguments that every architecture has for zeroes.
fn clone(flags: c_int) -> io::Result<Option<u32>> {
    require_single_thread()?;
    // SAFETY: there is no other thread, and no flag of the two callers shares memory: the child has its own copy.
    let pid = check(unsafe {
        libc::syscall(libc::SYS_clone, c_long::from(flags), 0_usize, 0_usize, 0_usize, 0_usize)
    })?;
    Ok((pid != 0).then_some(pid as u32))
}

/// Exactly `clone(CLONE_PARENT|SIGCHLD, 0)`: the child is our sibling. `None` in the child.
pub(crate) fn clone_sibling() -> io::Result<Option<u32>> {
    clone(libc::CLONE_PARENT | libc::SIGCHLD)
}

/// Exactly `clone(SIGCHLD, 0)`, which a worker's filter must kill. `None` in the child.
pub(crate) fn clone_child() -> io::Result<Option<u32>> {
    clone(libc::SIGCHLD)
}

/// Ends the process at once: no destructors, no `atexit`.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: touches no memory.
    unsafe { libc::_exit(code) }
}

/// `wait4`: the pid and the raw wait status; `None` when `nohang` and no child has exited.
pub(crate) fn wait(pid: i32, nohang: bool) -> io::Result<Option<super::ReapedChild>> {
    let mut status: c_int = 0;
    // SAFETY: all-zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { MaybeUninit::zeroed().assume_init() };
    let options = if nohang { libc::WNOHANG } else { 0 };
    // SAFETY: `status` and `usage` outlive the call.
    let ended =
        check(unsafe { libc::syscall(libc::SYS_wait4, pid, &raw mut status, options, &raw mut usage) })?;
    let ms = |time: libc::timeval| u64::try_from(time.tv_sec * 1_000 + time.tv_usec / 1_000).unwrap_or(0);
    Ok((ended != 0).then_some(super::ReapedChild {
        pid: ended as u32,
        wait_status: status,
        cpu_ms: ms(usage.ru_utime) + ms(usage.ru_stime),
        peak_memory_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    }))
}

/// Gives a signal its default action.
pub(crate) fn default_action(signal: c_int) -> io::Result<()> {
    // SAFETY: all-zero is a valid `sigaction`: SIG_DFL, no flags, empty mask.
    let action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: `action` outlives the call; no handler is installed.
    check(c_long::from(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })).map(drop)
}

/// Calls `tzset()`, which opens `/etc/localtime` once and for all.
pub(crate) fn tzset() {
    unsafe extern "C" {
        fn tzset();
    }
    // SAFETY: locks libc's own lock, and reads the environment, which only unsafe code may change while there are other threads.
    unsafe { tzset() }
}

/// The arguments of [`posix_spawn`].
pub(crate) struct SpawnPlan<'a> {
    pub(crate) program: &'a std::ffi::CStr,
    pub(crate) arguments: &'a [&'a std::ffi::CStr],
    pub(crate) environment: &'a [&'a std::ffi::CStr],
    /// Source descriptors, all above the highest target; they become 3, 4, 5, …
    pub(crate) descriptors: &'a [OwnedFd],
}

/// Starts a program in a new POSIX session, 0–2 on `/dev/null`, with only the planned descriptors, default signals.
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
    // SAFETY: both objects are initialised before any other use and destroyed once on every path; all pointers
    // outlive the calls; the arrays end with a null pointer; libc copies what it keeps.
    unsafe {
        code(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
        let actions = actions.as_mut_ptr();
        let prepared = (|| {
            for (fd, flags) in [(0, libc::O_RDONLY), (1, libc::O_WRONLY), (2, libc::O_WRONLY)] {
                code(libc::posix_spawn_file_actions_addopen(actions, fd, c"/dev/null".as_ptr(), flags, 0))?;
            }
            for (target, source) in (3..).zip(plan.descriptors) {
                code(libc::posix_spawn_file_actions_adddup2(actions, source.as_raw_fd(), target))?;
            }
            // Also closes descriptors that a library of the caller left open without close-on-exec.
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
