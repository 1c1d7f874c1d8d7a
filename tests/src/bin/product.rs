//! The product as it ships: the same `main` as the binary `vm-system`, built where the tests find it. Under the name `speaks-N` its
//! keepers report protocol version N to later supervisors.

use std::process::ExitCode;
use vm_system_protocol::hello::Hello;
use vm_system_worker::roles::{self, Modes};

fn main() -> ExitCode {
    vm_system_cli::main_with(|| {
        if let Some(protocol) = spoken() {
            let hello = Hello { protocol, ..Hello::ours() };
            roles::dispatch(std::env::args_os(), Modes { hello, ..Modes::production() });
        }
        vm_system_cli::modes::dispatch()
    })
}

fn spoken() -> Option<u32> {
    let program = std::fs::read_link("/proc/self/exe").ok()?;
    program.file_name()?.to_str()?.strip_prefix("speaks-")?.parse().ok()
}
