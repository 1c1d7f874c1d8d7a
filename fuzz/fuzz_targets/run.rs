//! A stored state with changed pages is refused, or runs within its limits. The input is a list of edits: page, place, byte.
#![no_main]

#[allow(dead_code)]
#[path = "../../cvm/tests/common/hostile.rs"]
mod hostile;

use std::sync::OnceLock;
use vm_system_cvm::Program;

static RICH: OnceLock<Option<(Program, hostile::Pages)>> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((program, pages)) = RICH.get_or_init(hostile::rich) else { return };
    let mut pages = pages.clone();
    for edit in data.chunks_exact(4) {
        let place = usize::from(edit[0]) % pages.len();
        let bytes = &mut pages[place].1;
        let at = hostile::HEADER
            + usize::from(u16::from_le_bytes([edit[1], edit[2]])) % (bytes.len() - hostile::HEADER).max(1);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = edit[3];
        }
    }
    for (number, bytes) in &mut pages {
        hostile::seal(*number, bytes);
    }
    hostile::check_pages(program, &pages);
});
