//! The broker as a separate program, for tests that start it like the supervisor.

use std::process::ExitCode;

fn main() -> ExitCode {
    vm_system_broker::dispatch(std::env::args_os()).unwrap_or_else(|| {
        eprintln!("error: this program only runs a broker for tests\nhint: run `vm-system` instead");
        ExitCode::from(2)
    })
}
