//! A package in the format of `npm pack`, read in memory: only its package.json and the library's file are kept, and nothing is
//! written, so that a hostile path in it has no effect.

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
/// Scripts that are kept until the library's file is known (bytes in total).
const KEPT_BYTES: usize = 64 << 20;

/// A package.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    manifest: Value,
    /// Its scripts, by path in the package.
    scripts: BTreeMap<String, Vec<u8>>,
}

impl Package {
    /// Reads a gzipped tar archive.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, CliError> {
        if bytes.len() > PACKAGE_BYTES {
            return Err(broken(format!("more than {PACKAGE_BYTES} bytes")));
        }
        let mut archive = tar::Archive::new(GzDecoder::new(bytes).take(UNPACKED_BYTES));
        let (mut manifest, mut scripts, mut kept) = (None, BTreeMap::new(), 0);
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
            let script = [".js", ".cjs", ".mjs"].iter().any(|end| path.ends_with(end));
            if path != "package.json" && !script {
                continue;
            }
            let size = entry.size();
            if size > LIBRARY_BYTES as u64 {
                continue;
            }
            let path = path.to_owned();
            let mut content = Vec::new();
            entry.take(LIBRARY_BYTES as u64 + 1).read_to_end(&mut content).map_err(broken)?;
            if path == "package.json" {
                manifest = Some(serde_json::from_slice::<Value>(&content).map_err(broken)?);
                continue;
            }
            kept += content.len();
            if kept > KEPT_BYTES {
                return Err(broken(format!("scripts of more than {KEPT_BYTES} bytes")));
            }
            scripts.insert(path, content);
        }
        let manifest = manifest.ok_or_else(|| broken("no package.json"))?;
        let text = |field: &str| manifest[field].as_str().map(str::to_owned);
        let (Some(name), Some(version)) = (text("name"), text("version")) else {
            return Err(broken("package.json has no name or version"));
        };
        Ok(Self { name, version, manifest, scripts })
    }

    /// The library's file and its text. By default from package.json, a browser build first, because such a build needs
    /// no other file.
    pub(crate) fn into_source(mut self, wish: Option<&str>) -> Result<(String, String), CliError> {
        let path = match wish {
            Some(wish) => self.found(wish),
            None => self.entries().iter().find_map(|entry| self.found(entry)),
        };
        let package = format!("{}@{}", self.name, self.version);
        let Some((path, content)) = path.and_then(|path| self.scripts.remove_entry(&path)) else {
            let what = wish.map_or_else(
                || "none of the files that its package.json names".to_owned(),
                |wish| format!("no file {wish}"),
            );
            return Err(CliError::new(exit::FAILED, format!("{package} has {what}"))
                .with_hint("`--entry PATH` names the file of the package that is the library"));
        };
        let source = String::from_utf8(content)
            .map_err(|_| CliError::new(exit::FAILED, format!("{path} of {package} is not UTF-8 text")))?;
        Ok((path, source))
    }

    fn entries(&self) -> Vec<String> {
        let exports = &self.manifest["exports"];
        let main = if exports["."].is_null() { exports } else { &exports["."] };
        let fields = [
            &self.manifest["unpkg"],
            &self.manifest["jsdelivr"],
            &self.manifest["browser"],
            &self.manifest["main"],
            &main["require"]["default"],
            &main["require"],
            &main["default"]["default"],
            &main["default"],
            &main["import"]["default"],
            &main["import"],
            main,
            &self.manifest["module"],
        ];
        let named = fields.into_iter().filter_map(Value::as_str).map(str::to_owned);
        named.chain(["index.js".to_owned()]).collect()
    }

    /// `./dist/x` → the path of a script in the package.
    fn found(&self, entry: &str) -> Option<String> {
        let path = entry.trim_start_matches("./").trim_start_matches('/');
        ["", ".js", ".cjs", "/index.js"]
            .iter()
            .map(|end| format!("{path}{end}"))
            .find(|path| self.scripts.contains_key(path))
    }
}

fn broken(why: impl std::fmt::Display) -> CliError {
    CliError::new(exit::FAILED, format!("the package cannot be read: {why}"))
}
