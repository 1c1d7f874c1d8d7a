//! Any text is compiled or refused, as JavaScript and as TypeScript.
#![cfg_attr(fuzzing, no_main)]

#[allow(dead_code)]
#[path = "../../cvm/tests/common/hostile.rs"]
mod hostile;

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        hostile::check_source(text);
    }
});
