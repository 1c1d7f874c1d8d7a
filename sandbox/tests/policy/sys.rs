//! System calls by number, for calls that a filter must judge.

use std::io;

/// Makes the call. Every pointer argument of the tests is null or invalid on purpose: the kernel checks before it
/// writes, and most of these calls must not even get there.
pub(crate) fn call(number: libc::c_long, arguments: [u64; 6]) -> io::Result<i64> {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: see above; runs in a forked child that ends right after.
    let result = unsafe { libc::syscall(number, first, second, third, fourth, fifth, sixth) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
