//! How a test reports that this machine cannot run it, and when that is a failure. Examines no machine by itself.

use std::ffi::OsStr;

/// `1`: a skipped test fails unless [`ALLOW`] lists its key.
const REQUIRE_ALL: &str = "VM_SYSTEM_REQUIRE_ALL";
/// Keys, separated by commas; `prefix-*` is every key that begins with `prefix-`.
const ALLOW: &str = "VM_SYSTEM_ALLOW_SKIP";

/// Reports that the rest of a test cannot run on this machine: `SKIPPED: key: reason` on standard output. The caller returns or
/// continues without that part. `key` names the missing requirement and never changes; `.ci/run` lists the allowed keys.
///
/// # Panics
/// If all tests are required to run, and this key is not allowed.
#[track_caller]
pub fn skip(key: &str, reason: &str) {
    println!("SKIPPED: {key}: {reason}");
    let everything = std::env::var_os(REQUIRE_ALL).is_some_and(|value| value == "1");
    let excepted = std::env::var_os(ALLOW).is_some_and(|list| is_listed(&list, key));
    assert!(!everything || excepted, "{REQUIRE_ALL}=1, and {ALLOW} does not list `{key}`: {reason}");
}

fn is_listed(list: &OsStr, key: &str) -> bool {
    list.to_string_lossy().split(',').map(str::trim).any(|listed| match listed.strip_suffix('*') {
        Some(prefix) => key.starts_with(prefix),
        None => key == listed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_listed_by_its_name_or_its_prefix() {
        let list = OsStr::new("npm, layer-*");
        assert!(is_listed(list, "npm") && is_listed(list, "layer-landlock"));
        assert!(!is_listed(list, "np") && !is_listed(list, "npm-2") && !is_listed(list, "player-x"));
        assert!(!is_listed(OsStr::new(""), "root"));
    }
}
