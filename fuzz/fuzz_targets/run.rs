//! A stored state with changed pages is refused, or runs within its limits. The first byte of the input selects the program, the
//! rest is a list of edits: page, operation, position, new value.
#![cfg_attr(fuzzing, no_main)]

#[allow(dead_code)]
#[path = "../../cvm/tests/common/hostile.rs"]
mod hostile;

use std::sync::OnceLock;
use vm_system_cvm::CompiledProgram;

static PAUSED: OnceLock<Vec<(CompiledProgram, hostile::Pages)>> = OnceLock::new();

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    let paused =
        PAUSED.get_or_init(|| hostile::PAUSING.iter().filter_map(|source| hostile::paused(source)).collect());
    let Some((&first, rest)) = data.split_first() else { return };
    let (program, pages) = &paused[usize::from(first) % paused.len()];
    let mut pages = pages.clone();
    for &[page, what, low, high, with] in rest.as_chunks().0 {
        let place = usize::from(page) % pages.len();
        hostile::edit(&mut pages[place].1, hostile::HEADER, [what, low, high, with]);
    }
    for (number, bytes) in &mut pages {
        hostile::seal(*number, bytes);
    }
    if let hostile::Checked::Invalid(what) = hostile::check_pages(program, &pages) {
        panic!("accepted, and found invalid while it ran: {what}");
    }
});
