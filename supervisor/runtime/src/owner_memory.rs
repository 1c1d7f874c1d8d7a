//! The memory that the processes of each owner hold: the workers of its sessions, their frozen copies, and the workers of its programs.
//! Read from the kernel only while memory is short. Decides nothing: `vm_system_core::pressure` does.
//!
//! A page that several processes share counts in parts (`Pss`): those of the zygote for all, those of a fork for parent and child.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_record::Owner;
use vm_system_spawn::WorkerProcess;

/// The work of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WorkOf {
    /// A session: its worker, or a frozen copy of it.
    Session(SessionId),
    /// An execution of a program, which continues with another worker.
    Program(ExecutionId),
}

/// All processes that belong to an owner.
#[derive(Debug, Default)]
pub(super) struct OwnedProcesses {
    last: AtomicU64,
    /// Processes of smaller numbers were there when the last reading began.
    read_below: AtomicU64,
    processes: Mutex<HashMap<u64, OwnedProcess>>,
}

#[derive(Debug, Clone)]
struct OwnedProcess {
    owner: Owner,
    of: WorkOf,
    process: WorkerProcess,
    released: Arc<AtomicBool>,
}

/// A process counts for its owner until this is dropped.
#[derive(Debug)]
pub(super) struct OwnedMemory {
    owned: Arc<OwnedProcesses>,
    number: u64,
    released: Arc<AtomicBool>,
}

impl OwnedMemory {
    /// Whether the process was ended because memory was short.
    pub(super) fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire)
    }
}

impl Drop for OwnedMemory {
    fn drop(&mut self) {
        self.owned.lock().remove(&self.number);
    }
}

/// The memory that one process held when it was read.
#[derive(Debug)]
pub(super) struct ProcessReading {
    pub(super) owner: Owner,
    of: WorkOf,
    pub(super) bytes: u64,
    /// The bytes that its end alone frees.
    private: u64,
    process: WorkerProcess,
    released: Arc<AtomicBool>,
}

impl OwnedProcesses {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, OwnedProcess>> {
        // Nothing under this lock can panic half-way through a change.
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a process counts for an owner.
    pub(super) fn add(self: &Arc<Self>, owner: &Owner, of: WorkOf, process: &WorkerProcess) -> OwnedMemory {
        let released = Arc::new(AtomicBool::new(false));
        let (owner, process) = (owner.clone(), process.clone());
        let entry = OwnedProcess { owner, of, process, released: Arc::clone(&released) };
        let mut processes = self.lock();
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        processes.insert(number, entry);
        drop(processes);
        OwnedMemory { owned: Arc::clone(self), number, released }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// How many processes of an owner have been added since the last reading began.
    pub(super) fn newer_of(&self, owner: &Owner) -> u64 {
        let read_below = self.read_below.load(Ordering::Relaxed);
        let processes = self.lock();
        processes.iter().filter(|(number, entry)| **number >= read_below && entry.owner == *owner).count()
            as u64
    }

    /// Reads the memory of all of them: blocks, for some microseconds and about 30 more for each MiB. One that has exited holds nothing.
    pub(super) fn read(&self) -> Vec<ProcessReading> {
        let processes: Vec<_> = {
            let processes = self.lock();
            self.read_below.store(self.last.load(Ordering::Relaxed), Ordering::Relaxed);
            processes.values().cloned().collect()
        };
        let read = processes.into_iter().filter_map(|entry| {
            let memory = entry.process.memory().ok()?;
            let (bytes, private) = (memory.pss, memory.uss);
            let OwnedProcess { owner, of, process, released } = entry;
            Some(ProcessReading { owner, of, bytes, private, process, released })
        });
        read.collect()
    }
}

/// The work of the owner who is the cause of memory pressure that ends first.
#[derive(Debug)]
pub(super) enum LargestWork<'a> {
    /// The worker of a program, which loses nothing but the time since its last checkpoint.
    Program(ExecutionId, &'a ProcessReading),
    /// A session, and what all of its processes hold (bytes).
    Session(SessionId, u64),
}

impl LargestWork<'_> {
    fn bytes(&self) -> u64 {
        match self {
            Self::Program(_, process) => process.bytes,
            Self::Session(_, bytes) => *bytes,
        }
    }
}

impl ProcessReading {
    /// Ends the worker of a program; its execution continues with another one.
    pub(super) fn release(&self) {
        self.released.store(true, Ordering::Release);
        // It fails if the worker has exited.
        let _ = self.process.kill();
    }
}

/// A worker of a program that holds less is not ended: that would free nothing (bytes).
const WORTH_ENDING: u64 = 8 << 20;

/// The work of an owner that ends until `missing` bytes are free, at least one piece: the largest workers of programs, then its largest
/// sessions. The end of one of many forks frees next to nothing, that of all of them what they share: then all end. A session with
/// frozen copies shares its pages with these, which end with it.
pub(super) fn largest_of<'a>(
    owner: &Owner,
    read: &'a [ProcessReading],
    missing: u64,
) -> Vec<LargestWork<'a>> {
    let mut programs = Vec::new();
    let mut sessions = HashMap::<SessionId, SessionMemory>::new();
    for process in read.iter().filter(|process| process.owner == *owner) {
        match process.of {
            WorkOf::Program(execution) if process.bytes >= WORTH_ENDING => {
                programs.push((LargestWork::Program(execution, process), process.private));
            }
            WorkOf::Program(_) => {}
            WorkOf::Session(session) => sessions.entry(session).or_default().add(process),
        }
    }
    programs.sort_by_key(|(work, _)| Reverse(work.bytes()));
    let mut sessions: Vec<_> = sessions.into_iter().collect();
    sessions.sort_by_key(|(session, memory)| (Reverse(memory.bytes), *session));
    let sessions = sessions
        .into_iter()
        .map(|(session, memory)| (LargestWork::Session(session, memory.bytes), memory.freed()));
    let mut freed = None;
    let all = programs.into_iter().chain(sessions);
    let needed = all.take_while(|(_, frees)| {
        let is_needed = freed.is_none_or(|freed| freed < missing);
        freed = Some(freed.unwrap_or(0) + frees);
        is_needed
    });
    needed.map(|(work, _)| work).collect()
}

/// The memory that the processes of one session hold.
#[derive(Debug, Default)]
struct SessionMemory {
    processes: u32,
    bytes: u64,
    private: u64,
}

impl SessionMemory {
    fn add(&mut self, process: &ProcessReading) {
        self.processes += 1;
        self.bytes += process.bytes;
        self.private += process.private;
    }

    fn freed(&self) -> u64 {
        if self.processes > 1 { self.bytes } else { self.private }
    }
}
