//! Inspection of a process of the jail from outside, through `/proc`. Uses nothing that the process itself reports.

use crate::pidfd::PidFd;
use std::fs;
use std::io::{self, Read as _};

/// The fields of `/proc/<pid>/status` that show the walls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The parent, in our pid namespace.
    pub ppid: u32,
    /// The process's pid in each namespace, ours first.
    pub ns_pids: Vec<u32>,
    /// Permitted, effective and ambient capabilities, all or-ed.
    pub capabilities: u64,
    /// The capabilities that the program of an `execve` may get, if its file has them: a user manager gives some to all that it
    /// starts.
    pub inheritable: u64,
    /// The bounding set alone.
    pub bounding: u64,
    /// `no_new_privs`.
    pub no_new_privs: bool,
    /// Seccomp mode: 2 = filter.
    pub seccomp: u32,
    /// Number of filters.
    pub filters: u32,
    /// Effective uid in our user namespace.
    pub uid: u32,
    /// Virtual memory (bytes).
    pub mapped_bytes: u64,
}

/// Why a process is not in the jail.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// `/proc` could not be read.
    #[error("cannot read /proc of process {pid}: {error}")]
    Unreadable {
        /// The process.
        pid: u32,
        /// The failure of the read.
        error: io::Error,
    },
    /// A wall is missing.
    #[error("process {pid} is not jailed: {what}")]
    NotJailed {
        /// The process.
        pid: u32,
        /// The missing wall.
        what: String,
    },
}

/// Reads the status of a process.
pub fn status(pid: u32) -> io::Result<Status> {
    parse_status(&read_whole(&format!("/proc/{pid}/status"))?)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "status without the expected lines"))
}

/// The numbers of all processes that `/proc` shows.
pub fn processes() -> io::Result<Vec<u32>> {
    let names = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.parse().ok()).collect())
}

/// Reads a small file of `/proc`. `read_to_string` would make two more system calls for the size, which is reported as 0, and for
/// the offset.
pub(crate) fn read_whole(path: &str) -> io::Result<String> {
    const STEP: usize = 4096;
    let mut file = fs::File::open(path)?;
    let mut bytes = vec![0; STEP];
    let mut len = 0;
    loop {
        match file.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if len == bytes.len() {
            bytes.resize(len + STEP, 0);
        }
    }
    bytes.truncate(len);
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn parse_status(text: &str) -> Option<Status> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let number = |name: &str| field(name).and_then(|value| value.parse::<u32>().ok());
    let set = |name: &str| field(name).and_then(|value| u64::from_str_radix(value, 16).ok());
    Some(Status {
        ppid: number("PPid")?,
        ns_pids: field("NSpid")?
            .split_ascii_whitespace()
            .map(|pid| pid.parse().ok())
            .collect::<Option<_>>()?,
        capabilities: set("CapPrm")? | set("CapEff")? | set("CapAmb")?,
        inheritable: set("CapInh")?,
        bounding: set("CapBnd")?,
        no_new_privs: number("NoNewPrivs")? == 1,
        seccomp: number("Seccomp")?,
        filters: number("Seccomp_filters").unwrap_or(0),
        uid: field("Uid")?.split_ascii_whitespace().nth(1)?.parse().ok()?,
        mapped_bytes: field("VmSize")
            .and_then(|value| value.strip_suffix("kB"))
            .and_then(|value| value.trim().parse::<u64>().ok())
            .unwrap_or(0)
            * 1024,
    })
}

/// The expected properties of a jailed process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// In separate namespaces.
    pub namespaces: bool,
}

/// Checks the walls of a process: capabilities gone, `no_new_privs`, seccomp filter, own pid namespace.
pub fn verify(pid: u32, expected: Expected) -> Result<Status, InspectError> {
    let status = status(pid).map_err(|error| InspectError::Unreadable { pid, error })?;
    let missing = |what: String| Err(InspectError::NotJailed { pid, what });
    let capabilities = status.capabilities | status.inheritable;
    if capabilities != 0 {
        return missing(format!("capabilities {capabilities:x}"));
    }
    if expected.namespaces && status.bounding != 0 {
        return missing(format!("capability bounding set {:x}", status.bounding));
    }
    if !status.no_new_privs {
        return missing("no_new_privs is off".to_owned());
    }
    if status.seccomp != 2 {
        return missing(format!("seccomp mode {}", status.seccomp));
    }
    if expected.namespaces && status.ns_pids.len() < 2 {
        return missing("no separate pid namespace".to_owned());
    }
    Ok(status)
}

const NAMESPACES: [&str; 6] = ["user", "pid", "net", "ipc", "uts", "mnt"];

/// Checks that the process shares no namespace with this one. `Ok(false)`: the links cannot be read.
pub fn verify_namespaces(pid: u32) -> Result<bool, InspectError> {
    for name in NAMESPACES {
        let unreadable = |error| InspectError::Unreadable { pid, error };
        let ours = fs::read_link(format!("/proc/self/ns/{name}")).map_err(unreadable)?;
        match fs::read_link(format!("/proc/{pid}/ns/{name}")) {
            Ok(theirs) if theirs == ours => {
                return Err(InspectError::NotJailed { pid, what: format!("shares our {name} namespace") });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
            Err(error) => return Err(unreadable(error)),
        }
    }
    Ok(true)
}

/// Memory of a process (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Resident, shared pages counted whole.
    pub rss: u64,
    /// Resident, shared pages divided among their users.
    pub pss: u64,
    /// Resident, not shared.
    pub uss: u64,
}

/// Reads `/proc/<pid>/smaps_rollup` (about 26 µs for an idle worker) of a process that runs before and after the read.
pub fn memory(process: &PidFd) -> io::Result<Memory> {
    let pid = process.pid()?;
    let text = read_whole(&format!("/proc/{pid}/smaps_rollup"))?;
    process.signal(0)?;
    Ok(parse_memory(&text))
}

/// Whether a process that runs before and after the read is stopped by a signal or a tracer.
pub fn is_stopped(process: &PidFd) -> io::Result<bool> {
    let pid = process.pid()?;
    let text = read_whole(&format!("/proc/{pid}/stat"))?;
    process.signal(0)?;
    // The name of the process may contain anything.
    Ok(text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't'])))
}

fn parse_memory(text: &str) -> Memory {
    let mut memory = Memory::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let Some(kib) = value.trim().strip_suffix(" kB").and_then(|kib| kib.trim().parse::<u64>().ok())
        else {
            continue;
        };
        match name {
            "Rss" => memory.rss = kib * 1024,
            "Pss" => memory.pss = kib * 1024,
            "Private_Clean" | "Private_Dirty" => memory.uss += kib * 1024,
            _ => {}
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_this_process_is_not_that_of_a_jail() {
        let me = std::process::id();
        let status = status(me).expect("status");
        assert_eq!(status.ns_pids.first(), Some(&me));
        assert!(status.mapped_bytes > 0);
        assert!(matches!(
            verify(me, Expected { namespaces: true }),
            Err(InspectError::NotJailed { pid, .. }) if pid == me
        ));
        assert!(verify_namespaces(me).is_err());
    }

    #[test]
    fn memory_sums_the_private_pages() {
        let text = "55-7f ---p 0 00:00 0 [rollup]\nRss:    100 kB\nPss:     40 kB\nPrivate_Clean:  4 kB\n\
                    Private_Dirty:        20 kB\nSwap: 0 kB\n";
        assert_eq!(parse_memory(text), Memory { rss: 102_400, pss: 40_960, uss: 24_576 });
    }
}
