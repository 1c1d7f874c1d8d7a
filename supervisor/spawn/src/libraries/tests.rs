//! Names and sources of libraries.

use super::*;
use std::collections::HashSet;
use std::os::unix::fs::{PermissionsExt as _, symlink};

#[test]
fn names_are_npms_and_nothing_that_leaves_a_folder() {
    for id in ["lodash", "a", "@scope/name", "x.y_z~1-2", "left-pad"] {
        assert_eq!(check_id(id), Ok(()), "{id}");
    }
    for id in [
        "",
        ".x",
        "_x",
        "-x",
        "A",
        "a/b",
        "@a",
        "@a/",
        "@/b",
        "@a/b/c",
        "../x",
        "a b",
        "a\0",
        &"a".repeat(215),
    ] {
        assert!(check_id(id).is_err(), "{id}");
    }
    for version in ["1", "4.17.21", "1.0.0-beta.1", "1.0.0+build"] {
        assert_eq!(check_version(version), Ok(()), "{version}");
    }
    for version in ["", "latest", "^1", "1/2", "1 2", "v1"] {
        assert!(check_version(version).is_err(), "{version}");
    }
    for global in ["_", "R", "$", "axios", "a1"] {
        assert_eq!(check_global(global), Ok(()), "{global}");
    }
    for global in ["", "1a", "a.b", "a-b", "ü"] {
        assert!(check_global(global).is_err(), "{global}");
    }
}

#[test]
fn catalog_is_found_by_id_and_by_name() {
    assert_eq!(catalog_entry("lodash").map(CatalogEntry::name).as_deref(), Some("lodash-4.17.21"));
    assert_eq!(catalog_entry("zustand-4.4.7").map(|entry| entry.global), Some("zustand"));
    assert_eq!(catalog_entry("lodash-4.17.20"), None);
    assert!(CATALOG.is_sorted_by_key(|entry| entry.id));
}

#[test]
fn source_is_read_as_it_was_stored_and_only_by_the_owner() {
    let state = tempfile::tempdir().expect("a folder");
    let library_store = LibraryStore::open(state.path()).expect("a library_store");
    let hash = library_store.put("module.exports = 1").expect("kept");
    assert_eq!(library_store.get(&hash).as_deref(), Ok("module.exports = 1"));
    let folder = state.path().join("libraries");
    let file = folder.join(format!("{}.js", hex(&hash)));
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    assert_eq!(
        LibraryStore::open(state.path()).expect("again").get(&hash).as_deref(),
        Ok("module.exports = 1")
    );
    library_store.remove(&hash).expect("removed");
    library_store.remove(&hash).expect("gone already");
    assert_eq!(library_store.get(&hash), Err(LibraryStoreError::Missing));
}

#[test]
fn changed_source_is_refused() {
    let state = tempfile::tempdir().expect("a folder");
    let library_store = LibraryStore::open(state.path()).expect("a library_store");
    let hash = library_store.put("1").expect("kept");
    let file = state.path().join("libraries").join(format!("{}.js", hex(&hash)));
    std::fs::write(&file, "2").expect("writable");
    assert_eq!(library_store.get(&hash), Err(LibraryStoreError::Changed));
    std::fs::remove_file(&file).expect("there");
    symlink("/dev/zero", &file).expect("a link");
    assert_eq!(library_store.get(&hash), Err(LibraryStoreError::Changed));
    std::fs::remove_file(&file).expect("there");
    std::fs::create_dir(&file).expect("a folder");
    assert_eq!(library_store.get(&hash), Err(LibraryStoreError::Changed));
}

#[test]
fn files_left_by_a_crash_are_removed_and_other_files_stay() {
    let state = tempfile::tempdir().expect("a folder");
    let library_store = LibraryStore::open(state.path()).expect("a library_store");
    let (kept, lost) = (library_store.put("1").expect("kept"), library_store.put("2").expect("kept"));
    let folder = state.path().join("libraries");
    std::fs::write(folder.join(format!("{}.js.new", hex(&[7; 32]))), "half").expect("writable");
    std::fs::write(folder.join("README"), "mine").expect("writable");
    library_store.sweep(&HashSet::from([kept])).expect("swept");
    assert_eq!(
        (library_store.get(&kept).as_deref(), library_store.get(&lost)),
        (Ok("1"), Err(LibraryStoreError::Missing))
    );
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("readable")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    assert_eq!(names.last().map(String::as_str), Some("README"));
    assert_eq!(names.len(), 2);
}
