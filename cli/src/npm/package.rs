//! A package in the format of `npm pack`, read in memory: only its scripts and JSON files are kept, and nothing is written, so that a
//! hostile path in it has no effect.

use crate::error::{CliError, exit};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use vm_system_protocol::limits::LIBRARY_BYTES;

/// Largest package, compressed (bytes).
pub(crate) const PACKAGE_BYTES: usize = 64 << 20;
/// Largest package, unpacked (bytes).
const UNPACKED_BYTES: u64 = 256 << 20;
/// Most files of a package.
const FILES: usize = 50_000;
/// Scripts and JSON files that are kept until it is known which a library needs (bytes in total).
const KEPT_BYTES: usize = 64 << 20;

/// A package.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    manifest: Value,
    /// Scripts and JSON files that are larger than a library may be, by path.
    pub(crate) too_large: Vec<String>,
    /// The package's scripts and JSON files, by path in it.
    files: BTreeMap<String, Vec<u8>>,
}

impl Package {
    /// Reads a gzipped tar archive.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, CliError> {
        if bytes.len() > PACKAGE_BYTES {
            return Err(broken(format!("more than {PACKAGE_BYTES} bytes")));
        }
        let mut archive = tar::Archive::new(GzDecoder::new(bytes).take(UNPACKED_BYTES));
        let (mut manifest, mut files, mut kept) = (None, BTreeMap::new(), 0);
        let mut too_large = Vec::new();
        let entries = archive.entries().map_err(broken)?;
        for (number, entry) in entries.enumerate() {
            if number >= FILES {
                return Err(broken(format!("more than {FILES} files")));
            }
            let entry = entry.map_err(broken)?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            // All files of a package are in one folder, most often `package`.
            let Some((_, path)) = path.split_once('/') else { continue };
            if !entry.header().entry_type().is_file() || path.split('/').any(|part| part == "..") {
                continue;
            }
            if ![".js", ".cjs", ".mjs", ".json"].iter().any(|end| path.ends_with(end)) {
                continue;
            }
            let size = entry.size();
            let path = path.to_owned();
            if size > LIBRARY_BYTES as u64 {
                too_large.push(path);
                continue;
            }
            let mut content = Vec::new();
            entry.take(LIBRARY_BYTES as u64 + 1).read_to_end(&mut content).map_err(broken)?;
            if path == "package.json" {
                manifest = Some(serde_json::from_slice::<Value>(&content).map_err(broken)?);
            }
            kept += content.len();
            if kept > KEPT_BYTES {
                return Err(broken(format!("scripts and JSON files of more than {KEPT_BYTES} bytes")));
            }
            files.insert(path, content);
        }
        let manifest = manifest.ok_or_else(|| broken("no package.json"))?;
        let text = |field: &str| manifest[field].as_str().map(str::to_owned);
        let (Some(name), Some(version)) = (text("name"), text("version")) else {
            return Err(broken("package.json has no name or version"));
        };
        Ok(Self { name, version, manifest, too_large, files })
    }

    /// Reads the package that npm got for this name and version.
    pub(crate) fn read_named(bytes: &[u8], name: &str, version: &str) -> Result<Self, CliError> {
        let package = Self::read(bytes)?;
        if (package.name.as_str(), package.version.as_str()) == (name, version) {
            return Ok(package);
        }
        let message = format!(
            "the package {name}@{version} has the name and version {}@{}",
            package.name, package.version
        );
        Err(CliError::new(exit::FAILED, message))
    }

    /// The package's scripts and JSON files, by path in it, without those that are not UTF-8.
    pub(crate) fn into_texts(self) -> impl Iterator<Item = (String, String)> {
        let texts = self.files.into_iter();
        texts.filter_map(|(path, content)| Some((path, String::from_utf8(content).ok()?)))
    }

    /// A text of package.json.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.manifest[name].as_str()
    }
}

fn broken(why: impl std::fmt::Display) -> CliError {
    CliError::new(exit::FAILED, format!("the package cannot be read: {why}"))
}
