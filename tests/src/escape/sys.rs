//! System calls by number and accesses to memory, as an attacker with native code makes them. Used in processes that exist for one
//! probe: what a call changes ends with its process.

use super::{EXECUTED, ProbeArgument};
use nix::errno::Errno;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// Bytes behind `ProbeArgument::Zeros`.
const ZEROS: usize = 64 << 10;

/// Makes the call.
pub(super) fn call(number: libc::c_long, arguments: &[ProbeArgument]) -> Result<i64, Errno> {
    let mut zeros = vec![0_u64; ZEROS / 8];
    let program = c"hostile-worker".as_ptr();
    let mode = std::ffi::CString::new(EXECUTED).expect("no zero byte");
    let vector = [program, mode.as_ptr(), std::ptr::null()];
    let mut values = [0_u64; 6];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = match argument {
            ProbeArgument::Number(number) => *number,
            ProbeArgument::Text(text) => text.as_ptr() as u64,
            ProbeArgument::Zeros => zeros.as_mut_ptr() as u64,
            ProbeArgument::Bytes(bytes) => bytes.as_ptr() as u64,
            ProbeArgument::Arguments => vector.as_ptr() as u64,
        };
    }
    let [first, second, third, fourth, fifth, sixth] = values;
    // SAFETY: addresses are those of the buffers above, which live longer than the call; rows that would make the kernel
    // change other memory of this process are not in the tables.
    let result = unsafe { libc::syscall(number, first, second, third, fourth, fifth, sixth) };
    Errno::result(result)
}

/// A call that creates a process or thread, which exits at once without touching memory: it may share the caller's.
#[cfg(target_arch = "x86_64")]
pub(super) fn fork_by(number: libc::c_long, flags: u64) -> Result<i64, Errno> {
    let result: i64;
    // SAFETY: the new process executes nothing but the exit; the kernel clobbers rcx and r11, and the stack is not used.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov eax, 60", // exit
            "xor edi, edi",
            "syscall",
            "2:",
            inlateout("rax") number => result,
            inlateout("rdi") flags => _,
            in("rsi") 0_u64,
            in("rdx") 0_u64,
            in("r10") 0_u64,
            in("r8") 0_u64,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    if result < 0 { Err(Errno::from_raw(-result as i32)) } else { Ok(result) }
}

/// `getpid` by the 32-bit entry.
#[cfg(target_arch = "x86_64")]
pub(super) fn call_by_interrupt() -> Result<i64, Errno> {
    let result: i64;
    // SAFETY: call 20 of that table is getpid, without arguments; the entry clobbers the registers named here.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("rax") 20_i64 => result,
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
            options(nostack),
        );
    }
    if result < 0 { Err(Errno::from_raw(-result as i32)) } else { Ok(result) }
}

/// Whether a descriptor is open.
pub(super) fn is_open(fd: i32) -> bool {
    // SAFETY: F_GETFD has no argument and changes nothing.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

/// Gives a descriptor this number; the previous one of that number is closed.
pub(super) fn take_number(fd: &OwnedFd, number: i32) -> Result<(), Errno> {
    // SAFETY: the process was created for one probe and uses no other descriptor of this number.
    if fd.as_raw_fd() != number && unsafe { libc::dup2(fd.as_raw_fd(), number) } < 0 {
        return Err(Errno::last());
    }
    Ok(())
}

/// Closes a descriptor that another value owns.
pub(super) fn close(fd: i32) -> Result<(), Errno> {
    // SAFETY: the owner gets errors, which is the purpose; the number is not used again.
    Errno::result(unsafe { libc::close(fd) }).map(drop)
}

/// Makes descriptor 3 a copy of another one.
pub(super) fn replace_channel(with: i32) -> Result<(), Errno> {
    // SAFETY: as `close`.
    Errno::result(unsafe { libc::dup3(with, 3, libc::O_CLOEXEC) }).map(drop)
}

/// Writes to an address that is not mapped.
pub(super) fn write_to_nothing() {
    // SAFETY: never mapped (the first page); the process gets SIGSEGV, which is the purpose.
    unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) }
}

/// Unmaps the stack that it runs on.
pub(super) fn unmap_own_stack() {
    let here = 0_u8;
    let page = (&raw const here as usize) & !0xfff;
    // SAFETY: none is needed: the next access to the stack is a SIGSEGV, which is the purpose.
    unsafe {
        libc::munmap(std::ptr::without_provenance_mut(page - (64 << 10)), 128 << 10);
    }
}

/// Maps private memory at a fixed address.
pub(super) fn map_at(address: usize, len: usize, flags: i32) -> Result<(), Errno> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: rows use addresses beneath everything that the process has mapped, or let the kernel choose.
    let result =
        unsafe { libc::mmap(std::ptr::without_provenance_mut(address), len, protection, flags, -1, 0) };
    if result == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(()) }
}

/// Sends a byte on a descriptor.
pub(super) fn send_to(fd: i32) -> Result<(), Errno> {
    let text = [std::io::IoSlice::new(b"x")];
    nix::sys::socket::sendmsg::<()>(fd, &text, &[], nix::sys::socket::MsgFlags::MSG_NOSIGNAL, None).map(drop)
}

/// Sends a byte on descriptor 3 with the credentials of pid 1.
pub(super) fn send_as_pid_1() -> Result<(), Errno> {
    use nix::sys::socket::{ControlMessage, MsgFlags, UnixCredentials, sendmsg};
    let forged = UnixCredentials::from(libc::ucred { pid: 1, uid: 0, gid: 0 });
    let text = [std::io::IoSlice::new(b"x")];
    let credentials = [ControlMessage::ScmCredentials(&forged)];
    sendmsg::<()>(3, &text, &credentials, MsgFlags::MSG_NOSIGNAL, None).map(drop)
}
