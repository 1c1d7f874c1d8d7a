//! A stored program with changed bytes is refused, or runs within its limits. The first byte of the input selects the program, the
//! rest is a list of edits: operation, position, new value. An input that begins with 255 is used as a program without edits.
#![cfg_attr(fuzzing, no_main)]

#[allow(dead_code)]
#[path = "../../cvm/tests/common/hostile.rs"]
mod hostile;

use std::sync::OnceLock;

static PROGRAMS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
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
    // Nearly every input with a wrong header would be refused at once.
    if bytes.len() >= hostile::HEADER {
        bytes[..3].copy_from_slice(b"CU\x01");
    }
    hostile::seal(0, &mut bytes);
    hostile::check_program(&bytes);
});
