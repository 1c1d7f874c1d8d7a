//! A stored program with changed bytes is refused, or is one that runs within its limits. The first byte of the input chooses the
//! program, the rest is a list of edits: what, where, with what. An input that begins with 255 is taken for a program as it is.
#![no_main]

#[allow(dead_code)]
#[path = "../../cvm/tests/common/hostile.rs"]
mod hostile;

use std::sync::OnceLock;

static PROGRAMS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let programs = PROGRAMS.get_or_init(|| {
        let paused = hostile::PAUSING.iter().filter_map(|source| hostile::paused(source));
        paused.map(|(program, _)| program.encode()).collect()
    });
    let Some((&first, rest)) = data.split_first() else { return };
    let mut bytes = if first == 255 {
        rest.to_vec()
    } else {
        let mut bytes = programs[usize::from(first) % programs.len()].clone();
        for change in rest.as_chunks().0 {
            hostile::edit(&mut bytes, hostile::HEADER, *change);
        }
        bytes
    };
    // The checksum would stop nearly everything at the door.
    if bytes.len() >= hostile::HEADER {
        bytes[..3].copy_from_slice(b"CU\x01");
    }
    hostile::seal(0, &mut bytes);
    hostile::check_program(&bytes);
});
