//! Names of a program's files, and which file an `import` names. Names are relative to the folder of the entry, with `/` between
//! the parts: `main.ts`, `lib/tax.ts`, `../shared/money.ts`.
//!
//! Owns: the rules of specifiers. Must not: read files; callers try the candidates in order.

/// Endings that are added to a specifier without one that names a file, in this order.
const ENDINGS: &[&str] = &[".js", ".ts", ".mjs", ".mts", ".json"];
/// Files that stand for their folder, in this order.
const INDEXES: &[&str] = &["index.js", "index.ts", "index.mjs", "index.mts"];
/// TypeScript names the file that the compiler would write.
const WRITTEN: &[(&str, &str)] = &[(".js", ".ts"), (".mjs", ".mts")];

/// How a file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SourceKind {
    JavaScript,
    TypeScript,
    Json,
}

/// The kind of a file by the ending of its name.
pub(super) fn kind_of(name: &str) -> Result<SourceKind, String> {
    let ending = name.rsplit('/').next().and_then(|last| last.rsplit_once('.')).map_or("", |(_, end)| end);
    match ending {
        "js" | "mjs" => Ok(SourceKind::JavaScript),
        "ts" | "mts" => Ok(SourceKind::TypeScript),
        "json" => Ok(SourceKind::Json),
        "cjs" | "cts" => Err(format!("`{name}` is a CommonJS file; programs import ES modules and JSON")),
        "jsx" | "tsx" => Err(format!("`{name}`: JSX is not supported")),
        _ => Err(format!("`{name}`: programs import files that end with .js, .mjs, .ts, .mts or .json")),
    }
}

/// The names of the files that a specifier may mean in the file `importer`, in the order in which they are tried.
pub fn candidates(importer: &str, specifier: &str) -> Result<Vec<String>, String> {
    if !["./", "../"].iter().any(|start| specifier.starts_with(start)) && !matches!(specifier, "." | "..") {
        return Err(refused(specifier));
    }
    let folder = importer.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = joined(folder, specifier);
    let is_folder = ["/", "/.", "/.."].iter().any(|end| specifier.ends_with(end))
        || matches!(specifier, "." | "..")
        || path.is_empty()
        || path.ends_with("..");
    let mut list = Vec::new();
    if !is_folder {
        list.push(path.clone());
        for (written, source) in WRITTEN {
            list.extend(path.strip_suffix(written).map(|stem| format!("{stem}{source}")));
        }
        list.extend(ENDINGS.iter().map(|ending| format!("{path}{ending}")));
    }
    list.extend(INDEXES.iter().map(|index| joined(&path, index)));
    Ok(list)
}

fn refused(specifier: &str) -> String {
    let shown: String = specifier.chars().take(100).collect();
    let is_address =
        specifier.starts_with('/') || (specifier.contains(':') && !specifier.starts_with("node:"));
    let why = if is_address {
        "programs import files by paths that begin with `./` or `../`"
    } else {
        "programs import files (`./lib.js`), not packages or modules of Node"
    };
    format!("`import` of `{shown}` is not supported: {why}")
}

/// A path relative to a folder, without `.` and with `..` only at its beginning.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specifier_names_files_relative_to_its_importer() {
        let first = |importer: &str, specifier: &str| candidates(importer, specifier).unwrap()[0].clone();
        assert_eq!(first("main.js", "./a.js"), "a.js");
        assert_eq!(first("lib/deep/b.js", "../a.js"), "lib/a.js");
        assert_eq!(first("lib/b.js", "../../out/./x/../a.js"), "../out/a.js");
        assert_eq!(first("../out/a.js", "./b.js"), "../out/b.js");
        assert_eq!(first("main.js", "."), "index.js");
        assert_eq!(first("main.js", ".."), "../index.js");
        assert_eq!(first("lib/a.js", "./sub/"), "lib/sub/index.js");
        assert!(candidates("m.ts", "./a.js").unwrap().contains(&"a.ts".to_owned()));
        assert_eq!(candidates("m.ts", "./a").unwrap()[1..3], ["a.js", "a.ts"]);
    }

    #[test]
    fn what_is_no_file_is_refused_with_the_reason() {
        for (specifier, part) in [
            ("lodash", "not packages"),
            ("node:fs", "modules of Node"),
            ("/etc/passwd.json", "begin with `./`"),
            ("file:///x.js", "begin with `./`"),
            ("https://x.test/a.js", "begin with `./`"),
            ("", "not packages"),
            (".hidden.js", "not packages"),
        ] {
            let why = candidates("main.js", specifier).unwrap_err();
            assert!(why.contains(part), "{specifier}: {why}");
        }
        assert!(kind_of("a/b.cjs").unwrap_err().contains("CommonJS"));
        assert!(kind_of("a.d/b").unwrap_err().contains("end with"));
        assert_eq!(kind_of("a/b.d.ts"), Ok(SourceKind::TypeScript));
    }
}
