//! System calls by number, for calls that a filter must judge.

use std::io;

/// Makes the call. No argument can be an address of this process; the kernel checks an address before it writes, and the filter
/// must refuse most of these calls before that.
pub(crate) fn call(number: libc::c_long, arguments: [u64; 6]) -> io::Result<i64> {
    let names_memory = |argument: u64| (1 << 32..u64::MAX << 32).contains(&argument);
    assert!(!arguments.into_iter().any(names_memory), "an address among the arguments");
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: a position-independent program has nothing beneath 4 GiB, and no process has anything at the very top.
    let result = unsafe { libc::syscall(number, first, second, third, fourth, fifth, sixth) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
