//! `libs install`

use super::{installed_line, send};
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::npm::{self, LibraryPackages, Package};
use crate::output::escape;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use vm_system_protocol::control::{ErrorCode, LibraryInstall};
use vm_system_protocol::limits::LIBRARY_BYTES;

/// Arguments of `libs install`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A package and its version, such as `lodash@4.17.21`, which is installed with the packages that it depends on; with
    /// `--file`, the name and version of the library
    #[arg(value_name = "NAME@VERSION", required_unless_present = "file")]
    package: Option<String>,
    /// Install this file without a registry: one JavaScript file (called NAME-VERSION.js, unless NAME@VERSION is given),
    /// or a package from `npm pack` (.tgz)
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The file of the package that is the library [default: from package.json, a browser build first]
    #[arg(long, value_name = "PATH")]
    entry: Option<String>,
    /// The library's global variable [default: as in the catalog, else none]
    #[arg(long, value_name = "NAME")]
    global: Option<String>,
    /// Do not check that it loads by itself, and do not add packages that it depends on: it may need other libraries of its
    /// template
    #[arg(long)]
    unchecked: bool,
}

pub(super) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let entry = args.entry.as_deref();
    let dependencies = match &args.file {
        _ if args.unchecked => Dependencies::Template,
        Some(_) => Dependencies::Package,
        None => Dependencies::Registry,
    };
    let (mut package, named) = match (&args.file, &args.package) {
        (Some(file), package) => {
            let named = package.as_deref().map(npm::split).transpose()?;
            match from_file(file, named)? {
                FromFile::Script(library, shown) => {
                    let library =
                        LibraryInstall { global: args.global, unchecked: args.unchecked, ..library };
                    let library = send(context, library).await?;
                    context.out.done(&library, &installed_line(&library, &shown), &library.name)?;
                    return Ok(exit::OK);
                }
                FromFile::Package(package) => (LibraryPackages::new(*package)?, named),
            }
        }
        (None, Some(package)) => (LibraryPackages::new(npm::fetch(package)?)?, None),
        (None, None) => return Err(CliError::usage("a package or a --file is missing")),
    };
    let entries = package.entries(entry)?;
    for (entry, next) in entries.iter().zip(entries.iter().skip(1).map(Some).chain([None])) {
        let (library, shown) = of_package(&mut package, entry, dependencies)?;
        let (id, version) =
            named.map_or((library.id, library.version), |(id, version)| (id.to_owned(), version.to_owned()));
        let (global, unchecked) = (args.global.clone(), args.unchecked);
        let sent = send(context, LibraryInstall { id, version, global, unchecked, ..library }).await;
        match (sent, next) {
            (Ok(library), _) => {
                context.out.done(&library, &installed_line(&library, &shown), &library.name)?;
                break;
            }
            (Err(error), Some(next)) if error.has_code(ErrorCode::StartupFailed) => {
                let error = escape::for_message(&error.to_string()).into_owned();
                context.out.note(&format!("{error}; trying {next} instead"));
            }
            (Err(error), _) => return Err(error),
        }
    }
    Ok(exit::OK)
}

/// Where the packages are that a package depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dependencies {
    /// In the registry: the library gets them.
    Registry,
    /// In the package itself.
    Package,
    /// Libraries of the template: the library is installed without them.
    Template,
}

/// The library whose file is this one of a package, and how its files are shown.
pub(super) fn of_package(
    packages: &mut LibraryPackages,
    entry: &str,
    dependencies: Dependencies,
) -> Result<(LibraryInstall, String), CliError> {
    let mut found = packages.source(entry)?;
    if !found.missing.is_empty() && dependencies == Dependencies::Registry {
        for (folder, package) in npm::dependencies(&packages.id, &packages.version)? {
            packages.add(folder, package)?;
        }
        found = packages.source(entry)?;
    }
    if !found.missing.is_empty() && dependencies != Dependencies::Template {
        let missing = found.missing.iter();
        let missing: Vec<String> =
            missing.map(|one| format!("{}@{} (for {})", one.name, one.range, one.needed_by)).collect();
        let exact = packages.exact();
        let message =
            format!("{exact} was not installed: packages that it needs are missing: {}", missing.join(", "));
        let hint = match dependencies {
            Dependencies::Registry => {
                "--unchecked installs it without them, for templates that have them as libraries".to_owned()
            }
            _ => format!(
                "`vm-system libs install {exact}` gets them from the registry; --unchecked installs it without them, for templates that have them as libraries"
            ),
        };
        return Err(CliError::new(exit::FAILED, message).with_hint(hint));
    }
    let (id, version) = (packages.id.clone(), packages.version.clone());
    Ok((LibraryInstall { id, version, global: None, source: found.source, unchecked: false }, found.shown))
}

/// The file that `--file` names.
enum FromFile {
    Package(Box<Package>),
    /// The library, and the name of its file.
    Script(LibraryInstall, String),
}

fn from_file(file: &Path, named: Option<(&str, &str)>) -> Result<FromFile, CliError> {
    let shown = file.display().to_string();
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if [".tgz", ".tar.gz"].iter().any(|end| name.ends_with(end)) {
        let bytes = read(file, npm::PACKAGE_BYTES)?;
        return Ok(FromFile::Package(Box::new(Package::read(&bytes)?)));
    }
    let named = named.map(|(id, version)| (id.to_owned(), version.to_owned()));
    let Some((id, version)) = named.or_else(|| from_name(&name)) else {
        return Err(CliError::usage(format!("{shown}: the file name has no library name and version"))
            .with_hint("rename it to NAME-VERSION.js, or also give NAME@VERSION"));
    };
    let source = String::from_utf8(read(file, LIBRARY_BYTES)?)
        .map_err(|_| CliError::unfit(format!("{shown} is not UTF-8 text")))?;
    Ok(FromFile::Script(LibraryInstall { id, version, global: None, source, unchecked: false }, shown))
}

/// `my-lib-1.2.3.js` → `my-lib`, `1.2.3`.
fn from_name(name: &str) -> Option<(String, String)> {
    let stem = [".js", ".cjs", ".mjs"].iter().find_map(|end| name.strip_suffix(end))?;
    let version_begins = |(place, _): &(usize, &str)| {
        let rest = &stem[place + 1..];
        *place > 0 && rest.starts_with(|first: char| first.is_ascii_digit())
    };
    let (place, _) = stem.match_indices('-').find(version_begins)?;
    let version = stem[place + 1..].trim_end_matches(".min");
    Some((stem[..place].to_owned(), version.to_owned()))
}

fn read(file: &Path, most: usize) -> Result<Vec<u8>, CliError> {
    let failed = |error: std::io::Error| CliError::file(file.display(), &error);
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(failed)?;
    opened.take(most as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > most {
        return Err(CliError::unfit(format!("{} has more than {most} bytes", file.display())));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::from_name;

    #[test]
    fn name_and_version_are_read_from_a_file_name() {
        let named = |name| from_name(name).map(|(id, version)| format!("{id}@{version}"));
        assert_eq!(named("lodash-4.17.21.js").as_deref(), Some("lodash@4.17.21"));
        assert_eq!(named("my-lib-1.0.0-beta.1.min.js").as_deref(), Some("my-lib@1.0.0-beta.1"));
        assert_eq!(named("lodash.js"), None);
        assert_eq!(named("lodash-4.17.21.txt"), None);
    }
}
