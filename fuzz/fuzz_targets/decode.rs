//! Any bytes are refused as a program, or are one that runs within its limits.
#![no_main]

#[allow(dead_code)]
#[path = "../../cvm/tests/common/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    // The checksum would stop nearly everything at the door.
    if bytes.len() >= hostile::HEADER {
        bytes[..3].copy_from_slice(b"CU\x01");
    }
    hostile::seal(0, &mut bytes);
    hostile::check_program(&bytes);
});
