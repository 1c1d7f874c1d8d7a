//! A cache of compiled programs: the most recently used ones, within a bound. Knows no store.

use std::collections::HashMap;
use std::sync::Arc;
use vm_system_protocol::ids::ProgramId;

/// Size of the cache (bytes). Larger code is not cached.
const BYTES: usize = 64 << 20;
/// Most entries: an eviction scans all of them.
const VERSIONS: usize = 1_024;

/// A version of a program.
type Version = (ProgramId, u32);

/// The compiled form, opaque.
type Code = Arc<Vec<u8>>;

/// The cache.
#[derive(Debug, Default)]
pub(super) struct Codes {
    kept: HashMap<Version, (Code, u64)>,
    bytes: usize,
    /// Counts uses: a smaller number is an older use.
    uses: u64,
}

impl Codes {
    pub(super) fn get(&mut self, version: Version) -> Option<Code> {
        self.uses += 1;
        let (code, used) = self.kept.get_mut(&version)?;
        *used = self.uses;
        Some(Arc::clone(code))
    }

    pub(super) fn keep(&mut self, version: Version, code: &Code) {
        self.forget(version);
        if code.len() > BYTES {
            return;
        }
        while self.bytes + code.len() > BYTES || self.kept.len() >= VERSIONS {
            let oldest = self.kept.iter().min_by_key(|(_, (_, used))| *used).map(|(version, _)| *version);
            let Some(oldest) = oldest else { break };
            self.forget(oldest);
        }
        self.uses += 1;
        self.bytes += code.len();
        self.kept.insert(version, (Arc::clone(code), self.uses));
    }

    fn forget(&mut self, version: Version) {
        if let Some((code, _)) = self.kept.remove(&version) {
            self.bytes -= code.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, Codes, VERSIONS};
    use std::sync::Arc;
    use vm_system_protocol::ids::ProgramId;

    fn version(number: u32) -> (ProgramId, u32) {
        (ProgramId::from_bytes([1; 16]), number)
    }

    #[test]
    fn least_recently_used_code_is_evicted() {
        let mut codes = Codes::default();
        let third = Arc::new(vec![0; BYTES / 3]);
        for number in 0..3 {
            codes.keep(version(number), &third);
        }
        assert!(codes.get(version(0)).is_some());
        codes.keep(version(3), &third);
        let kept = [0, 1, 2, 3].map(|number| codes.get(version(number)).is_some());
        assert_eq!(kept, [true, false, true, true]);
        codes.keep(version(3), &Arc::new(vec![0; BYTES + 1]));
        assert!(codes.get(version(3)).is_none(), "code that does not fit is not cached");
        assert_eq!(codes.bytes, 2 * third.len());
    }

    #[test]
    fn many_small_ones_are_bounded_too() {
        let mut codes = Codes::default();
        for number in 0..2_000 {
            codes.keep(version(number), &Arc::new(vec![0]));
        }
        assert_eq!((codes.kept.len(), codes.bytes), (VERSIONS, VERSIONS));
    }
}
