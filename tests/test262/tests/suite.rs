//! The whole suite as a test target: skipped, with a message, without the path of a checkout.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vm_system_test262::cli;

fn main() -> ExitCode {
    let Some(root) = std::env::var_os(cli::SUITE_VARIABLE).map(PathBuf::from) else {
        vm_system_testkit::skip("test262", &format!("set {} to a checkout of it", cli::SUITE_VARIABLE));
        return ExitCode::SUCCESS;
    };
    let child = Path::new(env!("CARGO_BIN_EXE_vm-system-test262"));
    match cli::run(&root, child, &cli::SuiteOptions::default()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("test262 could not run: {error:#}");
            ExitCode::FAILURE
        }
    }
}
