//! Owns which files of packages a library needs: those that its entry names, directly or not, in any text in quotes. Packages are as in a
//! worktree, beneath `node_modules`. Pure functions on texts: nothing is parsed as JavaScript, so that files may be kept that are never
//! loaded, and a file is missed only if its name is put together from parts.

use super::bundle::{LibraryBundle, manifest_of};
use super::exports::{self, Mapped};
use super::find::{IMPORT, REQUIRE};
use super::package::PackageManifest;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use vm_system_protocol::worktree_path::{folder, join};

/// Longest text in quotes that may name a module (bytes).
const SPECIFIER_BYTES: usize = 300;
/// Files that a name without an extension may mean.
const ENDS: &[&str] = &["", ".js", ".json", "/index.js", "/index.json"];

/// The files of packages.
#[derive(Debug, Default)]
pub struct PackageFiles {
    /// Texts by path: `node_modules/NAME/…`.
    texts: BTreeMap<String, String>,
    /// The content of each `package.json`, by its folder.
    manifests: BTreeMap<String, KnownManifest>,
}

/// A `package.json`, parsed.
#[derive(Debug)]
struct KnownManifest {
    package: PackageManifest,
    /// The packages without which it does not work: the range of versions of each.
    needed: BTreeMap<String, String>,
}

/// A package that is needed and absent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingPackage {
    /// The name of the missing one.
    pub name: String,
    /// The versions that would do.
    pub range: String,
    /// The name of the package that needs it.
    pub needed_by: String,
}

impl PackageFiles {
    /// Adds a file.
    pub fn add(&mut self, path: String, text: String) {
        if let Some(package) = path.strip_suffix("/package.json") {
            match KnownManifest::parse(package, &text) {
                Some(known) => self.manifests.insert(package.to_owned(), known),
                None => self.manifests.remove(package),
            };
        }
        self.texts.insert(path, text);
    }

    /// The file of this path in a package's folder, with or without its extension.
    pub fn file(&self, package: &str, path: &str) -> Option<String> {
        let path = join(package, path).filter(|path| path.starts_with(&format!("{package}/")))?;
        let is_script = |path: &String| self.texts.contains_key(path) && !path.ends_with("/package.json");
        [ENDS, &[".cjs"]].concat().iter().map(|end| format!("{path}{end}")).find(is_script)
    }

    /// The file that `require` of a package means, else the one that `import` of it means.
    pub fn main(&self, package: &str) -> Option<String> {
        let manifest = self.manifest(package)?;
        if manifest.exports.is_some() {
            return self.exported(manifest, "").into_iter().next();
        }
        let main = manifest.main.as_deref().and_then(|main| self.file(package, main));
        main.or_else(|| self.file(package, "index"))
    }

    /// A bundle with the files that the entry needs, and the packages that are missing from it.
    pub fn bundle(&self, entry: String) -> (LibraryBundle, Vec<MissingPackage>) {
        let (mut kept, mut folders, mut missing) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut next = vec![entry.clone()];
        while let Some(path) = next.pop() {
            let Some(text) = self.texts.get(&path) else { continue };
            if !kept.insert(path.clone()) {
                continue;
            }
            next.extend(manifest_of(&path, |path| self.texts.contains_key(path)));
            if Path::new(&path).extension().is_none_or(|end| end != "json") {
                let needed = self.needed(&path);
                for (specifier, is_folder) in specifiers(text) {
                    if is_folder && !folders.insert(join(folder(&path), specifier)) {
                        continue;
                    }
                    let found = self.meant(&path, specifier, is_folder);
                    let name = package_name(specifier);
                    if found.is_empty()
                        && let Some((needed, needed_by)) = needed
                        && let Some(range) = needed.get(name)
                        && self.package(&path, name).is_none()
                    {
                        let (name, range) = (name.to_owned(), range.clone());
                        missing.insert(MissingPackage { name, range, needed_by: needed_by.to_owned() });
                    }
                    next.extend(found);
                }
            }
        }
        let files = kept.into_iter().filter_map(|path| self.texts.get_key_value(&path));
        let files = files.map(|(path, text)| (path.clone(), text.clone())).collect();
        (LibraryBundle { entry, files }, missing.into_iter().collect())
    }

