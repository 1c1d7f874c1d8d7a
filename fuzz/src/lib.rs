//! The parts that the fuzz targets share. Decides nothing about the product.
//!
//! - [`pieces`]: an input as a list of steps
//! - [`verbs`]: the verbs on a store in a temporary folder and a runtime without processes; a handler that refuses every verb

pub mod pieces;
pub mod verbs;

#[cfg(fuzzing)]
pub use libfuzzer_sys::fuzz_target;

/// Declares a target. Without `cargo fuzz`, which sets the flag, it is a program that checks the files that are its arguments: so the
/// lints of the workspace see the targets, and an input that failed can be run in a debugger.
#[cfg(not(fuzzing))]
#[macro_export]
macro_rules! fuzz_target {
    (|$data:ident: &[u8]| $check:block) => {
        fn check($data: &[u8]) $check

        fn main() -> std::io::Result<()> {
            for path in std::env::args_os().skip(1) {
                check(&std::fs::read(path)?);
            }
            Ok(())
        }
    };
}
