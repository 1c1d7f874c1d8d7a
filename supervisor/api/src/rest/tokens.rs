//! The tokens and their roles: a file of the operator with the hashes of tokens, not the tokens.
//!
//! ```toml
//! [[token]]
//! name = "ci"            # the owner of its rows: letters, digits, `.`, `_`, `-`
//! role = "user"          # or "admin": sees and may do everything
//! sha256 = "9f86d08…"    # of the token, hexadecimal
//! uid = "builder"        # optional: a user (name or number) with whose rights it uses worktrees; never root
//! ```
//!
//! The file belongs to the supervisor's user (or to root, readable by the supervisor's group), and no other user may read it. Tokens are long random texts, so a
//! plain hash is enough. The file is read again at SIGHUP; an invalid file changes nothing.

use crate::operator_file::read_secret_toml;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;
use vm_system_ops::Caller;
use vm_system_sandbox::identity::uid_of_name;

/// Largest file that is read (bytes).
const FILE_BYTES: u64 = 1 << 20;
/// Longest name (characters).
const NAME_CHARS: usize = 64;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the tokens in {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// Other users could read or change the file.
    #[error("{}: {detail}", path.display())]
    Exposed {
        path: PathBuf,
        /// The problem and what to do.
        detail: String,
    },
    /// The file has an invalid value.
    #[error("{}: {detail}", path.display())]
    Invalid { path: PathBuf, detail: String },
}

/// The principal of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bearer {
    pub(super) name: String,
    pub(super) admin: bool,
}

struct Token {
    hash: [u8; 32],
    bearer: Bearer,
    /// The user with whose rights it uses worktrees.
    uid: Option<u32>,
}

/// The rights to worktrees of the tokens of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRights {
    /// One of them has the role admin.
    pub admin: bool,
    /// The user of all of them.
    pub uid: Option<u32>,
}

/// The valid tokens.
pub struct TokenBook {
    path: Option<PathBuf>,
    tokens: RwLock<Vec<Token>>,
    /// By name, how often a token of it was removed or replaced.
    removals: watch::Sender<HashMap<String, u64>>,
}