    /// All files that a specifier may mean.
    fn meant(&self, from: &str, specifier: &str, is_folder: bool) -> Vec<String> {
        let relative = specifier.starts_with("./") || specifier.starts_with("../");
        if relative || matches!(specifier, "." | "..") {
            let Some(path) = join(folder(from), specifier) else { return Vec::new() };
            if is_folder {
                let within = format!("{path}/");
                let all =
                    self.texts.range(within.clone()..).take_while(|(path, _)| path.starts_with(&within));
                return all.map(|(path, _)| path.clone()).collect();
            }
            return self.candidates(&path);
        }
        if is_folder {
            return Vec::new();
        }
        if specifier.starts_with('#') {
            let scope = manifest_of(from, |path| self.texts.contains_key(path));
            let scope = scope.and_then(|path| self.manifest(folder(&path)));
            let mapped = [REQUIRE, IMPORT]
                .map(|conditions| exports::imported(scope, specifier, conditions, from).ok());
            let meant = mapped.into_iter().flatten().flat_map(|mapped| match mapped {
                Mapped::File(path) => vec![path],
                Mapped::Specifier(other) if other.starts_with('#') => Vec::new(),
                Mapped::Specifier(other) => self.meant(from, &other, false),
            });
            return meant.collect();
        }
        let name = package_name(specifier);
        let rest = &specifier[name.len()..];
        let Some(package) = self.package(from, name) else { return Vec::new() };
        let Some(manifest) = self.manifest(&package) else { return Vec::new() };
        if manifest.exports.is_some() {
            return self.exported(manifest, rest);
        }
        self.candidates(&format!("{package}{rest}"))
    }

    /// The files that a package exports under a name, for `require` and for `import`.
    fn exported(&self, manifest: &PackageManifest, rest: &str) -> Vec<String> {
        let Some(exports) = &manifest.exports else { return Vec::new() };
        let subpath = format!(".{rest}");
        let mut found = Vec::new();
        for conditions in [REQUIRE, IMPORT] {
            match exports::exported(manifest, exports, &subpath, conditions, None) {
                Ok(Mapped::File(path)) if self.texts.contains_key(&path) => found.push(path),
                _ => {}
            }
        }
        found
    }

    /// The files that a path may mean, as a file or as a folder.
    fn candidates(&self, path: &str) -> Vec<String> {
        let exists = |path: &String| self.texts.contains_key(path);
        let of =
            |path: &str| ENDS.iter().map(|end| format!("{path}{end}")).filter(exists).collect::<Vec<_>>();
        let Some(manifest) = self.manifest(path) else { return of(path) };
        let main = manifest.main.as_deref().and_then(|main| join(path, main)).map(|main| of(&main));
        let main = main.filter(|main| !main.is_empty());
        // A file beside the folder comes before it.
        let beside =
            of(path).into_iter().filter(|file| main.is_none() || !file.starts_with(&format!("{path}/")));
        beside.chain(main.iter().flatten().cloned()).chain([manifest.path()]).collect()
    }

    /// The folder of the package that a name means in a file.
    fn package(&self, from: &str, name: &str) -> Option<String> {
        let mut level = folder(from);
        loop {
            let package = if level.is_empty() {
                format!("node_modules/{name}")
            } else {
                format!("{level}/node_modules/{name}")
            };
            if self.texts.contains_key(&format!("{package}/package.json")) {
                return Some(package);
            }
            if level.is_empty() {
                return None;
            }
            level = folder(level);
        }
    }

    fn manifest(&self, package: &str) -> Option<&PackageManifest> {
        self.manifests.get(package).map(|known| &known.package)
    }

