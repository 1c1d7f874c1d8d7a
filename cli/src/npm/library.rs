//! The source of a library that is a package: one file, or a bundle with the files that this one needs, of the package and of the
//! packages that it depends on.

use super::Package;
use crate::error::{CliError, exit};
use std::collections::BTreeMap;
use vm_system_protocol::counted::counted;
use vm_system_protocol::limits::LIBRARY_BYTES;
use vm_system_worker::engine::{MissingPackage, PackageFiles};

/// Most bytes of scripts of a package and of those that it depends on.
const FILES_BYTES: usize = 256 << 20;

/// A package and those that it depends on.
#[derive(Debug)]
pub(crate) struct LibraryPackages {
    pub(crate) id: String,
    pub(crate) version: String,
    /// The package's files for browsers that need no bundler, by package.json.
    builds: Vec<String>,
    files: PackageFiles,
    /// The package's files that no library can have.
    too_large: Vec<String>,
    /// All texts (bytes).
    bytes: usize,
    /// `NAME@VERSION` by folder.
    packages: BTreeMap<String, String>,
}

/// The source of a library.
#[derive(Debug)]
pub(crate) struct PackagedSource {
    pub(crate) source: String,
    /// `index.js`, or `index.js and 4 files of 2 packages`.
    pub(crate) shown: String,
    /// Packages that it needs and that are not there.
    pub(crate) missing: Vec<MissingPackage>,
}

impl LibraryPackages {
    pub(crate) fn new(package: Package) -> Result<Self, CliError> {
        let builds = ["unpkg", "jsdelivr"].iter().filter_map(|name| package.field(name));
        let mut packages = Self {
            id: package.name.clone(),
            version: package.version.clone(),
            builds: builds.map(str::to_owned).collect(),
            too_large: package.too_large.clone(),
            files: PackageFiles::default(),
            bytes: 0,
            packages: BTreeMap::new(),
        };
        let folder = packages.folder();
        packages.add(folder, package)?;
        Ok(packages)
    }

    fn folder(&self) -> String {
        format!("node_modules/{}", self.id)
    }

    /// Adds a package to a folder, which is beneath `node_modules`.
    pub(crate) fn add(&mut self, folder: String, package: Package) -> Result<(), CliError> {
        let name = format!("{}@{}", package.name, package.version);
        for (path, text) in package.into_texts() {
            self.bytes += text.len();
            self.files.add(format!("{folder}/{path}"), text);
        }
        if self.bytes > FILES_BYTES {
            let message = format!(
                "{} and the packages that it depends on have scripts of more than {FILES_BYTES} bytes",
                self.exact()
            );
            return Err(CliError::new(exit::FAILED, message));
        }
        self.packages.insert(folder, name);
        Ok(())
    }

    /// `NAME@VERSION`.
    pub(crate) fn exact(&self) -> String {
        format!("{}@{}", self.id, self.version)
    }

    /// The files that may be the library: this one of the package, or by default those that package.json names, a build for
    /// browsers first. At least one.
    pub(crate) fn entries(&self, wish: Option<&str>) -> Result<Vec<String>, CliError> {
        let folder = self.folder();
        let mut entries: Vec<String> = Vec::new();
        if let Some(wish) = wish {
            entries.extend(self.files.file(&folder, wish));
        } else {
            let build = self.builds.iter().find_map(|build| self.files.file(&folder, build));
            entries.extend(build.into_iter().chain(self.files.main(&folder)));
            entries.dedup();
        }
        if !entries.is_empty() {
            return Ok(entries);
        }
        let what = match wish {
            Some(wish) => format!("no script {wish}"),
            None => "none of the files that its package.json names".to_owned(),
        };
        let large = match self.too_large.as_slice() {
            [] => String::new(),
            large => format!(" of at most {LIBRARY_BYTES} bytes (larger: {})", large.join(", ")),
        };
        Err(CliError::new(exit::FAILED, format!("{} has {what}{large}", self.exact()))
            .with_hint("`--entry PATH` names the file of the package that is the library"))
    }

    /// The source of a library whose file is this one.
    pub(crate) fn source(&self, entry: &str) -> Result<PackagedSource, CliError> {
        let (folder, entry) = (self.folder(), entry.to_owned());
        let shown = entry.strip_prefix(&format!("{folder}/")).unwrap_or(&entry).to_owned();
        let (mut bundle, missing) = self.files.bundle(entry);
        let others = bundle.files.keys().filter(|path| !path.ends_with("/package.json")).count() - 1;
        if others == 0 {
            let source = bundle.files.remove(&bundle.entry).unwrap_or_default();
            self.fits(&source, &BTreeMap::new())?;
            return Ok(PackagedSource { source, shown, missing });
        }
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for (path, text) in &bundle.files {
            let package = self.packages.iter().filter(|(folder, _)| path.starts_with(&format!("{folder}/")));
            let Some((_, name)) = package.max_by_key(|(folder, _)| folder.len()) else { continue };
            *sizes.entry(name).or_default() += text.len();
        }
        let source = bundle.to_text().map_err(|error| CliError::new(exit::FAILED, error.to_string()))?;
        self.fits(&source, &sizes)?;
        let files = counted(others, "file");
        let shown = match sizes.len() {
            1 => format!("{shown} and {files}"),
            packages => format!("{shown} and {files} of {packages} packages"),
        };
        Ok(PackagedSource { source, shown, missing })
    }

    fn fits(&self, source: &str, sizes: &BTreeMap<&str, usize>) -> Result<(), CliError> {
        if source.len() <= LIBRARY_BYTES {
            return Ok(());
        }
        let mut sizes: Vec<_> = sizes.iter().collect();
        sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let largest: Vec<String> =
            sizes.iter().take(5).map(|(name, bytes)| format!("{name} ({bytes} bytes)")).collect();
        let of = if largest.is_empty() { String::new() } else { format!(": {}", largest.join(", ")) };
        let message =
            format!("the library {} has {} bytes, more than {LIBRARY_BYTES}{of}", self.exact(), source.len());
        Err(CliError::new(exit::FAILED, message)
            .with_hint("`--entry PATH` names a file of the package that needs fewer others"))
    }
}
