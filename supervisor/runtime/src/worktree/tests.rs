//! Paths, links and resolution against real folders.

use super::{
    ModuleFile, RootSettings, Roots, Wanted, Worktree, WorktreeClient, WorktreeError, clean_relative,
    first_existing,
};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;
use vm_system_policy::paths::{PathRules, Pattern};
use vm_system_record::RecordedWorktree;

const CAP: u64 = 1_024;

/// As an administrator.
fn open(path: &Path, roots: &Roots) -> Result<Worktree, WorktreeError> {
    Worktree::open(path, roots, &WorktreeClient::Administrator)
}

fn everywhere() -> Roots {
    Roots::of_this_process().expect("there is a root")
}

fn root(path: &Path) -> RootSettings {
    RootSettings { path: path.to_owned(), ..RootSettings::default() }
}

fn roots(settings: &[RootSettings]) -> Roots {
    Roots::new(settings, None).expect("the roots are there")
}

fn worktree() -> (TempDir, Worktree) {
    let dir = TempDir::new().expect("a temporary folder");
    fs::create_dir_all(dir.path().join("lib/deep")).expect("folders");
    fs::create_dir(dir.path().join("src")).expect("a folder");
    for (name, text) in [
        ("main.js", "main"),
        ("lib/a.js", "a"),
        ("lib/a.mjs", "a as a module"),
        ("lib/index.js", "index"),
        ("lib/deep/b.js", "b"),
        ("src/c.js", "c"),
        ("data.json", "{}"),
    ] {
        fs::write(dir.path().join(name), text).expect("a file");
    }
    let worktree = open(dir.path(), &everywhere()).expect("the worktree opens");
    (dir, worktree)
}

fn find(worktree: &Worktree, candidates: &[&str]) -> Result<String, String> {
    find_among(worktree, candidates, Some(&PathRules::everything())).map(|found| found.path)
}

fn find_among(
    worktree: &Worktree,
    candidates: &[&str],
    load: Option<&PathRules>,
) -> Result<ModuleFile, String> {
    let candidates: Vec<String> = candidates.iter().map(|&candidate| candidate.to_owned()).collect();
    let wanted = Wanted { candidates: &candidates, import: false, package: true, esm: false, cap: CAP, load };
    first_existing(worktree, wanted).map_err(|error| error.code)
}

#[test]
fn lexical_rules_refuse_what_can_only_lead_outside() {
    for bad in ["", "  ", "/etc/passwd", "../x", "a/../../x", "a/..", "a\0b", ".", "./", &"x/".repeat(3_000)]
    {
        assert!(matches!(clean_relative(bad), Err(WorktreeError::InvalidPath(_))), "{bad:?}");
    }
    assert_eq!(clean_relative("./a//b/./c.js").expect("clean"), "a/b/c.js");
    assert_eq!(clean_relative("..a/b..js").expect("names with dots"), "..a/b..js");
}

#[test]
fn links_inside_are_followed_and_links_outside_are_refused() {
    let (dir, worktree) = worktree();
    let outside = TempDir::new().expect("another folder");
    fs::write(outside.path().join("secret.js"), "secret").expect("a file");
    symlink("lib/a.js", dir.path().join("inside.js")).expect("a link");
    symlink(outside.path().join("secret.js"), dir.path().join("outside.js")).expect("a link");
    symlink(outside.path(), dir.path().join("folder")).expect("a link");
    symlink("../main.js", dir.path().join("lib/up.js")).expect("a link");
    symlink("loop.js", dir.path().join("loop.js")).expect("a link");
    assert_eq!(worktree.read_text("inside.js", CAP).expect("followed"), "a");
    assert_eq!(worktree.read_text("lib/up.js", CAP).expect("stays inside"), "main");
    for bad in ["outside.js", "folder/secret.js", "loop.js"] {
        assert!(matches!(worktree.read_text(bad, CAP), Err(WorktreeError::InvalidPath(_))), "{bad}");
    }
}

