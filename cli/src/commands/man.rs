//! `man`: one page for each command, for packagers.

use crate::args::Cli;
use crate::context::Context;
use crate::error::{CliError, exit};
use clap::CommandFactory as _;
use std::path::PathBuf;

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder to write the pages to; without it, the main page is printed
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<u8, CliError> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(|error| CliError::output(&error))?;
        context.out.write(&String::from_utf8_lossy(&page))?;
        return Ok(exit::OK);
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), dir))
        .map_err(|error| CliError::written_file(dir.display(), &error))?;
    Ok(exit::OK)
}