impl std::fmt::Debug for TokenBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenBook").field("path", &self.path).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BookFile {
    #[serde(default)]
    token: Vec<TokenEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenEntry {
    name: String,
    role: Role,
    sha256: String,
    uid: Option<TokenUser>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TokenUser {
    Number(u32),
    Name(String),
}

impl TokenUser {
    /// The token's uid. Blocks.
    fn uid(self, token: &str) -> Result<u32, String> {
        let uid = match self {
            Self::Number(uid) => uid,
            Self::Name(name) => uid_of_name(&name).map_err(|why| format!("the uid of {token:?}: {why}"))?,
        };
        if uid == 0 { Err(format!("the uid of {token:?} is root's: name another user")) } else { Ok(uid) }
    }
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Role {
    Admin,
    User,
}

impl TokenBook {
    /// A book without tokens.
    pub fn empty() -> Self {
        Self { path: None, tokens: RwLock::default(), removals: watch::Sender::default() }
    }

    /// Reads a file. Blocks.
    pub fn open(path: &Path) -> Result<Self, TokenError> {
        let tokens = read(path)?;
        let path = Some(path.to_owned());
        Ok(Self { path, tokens: RwLock::new(tokens), removals: watch::Sender::default() })
    }

    /// Whether there is a file of tokens.
    pub fn has_file(&self) -> bool {
        self.path.is_some()
    }

    /// Reads the file again; returns the number of tokens. After an error the previous ones stay valid. Blocks.
    pub fn reload(&self) -> Result<usize, TokenError> {
        let Some(path) = &self.path else { return Ok(0) };
        let tokens = read(path)?;
        let count = tokens.len();
        let after: HashMap<[u8; 32], (Bearer, Option<u32>)> =
            tokens.iter().map(|token| (token.hash, (token.bearer.clone(), token.uid))).collect();
        // A token with another name, role or user is another one for whoever uses it.
        let is_same = |token: &Token| {
            after.get(&token.hash).is_some_and(|(bearer, uid)| *bearer == token.bearer && *uid == token.uid)
        };
        let before =
            std::mem::replace(&mut *self.tokens.write().unwrap_or_else(PoisonError::into_inner), tokens);
        self.removals.send_if_modified(|removals| {
            let mut removed = before.into_iter().filter(|token| !is_same(token)).peekable();
            let is_modified = removed.peek().is_some();
            removed.for_each(|token| *removals.entry(token.bearer.name).or_default() += 1);
            is_modified
        });
        Ok(count)
    }

    /// Resolves when a token of this caller's name is removed or replaced; never for local users.
    pub(super) fn removed(&self, caller: &Caller) -> impl Future<Output = ()> + use<> {
        let mut removals = self.removals.subscribe();
        let name = caller.owner.as_str().to_owned();
        let before = removals.borrow_and_update().get(&name).copied();
        async move {
            let is_other = |now: &HashMap<String, u64>| now.get(&name).copied() != before;
            if removals.wait_for(is_other).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether the token of an accepted caller is still valid; always true for local users.
    pub(super) fn knows(&self, caller: &Caller) -> bool {
        // Names of tokens have no colon; `uid:N` has.
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        caller.owner.as_str().contains(':')
            || tokens
                .iter()
                .any(|token| token.bearer.name == caller.owner.as_str() && token.bearer.admin == caller.admin)
    }

    /// The rights to worktrees of the tokens of this name; `None` if there is no such token. Different users are none.
    pub fn rights(&self, name: &str) -> Option<TokenRights> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let mut of_this_name = tokens.iter().filter(|token| token.bearer.name == name);
        let first = of_this_name.next()?;
        let first = TokenRights { admin: first.bearer.admin, uid: first.uid };
        Some(of_this_name.fold(first, |rights, token| TokenRights {
            admin: rights.admin || token.bearer.admin,
            uid: rights.uid.filter(|uid| token.uid == Some(*uid)),
        }))
    }

    /// The bearer of a token. Compares with all tokens in constant time.
    pub(super) fn find(&self, token: &str) -> Option<Bearer> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for token in tokens.iter() {
            if bool::from(token.hash.ct_eq(&hash)) {
                found = Some(token.bearer.clone());
            }
        }
        found
    }
}

/// The users of the tokens in a file, for the spawn helper. None unless root alone can change the file: with another file its owner would
/// decide who the users are.
pub fn token_uids(path: &Path) -> Vec<u32> {
    let is_roots = std::fs::metadata(path)
        .is_ok_and(|found| found.uid() == 0 && found.permissions().mode() & 0o022 == 0);
    let tokens = if is_roots { read(path).unwrap_or_default() } else { Vec::new() };
    tokens.into_iter().filter_map(|token| token.uid).collect()
}

fn read(path: &Path) -> Result<Vec<Token>, TokenError> {
    let io = |source| TokenError::Io { path: path.to_owned(), source };
    // Without waiting for a writer, where a pipe has the name of the file: a daemon that waits handles no signal.
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    let exposed = |detail: String| TokenError::Exposed { path: path.to_owned(), detail };
    if !metadata.is_file() {
        return Err(exposed("not a regular file".to_owned()));
    }
    let mode = metadata.permissions().mode() & 0o777;
    let (owner, us) = (metadata.uid(), nix::unistd::geteuid().as_raw());
    // A daemon that root started reads root's file by its group.
    let is_its_group = us == 0 || metadata.gid() == nix::unistd::getegid().as_raw();
    let (open_to_others, right) = if owner == 0 && is_its_group { (0o037, "0640") } else { (0o077, "0600") };
    if mode & open_to_others != 0 {
        return Err(exposed(format!("mode {mode:04o} lets other users read or change it: chmod {right}")));
    }
    if owner != us && owner != 0 {
        return Err(exposed(format!("belongs to uid {owner}: chown it to uid {us} or to root")));
    }
    let mut text = String::new();
    file.take(FILE_BYTES).read_to_string(&mut text).map_err(io)?;
    parse(&text).map_err(|detail| TokenError::Invalid { path: path.to_owned(), detail })
}

fn parse(text: &str) -> Result<Vec<Token>, String> {
    let file: BookFile = read_secret_toml(text)?;
    let mut hashes = HashSet::new();
    let mut tokens = Vec::with_capacity(file.token.len());
    for TokenEntry { name, role, sha256, uid } in file.token {
        let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
        if name.is_empty() || name.len() > NAME_CHARS || !name.chars().all(plain) {
            return Err(format!("{name:?} is not a name: 1 to {NAME_CHARS} letters, digits, `.`, `_`, `-`"));
        }
        let hash = hex(&sha256).ok_or_else(|| {
            format!(
                "the sha256 of {name:?} does not have 64 hexadecimal digits: printf %s \"$TOKEN\" | sha256sum"
            )
        })?;
        if !hashes.insert(hash) {
            return Err(format!("the token of {name:?} is listed twice"));
        }
        let uid = uid.map(|user| user.uid(&name)).transpose()?;
        if role == Role::Admin && uid.is_some() {
            return Err(format!(
                "the token {name:?} has the role admin and a uid: remove the uid, and name a user in each request (as_user)"
            ));
        }
        tokens.push(Token { hash, bearer: Bearer { name, admin: role == Role::Admin }, uid });
    }
    Ok(tokens)
}

fn hex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use vm_system_record::Owner;

    /// SHA-256 of `test`.
    const TEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        std::fs::write(file.path(), text).expect("write");
        std::fs::set_permissions(file.path(), Permissions::from_mode(mode)).expect("chmod");
        file
    }

    fn entry(name: &str, role: &str, sha256: &str) -> String {
        format!("[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{sha256}\"\n")
    }

    #[test]
    fn a_token_is_known_by_its_hash_alone() {
        let file = file(&(entry("ci", "user", TEST) + &entry("root", "admin", &"0".repeat(64))), 0o600);
        let book = TokenBook::open(file.path()).expect("a good file");
        assert_eq!(book.find("test"), Some(Bearer { name: "ci".to_owned(), admin: false }));
        for other in ["", "Test", "test ", TEST] {
            assert_eq!(book.find(other), None, "{other:?}");
        }
        assert_eq!(TokenBook::empty().find("test"), None);
    }

    #[test]
    fn the_bearer_of_a_token_is_known_until_the_token_is_removed() {
        let file = file(&(entry("ci", "user", TEST) + &entry("root", "admin", &"0".repeat(64))), 0o600);
        let book = TokenBook::open(file.path()).expect("a good file");
        let caller = |owner: &str, admin| Caller { owner: Owner::new(owner), admin, api: "rest" };
        assert!(book.knows(&caller("ci", false)) && book.knows(&caller("uid:1000", false)));
        assert!(!book.knows(&caller("ci", true)), "the role differs");
        std::fs::write(file.path(), entry("root", "admin", &"0".repeat(64))).expect("our file");
        book.reload().expect("a good file");
        assert!(!book.knows(&caller("ci", false)));
        assert!(book.knows(&caller("root", true)) && book.knows(&caller("uid:1000", false)));
    }

    #[tokio::test]
    async fn a_token_with_another_role_name_or_user_ends_what_used_the_former() {
        let zero = "0".repeat(64);
        let changes = [
            entry("ci", "user", TEST),
            entry("other", "admin", TEST),
            entry("ci", "user", TEST) + "uid = 1\n",
        ];
        for changed in changes {
            let file = file(&(entry("ci", "admin", TEST) + &entry("root", "admin", &zero)), 0o600);
            let book = TokenBook::open(file.path()).expect("a good file");
            let mut removed =
                Box::pin(book.removed(&Caller { owner: Owner::new("ci"), admin: true, api: "rest" }));
            std::fs::write(file.path(), entry("ci", "admin", TEST) + &entry("ops", "user", &zero))
                .expect("our file");
            book.reload().expect("a good file");
            assert!(futures_poll(removed.as_mut()).is_none(), "it is the same");
            std::fs::write(file.path(), &changed).expect("our file");
            book.reload().expect("a good file");
            assert!(futures_poll(removed.as_mut()).is_some(), "{changed}");
        }
    }

    fn futures_poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.poll(&mut context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        for mode in [0o604, 0o620, 0o666] {
            let file = file(&entry("ci", "user", TEST), mode);
            assert!(matches!(TokenBook::open(file.path()), Err(TokenError::Exposed { .. })), "{mode:o}");
        }
        // Of root, for the daemon's group.
        let file = file(&entry("ci", "user", TEST), 0o640);
        assert_eq!(TokenBook::open(file.path()).is_ok(), nix::unistd::geteuid().is_root());
        let users = entry("ci", "user", TEST) + "uid = 1\n" + &entry("boss", "admin", &"0".repeat(64));
        std::fs::write(file.path(), users).expect("our file");
        let uids: &[u32] = if nix::unistd::geteuid().is_root() { &[1] } else { &[] };
        assert_eq!(token_uids(file.path()), uids);
        std::fs::set_permissions(file.path(), Permissions::from_mode(0o660)).expect("chmod");
        assert_eq!(token_uids(file.path()), [0_u32; 0], "others decide who the users are");
        assert!(matches!(TokenBook::open(Path::new("/nowhere/tokens")), Err(TokenError::Io { .. })));
        assert!(matches!(TokenBook::open(Path::new("/")), Err(TokenError::Exposed { .. })));
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("tokens.toml");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).expect("a pipe");
        assert!(
            matches!(TokenBook::open(&pipe), Err(TokenError::Exposed { .. })),
            "and nobody waits for a writer"
        );
    }

    #[test]
    fn a_token_may_have_the_rights_of_a_user_but_root() {
        let number = entry("ci", "user", TEST) + "uid = 1\n";
        let named = entry("ci", "user", &"1".repeat(64)) + "uid = \"daemon\"\n";
        let other = entry("ci", "user", &"2".repeat(64));
        let rights = |text: &str| {
            let file = file(text, 0o600);
            TokenBook::open(file.path()).expect("a good file").rights("ci")
        };
        let of_daemon = Some(TokenRights { admin: false, uid: Some(1) });
        assert_eq!(rights(&number), of_daemon);
        assert_eq!(rights(&(number.clone() + &named)), of_daemon);
        assert_eq!(rights(&(number + &other)), Some(TokenRights { admin: false, uid: None }), "they differ");
        assert_eq!(rights(""), None);
        for (uid, why) in [("0", "root's"), ("\"root\"", "root's"), ("\"no-such-user-here\"", "no user")] {
            let error = parse(&(entry("ci", "user", TEST) + "uid = " + uid + "\n")).err().expect("refused");
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn invalid_entries_are_refused() {
        let bad = [
            entry("uid:0", "user", TEST),
            entry("", "user", TEST),
            entry("ci", "root", TEST),
            entry("ci", "user", &TEST[1..]),
            entry("ci", "user", &"g".repeat(64)),
            entry("a", "user", TEST) + &entry("b", "user", TEST),
            entry("root", "admin", TEST) + "uid = 1\n",
            "[[tokens]]\n".to_owned(),
        ];
        for text in bad {
            assert!(parse(&text).is_err(), "{text}");
        }
        assert!(parse("").is_ok_and(|tokens| tokens.is_empty()));
    }

    #[test]
    fn errors_quote_no_value() {
        for text in [
            "[[token]]\nname = \"ci\"\nrole = \"user\"\nsha256 = { token = \"geheim\" }\n",
            "[[token]]\nname = \"ci\"\nrole = \"geheim\"\nsha256 = \"0\"\n",
            "[[token]]\nname = \"ci\"\nrole = \"user\"\nsha256 = \"geheim\"\n",
            "token = \"geheim\"\n",
            "[[token]]\nname = [\"geheim\"]\n",
        ] {
            let error = parse(text).err().expect(text);
            assert!(!error.contains("geheim"), "{error}");
        }
    }

    #[test]
    fn reading_again_takes_effect_and_a_bad_file_changes_nothing() {
        let file = file(&entry("ci", "user", TEST), 0o600);
        let book = TokenBook::open(file.path()).expect("a good file");
        std::fs::write(file.path(), "nonsense").expect("write");
        assert!(book.reload().is_err());
        assert!(book.find("test").is_some());
        std::fs::write(file.path(), entry("ci", "user", &"1".repeat(64))).expect("write");
        assert_eq!(book.reload().expect("a good file"), 1);
        assert!(book.find("test").is_none());
    }
}
