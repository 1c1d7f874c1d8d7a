//! The binary `vm-system`. All of it is in the library, so that test binaries can use another worker.

use std::process::ExitCode;

fn main() -> ExitCode {
    vm_system_cli::main_with(vm_system_cli::modes::dispatch)
}
