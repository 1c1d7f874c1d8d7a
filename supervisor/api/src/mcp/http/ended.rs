//! The sessions that clients ended: their ids are signed, so without a record a later daemon would continue them. One file of lines;
//! a line is durable before the client gets its response. Bounded for each owner: above the bound the oldest ids are forgotten, and
//! all ids of this owner that are as old are refused, of whatever session.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vm_system_record::Owner;
use vm_system_sandbox::private_file;

/// Ended sessions of one owner that are kept apart.
const PER_OWNER: usize = 256;
/// Lines that the file may have beyond twice what it says, before it is written anew.
const SPARE_LINES: usize = 1_024;
/// In place of the id: a line that is about all of an owner's sessions up to a time.
const ALL: &str = "-";
/// Nobody else reads the file.
const MODE: u32 = 0o600;

/// The sessions that clients ended. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct EndedSessions(Arc<Ended>);

#[derive(Debug, Default)]
struct Ended {
    /// Held for a moment only.
    owners: Mutex<HashMap<String, EndedOfOwner>>,
    /// Held while it is written.
    file: Mutex<EndedFile>,
}

#[derive(Debug, Default)]
struct EndedFile {
    /// None: ended sessions are forgotten with this process.
    path: Option<PathBuf>,
    lines: usize,
    /// The last line was not written completely.
    is_torn: bool,
}

#[derive(Debug, Default)]
struct EndedOfOwner {
    /// All sessions that began then or earlier are refused (Unix time, milliseconds).
    all_until: Option<u64>,
    /// Begin and id.
    ids: BTreeSet<(u64, String)>,
}

impl EndedOfOwner {
    fn add(&mut self, began: u64, id: &str) {
        self.ids.insert((began, id.to_owned()));
        if self.ids.len() > PER_OWNER
            && let Some((oldest, _)) = self.ids.pop_first()
        {
            self.all_until = self.all_until.max(Some(oldest));
        }
    }

    fn has(&self, began: u64, id: &str) -> bool {
        self.all_until.is_some_and(|until| began <= until) || self.ids.contains(&(began, id.to_owned()))
    }
}

