//! The file of an empty database (`sqlite/new_database.bin`), which is made of `sqlite/schema.sql` here.
//!
//! After a change of the schema: `VM_SYSTEM_BLESS=1` writes it.

use super::fixture::{options, running};
use super::golden::dump;
use crate::sqlite::{SCHEMA, new_database};
use crate::{OpenError, StoreOptions, open_sqlite};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// `vmsy`: the application id that identifies our database.
const APPLICATION_ID: i32 = 0x766d_7379;
/// Fewer zeros than the numbers of a piece take are not left out.
const LEFT_OUT: usize = 2 * size_of::<u32>() + 1;

/// Carries out `schema.sql` in a new file, and returns the content of that.
fn made_of_sql(folder: &Path) -> Vec<u8> {
    let path = folder.join("made.db");
    let database = Connection::open(&path).expect("a new file");
    let sql = include_str!("../sqlite/schema.sql");
    // First: free pages of a file can be given back in pieces if it was made so.
    database.execute_batch("PRAGMA auto_vacuum = incremental").expect("a pragma");
    database.execute_batch(&format!("BEGIN; {sql} COMMIT;")).expect("our schema");
    database.pragma_update(None, "application_id", APPLICATION_ID).expect("a number");
    database.pragma_update(None, "user_version", SCHEMA.version()).expect("a number");
    database.execute_batch("PRAGMA journal_mode = wal").expect("no other connection");
    database.close().expect("its log is copied back");
    std::fs::read(path).expect("it is ours")
}

fn pack(content: &[u8]) -> Vec<u8> {
    let mut pieces = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        let bytes = &rest[zeros..];
        let length = (0..bytes.len())
            .find(|at| {
                bytes[*at..].len() >= LEFT_OUT && bytes[*at..*at + LEFT_OUT].iter().all(|byte| *byte == 0)
            })
            .unwrap_or(bytes.len());
        for number in [zeros, length] {
            pieces.extend(u32::try_from(number).expect("a small file").to_le_bytes());
        }
        pieces.extend(&bytes[..length]);
        rest = &bytes[length..];
    }
    pieces
}

/// Everything that a database says of itself: the schema, the rows, the numbers in its header.
fn described(path: &Path) -> String {
    let database = Connection::open(path).expect("a database");
    let number = |name: &str| {
        let value = database.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        format!("{name} = {:?}\n", value.expect("a pragma"))
    };
    let numbers = ["page_size", "auto_vacuum", "journal_mode", "encoding", "integrity_check"].map(number);
    format!("{}{}", numbers.concat(), dump(&database))
}

#[test]
fn file_of_an_empty_database_is_that_of_the_schema() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let content = made_of_sql(folder.path());
    let pieces = pack(&content);
    assert_eq!(new_database::unpack(&pieces), content, "nothing is lost");
    if std::env::var_os("VM_SYSTEM_BLESS").is_some() {
        let place: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite/new_database.bin");
        std::fs::write(place, &pieces).expect("the source is writable");
        return;
    }
    let copied = folder.path().join("copied.db");
    std::fs::write(&copied, new_database::unpack(SCHEMA.new)).expect("it is ours");
    let made = folder.path().join("made.db");
    assert_eq!(described(&copied), described(&made), "VM_SYSTEM_BLESS=1 writes new_database.bin");
}

#[tokio::test]
async fn start_that_was_killed_is_followed_by_one_that_makes_the_file() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let [database, new] = ["vm-system.db", "vm-system.db-new"].map(|name| folder.path().join(name));
    std::fs::write(&database, "").expect("the folder is ours");
    std::fs::write(&new, vec![1; 1 << 20]).expect("the folder is ours");
    let store = open_sqlite(options(folder.path())).expect("an empty file is no database yet");
    assert!(store.check().await.expect("readable").ok);
    store.shutdown().await;
    assert!(!new.exists());
    assert_eq!(std::fs::metadata(&database).expect("a file").permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn link_to_an_empty_file_stays_a_link() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let elsewhere = tempfile::tempdir().expect("a temporary folder can be made");
    let (link, target) = (folder.path().join("vm-system.db"), elsewhere.path().join("real.db"));
    std::fs::write(&target, "").expect("the folder is ours");
    std::os::unix::fs::symlink(&target, &link).expect("the folder is ours");
    open_sqlite(options(folder.path())).expect("a new database").shutdown().await;
    assert_eq!(std::fs::read_link(&link).expect("a link"), target);
    assert!(std::fs::metadata(&target).expect("a file").len() > 0);
    open_sqlite(options(folder.path())).expect("the same one").shutdown().await;
}

#[tokio::test]
async fn database_behind_a_link_has_one_supervisor_and_its_log_beside_it() {
    let [folder, other, elsewhere] =
        [(); 3].map(|()| tempfile::tempdir().expect("a temporary folder can be made"));
    let (link, target) = (folder.path().join("vm-system.db"), elsewhere.path().join("real.db"));
    // Another link in between, and no file behind it yet.
    std::os::unix::fs::symlink("again.db", &link).expect("the folder is ours");
    std::os::unix::fs::symlink(&target, folder.path().join("again.db")).expect("the folder is ours");
    let store = open_sqlite(options(folder.path())).expect("a new database");
    assert!(elsewhere.path().join("real.db-wal").exists(), "the log is beside the file");
    let direct = StoreOptions { database: Some(target.clone()), ..options(other.path()) };
    let error = open_sqlite(direct).expect_err("it has a supervisor");
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    let (store, killed) = (store, elsewhere.path().join("real.db"));
    store.apply(running()).await.expect("new");
    store.shutdown().await;
    // A database that was emptied beside its log is no new one, whatever name it has.
    std::fs::write(&killed, "").expect("the folder is ours");
    std::fs::write(elsewhere.path().join("real.db-wal"), [1; 64]).expect("the folder is ours");
    let error = open_sqlite(options(folder.path())).expect_err("its log is there");
    assert!(matches!(error, OpenError::Emptied { .. }), "{error}");
}

#[test]
fn what_is_no_database_of_ours_is_refused_before_it_is_changed() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("vm-system.db");
    Connection::open(&path).and_then(|c| c.execute_batch("CREATE TABLE x (y)")).expect("a new file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("the file is ours");
    let before = std::fs::read(&path).expect("the file is ours");
    let error = open_sqlite(options(folder.path())).expect_err("another program's");
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(std::fs::read(&path).expect("the file is ours"), before);
    assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o644);
    assert!(!folder.path().join("vm-system.db-wal").exists());

    std::fs::remove_file(&path).expect("the file is ours");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("the folder is ours");
    let error = open_sqlite(options(folder.path())).expect_err("nobody would write to it");
    assert!(error.to_string().contains("not a regular file"), "{error}");
}
