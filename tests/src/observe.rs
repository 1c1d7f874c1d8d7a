//! Processes, descriptors and memory as the kernel reports them.

use crate::PATIENCE;
use crate::command::readable;
use std::collections::BTreeMap;
use vm_system_sandbox::pidfd::PidFd;

/// All descendants of a process, as pidfds, which cannot refer to a later process.
pub fn descendants(pid: u32) -> Vec<PidFd> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for number in vm_system_sandbox::inspect::processes().expect("/proc") {
        // A process may end while the list is read.
        let Ok(status) = vm_system_sandbox::inspect::status(number) else { continue };
        children.entry(status.ppid).or_default().push(number);
    }
    let mut found = Vec::new();
    let mut left = vec![pid];
    while let Some(parent) = left.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            left.push(child);
            found.extend(PidFd::open(child));
        }
    }
    found
}

/// The brokers of a daemon: its processes of that mode.
pub fn brokers(daemon: u32) -> Vec<PidFd> {
    in_mode(daemon, "broker")
}

/// The processes of a daemon that were started in a hidden mode.
pub fn in_mode(daemon: u32, mode: &str) -> Vec<PidFd> {
    started_with(daemon, |arguments| arguments.get(1) == Some(&mode.as_bytes()))
}

/// The processes of a daemon that were started with this argument.
pub fn with_argument(daemon: u32, argument: &str) -> Vec<PidFd> {
    started_with(daemon, |arguments| arguments.contains(&argument.as_bytes()))
}

fn started_with(daemon: u32, are: impl Fn(&[&[u8]]) -> bool) -> Vec<PidFd> {
    let mut all = descendants(daemon);
    all.retain(|process| {
        let line = process.pid().ok().and_then(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).ok());
        line.is_some_and(|line| are(&line.split(|byte| *byte == 0).collect::<Vec<_>>()))
    });
    all
}

/// Command line, parent and state of a process, for the message of a failure.
pub fn description(pid: u32) -> String {
    let text = |name| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let status = text("status");
    let field = |key| status.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    format!("{pid} {:?} {} {}", text("cmdline").replace('\0', " "), field("PPid:"), field("State:"))
}

/// Waits for the exit of all these processes; fails at the deadline.
#[track_caller]
pub fn all_end(processes: &[PidFd]) {
    for process in processes {
        assert!(readable(process, PATIENCE), "process {:?} was left behind", process.pid());
    }
}

/// Whether a process exists.
pub fn is_alive(pid: u32) -> bool {
    PidFd::open(pid).is_ok_and(|process| process.is_alive())
}

/// Open descriptors of a process.
pub fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).expect("descriptors").count()
}

/// Anonymous resident memory of a process (KiB).
pub fn anonymous_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
