//! The broker as a separate program, for tests that start it as the supervisor does.

use std::process::ExitCode;

fn main() -> ExitCode {
    vm_system_broker::dispatch(std::env::args_os()).unwrap_or_else(|| {
        eprintln!("error: this program only plays the broker\nhint: run `vm-system` instead");
        ExitCode::from(2)
    })
}
