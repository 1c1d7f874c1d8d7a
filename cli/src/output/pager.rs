//! Long texts for people go through their pager if stdout is a terminal: `$PAGER`, else `less`. `PAGER=cat` turns it off.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Shows a text in a pager. `false`: there is none, or the text fits the terminal, and nothing was shown.
pub(super) fn show(text: &str) -> bool {
    let Some((_, height)) = terminal_size::terminal_size() else { return false };
    if text.lines().count() < usize::from(height.0) {
        return false;
    }
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    // Without a word where there is no `less`.
    let pager =
        pager.unwrap_or_else(|| "sh -c 'command -v less >/dev/null || exit 127; exec less'".to_owned());
    if pager.trim() == "cat" {
        return false;
    }
    // As for git: the variable may have arguments.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("exec {pager}")).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Colours as they are, quit if it fits one screen, keep it on the screen.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // A reader who quits early closes the pipe.
        let _ = stdin.write_all(text.as_bytes());
    }
    // 127: the shell found no such program.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}
