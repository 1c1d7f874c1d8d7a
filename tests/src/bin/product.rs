//! The product as it ships: the same `main` as the binary `vm-system`, built where the tests find it.

use std::process::ExitCode;

fn main() -> ExitCode {
    vm_system_cli::main_with(vm_system_cli::modes::dispatch)
}
