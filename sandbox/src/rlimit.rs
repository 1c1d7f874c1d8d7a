//! Resource limits: the constant ones of every process in the jail, and the session's own, set from outside.

use crate::sys;
use std::io;
use std::time::Duration;

/// Memory that a worker has besides its heap (bytes): the largest host reply while it arrives (its buffer doubles up to
/// 128 MiB) and is decoded (64 MiB), stacks, allocator slack. The engine enforces the exact limit of the heap.
pub const MEMORY_MARGIN_BYTES: u64 = 208 << 20;

/// Descriptors a worker may have: 0–2, its channel, one more during a fork.
pub const WORKER_DESCRIPTORS: u64 = 16;

/// The stack of a worker; JavaScript is stopped far below (bytes).
pub const STACK_BYTES: u64 = 8 << 20;

/// The limits of keeper, zygotes and workers: no core dumps, no files, no locked memory, no queues.
pub fn constant() -> io::Result<()> {
    not_the_files()?;
    lower(libc::RLIMIT_FSIZE, 0)
}

fn not_the_files() -> io::Result<()> {
    for (resource, most) in [
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_MEMLOCK, 0),
        (libc::RLIMIT_MSGQUEUE, 0),
        (libc::RLIMIT_SIGPENDING, 64),
        (libc::RLIMIT_RTPRIO, 0),
    ] {
        lower(resource, most)?;
    }
    Ok(())
}

/// Raises the soft limit of descriptors to the hard one: supervisor and keeper hold some for every session. Processes that run code
/// or commands of users have lower limits of their own.
pub fn many_descriptors() -> io::Result<()> {
    let (_, hard) = sys::prlimit(0, libc::RLIMIT_NOFILE, None)?;
    sys::prlimit(0, libc::RLIMIT_NOFILE, Some((hard, hard))).map(drop)
}

/// Descriptors that this process may have.
pub fn descriptors() -> io::Result<u64> {
    sys::prlimit(0, libc::RLIMIT_NOFILE, None).map(|(soft, _)| soft)
}

/// The limits of all workers in addition to [`constant`] and [`worker_descriptors`]; set once in the zygote.
pub fn worker_constant() -> io::Result<()> {
    lower(libc::RLIMIT_STACK, STACK_BYTES)
}

/// Has a zygote, and all that is forked from it, have the descriptors of a worker for good. Set from outside, after it has sent its
/// listener: the kernel lets a process send descriptors only while its user has fewer of them in flight than the process may have.
pub fn worker_descriptors(pid: u32) -> io::Result<()> {
    sys::prlimit(pid, libc::RLIMIT_NOFILE, Some((WORKER_DESCRIPTORS, WORKER_DESCRIPTORS))).map(drop)
}

/// The limits of a files agent, which its processes inherit and lower further.
pub fn files_agent() -> io::Result<()> {
    not_the_files()?;
    // One for each open worktree.
    many_descriptors()
}

/// Descriptors a broker may have: 0–2, its channel, the worktree, a few open files.
const BROKER_DESCRIPTORS: u64 = 32;
/// Address space of a broker: the largest file that is read, its encoding, code and stack (bytes).
const BROKER_MEMORY_BYTES: u64 = 512 << 20;
/// CPU time of a broker process (seconds); after it a new broker is started.
const BROKER_CPU_SECONDS: u64 = 600;

/// The limits of a broker, set by itself, for good. Its files have at most `file_bytes`; 0 for a broker that only reads.
pub fn broker(file_bytes: u64) -> io::Result<()> {
    not_the_files()?;
    lower(libc::RLIMIT_FSIZE, file_bytes)?;
    lower(libc::RLIMIT_NOFILE, BROKER_DESCRIPTORS)?;
    lower(libc::RLIMIT_STACK, STACK_BYTES)?;
    lower(libc::RLIMIT_AS, BROKER_MEMORY_BYTES)?;
    lower(libc::RLIMIT_CPU, BROKER_CPU_SECONDS)
}

/// Descriptors of an egress process: its connections, and a few for names that are being resolved.
const EGRESS_DESCRIPTORS: u64 = 16 * 1024;
/// Address space of an egress process (bytes).
const EGRESS_MEMORY_BYTES: u64 = 2 << 30;

/// The limits of an egress process, set by itself, for good.
pub fn egress() -> io::Result<()> {
    not_the_files()?;
    lower(libc::RLIMIT_FSIZE, 0)?;
    lower(libc::RLIMIT_STACK, STACK_BYTES)?;
    lower(libc::RLIMIT_AS, EGRESS_MEMORY_BYTES)?;
    let (_, hard) = sys::prlimit(0, libc::RLIMIT_NOFILE, None)?;
    let most = EGRESS_DESCRIPTORS.min(hard);
    sys::prlimit(0, libc::RLIMIT_NOFILE, Some((most, most))).map(drop)
}

