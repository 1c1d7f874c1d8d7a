//! An execution's use of host modules, and the events about it.
//!
//! Not one event per call: a loop over 100 000 files would flood its own output. Each denial is an event when it happens, the
//! first [`DENIALS_REPORTED`] of an execution; at the end there is one line per module with all calls, denials and bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use vm_system_protocol::counted::counted;

/// Denials of one execution that get an event of their own.
pub(super) const DENIALS_REPORTED: u64 = 16;
/// Most module loads of one execution. A missing module makes the supervisor check many files while the execution's
/// clocks are paused.
pub(super) const LOADS: u32 = 10_000;

/// The use of host modules by one execution.
#[derive(Debug, Clone, Default)]
pub struct HostUsage {
    modules: BTreeMap<&'static str, ModuleUsage>,
    /// Calls that the policy denied, and those that the kernel or SQLite refused: the ones hide no events of the others.
    denials: u64,
    refusals: u64,
    loads: u32,
}

/// The use of host modules by a session in its life.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionUsage {
    /// Bytes written to files.
    pub written_bytes: u64,
}

/// The modules whose use programs have.
const MODULES_OF_PROGRAMS: [&str; 2] = ["fs", "http"];

/// The use of one module, as it is stored of programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModuleTotals {
    pub calls: u64,
    /// Of the policy.
    pub denied: u64,
    /// Of the kernel.
    pub refused: u64,
    /// Bytes to the program and from it.
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// The use of one module by one execution.
#[derive(Debug, Clone, Default)]
pub(super) struct ModuleUsage {
    pub(super) calls: u64,
    /// Of the policy.
    denied: u64,
    /// Of the kernel or SQLite.
    refused: u64,
    pub(super) failed: u64,
    /// Bytes to the script and from it.
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    names: BTreeMap<&'static str, u64>,
    denied_names: BTreeMap<&'static str, u64>,
}

impl HostUsage {
    pub(super) fn module(&mut self, module: &'static str) -> &mut ModuleUsage {
        self.modules.entry(module).or_default()
    }

    /// Counts a module load; returns whether it is permitted.
    pub(super) fn loads(&mut self) -> bool {
        self.loads = self.loads.saturating_add(1);
        self.loads <= LOADS
    }

    /// Counts a denied call; returns whether it gets an event of its own.
    pub fn denied(&mut self, module: &'static str, name: &'static str) -> bool {
        let usage = self.module(module);
        usage.denied += 1;
        *usage.denied_names.entry(name).or_default() += 1;
        self.denials += 1;
        self.denials <= DENIALS_REPORTED
    }

    /// Counts a call that the walls refused; returns whether it gets an event of its own.
    pub fn refused(&mut self, module: &'static str) -> bool {
        self.module(module).refused += 1;
        self.refusals += 1;
        self.refusals <= DENIALS_REPORTED
    }

    pub(super) fn passed(&mut self, module: &'static str, name: &'static str, bytes_out: u64) {
        let usage = self.module(module);
        usage.calls += 1;
        usage.bytes_out = usage.bytes_out.saturating_add(bytes_out);
        *usage.names.entry(name).or_default() += 1;
    }

    /// Counts a reply.
    pub fn answered(&mut self, module: &'static str, bytes_in: u64, failed: bool) {
        let usage = self.module(module);
        usage.bytes_in = usage.bytes_in.saturating_add(bytes_in);
        usage.failed += u64::from(failed);
    }

    /// Subtracts calls and bytes from the use.
    pub fn give_back(&mut self, module: &'static str, calls: u64, bytes: u64) {
        let Some(usage) = self.modules.get_mut(module) else { return };
        usage.calls = usage.calls.saturating_sub(calls);
        let more = bytes.saturating_sub(usage.bytes_in);
        usage.bytes_in = usage.bytes_in.saturating_sub(bytes);
        usage.bytes_out = usage.bytes_out.saturating_sub(more);
    }

    /// Whether a module was used, successfully or not.
    pub fn has_used(&self, module: &str) -> bool {
        self.modules.contains_key(module)
    }

    /// The use of each module, for the limits of calls: without the names of calls.
    pub fn totals(&self) -> impl Iterator<Item = (&'static str, ModuleTotals)> {
        self.modules.iter().map(|(name, usage)| {
            let ModuleUsage { calls, denied, refused, bytes_in, bytes_out, .. } = usage;
            let (calls, denied, refused) = (*calls, *denied, *refused);
            (*name, ModuleTotals { calls, denied, refused, bytes_in: *bytes_in, bytes_out: *bytes_out })
        })
    }

    /// The use that has these totals. A module that no program has is left out.
    pub fn of_totals<'a>(totals: impl Iterator<Item = (&'a str, ModuleTotals)>) -> Self {
        let mut usage = Self::default();
        for (name, totals) in totals {
            let Some(name) = MODULES_OF_PROGRAMS.iter().find(|module| **module == name) else { continue };
            let ModuleTotals { calls, denied, refused, bytes_in, bytes_out } = totals;
            usage.modules.insert(
                name,
                ModuleUsage { calls, denied, refused, bytes_in, bytes_out, ..ModuleUsage::default() },
            );
        }
        usage
    }

    /// One line per module that was used.
    pub fn summary(&self) -> Vec<String> {
        self.modules.iter().map(|(module, usage)| usage.line(module)).collect()
    }
}

impl ModuleUsage {
    /// Calls that were not permitted, by the policy or the walls.
    pub(super) fn not_permitted(&self) -> u64 {
        self.denied.saturating_add(self.refused)
    }

    fn line(&self, module: &str) -> String {
        let by_name = |names: &BTreeMap<&str, u64>| {
            let names: Vec<String> = names.iter().map(|(name, count)| format!("{name} {count}")).collect();
            if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
        };
        let mut line = format!("module {module}: {}{}", counted(self.calls, "call"), by_name(&self.names));
        let _ = write!(
            line,
            ", {} read, {} written",
            counted(self.bytes_in, "byte"),
            counted(self.bytes_out, "byte")
        );
        if self.failed > 0 {
            let _ = write!(line, ", {} failed", self.failed);
        }
        if self.denied > 0 {
            let _ = write!(line, ", {} denied{}", self.denied, by_name(&self.denied_names));
        }
        if self.refused > 0 {
            let _ = write!(line, ", {} refused", self.refused);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::{HostUsage, ModuleTotals};

    #[test]
    fn use_that_was_stored_counts_for_the_same_limits() {
        let mut usage = HostUsage::default();
        usage.passed("fs", "readFile", 7);
        usage.answered("fs", 11, false);
        usage.denied("http", "GET");
        usage.refused("http");
        let totals: Vec<_> = usage.totals().collect();
        let fs = ModuleTotals { calls: 1, denied: 0, refused: 0, bytes_in: 11, bytes_out: 7 };
        let http = ModuleTotals { denied: 1, refused: 1, ..ModuleTotals::default() };
        assert_eq!(totals, [("fs", fs), ("http", http)]);
        // A module that no program has, as a damaged row may have it.
        let stored = totals.iter().copied().chain([("exec", fs)]);
        let restored = HostUsage::of_totals(stored);
        assert_eq!(restored.totals().collect::<Vec<_>>(), totals);
        assert!(restored.has_used("fs") && !restored.has_used("exec"));
    }
}
