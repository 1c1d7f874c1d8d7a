//! The packages that a package depends on: npm selects the versions and their folders (its lock file), and each package is checked against
//! the sha512 that the registry has of it.

use super::{Package, check, npm, packed, temporary, understood};
use crate::error::{CliError, exit};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use vm_system_spawn::libraries::check_id;

/// Most packages that one library depends on.
const PACKAGES: usize = 1_000;
/// Packages of one call of npm.
const PER_CALL: usize = 50;

/// npm's `package-lock.json`.
#[derive(Debug, Deserialize)]
struct Lock {
    packages: BTreeMap<String, Locked>,
}

#[derive(Debug, Deserialize)]
struct Locked {
    /// Only where it differs from the folder.
    name: Option<String>,
    version: Option<String>,
    integrity: Option<String>,
    resolved: Option<String>,
    #[serde(default)]
    optional: bool,
    os: Option<Value>,
    cpu: Option<Value>,
    /// Within the package of the folder above.
    #[serde(default, rename = "inBundle")]
    in_bundle: bool,
}

/// A package to get.
#[derive(Debug, PartialEq, Eq)]
struct Needed {
    folder: String,
    name: String,
    version: String,
    integrity: String,
}

/// The packages that `name@version` depends on, with their folders beneath `node_modules`.
pub(crate) fn dependencies(name: &str, version: &str) -> Result<Vec<(String, Package)>, CliError> {
    let folder = temporary()?;
    let manifest = serde_json::json!({ "private": true, "dependencies": { name: version } });
    let failed = |error: std::io::Error| CliError::file("the temporary folder", &error);
    std::fs::write(folder.path().join("package.json"), manifest.to_string()).map_err(failed)?;
    npm(
        folder.path(),
        &[
            "install",
            "--package-lock-only",
            "--package-lock",
            "--lockfile-version=3",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--omit=dev",
        ],
    )?;
    let lock = std::fs::read_to_string(folder.path().join("package-lock.json")).map_err(failed)?;
    let needed = needed(understood(&lock)?, &format!("node_modules/{name}"))?;
    let mut packages = Vec::new();
    for call in needed.chunks(PER_CALL) {
        get(folder.path(), call, &mut packages)?;
    }
    Ok(packages)
}

/// The packages of a lock file besides the root and the library itself.
fn needed(lock: Lock, library: &str) -> Result<Vec<Needed>, CliError> {
    let mut all = Vec::new();
    for (folder, locked) in lock.packages {
        if folder.is_empty() || folder == library || locked.in_bundle {
            continue;
        }
        // Compiled for one system.
        if locked.optional && (locked.os.is_some() || locked.cpu.is_some()) {
            continue;
        }
        let refused = |why: String| CliError::new(exit::FAILED, format!("the dependency {folder} {why}"));
        let names: Vec<&str> = folder.split("node_modules/").skip(1).collect();
        let is_folder = folder.starts_with("node_modules/")
            && names.iter().all(|name| check_id(name.trim_end_matches('/')).is_ok());
        let (true, Some(last)) = (is_folder, names.last()) else {
            return Err(refused("is in no folder of npm".to_owned()));
        };
        let name = locked.name.unwrap_or_else(|| (*last).to_owned());
        let Some(version) = locked.version else { return Err(refused("has no version".to_owned())) };
        let Some(integrity) = locked.integrity else {
            let from = locked.resolved.map(|from| format!(" (it comes from {from})")).unwrap_or_default();
            return Err(refused(format!("has no sha512 of a registry and cannot be checked{from}")));
        };
        super::split(&format!("{name}@{version}"))?;
        all.push(Needed { folder, name, version, integrity });
    }
    if all.len() > PACKAGES {
        let message = format!("it depends on {} packages, more than {PACKAGES}", all.len());
        return Err(CliError::new(exit::FAILED, message));
    }
    Ok(all)
}

/// Downloads packages with one call of npm, and checks them.
fn get(folder: &Path, needed: &[Needed], packages: &mut Vec<(String, Package)>) -> Result<(), CliError> {
    let mut specs: Vec<String> =
        needed.iter().map(|package| format!("{}@{}", package.name, package.version)).collect();
    specs.sort_unstable();
    specs.dedup();
    let files = packed(folder, &specs)?;
    for Needed { folder, name, version, integrity } in needed {
        let exact = format!("{name}@{version}");
        let Some(bytes) = files.get(&exact) else {
            return Err(CliError::new(exit::FAILED, format!("npm has no package {exact}")));
        };
        check(&exact, bytes, integrity)?;
        packages.push((folder.clone(), Package::read_named(bytes, name, version)?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Needed, needed};

    fn parse(packages: &str) -> Result<Vec<Needed>, String> {
        let lock = serde_json::from_str(&format!(r#"{{"packages": {{{packages}}}}}"#)).expect("a lock file");
        needed(lock, "node_modules/a").map_err(|error| error.to_string())
    }

    #[test]
    fn a_lock_file_names_the_packages_and_their_folders() {
        let found = parse(r#""": {}, "node_modules/a": {"version": "1.0.0"},
            "node_modules/@s/b": {"version": "2.0.0", "integrity": "sha512-x"},
            "node_modules/a/node_modules/c": {"name": "d", "version": "3.0.0", "integrity": "sha512-y"},
            "node_modules/a/node_modules/inside": {"version": "1.0.0", "inBundle": true},
            "node_modules/fsevents": {"version": "1.0.0", "integrity": "sha512-z", "optional": true, "os": ["darwin"]}"#)
        .expect("packages");
        let found: Vec<String> = found
            .iter()
            .map(|one| format!("{} {}@{} {}", one.folder, one.name, one.version, one.integrity))
            .collect();
        assert_eq!(
            found,
            ["node_modules/@s/b @s/b@2.0.0 sha512-x", "node_modules/a/node_modules/c d@3.0.0 sha512-y"]
        );
    }

    #[test]
    fn a_dependency_that_cannot_be_checked_is_refused_by_name() {
        for (packages, expected) in [
            (
                r#""node_modules/b": {"version": "1.0.0", "resolved": "git+ssh://x/y.git"}"#,
                "node_modules/b has no sha512 of a registry and cannot be checked (it comes from git+ssh://x/y.git)",
            ),
            (r#""../b": {"version": "1.0.0", "integrity": "sha512-x"}"#, "../b is in no folder of npm"),
            (
                r#""node_modules/../b": {"version": "1.0.0", "integrity": "sha512-x"}"#,
                "node_modules/../b is in no folder of npm",
            ),
            (r#""node_modules/b": {"integrity": "sha512-x"}"#, "node_modules/b has no version"),
            (
                r#""node_modules/b": {"version": "file:x", "integrity": "sha512-x"}"#,
                "not a package with a version",
            ),
        ] {
            let error = parse(packages).expect_err(packages);
            assert!(error.contains(expected), "{packages}: {error}");
        }
    }
}
