//! Descriptors that the starter of this process has left open: closed, before they could be used by anything that starts later. Kept are
//! those that the starter has named: the ones of a service manager (`sd_listen_fds(3)`), and `/dev/fd/N` in an argument.

use std::ffi::OsString;
use std::ops::Range;
use vm_system_sandbox::process;

/// Closes the descriptors that nobody has named. To be called while the process has one thread, before it gives up or uses any right.
pub fn close_leaked(arguments: impl Iterator<Item = OsString>) {
    let passed = passed();
    let named: Vec<i32> =
        arguments.filter_map(|argument| named(argument.to_str()?)).chain(passed.clone()).collect();
    process::close_inherited_except(&named);
}

/// The descriptors that the service manager has passed to this process.
pub(super) fn passed() -> Range<i32> {
    let variable = |name| std::env::var(name).ok();
    if variable("LISTEN_PID").and_then(|pid| pid.parse().ok()) != Some(std::process::id()) {
        return 0..0;
    }
    let count: i32 = variable("LISTEN_FDS").and_then(|count| count.parse().ok()).unwrap_or(0);
    process::FIRST_FD..process::FIRST_FD.saturating_add(count.max(0)).min(process::MOST_INHERITED)
}

/// Their names and numbers (`LISTEN_FDNAMES`); a descriptor without a name has an empty one.
pub(super) fn named_passed() -> Vec<(String, i32)> {
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.split(':').map(str::to_owned).chain(std::iter::repeat(String::new()));
    names.zip(passed()).collect()
}

/// The number in an argument such as `/dev/fd/63` or `--file=/dev/fd/63`.
fn named(argument: &str) -> Option<i32> {
    ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|folder| argument.split_once(folder)?.1.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn descriptors_are_named_by_their_paths() {
        assert_eq!(named("/dev/fd/63"), Some(63));
        assert_eq!(named("--tokens=/proc/self/fd/5"), Some(5));
        for other in ["", "63", "/dev/fd/", "/dev/fd/x", "/dev/fdx/3"] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