#[test]
fn only_regular_utf8_files_below_the_cap_are_read() {
    let (dir, worktree) = worktree();
    nix::unistd::mkfifo(&dir.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
    fs::write(dir.path().join("latin1.js"), [0xe9]).expect("a file");
    fs::write(dir.path().join("bom.js"), "\u{feff}1").expect("a file");
    fs::write(dir.path().join("cap.js"), "x".repeat(CAP as usize)).expect("a file");
    fs::write(dir.path().join("big.js"), "x".repeat(CAP as usize + 1)).expect("a file");
    for missing in ["nothing.js", "lib", "fifo", "main.js/x"] {
        assert!(matches!(worktree.read_text(missing, CAP), Err(WorktreeError::NotFound(_))), "{missing}");
    }
    assert!(matches!(worktree.read_text("latin1.js", CAP), Err(WorktreeError::Unreadable(_))));
    assert!(matches!(worktree.read_text("big.js", CAP), Err(WorktreeError::TooLarge { .. })));
    assert_eq!(worktree.read_text("cap.js", CAP).expect("exactly the cap").len() as u64, CAP);
    assert_eq!(worktree.read_text("bom.js", CAP).expect("without the mark"), "1");
}

#[test]
fn worktrees_outside_the_operators_roots_are_refused_wherever_links_point() {
    let allowed = TempDir::new().expect("a folder");
    let other = TempDir::new().expect("a folder");
    fs::create_dir(allowed.path().join("w")).expect("a folder");
    symlink(other.path(), allowed.path().join("link")).expect("a link");
    let roots = roots(&[root(allowed.path())]);
    assert!(open(&allowed.path().join("w"), &roots).is_ok());
    for bad in [other.path().to_owned(), allowed.path().join("link")] {
        assert!(matches!(open(&bad, &roots), Err(WorktreeError::NotPermitted(_))), "{bad:?}");
    }
    for bad in ["relative", "/nowhere/at/all", "/etc/passwd"] {
        let opened = open(bad.as_ref(), &everywhere());
        assert!(matches!(opened, Err(WorktreeError::Worktree(_))), "{bad}");
    }
}

#[test]
fn errors_reveal_nothing_outside_of_the_operators_roots() {
    let (allowed, other) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    fs::write(other.path().join("file"), "").expect("a file");
    fs::write(allowed.path().join("file"), "").expect("a file");
    symlink(other.path(), allowed.path().join("link")).expect("a link");
    let roots = roots(&[root(allowed.path())]);
    let message = |path: &std::path::Path| {
        let opened = open(path, &roots);
        assert!(
            Worktree::open_cached(path, None, &roots, &WorktreeClient::Administrator).is_none(),
            "{path:?}"
        );
        let error = opened.expect_err("refused");
        (error.to_string().replace(&path.display().to_string(), "…"), error)
    };
    let up = allowed.path().join("..").join(other.path().file_name().expect("a name"));
    for outside in [other.path(), &up, &allowed.path().join("link")] {
        let there = message(outside);
        assert!(matches!(there.1, WorktreeError::NotPermitted(_)), "{there:?}");
        for name in ["file", "nothing", "nothing/more", "file/more"] {
            assert_eq!(message(&outside.join(name)).0, there.0, "{outside:?} {name}");
        }
    }
    for (name, why) in [("nothing", "does not exist"), ("file", "is not a folder"), ("a/b", "does not exist")]
    {
        assert!(message(&allowed.path().join(name)).0.ends_with(why), "{name}");
    }
}

#[test]
fn the_first_candidate_that_exists_is_read() {
    let (_dir, worktree) = worktree();
    assert_eq!(find(&worktree, &["lib/a", "lib/a.js", "main.js"]).as_deref(), Ok("lib/a.js"));
    assert_eq!(find(&worktree, &["lib", "./lib//index.js"]).as_deref(), Ok("lib/index.js"));
    assert_eq!(find(&worktree, &["nothing"]), Err("MODULE_NOT_FOUND".to_owned()));
    assert_eq!(find(&worktree, &[]), Err("MODULE_NOT_FOUND".to_owned()));
    // A hostile worker's paths.
    for bad in ["", "/etc/passwd", "../x", "lib/../../x", "a\0b", &"lib/".repeat(1_000_000)] {
        assert_eq!(
            find(&worktree, &[bad, "main.js"]).as_deref(),
            Ok("main.js"),
            "{}",
            &bad[..bad.len().min(20)]
        );
    }
    let many: Vec<&str> = std::iter::repeat_n("nothing", 1_000).chain(["main.js"]).collect();
    assert_eq!(find(&worktree, &many), Err("MODULE_NOT_FOUND".to_owned()), "too many");
}

#[test]
fn a_file_comes_with_the_package_file_that_applies_to_it() {
    let (dir, worktree) = worktree();
    fs::create_dir_all(dir.path().join("node_modules/x/dist/deep")).expect("folders");
    fs::create_dir_all(dir.path().join("node_modules/none")).expect("folders");
    for (name, text) in [
        ("package.json", "root"),
        ("node_modules/x/package.json", "x"),
        ("node_modules/x/dist/deep/a.js", ""),
        ("node_modules/none/a.js", ""),
    ] {
        fs::write(dir.path().join(name), text).expect("a file");
    }
    let package = |path: &str, rules: &PathRules| {
        find_among(&worktree, &[path], Some(rules)).expect("found").package.map(|package| package.source)
    };
    let all = PathRules::everything();
    assert_eq!(package("node_modules/x/dist/deep/a.js", &all).as_deref(), Some("x"));
    assert_eq!(package("lib/deep/b.js", &all).as_deref(), Some("root"));
    assert_eq!(package("node_modules/none/a.js", &all), None);
    let rules = PathRules::one(vec![Pattern::parse("lib/**").expect("a pattern")]);
    assert_eq!(package("lib/deep/b.js", &rules), None, "not covered");
}

#[test]
fn only_what_path_patterns_cover_is_loaded_and_by_no_other_name() {
    let (dir, worktree) = worktree();
    symlink("../main.js", dir.path().join("lib/link.js")).expect("a link");
    symlink("src", dir.path().join("lib/folder")).expect("a link");
    let rules = PathRules::one(vec![Pattern::parse("lib/**").expect("a pattern")]);
    let found = |path| find_among(&worktree, &[path], Some(&rules)).map(|found| found.path);
    assert_eq!(found("lib/a.js").as_deref(), Ok("lib/a.js"));
    for bad in ["main.js", "data.json", "lib/link.js", "lib/folder/c.js"] {
        assert_eq!(found(bad), Err("MODULE_NOT_ALLOWED".to_owned()), "{bad}");
    }
    assert_eq!(found("lib/nothing"), Err("MODULE_NOT_FOUND".to_owned()));
    let nothing = find_among(&worktree, &["lib/a.js"], None).map(|found| found.path);
    assert_eq!(nothing, Err("MODULE_NOT_ALLOWED".to_owned()));
}

#[test]
fn links_of_proc_and_other_mounts_are_refused() {
    let dir = TempDir::new().expect("a folder");
    symlink("/proc/self/root", dir.path().join("link")).expect("a link");
    symlink(format!("/proc/{}/cwd", std::process::id()), dir.path().join("cwd")).expect("a link");
    let fd = fs::File::open(dir.path()).expect("open");
    let by_number = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
    let everywhere = everywhere();
    for magic in ["/proc/self/root/etc", "/proc/self/cwd", "/proc/1/root", "/dev/fd/0", &by_number] {
        let opened = open(magic.as_ref(), &everywhere);
        assert!(matches!(opened, Err(WorktreeError::NotPermitted(_))), "{magic}: {opened:?}");
    }
    let beneath = roots(&[root(dir.path())]);
    for link in ["link", "link/etc", "cwd"] {
        let opened = open(&dir.path().join(link), &beneath);
        assert!(matches!(opened, Err(WorktreeError::NotPermitted(_))), "{link}: {opened:?}");
    }
    // `/proc` is a mount of its own on every machine.
    let at = |cross_mounts| roots(&[RootSettings { cross_mounts, ..root("/".as_ref()) }]);
    assert!(matches!(open("/proc".as_ref(), &at(false)), Err(WorktreeError::NotPermitted(_))));
    // The folder of the kernel can be opened only with all mounts; one in memory is a folder of files.
    assert!(matches!(open("/proc".as_ref(), &at(true)), Err(WorktreeError::NotPermitted(_))));
    if Path::new("/dev/shm").is_dir() {
        assert!(open("/dev/shm".as_ref(), &at(true)).is_ok());
    }
    let worktree = open("/".as_ref(), &at(false)).expect("the root itself");
    let read = worktree.read_text("proc/version", CAP);
    assert!(matches!(read, Err(WorktreeError::InvalidPath(_))), "{read:?}");
    let worktree = open("/".as_ref(), &at(true)).expect("the root itself");
    assert!(matches!(worktree.read_text("proc/version", CAP), Err(WorktreeError::InvalidPath(_))));
}

#[test]
fn a_token_names_only_folders_beneath_roots_that_list_it() {
    let dir = TempDir::new().expect("a folder");
    let open_as = |owners: Option<&[&str]>, token: &str| {
        let owners = owners.map(|owners| owners.iter().map(|&owner| owner.to_owned()).collect());
        let roots = roots(&[RootSettings { owners, ..root(dir.path()) }]);
        Worktree::open(dir.path(), &roots, &WorktreeClient::of_owner(token)).is_ok()
    };
    assert!(open_as(Some(&["uid:1", "ci"]), "ci"));
    assert!(!open_as(Some(&["uid:1", "ci"]), "other"));
    assert!(!open_as(None, "ci"));
    for (owner, why) in [("user:no-such-user-here", "no user"), ("uid:x", "uid:NUMBER"), ("", "token")] {
        let settings = RootSettings { owners: Some(vec![owner.to_owned()]), ..root(dir.path()) };
        let error = Roots::new(&[settings], None).expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn bearer_of_a_revoked_token_names_no_folder() {
    let dir = TempDir::new().expect("a folder");
    let listed = roots(&[RootSettings { owners: Some(vec!["ci".to_owned()]), ..root(dir.path()) }]);
    assert!(Worktree::open(dir.path(), &listed, &WorktreeClient::of_owner("ci")).is_ok());
    let revoked = Worktree::open(dir.path(), &listed, &WorktreeClient::Revoked);
    assert!(matches!(revoked, Err(WorktreeError::NotPermitted(_))));
}

#[test]
fn a_folder_that_was_replaced_is_another_worktree() {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("w");
    fs::create_dir(&path).expect("a folder");
    let first = open(&path, &everywhere()).expect("it opens");
    assert!(first.is_same(&open(&path, &everywhere()).expect("it opens")));
    fs::rename(&path, dir.path().join("moved")).expect("renamed");
    fs::create_dir(&path).expect("a folder");
    assert!(!first.is_same(&open(&path, &everywhere()).expect("it opens")));
}

#[test]
fn a_recorded_worktree_of_another_user_is_closed_to_a_supervisor_with_its_own_rights_only() {
    let dir = TempDir::new().expect("a folder");
    fs::create_dir(dir.path().join("w")).expect("a folder");
    let own = nix::unistd::geteuid().as_raw();
    let (roots, client) = (roots(&[root(dir.path())]), WorktreeClient::Administrator);
    let first = open(&dir.path().join("w"), &roots).expect("it opens");
    let recorded = RecordedWorktree::clone(first.recorded().expect("it is recorded"));
    assert_eq!((recorded.uid, &*recorded.beneath, &recorded.user), (own, "w", &None));
    let again = |recorded: &RecordedWorktree| Worktree::open_recorded(recorded, &roots, &client);
    assert!(again(&recorded).expect("it opens").is_same(&first));
    let cached = Worktree::open_cached(dir.path(), Some(&recorded), &roots, &client);
    assert!(cached.is_none_or(|cached| cached.is_same(&first)));
    let of_other = RecordedWorktree { uid: own + 1, ..recorded.clone() };
    assert!(matches!(again(&of_other), Err(WorktreeError::UserNotPermitted(_))));
    assert!(Worktree::open_cached(dir.path(), Some(&of_other), &roots, &client).is_none());
    for beneath in ["../w", "/etc", "none"] {
        let elsewhere = RecordedWorktree { beneath: beneath.to_owned(), ..recorded.clone() };
        assert!(again(&elsewhere).is_err(), "{beneath}");
    }
    let removed = RecordedWorktree { root: "/removed".to_owned(), ..recorded };
    assert!(matches!(again(&removed), Err(WorktreeError::RootRemoved(_))));
}

#[test]
fn a_root_that_is_configured_by_a_link_opens_no_way_around_another_root() {
    let dir = TempDir::new().expect("a folder");
    fs::create_dir_all(dir.path().join("outer/inner/deep")).expect("folders");
    fs::create_dir(dir.path().join("outer/free")).expect("a folder");
    symlink("outer", dir.path().join("link")).expect("a link");
    let of = |path: &str, owner: &str| RootSettings {
        owners: Some(vec![owner.to_owned()]),
        ..root(&dir.path().join(path))
    };
    let roots = roots(&[of("link", "one"), of("outer/inner", "two")]);
    let may = |path: &str, token: &str| {
        Worktree::open(&dir.path().join(path), &roots, &WorktreeClient::of_owner(token)).is_ok()
    };
    for spelled in ["link", "outer"] {
        assert!(may(&format!("{spelled}/free"), "one") && !may(&format!("{spelled}/free"), "two"));
        for inner in ["inner", "inner/deep"] {
            let path = format!("{spelled}/{inner}");
            assert!(!may(&path, "one") && may(&path, "two"), "{path}");
        }
        assert!(!may(spelled, "one"), "a folder above another root");
    }
}

/// Their files are no user's; `self` in `/proc` is whichever process opens it.
#[test]
fn folders_of_the_kernel_are_no_worktrees_and_their_files_none_of_a_worktree() {
    for path in ["/proc", "/proc/self", "/proc/1", "/sys", "/sys/kernel", "/dev"] {
        let opened = open(Path::new(path), &everywhere());
        let is_refused = matches!(opened, Err(WorktreeError::NotPermitted(_)));
        // `/proc/self` is a link; where the devices have no file system of their own they are ordinary files.
        assert!(is_refused || path == "/dev" && opened.is_ok(), "{path}: {opened:?}");
        let client = WorktreeClient::Administrator;
        let cached = Worktree::open_cached(Path::new(path), None, &everywhere(), &client);
        assert!(cached.is_none() || path == "/dev", "{path}");
    }
    let all = open(Path::new("/"), &everywhere()).expect("the root itself");
    for path in ["proc/version", "sys/kernel/uevent_seqnum"] {
        let found = find(&all, &[path]);
        assert!(found.is_err(), "{path}: {found:?}");
    }
}

#[test]
fn without_agents_other_users_name_only_folders_beneath_roots_that_list_them() {
    let dir = TempDir::new().expect("a folder");
    let own = nix::unistd::geteuid().as_raw();
    let other = own + 1;
    let may = |owners: Option<&[u32]>, client: &WorktreeClient| {
        let owners = owners.map(|owners| owners.iter().map(|uid| format!("uid:{uid}")).collect());
        let roots = roots(&[RootSettings { owners, ..root(dir.path()) }]);
        Worktree::open(dir.path(), &roots, client)
    };
    let user = WorktreeClient::User;
    assert!(may(None, &user(own)).is_ok(), "its own rights");
    assert!(may(Some(&[other]), &user(own)).is_err(), "a list is complete");
    assert!(may(Some(&[other]), &user(other)).is_ok());
    assert!(matches!(may(None, &user(other)), Err(WorktreeError::NotPermitted(_))));
    let token = |uid| WorktreeClient::Token { name: "ci".to_owned(), uid };
    assert!(may(None, &token(Some(other))).is_err() && may(None, &token(None)).is_err());
    assert!(may(Some(&[other]), &token(Some(other))).is_ok());
    let as_user = |user: &str| may(None, &WorktreeClient::AdministratorAs(user.to_owned()));
    assert!(as_user(&own.to_string()).is_ok());
    let error = as_user(&other.to_string()).expect_err("another user").to_string();
    assert!(error.contains("only a daemon that was started as root"), "{error}");
    let error = as_user("no-such-user-here").expect_err("no user").to_string();
    assert!(error.contains("there is no user"), "{error}");
}
