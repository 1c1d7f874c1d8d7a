//! The file of a token: one line of printable ASCII.

use crate::error::CliError;
use hyper::header::HeaderValue;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Most bytes that are read: the longest token that a daemon accepts, with space around it.
const FILE_BYTES: u64 = 4_096;
/// Longest token (bytes).
const TOKEN_BYTES: usize = 1_024;

/// The value of the field Authorization. Blocks, also for a pipe.
pub(super) fn read(path: &Path) -> Result<HeaderValue, CliError> {
    let shown = path.display();
    let unreadable = |error| CliError::unreadable(format_args!("the token in {shown}"), path, &error);
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        tracing::warn!(file = %shown, "other users can read the token, or change it: chmod 600");
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    let token = text.trim();
    if token.is_empty() || token.len() > TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message =
            format!("{shown} has no token: one line of 1 to {TOKEN_BYTES} printable ASCII characters");
        return Err(CliError::unfit(message)
            .with_hint("it is the file with the token itself, and not the daemon's file of hashes"));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| CliError::unfit(format!("the token in {shown} is not a header's value")))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_line_of_printable_characters() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(read("abc\n").unwrap(), "Bearer abc");
        assert_eq!(read(" a.b-c_d/e+f= \r\n").unwrap(), "Bearer a.b-c_d/e+f=");
        for bad in ["", "\n", "a b", "[[token]]\nname = \"x\"\n", "é", &"x".repeat(1_025), &"x".repeat(9_000)]
        {
            assert!(read(bad).is_err(), "{bad:.20}");
        }
        assert!(super::read(Path::new("/nowhere/token")).is_err());
    }
}
