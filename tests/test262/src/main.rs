//! The binary: the runner, and with the argument `child` one of its children.

use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::process::ExitCode;
use vm_system_test262::{child, cli, engine};

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "child") {
        child::serve(&engine::Cvm)?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = cli::SuiteOptions::parse(arguments)?;
    let root = std::env::var_os(cli::SUITE_VARIABLE).map(PathBuf::from);
    let root = root.with_context(|| format!("set {} to a checkout of test262", cli::SUITE_VARIABLE))?;
    let as_expected = cli::run(&root, &std::env::current_exe()?, &options)?;
    Ok(if as_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
