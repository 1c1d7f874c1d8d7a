//! Packages of the npm registry, through the user's `npm`: registry, proxy and credentials are those of its configuration. A
//! package is checked against the registry's sha512 and read in memory, without being unpacked to disk.

mod dependencies;
mod library;
mod package;
#[cfg(test)]
mod tests;

pub(crate) use dependencies::dependencies;
pub(crate) use library::LibraryPackages;
pub(crate) use package::{PACKAGE_BYTES, Package};

use crate::error::{CliError, exit};
use serde::Deserialize;
use sha2::{Digest as _, Sha512};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Splits `lodash@4.17.21` or `@scope/name@^1` into the name and the version or range.
pub(crate) fn split(spec: &str) -> Result<(&str, &str), CliError> {
    let place = spec.rfind('@').filter(|place| *place > 0);
    let parts = place.map(|place| (&spec[..place], &spec[place + 1..]));
    let plain = |version: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-+^~".contains(&byte);
        !version.is_empty() && !version.starts_with('-') && version.bytes().all(allowed)
    };
    match parts {
        Some((name, version)) if plain(version) => {
            vm_system_spawn::libraries::check_id(name).map_err(|error| CliError::usage(error.to_string()))?;
            Ok((name, version))
        }
        _ => Err(CliError::usage(format!("{spec:?} is not a package with a version"))
            .with_hint("write it like lodash@4.17.21")),
    }
}

/// The output of `npm pack --json` about the fetched package.
#[derive(Debug, Deserialize)]
struct Packed {
    name: String,
    version: String,
    filename: String,
}

/// Gets a package with npm and checks it.
pub(crate) fn fetch(spec: &str) -> Result<Package, CliError> {
    split(spec)?;
    let folder = temporary()?;
    let Some((exact, bytes)) = packed(folder.path(), &[spec.to_owned()])?.into_iter().next() else {
        return Err(CliError::new(exit::FAILED, format!("npm has no package {spec}")));
    };
    let integrity: String =
        understood(&npm(folder.path(), &["view", "--json", "--", &exact, "dist.integrity"])?)?;
    check(&exact, &bytes, &integrity)?;
    let (name, version) = split(&exact)?;
    Package::read_named(&bytes, name, version)
}

/// A folder that is a project of npm.
fn temporary() -> Result<tempfile::TempDir, CliError> {
    let failed = |error| CliError::new(exit::FAILED, format!("cannot create a temporary folder: {error}"));
    let folder = tempfile::Builder::new().prefix("vm-system-npm-").tempdir().map_err(failed)?;
    std::fs::write(folder.path().join("package.json"), r#"{"private":true}"#).map_err(failed)?;
    Ok(folder)
}

/// Downloads packages; their bytes by `NAME@VERSION`, not checked yet.
fn packed(folder: &Path, specs: &[String]) -> Result<BTreeMap<String, Vec<u8>>, CliError> {
    let mut arguments = vec!["pack", "--json", "--ignore-scripts", "--"];
    arguments.extend(specs.iter().map(String::as_str));
    let packed: Vec<Packed> = understood(&npm(folder, &arguments)?)?;
    let mut all = BTreeMap::new();
    for Packed { name, version, filename } in packed {
        // Older versions of npm report the path of a file for scoped packages.
        let file = folder.join(filename.replace('@', "").replace('/', "-"));
        let failed = |error: std::io::Error| CliError::file(file.display(), &error);
        let length = std::fs::metadata(&file).map_err(failed)?.len();
        if length > PACKAGE_BYTES as u64 {
            let message = format!("{name}@{version} has more than {PACKAGE_BYTES} bytes");
            return Err(CliError::new(exit::FAILED, message));
        }
        all.insert(format!("{name}@{version}"), std::fs::read(&file).map_err(failed)?);
    }
    Ok(all)
}

/// Compares with the registry's `sha512-…` (one of several, if there are more).
fn check(exact: &str, bytes: &[u8], integrity: &str) -> Result<(), CliError> {
    let expected: Vec<&str> =
        integrity.split_whitespace().filter_map(|one| one.strip_prefix("sha512-")).collect();
    let failed = |what: &str| CliError::new(exit::FAILED, format!("{exact} {what}"));
    if expected.is_empty() {
        return Err(failed("has no sha512 in the registry and cannot be checked")
            .with_hint("`vm-system libs install --file` installs a file that you have checked yourself"));
    }
    let found = base64(&Sha512::digest(bytes));
    if expected.contains(&found.as_str()) {
        return Ok(());
    }
    Err(failed("does not match the registry: its sha512 differs"))
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Runs npm in a folder that is a project; its standard output. Without workspaces npm looks for no other project, and so for no
/// configuration, in the folders above: all users can write to the folder of temporary files. (`--prefix` would do the same, but moves
/// the user's global configuration, too.) A dependency from a repository of git is an error, for which npm would run git first.
fn npm(folder: &Path, arguments: &[&str]) -> Result<String, CliError> {
    let mut npm = Command::new("npm");
    npm.arg(arguments[0]).arg("--no-workspaces").args(&arguments[1..]);
    let output = npm.env("npm_config_git", "false").current_dir(folder).output().map_err(|error| {
        let error = CliError::new(exit::FAILED, format!("cannot run npm: {error}"));
        error.with_hint(
            "install Node.js with npm, or use `vm-system libs install --file` with a file that you have",
        )
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines =
        stderr.lines().filter_map(|line| line.strip_prefix("npm error ").or(line.strip_prefix("npm ERR! ")));
    let errors: Vec<&str> = lines.filter(|line| !line.contains("complete log")).take(4).collect();
    Err(CliError::new(exit::FAILED, format!("npm {} failed: {}", arguments[0], errors.join("; ")))
        .with_hint("npm uses your own configuration: `npm config get registry` shows its registry"))
}

fn understood<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, CliError> {
    serde_json::from_str(json)
        .map_err(|error| CliError::new(exit::FAILED, format!("npm printed unexpected output: {error}")))
}
