//! Owns the rules of `exports` and `imports` of a `package.json` (Node's documentation, "Modules: Packages", "Resolution and loading
//! algorithm specification"). Pure functions.

use super::package::PackageManifest;
pub(super) use super::package::PackageTarget;

/// The meaning of a specifier by the rules of a package.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mapped {
    /// A file, relative to the worktree.
    File(String),
    /// Another package, or a module of the host.
    Specifier(String),
}

/// A failed resolution, as the script sees it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResolveError {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) is_type_error: bool,
}

/// The result of the rules for one target.
enum Outcome {
    Mapped(Mapped),
    /// No condition applies.
    Undefined,
    /// Explicitly not available.
    Null,
}

/// The request that is mapped.
struct Mapping<'a> {
    package: &'a PackageManifest,
    /// `exports` or `imports`.
    field: &'static str,
    conditions: &'a [&'static str],
    /// ` imported from …`, or empty.
    base: String,
}

const NOT_EXPORTED: &str = "ERR_PACKAGE_PATH_NOT_EXPORTED";

/// The file of `subpath` (`.` or `./…`). `importer`: the importing file; `None` for `require`.
pub(super) fn exported(
    package: &PackageManifest,
    exports: &PackageTarget,
    subpath: &str,
    conditions: &[&'static str],
    importer: Option<&str>,
) -> Result<Mapped, ResolveError> {
    let base = importer.map(|importer| format!(" imported from {importer}")).unwrap_or_default();
    let mapping = Mapping { package, field: "exports", conditions, base };
    let outcome = match exports {
        PackageTarget::Map(entries) if entries.iter().any(|(key, _)| key.starts_with('.')) => {
            if !entries.iter().all(|(key, _)| key.starts_with('.')) {
                let why = "\"exports\" cannot contain some keys starting with '.' and some not. The exports object must either \
                           be an object of package subpath keys or an object of main entry condition name keys only.";
                let message = format!("Invalid package config {}. {why}", package.path());
                return Err(ResolveError {
                    code: "ERR_INVALID_PACKAGE_CONFIG",
                    message,
                    is_type_error: false,
                });
            }
            mapping.entry(subpath, entries)?
        }
        main if subpath == "." => mapping.target(".", main, None)?,
        _ => Outcome::Undefined,
    };
    match outcome {
        Outcome::Mapped(mapped) => Ok(mapped),
        Outcome::Undefined | Outcome::Null => {
            let file = package.path();
            let what = if subpath == "." {
                format!("No \"exports\" main defined in {file}")
            } else {
                format!("Package subpath '{subpath}' is not defined by \"exports\" in {file}")
            };
            let message = format!("{what}{}", mapping.base);
            Err(ResolveError { code: NOT_EXPORTED, message, is_type_error: false })
        }
    }
}

/// The meaning of a specifier with `#` in the package of `importer`.
pub(super) fn imported(
    package: Option<&PackageManifest>,
    specifier: &str,
    conditions: &[&'static str],
    importer: &str,
) -> Result<Mapped, ResolveError> {
    let base = format!(" imported from {importer}");
    if specifier == "#" || specifier.starts_with("#/") || specifier.ends_with('/') {
        let message =
            format!("Invalid module \"{specifier}\" is not a valid internal imports specifier name{base}");
        return Err(ResolveError { code: "ERR_INVALID_MODULE_SPECIFIER", message, is_type_error: true });
    }
    let mut of = String::new();
    if let Some(package) = package {
        let mapping = Mapping { package, field: "imports", conditions, base: base.clone() };
        if let Outcome::Mapped(mapped) = mapping.entry(specifier, &package.imports)? {
            return Ok(mapped);
        }
        of = format!(" in package {}", package.path());
    }
    let message = format!("Package import specifier \"{specifier}\" is not defined{of}{base}");
    Err(ResolveError { code: "ERR_PACKAGE_IMPORT_NOT_DEFINED", message, is_type_error: true })
}

impl Mapping<'_> {
    /// The entry for a name: its own, or the most specific pattern.
    fn entry(&self, name: &str, entries: &[(String, PackageTarget)]) -> Result<Outcome, ResolveError> {
        let own =
            |(key, _): &&(String, PackageTarget)| key == name && !name.contains('*') && !name.ends_with('/');
        if let Some((key, target)) = entries.iter().rev().find(own) {
            return self.target(key, target, None);
        }
        let mut best: Option<(&str, &PackageTarget, &str, usize)> = None;
        for (key, target) in entries {
            let Some((before, after)) = key.split_once('*') else { continue };
            if after.contains('*') || name.len() < key.len() {
                continue;
            }
            let Some(rest) = name.strip_prefix(before).filter(|rest| !rest.is_empty()) else { continue };
            let Some(matched) = rest.strip_suffix(after) else { continue };
            let is_better = best.is_none_or(|(other, .., length)| {
                before.len() > length || (before.len() == length && key.len() > other.len())
            });
            if is_better {
                best = Some((key, target, matched, before.len()));
            }
        }
        match best {
            Some((key, target, matched, _)) => self.target(key, target, Some(matched)),
            None => Ok(Outcome::Undefined),
        }
    }

    fn target(
        &self,
        key: &str,
        target: &PackageTarget,
        matched: Option<&str>,
    ) -> Result<Outcome, ResolveError> {
        match target {
            PackageTarget::Null => Ok(Outcome::Null),
            PackageTarget::Text(text) => self.text(key, text, matched).map(Outcome::Mapped),
            PackageTarget::Map(conditions) => {
                for (name, target) in conditions {
                    if name == "default" || self.conditions.contains(&name.as_str()) {
                        match self.target(key, target, matched)? {
                            Outcome::Undefined => {}
                            outcome => return Ok(outcome),
                        }
                    }
                }
                Ok(Outcome::Undefined)
            }
            PackageTarget::List(targets) => {
                let mut last = Ok(Outcome::Null);
                for target in targets {
                    match self.target(key, target, matched) {
                        Ok(Outcome::Undefined) => {}
                        Ok(Outcome::Null) => last = Ok(Outcome::Null),
                        Err(error) if error.code == "ERR_INVALID_PACKAGE_TARGET" => last = Err(error),
                        other => return other,
                    }
                }
                last
            }
            PackageTarget::Other => Err(self.invalid_target(key, "of another type than string", "")),
        }
    }

    fn text(&self, key: &str, text: &str, matched: Option<&str>) -> Result<Mapped, ResolveError> {
        let filled =
            |text: &str| matched.map_or_else(|| text.to_owned(), |matched| text.replace('*', matched));
        let Some(path) = text.strip_prefix("./") else {
            let other_package = self.field == "imports"
                && !text.starts_with("../")
                && !text.starts_with('/')
                && !text.contains("://");
            if other_package {
                return Ok(Mapped::Specifier(filled(text)));
            }
            let hint = if self.field == "exports" { "; targets must start with \"./\"" } else { "" };
            return Err(self.invalid_target(key, &format!("{text:?}"), hint));
        };
        let is_bad = |name: &str| matches!(name, "." | ".." | "node_modules");
        if path.split(['/', '\\']).any(is_bad) {
            return Err(self.invalid_target(key, &format!("{text:?}"), ""));
        }
        if let Some(matched) = matched
            && matched.split(['/', '\\']).any(is_bad)
        {
            let file = self.package.path();
            let why = format!("request is not a valid match in pattern \"{key}\" for the \"{}\"", self.field);
            let message = format!("Invalid module \"{matched}\" {why} resolution of {file}{}", self.base);
            return Err(ResolveError { code: "ERR_INVALID_MODULE_SPECIFIER", message, is_type_error: true });
        }
        let folder = &self.package.folder;
        let path = filled(path);
        let path: Vec<&str> =
            folder.split('/').chain(path.split('/')).filter(|name| !name.is_empty()).collect();
        Ok(Mapped::File(path.join("/")))
    }

    fn invalid_target(&self, key: &str, target: &str, hint: &str) -> ResolveError {
        let (file, base, field) = (self.package.path(), &self.base, self.field);
        let message = if key == "." {
            format!(
                "Invalid \"{field}\" main target {target} defined in the package config {file}{base}{hint}"
            )
        } else {
            format!(
                "Invalid \"{field}\" target {target} defined for '{key}' in the package config {file}{base}{hint}"
            )
        };
        ResolveError { code: "ERR_INVALID_PACKAGE_TARGET", message, is_type_error: false }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mapped, exported, imported};
    use crate::engine::modules::package::PackageManifest;

    fn package(fields: &str) -> PackageManifest {
        PackageManifest::parse("node_modules/p", fields).expect("a package")
    }

    fn file(fields: &str, subpath: &str, conditions: &[&'static str]) -> Result<String, String> {
        let package = package(fields);
        let exports = package.exports.as_ref().expect("exports");
        match exported(&package, exports, subpath, conditions, None) {
            Ok(Mapped::File(path)) => Ok(path.strip_prefix("node_modules/p/").expect("inside").to_owned()),
            Ok(Mapped::Specifier(specifier)) => Ok(format!("package {specifier}")),
            Err(error) => Err(error.code.to_owned()),
        }
    }

    #[test]
    fn conditions_apply_in_the_order_of_the_file() {
        let dual =
            r#"{"exports": {"import": "./m.mjs", "node": {"require": "./n.cjs"}, "default": "./d.js"}}"#;
        assert_eq!(file(dual, ".", &["node", "import"]).as_deref(), Ok("m.mjs"));
        assert_eq!(file(dual, ".", &["node", "require"]).as_deref(), Ok("n.cjs"));
        assert_eq!(file(dual, ".", &["other"]).as_deref(), Ok("d.js"));
        assert_eq!(file(dual, "./x", &["node"]), Err("ERR_PACKAGE_PATH_NOT_EXPORTED".to_owned()));
    }

    #[test]
    fn the_most_specific_pattern_wins_and_null_withdraws() {
        let patterns = r#"{"exports": {"./a/*": "./one/*.js", "./a/b/*": "./two/*/index.js", "./a/b/no/*": null,
            "./f/*.css": "./css/*.css", "./x": ["bad", "./x.js"], "./g/*": "./../*"}}"#;
        let find = |subpath| file(patterns, subpath, &["node"]);
        assert_eq!(find("./a/q/r").as_deref(), Ok("one/q/r.js"));
        assert_eq!(find("./a/b/q").as_deref(), Ok("two/q/index.js"));
        assert_eq!(find("./a/b/no/q"), Err("ERR_PACKAGE_PATH_NOT_EXPORTED".to_owned()));
        assert_eq!(find("./f/y.css").as_deref(), Ok("css/y.css"));
        assert_eq!(find("./x").as_deref(), Ok("x.js"), "an invalid target of a list is skipped");
        assert_eq!(find("./a/../../secret"), Err("ERR_INVALID_MODULE_SPECIFIER".to_owned()));
        assert_eq!(find("./g/x"), Err("ERR_INVALID_PACKAGE_TARGET".to_owned()));
        assert_eq!(
            file(r#"{"exports": {".": "./a", "b": "./c"}}"#, ".", &[]),
            Err("ERR_INVALID_PACKAGE_CONFIG".to_owned())
        );
        assert_eq!(file(r#"{"exports": "../a"}"#, ".", &[]), Err("ERR_INVALID_PACKAGE_TARGET".to_owned()));
    }

    #[test]
    fn imports_name_files_and_packages() {
        let package =
            package(r##"{"imports": {"#a": "./a.js", "#b/*": "./b/*.js", "#dep": {"node": "dep"}}}"##);
        let find =
            |specifier| imported(Some(&package), specifier, &["node"], "m.js").map_err(|error| error.code);
        assert_eq!(find("#a"), Ok(Mapped::File("node_modules/p/a.js".to_owned())));
        assert_eq!(find("#b/c"), Ok(Mapped::File("node_modules/p/b/c.js".to_owned())));
        assert_eq!(find("#dep"), Ok(Mapped::Specifier("dep".to_owned())));
        assert_eq!(find("#none"), Err("ERR_PACKAGE_IMPORT_NOT_DEFINED"));
        assert_eq!(find("#/x"), Err("ERR_INVALID_MODULE_SPECIFIER"));
    }
}
