//! Subtrees and groups, on the real hierarchy where one can be made.

use super::*;
use std::process::{Child, Command};

#[test]
fn own_folder_follows_from_membership_and_mounts() {
    let mounts = "24 1 0:22 / /sys rw - sysfs sysfs rw\n\
        30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    let folder = |memberships| own_folder(memberships, mounts);
    let unit = "/sys/fs/cgroup/system.slice/vm-system.service";
    assert_eq!(folder("0::/system.slice/vm-system.service\n"), Some(unit.into()));
    assert_eq!(folder("4:memory:/a\n0::/\n"), Some("/sys/fs/cgroup".into()));
    assert_eq!(folder("4:memory:/a\n"), None);
    let part = "31 24 0:26 /a/b /mnt rw - cgroup2 cgroup2 rw\n";
    assert_eq!(own_folder("0::/a/b/c\n", part), Some("/mnt/c".into()));
    assert_eq!(own_folder("0::/a\n", part), None, "not visible here");
}

#[test]
fn only_a_folder_of_the_hierarchy_is_taken() {
    for path in ["/tmp/vm-system-test", "relative", "/", "/sys/fs/cgroup/../../tmp/x"] {
        let refused = CgroupSubtree::claim_at(Path::new(path));
        assert!(matches!(refused, Err(CgroupError::NotCgroup(_))), "{path}: {refused:?}");
    }
}

/// A cgroup for tests, empty; removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn make(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("ours");
        let path = own_folder("0::/", &mounts)?.join(format!("vm-system-{name}-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    fn group(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir(&path).expect("a group");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = remove_group(&self.0);
    }
}

fn sleeper(group: &Path) -> Child {
    let child = Command::new("sleep").arg("60").spawn().expect("sleep");
    fs::write(group.join(PROCESSES), child.id().to_string()).expect("moved");
    child
}

/// The refusal of `claim`, without the move of this process, which other tests share.
fn refusal(path: &Path) -> String {
    refuse_others(path).map_err(|error| error.to_string()).err().unwrap_or_default()
}

#[test]
fn what_others_have_made_is_neither_ended_nor_used() {
    let Some(scratch) = Scratch::make("others") else {
        return vm_system_testkit::skip("cgroup-v2", "no cgroup v2 group can be made here");
    };
    assert_eq!(refusal(&scratch.0), "");
    for ours in [SUPERVISOR, ZYGOTES, "owner-a"] {
        scratch.group(ours);
    }
    assert_eq!(refusal(&scratch.0), "");
    let other = scratch.group("ssh.service");
    assert!(refusal(&scratch.0).contains("the group ssh.service"));
    fs::remove_dir(other).expect("empty");

    let mut child = sleeper(&scratch.0);
    assert!(refusal(&scratch.0).contains(&format!("the process {}", child.id())));
    child.kill().expect("kill");
    child.wait().expect("reap");
}

#[test]
fn a_group_has_processes_and_ends_with_them() {
    let Some(scratch) = Scratch::make("group") else {
        return vm_system_testkit::skip("cgroup-v2", "no cgroup v2 group can be made here");
    };
    let group = Cgroup::make(scratch.0.join("owner-a")).expect("a group");
    let leaf = group.child("command-1").expect("a leaf");
    for name in ["", "..", "a/b", "a\nb"] {
        assert!(group.child(name).is_err(), "{name:?}");
    }
    let mut child = sleeper(&scratch.0);
    let process = PidFd::open(child.id()).expect("pidfd");
    leaf.add(&process).expect("moved");
    let members = fs::read_to_string(scratch.0.join("owner-a/command-1/cgroup.procs")).expect("ours");
    assert_eq!(members, format!("{}\n", child.id()));
    assert_eq!(leaf.remove().map_err(|error| error.kind()), Err(io::ErrorKind::ResourceBusy));
    assert!(leaf.wait_until_empty(Duration::ZERO).is_err());
    // It has exited then, although it was not reaped.
    group.end(Duration::from_mins(1)).expect("empty");
    child.wait().expect("killed");
    assert!(leaf.add(&process).is_err(), "it has exited");
}

#[test]
fn another_user_can_use_a_subtree_that_it_was_given() {
    let Some(scratch) = Scratch::make("hand-over").filter(|_| nix::unistd::geteuid().is_root()) else {
        return vm_system_testkit::skip("cgroup-v2", "needs root and a cgroup v2 hierarchy");
    };
    fs::create_dir(scratch.0.join(SUPERVISOR)).expect("a group");
    let lock = File::open(&scratch.0).expect("open");
    let subtree = CgroupSubtree {
        path: scratch.0.clone(),
        controllers: Controllers::default(),
        started_beneath: false,
        _lock: lock,
    };
    let script = "read line; mkdir owner-b && echo $$ > owner-b/cgroup.procs && cat /proc/self/cgroup";
    let run = || {
        let mut child = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script])
            .current_dir(&scratch.0)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("setpriv");
        fs::write(scratch.0.join("supervisor/cgroup.procs"), child.id().to_string()).expect("moved");
        drop(child.stdin.take());
        let output = child.wait_with_output().expect("ended");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run(), "", "not given yet");
    subtree.hand_over(Ids { uid: 65_534, gid: 65_534 }).expect("handed over");
    let membership = run();
    assert!(
        membership.lines().any(|line| line.starts_with("0::") && line.ends_with("/owner-b")),
        "{membership}"
    );
}
