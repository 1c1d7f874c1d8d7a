//! `libs download`

use super::install::{self, Dependencies};
use super::{catalog, installed_line, send};
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::npm::{self, LibraryPackages};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use vm_system_protocol::control::LibraryInfo;
use vm_system_spawn::libraries::{CATALOG, CatalogEntry};

/// Arguments of `libs download`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these libraries of the catalog
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Also install those that are already installed
    #[arg(long)]
    force: bool,
}

pub(super) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let entries = entries(&args.names)?;
    let present = catalog(context).await?;
    let is_here = |entry: &CatalogEntry| {
        present.iter().any(|library| library.installed && library.name == entry.name())
    };
    let bar = bar(context, entries.len());
    let (mut installed, mut lines, mut failures) = (Vec::<LibraryInfo>::new(), Vec::new(), Vec::new());
    for entry in entries {
        bar.set_message(entry.name());
        if is_here(entry) && !args.force {
            lines.push(format!("Already installed: {}", entry.name()));
        } else {
            match one(context, entry).await {
                Ok((library, line)) => {
                    lines.push(line);
                    installed.push(library);
                }
                Err(error) => failures.push((entry.name(), error)),
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let quiet: Vec<String> = installed.iter().map(|library| library.name.clone()).collect();
    context.out.result(&installed, || if context.out.quiet { quiet.join("\n") } else { lines.join("\n") })?;
    let Some((name, first)) = failures.first() else { return Ok(exit::OK) };
    let all: Vec<&str> = failures.iter().map(|(name, _)| name.as_str()).collect();
    Err(CliError::new(exit::FAILED, format!("not installed: {}; {name}: {first}", all.join(", ")))
        .with_hint("the others are installed; run the command again for the rest"))
}

fn entries(names: &[String]) -> Result<Vec<&'static CatalogEntry>, CliError> {
    if names.is_empty() {
        return Ok(CATALOG.iter().collect());
    }
    let entry = |name: &String| {
        vm_system_spawn::libraries::catalog_entry(name).ok_or_else(|| {
            CliError::usage(format!("{name} is not in the catalog")).with_hint(
                "`vm-system libs list` shows the catalog; `vm-system libs install NAME@VERSION` installs any package",
            )
        })
    };
    names.iter().map(entry).collect()
}

async fn one(context: &Context, entry: &CatalogEntry) -> Result<(LibraryInfo, String), CliError> {
    let package = npm::fetch(&format!("{}@{}", entry.id, entry.version))?;
    let mut package = LibraryPackages::new(package)?;
    let file = package.entries(Some(entry.file))?.swap_remove(0);
    let (library, file) = install::of_package(&mut package, &file, Dependencies::Template)?;
    let library = send(context, library).await?;
    let line = installed_line(&library, &file);
    Ok((library, line))
}

/// Visible on a terminal only.
fn bar(context: &Context, length: usize) -> ProgressBar {
    let shown = context.out.style.stderr_is_terminal() && !context.out.quiet;
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar
}