impl EndedSessions {
    /// Reads the file, which need not exist yet. A line that cannot be read is left out: the last one of a power cut.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut owners: HashMap<String, EndedOfOwner> = HashMap::new();
        let text = match File::options().read(true).custom_flags(nix::libc::O_NOFOLLOW).open(path) {
            Ok(file) => io::read_to_string(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        for line in text.lines() {
            let mut words = line.split(' ');
            let (Some(began), Some(id), Some(owner), None) =
                (words.next().and_then(|word| word.parse().ok()), words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Some(owner) =
                URL_SAFE_NO_PAD.decode(owner).ok().and_then(|name| String::from_utf8(name).ok())
            else {
                continue;
            };
            let of = owners.entry(owner).or_default();
            if id == ALL {
                of.all_until = of.all_until.max(Some(began));
            } else {
                of.add(began, id);
            }
        }
        let is_torn = !text.is_empty() && !text.ends_with('\n');
        let mut file = EndedFile { path: Some(path.to_owned()), lines: text.lines().count(), is_torn };
        let said = text_of(&owners);
        if is_torn || file.lines != said.lines().count() {
            match file.rewrite(&said) {
                // A start needs no space: the file says the same as it is.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
                {
                    tracing::warn!(path = %path.display(), %error, "the file of ended sessions is not shortened");
                }
                written => written?,
            }
        }
        Ok(Self(Arc::new(Ended { owners: Mutex::new(owners), file: Mutex::new(file) })))
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<String, EndedOfOwner>> {
        self.0.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session was ended, or is as old as one that is forgotten.
    pub(super) fn has(&self, owner: &Owner, began: u64, id: &str) -> bool {
        self.owners().get(owner.as_str()).is_some_and(|of| of.has(began, id))
    }

    /// Records that a session ended; durable when this returns. Blocks.
    pub(super) fn add(&self, owner: &Owner, began: u64, id: &str) -> io::Result<()> {
        let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = {
            let mut owners = self.owners();
            let of = owners.entry(owner.as_str().to_owned()).or_default();
            of.add(began, id);
            let said: usize = owners.values().map(|of| of.ids.len() + 1).sum();
            (file.lines > 2 * said + SPARE_LINES).then(|| text_of(&owners))
        };
        match whole {
            Some(text) => file.rewrite(&text),
            None => file.append(&line(began, id, owner.as_str())),
        }
    }
}

impl EndedFile {
    fn append(&mut self, line: &str) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let flags = nix::libc::O_NOFOLLOW;
        let mut file = File::options().append(true).create(true).mode(MODE).custom_flags(flags).open(path)?;
        if self.is_torn {
            file.write_all(b"\n")?;
        }
        // Until it is written: an error may leave a part of the line.
        self.is_torn = true;
        file.write_all(line.as_bytes())?;
        self.is_torn = false;
        self.lines += 1;
        file.sync_data()
    }

    fn rewrite(&mut self, text: &str) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        private_file::replace(path, text.as_bytes())?;
        (self.lines, self.is_torn) = (text.lines().count(), false);
        Ok(())
    }
}

fn text_of(owners: &HashMap<String, EndedOfOwner>) -> String {
    let lines = owners.iter().flat_map(|(owner, of)| {
        let all = of.all_until.map(|until| line(until, ALL, owner));
        all.into_iter().chain(of.ids.iter().map(move |(began, id)| line(*began, id, owner)))
    });
    lines.collect()
}

fn line(began: u64, id: &str, owner: &str) -> String {
    let mut line = format!("{began} {id} ");
    // Writing to a String cannot fail.
    let _ = writeln!(line, "{}", URL_SAFE_NO_PAD.encode(owner));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_sessions_stay_so_for_a_later_daemon_and_for_their_owner_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ended");
        let (alice, bob) = (Owner::new("alice of a\nb"), Owner::new("bob"));
        let first = EndedSessions::open(&path).expect("a new file");
        first.add(&alice, 7, "x").expect("written");
        assert!(first.has(&alice, 7, "x"));
        // As a power cut leaves a line.
        std::fs::write(&path, std::fs::read_to_string(&path).expect("text") + "9 tor").expect("ours");
        let later = EndedSessions::open(&path).expect("the same file");
        assert!(later.has(&alice, 7, "x") && !later.has(&bob, 7, "x") && !later.has(&alice, 7, "y"));
        later.add(&alice, 8, "y").expect("written");
        assert!(EndedSessions::open(&path).expect("the same file").has(&alice, 8, "y"), "after a torn line");
        std::fs::remove_file(&path).expect("ours");
        std::os::unix::fs::symlink("/dev/null", &path).expect("link");
        EndedSessions::open(&path).expect_err("a link");
    }

    #[test]
    fn above_the_bound_the_oldest_of_this_owner_are_refused_all_and_the_file_stays_small() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ended");
        let (alice, bob) = (Owner::new("alice"), Owner::new("bob"));
        let ended = EndedSessions::open(&path).expect("a new file");
        ended.add(&bob, 3, "bobs").expect("written");
        let most = 2 * SPARE_LINES as u64;
        for began in 0..most {
            ended.add(&alice, began, &format!("s{began}")).expect("written");
        }
        for ended in [ended, EndedSessions::open(&path).expect("the same file")] {
            assert!((0..most).all(|began| ended.has(&alice, began, &format!("s{began}"))));
            assert!(ended.has(&alice, 0, "another as old") && !ended.has(&alice, most, "a new one"));
            assert!(ended.has(&bob, 3, "bobs") && !ended.has(&bob, 0, "s0"), "others lose nothing");
            let kept = ended.owners()["alice"].ids.len();
            assert_eq!(kept, PER_OWNER);
        }
        let lines = std::fs::read_to_string(&path).expect("text").lines().count();
        assert!(lines <= PER_OWNER + 3, "{lines} lines after the start");
    }
}
