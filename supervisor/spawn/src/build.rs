//! Which build a jail runs: the executable that its keeper was started from, which the disk may not have any more. Reads a few KiB of
//! the file and executes nothing.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::OnceLock;
use vm_system_protocol::hello::Hello;

/// The build of the processes of a jail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JailBuild {
    /// As in the hello.
    pub version: String,
    /// Identifies the executable: its linker's build id, or its file if it has none; `unknown` if it cannot be read.
    pub id: String,
    /// The protocol version that they speak.
    pub protocol: u32,
}

/// The id of an executable that cannot be read.
pub const UNKNOWN_BUILD: &str = "unknown";

/// Longest list of program headers, and longest note segment, that is read (bytes).
const MOST: usize = 16 * 1_024;
/// Type of a segment with notes.
const PT_NOTE: u32 = 4;
/// Type of the note with the build id, whose owner is `GNU`.
const NT_GNU_BUILD_ID: u32 = 3;
/// Shown bytes of a build id: enough for different builds to differ.
const SHOWN: usize = 10;

impl JailBuild {
    /// The build of this process, and of all jails that it starts.
    pub fn ours() -> &'static Self {
        static OURS: OnceLock<JailBuild> = OnceLock::new();
        OURS.get_or_init(|| Self::read_from("self", Hello::ours()))
    }

    /// The build of a keeper.
    pub(super) fn of_keeper(pid: u32, hello: Hello) -> Self {
        Self::read_from(&pid.to_string(), hello)
    }

    fn read_from(process: &str, hello: Hello) -> Self {
        let version = String::from_utf8_lossy(&hello.build_id).trim_end_matches('\0').to_owned();
        let id = File::open(format!("/proc/{process}/exe")).ok().and_then(|file| id_of(&file));
        Self { version, id: id.unwrap_or_else(|| UNKNOWN_BUILD.to_owned()), protocol: hello.protocol }
    }

    /// Whether a jail is of this process's build. One whose executable cannot be read is not: a fix of the engine must reach all.
    pub fn is_ours(&self) -> bool {
        self.id != UNKNOWN_BUILD && self == Self::ours()
    }
}

fn id_of(file: &File) -> Option<String> {
    if let Some(id) = build_id(file) {
        return Some(id.iter().take(SHOWN).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }));
    }
    let found = file.metadata().ok()?;
    Some(format!("{:x}-{:x}-{:x}-{:x}", found.dev(), found.ino(), found.size(), found.mtime()))
}

/// The note of the linker in a 64-bit ELF file of this machine's byte order.
fn build_id(file: &File) -> Option<Vec<u8>> {
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    if header[..5] != *b"\x7fELF\x02" {
        return None;
    }
    let (at, size, count) = (word64(&header, 32)?, word16(&header, 54)?, word16(&header, 56)?);
    let mut table = vec![0; (size * count).min(MOST)];
    file.read_exact_at(&mut table, at).ok()?;
    let notes =
        table.chunks_exact(size.max(56)).filter(|segment| word32(segment, 0) == Some(PT_NOTE as usize));
    for segment in notes {
        let length = usize::try_from(word64(segment, 32)?).ok()?.min(MOST);
        let mut notes = vec![0; length];
        file.read_exact_at(&mut notes, word64(segment, 8)?).ok()?;
        if let Some(id) = gnu_note(&notes) {
            return Some(id.to_vec());
        }
    }
    None
}

fn gnu_note(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let (name, content) = (word32(notes, 0)?, word32(notes, 4)?);
        let begin = 12 + name.next_multiple_of(4);
        let found = notes.get(begin..begin.checked_add(content)?)?;
        let is_it = word32(notes, 8)? == NT_GNU_BUILD_ID as usize && notes.get(12..12 + name)? == b"GNU\0";
        if is_it && !found.is_empty() {
            return Some(found);
        }
        notes = notes.get(begin + content.next_multiple_of(4)..)?;
    }
}

fn word16(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn word32(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?)).ok()
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{JailBuild, gnu_note};
    use vm_system_protocol::hello::{Hello, PROTOCOL};

    #[test]
    fn a_process_of_this_build_is_known_by_its_executable() {
        let ours = JailBuild::ours();
        assert_eq!((ours.version.as_str(), ours.protocol), (env!("CARGO_PKG_VERSION"), PROTOCOL));
        assert!(JailBuild::of_keeper(std::process::id(), Hello::ours()).is_ours());
        let mut sleeper = std::process::Command::new("/bin/sleep").arg("60").spawn().expect("sleep");
        let other = JailBuild::of_keeper(sleeper.id(), Hello::ours());
        sleeper.kill().and_then(|()| sleeper.wait()).expect("it ends");
        assert!(!other.is_ours() && other.id != ours.id, "{other:?}");
        assert!(!JailBuild::of_keeper(u32::MAX, Hello::ours()).is_ours(), "nobody knows what that runs");
    }

    #[test]
    fn notes_of_any_content_are_read_without_a_panic() {
        let id = [vec![4, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0], b"GNU\0".to_vec(), vec![7, 8, 0, 0]].concat();
        assert_eq!(gnu_note(&id), Some([7, 8].as_slice()));
        for length in 0..id.len() - 2 {
            assert_eq!(gnu_note(&id[..length]), None);
        }
        assert_eq!(gnu_note(&[0xff; 64]), None);
    }
}
