//! Folders of workspaces in a temporary place: who gets one, and what counts.

use super::*;
use std::os::unix::fs::symlink;
use vm_system_sandbox::identity::Identity;

const LIMITS: WorkspaceLimits =
    WorkspaceLimits { per_owner: 2, workspace_bytes: 100 << 10, owner_bytes: 150 << 10 };

fn workspace(owner: &str, id: &str) -> WorkspaceKey {
    WorkspaceKey { owner: owner.to_owned(), id: id.to_owned() }
}

struct Scene {
    place: tempfile::TempDir,
    workspaces: Workspaces,
}

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("tempdir");
        let workspaces = Workspaces::new(Some(place.path().join("workspaces")), LIMITS);
        Self { place, workspaces }
    }

    fn open(&self, owner: &str, id: &str) -> Result<OpenWorkspace, WorkspaceError> {
        let own = Identity::of_this_process().expect("an identity").ids;
        Ok(self.workspaces.open(&workspace(owner, id), own)?.expect("a folder"))
    }

    fn folder(&self, owner: &str, id: &str) -> PathBuf {
        let parent = self.place.path().join("workspaces").join(format!("owner-{}", digest(owner)));
        parent.join(name(&workspace(owner, id)))
    }

    fn write(&self, owner: &str, id: &str, file: &str, bytes: usize) {
        std::fs::write(self.folder(owner, id).join(file), vec![1; bytes]).expect("written");
    }
}

#[test]
fn every_owner_and_workspace_has_a_folder_of_its_own() {
    let names = [
        name(&workspace("a", "b")),
        name(&workspace("ab", "")),
        name(&workspace("", "ab")),
        name(&workspace("a", "../b")),
    ];
    let distinct: std::collections::HashSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert!(names.iter().all(|name| name.len() == 32 && name.chars().all(|char| char.is_ascii_hexdigit())));
}

#[test]
fn link_in_place_of_a_folder_is_not_followed() {
    let scene = Scene::new();
    let kept = scene.open("uid:1", "w").expect("made");
    drop(scene.open("uid:1", "w").expect("again"));
    let folder = scene.folder("uid:1", "w");
    std::fs::remove_dir(&folder).expect("remove");
    symlink("/", &folder).expect("link");
    assert!(scene.open("uid:1", "w").is_err());
    drop(kept);
    let own = Identity::of_this_process().expect("an identity").ids;
    assert!(Workspaces::default().open(&workspace("uid:1", "w"), own).expect("none").is_none());
}

#[test]
fn owner_has_a_number_of_workspaces_and_those_without_files_do_not_count() {
    let scene = Scene::new();
    for number in 0..5 {
        drop(scene.open("a", &number.to_string()).expect("leaves no folder"));
    }
    let _one = scene.open("a", "1").expect("the first");
    drop(scene.open("a", "2").expect("the second"));
    drop(scene.open("a", "3").expect("in place of the second, which was empty"));
    let two = scene.open("a", "2").expect("the second again");
    scene.write("a", "2", "main", 1);
    drop(two);
    let refused = scene.open("a", "3").expect_err("too many");
    assert!(matches!(refused, WorkspaceError::TooMany { most: 2, .. }), "{refused}");
    let _other = scene.open("b", "3").expect("another owner");
    let _same = scene.open("a", "2").expect("what exists");
}

#[test]
fn bytes_are_counted_of_a_workspace_and_of_all_of_its_owner() {
    let scene = Scene::new();
    let one = scene.open("a", "1").expect("one");
    assert_eq!(one.usage().growth(), 100 << 10);
    scene.write("a", "1", "main", 60 << 10);
    scene.write("a", "1", "main-journal", 20 << 10);
    assert_eq!(one.count().growth(), 20 << 10);
    assert!(one.usage().refusal().message.contains("80 KiB of 100 KiB"), "{:?}", one.usage().refusal());
    let two = scene.open("a", "2").expect("two");
    assert_eq!(two.usage().growth(), 70 << 10, "what is left to the owner");
    assert!(two.usage().refusal().message.contains("`owner_mb`"), "{:?}", two.usage().refusal());
    let other = scene.open("b", "1").expect("another owner");
    assert_eq!(other.usage().growth(), 100 << 10);
    drop((one, two));
    assert_eq!(scene.open("a", "2").expect("two").usage().growth(), 70 << 10, "counted again from the files");
}

#[test]
fn nothing_may_grow_beside_what_no_broker_creates() {
    let scene = Scene::new();
    let one = scene.open("a", "1").expect("one");
    std::fs::create_dir(scene.folder("a", "1").join("folder")).expect("created");
    assert!(one.count().is_excessive());
    assert_eq!(one.usage().growth(), 0);
    std::fs::remove_dir(scene.folder("a", "1").join("folder")).expect("removed");
    for number in 0..=FILES {
        scene.write("a", "1", &number.to_string(), 0);
    }
    assert!(one.count().is_excessive(), "files without content");
}

#[test]
fn sparse_file_counts_with_its_length() {
    let scene = Scene::new();
    let one = scene.open("a", "1").expect("one");
    let file = std::fs::File::create(scene.folder("a", "1").join("main")).expect("created");
    file.set_len(1 << 40).expect("sparse");
    assert!(one.count().is_excessive());
}

#[test]
fn folder_of_an_earlier_version_is_moved_to_its_owner() {
    let scene = Scene::new();
    let earlier = scene.place.path().join("workspaces").join(name(&workspace("a", "1")));
    std::fs::create_dir_all(&earlier).expect("created");
    std::fs::write(earlier.join("main"), vec![1; 40 << 10]).expect("written");
    let one = scene.open("a", "1").expect("moved");
    assert!(!earlier.exists());
    assert_eq!(one.usage().growth(), 60 << 10);
}
