//! Counts the processes that the kernel's out-of-memory killer has ended in the cgroup of this process: `oom_kill` in
//! `memory.events` (cgroup v2) or `memory.oom_control` (v1). The count is raised before the process is killed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Large enough for either file (bytes).
const CONTENT_BYTES: usize = 4_096;

/// The count of one cgroup and of those beneath it.
#[derive(Debug)]
pub struct OomKills(File);

impl OomKills {
    /// Of the cgroup of this process; none where there is no such count: the root cgroup, or no memory controller.
    pub fn of_this_process() -> Option<Self> {
        let memberships = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let file = candidates(&memberships).find_map(|path| File::open(path).ok())?;
        let kills = Self(file);
        kills.count().is_ok().then_some(kills)
    }

    /// Of a group of cgroup v2; none without the memory controller.
    pub(crate) fn of_group(folder: &Path) -> Option<Self> {
        File::open(folder.join("memory.events")).ok().map(Self)
    }

    /// How many there were so far.
    pub fn count(&self) -> io::Result<u64> {
        let mut content = [0; CONTENT_BYTES];
        let read = self.0.read_at(&mut content, 0)?;
        parse(&String::from_utf8_lossy(&content[..read]))
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no field oom_kill"))
    }
}

/// Files that may have the count, by the lines of `/proc/self/cgroup` (cgroups(7)).
fn candidates(memberships: &str) -> impl Iterator<Item = PathBuf> {
    memberships.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?.trim_start_matches('/'));
        let (mount, file) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.events")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            ("/sys/fs/cgroup/memory", "memory.oom_control")
        } else {
            return None;
        };
        Some(PathBuf::from(mount).join(path).join(file))
    })
}

fn parse(content: &str) -> Option<u64> {
    content.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{candidates, parse};
    use std::path::PathBuf;

    #[test]
    fn count_is_found_in_both_versions() {
        let v2 = "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 0\n";
        assert_eq!(parse(v2), Some(3));
        assert_eq!(parse("oom_kill_disable 0\nunder_oom 0\noom_kill 12\n"), Some(12));
        assert_eq!(parse("oom_kill_disable 0\nunder_oom 0\n"), None, "an older kernel");
    }

    #[test]
    fn file_is_named_by_the_membership() {
        let found = |text| candidates(text).collect::<Vec<_>>();
        let v2 = "/sys/fs/cgroup/system.slice/vm-system.service/memory.events";
        assert_eq!(found("0::/system.slice/vm-system.service\n"), [PathBuf::from(v2)]);
        let v1 = "/sys/fs/cgroup/memory/a/b/memory.oom_control";
        assert_eq!(found("5:pids:/\n4:cpu,memory:/a/b\n")[..], [PathBuf::from(v1)]);
    }
}
