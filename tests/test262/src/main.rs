//! The binary: the runner, and with the arguments `child ENGINE` one of its children.

use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::process::ExitCode;
use vm_system_test262::section::EngineName;
use vm_system_test262::{child, cli};

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [child, name] = &arguments[..]
        && child == "child"
    {
        let engine = EngineName::engine(name).with_context(|| format!("no engine {name}"))?;
        child::serve(engine)?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = cli::SuiteOptions::parse(arguments)?;
    let root = std::env::var_os(cli::SUITE_VARIABLE).map(PathBuf::from);
    let root = root.with_context(|| format!("set {} to a checkout of test262", cli::SUITE_VARIABLE))?;
    let as_expected = cli::run(&root, &std::env::current_exe()?, &options)?;
    Ok(if as_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