    /// The dependencies of the package of a file, by name with the range of versions; and the package's own name.
    fn needed<'a>(&'a self, path: &'a str) -> Option<(&'a BTreeMap<String, String>, &'a str)> {
        // The one with the dependencies is at the top of the package: others say what kind of files a folder has.
        let at = path.rfind("node_modules/")? + "node_modules/".len();
        let name = package_name(&path[at..]);
        Some((&self.manifests.get(&path[..at + name.len()])?.needed, name))
    }
}

impl KnownManifest {
    fn parse(folder: &str, text: &str) -> Option<Self> {
        let package = PackageManifest::parse(folder, text)?;
        let manifest: Value = serde_json::from_str(text).unwrap_or_default();
        let is_optional = |name: &str| manifest["peerDependenciesMeta"][name]["optional"] == true;
        let all = ["dependencies", "peerDependencies"].into_iter();
        let all = all.filter_map(|field| manifest[field].as_object()).flatten();
        let all =
            all.filter(|(name, _)| !is_optional(name) && manifest["optionalDependencies"][name].is_null());
        let needed = all.map(|(name, range)| (name.clone(), range.as_str().unwrap_or("*").to_owned()));
        Some(Self { package, needed: needed.collect() })
    }
}

/// `name` of `name/path`, `@scope/name` of `@scope/name/path`.
fn package_name(specifier: &str) -> &str {
    let names = if specifier.starts_with('@') { 2 } else { 1 };
    specifier.match_indices('/').nth(names - 1).map_or(specifier, |(at, _)| &specifier[..at])
}

/// The texts in quotes that may be specifiers, and whether each is only the beginning of one: `require('./locale/' + name)`.
fn specifiers(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let quotes = text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'"' | b'\'' | b'`'));
    quotes.filter_map(|(at, quote)| {
        let rest = text.as_bytes().get(at + 1..)?;
        let rest = &rest[..rest.len().min(SPECIFIER_BYTES)];
        let length = rest.iter().position(|byte| !is_of_specifier(*byte))?;
        let is_complete = rest[length] == quote;
        let is_template = quote == b'`' && rest[length..].starts_with(b"${");
        let specifier = text.get(at + 1..at + 1 + length).filter(|specifier| !specifier.is_empty())?;
        if is_complete && !specifier.ends_with('/') {
            return Some((specifier, false));
        }
        if !is_complete && !is_template {
            return None;
        }
        // The whole folder, if this is the argument of a call; `./` alone has many other meanings.
        let before = text[..at].trim_end();
        let is_argument = before.ends_with('(');
        let is_loaded = ["require(", "import("].iter().any(|call| before.ends_with(call));
        let folder = &specifier[..=specifier.rfind('/')?];
        let names = folder.split('/').any(|name| !matches!(name, "" | "." | ".."));
        (is_argument && (names || is_loaded)).then_some((folder, true))
    })
}

