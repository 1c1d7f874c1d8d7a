//! The C library's heap of this process: how many arenas it has, and giving unused memory back to the system. Only glibc keeps it;
//! with other C libraries there is nothing to do.

use crate::sys;

/// At most so many arenas from now on. By default every thread that allocates while another one does gets one of its own, up to eight
/// for each processor, and each keeps what it needed once. To be called before threads are started.
pub fn limit_arenas(most: i32) {
    sys::limit_arenas(most);
}

/// Gives all unused pages back to the system. Other threads that allocate wait meanwhile (milliseconds, where much is unused).
pub fn trim() {
    sys::trim_heap();
}

/// Resident memory of this process (bytes).
pub fn resident_bytes() -> std::io::Result<u64> {
    let statm = crate::inspect::read_whole("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(pages * sys::page_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_memory_is_given_back() {
        const PIECES: usize = 40_000;
        limit_arenas(2);
        let before = resident_bytes().expect("statm");
        // Too small for a mapping each, and one at the end that keeps the heap from shrinking by itself.
        let mut pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; 1_024]).collect();
        let last = pieces.pop();
        let full = resident_bytes().expect("statm");
        assert!(full > before + (PIECES as u64) * 1_000 / 2, "{before} {full}");
        drop(pieces);
        trim();
        let trimmed = resident_bytes().expect("statm");
        if cfg!(target_env = "gnu") {
            assert!(trimmed < full - (PIECES as u64) * 1_000 / 2, "{full} {trimmed}");
        }
        drop(last);
    }
}
