//! Names of libraries: npm's rules, and the rules for a single word in commands and paths.

/// Longest id; npm's own limit (bytes).
const ID_BYTES: usize = 214;
/// Longest version (bytes).
const VERSION_BYTES: usize = 100;
/// Longest name of a global variable (bytes).
const GLOBAL_BYTES: usize = 100;

/// An invalid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(String);

/// `id-version`: the full name of a library.
pub fn full_name(id: &str, version: &str) -> String {
    format!("{id}-{version}")
}

/// `lodash`, `@scope/name`: npm's rules for new packages.
pub fn check_id(id: &str) -> Result<(), NameError> {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '_', '-'])
            && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~'))
    };
    let good = match id.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| part(scope) && part(name)),
        None => part(id),
    };
    if good && id.len() <= ID_BYTES {
        return Ok(());
    }
    Err(NameError(format!("{id:?} is not the name of a package")))
}

/// `4.17.21`, `1.0.0-beta.1`: begins with a digit, no blanks.
pub fn check_version(version: &str) -> Result<(), NameError> {
    let good = version.starts_with(|first: char| first.is_ascii_digit())
        && version.len() <= VERSION_BYTES
        && version.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+'));
    if good { Ok(()) } else { Err(NameError(format!("{version:?} is not a version like 1.2.3"))) }
}

/// An ASCII identifier.
pub fn check_global(name: &str) -> Result<(), NameError> {
    let letter = |char: char| char.is_ascii_alphabetic() || matches!(char, '_' | '$');
    let good = name.starts_with(letter)
        && name.len() <= GLOBAL_BYTES
        && name.chars().all(|char| letter(char) || char.is_ascii_digit());
    if good { Ok(()) } else { Err(NameError(format!("{name:?} is not the name of a variable"))) }
}