fn is_of_specifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"@#._-/~+".contains(&byte) || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::{PackageFiles, manifest_of};

    fn files(all: &[(&str, &str)]) -> PackageFiles {
        let mut files = PackageFiles::default();
        for (path, text) in all {
            files.add(format!("node_modules/{path}"), (*text).to_owned());
        }
        files
    }

    fn kept(files: &PackageFiles, package: &str) -> Vec<String> {
        let main = files.main(&format!("node_modules/{package}")).expect("its main file");
        let (bundle, missing) = files.bundle(main);
        assert_eq!(missing, []);
        bundle.files.into_keys().map(|path| path.replacen("node_modules/", "", 1)).collect()
    }

    #[test]
    fn files_that_the_entry_names_are_kept_and_no_others() {
        let files = files(&[
            ("a/package.json", r#"{"name": "a", "main": "lib", "dependencies": {"b": "1", "@s/c": "1"}}"#),
            (
                "a/lib/index.js",
                "// don't\nrequire('./part');if(x)require(\"b\");var y='it\\'s';import('@s/c/sub')",
            ),
            ("a/lib/part.js", "export * from './data.json'"),
            ("a/lib/data.json", r#"{"x": "./unused.js"}"#),
            ("a/lib/unused.js", ""),
            (
                "a/node_modules/b/package.json",
                r#"{"name": "b", "exports": {"import": "./m.mjs", "require": "./r.cjs"}}"#,
            ),
            ("a/node_modules/b/m.mjs", ""),
            ("a/node_modules/b/r.cjs", "require('#inner')"),
            ("b/package.json", "{}"),
            ("b/index.js", "another version"),
            ("@s/c/package.json", "{}"),
            ("@s/c/sub/package.json", r#"{"main": "../x.js"}"#),
            ("@s/c/x.js", ""),
            ("@s/c/index.js", ""),
        ]);
        assert_eq!(
            kept(&files, "a"),
            [
                "@s/c/package.json",
                "@s/c/sub/package.json",
                "@s/c/x.js",
                "a/lib/data.json",
                "a/lib/index.js",
                "a/lib/part.js",
                "a/node_modules/b/m.mjs",
                "a/node_modules/b/package.json",
                "a/node_modules/b/r.cjs",
                "a/package.json",
            ]
        );
    }

    #[test]
    fn a_name_put_together_keeps_its_folder() {
        let all = [
            ("a/package.json", r##"{"imports": {"#x": "./x.js"}}"##),
            ("a/locale/de.js", ""),
            ("a/other/de.js", ""),
            ("a/x.js", ""),
        ];
        for (text, expected) in [
            ("load('./locale/' + name)", &["a/index.js", "a/locale/de.js", "a/package.json"][..]),
            ("import(`./locale/${name}.js`)", &["a/index.js", "a/locale/de.js", "a/package.json"]),
            ("x = './locale/' + name", &["a/index.js", "a/package.json"]),
            ("join('./', '#x')", &["a/index.js", "a/package.json", "a/x.js"]),
            (
                "require('./' + name)",
                &["a/index.js", "a/locale/de.js", "a/other/de.js", "a/package.json", "a/x.js"],
            ),
        ] {
            let mut files = files(&all);
            files.add("node_modules/a/index.js".to_owned(), text.to_owned());
            assert_eq!(kept(&files, "a"), expected, "{text}");
        }
    }

    #[test]
    fn a_missing_dependency_is_named_with_the_package_that_needs_it() {
        let files = files(&[
            (
                "a/package.json",
                r#"{"main": "./i.js", "dependencies": {"b": "^2", "unused": "1", "o": "1"}, "peerDependencies": {"p": ">=3", "q": "1"},
                "peerDependenciesMeta": {"q": {"optional": true}}, "optionalDependencies": {"o": "1"}}"#,
            ),
            (
                "a/i.js",
                "require('b/x'); try { require('q'), require('o') } catch {} require('p'); require('fs')",
            ),
        ]);
        let (_, missing) = files.bundle(files.main("node_modules/a").expect("main"));
        let missing: Vec<_> =
            missing.iter().map(|m| (m.name.as_str(), m.range.as_str(), m.needed_by.as_str())).collect();
        assert_eq!(missing, [("b", "^2", "a"), ("p", ">=3", "a")]);
    }

    #[test]
    fn the_nearest_manifest_of_a_file_is_in_its_package() {
        let all = [
            "node_modules/@s/a/package.json",
            "node_modules/@s/a/my_node_modules/package.json",
            "package.json",
        ];
        for (path, found) in [
            ("node_modules/@s/a/lib/x.js", Some(all[0])),
            ("node_modules/@s/a/my_node_modules/x.js", Some(all[1])),
            ("node_modules/@s/a/node_modules/b/x.js", None),
            ("node_modules/@s/b/x.js", None),
            ("x.js", None),
        ] {
            assert_eq!(manifest_of(path, |path| all.contains(&path)).as_deref(), found, "{path}");
        }
    }

    #[test]
    fn paths_do_not_leave_a_package() {
        let files = files(&[("a/package.json", r#"{"main": "../../../../etc/passwd"}"#), ("b/x.js", "")]);
        assert_eq!(files.main("node_modules/a"), None);
        assert_eq!(files.file("node_modules/a", "../b/x.js"), None);
        assert_eq!(files.file("node_modules/b", "x").as_deref(), Some("node_modules/b/x.js"));
    }
}
