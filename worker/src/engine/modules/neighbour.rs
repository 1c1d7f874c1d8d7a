//! Owns which files beside a missing one were probably meant: those that differ in the extension only, or are its index file. Reads
//! nothing.

/// Endings that a specifier may lack, if the template's resolver does not add them.
const ENDS: &[&str] = &[
    ".js",
    ".ts",
    ".mjs",
    ".cjs",
    ".mts",
    ".cts",
    ".json",
    "/index.js",
    "/index.ts",
    "/index.mjs",
    "/index.cjs",
    "/index.json",
];

/// The names that TypeScript's compiler gives to its output.
const COMPILED: &[(&str, &str)] = &[(".js", ".ts"), (".mjs", ".mts"), (".cjs", ".cts")];

/// Paths, with the specifiers that mean them.
pub(super) fn candidates(specifier: &str, path: &str) -> Vec<(String, String)> {
    let (path, specifier) = (path.trim_end_matches('/'), specifier.trim_end_matches('/'));
    let sources = COMPILED.iter().filter_map(|(from, to)| {
        let [path, specifier] = [path, specifier].map(|text| text.strip_suffix(from));
        Some((format!("{}{to}", path?), format!("{}{to}", specifier?)))
    });
    sources.chain(ENDS.iter().map(|end| (format!("{path}{end}"), format!("{specifier}{end}")))).collect()
}