/// Descriptors of a command's process.
const COMMAND_DESCRIPTORS: u64 = 256;
/// Largest file that a command makes (bytes).
const COMMAND_FILE_BYTES: u64 = 256 << 20;

/// Address space of a command's process, as a multiple of its memory limit: runtimes reserve much more than they use, but memory
/// that is shared, or made read-only when it is full, is counted by no other limit.
const COMMAND_ADDRESS_FACTOR: u64 = 8;
/// The minimum of that address space (bytes): common runtimes reserve this much at their start.
const COMMAND_ADDRESS_BYTES: u64 = 1 << 30;

/// The limits of each process of a command: memory (bytes), processes and threads of the whole command, CPU seconds.
pub fn command(memory_bytes: u64, processes: u64, cpu_seconds: u64) -> io::Result<()> {
    not_the_files()?;
    lower(libc::RLIMIT_FSIZE, COMMAND_FILE_BYTES)?;
    lower(libc::RLIMIT_NOFILE, COMMAND_DESCRIPTORS)?;
    lower(libc::RLIMIT_STACK, STACK_BYTES)?;
    lower(libc::RLIMIT_DATA, memory_bytes)?;
    let address_space = memory_bytes.saturating_mul(COMMAND_ADDRESS_FACTOR).max(COMMAND_ADDRESS_BYTES);
    lower(libc::RLIMIT_AS, address_space)?;
    lower(libc::RLIMIT_NPROC, processes)?;
    lower(libc::RLIMIT_CPU, cpu_seconds)
}

/// Sets soft and hard limit to `most`, or to the present hard limit if that is lower.
fn lower(resource: u32, most: u64) -> io::Result<()> {
    let (_, hard) = sys::prlimit(0, resource, None)?;
    let value = most.min(hard);
    sys::prlimit(0, resource, Some((value, value))).map(drop)
}

/// Checks that this process may set the limits of process `pid`: reads a limit, which needs the same right.
pub fn may_limit(pid: u32) -> io::Result<()> {
    sys::prlimit(pid, libc::RLIMIT_AS, None).map(drop)
}

/// Limits the memory of a process from outside: data and address space of `bytes` plus the margin. Only the soft limits
/// change: a hard limit could never be raised again, and no process in the jail may call prlimit.
pub fn limit_memory(pid: u32, bytes: u64, mapped_bytes: u64) -> io::Result<()> {
    let data = bytes.saturating_add(MEMORY_MARGIN_BYTES);
    move_soft(pid, libc::RLIMIT_DATA, data)?;
    move_soft(pid, libc::RLIMIT_AS, data.saturating_add(mapped_bytes))
}

/// Marks a process from outside. Its children inherit the mark, and no process in the jail can change it. Uses a soft limit that no
/// current kernel enforces.
pub fn mark(pid: u32, mark: u64) -> io::Result<()> {
    move_soft(pid, libc::RLIMIT_LOCKS, mark)
}

/// The mark of a process; a very large number if it has none.
pub fn mark_of(pid: u32) -> io::Result<u64> {
    sys::prlimit(pid, libc::RLIMIT_LOCKS, None).map(|(soft, _)| soft)
}

/// Limits the total CPU time of a process from outside (whole seconds, rounded up, then one more: the polite limit
/// takes effect first). At the limit the kernel ends the process with SIGXCPU.
pub fn limit_cpu(pid: u32, total: Duration) -> io::Result<()> {
    let seconds = total.as_secs() + u64::from(total.subsec_nanos() > 0) + 1;
    move_soft(pid, libc::RLIMIT_CPU, seconds)
}

fn move_soft(pid: u32, resource: u32, soft: u64) -> io::Result<()> {
    let (_, hard) = sys::prlimit(pid, resource, None)?;
    sys::prlimit(pid, resource, Some((soft.min(hard), hard))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_child_can_be_lowered_and_raised_from_outside() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        for mib in [100_u64, 50, 200] {
            limit_memory(child.id(), mib << 20, 16 << 20).expect("memory");
            let (soft, _) = sys::prlimit(child.id(), libc::RLIMIT_DATA, None).expect("read");
            assert_eq!(soft, (mib << 20) + MEMORY_MARGIN_BYTES);
        }
        assert_eq!(mark_of(child.id()).expect("unmarked"), libc::RLIM64_INFINITY);
        for number in [1, 7, 3] {
            mark(child.id(), number).expect("mark");
            assert_eq!(mark_of(child.id()).expect("marked"), number);
        }
        limit_cpu(child.id(), Duration::from_millis(1500)).expect("cpu");
        assert_eq!(sys::prlimit(child.id(), libc::RLIMIT_CPU, None).expect("read").0, 3);
        child.kill().expect("kill");
        child.wait().expect("reap");
    }
}
